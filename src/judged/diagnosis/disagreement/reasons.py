"""Why two measures order two lists differently: what one of them sees in the judged documents, and the other does not.

What a measure sees is asked of it, by lists that hold some of the documents only; no formula stands here.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from judged.results.decimals import counted, decimal
from judged.results.types import cached_property
from judged.scoring.judging.judged import placed
from judged.stats.inputs import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

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


@dataclass(frozen=True, eq=False)
class Eye:
    """A measure, and how it looks at two lists."""

    measure: Measure
    lists: tuple[Judged, Judged]

    @cached_property
    def name(self) -> str:
        """What it is called."""
        return str(self.measure)

    @cached_property
    def depth(self) -> float:
        """Its cutoff; infinite for the whole list."""
        cutoff = getattr(self.measure, "cutoff", None)
        return cutoff if isinstance(cutoff, int) else math.inf

    @cached_property
    def rel(self) -> float:
        """The least grade that counts."""
        rel = getattr(self.measure, "rel", None)
        return max(float(rel), _ABOVE_ZERO) if isinstance(rel, (int, float)) else _ABOVE_ZERO

    @cached_property
    def judged_only(self) -> bool:
        """Whether it leaves out what has no judgment."""
        return bool(getattr(self.measure, "judged_only", False))

    @cached_property
    def side(self) -> int:
        """1 where it prefers the second list, -1 the first, 0 neither."""
        first, second = (float(self.measure(judged)[0]) for judged in self.lists)
        return self.better(second - first)

    def better(self, difference: float) -> int:
        """Give 1 where a difference is for the second list, -1 where it is against it, 0 where it is none."""
        if math.isnan(difference) or abs(difference) <= ROUNDING:
            return 0
        return 1 if (difference > 0) != (self.measure.properties.higher_is_better is False) else -1


@dataclass(frozen=True)
class JudgedList:
    """One judged list of one topic."""

    judged: Judged
    name: str
    rel: float  # documents of a lower grade are not relevant

    @cached_property
    def relevant(self) -> dict[str, int]:
        """The rank of each relevant document, in rank order."""
        return {doc: rank for doc, (rank, grade) in self.hits.items() if grade >= self.rel}

    @cached_property
    def hits(self) -> dict[str, tuple[int, float]]:
        """Rank and grade of each judged document, in rank order."""
        pairs = zip(self.judged.rank.tolist(), self.judged.grade.tolist(), strict=True)
        return dict(zip(self.judged.doc, pairs, strict=True))

    def within(self, depth: float, above: float = 0, rel: float = 0) -> dict[str, int]:
        """Give the relevant documents, of a grade or better, below a rank and down to another."""
        return {doc: rank for doc, rank in self.relevant.items() if above < rank <= depth and self.grade(doc) >= rel}

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

    @property
    def inside(self) -> str:
        """The same in words."""
        return "in the whole lists" if math.isinf(self.depth) else f"in the first {self.depth}"

    @property
    def both_ways(self) -> tuple[tuple[Eye, Eye], tuple[Eye, Eye]]:
        """Each measure, and the other one."""
        one, two = self.eyes
        return (one, two), (two, one)

    def named(self, side: int) -> tuple[JudgedList, JudgedList]:
        """Give the list on a side, and the other."""
        return (self.lists[1], self.lists[0]) if side > 0 else self.lists

    def more(self, docs: Callable[[JudgedList, JudgedList], list[str]]) -> tuple[int, list[str], list[str]]:
        """Tell which list has more documents of a kind, 1 for the second, with these documents and the other's."""
        first, second = docs(*self.lists), docs(*self.lists[::-1])
        side = int(np.sign(len(second) - len(first)))
        return (side, second, first) if side > 0 else (side, first, second)

    def worth(self, eye: Eye, *ranks: int) -> float:
        """Score a list that holds nothing but a document that the measure counts; NaN where there is none."""
        for judged in self.lists:
            if docs := list(judged.within(math.inf, rel=eye.rel))[:1]:
                return judged.asked(eye.measure, docs * len(ranks), ranks)
        return math.nan

    def ordered(self, eye: Eye) -> bool:
        """Ask whether a measure tells a high rank from a low one."""
        return abs(self.worth(eye, 1) - self.worth(eye, int(min(eye.depth, _TENTH)))) > ROUNDING

    def only_first(self, eye: Eye) -> bool:
        """Ask whether a measure looks at the first relevant document alone."""
        return eye.depth >= 2 and abs(self.worth(eye, 1, 2) - self.worth(eye, 1)) <= ROUNDING

    def sees(self, eye: Eye, judged: JudgedList, docs: Sequence[str]) -> bool:
        """Ask whether a measure would miss these documents."""
        left = {doc: rank for doc, rank in judged.relevant.items() if doc not in docs}
        whole, rest = (judged.asked(eye.measure, list(kept), list(kept.values())) for kept in (judged.relevant, left))
        return abs(whole - rest) > ROUNDING


