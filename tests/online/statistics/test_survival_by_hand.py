"""A small Kaplan-Meier curve by hand: shares, quantiles, means, influences, and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from judged.online.statistics.survival import SurvivalCurve, clustered_error, kaplan_meier
from judged.stats.ratio import ratio_interval

# ten durations: 2 end after 1, 1 after 3 and 1 is lost, 2 are lost after 4, 3 end after 6, 1 is lost after 8
TIMES, ENDED, LOST = [1, 3, 4, 6, 8], [2, 1, 0, 3, 0], [0, 1, 2, 0, 1]


def small() -> SurvivalCurve:
    return kaplan_meier(TIMES, ENDED, LOST)


def test_shares_and_greenwoods_sums() -> None:
    curve = small()
    assert (curve.rows, curve.at_risk.tolist()) == (10, [10, 8, 6, 4, 1])
    assert curve.survival.tolist() == pytest.approx([0.8, 0.7, 0.7, 0.175, 0.175])  # 8/10, 7/8, 6/6, 1/4, 1/1
    sums = [2 / 80, 2 / 80 + 1 / 56, 2 / 80 + 1 / 56, 2 / 80 + 1 / 56 + 3 / 4, 2 / 80 + 1 / 56 + 3 / 4]
    assert curve.greenwood_sums.tolist() == pytest.approx(sums)
    assert [curve.survival_at(time) for time in (0, 0.5, 1, 2.9, 3, 6, 8)] == pytest.approx(
        [1, 1, 0.8, 0.8, 0.7, 0.175, 0.175]
    )
    assert math.isnan(curve.survival_at(8.1))
    assert curve.greenwood(0.5) == 0.0
    assert curve.greenwood(1) == pytest.approx(0.8 * math.sqrt(sums[0]))
    assert curve.greenwood(7) == pytest.approx(0.175 * math.sqrt(sums[4]))


def test_a_curve_that_ends_at_0() -> None:
    curve = kaplan_meier([2, 5, 7], [1, 2, 0], [1, 0, 0])  # nobody is left at 7
    assert curve.survival.tolist() == [0.75, 0.0, 0.0]
    assert curve.greenwood_sums.tolist() == pytest.approx([1 / 12] * 3)  # where all end nothing is added
    assert [curve.survival_at(time) for time in (5, 7, 99)] == [0.0, 0.0, 0.0]
    assert (curve.quantile(1.0), curve.mean(99)) == (5.0, 2 + 0.75 * 3)
    assert [column.tolist() for column in curve.influence(5)] == [[0.0] * 3] * 2
    assert [column.tolist() for column in curve.influence(1)] == [[0.0] * 3] * 2
    assert curve.greenwood(5) == 0.0
    empty = kaplan_meier([], [], [])
    assert (empty.rows, empty.quantile(0.5), empty.greenwood(3)) == (0, math.inf, 0.0)
    assert math.isnan(empty.mean(3))


def test_quantiles_are_reached_where_the_share_has_ended() -> None:
    curve = small()
    assert [curve.quantile(share) for share in (0.0, 0.1, 0.2, 0.25, 0.3, 0.31, 0.825)] == [1, 1, 1, 3, 3, 6, 6]
    assert curve.quantile(0.826) == math.inf
    # a share of 0.2 that rounding leaves at 0.19999999999999996 has ended as well
    assert kaplan_meier([1, 2], [1, 4], [0, 0]).quantile(1 - 0.8) == 1.0


def test_means_are_areas() -> None:
    curve = small()
    areas = {0: 0, 0.5: 0.5, 1: 1, 2: 1.8, 3: 2.6, 5: 4.0, 6: 4.7, 8: 5.05}
    assert {time: curve.mean(time) for time in areas} == pytest.approx(areas)
    assert math.isnan(curve.mean(9))


@pytest.mark.parametrize("time", [0.5, 1, 3, 3.5, 5, 6, 7, 8])
def test_what_one_duration_adds_to_mean_and_share(time: float) -> None:
    """Each kind of duration is counted a little more often: the change of the mean, and of the share's logarithm."""
    curve, copies = small(), 10**7
    influences = [*curve.mean_influence(time), *curve.influence(time)]
    for kind, counts in enumerate((ENDED, LOST)):
        for i in range(len(TIMES)):
            if not counts[i]:
                continue
            perturbed_counts = [np.array(original) * copies for original in (ENDED, LOST)]
            perturbed_counts[kind][i] += 1
            perturbed = kaplan_meier(TIMES, *perturbed_counts)
            assert influences[kind][i] == pytest.approx((perturbed.mean(time) - curve.mean(time)) * copies, abs=1e-6)
            change = math.log(perturbed.survival_at(time)) - math.log(curve.survival_at(time))
            assert influences[2 + kind][i] == pytest.approx(change * copies, abs=1e-6)
    # over all durations they sum to 0
    for ended, lost in (influences[:2], influences[2:]):
        assert ended @ ENDED + lost @ LOST == pytest.approx(0.0, abs=1e-12)
    squares = (influences[2] ** 2) @ ENDED + (influences[3] ** 2) @ LOST
    assert curve.survival_at(time) * math.sqrt(squares) == pytest.approx(curve.greenwood(time))


