"""Which document each user prefers to which other: labels turned into pairs.

A label's iteration is ``user subgroup``; without a blank it is the user. Within a subgroup a document is preferred
to all of a lower grade. What a user says in several subgroups is put together, with what follows from it: a before
b and b before c is a before c.
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

_PART = 1 << 20  # pairs at a time: some ten megabytes a column
_MOST_PAIRS = 25_000_000  # of one topic: some three gigabytes, with all that is made of them
_MOST_DOCS = 10_000  # of a user with several subgroups: what follows is found in square matrices


class Pairs(NamedTuple):
    """Preferences one by one: the user, the better document and the worse, as `Preferences` numbers them."""

    user: Ints
    better: Ints
    worse: Ints


@dataclass(frozen=True, eq=False)
class Preferences:
    """What the users of each topic prefer, and the documents in the order of a ranking.

    With L judged pairs, A labels and U pairs of a topic and a user.
    """

    judged: Judged  # where it comes from
    # topic, code: (U,): each user's topic, rising; and who it is, as in `qrels.aspects.user`
    topic: Ints
    code: Ints
    several: Bools  # (U,): whether the user has several subgroups
    # (L,): the judged pairs of each topic in the order of the ranking; those not returned follow, by rising id. A
    # document is a position here.
    row: Ints
    returned: Bools  # (L,): whether the document was returned
    # user, doc, grade, group: (A,): each label: its user, its document, its grade and its subgroup; ordered by user,
    # subgroup and falling grade, documents rising
    user: Ints
    doc: Ints
    grade: Floats
    group: Ints

    def counts(self, among: Bools) -> tuple[Floats, Floats]:
        """Count each user's preferences among some labels: those that the ranking keeps, and all. (U,) each."""
        # Kept is a preference whose better document was returned and stands above the worse.
        kept, possible = self._counts_alone(np.flatnonzero(among & ~self.several[self.user]))
        docs = len(self.row)
        chosen = np.unique(self.user[among] * docs + self.doc[among]) if self._put_together else self.doc[:0]
        for pairs in self._put_together:
            inside = np.isin(pairs.user * docs + pairs.better, chosen) & np.isin(
                pairs.user * docs + pairs.worse, chosen
            )
            kept += segment_sum(self.keeps(pairs) & inside, pairs.user, len(self.topic))
            possible += segment_sum(inside, pairs.user, len(self.topic))
        return kept, possible

    def _counts_alone(self, labels: Ints) -> tuple[Floats, Floats]:
        """Count for users of one subgroup, without making the pairs."""
        # Two grades, numbered, differ in some highest bit. For each bit, among labels whose higher bits are equal,
        # those that have it are preferred to those that do not.
        labels = labels[np.lexsort((self.doc[labels], self.user[labels]))]
        user, returned = self.user[labels], self.returned[self.doc[labels]]
        level = np.unique(self.grade[labels], return_inverse=True)[1]
        kept, possible = np.zeros(len(self.topic)), np.zeros(len(self.topic))
        for bit in range(int(level.max(initial=0)).bit_length()):
            alike = user * (len(labels) + 1) + (level >> (bit + 1))
            order = np.argsort(alike, kind="stable")  # and documents in the order of the ranking
            preferred = (level[order] >> bit & 1).astype(np.bool_)
            others = np.append(0, np.cumsum(~preferred))
            begin, end = (np.searchsorted(alike[order], alike[order], side=side) for side in ("left", "right"))
            behind = others[end] - others[1:]
            whose = user[order]
            kept += segment_sum(behind * (preferred & returned[order]), whose, len(self.topic))
            possible += segment_sum((others[end] - others[begin]) * preferred, whose, len(self.topic))
        return kept, possible

    def keeps(self, pairs: Pairs) -> Bools:
        """Mark the preferences whose better document was returned and stands above the worse."""
        return (pairs.better < pairs.worse) & self.returned[pairs.better]

    def pairs(self, users: Bools) -> Iterator[Pairs]:
        """Give all preferences of some users one by one, some topics at a time."""
        lower, end = _runs(self.group, self.grade)
        counts = end - lower  # the labels of lower grade stand behind those of the same grade
        counts[self.several[self.user] | ~users[self.user]] = 0
        together = [Pairs(*(column[users[part.user]] for column in part)) for part in self._put_together]
        listed = counts.astype(np.float64)
        for part in together:
            who, size = np.unique(part.user, return_counts=True)
            listed[np.searchsorted(self.user, who)] = size
        self._check_pairs(listed)
        for some in _shares(listed, self.topic[self.user]):
            said = self._said(lower, counts, np.arange(some.start, some.stop))
            first, last = int(self.user[some.start]), int(self.user[some.stop - 1])
            own = [Pairs(*(column[_slice_of(part.user, first, last)] for column in part)) for part in together]
            yield _joined([said, *own])

    def _check_pairs(self, counts: Floats) -> None:
        """Refuse more preferences of one topic, counted at its labels, than memory may hold."""
        of_topic = segment_sum(counts, self.topic[self.user], len(self.judged))
        if of_topic.max(initial=0) > _MOST_PAIRS:
            topic = int(of_topic.argmax())
            docs = np.count_nonzero(self.judged.label_topic == topic)
            raise MeasureError(
                f"topic {self.judged.query_ids[topic]} has {docs} judged documents, and {of_topic[topic]:.0f}"
                f" preferences between them, more than can be put side by side ({_MOST_PAIRS})."
                " Fix: take mean=preferences or mean=users, or judge fewer documents of a topic"
            )

    def _said(self, lower: Ints, counts: Ints, labels: Ints) -> Pairs:
        """Pair labels with those of a lower grade in the same subgroup."""
        first, count = np.repeat(labels, counts[labels]), counts[labels]
        offset = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
        return Pairs(self.user[first], self.doc[first], self.doc[lower[first] + offset])

    @cached_property
    def _put_together(self) -> list[Pairs]:
        """All preferences of the users who have several subgroups, some users at a time."""
        lower, end = _runs(self.group, self.grade)
        counts = end - lower
        parts, pieces, size = list[Pairs](), list[Pairs](), 0
        for user in np.flatnonzero(self.several).tolist():
            self._check_zeros(user)
            own = _slice_of(self.user, user)
            self._check_size(user, int(counts[own].sum()))
            said = self._said(lower, counts, np.arange(own.start, own.stop))
            pieces.append(self._closed(user, said.better, said.worse))
            size += len(pieces[-1].user)
            if size > _PART:
                parts.append(_joined(pieces))
                pieces, size = [], 0
        return [*parts, _joined(pieces)] if pieces else parts

    def _check_size(self, user: int, pairs: int) -> None:
        """Refuse more documents or preferences of one user than can be put together."""
        labels = self.doc[_slice_of(self.user, user)]
        if max(len(labels) - _MOST_DOCS, pairs - _MOST_PAIRS) <= 0:
            return
        docs = len(np.unique(labels))
        if docs > _MOST_DOCS or pairs > _MOST_PAIRS:
            raise MeasureError(
                f"{self._who(user)} has {docs} documents and {pairs} preferences in several subgroups, more than can be"
                f" put together ({_MOST_DOCS} and {_MOST_PAIRS})."
                " Fix: give the user one subgroup, or judge fewer documents of a topic"
            )

    def _closed(self, user: int, better: Ints, worse: Ints) -> Pairs:
        """Add what follows from one user's preferences."""
        docs, codes = np.unique(np.concatenate((better, worse)), return_inverse=True)
        beats = np.zeros((len(docs), len(docs)), dtype=np.float32)
        beats[codes[: len(better)], codes[len(better) :]] = 1.0
        known = -1
        while (found := int(np.count_nonzero(beats))) != known:
            known = found
            self._check_size(user, known)
            beats = np.minimum(beats + beats @ beats, 1.0)
        circle = docs[beats.diagonal() > 0]
        if len(circle):
            raise MeasureError(
                f"{self._who(user)} prefers documents in a circle: {', '.join(self.ids(circle[:3]))}."
                " Fix: correct the grades, or give what disagrees to another user"
            )
        rows, columns = np.nonzero(beats)
        return Pairs(np.full(len(rows), user), docs[rows], docs[columns])

    def _check_zeros(self, user: int) -> None:
        """Refuse a document that one user calls relevant in one subgroup and not relevant in another."""
        own = _slice_of(self.user, user)
        docs, grades = self.doc[own], self.grade[own]
        both = np.intersect1d(docs[grades > 0], docs[grades == 0])
        if len(both):
            raise MeasureError(
                f"{self._who(user)} gives {self.ids(both[:1])[0]} grade 0 in one subgroup and more in another."
                " Fix: grade 0 means not relevant, in every subgroup of a user"
            )

    def named(self, pairs: Pairs) -> dict[str, list[Any]]:
        """Write preferences out, by the columns of a table: who, which documents at which ranks, whether kept."""
        columns: dict[str, list[Any]] = {} if len(self.users) == 1 else {"user": [self.users[at] for at in pairs.user]}
        for name, docs in (("better", pairs.better), ("worse", pairs.worse)):
            columns |= {name: self.ids(docs), f"rank of {name}": self.ranks(docs)}
        return {**columns, "kept": self.keeps(pairs).tolist()}

    def ranks(self, docs: Ints) -> list[int | None]:
        """Give the rank of each document, None where it was not returned."""
        rank = np.zeros(len(self.row), dtype=np.int64)
        rank[self.judged.row] = self.judged.rank
        return [place or None for place in rank[self.row[docs]].tolist()]

    @cached_property
    def users(self) -> list[str]:
        """The name of each user; U of them."""
        aspects = self.judged.qrels.aspects
        name_of = dict(zip(aspects.user.tolist(), (name.partition(" ")[0] for name in aspects.names), strict=True))
        return [name_of[code] for code in self.code.tolist()]

    def ids(self, docs: Ints) -> list[str]:
        """Give the id of each document."""
        names = self.judged.qrels.index.row_names
        return [names[row] for row in self.judged.label_row[self.row[docs]].tolist()]

    def _who(self, user: int) -> str:
        return f"topic {self.judged.query_ids[self.topic[user]]}: user {self.users[user]}"


