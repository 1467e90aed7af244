"""The judged list: what every measure is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar, get_args

import numpy as np

from judged.errors import InputError
from judged.results.files import cached_property
from judged.scoring.judging.hits import JudgedHits
from judged.scoring.judging.ranking import TopicPolicy
from judged.scoring.judging.segments import segment_starts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.working import Part, Working

    Values = TypeVar("Values", Floats, Ints, Bools)


@dataclass(frozen=True, eq=False)
class Judged(JudgedHits):
    """A run as its qrels see it: the judged documents that it returned, with their ranks.

    Its other attributes, and its ways to count and to look up, are those of `JudgedHits`.

    Attributes
    ----------
    working : Working or None
        The sheet on which measures write how their numbers come about, where someone asked for it.

    Examples
    --------
    >>> from judged import judge
    >>> j = judge({"q": {"a": 2, "b": 0, "c": 1}}, {"q": {"x": 3.0, "c": 2.0, "b": 1.0}})
    >>> j.rank.tolist(), j.grade.tolist(), j.returned.tolist()
    ([2, 3], [1.0, 0.0], [3])
    >>> j.sum((j.grade >= 1) / j.rank).tolist()  # a measure of one's own: the sum of 1/rank over relevant documents
    [0.5]
    >>> j.ideal.rank.tolist(), j.ideal.grade.tolist()
    ([1, 2, 3], [2.0, 1.0, 0.0])
    """

    working: Working | None = field(default=None, repr=False)

    def total(
        self, name: object, values: Floats | Bools, how: str = "", *, where: Bools | None = None, **parts: Part
    ) -> Floats:
        """Add up one value a hit over each topic, as `sum` does, and show how: (H,) to (T,).

        Parameters
        ----------
        name
            What the total is called.
        values
            What each hit adds; (H,).
        how
            The formula of one such value, in the names of its parts and of ``rank`` and ``grade``.
        where
            Which hits count; all for None. (H,).
        parts
            What the formula is made of: (H,), or a number for all.
        """
        total = self.sum(values if where is None else values * where)
        if self.working is not None:
            self.working.total(self, str(name), values, total, how, parts, where)
        return total

    def step(self, name: object, values: Values, how: str = "", **parts: Part) -> Values:
        """Show how one number per topic comes about, and give it back: (T,).

        Parameters
        ----------
        name
            What the number is called; a measure gives itself for the last one.
        values
            (T,).
        how
            The formula, in the names of its parts, such as ``"dcg / ideal"``.
        parts
            What the formula is made of: (T,), or a number for all.
        """
        if self.working is not None:
            self.working.step(self, str(name), np.asarray(values, dtype=np.float64), how, parts)
        return values

    def summed(self, name: object, values: Values, column: str) -> Values:
        """Show one number per topic that is the sum of a column, and give it back: (T,)."""
        if self.working is not None:
            self.working.summed(self, str(name), np.asarray(values, dtype=np.float64), column)
        return values

    def column(self, name: str, values: Values, how: str = "", *, where: Bools | None = None, **parts: Part) -> Values:
        """Show one number a hit, and give it back: (H,)."""
        if self.working is not None:
            self.working.column(self, name, values, how, parts, where)
        return values

    def by_rank(self, name: str, values: Values, how: str = "", **parts: Part) -> Values:
        """Show one number for each rank from 1, judged or not, of the only topic, and give it back: (N,)."""
        if self.working is not None:
            self.working.column(self, name, values, how, parts, rank=np.arange(1, len(values) + 1))
        return values

    def rows(self, title: str, columns: Mapping[str, Sequence[object] | np.ndarray], **how: str) -> None:
        """Show a table of its own: recall points, subtopics, pairs; and how columns come from others, by name."""
        if self.working is not None:
            self.working.rows(self, title, columns, how)

    @cached_property
    def ideal(self) -> Judged:
        """The best ranking of the judged documents: grades falling. Negative grades are left out."""
        return self.ideal_by(np.where(self.label_grade >= 0, self.label_grade, -np.inf))

    def ideal_by(self, value: Floats, title: str = "ideal ranking") -> Judged:
        """Rank the judged pairs by one value each, falling; those of minus infinity are left out. (L,)."""
        kept = np.flatnonzero(value > -np.inf)
        order = kept[np.lexsort((-value[kept], self.label_topic[kept]))]
        return self._with_hits(title, order, self.label_topic[order], self.label_grade[order])

    @cached_property
    def condensed(self) -> Judged:
        """The same ranking without the documents that are unjudged or have a negative grade."""
        kept = np.flatnonzero(self.grade >= 0)
        title = f"{self.title} without unjudged documents"
        return self._with_hits(title, self.row[kept], self.topic[kept], self.grade[kept], self.score[kept])

    def _with_hits(self, title: str, row: Ints, topic: Ints, grade: Floats, score: Floats | None = None) -> Judged:
        """Make a list that consists of these hits and nothing else."""
        rank = np.arange(len(row)) - segment_starts(topic, len(self))[topic] + 1
        return replace(
            self,
            returned=np.bincount(topic, minlength=len(self)).astype(np.int64),
            topic=topic,
            rank=rank,
            grade=grade,
            row=row,
            score=-rank.astype(np.float64) if score is None else score,
            tie_first=rank,
            tie_last=rank,
            reordered=True,
            title=title,
            shown=None,
        )

    def only(self, query_id: str) -> Judged:
        """Leave one topic.

        Raises
        ------
        InputError
            If the qrels do not have it.
        """
        query_id = str(query_id)  # a whole number is its decimal text, as in qrels of Python
        if query_id not in self.query_ids:
            some = ", ".join(self.query_ids[:5]) + (", ..." if len(self.query_ids) > 5 else "")
            fix = f"use one of {some}" if query_id not in self.extra else "choose a topic that has judgments"
            raise InputError(f"the qrels have no topic {query_id!r}", fix=fix, path=self.qrels.where)
        return self._recoded(np.array([self.query_ids.index(query_id)]), ())

    def over(self, topics: TopicPolicy) -> Judged:
        """Choose the topics that count.

        ``qrels``: all topics of the qrels, a missing one is an empty ranking. ``both``: those that the
        run has too. ``run``: those of the run; one that has no judgments has nothing relevant.
        """
        if topics == "qrels":
            return self
        if topics == "both":
            return self._recoded(np.flatnonzero(self.present), ())
        if topics == "run":
            return self._recoded(np.flatnonzero(self.present), self.extra)
        from judged.data.expression import among  # only what is no policy needs it

        fix = f'use one of {", ".join(get_args(TopicPolicy))}; to use some topics, where="{among(topics)}"'
        raise InputError(f"no topic policy {topics!r}", fix=fix)

    def _recoded(self, kept: Ints, extra: tuple[str, ...]) -> Judged:
        names = [self.query_ids[code] for code in kept.tolist()] + list(extra)
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        new_code = np.full(len(self), -1, dtype=np.int64)
        place = np.empty(len(names), dtype=np.int64)
        place[order] = np.arange(len(names))
        new_code[kept] = place[: len(kept)]
        hits = np.flatnonzero(new_code[self.topic] >= 0)
        labels = np.flatnonzero(new_code[self.label_topic] >= 0)
        new_row = np.full(len(self.label_topic), -1, dtype=np.int64)
        new_row[labels] = np.arange(len(labels))
        added = self.extra_returned[: len(extra)]
        return replace(
            self,
            query_ids=tuple(names[at] for at in order.tolist()),
            returned=np.concatenate((self.returned[kept], added))[order],
            present=np.concatenate((self.present[kept], np.ones(len(extra), dtype=np.bool_)))[order],
            **self.hits_at(hits, topic=new_code[self.topic[hits]], row=new_row[self.row[hits]]),
            **self.labels_at(labels, label_topic=new_code[self.label_topic[labels]]),
            shown=None,
            extra=self.extra[len(extra) :],
            extra_returned=self.extra_returned[len(extra) :],
        )
