"""Find where two measures order two systems differently, and the topics that cause it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.orders import orders
from judged.comparison.slicing.topic_slices import as_slicing
from judged.data.qrels import Qrels
from judged.data.run import Run, find_run_name
from judged.data.topics import Topics
from judged.diagnosis.disagreement.answer import Disagreement, MeanSide, SliceDisagreement, TopicDisagreement
from judged.diagnosis.disagreement.reasons import Reason, reasons
from judged.errors import InputError
from judged.scoring.evaluation import Scores, dialect_of, runs_of
from judged.scoring.evaluation.dialects import without_self
from judged.scoring.evaluation.evaluate import build_run_function, select_measures
from judged.scoring.judging import ReturnedDocs, judge
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
    """Find where two measures order two systems differently, and the topics and documents that cause it.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    measures
        Two of the evaluated measures. None: all, if there are exactly two.
    pair
        Names of the two systems. None: the two runs or, of more runs, those on which the measures disagree most.
    slicing
        Slices of topics, for which the preferences are also shown.
    limit
        Maximum number of topics for which reasons are computed.
    queries
        Texts of topics: `Topics`, a path, or ``{query_id: text}``.
    qrels, runs, documents
        Judgments, runs and documents of the scores, to find the documents that are the reasons.

    Returns
    -------
    Disagreement

    Raises
    ------
    InputError
        If there are fewer than two runs, a run does not exist, there is only one measure, or the input cannot be read.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}
    >>> ranked = {"old": ["a", "x", "y"], "new": ["x", "a", "b", "c"]}
    >>> runs = {name: {"q": {doc: -i for i, doc in enumerate(docs)}} for name, docs in ranked.items()}
    >>> result = evaluate(qrels, runs, ["RR", "R@4"]).disagree()  # with qrels= and runs=, it also has reasons
    >>> [round(difference, 3) for difference in result.differences], result.agreement
    ([-0.5, 0.667], ((0, 0, 0), (0, 0, 0), (1, 0, 0)))
    """
    check_count("limit", limit)
    table = _two_measures(scores, measures)
    signs = np.array([-1.0 if measure.properties.higher_is_better is False else 1.0 for measure in table.measures])
    rows = _select_pair(table, signs, pair)
    systems = (table.run_names[rows[0]], table.run_names[rows[1]])
    differences, topic_indices = _differences(table, rows)
    if not len(topic_indices):
        problem = f"{' and '.join(systems)} have no topic with a score by both measures"
        raise InputError(problem, fix="use runs of the same topics")
    contributions, direction = _contributions(differences * signs[:, None])
    query_ids = [table.query_ids[i] for i in topic_indices]
    order = sorted(range(len(topic_indices)), key=lambda i: (-contributions[i], query_ids[i]))
    causes = [query_ids[i] for i in order[:limit] if contributions[i] > 0]
    with_reasons = qrels is not None and runs is not None
    explained = _reasons_by_topic(qrels, runs, table, systems, causes, documents) if with_reasons and causes else {}
    texts = None if queries is None else Topics.of(queries)
    values = table.values[list(rows)][:, :, topic_indices].transpose(2, 1, 0).tolist()  # topic, measure, system
    preferences = np.sign(differences * signs[:, None]).astype(np.int64).T.tolist()
    topics = [
        TopicDisagreement(
            query_id=query_ids[i],
            query="" if texts is None else texts.text(query_ids[i]),
            scores=(tuple(values[i][0]), tuple(values[i][1])),
            sides=tuple(preferences[i]),
            contribution=float(contributions[i]),
            reasons=explained.get(query_ids[i], ()),
        )
        for i in order
    ]
    return Disagreement(
        scores=table,
        systems=systems,
        means=_means(table, differences, signs),
        topics=tuple(topics),
        limit=limit,
        slices=_slices(table, slicing, query_ids, differences, signs),
        orders=orders(table).pairs[0] if len(table.runs) > 2 else None,
        auto_selected=pair is None and len(table.runs) > 2,
        direction=direction,
        with_reasons=with_reasons,
        notes=table.notes,
    )


disagree = build_run_function(
    disagreement_of_scores,
    "disagree",
    measures=("nDCG@10", "R@100"),
    examples="""
    >>> from judged import disagree
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0, "y": 0}}
    >>> ranked = {"old": ["a", "x", "y"], "new": ["x", "a", "b", "c"]}
    >>> runs = {name: {"q": {doc: -i for i, doc in enumerate(docs)}} for name, docs in ranked.items()}
    >>> result = disagree(qrels, runs, ["RR", "R@4"])
    >>> [reason.kind for reason in result.topics[0].reasons]
    ['first relevant']
    """,
)


def _two_measures(scores: Scores, measures: Any) -> Scores:
    table = scores if measures is None else select_measures(scores, measures)
    if len(table.measures) != 2:
        names = ", ".join(table.measure_names)
        raise InputError(f"exactly two measures are required, got {len(table.measures)}: {names}", fix="select two")
    if len(table.runs) < 2:
        raise InputError("at least two runs are required, got one", fix="add a run")
    return table


def _select_pair(table: Scores, signs: Floats, pair: tuple[str, str] | None) -> tuple[int, int]:
    """Return the rows of the two systems. Of several, select those on which the measures disagree most."""
    if pair is not None:
        rows = [table.run_names.index(find_run_name(name, table.run_names)) for name in pair]
        if len(rows) != 2 or rows[0] == rows[1]:
            raise InputError(f"`pair` must be two different runs, got {pair}", fix="use the names of two runs")
        return rows[0], rows[1]

    # Pairs on which the measures prefer different systems are before all others.
    def disagreement(rows: tuple[int, int]) -> tuple[float, float]:
        differences, _ = _differences(table, rows)
        first, second = (_in_standard_errors(row) * sign for row, sign in zip(differences, signs.tolist(), strict=True))
        opposite = first * second < 0
        return min(abs(first), abs(second)) if opposite else -1.0, abs(first - second)

    pairs = list(combinations(range(len(table.runs)), 2))
    return pairs[0] if len(pairs) == 1 else max(pairs, key=disagreement)


def _differences(table: Scores, rows: tuple[int, int]) -> tuple[Floats, list[int]]:
    """Return second minus first, (2, n), and the indices of the topics with a score for both by both measures."""
    values = table.values[list(rows)]
    topic_indices = np.flatnonzero(~np.isnan(values).any(axis=(0, 1)))
    differences = [paired_differences(values[0, i, topic_indices], values[1, i, topic_indices])[0] for i in (0, 1)]
    return np.stack(differences), topic_indices.tolist()


def _in_standard_errors(differences: Floats) -> float:
    """Return the mean difference in standard errors; 0 if topics do not vary or are too few."""
    deviation = spread(differences)
    return float(differences.mean()) / deviation * math.sqrt(len(differences)) if deviation > 0 else 0.0


def _contributions(gains: Floats) -> tuple[Floats, int]:
    """Return each topic's contribution to the distance of the mean differences in standard errors, and the sign."""
    # The contributions of all topics sum to the distance of the two t statistics.
    contributions = np.zeros_like(gains)
    for row, values in enumerate(gains):
        deviation = spread(values)
        if deviation > 0:
            contributions[row] = values / (deviation * math.sqrt(len(values)))
        else:  # one topic, or equal differences: no standard error, so only the signs are used
            contributions[row] = np.sign(values) / len(values)
    distances = contributions[0] - contributions[1]
    direction = -1 if distances.sum() < 0 else 1
    return distances * direction, direction


