"""Kappas and alpha against published examples, statsmodels, and their definitions; intervals by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from calibration import agreement
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from statsmodels.stats import inter_rater

from judged.errors import InputError
from judged.stats.agreement import cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha
from judged.stats.interval import adjusted

NAN = math.nan

# Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011: four observers, twelve units, values missing
OBSERVERS = np.array([
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]).T  # fmt: skip

grades = st.sampled_from([0.0, 1.0, 2.0, 3.0])
complete = arrays.arrays(np.float64, st.tuples(st.integers(2, 12), st.integers(2, 4)), elements=grades)
holed = arrays.arrays(
    np.float64, st.tuples(st.integers(2, 10), st.integers(2, 4)), elements=st.sampled_from([0.0, 1.0, 2.5, 4.0, NAN])
)


@pytest.mark.parametrize(("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(scale: str, alpha: float) -> None:
    result = krippendorff_alpha(OBSERVERS, scale)
    assert round(result.value, 3) == alpha
    assert (result.units, result.left_out, result.judges) == (11, 1, 4)
    low, high = result.interval
    assert low < alpha < high <= 1


def alpha_by_definition(table: np.ndarray, scale: str) -> float:
    """Compare every two values of a unit, and every two values at all."""
    units = [row[~np.isnan(row)].tolist() for row in table]
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]

    def distance(one: float, other: float) -> float:
        if scale == "nominal":
            return float(one != other)
        if scale == "interval":
            return (one - other) ** 2
        low, high = min(one, other), max(one, other)
        between = sum(low <= value <= high for value in values)
        return (between - (values.count(low) + values.count(high)) / 2) ** 2 if low != high else 0.0

    observed = sum(
        distance(*pair) / (len(unit) - 1) for unit in units for pair in itertools.permutations(unit, 2)
    ) / max(len(values), 1)
    count = len(values)
    expected = sum(distance(*pair) for pair in itertools.permutations(values, 2)) / max(count * (count - 1), 1)
    return 1 - observed / expected if expected else NAN


@given(holed, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_is_its_definition(table: np.ndarray, scale: str) -> None:
    result = krippendorff_alpha(table, scale)
    assert result.value == pytest.approx(alpha_by_definition(table, scale), abs=1e-9, nan_ok=True)


@given(complete)
def test_kappas_are_those_of_statsmodels(table: np.ndarray) -> None:
    first, second = table[:, 0], table[:, 1]
    counts = np.zeros((4, 4))
    np.add.at(counts, (first.astype(int), second.astype(int)), 1)
    for weights in ("nominal", "linear", "quadratic"):
        result = cohen_kappa(first, second, weights)
        if len(np.unique(table[:, :2])) == 1:
            assert math.isnan(result.value)
            assert result.sentence.endswith(
                "is undefined: all grades are the same, so the disagreement expected by chance is 0."
            )
        else:
            plain = None if weights == "nominal" else weights
            expected = inter_rater.cohens_kappa(counts, wt=plain, return_results=False)
            assert result.value == pytest.approx(expected, abs=1e-9)
    result = fleiss_kappa(table)
    if len(np.unique(table)) == 1:
        assert math.isnan(result.value)
    else:
        assert result.value == pytest.approx(inter_rater.fleiss_kappa(inter_rater.aggregate_raters(table)[0]), abs=1e-9)


def test_cohen_by_hand() -> None:
    # 50 applications, two readers: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no; chance 0.5 * 0.6 + 0.5 * 0.4
    first, second = np.repeat([1.0, 1.0, 0.0, 0.0], [20, 5, 10, 15]), np.repeat([1.0, 0.0, 1.0, 0.0], [20, 5, 10, 15])
    result = cohen_kappa(first, second)
    assert result.observed == pytest.approx(0.3)
    assert result.expected == pytest.approx(0.5)
    assert result.value == pytest.approx(0.4)


def test_fleiss_by_hand() -> None:
    # Fleiss 1971 in small: P = (1 + 1/3 + 1) / 3, chance (4/9)^2 + (5/9)^2
    result = fleiss_kappa(np.array([[1, 1, 1], [0, 0, 1], [0, 0, 0]]))
    assert result.value == pytest.approx((7 / 9 - 41 / 81) / (1 - 41 / 81))


def test_weights_use_the_distance_of_the_grades_themselves() -> None:
    first, second = np.array([0.0, 3.0, 0.0, 3.0, 1.0]), np.array([0.0, 3.0, 3.0, 3.0, 0.0])
    # distances: 3 and 1 of 5; by chance the first has 0 0 1 3 3, the second 0 0 3 3 3
    by_chance = np.mean([abs(a - b) for a in first for b in second])
    assert cohen_kappa(first, second, "linear").value == pytest.approx(1 - (4 / 5) / by_chance)


def test_fractional_grades_have_weighted_kappa_and_alpha() -> None:
    first, second = np.array([0.1, 1.3, 2.9]), np.array([0.3, 1.2, 2.7])
    assert cohen_kappa(first, second).value == 0.0  # never equal, nor by chance
    assert krippendorff_alpha(np.stack([first, second], axis=1), "interval").value > 0.98


@pytest.mark.parametrize("function", [krippendorff_alpha, fleiss_kappa])
def test_nothing_to_compare(function) -> None:
    for table in (np.zeros((0, 2)), np.full((3, 2), NAN), np.array([[1.0], [2.0]]), np.array([[1, NAN], [NAN, 2]])):
        result = function(table)
        assert math.isnan(result.value)
        assert (result.interval, result.units) == (None, 0)
        assert result.sentence.endswith("is undefined: no unit (such as a document) was judged by two judges.")


def test_perfect_agreement_and_reversal() -> None:
    first = np.array([0.0, 1.0, 0.0, 1.0])
    assert cohen_kappa(first, first).value == 1.0
    assert cohen_kappa(first, 1 - first).value == -1.0
    many = np.tile(first, 10)
    reversed_ = cohen_kappa(many, 1 - many)
    assert (reversed_.value, reversed_.interval) == (-1.0, None)  # the same without any of the things
    many[:4] = 1 - many[:4]
    mostly = cohen_kappa(many, 1 - np.tile(first, 10))
    assert mostly.interval is not None
    assert mostly.interval[1] < 0
    assert mostly.sentence.endswith("disagree more than expected by chance.")


def test_confusion() -> None:
    result = confusion(np.array([0, 0, 1, 2, NAN]), np.array([0, 1, 1, 5, 1]))
    assert result.grades.tolist() == [0, 1, 2, 5]
    assert result.counts.tolist() == [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert result.agreed == 0.5
    assert math.isnan(confusion(np.array([NAN]), np.array([1.0])).agreed)


def test_the_interval_is_that_of_the_jackknife_over_topics() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 3, 60).astype(float)
    second = np.where(rng.random(60) < 0.6, first, rng.integers(0, 3, 60))
    topics = np.repeat(np.arange(12), 5) * 7 - 3  # any numbers name groups
    result = cohen_kappa(first, second, groups=topics)
    without = np.array([cohen_kappa(first[topics != one], second[topics != one]).value for one in np.unique(topics)])
    pseudo = result.value + 11 * (without.mean() - without)
    assert result.interval == pytest.approx(adjusted(pseudo[None], (-1, 1), 0.95)[0].tolist())
    assert (result.groups, result.units) == (12, 60)


def test_things_by_themselves_are_groups_of_one() -> None:
    rng = np.random.default_rng(4)
    table = rng.integers(0, 3, (300, 3)).astype(float)
    assert fleiss_kappa(table).interval == fleiss_kappa(table, groups=np.arange(300)).interval


@pytest.mark.parametrize(
    ("situation", "n", "least"),
    [
        ("two grades", 10, 0.9),
        ("four grades", 10, 0.92),
        ("high agreement", 20, 0.93),
        ("by chance", 20, 0.86),
        ("topics", 20, 0.92),
    ],
)
@pytest.mark.parametrize("method", ["kappa", "alpha"])
def test_intervals_of_few_things_hold_the_truth(method: str, situation: str, n: int, least: float) -> None:
    """Percentiles of the bootstrap held it in 43 to 90 % of these samples.

    Of topics that differ in size, intervals of all topics alike held it in 88 to 92 %.
    """
    assert agreement.coverage(method, situation, n, 300) >= least


def test_why_there_is_no_interval() -> None:
    one_topic = cohen_kappa(np.array([0.0, 1.0]), np.array([0.0, 1.0]), groups=np.array([4, 4]))
    assert one_topic.value == 1.0
    assert one_topic.interval is None
    assert "1 topic" in one_topic.note
    rare = cohen_kappa(np.array([0.0] * 9 + [1.0]), np.array([0.0] * 9 + [1.0]))
    assert rare.interval is None
    assert rare.note


def test_agreement_in_words() -> None:
    assert krippendorff_alpha(OBSERVERS).sentence.startswith("Krippendorff's alpha (ordinal) is 0.815, 95% CI")


def test_wrong_input() -> None:
    good = np.array([0.0, 1.0])
    with pytest.raises(InputError, match="`weights` 'cubic'"):
        cohen_kappa(good, good, "cubic")
    with pytest.raises(InputError, match="`scale` 'ratio'"):
        krippendorff_alpha(np.zeros((2, 2)), "ratio")
    with pytest.raises(InputError, match="2 dimensions, got 1"):
        fleiss_kappa(good)
    with pytest.raises(InputError, match="infinite"):
        fleiss_kappa(np.array([[math.inf, 1.0]]))
    with pytest.raises(InputError, match=r"`groups` must have shape \(2,\)"):
        cohen_kappa(good, good, groups=np.array([1]))
    with pytest.raises(InputError, match="between 0 and 1, got 1"):
        cohen_kappa(good, good, level=1)
