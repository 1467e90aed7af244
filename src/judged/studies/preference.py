"""Which of two systems people preferred side by side, blind: signs over people, and strengths of several systems."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.stats.bradley_terry import strength_errors, strengths
from judged.stats.paired import paired_test
from judged.stats.ratio import effective_units, student_quantiles
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.studies.records import StudyRecords

_NONE = 1e-9


class Preferred(NamedTuple):
    """How often the second of two systems was preferred to the first.

    ``value``: wins and half of the ties, by comparisons, each person counting once; ``p``: of signs of people, NaN
    where there are too few people, and ``reason`` then says so.
    """

    first: str
    second: str
    people: int
    comparisons: int
    wins: int
    losses: int
    value: float
    p: float
    reason: str = ""


class Strength(NamedTuple):
    """A system's strength by Bradley and Terry: the logarithm, 0 on average.

    Its interval is over people; None where there are too few, or the strength is not finite.
    """

    system: str
    strength: float
    ci: tuple[float, float] | None


class Side(NamedTuple):
    """How often what stood left was preferred, of those with a preference, each person counting once.

    ``p``: of signs of people; NaN where there are too few. ``preferred``: whether one side was, at 5%.
    """

    comparisons: int
    people: int
    left: float
    p: float
    preferred: bool


def preferred(records: StudyRecords, *, seed: int = 0) -> tuple[Preferred, ...]:
    """Compare each two systems that were shown side by side, over people: who answers often counts no more."""
    rows = records["preferences"].to_pylist()
    found = list[Preferred]()
    for pair in combinations(sorted({name for row in rows for name in (row["left"], row["right"])}), 2):
        given = [row for row in rows if {row["left"], row["right"]} == set(pair)]
        if not given:
            continue
        people = sorted({row["participant"] for row in given})
        signs = dict.fromkeys(people, 0.0)
        counts = dict.fromkeys(people, 0)
        for row in given:
            counts[row["participant"]] += 1
            signs[row["participant"]] += (row["preferred"] == pair[1]) - (row["preferred"] == pair[0])
        each = np.array([signs[one] / counts[one] for one in people])
        wins, losses = (sum(row["preferred"] == name for row in given) for name in reversed(pair))
        value, lacking = 0.5 + float(each.mean()) / 2, insufficiency(len(each))
        reason = lacking.sentence("participant") if lacking else ""
        found.append(Preferred(*pair, len(people), len(given), wins, losses, value, _p(each, seed), reason))
    return tuple(found)


def _p(each: Floats, seed: int) -> float:
    """Test by the signs of people whether their mean is 0: exact for any distribution that is symmetric around it."""
    return math.nan if insufficiency(len(each)) else paired_test(np.zeros(len(each)), each, seed=seed).p


def strengths_of(records: StudyRecords, *, level: float = 0.95) -> tuple[Strength, ...]:
    """Return the strengths of three systems or more; intervals are over people.

    Student's t with the standard error clustered by person, both of Kish's effective number of people, as some compare
    more often than others. Where a system never won, or never lost, there are no strengths, and no intervals.
    """
    rows = records["preferences"].to_pylist()
    names = sorted({name for row in rows for name in (row["left"], row["right"])})
    if len(names) < 3:
        return ()
    people = sorted({row["participant"] for row in rows})
    wins = np.zeros((len(people), len(names), len(names)))
    for row in rows:
        left, right = names.index(row["left"]), names.index(row["right"])
        share = {row["left"]: 1.0, row["right"]: 0.0}.get(row["preferred"], 0.5)
        wins[people.index(row["participant"]), left, right] += share
        wins[people.index(row["participant"]), right, left] += 1.0 - share
    values = strengths(wins.sum(axis=0))
    intervals: list[tuple[float, float] | None] = [None] * len(names)
    compared = wins.sum(axis=(1, 2))
    if not np.isnan(values).any() and insufficiency(len(people), weights=compared) is None:
        effective = min(effective_units(float(compared.sum()), float(compared @ compared)), len(people))
        widened = math.sqrt((1.0 - 1.0 / len(people)) / (1.0 - 1.0 / effective))
        far = student_quantiles((1 + level) / 2, np.array(effective - 1.0)) * widened * strength_errors(wins, values)
        intervals = [(float(value - half), float(value + half)) if half > _NONE else None
                     for value, half in zip(values, far, strict=True)]  # fmt: skip
    return tuple(Strength(name, float(values[at]), intervals[at]) for at, name in enumerate(names))


def sides(records: StudyRecords, *, level: float = 0.95, seed: int = 0) -> Side | None:
    """Return how often the left one was preferred, over people; None where nobody preferred one."""
    by_person = defaultdict[str, list[bool]](list)
    for row in records["preferences"].to_pylist():
        if row["preferred"]:
            by_person[row["participant"]].append(row["preferred"] == row["left"])
    if not by_person:
        return None
    left = np.array([float(np.mean(own)) for own in by_person.values()])
    p = _p(2 * left - 1, seed)
    preferred_side = insufficiency(len(left), "verdict") is None and p <= round(1 - level, 12)
    return Side(sum(map(len, by_person.values())), len(left), float(left.mean()), p, preferred_side)
