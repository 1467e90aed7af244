"""List the judgments that people should review, sorted by their effect on scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import int_array
from judged.data.documents import Documents
from judged.data.qrels import Qrels
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.review.answer import KINDS, ReviewItem, ReviewKind, ReviewList, ReviewRates
from judged.errors import InputError, MeasureError
from judged.results.spelling import use_one_of, with_parameter_hints
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.facts import check_common_topics, provenance_of_lists
from judged.scoring.evaluation.inputs import filter_topics
from judged.scoring.judging import judge
from judged.scoring.judging.align import rank_all
from judged.scoring.judging.ranking import RankingRules
from judged.scoring.judging.unjudged import remove_judgments, repeat_topics, select_labels
from judged.scoring.measures.grammar import parse
from judged.stats.inputs import ROUNDING, check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.run import Run
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.measures.base import Measure

_MAX_BLOCK_ROWS = 1 << 20  # judged documents in one block of variants; limits memory to some hundred megabytes
_COLUMNS = ["query_id", "doc_id", "relevance"]
_ORDER_DIGITS = 12  # of a change; changes that differ only by rounding errors are ties


@with_parameter_hints
def review(
    qrels: Any,
    runs: Any,
    *,
    measure: str | Measure = "nDCG@10",
    cutoff: int | None = None,
    rel: float = 1,
    kinds: str | Iterable[str] = KINDS,
    slicing: Slicing | None = None,
    limit: int | None = None,
    queries: Any = None,
    texts: Any = None,
    attributes: Any = None,
    where: str | None = None,
    ties: TiePolicy = "docid",
    depth: int | None = None,
    precision: Precision = "double",
    documents: Any = None,
) -> ReviewList:
    """List the labels that people should review, sorted by their effect on scores.

    The effect of a label is the change of the score of a run on the topic if the label were different: the highest
    grade for a document in the top of a run that is judged not relevant or unjudged, and 0 for a relevant document
    outside of the top. Each changed score is computed by the measure. With several runs, the largest change counts.
    Labels whose change would reverse the order of the first two runs on the topic come first. Ties are sorted by topic
    and document id.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`.
    measure
        A measure or its name.
    cutoff
        Depth of the top of each run. None: the cutoff of the measure, or 10.
    rel
        Lowest relevant grade.
    kinds
        Kinds to list: ``false positive``, ``false negative``, ``unjudged``. All are counted.
    slicing
        Slices for the counts, and to show with each item.
    limit
        Maximum number of items. None: all.
    queries, texts
        Texts of topics and of documents: `Topics` and `Texts`, paths, or dicts ``{id: text}``.
    attributes, where
        Topic filter and attributes of topics, as for `evaluate`.
    ties, depth, precision, documents
        As for `judge`.

    Returns
    -------
    ReviewList

    Raises
    ------
    InputError
        If the input cannot be read, a run has no ranking, or an option is invalid.
    MeasureError
        If the measure depends on several grades of a document, or on other topics.

    Examples
    --------
    >>> old, new = {"q": ["a", "b"]}, {"q": ["b", "a"]}
    >>> result = review({"q": {"a": 1, "b": 0}}, {"old": old, "new": new}, measure="P@1", kinds="false positive")
    >>> [(item.doc_id, dict(item.change), item.difference, item.reverses_order) for item in result.items]
    [('b', {'old': 0.0, 'new': 1.0}, 1.0, False)]
    """
    measure = parse(measure)
    measure_cutoff = getattr(measure, "cutoff", None)
    if cutoff is None:
        cutoff = int(measure_cutoff) if isinstance(measure_cutoff, (int, float)) else 10
    selected_kinds = _parse_kinds(kinds)
    check_count("cutoff", cutoff)
    if not 0 < rel < np.inf:
        raise InputError(f"`rel` must be a finite number above 0, got {rel}", fix="use 1, for example")
    if limit is not None:
        check_count("limit", limit, 0)
    judgments, filter_notes = filter_topics(Qrels.of(qrels), where, attributes)
    run_list = runs_of(runs)
    highest = float(judgments.index.grade.max())
    if rel > max(highest, 1):  # 1 is the default, and judgments with relevant documents may still be added
        problem = f"no document has grade {rel:g} or higher: the highest grade is {highest:g}"
        raise InputError(problem, fix=f"use a grade up to {max(highest, 1):g}", path=judgments.where)
    facts = None if documents is None else Documents.of(documents)
    extended = extend_runs(judgments, run_list, RankingRules(ties, depth, precision), cutoff, facts)
    for judged in extended.lists:
        check_common_topics(judged)
    original = [judge(judgments, run, ties=ties, depth=depth, precision=precision) for run in run_list]
    provenance = provenance_of_lists(original, [measure])
    relevant = (extended.qrels.index.grade >= rel) & ~extended.unjudged
    sliced = None if slicing is None else slicing.over(judgments.topics)
    kind = _kinds_of_pairs(extended, relevant, cutoff)
    pairs = np.flatnonzero(np.isin(kind, [KINDS.index(name) for name in selected_kinds]))
    other = np.where(relevant[pairs], 0.0, max(highest, rel))
    results = [score_changes(judged, measure, extended.unjudged, pairs, other) for judged in extended.lists]
    change = np.stack([by_run for _, by_run in results])
    reverses_order = np.zeros(len(pairs), dtype=np.bool_)
    if len(results) > 1 and measure.properties.higher_is_better is not None:
        topics = extended.qrels.index.topic[pairs]
        reverses_order = is_order_reversed(results[0][0][topics], results[1][0][topics], change[0], change[1])
    order = _order(extended, pairs, change, reverses_order)[:limit]
    items = _items(
        extended, kind[pairs[order]], pairs[order], other[order], change[:, order], reverses_order[order], sliced
    )
    if queries is not None:
        topic_texts = Topics.of(queries)
        items = [replace(item, query=topic_texts.text(item.query_id)) for item in items]
    if texts is not None:
        texts = Texts.of(texts, {item.doc_id for item in items})
        items = [replace(item, title=texts.title(item.doc_id), text=texts.text(item.doc_id)) for item in items]
    return ReviewList(
        measure=str(measure),
        cutoff=cutoff,
        rel=float(rel),
        highest=max(highest, rel),
        runs=tuple(run.name for run in run_list),
        kinds=selected_kinds,
        items=tuple(items),
        counts_by_kind={name: int(np.count_nonzero(kind == i)) for i, name in enumerate(KINDS)},
        n_reversed=int(reverses_order.sum()),
        rates=_rates(extended, relevant, cutoff, sliced),
        provenance=provenance,
        notes=(*filter_notes, *provenance.notes),
    )


def _parse_kinds(kinds: str | Iterable[str]) -> tuple[ReviewKind, ...]:
    selected = {kinds} if isinstance(kinds, str) else set(kinds)
    if unknown := sorted(selected - set(KINDS)):
        raise InputError(f"unknown kind of label: {unknown[0]!r}", fix=use_one_of(KINDS))
    if not selected:
        raise InputError("`kinds` is empty", fix=f"use one or more of {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in selected)


def _kinds_of_pairs(extended: ExtendedRuns, relevant: Bools, cutoff: int) -> Ints:
    """Return the kind of each pair as its index in `KINDS`, (P,); -1 if no run is wrong about it."""
    in_top = (extended.ranks > 0) & (extended.ranks <= cutoff)
    kinds = np.full(len(relevant), -1, dtype=np.int64)
    kinds[in_top.any(axis=0) & ~relevant] = KINDS.index("false positive")
    kinds[(~in_top).any(axis=0) & relevant] = KINDS.index("false negative")
    kinds[extended.unjudged] = KINDS.index("unjudged")
    return kinds


def _order(extended: ExtendedRuns, pairs: Ints, changes: Floats, reverses_order: Bools) -> Ints:
    """Sort pairs by descending effect, (N,)."""
    index = extended.qrels.index
    effects = np.abs(changes).round(_ORDER_DIGITS)
    largest_effect = np.where(np.isnan(effects), -1.0, effects).max(axis=0)
    doc_places = index.doc_position[index.doc[pairs]]
    return np.lexsort((doc_places, index.topic[pairs], -largest_effect, ~reverses_order))


def _items(
    extended: ExtendedRuns,
    kinds: Ints,
    pairs: Ints,
    others: Floats,
    change: Floats,
    reverses_order: Bools,
    slicing: Slicing | None,
) -> list[ReviewItem]:
    index, run_names = extended.qrels.index, [judged.run.name for judged in extended.lists]
    items: list[ReviewItem] = []
    for i, pair in enumerate(pairs.tolist()):
        topic, changes, ranks = int(index.topic[pair]), change[:, i].tolist(), extended.ranks[:, pair].tolist()
        memberships = () if slicing is None else zip(slicing.names, slicing.members[:, topic].tolist(), strict=True)
        items.append(
            ReviewItem(
                query_id=index.topics[topic],
                doc_id=index.doc_names[int(index.doc[pair])],
                kind=KINDS[int(kinds[i])],
                grade=None if extended.unjudged[pair] else float(index.grade[pair]),
                other_grade=float(others[i]),
                ranks={name: rank or None for name, rank in zip(run_names, ranks, strict=True)},
                change=dict(zip(run_names, changes, strict=True)),
                difference=changes[1] - changes[0] if len(changes) > 1 else None,
                reverses_order=bool(reverses_order[i]),
                slices=tuple(name for name, is_member in memberships if is_member),
            )
        )
    return items


def _rates(extended: ExtendedRuns, relevant: Bools, cutoff: int, slicing: Slicing | None) -> tuple[ReviewRates, ...]:
    """Count documents by run over all topics, and over the topics of each slice."""
    topic_of_pair, topics = extended.qrels.index.topic, len(extended.qrels.index.topics)
    groups = [("", False, np.ones(topics, dtype=np.bool_))]
    if slicing is not None:
        groups += list(zip(slicing.names, slicing.small.tolist(), slicing.members, strict=True))

    def by_topic(pair_mask: Bools) -> Ints:
        return np.bincount(topic_of_pair[pair_mask], minlength=topics).astype(np.int64)

    num_relevant = by_topic(relevant)
    rates: list[ReviewRates] = []
    for judged, ranks in zip(extended.lists, extended.ranks, strict=True):
        in_top = (ranks > 0) & (ranks <= cutoff)
        wrong, unjudged = (by_topic(in_top & ~relevant & ~extended.unjudged), by_topic(in_top & extended.unjudged))
        below_top, missed = by_topic(relevant & (ranks > cutoff)), by_topic(relevant & (ranks == 0))
        returned, unreachable = np.minimum(judged.returned, cutoff), np.maximum(num_relevant - cutoff, 0)
        counts = (returned, wrong, unjudged, num_relevant, below_top, missed, unreachable)
        for slice_name, small, topic_mask in groups:
            totals = (int(count[topic_mask].sum()) for count in counts)
            rates.append(ReviewRates(judged.run.name, slice_name, int(topic_mask.sum()), small, *totals))
    return tuple(rates)


@dataclass(frozen=True, eq=False)
class ExtendedRuns:
    """Runs judged with the unjudged documents of their top as additional pairs; P pairs, R runs."""

    qrels: Qrels  # with the unjudged documents as pairs of grade 0; pairs are rows of `qrels.index`
    unjudged: Bools = field(repr=False)  # (P,): mask of the pairs that are unjudged in the original qrels
    lists: tuple[Judged, ...]  # R judged runs, in which all pairs are judged
    ranks: Ints = field(repr=False)  # (R, P); 0 if not returned


def extend_runs(
    qrels: Qrels, runs: Sequence[Run], ranking: RankingRules, cutoff: int, documents: Documents | None
) -> ExtendedRuns:
    """Judge runs, with the unjudged documents in the top `cutoff` of any run as additional pairs of grade 0."""
    for run in runs:
        if ranking.ties == "rank" and not run.has_ranks:
            raise InputError("the run has no rank column", fix="use ties='docid'", path=run.where)
        if ranking.ties != "rank" and not run.has_scores:
            raise InputError("a run without scores has no ranking", fix="add scores to the run", path=run.where)
    extended_qrels, unjudged = _extend_qrels(qrels, runs, ranking, cutoff)
    options: dict[str, Any] = {"ties": ranking.ties, "depth": ranking.depth, "precision": ranking.precision}
    lists = tuple(judge(extended_qrels, run, documents=documents, **options) for run in runs)
    ranks = np.zeros((len(lists), len(unjudged)), dtype=np.int64)
    for row, judged in zip(ranks, lists, strict=True):
        row[judged.label_row[judged.row]] = judged.rank
    return ExtendedRuns(extended_qrels, unjudged, lists, ranks)


def _extend_qrels(qrels: Qrels, runs: Sequence[Run], ranking: RankingRules, cutoff: int) -> tuple[Qrels, Bools]:
    """Add every unjudged document in the top `cutoff` of a run to the judgments, and mark these pairs."""
    index = qrels.index
    shallow = replace(ranking, depth=min(cutoff, ranking.depth or cutoff))
    tables = [qrels.table.select(_COLUMNS)]
    for run in runs:
        top = rank_all(run, index.topics, shallow)
        unjudged = np.flatnonzero(index.rows_of(top.topic, top.doc) < 0)
        topics = index.topic_ids.take(int_array(top.topic[unjudged]))
        pairs = pa.table([topics, top.doc.take(int_array(unjudged)), np.zeros(len(unjudged))], names=_COLUMNS)
        tables.append(pairs.cast(tables[0].schema))
    extended = Qrels(pa.concat_tables(tables), qrels.name, qrels.where, origin=qrels.origin)
    docs = pa.array(extended.index.row_names, pa.string())
    return extended, index.rows_of(extended.index.topic, docs) < 0


def relabeled_variants(judged: Judged, unjudged: Bools, pairs: Ints, grades: Floats) -> Judged:
    """Create one variant of its topic for each pair, in which only this pair has another grade."""
    # `unjudged`: (P,), pairs that are removed from all variants except the variant of the pair itself.
    variants = repeat_topics(judged, judged.qrels.index.topic[pairs])
    is_own_pair = variants.label_row == pairs[variants.label_topic]
    grade = np.where(is_own_pair[variants.row], grades[variants.topic], variants.grade)
    label_grade = np.where(is_own_pair, grades[variants.label_topic], variants.label_grade)
    return select_labels(
        replace(variants, grade=grade, label_grade=label_grade), is_own_pair | ~unjudged[variants.label_row]
    )


def score_changes(
    judged: Judged, measure: Measure, unjudged: Bools, pairs: Ints, grades: Floats
) -> tuple[Floats, Floats]:
    """Return the score of every topic, (T,), and its change by another grade of each pair, (V,)."""
    properties = measure.properties
    if properties.uses_all_labels or not properties.topics_independent:
        dependency = "every label of a document" if properties.uses_all_labels else "the judgments of all topics"
        raise MeasureError(
            f"{measure} depends on {dependency}: the effect of a single label is undefined. Fix: use nDCG or AP"
        )
    base = replace(remove_judgments(judged, unjudged))
    scores = measure(base)
    if "returned_docs" in vars(base):  # the measure has read all returned documents, which variants cannot read again
        judged = replace(judged, stored_docs=base.returned_docs)
    topics = judged.qrels.index.topic[pairs]
    rows_per_topic = np.diff(judged.starts) + np.bincount(judged.label_topic, minlength=len(judged))
    block = np.cumsum(rows_per_topic[topics] + 1) // _MAX_BLOCK_ROWS
    edges = np.concatenate(([0], np.flatnonzero(np.diff(block)) + 1, [len(pairs)]))
    new_scores = np.empty(len(pairs))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high > low:
            new_scores[low:high] = measure(relabeled_variants(judged, unjudged, pairs[low:high], grades[low:high]))
    old_scores = scores[topics]
    change = new_scores - old_scores
    change[np.abs(change) <= ROUNDING * np.maximum(np.abs(new_scores), np.abs(old_scores))] = 0.0
    return scores, change


def is_order_reversed(first: Floats, second: Floats, first_change: Floats, second_change: Floats) -> Bools:
    """Return a mask (N,) of the changes that reverse the order of two scores. A tie before or after is no reversal.

    >>> first, second = np.array([0.5, 0.5]), np.array([0.4, 0.5])
    >>> is_order_reversed(first, second, np.array([0.0, 0.0]), np.array([0.2, 0.1])).tolist()
    [True, False]
    """
    before = second - first
    after = before + (second_change - first_change)
    return (np.abs(before) > ROUNDING) & (np.abs(after) > ROUNDING) & (np.sign(before) != np.sign(after))
