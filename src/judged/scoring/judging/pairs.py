"""Preference pairs: the documents that each user prefers to others, derived from labels.

The iteration of a label is ``user subgroup``; without a blank it is the user. Within a subgroup, a document is
preferred to all documents with a lower grade. The preferences of a user from several subgroups are combined by their
transitive closure: a before b and b before c imply a before c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import MeasureError
from judged.results.types import cached_property
from judged.scoring.judging.ranking import segment_sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import Judged

_PART = 1 << 20  # pairs per batch: some ten megabytes a column
_MOST_PAIRS = 25_000_000  # per topic: some three gigabytes with all derived columns
_MOST_DOCS = 10_000  # per user with several subgroups: the transitive closure needs square matrices


class PreferencePairs(NamedTuple):
    """Preferences: user, better document and worse document, as numbered in `Preferences`."""

    user: Ints
    better: Ints
    worse: Ints

    def select(self, rows: Bools | slice) -> PreferencePairs:
        """Select pairs by mask or slice."""
        return PreferencePairs(*(column[rows] for column in self))


@dataclass(frozen=True, eq=False)
class Preferences:
    """Preferences of the users of each topic, and the documents in the order of a ranking.

    With L judged pairs, A labels and U pairs of a topic and a user.
    """

    judged: Judged
    # topic, code: (U,): each user's topic, ascending; and the user's code in `qrels.aspects.user`
    topic: Ints
    code: Ints
    several: Bools  # (U,): whether the user has several subgroups
    # (L,): the judged pairs of each topic in the order of the ranking; documents that were not returned follow, by
    # ascending id. A document is a position in this array.
    row: Ints
    returned: Bools  # (L,): whether the document was returned
    # user, doc, grade, group: (A,): user, document, grade and subgroup of each label; ordered by user, subgroup,
    # descending grade, and document
    user: Ints
    doc: Ints
    grade: Floats
    group: Ints

    def count_satisfied(self, among: Bools) -> tuple[Floats, Floats]:
        """Count each user's preferences between marked labels: those the ranking satisfies, and all. (U,) each."""
        satisfied, possible = self._count_without_pairs(np.flatnonzero(among & ~self.several[self.user]))
        docs = len(self.row)
        marked = np.unique(self.user[among] * docs + self.doc[among]) if self._closure else self.doc[:0]
        for pairs in self._closure:
            is_counted = np.isin(pairs.user * docs + pairs.better, marked) & np.isin(
                pairs.user * docs + pairs.worse, marked
            )
            satisfied += segment_sum(self.is_satisfied(pairs) & is_counted, pairs.user, len(self.topic))
            possible += segment_sum(is_counted, pairs.user, len(self.topic))
        return satisfied, possible

    def _count_without_pairs(self, labels: Ints) -> tuple[Floats, Floats]:
        """Count preferences of users with one subgroup in O(n log n), without listing the pairs."""
        # Two grade levels differ in some highest bit. For each bit, among labels with the same higher bits, labels
        # with this bit are preferred to labels without it.
        labels = labels[np.lexsort((self.doc[labels], self.user[labels]))]
        user, returned = self.user[labels], self.returned[self.doc[labels]]
        level = np.unique(self.grade[labels], return_inverse=True)[1]
        satisfied, possible = np.zeros(len(self.topic)), np.zeros(len(self.topic))
        for bit in range(int(level.max(initial=0)).bit_length()):
            prefix = user * (len(labels) + 1) + (level >> (bit + 1))
            order = np.argsort(prefix, kind="stable")  # within a prefix, documents stay in the order of the ranking
            preferred = (level[order] >> bit & 1).astype(np.bool_)
            others = np.append(0, np.cumsum(~preferred))
            begin, end = (np.searchsorted(prefix[order], prefix[order], side=side) for side in ("left", "right"))
            ranked_below = others[end] - others[1:]
            satisfied += segment_sum(ranked_below * (preferred & returned[order]), user[order], len(self.topic))
            possible += segment_sum((others[end] - others[begin]) * preferred, user[order], len(self.topic))
        return satisfied, possible

    def is_satisfied(self, pairs: PreferencePairs) -> Bools:
        """Mark the preferences whose better document was returned and is ranked above the worse one."""
        return (pairs.better < pairs.worse) & self.returned[pairs.better]

    def pairs(self, users: Bools) -> Iterator[PreferencePairs]:
        """Yield all preferences of the marked users in batches of topics."""
        lower, end = _grade_bounds(self.group, self.grade)
        counts = end - lower  # labels of lower grade follow those of the same grade
        counts[self.several[self.user] | ~users[self.user]] = 0
        closure = [part.select(users[part.user]) for part in self._closure]
        pairs_per_label = counts.astype(np.float64)
        for part in closure:
            user, size = np.unique(part.user, return_counts=True)
            pairs_per_label[np.searchsorted(self.user, user)] = size
        self._check_pairs(pairs_per_label)
        for batch in _batches(pairs_per_label, self.topic[self.user]):
            direct = self._direct_pairs(lower, counts, np.arange(batch.start, batch.stop))
            first, last = int(self.user[batch.start]), int(self.user[batch.stop - 1])
            closed = [part.select(_slice_of(part.user, first, last)) for part in closure]
            yield _concatenate([direct, *closed])

    def _check_pairs(self, counts: Floats) -> None:
        """Raise MeasureError if a topic has too many preferences; `counts` has those of each label."""
        of_topic = segment_sum(counts, self.topic[self.user], len(self.judged))
        if of_topic.max(initial=0) > _MOST_PAIRS:
            topic = int(of_topic.argmax())
            docs = np.count_nonzero(self.judged.label_topic == topic)
            raise MeasureError(
                f"a topic must have at most {_MOST_PAIRS} preferences, got {of_topic[topic]:.0f} for"
                f" {docs} judged documents of topic {self.judged.query_ids[topic]}."
                " Fix: use mean=preferences or mean=users, or judge fewer documents of a topic"
            )

    def _direct_pairs(self, lower: Ints, counts: Ints, labels: Ints) -> PreferencePairs:
        """Pair labels with all labels of a lower grade in the same subgroup."""
        first, count = np.repeat(labels, counts[labels]), counts[labels]
        offset = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
        return PreferencePairs(self.user[first], self.doc[first], self.doc[lower[first] + offset])

    @cached_property
    def _closure(self) -> list[PreferencePairs]:
        """All preferences of the users with several subgroups, in batches of users."""
        lower, end = _grade_bounds(self.group, self.grade)
        counts = end - lower
        batches, batch, size = list[PreferencePairs](), list[PreferencePairs](), 0
        for user in np.flatnonzero(self.several).tolist():
            self._check_zeros(user)
            labels = _slice_of(self.user, user)
            self._check_size(user, int(counts[labels].sum()))
            direct = self._direct_pairs(lower, counts, np.arange(labels.start, labels.stop))
            batch.append(self._transitive_closure(user, direct.better, direct.worse))
            size += len(batch[-1].user)
            if size > _PART:
                batches.append(_concatenate(batch))
                batch, size = [], 0
        return [*batches, _concatenate(batch)] if batch else batches

    def _check_size(self, user: int, pairs: int) -> None:
        """Raise MeasureError if a user with several subgroups has too many documents or preferences."""
        labels = self.doc[_slice_of(self.user, user)]
        if max(len(labels) - _MOST_DOCS, pairs - _MOST_PAIRS) <= 0:
            return
        docs = len(np.unique(labels))
        if docs > _MOST_DOCS or pairs > _MOST_PAIRS:
            raise MeasureError(
                f"{self._describe_user(user)}: a user with several judgment subgroups must have at most"
                f" {_MOST_DOCS} documents and {_MOST_PAIRS} preferences, got {docs} and {pairs}."
                " Fix: put all judgments of the user in one subgroup, or judge fewer documents of the topic"
            )

    def _transitive_closure(self, user: int, better: Ints, worse: Ints) -> PreferencePairs:
        docs, codes = np.unique(np.concatenate((better, worse)), return_inverse=True)
        beats = np.zeros((len(docs), len(docs)), dtype=np.float32)
        beats[codes[: len(better)], codes[len(better) :]] = 1.0
        previous = -1
        while (count := int(np.count_nonzero(beats))) != previous:  # each round doubles the length of implied paths
            previous = count
            self._check_size(user, count)
            beats = np.minimum(beats + beats @ beats, 1.0)
        cycle = docs[beats.diagonal() > 0]
        if len(cycle):
            raise MeasureError(
                f"{self._describe_user(user)}: preferences must not be cyclic, got a cycle with"
                f" {', '.join(self.ids(cycle[:3]))}. Fix: correct the grades, or assign the conflicting labels to"
                " another user"
            )
        rows, columns = np.nonzero(beats)
        return PreferencePairs(np.full(len(rows), user), docs[rows], docs[columns])

    def _check_zeros(self, user: int) -> None:
        """Raise MeasureError if a user grades a document 0 in one subgroup and above 0 in another."""
        labels = _slice_of(self.user, user)
        docs, grades = self.doc[labels], self.grade[labels]
        conflicts = np.intersect1d(docs[grades > 0], docs[grades == 0])
        if len(conflicts):
            raise MeasureError(
                f"{self._describe_user(user)}: {self.ids(conflicts[:1])[0]} has grade 0 in one subgroup and a higher"
                " grade in another subgroup. Fix: use grade 0 (not relevant) in all subgroups of a user or in none"
            )

    def to_columns(self, pairs: PreferencePairs) -> dict[str, list[Any]]:
        """Convert preferences to the columns of a table: user, ids and ranks of both documents, whether satisfied."""
        columns: dict[str, list[Any]] = (
            {} if len(self.users) == 1 else {"user": [self.users[user] for user in pairs.user]}
        )
        for name, docs in (("better", pairs.better), ("worse", pairs.worse)):
            columns |= {name: self.ids(docs), f"rank of {name}": self.ranks(docs)}
        return {**columns, "satisfied": self.is_satisfied(pairs).tolist()}

    def ranks(self, docs: Ints) -> list[int | None]:
        """Return the rank of each document, None if it was not returned."""
        rank = np.zeros(len(self.row), dtype=np.int64)
        rank[self.judged.row] = self.judged.rank
        return [doc_rank or None for doc_rank in rank[self.row[docs]].tolist()]

    @cached_property
    def users(self) -> list[str]:
        """Names of the users; U of them."""
        aspects = self.judged.qrels.aspects
        name_of = dict(zip(aspects.user.tolist(), (name.partition(" ")[0] for name in aspects.names), strict=True))
        return [name_of[code] for code in self.code.tolist()]

    def ids(self, docs: Ints) -> list[str]:
        """Return the ids of documents."""
        names = self.judged.qrels.index.row_names
        return [names[row] for row in self.judged.label_row[self.row[docs]].tolist()]

    def _describe_user(self, user: int) -> str:
        return f"topic {self.judged.query_ids[self.topic[user]]}: user {self.users[user]}"