def reasons(lists: tuple[Judged, Judged], measures: tuple[Measure, Measure]) -> tuple[Reason, ...]:
    """Say what in two judged lists makes two measures prefer what they prefer.

    >>> from judged import judge
    >>> from judged.scoring.measures import parse
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0}}
    >>> ranked = [{"q": {doc: -at for at, doc in enumerate(docs)}} for docs in (["a", "x"], ["x", "a", "y", "b", "c"])]
    >>> lists = tuple(judge(qrels, run) for run in ranked)
    >>> [(reason.kind, reason.documents) for reason in reasons(lists, (parse("P@1"), parse("R@5")))]
    [('below the cutoff', ('b', 'c')), ('across the cutoff', ('a',))]
    """
    # Only what speaks for the preference of a measure is named, and only where the other measure does not see it, or
    # weighs it otherwise. Several may apply; where none of these kinds does, there is none.
    eyes = Eye(measures[0], lists), Eye(measures[1], lists)
    rel = min(eye.rel for eye in eyes)
    names = [judged.run.name for judged in lists]
    names = names if names[0] != names[1] else ["the first", "the second"]
    condensed = all(eye.judged_only for eye in eyes)
    first, second = (
        JudgedList(judged.condensed if condensed else judged, name, rel)
        for judged, name in zip(lists, names, strict=True)
    )
    rules = _below, _across, _first_relevant, _grades, _lowest_relevant, _number_against_place, _order, _unjudged
    return tuple(chain.from_iterable(rule(Case((first, second), eyes)) for rule in rules))


def _below(case: Case) -> Iterator[Reason]:
    near, deep = sorted(case.eyes, key=lambda eye: eye.depth)
    side, docs, others = case.more(
        lambda judged, other: [
            doc for doc in judged.within(deep.depth, near.depth, deep.rel) if doc not in other.within(deep.depth)
        ]
    )
    winner, _ = case.named(side)
    if near.depth < deep.depth and side and side == deep.side and case.sees(deep, winner, docs):
        text = (
            f"{winner.name} finds {counted(len(docs) - len(others), 'more relevant document')} below rank {near.depth}:"
            f" {deep.name} looks there, {near.name} does not"
        )
        yield Reason("below the cutoff", deep.name, winner.name, tuple(docs), text)


def _across(case: Case) -> Iterator[Reason]:
    near, deep = sorted(case.eyes, key=lambda eye: eye.depth)
    both = case.lists[0].within(deep.depth).keys() & case.lists[1].within(deep.depth).keys()
    side, docs, back = case.more(
        lambda judged, other: [
            doc for doc in judged.within(near.depth, 0, near.rel) if doc in both and doc not in other.within(near.depth)
        ]
    )
    winner, loser = case.named(side)
    parted = near.depth < deep.depth and side and near.side == side != deep.side
    if not parted or not case.sees(near, winner, docs):
        return
    if case.only_first(deep):
        rest = "looks at the first relevant document alone"
    elif not case.sees(deep, winner, docs):
        rest = "does not see it"
    else:
        rest = "looks at both places" if case.ordered(deep) else "counts the same in both lists"
    text = (
        f"{winner.name} has {counted(len(docs), 'relevant document')} in the first {near.depth} that {loser.name} has"
        f" below{f', {len(back)} the other way round' if back else ''}: {near.name} sees the step, {deep.name} {rest}"
    )
    yield Reason("across the cutoff", near.name, winner.name, tuple(docs), text)


def _first_relevant(case: Case) -> Iterator[Reason]:
    for eye, other in case.both_ways:
        winner, loser = case.named(eye.side)
        (doc, rank), (_, worse) = (
            next(iter(judged.within(eye.depth, 0, eye.rel).items()), ("", math.inf)) for judged in (winner, loser)
        )
        if eye.side == 0 or not case.only_first(eye) or rank >= worse:
            continue
        against = f"where {loser.name} has none" if math.isinf(worse) else f"rather than {worse}"
        kind = "relevant document" if eye.rel <= 1 else f"document of grade {eye.rel:g} or better"
        text = f"{winner.name}'s first {kind} stands at {rank} {against}, and {eye.name} looks at no other"
        favoured, behind = case.named(other.side)
        there = behind.within(other.depth)
        here = favoured.within(other.depth, 0, other.rel) if other.side else {}
        higher = [name for name, place in here.items() if name != doc and place < there.get(name, math.inf)]
        if higher and case.sees(other, favoured, higher):
            text += f"; {favoured.name} has {counted(len(higher), 'other one')} higher, which {other.name} sees"
        yield Reason("first relevant", eye.name, winner.name, tuple(dict.fromkeys((doc, *higher))), text)
        return


