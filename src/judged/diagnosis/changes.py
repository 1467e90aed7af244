"""Quantity differences of several quantities over all topics and by slice, corrected for how many are looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.stats.correction import corrected_family
from judged.stats.paired import paired_tests
from judged.stats.skewness import allowing_for_skew

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged._types import Bools, Floats
    from judged.slicing.slices import Slicing
    from judged.stats.results import Difference

ALL = "all topics"


class Where(NamedTuple):
    """Some topics: the name, the topics (T,) and whether there are too few to be judged by."""

    name: str
    mask: Bools
    small: bool
    every: bool = False


class Quantity(NamedTuple):
    """A quantity of two systems, by topic: higher is better."""

    # system, part: whose, and what
    system: str
    part: str
    # first, second: (T,) each; the change is second minus first
    first: Floats
    second: Floats
    family: str  # what its p-value is corrected together with, in slices and over all topics apart


@dataclass(frozen=True)
class Change:
    """How much a quantity changed over some topics."""

    system: str  # the system that changed
    slice: str  # the name of the slice, or `all topics`
    part: str  # the quantity
    found: Difference  # the difference with its test, corrected by Holm within its family
    small: bool = False  # whether the slice is too small to be tested: then p is NaN
    every: bool = False  # whether these are all topics

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most alpha."""
        return self.found.significant


def everywhere(topics: int, slicing: Slicing | None) -> list[Where]:
    """Give all topics, and then each slice."""
    made = [Where(ALL, np.ones(topics, dtype=np.bool_), small=False, every=True)]
    if slicing is not None:
        parts = zip(slicing.names, slicing.members, slicing.small.tolist(), strict=True)
        made += [Where(name, mask, small) for name, mask, small in parts]
    return made


def compared(
    quantities: Sequence[Quantity], where: Sequence[Where], *, alpha: float, resamples: int, seed: int
) -> tuple[Change, ...]:
    """Test each quantity over each set of topics, set by set, with paired randomisation tests; slices with a second."""
    test = _tests(quantities, where, resamples, seed)
    found = iter(test(range(len(quantities) * len(where)), 1 - alpha))
    made: list[Change] = []
    families: dict[tuple[bool, str], list[int]] = {}
    for one in where:
        for quantity in quantities:
            families.setdefault((one.every, quantity.family), []).append(len(made))
            difference = next(found)
            if one.small:
                difference = replace(difference, p=math.nan, interval=None, note="too few topics to be tested")
            made.append(Change(quantity.system, one.name, quantity.part, difference, one.small, one.every))
    for places in families.values():

        def again(some: list[int], level: float, places: list[int] = places) -> tuple[Difference, ...]:
            return test([places[at] for at in some], level)

        family = corrected_family([made[at].found for at in places], "holm", alpha, again)
        for at, one in zip(places, family, strict=True):
            made[at] = replace(made[at], found=one)
    return tuple(made)


def _tests(
    quantities: Sequence[Quantity], where: Sequence[Where], resamples: int, seed: int
) -> Callable[[Sequence[int], float], tuple[Difference, ...]]:
    """Give what tests some of the quantities, counted through set by set, at a level."""
    both = [(one.mask, quantity) for one in where for quantity in quantities]
    first, second = (
        np.stack([np.where(mask, getattr(quantity, name), np.nan) for mask, quantity in both])
        for name in ("first", "second")
    )
    pairs = [(at, len(both) + at) for at in range(len(both))]

    def test(places: Sequence[int], level: float) -> tuple[Difference, ...]:
        table = np.concatenate([first, second])
        made = list(paired_tests(table, [pairs[at] for at in places], level=level, resamples=resamples, seed=seed))
        cut = [at for at, place in enumerate(places) if not where[place // len(quantities)].every]
        gaps = [second[places[at]] - first[places[at]] for at in cut]
        for at, doubted in zip(cut, allowing_for_skew(gaps, [made[at] for at in cut]), strict=True):
            made[at] = doubted
        return tuple(made)

    return test
