"""Agreement of judges: kappas and alpha, with intervals. Sees only grades: a row a judged thing, a column a judge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal, percent
from judged.results.types import ReadOnly
from judged.stats.interval import adjusted
from judged.stats.ratio import student_quantiles
from judged.stats.sufficiency import MIN_UNITS, insufficiency

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Weights: TypeAlias = Literal["nominal", "linear", "quadratic"]
Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
_SAME = 1e-12
ENOUGH = 40
"""Groups from which an interval holds nearly what it says; with fewer it covers the value in 86 to 100% of samples."""


@dataclass(frozen=True)
class Agreement:
    """How far judges agree beyond chance."""

    name: str
    value: float  # 1 for no disagreement, 0 for as much as by chance, below 0 for more; NaN where it is undefined
    # observed, expected: the mean distance of two grades that one thing was given, and of two grades put together by
    # chance: the value is 1 - observed / expected
    observed: float
    expected: float
    # of the jackknife over groups: the adjusted t interval (see `IntervalMethod`) of its pseudo-values, between the
    # bounds -1 and 1, with the degrees of freedom of Kish's effective number of groups where some have more things
    interval: tuple[float, float] | None
    level: float
    # units, groups, judges: how many judged things count, in how many groups (topics) that were left out as a whole,
    # and by how many judges
    units: int
    groups: int
    judges: int
    left_out: int  # things that do not count, because too few judges graded them
    note: str = ""  # why there is no value or no interval

    @property
    def sentence(self) -> str:
        """Say in plain words what was found."""
        if math.isnan(self.value):
            return f"{self.name} is undefined: {self.note}."
        within = ""
        if self.interval is not None:
            within = f", {self.level:.0%} interval {decimal(self.interval[0], 3)} to {decimal(self.interval[1], 3)}"
        if self.interval is None or insufficiency(self.groups, "verdict"):
            share = "too little data to say whether that is more than chance"
        elif self.interval[0] <= 0 <= self.interval[1]:
            share = "agreement beyond chance is not shown"
        elif self.value < 0:
            share = "the judges disagree more than chance would have them"
        else:
            share = f"the judges avoid {percent(self.value)} of the disagreement that chance would bring"
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} is {decimal(self.value, 3)}{within}, over {self.units} things judged: {share}{note}."


@dataclass(frozen=True, eq=False)
class Confusion(ReadOnly):
    """How often each grade of one judge met each grade of another."""

    grades: Floats  # (K,): all grades of either, rising
    counts: Ints = field(repr=False)  # (K, K): rows: the first judge's grade; columns: the second's

    @property
    def agreed(self) -> float:
        """The share of equal grades; NaN where nothing is shared."""
        total = int(self.counts.sum())
        return float(np.trace(self.counts) / total) if total else math.nan


def confusion(first: Floats, second: Floats) -> Confusion:
    """Count the pairs of grades of two judges: (U,) and (U,), NaN where one did not judge.

    >>> confusion(np.array([0, 0, 1, 2]), np.array([0, 1, 1, np.nan])).counts.tolist()
    [[1, 1], [0, 1]]
    """
    table = _matrix(np.stack([np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)], axis=1))
    both = table[_complete(table)]
    grades, codes = coded(both)
    size = len(grades)
    counts = np.bincount(codes[:, 0] * size + codes[:, 1], minlength=size * size).reshape(size, size)
    return Confusion(grades, counts.astype(np.int64))


def cohen_kappa(
    first: Floats,
    second: Floats,
    weights: Weights = "nominal",
    *,
    groups: Ints | None = None,
    level: float = 0.95,
) -> Agreement:
    """Compare two judges (Cohen 1960; weighted: Cohen 1968).

    Parameters
    ----------
    first, second : (U,) float64
        The grades of each thing; NaN: not judged, and left out.
    weights
        ``nominal``: equal or not. ``linear``, ``quadratic``: by the distance of the grades themselves or its square, so
        that a grade that nobody gave still counts as a step (other tools count the steps between the grades that
        occur).
    groups : (U,) int64 or None
        Things of one group (a topic) vary together; each is one by itself for None.
    level
        Of the interval.

    Returns
    -------
    Agreement
        NaN where one grade is all that both judges gave: chance then explains everything.

    Raises
    ------
    InputError
        If the arrays do not fit each other, or an option makes no sense.

    Examples
    --------
    >>> first = np.repeat([1.0, 1.0, 0.0, 0.0], [20, 5, 10, 15])  # 25 times 1, 25 times 0
    >>> second = np.repeat([1.0, 0.0, 1.0, 0.0], [20, 5, 10, 15])  # the same 35 times of 50
    >>> round(cohen_kappa(first, second).value, 3)
    0.4
    """
    if weights not in get_args(Weights):
        raise InputError(f"no weights {weights!r}", fix=f"use one of {', '.join(get_args(Weights))}")
    table = _matrix(np.stack([np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)], axis=1))
    name = {"nominal": "Cohen's kappa"}.get(weights, f"{weights} weighted kappa")
    return _agreement(name, table, _complete(table), groups, Rule(weights, "apart", 0), level)


def fleiss_kappa(grades: Floats, *, groups: Ints | None = None, level: float = 0.95) -> Agreement:
    """Compare any number of judges who all judged the same things (Fleiss 1971).

    Things that some judge did not grade are left out; `krippendorff_alpha` makes use of them.

    Parameters
    ----------
    grades : (U, J) float64
    groups, level
        As for `cohen_kappa`.

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[1, 1, 1], [0, 0, 1], [0, 0, 0]])).value, 3)
    0.55
    """
    table = _matrix(grades)
    return _agreement("Fleiss' kappa", table, _complete(table), groups, Rule("nominal", "things", 0), level)


def krippendorff_alpha(
    grades: Floats,
    scale: Scale = "ordinal",
    *,
    groups: Ints | None = None,
    level: float = 0.95,
) -> Agreement:
    """Compare any number of judges, where not every judge graded everything (Krippendorff 2011).

    Parameters
    ----------
    grades : (U, J) float64
        NaN: not judged. Things with fewer than two grades are left out.
    scale
        What the distance of two grades is: ``nominal``, equal or not; ``ordinal``, how many grades were given between
        the two; ``interval``, the square of their difference.
    groups, level
        As for `cohen_kappa`.

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[0, 0], [0, 0], [0, 1], [1, 1]]), "nominal").value, 4)
    0.5333
    """
    if scale not in get_args(Scale):
        raise InputError(f"no scale {scale!r}", fix=f"use one of {', '.join(get_args(Scale))}")
    table = _matrix(grades)
    several = (~np.isnan(table)).sum(axis=1) > 1
    rule = Rule("quadratic" if scale == "interval" else scale, "grades", 1)
    return _agreement(f"Krippendorff's alpha ({scale})", table, several, groups, rule, level)


def _agreement(name: str, table: Floats, counts_in: Bools, groups: Ints | None, rule: Rule, level: float) -> Agreement:
    if not 0 < level < 1:
        raise InputError(f"the level {level} is not between 0 and 1", fix="use 0.95, for example")
    codes, size = _groups(groups, len(table), counts_in)
    kept = table[counts_in]
    note, observed, expected = "", math.nan, math.nan
    value, interval = math.nan, None
    if not len(kept):
        note = "no thing was judged by two judges"
    else:
        counts = counted(kept, codes, size, rule)
        met, chance = distances(np.ones((1, size)), counts, rule)
        observed, expected = float(met[0]), float(chance[0])
        value = float(beyond_chance(met, chance)[0])
        if math.isnan(value):
            note = "all grades are the same, and chance alone explains that"
        elif lacking := insufficiency(size, weights=(things := np.bincount(codes))):
            note = f"{lacking.sentence('group').removesuffix('.')}, so there is no interval"
        elif (varied := _varied_groups(kept, codes)) < MIN_UNITS["verdict"]:
            note = (
                f"{varied} groups have another grade than the most frequent one, so there is no interval:"
                f" with fewer than {MIN_UNITS['verdict']} it covers too rarely"
            )
        else:
            without = left_out(counts, size, rule)
            few = f"{size} groups are few: docs/calibration.md says how far to trust the interval"
            note = "" if size >= ENOUGH else few
            if np.isnan(without).any():
                note = "without one of the groups all grades are the same, so there is no interval"
            elif np.ptp(without) <= _SAME:
                note = "the value is the same without any of the groups, so there is no interval"
            else:
                pseudo = value + (size - 1) * (without.mean() - without)
                low, high = adjusted(pseudo[None], (-1, 1), level)[0] - value
                wider = _widening(things, level)
                interval = max(value + min(wider * low, 0.0), -1.0), min(value + max(wider * high, 0.0), 1.0)
    return Agreement(
        name, value, observed, expected, interval, level, len(kept), size, table.shape[1], len(table) - len(kept), note
    )


def _widening(things: Ints, level: float) -> float:
    """Return by how much an interval over groups is wider if it rests on their effective number; 1 for equal ones."""
    size, effective = len(things), float(things.sum()) ** 2 / float(things @ things)
    few, many = student_quantiles((1 + level) / 2, np.array([effective - 1.0, size - 1.0])).tolist()
    return max(few / many * math.sqrt((1.0 - 1.0 / size) / (1.0 - 1.0 / effective)), 1.0)


def _varied_groups(table: Floats, codes: Ints) -> int:
    """Count the groups with another grade than the most frequent one: what an interval rests on if a grade is rare."""
    values, counts = np.unique(table[~np.isnan(table)], return_counts=True)
    other = (~np.isnan(table) & (table != values[counts.argmax()])).any(axis=1)
    return len(np.unique(codes[other]))


def _matrix(grades: Floats) -> Floats:
    table = np.asarray(grades, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"the grades have {table.ndim} dimensions", fix="give one row a thing, one column a judge")
    if np.isinf(table).any():
        raise InputError("a grade is infinite", fix="give finite numbers, and NaN for what was not judged")
    return table


def _complete(table: Floats) -> Bools:
    """Mark the things that every one of at least two judges graded."""
    return (~np.isnan(table)).sum(axis=1) == max(table.shape[1], 2)


def _groups(groups: Ints | None, units: int, counts_in: Bools) -> tuple[Ints, int]:
    """Give the group of each thing that counts, as codes from 0, and how many there are."""
    if groups is None:
        count = int(counts_in.sum())
        return np.arange(count), count
    groups = np.asarray(groups)
    if groups.shape != (units,):
        raise InputError(f"{units} things and groups of shape {groups.shape}", fix="give one group a thing")
    names, codes = np.unique(groups[counts_in], return_inverse=True)
    return codes.ravel().astype(np.int64), len(names)


_CHUNK = 128  # groups left out at a time


class Rule(NamedTuple):
    """What tells one coefficient from another."""

    distance: Literal["nominal", "linear", "quadratic", "ordinal"]  # of two grades
    # how grades meet by chance, and how a thing counts: `apart`, each judge's own grades against the other's; `things`,
    # the grades of all judges in one urn, each thing counts once; `grades`, one urn, each grade counts once
    chance: Literal["apart", "things", "grades"]
    drawn: int  # how many grades have been taken from the urn before the second is drawn


class Counts(NamedTuple):
    """What the coefficient is made of, by group; sums over any multiset of groups are what it needs."""

    grades: Floats  # (K,): rising
    # one, other: (P,): the pairs of grades that met, as codes
    one: Ints
    other: Ints
    met: Any  # (G, P): how often, weighted
    # urn, second_urn: (G, K): how often each grade can be drawn
    urn: Any
    second_urn: Any


def coded(table: Floats) -> tuple[Floats, Ints]:
    """Give the distinct grades, rising, and each grade's place among them; -1 for NaN."""
    known = ~np.isnan(table)
    grades, found = np.unique(table[known], return_inverse=True)
    codes = np.full(table.shape, -1, dtype=np.int64)
    codes[known] = found.ravel()
    return grades, codes


