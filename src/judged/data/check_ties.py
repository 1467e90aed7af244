"""Equal scores in a run: how many, how high up, and whether their order could change a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.data.compute import pc
from judged.data.findings import Finding
from judged.results.cache import cached_property
from judged.results.decimals import counted
from judged.results.notes import first_few

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.data.check_tables import Rows
    from judged.data.index import QrelsIndex

_TOP = 10


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows by topic and falling score, cut into groups of equal scores."""

    rows: Rows
    scores: Floats

    @cached_property
    def order(self) -> Ints:
        """The rows in this order."""
        return np.lexsort((-self.scores, self.rows.topic))

    @cached_property
    def topic(self) -> Ints:
        """The topic of each place."""
        return self.rows.topic[self.order]

    @cached_property
    def group(self) -> Ints:
        """The group of each place, counted through."""
        scores = self.scores[self.order]
        new = (self.topic[1:] != self.topic[:-1]) | (scores[1:] != scores[:-1])
        return np.cumsum(np.r_[False, new])

    @cached_property
    def size(self) -> Ints:
        """How many documents each group has."""
        return np.bincount(self.group)

    @cached_property
    def first(self) -> Ints:
        """Where each group begins."""
        return np.r_[0, np.cumsum(self.size)[:-1]]

    @cached_property
    def rank(self) -> Ints:
        """The first rank of the group that stands at each place."""
        topic_begins = np.searchsorted(self.topic, self.topic)
        return self.first[self.group] - topic_begins + 1

    @cached_property
    def tied(self) -> Bools:
        """Whether each place is in a group of several."""
        return self.size[self.group] > 1


def ties(rows: Rows, scores: Floats, index: QrelsIndex | None) -> list[Finding]:
    """Find equal scores, topics with one score only, and ties that matter to these judgments."""
    groups = _Groups(rows, scores)
    count = int(groups.tied.sum())
    if not count:
        return []
    place = np.arange(len(scores)) - np.searchsorted(groups.topic, groups.topic)
    top = float(np.mean(groups.tied[place < _TOP]))
    problem = (
        f"{counted(count, 'document')} ({count / len(scores):.1%}) share their score with another one, in"
        f" {counted(len(np.unique(groups.topic[groups.tied])), 'topic')}; of the first {_TOP} of each topic {top:.1%}:"
        " their order is a matter of convention"
    )
    row = int(groups.order[groups.tied].min())
    found = [rows.finding("warning", "ties", problem, "write scores with more digits", count=count, row=row)]
    return found + _constant(groups) + ([] if index is None else _effect(groups, index))


def _constant(groups: _Groups) -> list[Finding]:
    rows = groups.rows
    whole = np.bincount(groups.topic)[groups.topic]
    level = np.unique(groups.topic[(groups.size[groups.group] == whole) & (whole > 1)])
    if not len(level):
        return []
    names = first_few([rows.topics[int(at)].as_py() for at in level])
    row = int(np.flatnonzero(rows.topic == level[0])[0])
    problem = f"{counted(len(level), 'topic')} with one score for all documents: {names}"
    return [
        rows.finding("warning", "constant-scores", problem, "write the scores of the system", count=len(level), row=row)
    ]


def _effect(groups: _Groups, index: QrelsIndex) -> list[Finding]:
    """Find the topics in which documents of different grades are tied; one without a judgment has grade 0."""
    rows = groups.rows
    codes = np.array([index.codes.get(name, -1) for name in rows.topics.to_pylist()], dtype=np.int64)
    topic, docs = codes[groups.topic], pc.take(rows.table["doc_id"], groups.order).combine_chunks()
    row = np.where(topic >= 0, index.rows_of(np.maximum(topic, 0), docs), -1)
    grade = np.where(row >= 0, np.maximum(index.grade[row], 0.0), 0.0)
    low, high = np.minimum.reduceat(grade, groups.first), np.maximum.reduceat(grade, groups.first)
    matters = (low < high)[groups.group]
    if not matters.any():
        return []
    in_all, in_top = (np.unique(groups.topic[part]) for part in (matters, matters & (groups.rank <= _TOP)))
    problem = (
        f"documents of different grades share a score in {counted(len(in_all), 'topic')}, in {len(in_top)} of them"
        f" among the first {_TOP}: there the order of ties changes measures"
    )
    fix = "see how much: judged evaluate --ties bounds"
    return [
        rows.finding("warning", "ties-matter", problem, fix, count=len(in_all), row=int(groups.order[matters].min()))
    ]
