"""Distributions of the largest of many differences: tables in print, scipy, and tails that keep their digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judged.stats.analysis_of_variance import (
    baseline_critical,
    baseline_tail,
    studentized_range_critical,
    studentized_range_tail,
)

INF = math.inf
HARTER = {  # upper points of the studentized range, Harter (1960), for 2, 3, ... means
    (0.05, 5): (3.64, 4.60, 5.22, 5.67),
    (0.05, 10): (3.15, 3.88, 4.33, 4.65, 4.91, 5.12, 5.30, 5.46, 5.60),
    (0.05, 20): (2.95, 3.58, 3.96, 4.23, 4.45, 4.62, 4.77, 4.90, 5.01),
    (0.05, 60): (2.83, 3.40, 3.74, 3.98, 4.16, 4.31, 4.44, 4.55, 4.65),
    (0.05, INF): (2.77, 3.31, 3.63, 3.86, 4.03, 4.17, 4.29, 4.39, 4.47),
    (0.01, 5): (5.70, 6.98, 7.80, 8.42),
    (0.01, 10): (4.48, 5.27, 5.77, 6.14),
    (0.01, 20): (4.02, 4.64, 5.02, 5.29),
}
DUNNETT = {  # two-sided 5% points of the largest |t|, Dunnett (1964), for 1, 2, ... means besides the baseline
    5: (2.57, 3.03, 3.29, 3.48),
    10: (2.23, 2.57, 2.76, 2.89, 2.99),
    20: (2.09, 2.38, 2.54, 2.65, 2.73),
    30: (2.04, 2.32, 2.47, 2.58, 2.66),
    INF: (1.96, 2.21, 2.35, 2.44, 2.51, 2.57, 2.61, 2.65, 2.69),
}


@pytest.mark.parametrize(("probability", "df"), HARTER)
def test_the_studentized_range_is_that_of_the_tables(probability: float, df: float) -> None:
    for systems, expected in enumerate(HARTER[probability, df], start=2):
        result = studentized_range_critical(systems, df, probability)
        assert abs(result - expected) < 0.00501, systems


@pytest.mark.parametrize("df", DUNNETT)
def test_dunnetts_points_are_those_of_the_table(df: float) -> None:
    for systems, expected in enumerate(DUNNETT[df], start=1):
        assert abs(baseline_critical(systems, df, 0.05) / math.sqrt(2) - expected) < 0.00501, systems


@pytest.mark.parametrize(("systems", "df"), [(2, 1), (3, 1), (3, 5), (10, 20), (37, 1512), (129, 6272), (5, INF)])
def test_the_studentized_range_is_scipys(systems: int, df: float) -> None:
    q = np.array([0.001, 0.1, 0.5, 1, 2, 3, 5, 7.5])
    expected = scipy_stats.studentized_range.sf(q, systems, df)
    assert studentized_range_tail(q, systems, df) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_many_means_need_no_coarser_numbers() -> None:
    q = np.array([5.0, 6.0, 7.0, 8.0])
    expected = scipy_stats.studentized_range.sf(q, 1000, 5000)
    assert studentized_range_tail(q, 1000, 5000) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("df", [1, 2, 3, 10, 100, 1512, 30_000])
def test_two_means_give_students_t_also_far_out(df: int) -> None:
    """The range of two, and one mean besides the baseline, are |t| times the root of 2."""
    t = np.array([1e-6, 0.01, 0.5, 2, 5, 10, 20, 35, 1000, 1e6])
    expected = 2 * scipy_stats.t.sf(t, df)
    kept = expected > 1e-290
    for result in (
        studentized_range_tail(t * math.sqrt(2), 2, df),
        baseline_tail(t * math.sqrt(2), 1, df),
    ):
        assert result[kept] == pytest.approx(expected[kept], rel=1e-9)
        assert (result[~kept] < 1e-280).all()


def test_tails_are_bounded_by_those_of_single_pairs() -> None:
    """Far out, at most as many pairs as there are exceed q, hardly ever two at once: Bonferroni from below."""
    q = np.array([12.0, 15.0, 20.0])
    one = studentized_range_tail(q, 2, INF)
    assert studentized_range_tail(q, 6, INF) / one == pytest.approx([15, 15, 15], rel=1e-4)
    assert baseline_tail(q, 6, INF) / one == pytest.approx([6, 6, 6], rel=1e-4)
    assert (one < 1e-16).all()


@pytest.mark.parametrize(("systems", "df"), [(2, 5), (4, 30), (6, 60)])
def test_the_baselines_tail_is_that_of_a_multivariate_t(systems: int, df: int) -> None:
    """Correlation 1/2 between the differences; scipy integrates by quasi-random points, to some 1e-5."""
    shape = np.full((systems, systems), 0.5) + 0.5 * np.eye(systems)
    distribution = scipy_stats.multivariate_t(shape=shape, df=df, seed=1)
    for t in (1.0, 2.0, 3.0):
        inside = distribution.cdf(np.full(systems, t), lower_limit=np.full(systems, -t), maxpts=20_000 * systems)
        assert baseline_tail(np.array([t * math.sqrt(2)]), systems, df)[0] == pytest.approx(1 - inside, abs=5e-5)


def test_dunnetts_p_values_for_groups_are_scipys() -> None:
    """Independent groups of 8 have (m + 1) 7 degrees of freedom, and the same distribution."""
    groups = np.random.default_rng(3).normal(size=(5, 8)) + np.array([0, 0.5, 1, 1.5, -0.2])[:, None]
    result = scipy_stats.dunnett(*groups[1:], control=groups[0], random_state=1)
    q = np.abs(np.asarray(result.statistic)) * math.sqrt(2)
    assert baseline_tail(q, 4, 35) == pytest.approx(result.pvalue, abs=2e-4)


def test_the_ends_of_the_scale() -> None:
    q = np.array([0.0, math.inf, math.nan, 1e-12])
    for df in (1, 40, INF):
        for result in (studentized_range_tail(q, 4, df), baseline_tail(q, 4, df)):
            assert result[:2].tolist() == [1.0, 0.0]
            assert math.isnan(result[2])
            assert result[3] == pytest.approx(1.0, abs=1e-8)


def test_a_value_does_not_depend_on_the_others() -> None:
    q = np.random.default_rng(0).uniform(0.01, 12, 5000)
    together = studentized_range_tail(q, 5, 56)
    alone = np.concatenate([studentized_range_tail(q[at : at + 1], 5, 56) for at in range(40)])
    assert together[:40] == pytest.approx(alone, rel=1e-11)
    order = np.argsort(q)
    assert (np.diff(together[order]) <= 1e-14).all()


@pytest.mark.parametrize("probability", [0.5, 0.1, 0.001, 1e-8])
def test_critical_values_undo_the_tail(probability: float) -> None:
    for systems, df in ((2, 3), (37, 1512), (6, INF)):
        q = np.array([studentized_range_critical(systems, df, probability)])
        assert studentized_range_tail(q, systems, df)[0] == pytest.approx(probability, rel=1e-9)
        q = np.array([baseline_critical(systems, df, probability)])
        assert baseline_tail(q, systems, df)[0] == pytest.approx(probability, rel=1e-9)
