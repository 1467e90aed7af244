"""`review`: which judgments people should look at again, those first that matter most to the scores."""

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
from judged.results.spelling import hinting
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.facts import provenance_of_lists, refuse_foreign
from judged.scoring.evaluation.inputs import narrowed
from judged.scoring.judging import judge
from judged.scoring.judging.align import all_returned
from judged.scoring.judging.ranking import Ranking
from judged.scoring.judging.unjudged import copies, keeping, withdrawn
from judged.scoring.measures.grammar import parse
from judged.stats.inputs import ROUNDING, check_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.run import Run
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged, Precision, TiePolicy
    from judged.scoring.measures.base import Measure

_ROWS = 1 << 20  # hits and judged pairs of one block of variants: some hundred megabytes
_COLUMNS = ["query_id", "doc_id", "relevance"]
_DIGITS = 12  # of a change: what differs by rounding alone is equally informative


@hinting
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
    """List the labels that people should look at again, most informative first.

    A label is the more informative, the more the score of a run on the topic would change if it were another one: the
    highest grade for a document that a run shows and that is judged not relevant, or not at all; 0 for a relevant
    one that a run does not show. The measure itself is asked again for each. Of several runs the largest change
    counts; but what would turn which of the first two is better on the topic comes before all else. Labels that
    are equally informative stand in the order of topic and document id.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`.
    measure
        A measure or its name.
    cutoff
        How many documents of each topic count as shown; None: the measure's cutoff, or 10.
    rel
        From this grade on a document is relevant.
    kinds
        Which kinds to list: ``false positive``, ``false negative``, ``unjudged``. All are counted.
    slicing
        Slices to count by, and to name with each item.
    limit
        List at most so many items; all for None.
    queries, texts
        Texts of topics and of documents: `Topics` and `Texts`, paths, or dicts ``{id: text}``.
    attributes, where
        Which topics of the qrels are looked at, and their attributes: as for `evaluate`.
    ties, depth, precision, documents
        As for `judge`.

    Returns
    -------
    ReviewList

    Raises
    ------
    InputError
        If something cannot be read, a run has no ranking, or a number or kind makes no sense.
    MeasureError
        If the measure looks at more than one grade of each document, or at other topics.

    Examples
    --------
    >>> old, new = {"q": ["a", "b"]}, {"q": ["b", "a"]}
    >>> listed = review({"q": {"a": 1, "b": 0}}, {"old": old, "new": new}, measure="P@1", kinds="false positive")
    >>> [(one.doc_id, dict(one.change), one.difference, one.turns) for one in listed.items]
    [('b', {'old': 0.0, 'new': 1.0}, 1.0, False)]
    """
    measure = parse(measure)
    own = getattr(measure, "cutoff", None)
    cutoff = cutoff if cutoff is not None else int(own) if isinstance(own, (int, float)) else 10
    wanted = _kinds(kinds)
    check_count("cutoff", cutoff)
    if not 0 < rel < np.inf:
        raise InputError(f"the level {rel} makes no sense", fix="give a number above 0")
    if limit is not None:
        check_count("limit", limit, 0)
    judgments, lacking = narrowed(Qrels.of(qrels), where, attributes)
    given = runs_of(runs)
    highest = float(judgments.index.grade.max())
    if rel > max(highest, 1):  # the usual level may be that of judgments yet to come
        problem = f"no document is relevant from grade {rel:g} on: the highest grade is {highest:g}"
        raise InputError(problem, fix=f"choose a level up to {max(highest, 1):g}", path=judgments.where)
    facts = None if documents is None else Documents.of(documents)
    opened = opened_to(judgments, given, Ranking(ties, depth, precision), cutoff, facts)
    for judged in opened.lists:
        refuse_foreign(judged)
    as_given = [judge(judgments, run, ties=ties, depth=depth, precision=precision) for run in given]
    rests = provenance_of_lists(as_given, [measure])
    relevant = (opened.qrels.index.grade >= rel) & ~opened.unjudged
    sliced = None if slicing is None else slicing.over(judgments.topics)
    kind = _kind_of(opened, relevant, cutoff)
    pairs = np.flatnonzero(np.isin(kind, [KINDS.index(name) for name in wanted]))
    other = np.where(relevant[pairs], 0.0, max(highest, rel))
    asked = [changes(judged, measure, opened.unjudged, pairs, other) for judged in opened.lists]
    change = np.stack([by_run for _, by_run in asked])
    turns = np.zeros(len(pairs), dtype=np.bool_)
    if len(asked) > 1 and measure.properties.higher_is_better is not None:
        topics = opened.qrels.index.topic[pairs]
        turns = turned(asked[0][0][topics], asked[1][0][topics], change[0], change[1])
    order = _order(opened, pairs, change, turns)[:limit]
    items = _items(opened, kind[pairs[order]], pairs[order], other[order], change[:, order], turns[order], sliced)
    if queries is not None:
        known = Topics.of(queries)
        items = [replace(item, query=known.text(item.query_id)) for item in items]
    if texts is not None:
        texts = Texts.of(texts, {item.doc_id for item in items})
        items = [replace(item, title=texts.title(item.doc_id), text=texts.text(item.doc_id)) for item in items]
    return ReviewList(
        measure=str(measure),
        cutoff=cutoff,
        rel=float(rel),
        highest=max(highest, rel),
        runs=tuple(run.name for run in given),
        kinds=wanted,
        items=tuple(items),
        found={name: int(np.count_nonzero(kind == at)) for at, name in enumerate(KINDS)},
        turning=int(turns.sum()),
        rates=_rates(opened, relevant, cutoff, sliced),
        provenance=rests,
        notes=(*lacking, *rests.notes),
    )


