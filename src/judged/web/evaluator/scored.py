"""The lists as judged lists, and their scores: what each measure says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.errors import MeasureError
from judged.judging import judge
from judged.judging.dense import Returned
from judged.web.evaluator.listed import Group, Listed, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.evaluator.state import State

LIST, OTHER, BEFORE = "list", "other", "before"
TOO_LARGE = "comes to numbers that are too large to be computed"


@dataclass(frozen=True)
class World:
    """A ranking with the judgments that count for it."""

    name: str  # `list`, `other` or `before`
    docs: tuple[str, ...]  # in rank order
    grades: dict[str, float]  # by document, returned or not

    @property
    def run(self) -> dict[str, float]:
        """The ranking as scores."""
        return {doc: -float(rank) for rank, doc in enumerate(self.docs, 1)}


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of a state, judged."""

    state: State

    @cached_property
    def worlds(self) -> tuple[World, ...]:
        """The list, the other one, and the list before: as many as there are."""
        return worlds_of(self.state)

    @cached_property
    def judged(self) -> Judged:
        """All lists, each as a topic."""
        return judged_of(*self.worlds)

    @cached_property
    def apart(self) -> dict[str, Judged]:
        """Each list with judgments of its own."""
        return {world.name: judged_of(world) for world in self.worlds}

    @cached_property
    def alike(self) -> bool:
        """Whether the same documents are judged in all lists."""
        return all(world.grades.keys() == self.worlds[0].grades.keys() for world in self.worlds)

    def scores(self, one: Listed) -> tuple[dict[str, float | None], str]:
        """Score every list by a measure; None where it has no number, and why."""
        if one.measure is None:
            return {}, one.why
        if one.apart or self.alike:
            values, why = _scores(one.measure, self.judged)
            if not why or len(self.worlds) == 1:
                return values, why
        found = [_scores(one.measure, judged) for judged in self.apart.values()]  # perhaps only one list is to blame
        values = {name: value for part, _ in found for name, value in part.items()}
        return values, next((why for _, why in found if why), "")


def worlds_of(state: State) -> tuple[World, ...]:
    """Give the list, the other one, and the list before, as many as there are, each with what is judged in it."""
    labels = state.labels
    gone = _named_missing(state, state.missing, labels)
    docs = tuple(item.doc for item in state.items)
    worlds = [World(LIST, docs, labels | gone)]
    if state.other is not None:
        worlds.append(World(OTHER, tuple(item.doc for item in state.other), labels | gone))
    if state.before is not None:
        was = {item.doc: item.grade for item in state.before}
        beside = {item.doc: item.grade for item in state.other or () if item.doc not in was}
        known = {doc: grade for doc, grade in {**beside, **was}.items() if grade is not None}
        worlds.append(World(BEFORE, tuple(was), known | _named_missing(state, state.before_missing, known)))
    return tuple(worlds)


def judged_of(*worlds: World) -> Judged:
    """Judge rankings, each with its own judgments; a world in which nothing is judged has nothing relevant."""
    qrels = {world.name: world.grades for world in worlds if world.grades}
    runs = {world.name: world.run for world in worlds}
    judged = judge(qrels or {"": {"": 0.0}}, runs).over("run")
    by_name = {world.name: world for world in worlds}
    docs = [by_name[name].docs for name in judged.query_ids]
    shown = Returned(
        np.repeat(np.arange(len(docs)), [len(one) for one in docs]),
        np.array([rank for one in docs for rank in range(1, len(one) + 1)], dtype=np.int64),
        pa.array([doc for one in docs for doc in one], pa.string()),
    )
    return replace(judged, shown=shown)  # so that no measure need read the run again


def rows(lists: Lists, only: frozenset[str] = frozenset()) -> Iterator[tuple[Group, list[dict[str, Any]]]]:
    """Score the lists group by group, by all measures or those of some families; no group is empty."""
    with np.errstate(all="ignore"):  # what is too large is None, and said
        for group, measures in listed(lists.state.options):
            wanted = [one for one in measures if not only or one.family in only]
            if wanted:
                yield group, [_row(lists, one) for one in wanted]


def _row(lists: Lists, one: Listed) -> dict[str, Any]:
    values, why = lists.scores(one)
    value, other, before = (values.get(name) for name in (LIST, OTHER, BEFORE))
    return {
        "name": one.name,
        "family": one.family,
        "value": value,
        "other": other,
        "difference": _minus(other, value),
        "before": before,
        "moved": _minus(value, before),
        **one.facts,
        "why": why,
    }


def _scores(measure: Measure, judged: Judged) -> tuple[dict[str, float | None], str]:
    """Score each list by its name; None where there is no number, and why."""
    try:
        values = measure(judged).tolist()
    except MeasureError as error:
        return dict.fromkeys(judged.query_ids), str(error)
    except (ValueError, ArithmeticError):  # logarithms and powers of numbers beyond what a double holds
        return dict.fromkeys(judged.query_ids), TOO_LARGE
    finite = [value if isfinite(value) else None for value in values]
    return dict(zip(judged.query_ids, finite, strict=True)), TOO_LARGE if None in finite else ""


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _named_missing(state: State, grades: tuple[float, ...], known: dict[str, float]) -> dict[str, float]:
    """Name the documents that were not returned, and fill them up to the number that is relevant."""
    found = sum(map(state.is_relevant, (*known.values(), *grades)))
    filled = max(0, (state.asked_relevant or 0) - found)
    taken = {item.doc for items in (state.items, state.other or (), state.before or ()) for item in items}
    start = "m"
    while any(doc.startswith(start) for doc in taken):
        start += "'"
    return {f"{start}{at}": grade for at, grade in enumerate((*grades, *(state.options.rel,) * filled), 1)}