def _grades(case: Case) -> Iterator[Reason]:
    """One list has more documents, the other better ones: a measure of grades against one that counts."""
    eye, other = case.eyes
    graded = [eye.measure.properties.graded for eye in case.eyes]
    weighs, counts = (eye, other) if graded[0] else (other, eye)
    alike = graded[0] == graded[1] and getattr(eye.measure, "gain", 0) == getattr(other.measure, "gain", 0)
    if alike or weighs.side in {0, counts.side} or case.only_first(counts):
        return
    inside = [judged.within(case.depth) for judged in case.lists]
    first, second = (Counter(map(judged.grade, docs)) for judged, docs in zip(case.lists, inside, strict=True))
    more = {grade: second[grade] - first[grade] for grade in sorted(first | second)}
    plus, minus = (
        [f"{abs(count)} of grade {grade:g}" for grade, count in more.items() if count * side > 0] for side in (1, -1)
    )
    if plus and minus:
        how = "weighs them otherwise" if all(graded) else "sees only whether they are relevant"
        text = (
            f"{case.inside} {case.lists[1].name} has {' and '.join(plus)} more, {case.lists[0].name} has"
            f" {' and '.join(minus)} more: {weighs.name} weighs grades, {counts.name} {how}"
        )
        apart = [doc for docs, other in (inside, inside[::-1]) for doc in docs if doc not in other]
        yield Reason("grades", weighs.name, case.named(weighs.side)[0].name, tuple(apart), text)


def _lowest_relevant(case: Case) -> Iterator[Reason]:
    """One measure counts from a grade that is too low for the other."""
    low, high = sorted(case.eyes, key=lambda eye: eye.rel)
    side, docs, others = case.more(
        lambda judged, _: [doc for doc in judged.within(low.depth) if judged.grade(doc) < high.rel]
    )
    if low.rel < high.rel and side and low.side == side != high.side:
        winner, _ = case.named(side)
        text = (
            f"{winner.name} has {counted(len(docs) - len(others), 'more document')} of a grade below {high.rel:g}:"
            f" {low.name} counts such documents, {high.name} does not"
        )
        yield Reason("grades", low.name, winner.name, tuple(docs), text)


def _number_against_place(case: Case) -> Iterator[Reason]:
    for place, count in case.both_ways:
        side, docs, others = case.more(lambda judged, _, rel=count.rel: [*judged.within(case.depth, 0, rel)])
        parted = side and others and count.side == side == -place.side
        if not parted or case.ordered(count) or not case.ordered(place) or case.only_first(place):
            continue
        many, few = case.named(side)
        late, early = (next(iter(judged.within(case.depth, 0, place.rel).values()), math.inf) for judged in (many, few))
        if early < late < math.inf:
            text = (
                f"{case.inside} {many.name} has {counted(len(docs) - len(others), 'more relevant document')},"
                f" {few.name} has its first at {early} rather than {late}: {count.name} counts, {place.name} looks at"
                " the place"
            )
            yield Reason("number against place", place.name, few.name, tuple(few.within(case.depth)), text)
            return


def _order(case: Case) -> Iterator[Reason]:
    """Ask both measures what the documents that both lists have are worth at the ranks of each."""
    ranks_in_first, ranks_in_second = (judged.within(case.depth) for judged in case.lists)
    both = [doc for doc in ranks_in_first if doc in ranks_in_second]
    moved = [doc for doc in both if ranks_in_first[doc] != ranks_in_second[doc]]
    if not moved:
        return
    worth: dict[Eye, float] = {}
    reordered = sorted(both, key=ranks_in_second.__getitem__)
    for eye in case.eyes:
        before = case.lists[0].asked(eye.measure, both, [ranks_in_first[doc] for doc in both])
        after = case.lists[0].asked(eye.measure, reordered, [ranks_in_second[doc] for doc in reordered])
        worth[eye] = after - before
    for eye, other in case.both_ways:
        own, others = worth[eye], worth[other]
        if eye.side in {0, other.better(others), other.side} or eye.better(own) != eye.side or case.only_first(eye):
            continue
        sees = f"gives {decimal(others, 3, '+')}" if case.ordered(other) else "does not see it"
        text = (
            f"{case.inside} {case.lists[1].name} has {counted(len(moved), 'relevant document')} of both in another"
            f" place: {eye.name} gives {decimal(own, 3, '+')} for it, {other.name} {sees}"
        )
        yield Reason("order within the first k", eye.name, case.named(eye.side)[0].name, tuple(moved), text)
        return


def _unjudged(case: Case) -> Iterator[Reason]:
    for eye, other in case.both_ways:
        if eye.side in {0, other.side} or eye.judged_only or math.isinf(eye.depth):
            continue
        winner, loser = case.named(eye.side)
        many, few = loser.unjudged(eye.depth), winner.unjudged(eye.depth)
        if len(many) > len(few) and (eye.depth != other.depth or other.judged_only):
            text = (
                f"{len(many)} of the first {eye.depth} of {loser.name} have no judgment, {len(few)} of {winner.name}:"
                f" {eye.name} takes them as not relevant, which they need not be"
            )
            yield Reason("unjudged documents", eye.name, winner.name, many, text)
            return