def preferences(judged: Judged) -> Preferences:
    """Read preferences from the labels of a judged list.

    >>> from judged.scoring.judging import judge_list
    >>> found = preferences(judge_list([1, 3, None, 0]))
    >>> kept, possible = found.counts(found.grade >= 0)
    >>> kept.tolist(), possible.tolist()  # 1 over 0 and 3 over 0, and not 3 over 1
    ([2.0], [3.0])
    """
    labels, aspects = judged.label_aspects, judged.qrels.aspects
    row, doc_of = _in_order(judged)
    topic, doc = judged.label_topic[labels.of], doc_of[labels.of]
    user, group = aspects.user[labels.aspect], labels.aspect
    order = np.lexsort((doc, -labels.grade, group, user, topic))
    topic, user, group = topic[order], user[order], group[order]
    begins = (np.diff(topic, prepend=-1) != 0) | (np.diff(user, prepend=-1) != 0)
    of_user = np.cumsum(begins) - 1
    subgroup = np.cumsum(begins | (np.diff(group, prepend=-1) != 0)) - 1
    first = np.flatnonzero(begins)
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
        user=of_user,
        doc=doc[order],
        grade=labels.grade[order],
        group=subgroup,
    )


def _in_order(judged: Judged) -> tuple[Ints, Ints]:
    """Order the judged pairs by the ranking; give the pair at each place, and the place of each pair."""
    index = judged.qrels.index
    rank = np.full(len(judged.label_topic), np.iinfo(np.int64).max)
    rank[judged.row] = judged.rank
    row = np.lexsort((index.doc_place[index.doc[judged.label_row]], rank, judged.label_topic))
    place = np.empty(len(row), dtype=np.int64)
    place[row] = np.arange(len(row))
    return row, place


