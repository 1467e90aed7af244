"""Why two measures order two lists differently: what one of them sees in the judged documents, and the other does not.

What a measure sees is asked of it, by lists that hold some of the documents only; no formula stands here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.decimals import decimal
from judged.diagnosis.disagreement.sight import Case, Eye, JudgedList

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.judging import Judged
    from judged.measures import Measure

KINDS = {
    "below the cutoff": "one list has more relevant documents where only the deeper measure looks",
    "across the cutoff": "documents of both lists stand above the shallow cutoff in one and below it in the other",
    "first relevant": "a measure looks at the first relevant document only",
    "grades": "the lists differ in grades that the measures weigh differently",
    "number against place": "one list has more relevant documents, the other has its own higher up",
    "order within the first k": "the same documents stand at other ranks, which the measures weigh differently",
    "unjudged documents": "one list has more documents without a judgment where one measure looks",
}


@dataclass(frozen=True)
class Reason:
    """One thing that a measure sees in two judged lists, and that speaks for the system which it prefers."""

    kind: str  # a name in `KINDS`
    measure: str  # the measure that sees it
    system: str  # the system that it speaks for
    documents: tuple[str, ...]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Give everything as plain Python values, ready for JSON."""
        return {**vars(self), "documents": list(self.documents)}


def reasons(lists: tuple[Judged, Judged], measures: tuple[Measure, Measure]) -> tuple[Reason, ...]:
    """Say what in two judged lists makes two measures prefer what they prefer.

    >>> from judged import judge
    >>> from judged.measures import parse
    >>> qrels = {"q": {"a": 1, "b": 1, "c": 1, "x": 0}}
    >>> ranked = [{"q": {doc: -at for at, doc in enumerate(docs)}} for docs in (["a", "x"], ["x", "a", "y", "b", "c"])]
    >>> lists = tuple(judge(qrels, run) for run in ranked)
    >>> [(one.kind, one.documents) for one in reasons(lists, (parse("P@1"), parse("R@5")))]
    [('below the cutoff', ('b', 'c')), ('across the cutoff', ('a',))]
    """
    # Only what speaks for the preference of a measure is named, and only where the other measure does not see it, or
    # weighs it otherwise. Several may apply; where none of these kinds does, there is none.
    eyes: list[Eye] = []
    for measure in measures:
        first, second = (float(measure(one)[0]) for one in lists)
        gap = second - first
        eyes.append(Eye(measure, 0 if math.isnan(gap) else Eye(measure, 0).better(gap)))
    level = min(eye.level for eye in eyes)
    seen = [one.condensed if all(eye.judged_only for eye in eyes) else one for one in lists]
    names = [one.run.name for one in lists]
    names = names if names[0] != names[1] else ["the first", "the second"]
    made = (JudgedList(seen[0], names[0], level), JudgedList(seen[1], names[1], level))
    case = Case(made, (eyes[0], eyes[1]))
    rules: tuple[Callable[[Case], Reason | None], ...] = (
        _below, _across, _first_relevant, _grades, _levels, _number_against_place, _order, _unjudged,
    )  # fmt: skip
    return tuple(found for rule in rules if (found := rule(case)) is not None)


def _below(case: Case) -> Reason | None:
    if case.shallow is None:
        return None
    near, deep = case.shallow
    found = [
        [doc for doc in one.within(deep.depth, near.depth, deep.level) if doc not in other.within(deep.depth)]
        for one, other in (case.lists, case.lists[::-1])
    ]
    more = len(found[1]) - len(found[0])
    if not more or (1 if more > 0 else -1) != deep.side:
        return None
    winner, _ = case.named(deep.side)
    if not case.sees(deep, winner, found[deep.side > 0]):
        return None
    text = (
        f"{winner.name} finds {_documents(abs(more), 'more relevant')} below rank {near.depth}: {deep.name} counts"
        f" {_them(abs(more))}, {near.name} does not look there"
    )
    return Reason("below the cutoff", deep.name, winner.name, tuple(found[deep.side > 0]), text)