def counted(table: Floats, group: Ints, groups: int, rule: Rule) -> Counts:
    """Count by group: (U, J) grades, NaN where there is none, and the group of each row as a code from 0."""
    grades, codes = coded(table)
    size, known = len(grades), codes >= 0
    many = known.sum(axis=1)
    weight = {"apart": np.ones(len(table)), "things": 2 / (many * (many - 1)), "grades": 2 / (many - 1)}[rule.chance]
    rows, keys = list[Any](), list[Any]()
    for one, other in combinations(range(table.shape[1]), 2):
        both = np.flatnonzero(known[:, one] & known[:, other])
        rows.append(both)
        keys.append(codes[both, one] * size + codes[both, other])
    row, key = np.concatenate(rows), np.concatenate(keys)
    pairs, place = np.unique(key, return_inverse=True)
    met = _sparse(weight[row], group[row], place.ravel(), (groups, len(pairs)))
    columns = [codes[:, :1], codes[:, 1:]] if rule.chance == "apart" else [codes, codes]
    urns: list[Any] = []
    for column in columns:
        at, judge = np.nonzero(column >= 0)
        urns.append(_sparse(np.ones(len(at)), group[at], column[at, judge], (groups, size)))
    return Counts(grades, pairs // size, pairs % size, met, *urns)


def _sparse(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    from scipy import sparse

    matrix: Any = sparse.csr_array((values, (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def distances(times: Floats, counts: Counts, rule: Rule) -> tuple[Floats, Floats]:
    """Give the mean distance that was met and that is expected, where each group counts some times: (B, G) to (B,)."""
    met, urn, second = (np.asarray(times @ part) for part in (counts.met, counts.urn, counts.second_urn))
    pairs, drawn = met.sum(axis=1), urn.sum(axis=1) * (second.sum(axis=1) - rule.drawn)
    if rule.distance == "ordinal":
        place = np.cumsum(urn, axis=1) - urn / 2  # how many grades were given below, and half of the equal ones
        observed = (met * (place[:, counts.one] - place[:, counts.other]) ** 2).sum(axis=1)
        centred = place - ((urn * place).sum(axis=1) / urn.sum(axis=1))[:, None]
        expected = 2 * urn.sum(axis=1) * (urn * centred**2).sum(axis=1)
    else:
        apart = np.abs(counts.grades[:, None] - counts.grades)
        apart = {"nominal": (apart > 0).astype(np.float64), "linear": apart, "quadratic": apart**2}[rule.distance]
        observed = met @ apart[counts.one, counts.other]
        expected = ((urn @ apart) * second).sum(axis=1)
    nothing = np.full(len(times), np.nan)
    return (
        np.divide(observed, pairs, out=nothing.copy(), where=pairs > 0),
        np.divide(expected, drawn, out=nothing, where=drawn > 0),
    )


def beyond_chance(met: Floats, chance: Floats) -> Floats:
    """Give 1 minus the met distance over the expected one; NaN where chance expects none."""
    return 1.0 - np.divide(met, chance, out=np.full(len(met), np.nan), where=chance > 0)


def left_out(counts: Counts, groups: int, rule: Rule) -> Floats:
    """Give the coefficient without each group in turn: (G,); NaN where the others alone have none."""
    values = np.empty(groups)
    for start in range(0, groups, _CHUNK):
        size = min(_CHUNK, groups - start)
        values[start : start + size] = beyond_chance(*distances(1.0 - np.eye(size, groups, start), counts, rule))
    return values
