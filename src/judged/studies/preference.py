"""Which of two systems people preferred side by side, blind: signs over people, and strengths of several systems."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from judged.stats.bradley_terry import strengths
from judged.stats.counts import share_limits
from judged.stats.paired import paired_test

if TYPE_CHECKING:
    from judged.studies.records import StudyRecords

_RESAMPLES = 1000


class Preferred(NamedTuple):
    """How often the second of two systems was preferred to the first.

    ``value``: wins and half of the ties, by comparisons, each person counting once; ``p``: of signs of people.
    """

    first: str
    second: str
    people: int
    comparisons: int
    wins: int
    losses: int
    value: float
    p: float


class Strength(NamedTuple):
    """A system's strength by Bradley and Terry: the logarithm, 0 on average; its interval is over people."""

    system: str
    strength: float
    ci: tuple[float, float]


class Side(NamedTuple):
    """How often what stood left was preferred, of those with a preference."""

    comparisons: int
    left: float
    ci: tuple[float, float]


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
        p = paired_test(np.zeros(len(each)), each, seed=seed).p if len(each) > 1 else math.nan
        found.append(Preferred(*pair, len(people), len(given), wins, losses, 0.5 + float(each.mean()) / 2, p))
    return tuple(found)


def strengths_of(records: StudyRecords, *, level: float = 0.95, seed: int = 0) -> tuple[Strength, ...]:
    """Give the strengths of three systems or more; intervals by drawing people again.

    A resample in which a system never won, or never lost, has no strengths: its ends are infinite.
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
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(len(people), np.full(len(people), 1 / len(people)), size=_RESAMPLES)
    drawn = np.array([strengths((weight[:, None, None] * wins).sum(axis=0)) for weight in weights])
    value, outside = strengths(wins.sum(axis=0)), (1 - level) / 2
    low = np.quantile(np.where(np.isnan(drawn), -np.inf, drawn), outside, axis=0, method="lower")
    high = np.quantile(np.where(np.isnan(drawn), np.inf, drawn), 1 - outside, axis=0, method="higher")
    return tuple(Strength(name, float(value[at]), (float(low[at]), float(high[at]))) for at, name in enumerate(names))


def sides(records: StudyRecords, *, level: float = 0.95) -> Side | None:
    """Say how often the left one was preferred; None where nobody preferred one."""
    rows = [row for row in records["preferences"].to_pylist() if row["preferred"]]
    if not rows:
        return None
    left = sum(row["preferred"] == row["left"] for row in rows)
    low, high = share_limits(np.array([left]), np.array([len(rows)]), level)
    return Side(len(rows), left / len(rows), (float(low[0]), float(high[0])))