def _kinds(kinds: str | Iterable[str]) -> tuple[ReviewKind, ...]:
    named = {kinds} if isinstance(kinds, str) else set(kinds)
    if unknown := sorted(named - set(KINDS)):
        raise InputError(f"no kind {unknown[0]!r} of a label", fix=f"use one of {', '.join(KINDS)}")
    if not named:
        raise InputError("no kind of label is asked for", fix=f"name some of {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in named)


def _kind_of(opened: Opened, relevant: Bools, cutoff: int) -> Ints:
    """Tell the kind of each pair by its place in `KINDS`, -1 for those that no run gets wrong: (P,)."""
    first = (opened.ranks > 0) & (opened.ranks <= cutoff)
    kind = np.full(len(relevant), -1, dtype=np.int64)
    kind[first.any(axis=0) & ~relevant] = KINDS.index("false positive")
    kind[(~first).any(axis=0) & relevant] = KINDS.index("false negative")
    kind[opened.unjudged] = KINDS.index("unjudged")
    return kind


def _order(opened: Opened, pairs: Ints, change: Floats, turns: Bools) -> Ints:
    """Put the most informative pairs first: (N,)."""
    index = opened.qrels.index
    size = np.abs(change).round(_DIGITS)
    largest = np.where(np.isnan(size), -1.0, size).max(axis=0)
    doc = index.doc_place[index.doc[pairs]]
    return np.lexsort((doc, index.topic[pairs], -largest, ~turns))


def _items(
    opened: Opened, kind: Ints, pairs: Ints, other: Floats, change: Floats, turns: Bools, slicing: Slicing | None
) -> list[ReviewItem]:
    index, names = opened.qrels.index, [judged.run.name for judged in opened.lists]
    items: list[ReviewItem] = []
    for at, pair in enumerate(pairs.tolist()):
        topic, by_run = int(index.topic[pair]), change[:, at].tolist()
        inside = () if slicing is None else zip(slicing.names, slicing.members[:, topic].tolist(), strict=True)
        items.append(
            ReviewItem(
                query_id=index.topics[topic],
                doc_id=index.doc_names[int(index.doc[pair])],
                kind=KINDS[int(kind[at])],
                grade=None if opened.unjudged[pair] else float(index.grade[pair]),
                other_grade=float(other[at]),
                ranks={name: rank or None for name, rank in zip(names, opened.ranks[:, pair].tolist(), strict=True)},
                change=dict(zip(names, by_run, strict=True)),
                difference=by_run[1] - by_run[0] if len(by_run) > 1 else None,
                turns=bool(turns[at]),
                slices=tuple(name for name, member in inside if member),
            )
        )
    return items


def _rates(opened: Opened, relevant: Bools, cutoff: int, slicing: Slicing | None) -> tuple[ReviewRates, ...]:
    """Count by run over all topics, and then over those of each slice."""
    of, topics = opened.qrels.index.topic, len(opened.qrels.index.topics)
    groups = [("", False, np.ones(topics, dtype=np.bool_))]
    if slicing is not None:
        groups += list(zip(slicing.names, slicing.small.tolist(), slicing.members, strict=True))

    def by_topic(marks: Bools) -> Ints:
        return np.bincount(of[marks], minlength=topics).astype(np.int64)

    known = by_topic(relevant)
    rates: list[ReviewRates] = []
    for judged, ranks in zip(opened.lists, opened.ranks, strict=True):
        first = (ranks > 0) & (ranks <= cutoff)
        wrong, unjudged = by_topic(first & ~relevant & ~opened.unjudged), by_topic(first & opened.unjudged)
        low, missed = by_topic(relevant & (ranks > cutoff)), by_topic(relevant & (ranks == 0))
        returned, without_place = np.minimum(judged.returned, cutoff), np.maximum(known - cutoff, 0)
        counts = (returned, wrong, unjudged, known, low, missed, without_place)
        for name, small, mask in groups:
            totals = (int(count[mask].sum()) for count in counts)
            rates.append(ReviewRates(judged.run.name, name, int(mask.sum()), small, *totals))
    return tuple(rates)


@dataclass(frozen=True, eq=False)
class Opened:
    """Runs judged over all judged pairs and, beside them, the unjudged documents among their first.

    With P pairs, R runs.
    """

    qrels: Qrels  # with the unjudged documents as pairs of grade 0. A pair below is a position in `qrels.index`.
    unjudged: Bools = field(repr=False)  # (P,): which pairs are in truth not judged
    lists: tuple[Judged, ...]  # R: in which all pairs are judged
    ranks: Ints = field(repr=False)  # (R, P): 0: not returned


def opened_to(qrels: Qrels, runs: Sequence[Run], ranking: Ranking, cutoff: int, documents: Documents | None) -> Opened:
    """Judge runs, with the unjudged documents among the first k of each as pairs of their own."""
    for run in runs:
        if ranking.ties == "rank" and not run.has_ranks:
            raise InputError("it has no rank column", fix="choose another order for ties", path=run.where)
        if ranking.ties != "rank" and not run.has_scores:
            raise InputError("a run without scores has no first documents", fix="give scores", path=run.where)
    extended, unjudged = _extended(qrels, runs, ranking, cutoff)
    how: dict[str, Any] = {"ties": ranking.ties, "depth": ranking.depth, "precision": ranking.precision}
    lists = tuple(judge(extended, run, documents=documents, **how) for run in runs)
    ranks = np.zeros((len(lists), len(unjudged)), dtype=np.int64)
    for row, judged in zip(ranks, lists, strict=True):
        row[judged.label_row[judged.row]] = judged.rank
    return Opened(extended, unjudged, lists, ranks)


def _extended(qrels: Qrels, runs: Sequence[Run], ranking: Ranking, cutoff: int) -> tuple[Qrels, Bools]:
    """Add every unjudged document among the first k of some run to the judgments, and mark these pairs."""
    index = qrels.index
    shallow = replace(ranking, depth=min(cutoff, ranking.depth or cutoff))
    parts = [qrels.table.select(_COLUMNS)]
    for run in runs:
        first = all_returned(run, index.topics, shallow)
        new = np.flatnonzero(index.rows_of(first.topic, first.doc) < 0)
        topics = index.topic_ids.take(int_array(first.topic[new]))
        part = pa.table([topics, first.doc.take(int_array(new)), np.zeros(len(new))], names=_COLUMNS)
        parts.append(part.cast(parts[0].schema))
    extended = Qrels(pa.concat_tables(parts), qrels.name, qrels.where, origin=qrels.origin)
    docs = pa.array(extended.index.row_names, pa.string())
    return extended, index.rows_of(extended.index.topic, docs) < 0


def relabelled(judged: Judged, unjudged: Bools, pairs: Ints, grades: Floats) -> Judged:
    """Make one variant for each pair, of its topic, in which it alone has another grade."""
    # `unjudged`: (P,): the pairs that no variant has, but for that whose own pair it is.
    many = copies(judged, judged.qrels.index.topic[pairs])
    own = many.label_row == pairs[many.label_topic]
    grade = np.where(own[many.row], grades[many.topic], many.grade)
    label_grade = np.where(own, grades[many.label_topic], many.label_grade)
    return keeping(replace(many, grade=grade, label_grade=label_grade), own | ~unjudged[many.label_row])


def changes(judged: Judged, measure: Measure, unjudged: Bools, pairs: Ints, grades: Floats) -> tuple[Floats, Floats]:
    """Give the score of every topic, (T,), and by how much another grade of each pair would change it, (V,)."""
    known = measure.properties
    if known.every_label or not known.topics_apart:
        what = "every label of a document" if known.every_label else "the judgments of all topics"
        raise MeasureError(f"{measure} looks at {what}: one other grade has no effect of its own. Fix: take nDCG or AP")
    base = replace(withdrawn(judged, unjudged))
    scores = measure(base)
    if "everything" in vars(base):  # the measure asked for every returned document: variants cannot read it anew
        judged = replace(judged, shown=base.everything)
    topics = judged.qrels.index.topic[pairs]
    size = np.diff(judged.starts) + np.bincount(judged.label_topic, minlength=len(judged))
    block = np.cumsum(size[topics] + 1) // _ROWS
    edges = np.concatenate(([0], np.flatnonzero(np.diff(block)) + 1, [len(pairs)]))
    new = np.empty(len(pairs))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high > low:
            new[low:high] = measure(relabelled(judged, unjudged, pairs[low:high], grades[low:high]))
    old = scores[topics]
    change = new - old
    change[np.abs(change) <= ROUNDING * np.maximum(np.abs(new), np.abs(old))] = 0.0
    return scores, change


def turned(first: Floats, second: Floats, first_change: Floats, second_change: Floats) -> Bools:
    """Mark the changes after which the other of two scores is the higher one: (N,). A tie before or after is no turn.

    >>> turned(np.array([0.5, 0.5]), np.array([0.4, 0.5]), np.array([0.0, 0.0]), np.array([0.2, 0.1])).tolist()
    [True, False]
    """
    before = second - first
    after = before + (second_change - first_change)
    return (np.abs(before) > ROUNDING) & (np.abs(after) > ROUNDING) & (np.sign(before) != np.sign(after))
