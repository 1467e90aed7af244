"""Tests of several quantities over several sets of topics, those of a family corrected together."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.comparison.compare import differences
from judged.scoring.measures.aggregates import logarithms
from judged.stats.correction import corrected_family
from judged.stats.skewness import allowing_for_skew

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Sequence

    from judged._types import Bools, Floats
    from judged.comparison import Choices
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.stats.results import Difference

    Key = tuple[int, int]  # the place of a set of topics, and that of a quantity

ALL = "all topics"


class Where(NamedTuple):
    """Some topics: the name, the topics (T,) and whether there are too few to be judged by."""

    name: str
    mask: Bools
    small: bool
    every: bool = False


def everywhere(topics: int, slicing: Slicing | None) -> list[Where]:
    """Give all topics, and then each slice."""
    where = [Where(ALL, np.ones(topics, dtype=np.bool_), small=False, every=True)]
    if slicing is not None:
        where += map(Where, slicing.names, slicing.members, slicing.small.tolist())
    return where


class Quantity(NamedTuple):
    """What two systems are held against each other by, topic by topic: (T,) each, NaN where there is no score."""

    first: Floats
    second: Floats
    geometric: bool = False  # whether means of logarithms are compared
    family: Hashable = ""  # what its p-values are corrected together with, in slices and over all topics apart
    reach: float = math.inf  # how far from 0 a difference can be: no interval goes beyond

    @property
    def gaps(self) -> Floats:
        """Second minus first, of logarithms for a geometric mean."""
        if self.geometric:
            return logarithms(self.second) - logarithms(self.first)
        return self.second - self.first


def tests_of(
    quantities: Sequence[Quantity], where: Sequence[Where], choices: Choices, untested: Container[Key]
) -> dict[Key, Difference]:
    """Test each quantity over each set of topics, on slices with Hall's test too; corrected family by family."""
    families: dict[Hashable, list[Key]] = {}
    for at, place in product(range(len(where)), range(len(quantities))):
        families.setdefault((where[at].every, quantities[place].family), []).append((at, place))

    def test(keys: Sequence[Key], level: float) -> list[Difference]:
        tests: dict[Key, Difference] = {}

        def kind(key: Key) -> tuple[int, bool, float]:
            quantity = quantities[key[1]]
            return key[0], quantity.geometric, quantity.reach

        for at, geometric, reach in dict.fromkeys(map(kind, keys)):
            alike = [key for key in keys if kind(key) == (at, geometric, reach)]
            rows, mask = [quantities[place] for _, place in alike], where[at].mask
            table = np.stack([*(row.first[mask] for row in rows), *(row.second[mask] for row in rows)])
            pairs = [(row, len(rows) + row) for row in range(len(rows))]
            found = differences(table, pairs, choices, geometric=geometric, reach=reach, level=level).differences
            if not where[at].every:
                found = allowing_for_skew([row.gaps[mask] for row in rows], found)
            tests |= zip(alike, map(_within, found, rows), strict=True)
        return [tests[key] for key in keys]

    tests: dict[Key, Difference] = {}
    for family in families.values():
        found = test(family, 1 - choices.alpha_of_one(sum(key not in untested for key in family)))
        for place, key in enumerate(family):
            if key in untested:
                found[place] = replace(found[place], p=math.nan, interval=None, note="too few topics to be tested")

        def again(places: list[int], level: float, family: list[Key] = family) -> list[Difference]:
            return test([family[place] for place in places], level)

        tests |= zip(family, corrected_family(found, choices.correction, choices.alpha, again), strict=True)
    return tests


def _within(found: Difference, of: Quantity) -> Difference:
    """Leave out of an interval what no difference can be."""
    if found.interval is None or math.isinf(of.reach):
        return found
    low, high = (min(max(end, -of.reach), of.reach) if math.isfinite(end) else end for end in found.interval)
    return replace(found, interval=(low, high))
