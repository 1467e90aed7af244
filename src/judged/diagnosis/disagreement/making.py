"""`disagreement`: where two measures order two systems differently, on which topics, and why."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.orders import orders
from judged.data import Qrels
from judged.data.topics import Topics
from judged.diagnosis.disagreement.reasons import Reason, reasons
from judged.diagnosis.disagreement.result import Disagreement, MeanSide, SliceDisagreement, TopicDisagreement
from judged.errors import InputError
from judged.evaluation import Scores, dialect_of, runs_of
from judged.evaluation.given import chosen_measures, scores_of
from judged.judging import Returned, judge
from judged.slicing.slices import slicing_given
from judged.stats.pairing import paired_differences, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.slicing.slices import Slicing

_LEAST_SYSTEMS = 3


def disagreement(
    scores: Any,
    runs: Any = None,
    first: Any = "nDCG@10",
    second: Any = "R@100",
    *,
    pair: tuple[str, str] | None = None,
    slicing: Slicing | None = None,
    shown: int = 5,
    queries: Any = None,
    **policies: Any,
) -> Disagreement:
    """Show where two measures order two systems differently, which topics cause it, and what the measures see there.

    Parameters
    ----------
    scores
        Qrels, and then `runs` follow, as `evaluate` takes them; or what `evaluate` returned, which has no documents
        and so gives no reasons.
    runs
        Two runs or more.
    first, second
        The measures.
    pair
        The names of the two systems; None: the two runs, or of several those that the measures pull apart most.
    slicing
        Slices of the topics, by which the preferences are shown too.
    shown
        How many of the topics that cause the disagreement are looked into.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
    policies
        Of `evaluate`, where qrels and runs are given: dialect, topics, ties, depth, precision.

    Returns
    -------
    Disagreement

    Raises
    ------
    InputError
        If there are fewer than two runs, no such run, one measure only, or something cannot be read.

    Examples
    --------
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}
    >>> ranked = {"old": ["a", "x", "y"], "new": ["x", "a", "b", "c"]}
    >>> runs = {name: {"q": {doc: -at for at, doc in enumerate(docs)}} for name, docs in ranked.items()}
    >>> found = disagreement(qrels, runs, "RR", "R@4")
    >>> [round(gap, 3) for gap in found.differences], found.agreement
    ([-0.5, 0.667], ((0, 0, 0), (0, 0, 0), (1, 0, 0)))
    >>> [reason.kind for reason in found.topics[0].reasons]
    ['first relevant']
    """
    if shown < 1:
        raise InputError(f"{shown} topics show nothing", fix="give a whole number from 1")
    table = _scores(scores, runs, first, second, policies)
    sides = np.array([-1.0 if one.properties.higher_is_better is False else 1.0 for one in table.measures])
    at = _pair(table, sides, pair)
    gaps, kept = _differences(table, at)
    if not len(kept):
        names = " and ".join(table.run_names[row] for row in at)
        raise InputError(f"{names} have no topic with a score by both measures", fix="give runs of the same topics")
    pulls, direction = _pulls(gaps * sides[:, None])
    order = sorted(range(len(kept)), key=lambda row: (-pulls[row], table.query_ids[kept[row]]))
    texts = None if queries is None else Topics.of(queries)
    found = tuple(_topic(table, at, kept[row], float(pulls[row]), texts) for row in order)
    causes = [one.query_id for one in found[:shown] if one.pull > 0]
    if runs is not None and causes:
        why = _reasons(scores, runs, table, at, causes, policies)
        found = tuple(replace(one, reasons=why.get(one.query_id, ())) for one in found)
    agreed = orders(table).pairs[0] if len(table.runs) >= _LEAST_SYSTEMS else None
    one, two = (_mean_side(table, row, gaps[row], float(sides[row])) for row in (0, 1))
    return Disagreement(
        scores=table,
        systems=(table.run_names[at[0]], table.run_names[at[1]]),
        means=(one, two),
        topics=found,
        shown=shown,
        slices=_slices(table, slicing, kept, gaps, sides),
        orders=agreed,
        chosen=pair is None and len(table.runs) > 2,
        direction=direction,
        with_reasons=runs is not None,
        warnings=table.warnings,
    )


def _scores(given: Any, runs: Any, first: Any, second: Any, policies: dict[str, Any]) -> Scores:
    if runs is None:
        table = scores_of(given, None, None, policies)
        table = chosen_measures(table, [first, second])
    else:
        table = scores_of(given, runs, [first, second], policies)
    if len(table.measures) != 2:
        names = ", ".join(table.measure_names)
        raise InputError(f"there are {len(table.measures)} measures: {names}", fix="name two different ones")
    if len(table.runs) < 2:
        raise InputError("there is one run", fix="give two runs or more")
    return table


def _pair(table: Scores, sides: Floats, pair: tuple[str, str] | None) -> tuple[int, int]:
    if pair is not None:
        for name in pair:
            if name not in table.run_names:
                raise InputError(f"no run {name!r} in this table", fix=f"one of {', '.join(table.run_names)}")
        if len(pair) != 2 or pair[0] == pair[1]:
            raise InputError(f"{pair} are not two runs", fix="name two different ones")
        return table.run_names.index(pair[0]), table.run_names.index(pair[1])
    if len(table.runs) == 2:
        return 0, 1
    return max(combinations(range(len(table.runs)), 2), key=lambda at: _apart(table, sides, at))


def _apart(table: Scores, sides: Floats, at: tuple[int, int]) -> tuple[float, float]:
    """Tell how far the measures pull two systems apart: first those that they prefer differently."""
    gaps, _ = _differences(table, at)
    one, two = (_in_errors(row) * side for row, side in zip(gaps, sides.tolist(), strict=True))
    return (min(abs(one), abs(two)) if one * two < 0 else -1.0), abs(one - two)


def _differences(table: Scores, at: tuple[int, int]) -> tuple[Floats, list[int]]:
    """Subtract the first system from the second: (2, n), and which topics have a score for both by both measures."""
    values = table.values[list(at)]
    kept = np.flatnonzero(~np.isnan(values).any(axis=(0, 1)))
    rows = [paired_differences(values[0, row, kept], values[1, row, kept])[0] for row in (0, 1)]
    return np.stack(rows), kept.tolist()


def _in_errors(gaps: Floats) -> float:
    """Give the mean difference in units of its standard error; 0 where topics do not vary or are too few."""
    deviation = spread(gaps)
    return float(gaps.mean()) / deviation * math.sqrt(len(gaps)) if deviation > 0 else 0.0


def _pulls(gaps: Floats) -> tuple[Floats, int]:
    """Give how far each topic pulls the mean differences apart, in standard errors, and to which side."""
    # The parts of all topics add up to the distance of the two t statistics.
    parts = np.zeros_like(gaps)
    for row, values in enumerate(gaps):
        deviation = spread(values)
        if deviation > 0:
            parts[row] = values / (deviation * math.sqrt(len(values)))
        elif len(values):  # one topic, or all alike: the sides are all there is
            parts[row] = np.sign(values) / len(values)
    apart = parts[0] - parts[1]
    direction = -1 if apart.sum() < 0 else 1
    return apart * direction, direction


def _topic(table: Scores, at: tuple[int, int], topic: int, pull: float, queries: Topics | None) -> TopicDisagreement:
    first, second = ((float(table.values[at[0], row, topic]), float(table.values[at[1], row, topic])) for row in (0, 1))
    query = table.query_ids[topic]
    lower = tuple(one.properties.higher_is_better is False for one in table.measures)
    return TopicDisagreement(
        query_id=query,
        query="" if queries is None else queries.text(query),
        scores=(first, second),
        lower_is_better=(lower[0], lower[1]),
        pull=pull,
    )


def _mean_side(table: Scores, row: int, gaps: Floats, side: float) -> MeanSide:
    n = len(gaps)
    deviation = spread(gaps)
    return MeanSide(
        measure=table.measure_names[row],
        n=n,
        difference=float(gaps.mean()),
        error=deviation / math.sqrt(n) if n > 1 else math.nan,
        better=int(np.count_nonzero(gaps * side > 0)),
        worse=int(np.count_nonzero(gaps * side < 0)),
        lower_is_better=side < 0,
    )


def _slices(
    table: Scores, slicing: Slicing | None, kept: list[int], gaps: Floats, sides: Floats
) -> tuple[SliceDisagreement, ...]:
    if slicing is None:
        return ()
    over = slicing_given(slicing).over([table.query_ids[at] for at in kept])
    made: list[SliceDisagreement] = []
    for one, mask in zip(over.slices, over.members, strict=True):
        inside = gaps[:, mask]
        both = np.sign(inside[0] * sides[0]) * np.sign(inside[1] * sides[1])
        n = int(mask.sum())
        means = tuple(_mean_side(table, row, inside[row], float(sides[row])) for row in (0, 1)) if n else None
        made.append(
            SliceDisagreement(
                name=one.name,
                n=n,
                small=n < one.minimum,
                means=None if means is None else (means[0], means[1]),
                opposite=int(np.count_nonzero(both < 0)),
                same=int(np.count_nonzero(both > 0)),
            )
        )
    return tuple(made)


def _reasons(
    qrels: Any, runs: Any, table: Scores, at: tuple[int, int], query_ids: Sequence[str], policies: dict[str, Any]
) -> dict[str, tuple[Reason, ...]]:
    """Judge the two runs as they were judged for the scores, and look into some topics."""
    rules = dialect_of(policies.get("dialect"))
    chosen = table.policies
    judgments = rules.prepare_qrels(Qrels.of(qrels))
    ties = chosen.ties if chosen.ties not in {"expected", "bounds"} else rules.ties
    named = {run.name: run for run in runs_of(runs)}
    lists: list[Judged] = []
    for row in at:
        run = rules.prepare_run(named[table.run_names[row]])
        how: dict[str, Any] = {"ties": ties, "depth": chosen.depth, "precision": chosen.precision}
        lists.append(judge(judgments, run, documents=policies.get("documents"), **how))
    every = [judged.everything for judged in lists]
    measures = (table.measures[0], table.measures[1])
    return {query: _why(lists, every, measures, query) for query in query_ids if query in lists[0].query_ids}


def _why(
    lists: Sequence[Judged], every: Sequence[Returned], measures: tuple[Measure, Measure], query: str
) -> tuple[Reason, ...]:
    one, two = (_only(judged, shown, query) for judged, shown in zip(lists, every, strict=True))
    return reasons((one, two), measures)


def _only(judged: Judged, shown: Returned, query: str) -> Judged:
    """Leave one topic, with every returned document: else the run would be read again for each topic."""
    here = np.flatnonzero(shown.topic == judged.query_ids.index(query))
    own = Returned(np.zeros(len(here), dtype=np.int64), shown.rank[here], shown.doc.take(here))
    return replace(judged.only(query), shown=own)
