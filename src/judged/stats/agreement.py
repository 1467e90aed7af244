"""Agreement of judges: kappas and alpha, with intervals. A row of grades is a judged unit, a column a judge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from judged.errors import InputError
from judged.results.decimals import decimal, percent
from judged.results.spelling import use_one_of
from judged.results.types import ReadOnly
from judged.stats.interval import adjusted
from judged.stats.ratio import student_quantiles
from judged.stats.sufficiency import MIN_UNITS, insufficiency

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Weights: TypeAlias = Literal["nominal", "linear", "quadratic"]
Scale: TypeAlias = Literal["nominal", "ordinal", "interval"]
_SAME = 1e-12
MIN_GROUPS = 40
"""Number of groups from which an interval has nearly its nominal coverage; with fewer it covers 86% to 100%."""


@dataclass(frozen=True)
class Agreement:
    """Agreement of judges beyond chance."""

    name: str
    value: float  # 1 - observed / expected: 1 for no disagreement, 0 for chance, below 0 for more; NaN if undefined
    observed: float  # mean distance of two grades of the same unit
    expected: float  # mean distance of two grades paired by chance
    # Jackknife over groups: the adjusted t interval (see `IntervalMethod`) of the pseudo-values, within -1 and 1. If
    # groups differ in size, the degrees of freedom are those of Kish's effective number of groups.
    interval: tuple[float, float] | None
    level: float
    units: int  # judged units that are included
    groups: int  # groups (topics) of these units; the jackknife leaves out one group at a time
    judges: int
    left_out: int  # units with too few grades
    note: str = ""  # reason why there is no value or no interval

    @property
    def verdict(self) -> Literal["more", "less", "chance", "unknown"]:
        """Whether the agreement is significantly more or less than by chance; unknown with too few groups."""
        if math.isnan(self.value) or self.interval is None or insufficiency(self.groups, "verdict"):
            return "unknown"
        low, high = self.interval
        return "chance" if low <= 0 <= high else "less" if self.value < 0 else "more"

    @property
    def sentence(self) -> str:
        """Result in one sentence."""
        if math.isnan(self.value):
            return f"{self.name} is undefined: {self.note}."
        within = ""
        if self.interval is not None:
            within = f", {self.level:.0%} CI [{decimal(self.interval[0], 3)}, {decimal(self.interval[1], 3)}]"
        share = {
            "unknown": "there are too few data to compare the agreement with chance",
            "chance": "the data do not show agreement beyond chance",
            "less": "the judges disagree more than expected by chance",
            "more": f"the judges disagree {percent(self.value)} less than expected by chance",
        }[self.verdict]
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} is {decimal(self.value, 3)}{within}, over {self.units} judged units: {share}{note}."


@dataclass(frozen=True, eq=False)
class Confusion(ReadOnly):
    """Confusion matrix of the grades of two judges."""

    grades: Floats  # (K,): all grades of either judge, ascending
    counts: Ints = field(repr=False)  # (K, K): rows: the first judge's grade; columns: the second's

    @property
    def agreed(self) -> float:
        """Share of equal grades. NaN if no unit has both grades."""
        total = int(self.counts.sum())
        return float(np.trace(self.counts) / total) if total else math.nan


def confusion(first: Floats, second: Floats) -> Confusion:
    """Count the pairs of grades of two judges: (U,) and (U,), NaN where a judge gave no grade.

    >>> confusion(np.array([0, 0, 1, 2]), np.array([0, 1, 1, np.nan])).counts.tolist()
    [[1, 1], [0, 1]]
    """
    matrix = _check_matrix(np.stack([first, second], axis=1))
    complete = matrix[_is_complete(matrix)]
    grades, codes = encode_grades(complete)
    n_grades = len(grades)
    counts = np.bincount(codes[:, 0] * n_grades + codes[:, 1], minlength=n_grades**2).reshape(n_grades, n_grades)
    return Confusion(grades, counts.astype(np.int64))


def cohen_kappa(
    first: Floats, second: Floats, weights: Weights = "nominal", *, groups: Ints | None = None, level: float = 0.95
) -> Agreement:
    """Compute Cohen's kappa of two judges (Cohen 1960; weighted: Cohen 1968).

    Parameters
    ----------
    first, second : (U,) float64
        Grades of each unit. Units with a NaN (not judged) are left out.
    weights
        ``nominal``: equal or not. ``linear``, ``quadratic``: the distance of the grades, or its square. The distance
        uses the grades themselves, so that an unused grade still counts as a step (other tools count the steps
        between the grades that occur).
    groups : (U,) int64 or None
        Group (topic) of each unit; units of a group may be correlated. None: each unit is its own group.
    level
        Confidence level of the interval.

    Returns
    -------
    Agreement
        NaN if both judges gave only one and the same grade: chance then explains everything.

    Raises
    ------
    InputError
        If the arrays differ in length, or an option is invalid.

    Examples
    --------
    >>> first = np.repeat([1.0, 1.0, 0.0, 0.0], [20, 5, 10, 15])  # 25 times 1, 25 times 0
    >>> second = np.repeat([1.0, 0.0, 1.0, 0.0], [20, 5, 10, 15])  # the same 35 times of 50
    >>> round(cohen_kappa(first, second).value, 3)
    0.4
    """
    if weights not in get_args(Weights):
        raise InputError(f"unknown `weights` {weights!r}", fix=use_one_of(get_args(Weights)))
    matrix = _check_matrix(np.stack([first, second], axis=1))
    name = {"nominal": "Cohen's kappa"}.get(weights, f"{weights} weighted kappa")
    return _agreement(name, matrix, _is_complete(matrix), groups, ChanceModel(weights, "by judge", 0), level)


def fleiss_kappa(grades: Floats, *, groups: Ints | None = None, level: float = 0.95) -> Agreement:
    """Compute Fleiss' kappa of judges who all graded the same units (Fleiss 1971).

    Units without a grade of every judge are left out; `krippendorff_alpha` uses them.

    Parameters
    ----------
    grades : (U, J) float64
        NaN: not judged.
    groups, level
        As for `cohen_kappa`.

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[1, 1, 1], [0, 0, 1], [0, 0, 0]])).value, 3)
    0.55
    """
    matrix = _check_matrix(grades)
    model = ChanceModel("nominal", "by unit", 0)
    return _agreement("Fleiss' kappa", matrix, _is_complete(matrix), groups, model, level)


def krippendorff_alpha(
    grades: Floats, scale: Scale = "ordinal", *, groups: Ints | None = None, level: float = 0.95
) -> Agreement:
    """Compute Krippendorff's alpha; not every judge has to grade every unit (Krippendorff 2011).

    Parameters
    ----------
    grades : (U, J) float64
        NaN: not judged. Units with fewer than two grades are left out.
    scale
        Distance of two grades. ``nominal``: equal or not; ``ordinal``: number of grades given between the two;
        ``interval``: square of their difference.
    groups, level
        As for `cohen_kappa`.

    Raises
    ------
    InputError
        If the scale does not exist.

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[0, 0], [0, 0], [0, 1], [1, 1]]), "nominal").value, 4)
    0.5333
    """
    if scale not in get_args(Scale):
        raise InputError(f"unknown `scale` {scale!r}", fix=use_one_of(get_args(Scale)))
    matrix = _check_matrix(grades)
    is_paired = (~np.isnan(matrix)).sum(axis=1) > 1
    model = ChanceModel("quadratic" if scale == "interval" else scale, "by grade", 1)
    return _agreement(f"Krippendorff's alpha ({scale})", matrix, is_paired, groups, model, level)


def _agreement(
    name: str, matrix: Floats, is_included: Bools, groups: Ints | None, model: ChanceModel, level: float
) -> Agreement:
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1, got {level}", fix="use 0.95, for example")
    units, judges = matrix.shape
    group_codes, n_groups = _encode_groups(groups, units, is_included)
    noun = "unit" if groups is None else "topic"
    included = matrix[is_included]
    note, observed, expected = "", math.nan, math.nan
    value, interval = math.nan, None
    if not len(included):
        note = "no unit (such as a document) was judged by two judges"
    else:
        counts = count_grades(included, group_codes, n_groups, model)
        observed_distance, expected_distance = mean_distances(np.ones((1, n_groups)), counts, model)
        observed, expected = observed_distance.item(), expected_distance.item()
        value = float(beyond_chance(observed_distance, expected_distance)[0])
        if math.isnan(value):
            note = "all grades are the same, so the disagreement expected by chance is 0"
        elif shortage := insufficiency(n_groups, weights=(units_per_group := np.bincount(group_codes))):
            note = f"{shortage.sentence(noun).removesuffix('.')}, so there is no confidence interval"
        elif (n_varied := _varied_groups(included, group_codes)) < MIN_UNITS["verdict"]:
            note = (
                f"only {n_varied} {noun}s have a grade other than the most frequent grade, so there is no confidence"
                f" interval: with fewer than {MIN_UNITS['verdict']} such {noun}s, the coverage of the interval would be"
                " too low"
            )
        else:
            leave_one_out = leave_one_group_out(counts, n_groups, model)
            warning = (
                f"with only {n_groups} {noun}s, the true coverage of the interval can differ from its confidence"
                " level (see docs/calibration.md)"
            )
            note = "" if n_groups >= MIN_GROUPS else warning
            if np.isnan(leave_one_out).any():
                note = f"without one of the {noun}s, all grades are the same, so there is no confidence interval"
            elif np.ptp(leave_one_out) <= _SAME:
                note = f"removing any single {noun} does not change the value, so there is no confidence interval"
            else:
                pseudo_values = value + (n_groups - 1) * (leave_one_out.mean() - leave_one_out)
                low, high = adjusted(pseudo_values[None], (-1, 1), level)[0] - value
                wider = _widening(units_per_group, level)
                interval = max(value + min(wider * low, 0.0), -1.0), min(value + max(wider * high, 0.0), 1.0)
    left_out = units - len(included)
    return Agreement(name, value, observed, expected, interval, level, len(included), n_groups, judges, left_out, note)


def _widening(units_per_group: Ints, level: float) -> float:
    """Return the factor by which the effective number of groups widens an interval; 1 for groups of equal size."""
    n, effective = len(units_per_group), float(units_per_group.sum()) ** 2 / float(units_per_group @ units_per_group)
    wide_quantile, quantile = student_quantiles((1 + level) / 2, np.array([effective - 1.0, n - 1.0])).tolist()
    return max(wide_quantile / quantile * math.sqrt((1.0 - 1.0 / n) / (1.0 - 1.0 / effective)), 1.0)


def _varied_groups(matrix: Floats, group_codes: Ints) -> int:
    """Count groups with a grade other than the most frequent one. If a grade is rare, only these carry information."""
    grades, counts = np.unique(matrix[~np.isnan(matrix)], return_counts=True)
    has_other_grade = (~np.isnan(matrix) & (matrix != grades[counts.argmax()])).any(axis=1)
    return len(np.unique(group_codes[has_other_grade]))


def _check_matrix(grades: Floats) -> Floats:
    matrix = np.asarray(grades, dtype=np.float64)
    if matrix.ndim != 2:
        problem = f"`grades` must have 2 dimensions, got {matrix.ndim}"
        raise InputError(problem, fix="pass one row per unit and one column per judge")
    if np.isinf(matrix).any():
        raise InputError("grades must be finite or NaN, got an infinite grade", fix="use NaN for missing grades")
    return matrix


def _is_complete(matrix: Floats) -> Bools:
    """Return whether every judge graded the unit, and there are at least two judges: (U,)."""
    return (~np.isnan(matrix)).sum(axis=1) == max(matrix.shape[1], 2)


def _encode_groups(groups: Ints | None, units: int, is_included: Bools) -> tuple[Ints, int]:
    """Return the group of each included unit, as codes from 0, and the number of groups."""
    if groups is None:
        n = int(is_included.sum())
        return np.arange(n), n
    groups = np.asarray(groups)
    if groups.shape != (units,):
        raise InputError(f"`groups` must have shape ({units},), got {groups.shape}", fix="pass one group per unit")
    names, codes = np.unique(groups[is_included], return_inverse=True)
    return codes.ravel().astype(np.int64), len(names)


_CHUNK = 128  # groups left out at a time


class ChanceModel(NamedTuple):
    """Distance and chance model of a coefficient of agreement."""

    distance: Literal["nominal", "linear", "quadratic", "ordinal"]  # of two grades
    # Pairing by chance. `by judge`: a grade of the first judge with one of the second (Cohen). `by unit`, `by grade`:
    # two grades from one urn with the grades of all judges; each unit (Fleiss) or each grade (Krippendorff) has the
    # same weight.
    pooling: Literal["by judge", "by unit", "by grade"]
    removed: int  # 1: the second grade is drawn without replacement; 0: with replacement


class Counts(NamedTuple):
    """Counts of grades by group. A coefficient of any multiset of groups depends only on their sums."""

    grades: Floats  # (K,): ascending
    # (P,): the observed pairs of grades, as codes
    first: Ints
    second: Ints
    pairs: Any  # (G, P): weighted number of each pair
    # (G, K): number of each grade in the urn of the first draw and of the second
    urn: Any
    second_urn: Any


def encode_grades(matrix: Floats) -> tuple[Floats, Ints]:
    """Return the distinct grades, ascending, and the position of each grade among them; -1 for NaN."""
    is_graded = ~np.isnan(matrix)
    grades, positions = np.unique(matrix[is_graded], return_inverse=True)
    codes = np.full(matrix.shape, -1, dtype=np.int64)
    codes[is_graded] = positions.ravel()
    return grades, codes


def count_grades(matrix: Floats, group: Ints, groups: int, model: ChanceModel) -> Counts:
    """Count grades by group; `matrix` is (U, J) with NaN for missing grades, `group` has a code from 0 per unit."""
    grades, codes = encode_grades(matrix)
    n_grades, is_graded = len(grades), codes >= 0
    grades_per_unit = is_graded.sum(axis=1)
    weight = {
        "by judge": np.ones(len(matrix)),
        "by unit": 2 / (grades_per_unit * (grades_per_unit - 1)),
        "by grade": 2 / (grades_per_unit - 1),
    }[model.pooling]
    units, pair_codes = list[Any](), list[Any]()
    for first, second in combinations(range(matrix.shape[1]), 2):
        common = np.flatnonzero(is_graded[:, first] & is_graded[:, second])
        units.append(common)
        pair_codes.append(codes[common, first] * n_grades + codes[common, second])
    unit, pair_code = np.concatenate(units), np.concatenate(pair_codes)
    distinct_pairs, pair_index = np.unique(pair_code, return_inverse=True)
    pair_counts = _sparse(weight[unit], group[unit], pair_index.ravel(), (groups, len(distinct_pairs)))
    columns = [codes[:, :1], codes[:, 1:]] if model.pooling == "by judge" else [codes, codes]
    urns: list[Any] = []
    for judge_codes in columns:
        urn_unit, judge = np.nonzero(judge_codes >= 0)
        urns.append(_sparse(np.ones(len(urn_unit)), group[urn_unit], judge_codes[urn_unit, judge], (groups, n_grades)))
    return Counts(grades, distinct_pairs // n_grades, distinct_pairs % n_grades, pair_counts, *urns)


def _sparse(values: Floats, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    from scipy import sparse

    matrix: Any = sparse.csr_array((values, (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def mean_distances(times: Floats, counts: Counts, model: ChanceModel) -> tuple[Floats, Floats]:
    """Return the observed and the expected mean distance with each group counted `times` times: (B, G) to (B,)."""
    pairs, urn, second_urn = (
        np.asarray(times @ by_group) for by_group in (counts.pairs, counts.urn, counts.second_urn)
    )
    total_pairs, chance_pairs = pairs.sum(axis=1), urn.sum(axis=1) * (second_urn.sum(axis=1) - model.removed)
    if model.distance == "ordinal":
        midrank = np.cumsum(urn, axis=1) - urn / 2  # grades below, and half of the equal ones
        observed = (pairs * (midrank[:, counts.first] - midrank[:, counts.second]) ** 2).sum(axis=1)
        centered = midrank - ((urn * midrank).sum(axis=1) / urn.sum(axis=1))[:, None]
        expected = 2 * urn.sum(axis=1) * (urn * centered**2).sum(axis=1)
    else:
        gap = np.abs(counts.grades[:, None] - counts.grades)
        distance = {"nominal": (gap > 0).astype(np.float64), "linear": gap, "quadratic": gap**2}[model.distance]
        observed = pairs @ distance[counts.first, counts.second]
        expected = ((urn @ distance) * second_urn).sum(axis=1)
    undefined = np.full(len(times), np.nan)
    return (
        np.divide(observed, total_pairs, out=undefined.copy(), where=total_pairs > 0),
        np.divide(expected, chance_pairs, out=undefined, where=chance_pairs > 0),
    )


def beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """Return 1 minus observed over expected distance; NaN where the expected distance is 0."""
    return 1.0 - np.divide(observed, expected, out=np.full(len(observed), np.nan), where=expected > 0)


def leave_one_group_out(counts: Counts, groups: int, model: ChanceModel) -> Floats:
    """Compute the coefficient without each group in turn: (G,); NaN where it is undefined."""
    values = np.empty(groups)
    for start in range(0, groups, _CHUNK):
        size = min(_CHUNK, groups - start)
        values[start : start + size] = beyond_chance(*mean_distances(1.0 - np.eye(size, groups, start), counts, model))
    return values
