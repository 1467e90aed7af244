"""Scores as tables of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.decimals import decimal, percent
from judged.tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from judged.evaluation.facts import Estimate, Reach
    from judged.evaluation.score_table import ScoreTable
    from judged.uncertainty.range import Exactness

_TEXT_WIDTH = 40


def summary_table(scores: ScoreTable, estimates: Sequence[Estimate] | None = None, digits: int = 4) -> Table:
    """Lay out one row a run, one column a measure: the number and its interval."""
    cells = [_cell(one, digits) for one in (scores.estimates() if estimates is None else estimates)]
    size = len(scores.measures)
    rows = tuple((run, *cells[at * size : (at + 1) * size]) for at, run in enumerate(scores.run_names))
    return Table(("run", *scores.measure_names), rows)


def topic_table(scores: ScoreTable, queries: Mapping[str, str] | None = None, digits: int = 4) -> Table:
    """Lay out one row a topic and run, one column a measure."""
    by_topic = scores.per_topic()
    several, texts = len(scores.runs) > 1, queries is not None
    header = ["query_id"] + ["query"] * texts + ["run"] * several
    rows: list[tuple[str, ...]] = []
    for at, topic in enumerate(scores.query_ids):
        for r, run in enumerate(scores.run_names):
            if scores.counted[r, at]:
                labels = [topic] + [_short((queries or {}).get(topic, ""))] * texts + [run] * several
                numbers = [
                    "  ".join([decimal(by_topic[run][name][topic], digits), *_topic_reaches(scores, r, m, at)])
                    for m, name in enumerate(scores.measure_names)
                ]
                rows.append((*labels, *numbers))
    return Table((*header, *scores.measure_names), tuple(rows), labels=len(header))


def _topic_reaches(scores: ScoreTable, run: int, measure: int, topic: int) -> Iterator[str]:
    at = run, measure, topic
    for one in scores.ranges:
        if not math.isnan(one.low[at]):
            yield _span(one.reason, one.kind[at], one.low[at], one.high[at])


def long_table(scores: ScoreTable, estimates: Sequence[Estimate], *, per_topic: bool) -> Table:
    """Lay out one number a row, in full precision: for CSV."""
    if per_topic:
        columns = scores.to_arrow().to_pydict()
        rows = zip(*([_full(cell) for cell in column] for column in columns.values()), strict=True)
        return Table(tuple(columns), tuple(rows), labels=3)
    reasons = [one.reason for one in scores.ranges]
    made = tuple(
        (
            *(one.run, one.measure, one.aggregate, _full(one.value)),
            *map(_full, one.ci or (math.nan, math.nan)),
            str(one.topics),
            *(cell for reason in reasons for cell in _reach_cells(one, reason)),
        )
        for one in estimates
    )
    header = ("run", "measure", "aggregate", "value", "ci_low", "ci_high", "topics")
    more = tuple(f"{reason}_{part}" for reason in reasons for part in ("low", "high", "kind"))
    return Table(header + more, made, labels=3)


def _reach_cells(one: Estimate, reason: str) -> tuple[str, str, str]:
    reach = next((reach for reach in one.reaches if reach.reason == reason), None)
    return ("", "", "") if reach is None else (_full(reach.low), _full(reach.high), reach.kind)


def _cell(one: Estimate, digits: int) -> str:
    if one.aggregate in {"sum", "count"} and not math.isnan(one.value):
        return f"{one.value:.0f}"
    text = decimal(one.value, digits)
    if one.ci is not None:
        low, high = (decimal(end, max(digits - 1, 1)) for end in one.ci)
        text = f"{text} [{low}, {high}]"
    return "  ".join([text, *map(_reach, one.reaches)])


def _reach(one: Reach) -> str:
    share = "" if math.isnan(one.judged) else f" ({percent(one.judged)} judged)"
    return _span(one.reason, one.kind, one.low, one.high) + share


def _span(reason: str, kind: Exactness, low: float, high: float) -> str:
    """Write how far a number could move; bounds that may be too wide, or too narrow, are marked."""
    mark = {"exact": "", "outer": " at most", "sampled": " at least"}[kind]
    return f"{reason}{mark} {decimal(low, 3)}-{decimal(high, 3)}"


def _full(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else repr(value)


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…"
