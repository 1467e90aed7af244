"""`disagreement`: where two measures order two systems differently, and which topics pull them apart."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.orders import orders
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.data.run import Run, run_named
from judged.data.topics import Topics
from judged.diagnosis.disagreement.answer import Disagreement, MeanSide, SliceDisagreement, TopicDisagreement
from judged.diagnosis.disagreement.reasons import Reason, reasons
from judged.errors import InputError
from judged.scoring.default_measures import RANKING_AND_CANDIDATES
from judged.scoring.evaluation import Scores, dialect_of, runs_of
from judged.scoring.evaluation.dialects import without_self
from judged.scoring.evaluation.evaluate import chosen_measures, of_runs
from judged.scoring.judging import Returned, judge
from judged.stats.inputs import check_count, paired_differences, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.results.types import Floats
    from judged.scoring.judging import Judged


def disagreement_of_scores(
    scores: Scores,
    *,
    measures: Any = None,
    pair: tuple[str, str] | None = None,
    slicing: Slicing | None = None,
    limit: int = 5,
    queries: Any = None,
    qrels: Any = None,
    runs: Any = None,
    documents: Any = None,
) -> Disagreement:
    """Show where two measures order two systems differently, which topics cause it, and what the measures see there.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    measures
        Two of those that were evaluated; None where there are no others.
    pair
        The names of the two systems; None: the two runs, or of several those that the measures pull apart most.
    slicing
        Slices of the topics, by which the preferences are shown too.
    limit
        How many of the topics that cause the disagreement are looked into.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
    qrels, runs, documents
        What the scores are of, to see which documents are the reasons.

    Returns
    -------
    Disagreement

    Raises
    ------
    InputError
        If there are fewer than two runs, no such run, one measure only, or something cannot be read.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}
    >>> ranked = {"old": ["a", "x", "y"], "new": ["x", "a", "b", "c"]}
    >>> runs = {name: {"q": {doc: -at for at, doc in enumerate(docs)}} for name, docs in ranked.items()}
    >>> found = evaluate(qrels, runs, ["RR", "R@4"]).disagree()  # give qrels= and runs= to see reasons
    >>> [round(gap, 3) for gap in found.differences], found.agreement
    ([-0.5, 0.667], ((0, 0, 0), (0, 0, 0), (1, 0, 0)))
    """
    check_count("limit", limit)
    table = _two_measures(scores, measures)
    ways = np.array([-1.0 if measure.properties.higher_is_better is False else 1.0 for measure in table.measures])
    rows = _pair(table, ways, pair)
    systems = (table.run_names[rows[0]], table.run_names[rows[1]])
    gaps, kept = _differences(table, rows)
    if not len(kept):
        problem = f"{' and '.join(systems)} have no topic with a score by both measures"
        raise InputError(problem, fix="give runs of the same topics")
    pulls, direction = _pulls(gaps * ways[:, None])
    query_ids = [table.query_ids[at] for at in kept]
    order = sorted(range(len(kept)), key=lambda at: (-pulls[at], query_ids[at]))
    causes = [query_ids[at] for at in order[:limit] if pulls[at] > 0]
    with_reasons = qrels is not None and runs is not None
    why = _reasons(qrels, runs, table, systems, causes, documents) if with_reasons and causes else {}
    texts = None if queries is None else Topics.of(queries)
    values = table.values[list(rows)][:, :, kept].transpose(2, 1, 0).tolist()  # topic, measure, system
    sides = np.sign(gaps * ways[:, None]).astype(np.int64).T.tolist()
    topics = [
        TopicDisagreement(
            query_id=query_ids[at],
            query="" if texts is None else texts.text(query_ids[at]),
            scores=(tuple(values[at][0]), tuple(values[at][1])),
            sides=tuple(sides[at]),
            pull=float(pulls[at]),
            reasons=why.get(query_ids[at], ()),
        )
        for at in order
    ]
    return Disagreement(
        scores=table,
        systems=systems,
        means=_means(table, gaps, ways),
        topics=tuple(topics),
        limit=limit,
        slices=_slices(table, slicing, query_ids, gaps, ways),
        orders=orders(table).pairs[0] if len(table.runs) > 2 else None,
        chosen=pair is None and len(table.runs) > 2,
        direction=direction,
        with_reasons=with_reasons,
        notes=table.notes,
    )


disagree = of_runs(
    disagreement_of_scores,
    "disagree",
    measures=RANKING_AND_CANDIDATES,
    examples="""
    >>> from judged import disagree
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}
    >>> ranked = {"old": ["a", "x", "y"], "new": ["x", "a", "b", "c"]}
    >>> runs = {name: {"q": {doc: -at for at, doc in enumerate(docs)}} for name, docs in ranked.items()}
    >>> found = disagree(qrels, runs, ["RR", "R@4"])
    >>> [reason.kind for reason in found.topics[0].reasons]
    ['first relevant']
    """,
)


def _two_measures(scores: Scores, measures: Any) -> Scores:
    table = scores if measures is None else chosen_measures(scores, measures)
    if len(table.measures) != 2:
        names = ", ".join(table.measure_names)
        raise InputError(f"there are {len(table.measures)} measures: {names}", fix="name two different ones")
    if len(table.runs) < 2:
        raise InputError("there is one run", fix="give two runs or more")
    return table


def _pair(table: Scores, ways: Floats, pair: tuple[str, str] | None) -> tuple[int, int]:
    """Find the two systems; of several those that the measures pull apart most, first where they prefer different."""
    if pair is not None:
        rows = [table.run_names.index(run_named(name, table.run_names)) for name in pair]
        if len(rows) != 2 or rows[0] == rows[1]:
            raise InputError(f"{pair} are not two runs", fix="name two different ones")
        return rows[0], rows[1]

    def apart(rows: tuple[int, int]) -> tuple[float, float]:
        gaps, _ = _differences(table, rows)
        first_gap, second_gap = (_in_errors(gap) * way for gap, way in zip(gaps, ways.tolist(), strict=True))
        opposite = first_gap * second_gap < 0
        return min(abs(first_gap), abs(second_gap)) if opposite else -1.0, abs(first_gap - second_gap)

    pairs = list(combinations(range(len(table.runs)), 2))
    return pairs[0] if len(pairs) == 1 else max(pairs, key=apart)


def _differences(table: Scores, rows: tuple[int, int]) -> tuple[Floats, list[int]]:
    """Subtract the first system from the second: (2, n), and which topics have a score for both by both measures."""
    values = table.values[list(rows)]
    kept = np.flatnonzero(~np.isnan(values).any(axis=(0, 1)))
    gaps = [paired_differences(values[0, at, kept], values[1, at, kept])[0] for at in (0, 1)]
    return np.stack(gaps), kept.tolist()


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
        else:  # one topic, or all alike: the sides are all there is
            parts[row] = np.sign(values) / len(values)
    apart = parts[0] - parts[1]
    direction = -1 if apart.sum() < 0 else 1
    return apart * direction, direction


def _means(table: Scores, gaps: Floats, ways: Floats) -> tuple[MeanSide, MeanSide]:
    n = gaps.shape[1]
    first, second = (
        MeanSide(
            name,
            n,
            float(gap.mean()),
            spread(gap) / math.sqrt(n) if n > 1 else math.nan,
            *(int(np.count_nonzero(side * way * gap > 0)) for side in (1, -1)),
            lower_is_better=way < 0,
        )
        for name, gap, way in zip(table.measure_names, gaps, ways.tolist(), strict=True)
    )
    return first, second


def _slices(
    table: Scores, slicing: Slicing | None, query_ids: Sequence[str], gaps: Floats, ways: Floats
) -> tuple[SliceDisagreement, ...]:
    if slicing is None:
        return ()
    over = as_slicing(slicing).over(query_ids)
    both = np.sign(gaps[0] * ways[0]) * np.sign(gaps[1] * ways[1])
    return tuple(
        SliceDisagreement(
            name=part.name,
            n=(n := int(mask.sum())),
            small=n < part.min_topics,
            means=_means(table, gaps[:, mask], ways) if n else None,
            opposite=int(np.count_nonzero(both[mask] < 0)),
            same=int(np.count_nonzero(both[mask] > 0)),
        )
        for part, mask in zip(over.slices, over.members, strict=True)
    )


def _reasons(
    qrels: Any, runs: Any, table: Scores, systems: Sequence[str], query_ids: Sequence[str], documents: Any
) -> dict[str, tuple[Reason, ...]]:
    """Judge the two runs as they were judged for the scores, and look into some topics."""
    rules, chosen = dialect_of(table.policies.dialect), table.policies
    judgments = rules.prepare_qrels(Qrels.of(qrels))
    ties = chosen.ties if chosen.ties not in {"expected", "bounds"} else rules.ties
    how: dict[str, Any] = {"ties": ties, "depth": chosen.depth, "precision": chosen.precision}
    kept = without_self if chosen.exclude_self else Run.of
    named = {run.name: kept(run) for run in runs_of(runs) if run.name in systems}
    lists = [judge(judgments, named[name], documents=documents, **how) for name in systems]
    every = [judged.everything for judged in lists]

    def only(at: int, query: str) -> Judged:
        """Leave one topic, with every returned document: else the run would be read again for each topic."""
        here = np.flatnonzero(every[at].topic == lists[at].query_ids.index(query))
        own = Returned(np.zeros(len(here), dtype=np.int64), every[at].rank[here], every[at].doc.take(here))
        return replace(lists[at].only(query), shown=own)

    return {
        query: reasons((only(0, query), only(1, query)), (table.measures[0], table.measures[1]))
        for query in query_ids
        if query in lists[0].query_ids
    }