def preferences(judged: Judged) -> Preferences:
    """Derive preferences from the labels of a judged list.

    >>> from judged.scoring.judging import judge_list
    >>> graded = preferences(judge_list([1, 3, None, 0]))
    >>> satisfied, possible = graded.count_satisfied(graded.grade >= 0)
    >>> satisfied.tolist(), possible.tolist()  # 1 over 0 and 3 over 0, but not 3 over 1
    ([2.0], [3.0])
    """
    labels, aspects = judged.label_aspects, judged.qrels.aspects
    row, doc_of = _ranking_order(judged)
    topic, doc = judged.label_topic[labels.owner], doc_of[labels.owner]
    user, group = aspects.user[labels.aspect], labels.aspect
    order = np.lexsort((doc, -labels.grade, group, user, topic))
    topic, user, group = topic[order], user[order], group[order]
    begins_user = (np.diff(topic, prepend=-1) != 0) | (np.diff(user, prepend=-1) != 0)
    user_index = np.cumsum(begins_user) - 1
    subgroup = np.cumsum(begins_user | (np.diff(group, prepend=-1) != 0)) - 1
    first = np.flatnonzero(begins_user)
    subgroups = np.diff(np.append(subgroup[first], subgroup[-1:] + 1))
    returned = np.zeros(len(row), dtype=np.bool_)
    returned[doc_of[judged.row]] = True
    return Preferences(
        judged=judged,
        topic=topic[first],
        code=user[first],
        several=subgroups > 1,
        row=row,
        returned=returned,
        user=user_index,
        doc=doc[order],
        grade=labels.grade[order],
        group=subgroup,
    )


