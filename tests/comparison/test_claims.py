"""Sentences describe only what the test shows: claims about means require a test of means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from comparison_made import scores
from judged.results.decimals import format_level
from judged.stats.paired import paired_test

SMALL, LARGE = [9] * 10 + [1], [8] * 10 + [0]  # ten topics a little better, one much worse: the mean falls
RANKS = {
    name: np.random.default_rng(5).integers(1, top, 30).tolist() for name, top in zip("abcd", (3, 4, 5, 9), strict=True)
}


@pytest.mark.parametrize("test", ["sign", "wilcoxon", "nemenyi"])
def test_sign_and_rank_tests_do_not_claim_a_better_mean(test: str) -> None:
    """They can be significant with a mean difference of 0, where "better in nDCG@10" would be false."""
    for ranks in ({"old": [3] * 12, "new": [2] * 12}, {"old": SMALL, "new": LARGE}):
        result = scores(**ranks).compare(test=test, alpha=0.1)
        pair = result.pairs[0]
        assert "is better than" not in pair.sentence
        assert "does not compare means" in pair.sentence
        assert np.isnan(pair.detectable)
        assert "significantly better than;" not in f"{result.caption};"
    equal = scores(old=[1, 2, 3, 4, 2, 3], new=[2, 1, 3, 4, 3, 2]).compare(test=test).pairs[0]
    assert "better" not in equal.sentence.split(":")[0] or test == "nemenyi"


def test_signs_that_point_against_the_mean_say_so() -> None:
    pair = scores(old=SMALL, new=LARGE).compare(test="sign", alpha=0.1).pairs[0]
    assert (pair.favored, pair.better) == ("new", None)
    assert pair.result.difference < 0
    assert ", so the mean favors old." in pair.sentence


@pytest.mark.parametrize("test", ["sign", "wilcoxon"])
def test_signs_and_ranks_may_favor_one_side_where_the_means_are_equal(test: str) -> None:
    gaps = np.random.default_rng(0).exponential(0.1, 400)
    result = paired_test(np.zeros(400), gaps - gaps.mean(), test)
    assert result.significant
    assert result.side == -1


def test_ratios_are_labeled_as_ratios() -> None:
    result = scores(old=[3, 4, 5, 6, 7, 3, 4, 5], new=[1, 2, 2, 3, 3, 1, 2, 2]).compare(test="ratio").pairs[0]
    assert result.better == "new"
    assert "geometric means" in result.sentence


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "hochberg", "bh", "by", "none"])
@pytest.mark.parametrize("family", ["measure", "all"])
def test_no_interval_contradicts_the_verdict_beside_it(correction: str, family: str) -> None:
    result = scores(["RR", "AP", "P@2"], **RANKS).compare(correction=correction, family=family, resamples=5000)
    assert {pair.significant for pair in result.pairs} == {True, False}
    assert all(pair.interval_agrees for pair in result.pairs)
    assert all(format_level(pair.result.level) in pair.sentence for pair in result.pairs)


def test_the_table_says_what_its_intervals_hold_together() -> None:
    output = {name: scores(**RANKS).compare(correction=name, test="t").text() for name in ("holm", "bh", "none")}
    assert f"{format_level(1 - 0.05 / 6)} CIs" in output["holm"]
    assert "simultaneous 95% CIs" in scores(**RANKS).compare(test="tukey").text()
    assert "CIs are not corrected" in " ".join(output["none"].split())
    assert "exclude 0" in " ".join(output["bh"].split())


def test_an_interval_that_disagrees_says_that_p_decides() -> None:
    pair = scores(**RANKS).compare(test="t").pair("a", "d")
    assert pair.significant
    contradictory = replace(pair, result=replace(pair.result, interval=(-0.1, 0.3)))
    assert "the CI and p use different methods and disagree" in contradictory.sentence
    assert "the CI and p use different methods and disagree" not in pair.sentence


def test_what_is_detectable_is_said_to_be_at_the_level_that_is_left() -> None:
    result = scores(**RANKS).compare(test="t")
    assert "alpha = 0.05 / 6" in " ".join(result.text().split())
    alone = scores(**{name: RANKS[name] for name in "ab"}).compare(test="t")
    assert "/" not in alone.text().split("==")[2]


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "tukey", "nemenyi", "bayes", "sign"])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_of_two_to_five_topics_there_is_no_verdict(test: str, n: int) -> None:
    result = scores(old=[9, 8, 9, 8, 9][:n], new=[1, 1, 1, 1, 1][:n]).compare(test=test, ci="none", margin=0.9)
    pair = result.pairs[0]
    assert (pair.significant, pair.better, pair.favored, pair.sensitivity) == (False, None, None, None)
    assert (pair.result.interval is None) >= (n < 3)
    assert np.isnan(pair.result.p) >= (n < 3)
    assert pair.equivalence is None or not pair.equivalence.significant
    assert np.isnan(pair.detectable)
    assert any(f"{n} topics" in warning for warning in result.warnings)
    if n > 2:
        assert f"Not enough data: {n} topics, at least 6 are required." in pair.sentence
    else:
        assert "no conclusion is possible" in pair.sentence
    assert not any("Not enough" in warning for warning in scores(**RANKS).compare(test=test, resamples=500).warnings)


@pytest.mark.parametrize("test", ["randomization", "t", "bounded", "tukey", "bayes", "sign"])
def test_from_six_topics_on_there_is_one(test: str) -> None:
    result = scores(old=[20, 19, 18, 20, 19, 18], new=[1] * 6).compare(test=test)
    assert result.pairs[0].better == "new"


def test_a_test_in_place_of_another_is_named_in_the_rules() -> None:
    partly_replaced = scores(a=[1] * 48, b=[1] * 45 + [2, 3, 4], c=[2] * 47 + [1]).compare(
        test="bca", ci="none", resamples=500
    )
    assert "randomization test for 1 of 3 pairs" in " ".join(partly_replaced.caption.split())
    replaced = scores(a=[1, 2, 3, 4, 5], b=[2, 3, 3, 5, 6]).compare(test="studentized", ci="none")
    assert "randomization test instead of paired studentized bootstrap test" in replaced.caption
    assert replaced.pairs[0].result.test == "randomization"
