"""Two judged lists of one topic, and the two measures that look at them: how far each looks, and at what."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from judged.judging.variants import placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.judging import Judged
    from judged.measures import Measure

ROUNDING = 1e-12
_ABOVE_ZERO = math.ulp(0.0)
_TENTH = 10


@dataclass(frozen=True)
class Eye:
    """A measure, how far and how it looks, and what it prefers."""

    measure: Measure
    name: str
    depth: float  # its cutoff; infinite for the whole list
    level: float  # the least grade that counts
    graded: bool  # whether grades count
    judged_only: bool  # whether it leaves out what has no judgment
    side: int = 0  # 1 where it prefers the second list, -1 the first, 0 neither

    @classmethod
    def of(cls, measure: Measure, lists: tuple[Judged, Judged]) -> Eye:
        """Look at two lists with a measure."""
        cutoff, level = getattr(measure, "cutoff", None), getattr(measure, "rel", None)
        eye = cls(
            measure,
            str(measure),
            cutoff if isinstance(cutoff, int) else math.inf,
            max(float(level), _ABOVE_ZERO) if isinstance(level, (int, float)) else _ABOVE_ZERO,
            measure.properties.graded,
            bool(getattr(measure, "judged_only", False)),
        )
        first, second = (float(measure(judged)[0]) for judged in lists)
        return replace(eye, side=eye.better(second - first))

    def better(self, difference: float) -> int:
        """Tell by a difference of scores which list is better: 1 for the second."""
        if not abs(difference) > ROUNDING:  # NaN, too
            return 0
        return 1 if (difference > 0) != (self.measure.properties.higher_is_better is False) else -1


@dataclass(frozen=True)
class JudgedList:
    """One judged list of one topic."""

    judged: Judged
    name: str
    level: float  # documents of a lower grade are not relevant

    @cached_property
    def relevant(self) -> dict[str, int]:
        """The rank of each relevant document, in rank order."""
        return {doc: rank for doc, (rank, grade) in self.hits.items() if grade >= self.level}

    @cached_property
    def hits(self) -> dict[str, tuple[int, float]]:
        """Rank and grade of each judged document, in rank order."""
        pairs = zip(self.judged.rank.tolist(), self.judged.grade.tolist(), strict=True)
        return dict(zip(self.judged.doc, pairs, strict=True))

    def within(self, depth: float, above: float = 0, level: float = 0) -> dict[str, int]:
        """Give the relevant documents, of a grade or better, below a rank and down to another."""
        return {doc: rank for doc, rank in self.relevant.items() if above < rank <= depth and self.grade(doc) >= level}

    def grade(self, doc: str) -> float:
        """Give the grade of a judged document."""
        return self.hits[doc][1]

    def unjudged(self, depth: float) -> tuple[str, ...]:
        """Name the documents without a judgment down to a rank."""
        every = self.judged.everything
        names = every.doc.take(np.flatnonzero(every.rank <= depth)).to_pylist()
        return tuple(doc for doc in names if doc not in self.hits)

    def asked(self, measure: Measure, docs: Sequence[str], ranks: Sequence[int]) -> float:
        """Score a list that holds only these documents, at these ranks."""
        place = {doc: at for at, doc in enumerate(self.hits)}
        hit = np.array([place[doc] for doc in docs], dtype=np.int64)
        topic = np.zeros(len(hit), dtype=np.int64)
        asked = placed(self.judged, np.zeros(1, dtype=np.int64), topic, hit, np.array(ranks, dtype=np.int64))
        return float(measure(asked)[0])


@dataclass(frozen=True)
class Case:
    """Two lists, and the two measures that look at them."""

    lists: tuple[JudgedList, JudgedList]
    eyes: tuple[Eye, Eye]

    @property
    def depth(self) -> float:
        """As far as both look."""
        return min(eye.depth for eye in self.eyes)

    def named(self, side: int) -> tuple[JudgedList, JudgedList]:
        """Give the list on a side, and the other."""
        return (self.lists[1], self.lists[0]) if side > 0 else self.lists

    def _counted(self, eye: Eye) -> tuple[JudgedList, list[str]]:
        """Give a document that a measure counts, to ask it with."""
        docs = [list(judged.within(math.inf, level=eye.level))[:1] for judged in self.lists]
        at = 0 if docs[0] else 1
        return self.lists[at], docs[at]

    def ordered(self, eye: Eye) -> bool:
        """Ask whether a measure tells a high rank from a low one."""
        low = int(min(eye.depth, _TENTH))
        judged, docs = self._counted(eye)
        if low < 2 or not docs:
            return False
        return abs(judged.asked(eye.measure, docs, [1]) - judged.asked(eye.measure, docs, [low])) > ROUNDING

    def only_first(self, eye: Eye) -> bool:
        """Ask whether a measure looks at the first relevant document alone."""
        judged, docs = self._counted(eye)
        if eye.depth < 2 or not docs:
            return False
        twice = judged.asked(eye.measure, docs * 2, [1, 2])  # one that stands at two ranks counts as two
        return abs(twice - judged.asked(eye.measure, docs, [1])) <= ROUNDING

    def sees(self, eye: Eye, judged: JudgedList, docs: Sequence[str]) -> bool:
        """Ask whether a measure would miss these documents."""
        left = {doc: rank for doc, rank in judged.relevant.items() if doc not in docs}
        scores = [judged.asked(eye.measure, list(kept), list(kept.values())) for kept in (judged.relevant, left)]
        return abs(scores[0] - scores[1]) > ROUNDING