def test_intervals_within_the_curve_and_of_too_few() -> None:
    curve = small()
    assert curve.interval(3, 0.1, 10, 0.9) == pytest.approx(ratio_interval(0.7, 0.1, 10, 0.9, share=True))
    interval = curve.interval(3, 0.1, 10, 0.9, effective=6.0)
    assert interval == pytest.approx(ratio_interval(0.7, 0.1, 10, 0.9, share=True, effective=6.0))
    assert not math.isnan(interval[0])
    for units, effective in ((2, None), (10, 2.0)):
        assert all(math.isnan(limit) for limit in curve.interval(3, 0.1, units, 0.9, effective=effective))
    assert all(math.isnan(limit) for limit in curve.interval(9, 0.1, 10, 0.9))


def test_intervals_before_anything_ended() -> None:
    """4 of 10 are lost after 2, and 6 of 10 are watched until 5: of 7 units 0.6 x 7 = 4.2, so 4, count."""
    curve = kaplan_meier([2, 5], [0, 3], [4, 3])
    for time, units in ((1, 7), (2, 7), (3, 4), (4.9, 4)):
        low, high = curve.interval(time, 0.0, 7, 0.9)
        exact = stats.binomtest(units, units).proportion_ci(0.9)
        assert (low, high) == pytest.approx((exact.low, 1.0))


def test_intervals_where_all_have_ended() -> None:
    ended = kaplan_meier([2, 5], [4, 6], [0, 0])
    exact = stats.binomtest(0, 10).proportion_ci(0.9)
    for time in (5, 6):
        assert ended.interval(time, 0.0, 10, 0.9) == pytest.approx((0.0, exact.high))
    # what is lost when the last ones end, or later, does not count; what is lost before does
    before = kaplan_meier([2, 3, 5], [4, 0, 4], [0, 2, 0])
    upper = ratio_interval(0.6, before.greenwood(3), 10, 0.9, share=True, effective=8.0)[1]
    assert before.interval(5, 0.0, 10, 0.9, effective=8.0) == (0.0, upper)
    assert before.interval(6, 0.0, 10, 0.9, effective=8.0) == (0.0, upper)
    first = kaplan_meier([2, 5], [4, 4], [2, 0])
    upper = ratio_interval(0.6, first.greenwood(2), 10, 0.9, share=True)[1]
    assert first.interval(5, 0.0, 10, 0.9) == (0.0, upper)
    half_ended = kaplan_meier([2, 3, 5], [0, 4, 4], [2, 0, 0])
    upper = ratio_interval(0.5, half_ended.greenwood(3), 10, 0.9, share=True)[1]
    assert half_ended.interval(5, 0.0, 10, 0.9) == pytest.approx((0.0, upper))
    assert upper < 0.9
    # up to the last step nothing had ended
    assert kaplan_meier([2, 5], [0, 8], [2, 0]).interval(5, 0.0, 10, 0.9) == (0.0, 1.0)
    after = kaplan_meier([2, 5, 7], [4, 6, 0], [0, 0, 0])
    assert after.interval(7, 0.0, 10, 0.9) == pytest.approx((0.0, exact.high))


def test_errors_over_units() -> None:
    assert clustered_error(0.5, 0.02, 2) == pytest.approx(0.5 * math.sqrt(0.02 * 2))
    assert clustered_error(0.5, 0.03, 4) == pytest.approx(0.5 * 0.2)
    assert clustered_error(0.5, -1e-20, 4) == 0.0  # rounding
    assert math.isnan(clustered_error(0.5, 0.02, 1.99))
