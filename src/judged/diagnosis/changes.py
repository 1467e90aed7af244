"""Differences of several quantities over all topics and by slice, corrected for how many are looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.answer import CHANGE, COUNT, TEXT, Column, Show, Table
from judged.decimals import decimal, p_text
from judged.stats.correction import corrected_family
from judged.stats.paired import paired_tests
from judged.stats.skewness import allowing_for_skew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from judged._types import Bools, Floats
    from judged.slicing.slices import Slicing
    from judged.stats.discoveries import Discoveries
    from judged.stats.results import Difference

ALL = "all topics"
SMALL = "few"
"""The mark of a slice that is too small to be judged by."""
_NAMED = 8  # topics in a sentence
_TESTED = (
    "method", "level", "alpha", "p", "correction", "statistic", "effect", "differing", "left_out", "resamples", "exact",
    "seed", "alternative", "note",
)  # fmt: skip


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
class Mean:
    """A mean over topics with its interval; NaN limits where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def ci(self) -> tuple[float, float] | None:
        """The interval; None where there is none."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def text(self, digits: int = 4) -> str:
        """Write it with its interval."""
        return _with_interval(self.value, self.ci, digits)


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

    @property
    def by_slice(self) -> bool:
        """Whether it was tested on a slice."""
        return not self.every and not math.isnan(self.found.p)

    @property
    def size(self) -> str:
        """The change with its interval."""
        return _with_interval(self.found.difference, self.found.interval, sign="+")

    @property
    def p(self) -> str:
        """The corrected p-value."""
        return f"p {p_text(self.found.decisive_p, self.found.alpha)}"

    def told(self, of: str = "") -> str:
        """Say how much something changed, and whether that is more than luck."""
        return f"{self.size}{of} ({self.p}{'' if self.significant else ', not told apart from 0'})"


def _with_interval(value: float, limits: tuple[float, float] | None, digits: int = 4, sign: str = "") -> str:
    """Write a number and its interval.

    >>> _with_interval(0.25, (0.1, 0.4)), _with_interval(0.25, None, sign="+")
    ('0.2500 [0.100, 0.400]', '+0.2500')
    """
    ends = "" if limits is None else f" [{decimal(limits[0], 3, sign)}, {decimal(limits[1], 3, sign)}]"
    return decimal(value, digits, sign) + ends


def everywhere(topics: int, slicing: Slicing | None) -> list[Where]:
    """Give all topics, and then each slice."""
    where = [Where(ALL, np.ones(topics, dtype=np.bool_), small=False, every=True)]
    if slicing is not None:
        where += map(Where, slicing.names, slicing.members, slicing.small.tolist())
    return where


def mean_of(values: Floats) -> float:
    """Average what is known; NaN where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def compared(
    quantities: Sequence[Quantity], where: Sequence[Where], *, alpha: float, resamples: int, seed: int
) -> tuple[Change, ...]:
    """Test each quantity over each set of topics, set by set, with paired randomisation tests; slices with a second."""
    test = _tests(quantities, where, resamples, seed)
    differences = iter(test(range(len(quantities) * len(where)), 1 - alpha))
    changes: list[Change] = []
    families: dict[tuple[bool, str], list[int]] = {}
    for some in where:
        for quantity in quantities:
            families.setdefault((some.every, quantity.family), []).append(len(changes))
            difference = next(differences)
            if some.small:
                difference = replace(difference, p=math.nan, interval=None, note="too few topics to be tested")
            changes.append(Change(quantity.system, some.name, quantity.part, difference, some.small, some.every))
    for places in families.values():

        def again(some: list[int], level: float, places: list[int] = places) -> tuple[Difference, ...]:
            return test([places[at] for at in some], level)

        family = corrected_family([changes[at].found for at in places], "holm", alpha, again)
        for at, difference in zip(places, family, strict=True):
            changes[at] = replace(changes[at], found=difference)
    return tuple(changes)


def _tests(
    quantities: Sequence[Quantity], where: Sequence[Where], resamples: int, seed: int
) -> Callable[[Sequence[int], float], tuple[Difference, ...]]:
    """Give what tests some of the quantities, counted through set by set, at a level."""
    both = [(some.mask, quantity) for some in where for quantity in quantities]
    first, second = (
        np.stack([np.where(mask, getattr(quantity, name), np.nan) for mask, quantity in both])
        for name in ("first", "second")
    )
    pairs = [(at, len(both) + at) for at in range(len(both))]

    def test(places: Sequence[int], level: float) -> tuple[Difference, ...]:
        table = np.concatenate([first, second])
        tests = list(paired_tests(table, [pairs[at] for at in places], level=level, resamples=resamples, seed=seed))
        cut = [at for at, place in enumerate(places) if not where[place // len(quantities)].every]
        gaps = [second[places[at]] - first[places[at]] for at in cut]
        for at, doubted in zip(cut, allowing_for_skew(gaps, [tests[at] for at in cut]), strict=True):
            tests[at] = doubted
        return tuple(tests)

    return test


def changes_table(changes: Sequence[Change], title: str, note: str, part: Show = TEXT, *, runs: bool) -> Table:
    """Lay out one row a change, with its test; the title is that of the differences, and `part` names quantities."""
    tests = [change.found for change in changes]
    few = [SMALL if change.small else "" for change in changes]
    stars = ["*" if change.significant else "" for change in changes]
    alpha = tests[0].alpha
    p_value = Show(lambda p: p_text(p, alpha).removeprefix("= "), "float64")
    columns = (
        Column("run", [change.system for change in changes], TEXT, only="" if runs else "data"),
        Column("slice", [change.slice for change in changes], TEXT),
        Column("part", [change.part for change in changes], part, "of"),
        Column("n", [test.n for test in tests], COUNT, "topics", beside=few),
        Column("difference", [test.difference for test in tests], CHANGE, title, ci=[test.interval for test in tests]),
        Column("adjusted", [test.decisive_p for test in tests], p_value, "p", mark=stars),
        Column("small", [change.small for change in changes], only="data"),
        Column("significant", [change.significant for change in changes], only="data"),
        *(Column(name, [getattr(test, name) for test in tests], only="data") for name in _TESTED),
    )
    return Table("changes", columns, note=note, labels=3 if runs else 2)


def lost_table(lost: Iterable[tuple[str, str, Discoveries]], query_ids: Sequence[str]) -> Table:
    """Lay out, for a run and a part each, the topics that lost; for data alone."""
    rows = [
        {
            "run": run,
            "part": part,
            **{name: value for name, value in vars(topics).items() if name != "mask"},
            "sentence": topics.sentence,
            "found": [query_ids[at] for at in np.flatnonzero(topics.mask).tolist()],
        }
        for run, part, topics in lost
    ]
    return Table("lost", tuple(Column(name, [row[name] for row in rows]) for name in rows[0]), only="data")


def who_lost(lost: Discoveries, query_ids: Sequence[str]) -> str:
    """Say how many topics lost, and name the first: without a capital and a full stop."""
    names = [query_ids[at] for at in np.flatnonzero(lost.mask).tolist()]
    named = f" ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})" if names else ""
    return f"{lost.sentence[0].lower()}{lost.sentence[1:].removesuffix('.')}{named}"
