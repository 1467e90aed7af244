"""`review`: which judgments people should look at again, those first that matter most to the scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.diagnosis.review.rates import rates_of
from judged.diagnosis.review.relabelling import changes, opened_to, turned
from judged.diagnosis.review.result import ReviewList
from judged.diagnosis.review.rows import KINDS, ReviewItem, ReviewKind
from judged.errors import InputError
from judged.evaluation import runs_of
from judged.evaluation.provenance import provenance_of_lists, refuse_foreign
from judged.judging import judge
from judged.judging.policies import Ranking
from judged.measures import parse

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.diagnosis.review.relabelling import Opened
    from judged.judging import Precision, TiePolicy
    from judged.measures import Measure
    from judged.slicing.slices import Slicing

_DIGITS = 12  # of a change: what differs by rounding alone is equally informative


def review(
    qrels: Any,
    runs: Any,
    *,
    measure: str | Measure = "nDCG@10",
    k: int | None = None,
    rel: float = 1,
    kinds: str | Iterable[str] = KINDS,
    slicing: Slicing | None = None,
    limit: int | None = None,
    queries: Any = None,
    docs: Any = None,
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
    k
        How many documents of each topic count as shown; None: the measure's cutoff, or 10.
    rel
        From this grade on a document is relevant.
    kinds
        Which kinds to list: ``false positive``, ``false negative``, ``unjudged``. All are counted.
    slicing
        Slices to count by, and to name with each item.
    limit
        List at most so many items; all for None.
    queries, docs
        Texts of topics and of documents: `Topics` and `Texts`, paths, or dicts ``{id: text}``.
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
    shown, wanted = _first(measure, k), _kinds(kinds)
    if not 0 < rel < np.inf:
        raise InputError(f"the level {rel} makes no sense", fix="give a number above 0")
    if limit is not None and limit < 0:
        raise InputError(f"a limit of {limit} items makes no sense", fix="give a whole number from 0")
    judgments, given = Qrels.of(qrels), runs_of(runs)
    _refuse_level(judgments, rel)
    opened = opened_to(judgments, given, Ranking(ties, depth, precision), shown, _facts(documents))
    for judged in opened.lists:
        refuse_foreign(judged)
    as_given = [judge(judgments, run, ties=ties, depth=depth, precision=precision) for run in given]
    rests = provenance_of_lists(as_given, [measure])
    relevant = (opened.qrels.index.grade >= rel) & ~opened.unjudged
    highest = max(float(judgments.index.grade.max()), rel)
    sliced = None if slicing is None else slicing.over(judgments.topics)
    kind = _kind_of(opened, relevant, shown)
    pairs = np.flatnonzero(np.isin(kind, [KINDS.index(one) for one in wanted]))
    other = np.where(relevant[pairs], 0.0, highest)
    asked = [changes(judged, measure, opened.unjudged, pairs, other) for judged in opened.lists]
    change = np.stack([one for _, one in asked])
    turns = np.zeros(len(pairs), dtype=np.bool_)
    if len(asked) > 1 and measure.properties.higher_is_better is not None:
        topics = opened.qrels.index.topic[pairs]
        turns = turned(asked[0][0][topics], asked[1][0][topics], change[0], change[1])
    order = _order(opened, pairs, change, turns)[:limit]
    items = _items(opened, kind[pairs[order]], pairs[order], other[order], change[:, order], turns[order], sliced)
    return ReviewList(
        measure=str(measure),
        k=shown,
        rel=float(rel),
        highest=highest,
        runs=tuple(run.name for run in given),
        kinds=wanted,
        items=_with_texts(items, queries, docs),
        found={one: int(np.count_nonzero(kind == at)) for at, one in enumerate(KINDS)},
        turning=int(turns.sum()),
        rates=rates_of(opened, relevant, shown, sliced),
        provenance=rests,
        warnings=rests.warnings,
    )


def _first(measure: Measure, k: int | None) -> int:
    """Tell how many documents count as shown."""
    own = getattr(measure, "cutoff", None)
    found = k if k is not None else int(own) if isinstance(own, (int, float)) else 10
    if found < 1:
        raise InputError(f"the first {found} documents make no sense", fix="give a whole number from 1")
    return found


def _refuse_level(qrels: Qrels, rel: float) -> None:
    """Refuse a level that no grade reaches, but for the usual one, which may be that of judgments yet to come."""
    highest = float(qrels.index.grade.max())
    if rel > max(highest, 1):
        raise InputError(
            f"no document is relevant from grade {rel:g} on: the highest grade is {highest:g}",
            fix=f"choose a level up to {max(highest, 1):g}",
            path=qrels.where,
        )


def _kinds(kinds: str | Iterable[str]) -> tuple[ReviewKind, ...]:
    named = {kinds} if isinstance(kinds, str) else set(kinds)
    if unknown := sorted(named - set(KINDS)):
        raise InputError(f"no kind {unknown[0]!r} of a label", fix=f"one of {', '.join(KINDS)}")
    if not named:
        raise InputError("no kind of label is asked for", fix=f"name some of {', '.join(KINDS)}")
    return tuple(one for one in KINDS if one in named)


def _facts(documents: Any) -> Any:
    if documents is None:
        return None
    from judged.data.documents import Documents

    return Documents.of(documents)


def _kind_of(opened: Opened, relevant: Bools, k: int) -> Ints:
    """Tell the kind of each pair by its place in `KINDS`, -1 for those that no run gets wrong: (P,)."""
    first = (opened.ranks > 0) & (opened.ranks <= k)
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
    inside = dict.fromkeys(range(len(index.topics)), ()) if slicing is None else _slices(slicing)
    made: list[ReviewItem] = []
    for at, pair in enumerate(pairs.tolist()):
        topic, by_run = int(index.topic[pair]), change[:, at].tolist()
        made.append(
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
                slices=inside[topic],
            )
        )
    return made


def _slices(slicing: Slicing) -> dict[int, tuple[str, ...]]:
    columns = slicing.members.T.tolist()
    return {
        at: tuple(name for name, inside in zip(slicing.names, column, strict=True) if inside)
        for at, column in enumerate(columns)
    }


def _with_texts(items: list[ReviewItem], queries: Any, docs: Any) -> tuple[ReviewItem, ...]:
    if queries is not None:
        topics = Topics.of(queries)
        items = [replace(one, query=topics.text(one.query_id)) for one in items]
    if docs is not None:
        texts = Texts.of(docs, {one.doc_id for one in items})
        items = [replace(one, title=texts.title(one.doc_id), text=texts.text(one.doc_id)) for one in items]
    return tuple(items)
