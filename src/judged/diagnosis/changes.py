"""Quantity differences of several quantities over all topics and by slice, corrected for how many are looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.stats.correction import adjust
from judged.stats.paired import paired_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """A quantity of two systems, by topic: higher is better.

    Parameters
    ----------
    system, part
        Whose, and what.
    first, second
        (T,) each; the change is second minus first.
    family
        What its p-value is corrected together with, in slices and over all topics apart.
    """

    system: str
    part: str
    first: Floats
    second: Floats
    family: str


@dataclass(frozen=True)
class Change:
    """How much a quantity changed over some topics.

    Parameters
    ----------
    system
        The system that changed.
    slice
        The name of the slice, or ``all topics``.
    part
        The quantity.
    found
        The difference with its test, corrected by Holm within its family.
    small
        Whether the slice is too small to be tested: then p is NaN.
    every
        Whether these are all topics.
    """

    system: str
    slice: str
    part: str
    found: Difference
    small: bool = False
    every: bool = False

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
    """Test each quantity over each set of topics, set by set, with paired randomisation tests."""
    rows: list[Floats] = []
    for one in where:
        for quantity in quantities:
            rows += [np.where(one.mask, values, np.nan) for values in (quantity.first, quantity.second)]
    pairs = [(at, at + 1) for at in range(0, len(rows), 2)]
    found = iter(paired_tests(np.stack(rows), pairs, level=1 - alpha, resamples=resamples, seed=seed))
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
        adjusted = adjust([made[at].found.p for at in places], "holm").tolist()
        tested = sum(not math.isnan(p) for p in adjusted)
        for at, p in zip(places, adjusted, strict=True):
            made[at] = replace(made[at], found=made[at].found.corrected(p, "holm" if tested > 1 else "none"))
    return tuple(made)