def _across(case: Case) -> Reason | None:
    if case.shallow is None:
        return None
    near, deep = case.shallow
    both = case.lists[0].within(deep.depth).keys() & case.lists[1].within(deep.depth).keys()
    found = [
        [doc for doc in one.within(near.depth, 0, near.level) if doc in both and doc not in other.within(near.depth)]
        for one, other in (case.lists, case.lists[::-1])
    ]
    more = len(found[1]) - len(found[0])
    if not more or (1 if more > 0 else -1) != near.side or deep.side == near.side:
        return None
    winner, loser = case.named(near.side)
    docs = found[near.side > 0]
    if not case.sees(near, winner, docs):
        return None
    count, back = len(docs), len(found[near.side < 0])
    rest = "looks at both places" if case.ordered(deep) else f"counts {_them(count)} in both lists"
    rest = rest if case.sees(deep, winner, docs) else f"does not look at {_them(count)}"
    rest = "looks at the first relevant document alone" if case.only_first(deep) else rest
    text = (
        f"{_documents(count, 'relevant')} of the first {near.depth} of {winner.name} {_stand(count)} below that"
        f" in {loser.name}{f', {back} the other way round' if back else ''}: {near.name} sees the step, {deep.name}"
        f" {rest}"
    )
    return Reason("across the cutoff", near.name, winner.name, tuple(docs), text)


def _first_relevant(case: Case) -> Reason | None:
    for eye, other in (case.eyes, case.eyes[::-1]):
        if eye.side == 0 or not case.only_first(eye):
            continue
        firsts = [next(iter(one.within(eye.depth, 0, eye.level).items()), ("", 0)) for one in case.lists]
        winner, loser = case.named(eye.side)
        (doc, rank), (_, worse) = (firsts[1], firsts[0]) if eye.side > 0 else (firsts[0], firsts[1])
        if not rank or (worse and worse <= rank):
            continue
        against = f"rather than {worse}" if worse else f"where {loser.name} has none"
        kind = "relevant document" if eye.level <= 1 else f"document of grade {eye.level:g} or better"
        text = f"{winner.name}'s first {kind} stands at {rank} {against}, and {eye.name} looks at no other"
        favoured, behind = (loser, winner) if other.side == -eye.side else (winner, loser)
        higher = _higher(favoured, behind, other, doc) if other.side else []
        if higher and case.sees(other, favoured, higher):
            many = _documents(len(higher), "other relevant")
            text += f"; {many} {_stand(len(higher))} higher in {favoured.name}, which {other.name} sees"
        return Reason("first relevant", eye.name, winner.name, tuple(dict.fromkeys((doc, *higher))), text)
    return None


def _higher(one: JudgedList, other: JudgedList, eye: Eye, besides: str) -> list[str]:
    """Give the documents that a measure counts and that stand higher in one list than in the other."""
    there = other.within(eye.depth)
    here = one.within(eye.depth, 0, eye.level)
    return [doc for doc, rank in here.items() if doc != besides and rank < there.get(doc, math.inf)]


def _grades(case: Case) -> Reason | None:
    """One list has more documents, the other better ones: a measure of grades against one that counts."""
    one, two = case.eyes
    if one.graded == two.graded and getattr(one.measure, "gain", 0) == getattr(two.measure, "gain", 0):
        return None
    weighs, counts = (one, two) if one.graded else (two, one)
    if weighs.side in {0, counts.side} or case.only_first(counts):
        return None
    inside = [one.within(case.depth) for one in case.lists]
    tally = [_tally(one, docs) for one, docs in zip(case.lists, inside, strict=True)]
    more = {grade: tally[1].get(grade, 0) - tally[0].get(grade, 0) for grade in sorted(tally[0] | tally[1])}
    if not (any(count > 0 for count in more.values()) and any(count < 0 for count in more.values())):
        return None
    second, first = (
        [f"{abs(count)} of grade {grade:g}" for grade, count in more.items() if count * side > 0] for side in (1, -1)
    )
    winner, _ = case.named(weighs.side)
    how = "weighs them otherwise" if counts.graded else "sees only whether they are relevant"
    text = (
        f"{_in_first(case.depth)} {case.lists[1].name} has {_and(second)} more, {case.lists[0].name} has {_and(first)}"
        f" more: {weighs.name} weighs grades, {counts.name} {how}"
    )
    apart = [doc for docs, other in (inside, inside[::-1]) for doc in docs if doc not in other]
    return Reason("grades", weighs.name, winner.name, tuple(apart), text)


def _levels(case: Case) -> Reason | None:
    """One measure counts from a grade that is too low for the other."""
    low, high = sorted(case.eyes, key=lambda eye: eye.level)
    found = [
        [doc for doc in one.within(low.depth) if one.grade(doc) < high.level and low.level < high.level]
        for one in case.lists
    ]
    more = len(found[1]) - len(found[0])
    if not more or (1 if more > 0 else -1) != low.side or high.side == low.side:
        return None
    winner, _ = case.named(low.side)
    text = (
        f"{winner.name} has {_documents(abs(more), 'more')} of a grade below {high.level:g}: {low.name} counts"
        f" {_them(abs(more))}, {high.name} does not"
    )
    return Reason("grades", low.name, winner.name, tuple(found[low.side > 0]), text)