def _means(table: Scores, differences: Floats, signs: Floats) -> tuple[MeanSide, MeanSide]:
    n = differences.shape[1]
    first, second = (
        MeanSide(
            name,
            n,
            float(difference.mean()),
            spread(difference) / math.sqrt(n) if n > 1 else math.nan,
            *(int(np.count_nonzero(direction * sign * difference > 0)) for direction in (1, -1)),
            lower_is_better=sign < 0,
        )
        for name, difference, sign in zip(table.measure_names, differences, signs.tolist(), strict=True)
    )
    return first, second


def _slices(
    table: Scores, slicing: Slicing | None, query_ids: Sequence[str], differences: Floats, signs: Floats
) -> tuple[SliceDisagreement, ...]:
    if slicing is None:
        return ()
    selected = as_slicing(slicing).over(query_ids)
    agreement = np.sign(differences[0] * signs[0]) * np.sign(differences[1] * signs[1])
    return tuple(
        SliceDisagreement(
            name=topic_slice.name,
            n=(n := int(mask.sum())),
            small=n < topic_slice.min_topics,
            means=_means(table, differences[:, mask], signs) if n else None,
            opposite=int(np.count_nonzero(agreement[mask] < 0)),
            same=int(np.count_nonzero(agreement[mask] > 0)),
        )
        for topic_slice, mask in zip(selected.slices, selected.members, strict=True)
    )


def _reasons_by_topic(
    qrels: Any, runs: Any, table: Scores, systems: Sequence[str], query_ids: Sequence[str], documents: Any
) -> dict[str, tuple[Reason, ...]]:
    """Judge both runs with the policies of the scores, and find the reasons on some topics."""
    dialect, policies = dialect_of(table.policies.dialect), table.policies
    judgments = dialect.prepare_qrels(Qrels.of(qrels))
    ties = policies.ties if policies.ties not in {"expected", "bounds"} else dialect.ties
    options: dict[str, Any] = {"ties": ties, "depth": policies.depth, "precision": policies.precision}
    prepare_run = without_self if policies.exclude_self else Run.of
    runs_by_name = {run.name: prepare_run(run) for run in runs_of(runs) if run.name in systems}
    lists = [judge(judgments, runs_by_name[name], documents=documents, **options) for name in systems]
    all_documents = [judged.returned_docs for judged in lists]

    def select_topic(i: int, topic: str) -> Judged:
        # With `shown` set, the run is not read again for each topic to list its unjudged documents.
        documents = all_documents[i]
        rows = np.flatnonzero(documents.topic == lists[i].query_ids.index(topic))
        returned = ReturnedDocs(np.zeros(len(rows), dtype=np.int64), documents.rank[rows], documents.doc.take(rows))
        return replace(lists[i].only(topic), stored_docs=returned)

    return {
        topic: reasons((select_topic(0, topic), select_topic(1, topic)), (table.measures[0], table.measures[1]))
        for topic in query_ids
        if topic in lists[0].query_ids
    }