def _runs(group: Ints, grade: Floats) -> tuple[Ints, Ints]:
    """Give where the labels of the same group and grade end, and where those of the same group do: (A,) each."""
    other_group = np.diff(group, prepend=-1) != 0
    other = other_group | (np.diff(grade, prepend=np.nan) != 0)
    return _ends(other), _ends(other_group)


def _ends(begins: Bools) -> Ints:
    starts = np.append(np.flatnonzero(begins), len(begins))
    return starts[np.cumsum(begins)]


def _shares(counts: Floats, topic: Ints) -> Iterator[slice]:
    """Cut the labels between topics, so that each share makes a limited number of pairs if it has several topics."""
    stops = np.append(np.flatnonzero(np.diff(topic)) + 1, len(topic))
    total = np.append(0, np.cumsum(counts))
    start = 0
    while start < len(topic):
        next_stop = np.searchsorted(stops, start, side="right")
        fits = np.searchsorted(total[stops], total[start] + _PART, side="right") - 1
        stop = int(stops[max(next_stop, fits)])
        yield slice(start, stop)
        start = stop


def _joined(pieces: list[Pairs]) -> Pairs:
    return Pairs(*map(np.concatenate, zip(*pieces, strict=True)))


def _slice_of(column: Ints, first: int, last: int | None = None) -> slice:
    low, high = np.searchsorted(column, [first, (first if last is None else last) + 1]).tolist()
    return slice(low, high)