def _ranking_order(judged: Judged) -> tuple[Ints, Ints]:
    """Return the judged pair at each position of the ranking, and the position of each judged pair."""
    index = judged.qrels.index
    rank = np.full(len(judged.label_topic), np.iinfo(np.int64).max)
    rank[judged.row] = judged.rank
    row = np.lexsort((index.doc_position[index.doc[judged.label_row]], rank, judged.label_topic))
    position = np.empty(len(row), dtype=np.int64)
    position[row] = np.arange(len(row))
    return row, position


def _grade_bounds(group: Ints, grade: Floats) -> tuple[Ints, Ints]:
    """Return where the labels of each label's group and grade end, and where those of its group end: (A,) each."""
    begins_group = np.diff(group, prepend=-1) != 0
    begins_grade = begins_group | (np.diff(grade, prepend=np.nan) != 0)
    return _ends(begins_grade), _ends(begins_group)


def _ends(begins: Bools) -> Ints:
    starts = np.append(np.flatnonzero(begins), len(begins))
    return starts[np.cumsum(begins)]


def _batches(counts: Floats, topic: Ints) -> Iterator[slice]:
    """Split the labels between topics into batches of at most `_PART` pairs, or of one topic."""
    stops = np.append(np.flatnonzero(np.diff(topic)) + 1, len(topic))
    total = np.append(0, np.cumsum(counts))
    start = 0
    while start < len(topic):
        next_stop = np.searchsorted(stops, start, side="right")
        fits = np.searchsorted(total[stops], total[start] + _PART, side="right") - 1
        stop = int(stops[max(next_stop, fits)])
        yield slice(start, stop)
        start = stop


def _concatenate(batches: list[PreferencePairs]) -> PreferencePairs:
    return PreferencePairs(*map(np.concatenate, zip(*batches, strict=True)))


def _slice_of(column: Ints, first: int, last: int | None = None) -> slice:
    low, high = np.searchsorted(column, [first, (first if last is None else last) + 1]).tolist()
    return slice(low, high)
