"""Decisions of checks: hand calculations, enumeration of sign flips, and error rates."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from diagnosis.gates.check_scores import decided, pair
from judged.stats.sample_size import detectable, minimum_detectable

LOSSES = [0.0] * 8 + [-0.5] * 2


def sign_flip_p(differences: list[float], margin: float, sign: int) -> float:
    """Flip the signs of the shifted differences in all ways: share of sums at least as extreme as the observed one."""
    shifted = np.array(differences) + margin
    sums = np.array(list(itertools.product((-1.0, 1.0), repeat=len(differences)))) @ shifted
    return float(np.mean(sign * sums >= sign * shifted.sum() - 1e-9))


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.2])
def test_the_p_values_are_those_of_all_sign_flips(margin: float) -> None:
    (result,) = decided(pair(LOSSES, margin=margin))
    assert result.difference == pytest.approx(-0.1)
    assert result.p == pytest.approx(sign_flip_p(LOSSES, margin, -1))
    assert result.p_safe == pytest.approx(sign_flip_p(LOSSES, margin, 1))


def test_students_p_values_and_interval() -> None:
    differences = np.random.default_rng(5).normal(-0.03, 0.05, 30)
    (result,) = decided(pair(differences, margin=0.01), test="t")
    assert result.p == pytest.approx(stats.ttest_1samp(differences, -0.01, alternative="less").pvalue)
    assert result.p_safe == pytest.approx(stats.ttest_1samp(differences, -0.01, alternative="greater").pvalue)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.9)
    assert result.interval == pytest.approx((expected.low, expected.high))
    assert result.level == pytest.approx(0.9)
    detectable_loss = 0.01 + detectable(differences, 0.1)
    assert result.detectable == pytest.approx(detectable_loss)


@pytest.mark.parametrize(
    ("differences", "status"),
    [
        ([-0.5] * 12, "fail"),  # p = 2^-12
        ([-0.02] * 12, "inconclusive"),  # exactly the margin: neither more nor less
        ([0.0] * 12, "pass"),
        ([0.3] * 12, "pass"),
        ([-0.5, 0.5] * 6, "inconclusive"),
        ([-0.5] * 5, "inconclusive"),  # p would be 1/32, and too few topics
        ([-0.5] * 6, "fail"),  # p = 1/64
    ],
)
@pytest.mark.parametrize("test", ["randomization", "t"])
def test_small_cases(differences: list[float], status: str, test: str) -> None:
    (result,) = decided(pair(differences, margin=0.02), test=test)
    assert result.status == status
    assert result.blocks == (status == "fail")


gaps_and_margins = st.tuples(
    st.lists(st.integers(-100, 100), min_size=6, max_size=25),
    st.integers(0, 60),
    st.sampled_from(["randomization", "t", "bounded"]),
)


@given(gaps_and_margins)
def test_limits_and_decisions_agree(case: tuple[list[int], int, str]) -> None:
    differences, margin = [value / 200 for value in case[0]], case[1] / 200 + 0.00123  # never at a limit by design
    (result,) = decided(pair(differences, margin=margin), test=case[2])
    if any(differences):
        low, high = result.interval
        assert (result.status == "fail") == (high < -margin)
        assert (result.status == "pass") == (low > -margin)
        assert result.largest_loss == -low
        assert result.least_loss == -high


def test_lower_is_better_turns_the_sign() -> None:
    differences = [*LOSSES, -0.3]
    (up,) = decided(pair(differences, margin=0.05))
    (down,) = decided(pair([-difference for difference in differences], "Fallout(n=100)", margin=0.05))
    assert down.lower_is_better
    assert (down.p, down.p_safe, down.status, down.loss) == (up.p, up.p_safe, up.status, up.loss)
    assert down.difference == -up.difference
    assert down.interval == (-up.interval[1], -up.interval[0])
    assert (
        [topic.query_id for topic in down.largest_losses]
        == [topic.query_id for topic in up.largest_losses]
        == ["q008", "q009", "q010"]
    )


def test_geometric_means_are_compared_by_ratios() -> None:
    (result,) = decided(pair([-0.25] * 10, "GMAP", margin_relative=0.1))
    assert (result.kind, result.baseline, result.candidate) == ("ratio", pytest.approx(0.5), pytest.approx(0.25))
    assert result.difference == pytest.approx(-0.5)
    assert result.interval == pytest.approx((-0.5, -0.5))
    assert (result.margin, result.status, result.p) == (0.1, "fail", 2**-10)
    rng = np.random.default_rng(2)
    logs = rng.normal(-0.02, 0.05, 40)
    (result,) = decided(pair(0.5 * np.exp(logs) - 0.5, "GMAP", margin_relative=0.1), test="t")
    assert result.p_safe == pytest.approx(stats.ttest_1samp(logs, math.log(0.9), alternative="greater").pvalue)
    interval = stats.ttest_1samp(logs, 0).confidence_interval(0.9)
    assert result.interval == pytest.approx(tuple(np.expm1([interval.low, interval.high])))


def test_a_relative_margin_is_a_share_of_the_baselines_mean() -> None:
    assert decided(pair(LOSSES, margin_relative=0.04))[0].margin == pytest.approx(0.02)


def test_holm_allows_for_all_checks() -> None:
    checks = [
        pair([-0.5] * 6, margin=0.02),
        pair([-0.5] * 8, "nDCG@10", margin=0.02),
        pair([0.1, -0.1] * 6, "RR", margin=0.1),
    ]
    results = decided(*checks)
    assert [result.p for result in results] == [2**-6, 2**-8, results[2].p]
    assert [result.adjusted for result in results] == [2 * 2**-6, 3 * 2**-8, results[2].p]
    assert decided(*checks, correction="bonferroni")[0].adjusted == 3 * 2**-6
    single = pair([-0.5] * 6, margin=0.02)
    assert decided(single, alpha=0.02)[0].status == "fail"
    corrected = decided(single, pair([-0.1, 0.1] * 6, "RR", margin=0.1), alpha=0.02)[0]
    assert (corrected.status, corrected.adjusted) == ("inconclusive", 2 * 2**-6)
    numbers = "96% CI of the difference [-0.5000, -0.5000], p = 0.016"
    failure = f"the check would fail without correction ({numbers})"
    assert (
        f"{failure}, but the check does not fail after Holm's correction for 2 checks (p = 0.031)" in corrected.sentence
    )
    assert decided(single, checks[2], correction="none", alpha=0.02)[0].status == "fail"


def test_an_interval_beyond_the_margin_is_shown_with_both_p_values() -> None:
    others = (pair([-0.1, 0.1] * 6, name, margin=0.1) for name in ("RR", "R@10"))
    check = decided(pair([-0.3] * 5 + [0.0] * 15, margin=0.001), *others)[0]
    assert check.status == "inconclusive"
    assert check.least_loss > check.margin
    failure = "the check would fail without correction (90% CI of the difference [-0.1286, -0.0273], p = 0.025)"
    assert f"{failure}, but the check does not fail after Holm's correction for 3 checks (p = 0.075)" in check.sentence


def test_small_slices_decide_nothing_and_take_no_part_in_the_correction() -> None:
    rare = pair([-0.5] * 9, slice="rare", min_topics=10)
    common = pair([-0.5] * 6)
    for strict in (False, True):
        first, second = decided(rare, common, strict=strict)
        assert (first.status, first.blocks, first.interval) == ("inconclusive", strict, None)
        assert math.isnan(first.p)
        assert "too few topics: 9, at least 10 are required" in first.sentence
        assert second.adjusted == second.p


def test_runs_with_the_same_scores_pass_whatever_is_asked() -> None:
    checks = [pair([0.0] * 3, min_topics=10), pair([0.0], "RR", margin=0.0)]
    assert [result.status for result in decided(*checks, strict=True)] == ["pass"] * 2
    results = decided(*checks, pair([0.1] * 10, "R@10"), strict=True)
    assert [result.status for result in results] == ["inconclusive", "inconclusive", "pass"]
    unchanged = decided(pair([0.0] * 12, margin=0.0), pair([0.1] * 10, "R@10"))[0]
    assert unchanged.status == "pass"
    assert "both runs have the same score on 12 topics of the slice" in unchanged.sentence


def test_topics_without_a_score_are_counted() -> None:
    (result,) = decided(pair([-0.5] * 12 + [math.nan] * 2))
    assert (result.n, result.left_out, result.status) == (12, 2, "fail")
    assert "Excluded: 2 topics on which at least one of the two runs has no score" in result.sentence


def test_the_same_seed_gives_the_same_and_another_one_another() -> None:
    differences = np.random.default_rng(0).normal(-0.02, 0.1, 40)
    first, repeated, other_seed = (decided(pair(differences), seed=seed)[0] for seed in (1, 1, 2))
    assert first == repeated
    assert first.p != other_seed.p


def test_a_check_may_be_stricter_or_milder_than_the_gate() -> None:
    unclear = pair([-0.5, 0.5] * 6)
    for gate_strict, strict, blocks in (
        (False, True, True),
        (True, False, False),
        (True, None, True),
        (False, None, False),
    ):
        (result,) = decided(replace(unclear, check=replace(unclear.check, strict=strict)), strict=gate_strict)
        assert (result.status, result.blocks) == ("inconclusive", blocks)


def test_what_so_few_topics_cannot_show_is_not_called_noticeable() -> None:
    """One-sided, 6 topics have a least p of 1/64, which a second check doubles."""
    losses = [-0.5, -0.4, -0.45, -0.55, -0.2, -0.3]
    undecidable = decided(pair(losses), alpha=0.01)[0]
    assert (undecidable.smallest_p, undecidable.p, undecidable.status) == (2**-6, 2**-6, "inconclusive")
    assert math.isnan(undecidable.detectable)
    assert "; with 6 topics, p cannot be below 0.016: this check can never fail." in undecidable.sentence
    assert "is detected with" not in undecidable.sentence
    single = decided(pair(losses), alpha=0.02)[0]
    assert (single.status, single.detectable > 0) == ("fail", True)
    other = pair([-0.1, 0.1] * 6, "RR", margin=0.1)
    six, twelve = decided(pair(losses), other, alpha=0.02)
    assert math.isnan(six.detectable)
    assert twelve.detectable > 0.1
    assert (
        "with 6 topics, p cannot be below 0.016, or below 0.031 after Holm's correction for 2 checks: this check can"
        " never fail unless other checks fail."
    ) in six.sentence
    undecidable = decided(pair(losses), other, correction="bonferroni", alpha=0.02)[0]
    assert "after Bonferroni's correction for 2 checks: this check can never fail." in undecidable.sentence
    assert decided(pair(losses), other, correction="none", alpha=0.02)[0].status == "fail"
    assert decided(pair(losses), test="t", alpha=0.01)[0].status == "fail"  # which knows no such bound


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("test", ["randomization", "t", "bounded"])
def test_fewer_than_six_topics_decide_nothing(n: int, test: str) -> None:
    for differences in ([-0.5 + 0.01 * i for i in range(n)], [0.5 - 0.01 * i for i in range(n)]):
        (result,) = decided(pair(differences, margin=0.02), test=test, alpha=0.2, max_share_of_large_losses=0.1)
        assert (result.status, result.sensitivity) == ("inconclusive", None)
        assert f"too few topics: {n}, at least 6 are required" in result.sentence


def test_too_few_resamples_can_never_fail_either() -> None:
    checks = [pair([-0.1, 0.1, -0.2] * 6, slice=f"s{i}", margin=0.05) for i in range(60)]
    result = decided(*checks, resamples=1000)[0]  # p is at least 1/1001, and Holm asks for 0.05 / 60
    assert math.isnan(result.detectable)
    assert "with this number of resamples, p cannot be below 0.001, or below 0.06 after Holm's" in result.sentence
    assert decided(*checks, resamples=2000)[0].detectable > 0


def test_no_topic_decides_nothing() -> None:
    result = decided(pair([]), pair([0.0] * 12, "RR"), strict=True)
    assert [result.status for result in result] == ["inconclusive", "pass"]
    assert "no topic has a score for both runs" in result[0].sentence


MEASURES = ("nDCG@10", "AP", "R@100")
MARGIN, SD, TOPICS = 0.02, 0.1, 48


def rates(losses: tuple[float, ...], trials: int, *, slices: bool = False, **options: object) -> tuple[float, float]:
    """Return the shares of trials in which any check fails, and in which all checks pass."""
    rng = np.random.default_rng(7)
    failed = passed = 0
    for trial in range(trials):
        shared = rng.normal(size=TOPICS)
        checks = []
        for measure, loss in zip(MEASURES, losses, strict=False):
            differences = -loss + SD * (0.6 * shared + 0.8 * rng.normal(size=TOPICS))
            checks.append(pair(differences, measure, margin=MARGIN))
            halves = (differences[::2], differences[1::2]) if slices else ()
            checks += [pair(half, measure, slice=f"s{i}", margin=MARGIN) for i, half in enumerate(halves)]
        statuses = [result.status for result in decided(*checks, seed=trial, **options)]
        failed += "fail" in statuses
        passed += set(statuses) == {"pass"}
    return failed / trials, passed / trials


def three_standard_errors(p: float, trials: int) -> float:
    return 3 * math.sqrt(p * (1 - p) / trials)


def test_a_harmless_change_fails_at_most_as_often_as_alpha_over_all_checks() -> None:
    failed, _ = rates((MARGIN, MARGIN), 200, slices=True, test="t")  # six checks that each lose the margin
    assert failed <= 0.05 + three_standard_errors(0.05, 200)
    failed, _ = rates((0.0, 0.0), 100, test="t")
    assert failed <= 0.02


@pytest.mark.parametrize(("test", "trials"), [("t", 400), ("randomization", 200)])
def test_a_loss_of_the_detectable_size_fails_as_often_as_it_says(test: str, trials: int) -> None:
    loss = MARGIN + minimum_detectable(SD, TOPICS, 0.1, 0.8)
    failed, passed = rates((loss,), trials, test=test)
    assert abs(failed - 0.8) <= three_standard_errors(0.8, trials)
    assert passed <= 0.01


@pytest.mark.parametrize(("test", "trials"), [("t", 300), ("randomization", 150)])
def test_strict_mode_lets_harm_through_at_most_as_often_as_alpha(test: str, trials: int) -> None:
    _, passed = rates((MARGIN, -1.0), trials, test=test)  # one measure loses just the margin, the other gains
    assert passed <= 0.05 + three_standard_errors(0.05, trials)
    assert passed > 0  # the bound is not kept by never passing


def test_without_a_true_difference_a_wide_margin_passes_as_often_as_planned() -> None:
    rng = np.random.default_rng(3)
    margin, trials = minimum_detectable(SD, TOPICS, 0.1, 0.8), 300
    differences = SD * rng.normal(size=(trials, TOPICS))
    passed = np.mean([decided(pair(row, margin=margin), test="t")[0].status == "pass" for row in differences])
    assert abs(passed - 0.8) <= three_standard_errors(0.8, trials)


def test_a_p_next_to_alpha_has_the_digits_that_show_the_verdict() -> None:
    (result,) = decided(pair(LOSSES))
    assert "p = 0.0498" in replace(result, adjusted=0.0498, status="fail").sentence
    assert "p = 0.0496" in replace(result, p_safe=0.0496, status="pass").sentence


def test_every_verdict_shows_how_many_topics_lost_much_and_which_lost_most() -> None:
    for loss, status in ((-0.5, "fail"), (-0.25, "inconclusive")):
        (result,) = decided(pair([loss] * 5 + [0.0] * 7 + [-0.05], margin=0.05))
        assert (result.status, result.large_losses, result.large_loss) == (status, 5, 0.2)
        assert (
            "5 of 13 topics lost more than 0.2; in the population of topics, this share is at most 64.5%"
            in result.sentence
        )
        assert "q000 (0.5000 to" in result.sentence
    (result,) = decided(pair([-0.1] + [0.02] * 47))
    assert (result.status, result.large_losses, [topic.query_id for topic in result.largest_losses]) == (
        "pass",
        0,
        ["q000"],
    )
    assert (
        "None of 48 topics lost more than 0.2; in the population of topics, this share is at most 6.1%"
        in result.sentence
    )


def test_a_pass_names_the_losses_that_so_few_topics_may_have_missed() -> None:
    """Where none of n topics lost x, a share of 3/n of all topics may: from x = n margin / 3, that is the margin."""
    (result,) = decided(pair([0.01, -0.01] * 24, margin=0.02))
    assert result.unsampled_loss == pytest.approx(0.02 / (1 - 0.05 ** (1 / 48)))
    assert (
        "unless a kind of topics that is not in the sample (at most 6.1% of all topics, 95% upper bound) loses 0.3306"
        " or more" in result.sentence
    )
    (result,) = decided(pair([0.01, -0.01] * 24, margin=0.1))  # no score can lose 1.7
    assert math.isnan(result.unsampled_loss)
    assert "but for" not in result.sentence


@pytest.mark.parametrize(("maximum", "status"), [(None, "pass"), (0.05, "pass"), (0.04, "fail"), (0.0, "fail")])
def test_large_losses_fail_only_where_a_limit_is_configured(maximum: float | None, status: str) -> None:
    differences = [-0.3] + [0.02] * 19
    for options in ({"max_share_of_large_losses": maximum}, {"max_share_of_large_losses": maximum, "large_loss": 0.29}):
        (result,) = decided(pair(differences, margin=0.05), **options)
        assert result.status == status
    assert (
        decided(pair(differences, margin=0.05), max_share_of_large_losses=maximum, large_loss=0.3)[0].status == "pass"
    )


def test_lower_is_better_loses_by_rising() -> None:
    (result,) = decided(pair([0.3] * 3 + [-0.02] * 17, "Fallout(n=100)", margin=0.2))
    assert (result.large_losses, result.largest_losses[0].candidate) == (3, 0.8)
