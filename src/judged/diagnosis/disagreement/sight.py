"""Two judged lists of one topic, and the two measures that look at them: how far each looks, and at what."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    """A measure, and how far and how it looks."""

    measure: Measure
    side: int  # 1 where it prefers the second list, -1 the first, 0 neither

    @cached_property
    def name(self) -> str:
        """How results call it."""
        return str(self.measure)

    @cached_property
    def depth(self) -> float:
        """Its cutoff; infinite for the whole list."""
        cutoff = getattr(self.measure, "cutoff", None)
        return cutoff if isinstance(cutoff, int) else math.inf

    @cached_property
    def level(self) -> float:
        """The least grade that counts."""
        level = getattr(self.measure, "rel", None)
        return max(float(level), _ABOVE_ZERO) if isinstance(level, (int, float)) else _ABOVE_ZERO

    @cached_property
    def graded(self) -> bool:
        """Whether grades count."""
        return self.measure.properties.graded

    @cached_property
    def judged_only(self) -> bool:
        """Whether it leaves out what has no judgment."""
        return bool(getattr(self.measure, "judged_only", False))

    def better(self, difference: float) -> int:
        """Tell by a difference of scores which list is better: 1 for the second."""
        if abs(difference) <= ROUNDING:
            return 0
        return 1 if (difference > 0) != (self.measure.properties.higher_is_better is False) else -1


@dataclass(frozen=True)
class JudgedList:
    """One judged list of one topic."""

    one: Judged
    name: str
    level: float

    @cached_property
    def relevant(self) -> dict[str, int]:
        """The rank of each relevant document, in rank order."""
        return {doc: rank for doc, (rank, grade) in self.hits.items() if grade >= self.level}

    @cached_property
    def hits(self) -> dict[str, tuple[int, float]]:
        """Rank and grade of each judged document, in rank order."""
        ranks, grades = self.one.rank.tolist(), self.one.grade.tolist()
        return dict(zip(self.one.doc, zip(ranks, grades, strict=True), strict=True))

    def within(self, depth: float, above: float = 0, level: float = 0) -> dict[str, int]:
        """Give the relevant documents, of a grade or better, below a rank and down to another."""
        return {doc: rank for doc, rank in self.relevant.items() if above < rank <= depth and self.grade(doc) >= level}

    def grade(self, doc: str) -> float:
        """Give the grade of a judged document."""
        return self.hits[doc][1]

    def unjudged(self, depth: float) -> int:
        """Count the documents without a judgment down to a rank."""
        return int(min(depth, int(self.one.returned[0]))) - sum(rank <= depth for rank, _ in self.hits.values())

    def asked(self, measure: Measure, docs: Sequence[str], ranks: Sequence[int]) -> float:
        """Score a list that holds only these documents, at these ranks."""
        place = {doc: at for at, doc in enumerate(self.hits)}
        hit = np.array([place[doc] for doc in docs], dtype=np.int64)
        only = np.zeros(1, dtype=np.int64)
        made = placed(self.one, only, np.zeros(len(hit), dtype=np.int64), hit, np.array(ranks, dtype=np.int64))
        return float(measure(made)[0])


@dataclass(frozen=True)
class Case:
    """Two lists, and the two measures that look at them."""

    lists: tuple[JudgedList, JudgedList]
    eyes: tuple[Eye, Eye]

    @cached_property
    def depth(self) -> float:
        """As far as both look."""
        return min(eye.depth for eye in self.eyes)

    @cached_property
    def shallow(self) -> tuple[Eye, Eye] | None:
        """The measure that looks less far, then the other; None where both look equally far."""
        one, two = self.eyes
        return None if one.depth == two.depth else (one, two) if one.depth < two.depth else (two, one)

    def named(self, side: int) -> tuple[JudgedList, JudgedList]:
        """Give the list on a side, and the other."""
        return (self.lists[1], self.lists[0]) if side > 0 else self.lists

    def ordered(self, eye: Eye) -> bool:
        """Ask whether a measure tells a high rank from a low one."""
        low = int(min(eye.depth, _TENTH))
        which, docs = self._some(eye)
        if low < 2 or not docs:
            return False
        scores = [which.asked(eye.measure, docs[:1], [rank]) for rank in (1, low)]
        return abs(scores[0] - scores[1]) > ROUNDING

    def _some(self, eye: Eye) -> tuple[JudgedList, list[str]]:
        """Give a document that a measure counts, to ask it with."""
        found = [list(one.within(math.inf, level=eye.level))[:1] for one in self.lists]
        at = 0 if found[0] else 1
        return self.lists[at], found[at]

    def sees(self, eye: Eye, one: JudgedList, docs: Sequence[str]) -> bool:
        """Ask whether a measure would miss these documents."""
        without = [doc for doc in one.relevant if doc not in docs]
        scores = [
            one.asked(eye.measure, kept, [one.relevant[doc] for doc in kept]) for kept in (list(one.relevant), without)
        ]
        return abs(scores[0] - scores[1]) > ROUNDING

    def only_first(self, eye: Eye) -> bool:
        """Ask whether a measure looks at the first relevant document alone."""
        which, docs = self._some(eye)
        if eye.depth < 2 or not docs:
            return False
        twice = which.asked(eye.measure, docs * 2, [1, 2])  # one that stands at two ranks counts as two
        return abs(twice - which.asked(eye.measure, docs, [1])) <= ROUNDING
