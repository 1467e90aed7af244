"""Why two measures order two lists differently: what one of them sees in the judged documents, and the other does not.

What a measure sees is asked of it, by lists that hold some of the documents only; no formula stands here.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from judged.decimals import counted, decimal
from judged.judging.variants import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.judging import Judged
    from judged.measures import Measure

ROUNDING = 1e-12
_ABOVE_ZERO = math.ulp(0.0)
_TENTH = 10


@dataclass(frozen=True)
class Reason:
    """One thing that a measure sees in two judged lists, and that speaks for the system which it prefers."""

    # `below the cutoff`: one list has more relevant documents where only the deeper measure looks
    # `across the cutoff`: documents of both lists stand above the shallow cutoff in one and below it in the other
    # `first relevant`: a measure looks at the first relevant document only
    # `grades`: the lists differ in grades that the measures weigh differently
    # `number against place`: one list has more relevant documents, the other has its own higher up
    # `order within the first k`: the same documents stand at other ranks, which the measures weigh differently
    # `unjudged documents`: one list has more documents without a judgment where one measure looks
    kind: str
    measure: str  # the measure that sees it
    system: str  # the system that it speaks for
    documents: tuple[str, ...]
    text: str


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


def reasons(lists: tuple[Judged, Judged], measures: tuple[Measure, Measure]) -> tuple[Reason, ...]:
    """Say what in two judged lists makes two measures prefer what they prefer.

    >>> from judged import judge
    >>> from judged.measures import parse
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0}}
    >>> ranked = [{"q": {doc: -at for at, doc in enumerate(docs)}} for docs in (["a", "x"], ["x", "a", "y", "b", "c"])]
    >>> lists = tuple(judge(qrels, run) for run in ranked)
    >>> [(reason.kind, reason.documents) for reason in reasons(lists, (parse("P@1"), parse("R@5")))]
    [('below the cutoff', ('b', 'c')), ('across the cutoff', ('a',))]
    """
    # Only what speaks for the preference of a measure is named, and only where the other measure does not see it, or
    # weighs it otherwise. Several may apply; where none of these kinds does, there is none.
    eyes = (Eye.of(measures[0], lists), Eye.of(measures[1], lists))
    level = min(eye.level for eye in eyes)
    names = [judged.run.name for judged in lists]
    names = names if names[0] != names[1] else ["the first", "the second"]
    condensed = all(eye.judged_only for eye in eyes)
    one, two = (
        JudgedList(judged.condensed if condensed else judged, name, level)
        for judged, name in zip(lists, names, strict=True)
    )
    rules: tuple[Callable[[Case], Reason | None], ...] = (
        _below, _across, _first_relevant, _grades, _levels, _number_against_place, _order, _unjudged,
    )  # fmt: skip
    return tuple(reason for rule in rules if (reason := rule(Case((one, two), eyes))) is not None)


def _more(docs: list[list[str]]) -> tuple[int, int]:
    """Tell which of two lists has more documents, and how many: 1 for the second."""
    more = len(docs[1]) - len(docs[0])
    return (more > 0) - (more < 0), abs(more)


def _below(case: Case) -> Reason | None:
    near, deep = sorted(case.eyes, key=lambda eye: eye.depth)
    found = [
        [doc for doc in judged.within(deep.depth, near.depth, deep.level) if doc not in other.within(deep.depth)]
        for judged, other in (case.lists, case.lists[::-1])
    ]
    side, count = _more(found)
    winner, _ = case.named(side)
    docs = found[side > 0]
    if near.depth == deep.depth or not count or side != deep.side or not case.sees(deep, winner, docs):
        return None
    text = (
        f"{winner.name} finds {counted(count, 'more relevant document')} below rank {near.depth}: {deep.name} counts"
        f" {_them(count)}, {near.name} does not look there"
    )
    return Reason("below the cutoff", deep.name, winner.name, tuple(docs), text)


def _across(case: Case) -> Reason | None:
    near, deep = sorted(case.eyes, key=lambda eye: eye.depth)
    both = case.lists[0].within(deep.depth).keys() & case.lists[1].within(deep.depth).keys()
    found = [
        [doc for doc in judged.within(near.depth, 0, near.level) if doc in both and doc not in other.within(near.depth)]
        for judged, other in (case.lists, case.lists[::-1])
    ]
    side, more = _more(found)
    winner, loser = case.named(side)
    docs = found[side > 0]
    if near.depth == deep.depth or not more or near.side != side or deep.side == side:
        return None
    if not case.sees(near, winner, docs):
        return None
    count, back = len(docs), len(found[side < 0])
    if case.only_first(deep):
        rest = "looks at the first relevant document alone"
    elif not case.sees(deep, winner, docs):
        rest = f"does not look at {_them(count)}"
    else:
        rest = "looks at both places" if case.ordered(deep) else f"counts {_them(count)} in both lists"
    text = (
        f"{counted(count, 'relevant document')} of the first {near.depth} of {winner.name} {_stand(count)} below that"
        f" in {loser.name}{f', {back} the other way round' if back else ''}: {near.name} sees the step, {deep.name}"
        f" {rest}"
    )
    return Reason("across the cutoff", near.name, winner.name, tuple(docs), text)


def _first_relevant(case: Case) -> Reason | None:
    for eye, other in (case.eyes, case.eyes[::-1]):
        if eye.side == 0 or not case.only_first(eye):
            continue
        winner, loser = case.named(eye.side)
        (doc, rank), (_, worse) = (
            next(iter(judged.within(eye.depth, 0, eye.level).items()), ("", 0)) for judged in (winner, loser)
        )
        if not rank or (worse and worse <= rank):
            continue
        against = f"rather than {worse}" if worse else f"where {loser.name} has none"
        kind = "relevant document" if eye.level <= 1 else f"document of grade {eye.level:g} or better"
        text = f"{winner.name}'s first {kind} stands at {rank} {against}, and {eye.name} looks at no other"
        favoured, behind = (loser, winner) if other.side == -eye.side else (winner, loser)
        there = behind.within(other.depth)
        here = favoured.within(other.depth, 0, other.level) if other.side else {}
        higher = [name for name, place in here.items() if name != doc and place < there.get(name, math.inf)]
        if higher and case.sees(other, favoured, higher):
            many = counted(len(higher), "other relevant document")
            text += f"; {many} {_stand(len(higher))} higher in {favoured.name}, which {other.name} sees"
        return Reason("first relevant", eye.name, winner.name, tuple(dict.fromkeys((doc, *higher))), text)
    return None


def _grades(case: Case) -> Reason | None:
    """One list has more documents, the other better ones: a measure of grades against one that counts."""
    one, two = case.eyes
    weighs, counts = (one, two) if one.graded else (two, one)
    alike = one.graded == two.graded and getattr(one.measure, "gain", 0) == getattr(two.measure, "gain", 0)
    if alike or weighs.side in {0, counts.side} or case.only_first(counts):
        return None
    inside = [judged.within(case.depth) for judged in case.lists]
    first, second = (Counter(map(judged.grade, docs)) for judged, docs in zip(case.lists, inside, strict=True))
    more = {grade: second[grade] - first[grade] for grade in sorted(first | second)}
    plus, minus = (
        [f"{abs(count)} of grade {grade:g}" for grade, count in more.items() if count * side > 0] for side in (1, -1)
    )
    if not plus or not minus:
        return None
    how = "weighs them otherwise" if counts.graded else "sees only whether they are relevant"
    text = (
        f"{_in_first(case.depth)} {case.lists[1].name} has {' and '.join(plus)} more, {case.lists[0].name} has"
        f" {' and '.join(minus)} more: {weighs.name} weighs grades, {counts.name} {how}"
    )
    apart = [doc for docs, other in (inside, inside[::-1]) for doc in docs if doc not in other]
    return Reason("grades", weighs.name, case.named(weighs.side)[0].name, tuple(apart), text)


def _levels(case: Case) -> Reason | None:
    """One measure counts from a grade that is too low for the other."""
    low, high = sorted(case.eyes, key=lambda eye: eye.level)
    found = [[doc for doc in judged.within(low.depth) if judged.grade(doc) < high.level] for judged in case.lists]
    side, count = _more(found)
    if low.level == high.level or not count or low.side != side or high.side == side:
        return None
    winner, _ = case.named(side)
    text = (
        f"{winner.name} has {counted(count, 'more document')} of a grade below {high.level:g}: {low.name} counts"
        f" {_them(count)}, {high.name} does not"
    )
    return Reason("grades", low.name, winner.name, tuple(found[side > 0]), text)


def _number_against_place(case: Case) -> Reason | None:
    for place, count in (case.eyes, case.eyes[::-1]):
        inside = [list(judged.within(case.depth, 0, count.level)) for judged in case.lists]
        side, more = _more(inside)
        parted = more and all(inside) and count.side == side and place.side == -side
        if not parted or case.ordered(count) or not case.ordered(place) or case.only_first(place):
            continue
        many, few = case.named(side)
        late, early = (
            next(iter(judged.within(case.depth, 0, place.level).values()), math.inf) for judged in (many, few)
        )
        if early >= late or math.isinf(late):
            continue
        text = (
            f"{_in_first(case.depth)} {many.name} has {counted(more, 'more relevant document')}, {few.name} has its"
            f" first at {early} rather than {late}: {count.name} counts, {place.name} looks at the place"
        )
        return Reason("number against place", place.name, few.name, tuple(few.within(case.depth)), text)
    return None


def _order(case: Case) -> Reason | None:
    """Ask both measures what the documents that both lists have are worth at the ranks of each."""
    one, two = (judged.within(case.depth) for judged in case.lists)
    both = [doc for doc in one if doc in two]
    moved = [doc for doc in both if one[doc] != two[doc]]
    if not moved:
        return None

    worth: list[tuple[Eye, float]] = []
    for eye in case.eyes:
        before, after = (
            case.lists[0].asked(eye.measure, docs, [ranks[doc] for doc in docs])
            for docs, ranks in ((both, one), (sorted(both, key=two.__getitem__), two))
        )
        worth.append((eye, after - before))
    for (eye, own), (other, others) in (worth, worth[::-1]):
        if eye.side in {0, other.better(others), other.side} or eye.better(own) != eye.side or case.only_first(eye):
            continue
        sees = f"gives {decimal(others, 3, '+')}" if case.ordered(other) else "does not see it"
        text = (
            f"{counted(len(moved), 'relevant document')} that both have {_in_first(case.depth)} {_stand(len(moved))} at"
            f" {'another rank' if len(moved) == 1 else 'other ranks'} in {case.lists[1].name}: {eye.name} gives"
            f" {decimal(own, 3, '+')} for it, {other.name} {sees}"
        )
        return Reason("order within the first k", eye.name, case.named(eye.side)[0].name, tuple(moved), text)
    return None


def _unjudged(case: Case) -> Reason | None:
    for eye, other in (case.eyes, case.eyes[::-1]):
        if eye.side in {0, other.side} or eye.judged_only or math.isinf(eye.depth):
            continue
        if eye.depth == other.depth and not other.judged_only:
            continue
        winner, loser = case.named(eye.side)
        many, few = loser.unjudged(eye.depth), winner.unjudged(eye.depth)
        if len(many) <= len(few):
            continue
        text = (
            f"{len(many)} of the first {eye.depth} of {loser.name} have no judgment, {len(few)} of {winner.name}:"
            f" {eye.name} takes them as not relevant, which they need not be"
        )
        return Reason("unjudged documents", eye.name, winner.name, many, text)
    return None


def _in_first(depth: float) -> str:
    return "in the whole lists" if math.isinf(depth) else f"in the first {depth}"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _stand(count: int) -> str:
    return "stands" if count == 1 else "stand"
