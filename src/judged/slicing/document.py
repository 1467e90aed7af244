"""Scores and comparisons by slice as plain values for JSON, and as rows for CSV."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judged.comparison.document import pair_document
from judged.evaluation.document import number
from judged.evaluation.provenance import provenance
from judged.slicing.layout import comparison_caption
from judged.slicing.sentences import sentences_of_comparison, sentences_of_scores
from judged.slicing.slice_scores import ALL
from judged.tables import Table

if TYPE_CHECKING:
    from judged.comparison import Pair
    from judged.slicing.compared_slices import BetweenSlices, ComparedSlices, SlicePair
    from judged.slicing.slice_scores import SliceEstimate, SliceTable
    from judged.slicing.slices import Slicing

_SCORES = (
    "slice", "run", "measure", "aggregate", "value", "ci_low", "ci_high", "scored", "topics", "share", "weight",
    "small", "rest_difference", "rest_p", "adjusted", "significant", "better",
)  # fmt: skip
_PAIRS = (
    "measure", "first", "second", "slice", "topics", "small", "difference", "low", "high", "p", "adjusted",
    "significant", "better", "wins", "ties", "losses", "detectable", "rest_difference", "rest_p",
)  # fmt: skip


def slices_document(slicing: Slicing) -> list[dict[str, Any]]:
    """Lay out the slices themselves."""
    return [
        {**asdict(one), "topics": n, "small": small}
        for one, n, small in zip(slicing.slices, slicing.n.tolist(), slicing.small.tolist(), strict=True)
    ]


def score_document(found: SliceTable) -> dict[str, Any]:
    """Lay out scores by slice: full precision, None for NaN."""
    scores = found.scores
    head = provenance(scores).to_dict()
    return {
        **head,
        "policies": {**head["policies"], "ci": vars(found.method)},
        "where": found.where or None,
        "slices": slices_document(found.slicing),
        "overlap": not found.slicing.disjoint,
        "weights": list(found.weights),
        "results": [_estimate(one) for one in found.estimates],
        "averages": [
            {**asdict(one), "value": number(one.value), "ci": _ci(one.ci), "effective": number(one.effective)}
            for one in found.averages
        ],
        "tests": found.tests,
        "findings": [
            {
                **{name: getattr(one, name) for name in ("slice", "run", "measure", "significant", "better")},
                "value": number(one.value),
                "adjusted": number(one.adjusted),
                "rest": one.rest.to_dict(),
            }
            for one in found.findings
        ],
        "sentences": list(sentences_of_scores(found)),
        "warnings": list(found.warnings),
    }


def _estimate(one: SliceEstimate) -> dict[str, Any]:
    estimate = one.estimate
    return {
        "slice": one.slice,
        "run": estimate.run,
        "measure": estimate.measure,
        "aggregate": estimate.aggregate,
        "value": number(estimate.value),
        "ci": _ci(estimate.ci),
        "scored": estimate.topics,
        "topics": one.n,
        "share": one.share,
        "weight": number(one.weight),
        "small": one.small,
    }


def _ci(ci: tuple[float, float] | None) -> list[float | None] | None:
    return None if ci is None else [_finite(bound) for bound in ci]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def score_rows(found: SliceTable) -> Table:
    """Lay out one number a row, with the test of a slice against the other topics."""
    tests = {(one.slice, one.run, one.measure): one for one in found.findings}
    rows: list[tuple[str, ...]] = []
    for one in found.estimates:
        made = _estimate(one)
        low, high = one.estimate.ci or (None, None)
        values = {**made, "ci_low": low, "ci_high": high}
        if (test := tests.get((one.slice, one.estimate.run, one.estimate.measure))) is not None:
            values |= {"rest_difference": test.rest.difference, "rest_p": test.rest.p}
            values |= {name: getattr(test, name) for name in ("adjusted", "significant", "better")}
        rows.append(tuple(_full(values.get(name)) for name in _SCORES))
    return Table(_SCORES, tuple(rows), labels=3)


def comparison_document(found: ComparedSlices) -> dict[str, Any]:
    """Lay out a comparison by slice: full precision, None for NaN."""
    scores = found.overall.scores
    choices = asdict(found.choices)
    del choices["minimum"]  # of a win, which no test by slice has; each slice has its own minimum of topics
    return {
        **provenance(scores).to_dict(),
        "where": found.where or None,
        "choices": choices,
        "caption": comparison_caption(found),
        "slices": slices_document(found.slicing),
        "overlap": not found.slicing.disjoint,
        "families": dict(found.families),
        "overall": [
            {"measure": one.name, **pair_document(pair)} for one in found.overall.measures for pair in one.pairs
        ],
        "results": [_row(row) for row in found.rows],
        "between": [_between(one) for one in found.between],
        "sentences": list(sentences_of_comparison(found)),
        "warnings": list(found.warnings),
    }


def _row(row: SlicePair) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in ("slice", "measure", "first", "second", "share", "minimum", "small")},
        "topics": row.n,
        "difference": number(row.difference),
        "better": row.better,
        "pair": None if row.pair is None else pair_document(row.pair),
        "rest": None if row.rest is None else row.rest.to_dict(),
    }


def _between(one: BetweenSlices) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in ("measure", "first", "second", "significant")},
        "slices": list(one.slices),
        "adjusted": number(one.adjusted),
        "found": one.found.to_dict(),
    }


def comparison_rows(found: ComparedSlices) -> Table:
    """Lay out one slice, measure and pair a row, under the one of all topics."""
    rows: list[tuple[str, ...]] = []
    for measure in found.measures:
        for first, second in found.pairs:
            rows.append(_whole(found.overall.pair(first, second, measure)))
            rows += [_cells(row) for row in found.of(measure, second)]
    return Table(_PAIRS, tuple(rows), labels=4)


def _whole(pair: Pair) -> tuple[str, ...]:
    values = {
        "measure": pair.measure, "first": pair.first, "second": pair.second, "slice": ALL, "topics": pair.found.n,
        "small": False, "difference": pair.shown_difference, "better": pair.better,
    }  # fmt: skip
    return _columns(values | _test(pair))


def _cells(row: SlicePair) -> tuple[str, ...]:
    values: dict[str, Any] = {
        "measure": row.measure, "first": row.first, "second": row.second, "slice": row.slice, "topics": row.n,
        "small": row.small, "difference": row.difference, "better": row.better,
    }  # fmt: skip
    if row.pair is not None:
        values |= _test(row.pair)
    if row.rest is not None:
        values |= {"rest_difference": row.rest.difference, "rest_p": row.rest.p}
    return _columns(values)


def _test(pair: Pair) -> dict[str, Any]:
    low, high = pair.shown_interval or (None, None)
    return {
        "low": low, "high": high, "p": pair.found.p, "adjusted": pair.found.decisive_p,
        "significant": pair.significant, "wins": pair.wins.wins, "ties": pair.wins.ties,
        "losses": pair.wins.losses, "detectable": pair.detectable,
    }  # fmt: skip


def _columns(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_full(values.get(name)) for name in _PAIRS)


def _full(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else str(value)
