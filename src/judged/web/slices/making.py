"""Scores and differences by slice, for the page and for its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import InputError
from judged.evaluation import measures_of
from judged.slicing import by_slice, compare_slices
from judged.slicing.scores import ALL
from judged.web.slices.attributes import (
    attributes,
    both,
    cut,
    draws,
    left_out_note,
    outcome_note,
    query_ids_where,
    usual,
)
from judged.web.slices.data import Compared, SliceChange, SliceLine, Slices, SliceScore
from judged.web.workspace import LEVEL

if TYPE_CHECKING:
    from judged.comparison import Pair
    from judged.slicing import SliceComparison, SlicedScores, Slicing
    from judged.web.slices.asked import AskedSlices
    from judged.web.workspace import Workspace

MOST = 6
"""Measures on the page."""
SEED = 0

_MANY = 30_000  # topics times runs: of more, only one run is tested unless all are asked for


def slices(workspace: Workspace, asked: AskedSlices) -> Slices:
    """Cut the topics into slices, and say of each how the runs do."""
    chosen = with_usual(workspace, asked)
    kept = query_ids_where(workspace, chosen.where)
    names = measure_names(chosen)
    runs = shown_runs(workspace, chosen)
    slicing = cut(workspace, chosen)
    found = scored(workspace, chosen) if runs else None
    pairs = compared(workspace, chosen)
    known = () if found is None else found.warnings
    return Slices(
        by=chosen.names,
        where=chosen.where,
        minimum=chosen.least,
        topics=len(kept),
        runs=runs,
        measures=names,
        every=runs == workspace.run_names,
        lines=() if slicing is None else _lines(found, slicing, chosen.where),
        averages=() if found is None else tuple((one.name, one.run, one.measure, one.value) for one in found.averages),
        compared=None if pairs is None else _compared(pairs),
        caption="" if found is None else _caption(found),
        sentences=(*_alone(slicing), *(() if found is None else found.sentences)),
        warnings=(*outcome_note(workspace, chosen), *left_out_note(workspace, len(kept), known), *known),
        attributes=attributes(workspace),
    )


def with_usual(workspace: Workspace, asked: AskedSlices) -> AskedSlices:
    """Fill in the attribute, where none is named."""
    return asked if asked.names else asked.model_copy(update={"by": usual(workspace)})


def measure_names(asked: AskedSlices) -> tuple[str, ...]:
    """Give the measures by their canonical names."""
    found = measures_of([name for part in asked.measures.split(",") if (name := part.strip())] or ["nDCG@10"])
    if len(found) > MOST:
        raise InputError(f"{len(found)} measures are too many for one page", fix=f"name {MOST} at most")
    return tuple(dict.fromkeys(str(one) for one in found))


def shown_runs(workspace: Workspace, asked: AskedSlices) -> tuple[str, ...]:
    """Name the runs that are shown: the one that is asked for, or all; of much data the first, unless all are."""
    names = workspace.run_names
    if asked.run == "*" or not names:
        return names
    if asked.run:
        workspace.judged(asked.run)
        return (asked.run,)
    return names if len(names) * len(workspace.query_ids) <= _MANY else names[:1]


def scored(workspace: Workspace, asked: AskedSlices) -> SlicedScores:
    """Score the runs that are shown by slice."""
    runs, names = shown_runs(workspace, asked), measure_names(asked)

    def make() -> SlicedScores:
        kept, slicing = query_ids_where(workspace, asked.where), _cut(workspace, asked)
        scores = _over(workspace, names, runs, kept)
        return by_slice(scores, slicing, level=LEVEL, seed=SEED)

    return workspace.remember(("by slice", runs, names, *_key(asked)), make)


def compared(workspace: Workspace, asked: AskedSlices) -> SliceComparison | None:
    """Compare the runs that are shown with another one on each slice; None, if none is asked for."""
    if not asked.against:
        return None
    workspace.judged(asked.against)
    others = tuple(name for name in shown_runs(workspace, asked) if name != asked.against)
    if not others and not asked.run:  # the first run is the one that others are compared with
        others = tuple(name for name in workspace.run_names if name != asked.against)[:1]
    if not others:
        raise InputError(f"{asked.against!r} is compared with itself", fix="choose two different runs")
    runs, names = (asked.against, *others), measure_names(asked)

    def make() -> SliceComparison:
        kept = query_ids_where(workspace, asked.where)
        scores = _over(workspace, names, runs, kept)
        how: dict[str, Any] = {"alpha": 1 - LEVEL, "resamples": draws(len(kept)), "seed": SEED}
        return compare_slices(scores, _cut(workspace, asked), asked.against, **how)

    return workspace.remember(("slices compared", runs, names, *_key(asked)), make)


def _key(asked: AskedSlices) -> tuple[Any, ...]:
    return asked.names, asked.where.strip(), asked.least


def _cut(workspace: Workspace, asked: AskedSlices) -> Slicing:
    found = cut(workspace, asked)
    if found is None:
        raise InputError("there is nothing to slice by", fix="name an attribute")
    return found


def _over(workspace: Workspace, names: tuple[str, ...], runs: tuple[str, ...], kept: tuple[str, ...]) -> Any:
    """Give the scores of some runs over the topics that count."""
    scores = workspace.scores(names, runs)
    if len(kept) == len(scores.query_ids):
        return scores
    wanted = set(kept)
    return scores.over_topics(np.array([query in wanted for query in scores.query_ids]))


def _alone(slicing: Slicing | None) -> tuple[str, ...]:
    """Say why nothing is tested, where nothing can be."""
    if slicing is None or not len(slicing.query_ids):
        return ()
    if bool((slicing.n == len(slicing.query_ids)).any()) and len(slicing) == 1:
        return (f"All topics are in one slice, `{slicing.names[0]}`: there are no others to set it against.",)
    if slicing.small.all():
        return ("Every slice has too few topics: all are shown, and none is tested. A smaller minimum changes that.",)
    return ()


def _caption(found: SlicedScores) -> str:
    """Say how intervals and tests were made."""
    drawn = {row.rest.resamples for row in found.findings if row.rest}
    parts = [found.scores.interval_words(found.method)]
    tests = [f"permutation test, {most:,} permutations" for most in drawn if most is not None]
    tests += ["Welch's t-test" + (" where there are many topics" if tests else "")] if None in drawn else []
    if tests:
        corrected = f"; p corrected by Holm for {found.tests} tests" if found.tests > 1 else ""
        parts.append(f"each slice against the topics outside it: {', '.join(tests)}{corrected}")
    return "; ".join(parts)


def _lines(found: SlicedScores | None, slicing: Slicing, where: str) -> tuple[SliceLine, ...]:
    """Give one line a slice, all topics first and small ones last."""
    total = len(slicing.query_ids)
    sizes = dict(zip(slicing.names, zip(slicing.n.tolist(), slicing.small.tolist(), strict=True), strict=True))
    shares = dict(zip(slicing.names, slicing.members.mean(axis=1).tolist(), strict=True))
    made = {one.name: one for one in slicing.slices}
    scores = _scores(found)
    lines = [SliceLine(ALL, "", where.strip(), total, 1.0, 1, small=False, scores=scores.get(ALL, ()))]
    for name in sorted(slicing.names, key=lambda name: sizes[name][1]):
        one, (n, small) = made[name], sizes[name]
        lines.append(
            SliceLine(
                name, one.expression, both(where, one.expression), n, shares[name], one.minimum, small,
                scores.get(name, ()),
            )
        )  # fmt: skip
    return tuple(lines)


def _scores(found: SlicedScores | None) -> dict[str, tuple[SliceScore, ...]]:
    """Give the numbers by slice: by measure, then run."""
    if found is None:
        return {}
    made: dict[str, list[SliceScore]] = {}
    for row in found.estimates:
        made.setdefault(row.slice, []).append(
            SliceScore(
                run=row.run,
                measure=row.measure,
                value=row.value,
                ci=row.ci,
                topics=row.topics,
                difference=row.rest and row.rest.difference,
                difference_ci=row.rest and row.rest.interval,
                p=row.adjusted if row.rest else None,
                significant=row.significant,
                better=row.better,
            )
        )
    order = {name: at for at, name in enumerate(found.scores.measure_names)}
    return {name: tuple(sorted(ones, key=lambda one: order[one.measure])) for name, ones in made.items()}


def _compared(found: SliceComparison) -> Compared:
    rows: list[SliceChange] = []
    for measure in found.measures:
        for first, second in found.pairs:
            overall = found.overall.pair(first, second, measure)
            rows.append(_change(ALL, measure, overall.found.n, overall.shown_difference, overall, (first, second)))
            rows += [
                _change(row.slice, measure, row.n, row.difference, row.pair, (first, second), small=row.small)
                for row in found.of(measure, second)
            ]
    return Compared(found.pairs[0][0], tuple(rows), found.caption, found.sentences, found.warnings)


def _change(
    name: str, measure: str, n: int, value: float, pair: Pair | None, names: tuple[str, str], *, small: bool = False
) -> SliceChange:
    return SliceChange(
        slice=name,
        measure=measure,
        first=names[0],
        second=names[1],
        topics=n,
        difference=value,
        ci=None if pair is None else pair.shown_interval,
        p=None if pair is None else pair.found.decisive_p,
        significant=pair is not None and pair.significant,
        small=small,
        wins=None if pair is None else pair.wins.wins,
        ties=None if pair is None else pair.wins.ties,
        losses=None if pair is None else pair.wins.losses,
    )