def _tally(one: JudgedList, docs: dict[str, int]) -> dict[float, int]:
    grades = [one.grade(doc) for doc in docs]
    return {grade: grades.count(grade) for grade in set(grades)}


def _number_against_place(case: Case) -> Reason | None:
    for place, count in (case.eyes, case.eyes[::-1]):
        inside = [list(one.within(case.depth, 0, count.level).values()) for one in case.lists]
        more = len(inside[1]) - len(inside[0])
        side = 1 if more > 0 else -1
        if (
            not more
            or not all(inside)
            or count.side != side
            or place.side != -side
            or case.ordered(count)
            or not case.ordered(place)
        ):
            continue
        many, few = case.named(side)
        firsts = [next(iter(one.within(case.depth, 0, place.level).values()), math.inf) for one in (many, few)]
        if firsts[1] >= firsts[0] or math.isinf(firsts[0]) or case.only_first(place):
            continue
        text = (
            f"{_in_first(case.depth)} {many.name} has {_documents(abs(more), 'more relevant')}, {few.name} has its"
            f" first at {firsts[1]} rather than {firsts[0]}: {count.name} counts, {place.name} looks at the place"
        )
        return Reason("number against place", place.name, few.name, tuple(few.within(case.depth)), text)
    return None


def _order(case: Case) -> Reason | None:
    """Ask both measures what the documents that both lists have are worth at the ranks of each."""
    one, two = (found.within(case.depth) for found in case.lists)
    both = [doc for doc in one if doc in two]
    moved = [doc for doc in both if one[doc] != two[doc]]
    if not moved:
        return None
    worth: list[float] = []
    for eye in case.eyes:
        before = case.lists[0].asked(eye.measure, both, [one[doc] for doc in both])
        ordered = sorted(both, key=two.__getitem__)
        after = case.lists[0].asked(eye.measure, ordered, [two[doc] for doc in ordered])
        worth.append(after - before)
    for at, eye in enumerate(case.eyes):
        other = case.eyes[1 - at]
        weighed = other.better(worth[1 - at])
        if eye.side in {0, weighed, other.side} or eye.better(worth[at]) != eye.side or case.only_first(eye):
            continue
        winner, _ = case.named(eye.side)
        sees = f"gives {decimal(worth[1 - at], 3, '+')}" if case.ordered(other) else "does not see it"
        ranks = "another rank" if len(moved) == 1 else "other ranks"
        text = (
            f"{_documents(len(moved), 'relevant')} that both have {_in_first(case.depth)} {_stand(len(moved))} at"
            f" {ranks} in {case.lists[1].name}: {eye.name} gives {decimal(worth[at], 3, '+')} for it, {other.name}"
            f" {sees}"
        )
        return Reason("order within the first k", eye.name, winner.name, tuple(moved), text)
    return None


def _unjudged(case: Case) -> Reason | None:
    for eye, other in (case.eyes, case.eyes[::-1]):
        if eye.side in {0, other.side} or eye.judged_only or math.isinf(eye.depth):
            continue
        if eye.depth == other.depth and not other.judged_only:
            continue
        winner, loser = case.named(eye.side)
        many, few = loser.unjudged(eye.depth), winner.unjudged(eye.depth)
        if many <= few:
            continue
        text = (
            f"{many} of the first {eye.depth} of {loser.name} have no judgment, {few} of {winner.name}: {eye.name}"
            " takes them as not relevant, which they need not be"
        )
        return Reason("unjudged documents", eye.name, winner.name, _without_judgment(loser, eye.depth), text)
    return None


def _without_judgment(one: JudgedList, depth: float) -> tuple[str, ...]:
    every = one.one.everything
    here = np.flatnonzero(every.rank <= depth)
    return tuple(doc for doc in every.doc.take(here).to_pylist() if doc not in one.hits)


def _in_first(depth: float) -> str:
    return "in the whole lists" if math.isinf(depth) else f"in the first {depth}"


def _documents(count: int, kind: str) -> str:
    return f"{count} {kind} document{'' if count == 1 else 's'}"


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _stand(count: int) -> str:
    return "stands" if count == 1 else "stand"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(parts)
