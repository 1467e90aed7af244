"""Minimum data for verdicts about judges, steps, systems, periods, and a judge's own variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, chi2, t, ttest_ind

from judged.labels.corrected_systems import topic_interval
from judged.pipelines.rag import support_over_time, waterfall
from judged.pipelines.rag.judge_bias import judge_bias, within_margin
from judged.pipelines.rag.judge_error import MIN_REPEATED_TOPICS, JudgeVariance, calibrate
from judged.pipelines.rag.steps import Share
from judged.stats.prediction_powered import MIN_N


def shares(passed: list[float], totals: list[float]) -> Share:
    return Share(np.array(passed), np.array(totals), 0.95)


@pytest.mark.parametrize(("units", "has_interval", "has_test"), [(2, False, False), (3, True, False), (5, True, False),
                                                            (6, True, True)])  # fmt: skip
def test_a_share_has_an_interval_from_three_units_and_a_test_from_six(
    units: int, has_interval: bool, has_test: bool
) -> None:
    varying, constant = shares([1.0, 0.0] * 4, [1.0] * 8), shares([1.0] * units, [1.0] * units)
    assert (constant.ci is not None, constant.value) == (has_interval, 1.0)
    zero = shares([0.0] * units, [1.0] * units)
    difference = constant.minus(zero)
    assert difference.value == 1.0
    assert (not np.isnan(difference.low), not np.isnan(difference.p)) == (has_interval, has_test)
    assert varying.ci is not None


def test_one_unit_with_most_of_the_weight_is_too_little_data() -> None:
    even, uneven = shares([1.0, 0.0] * 4, [2.0] * 8), shares([1.0, 0.0] * 4, [2.0] * 7 + [15.0])
    assert even.ci is not None
    assert uneven.ci is None  # 15 of 29
    assert np.isnan(uneven.minus(even).p)
    assert np.isnan(even.minus(uneven).p)


def answers(topics: int) -> dict[str, list[dict[str, Any]]]:
    """Return answers of two systems with two documents in the context: a cites the first one, b both."""
    names = [f"q{i}" for i in range(topics)]
    rows = [{"query_id": query, "run_id": run} for query in names for run in ("a", "b")]
    documents = [{**row, "doc_id": doc} for row in rows for doc in "xy"]
    cited = [{**row, "sentence": 1} for row in documents if row["run_id"] == "b" or row["doc_id"] == "x"]
    return {"answers": [{**row, "text": "It is so."} for row in rows], "context": documents, "citations": cited}


@pytest.mark.parametrize(("topics", "is_tested"), [(5, False), (6, True)])
def test_steps_and_systems_are_compared_from_six_topics(topics: int, is_tested: bool) -> None:
    """Of 3 documents, both steps lose one."""
    qrels = {f"q{i}": dict.fromkeys("xyz", 1) for i in range(topics)}
    result = waterfall(answers(topics), qrels)
    steps = {(step.run, step.step): step for step in result.steps if step.unit == "document"}
    assert (steps["a", "context"].share.value, steps["a", "cited"].share.value) == (2 / 3, 1 / 2)
    weakest = result.weakest["a"]
    assert (weakest.step.step, weakest.insufficiency is None, not np.isnan(weakest.p)) == (
        "context",
        is_tested,
        is_tested,
    )
    differences = [
        difference for difference in result.differences if difference.unit == "document" and difference.step == "cited"
    ]
    # all topics differ by the same share, so no variance can be estimated
    assert [(difference.share.value, np.isnan(difference.p)) for difference in differences] == [(0.5, True)]
    # Holm's correction does not count differences that are not tested
    assert all(np.isnan(difference.p) for difference in result.differences) != is_tested


@pytest.mark.parametrize(("count", "has_interval"), [(2, False), (3, True)])
def test_a_period_has_an_interval_from_three_answers(count: int, has_interval: bool) -> None:
    names = [f"q{i}" for i in range(count)]
    tables = {
        "answers": [{"query_id": name} for name in names],
        "support": [{"query_id": name, "sentence": 1, "doc_id": "d", "verdict": "support" if i else "not"}
                    for i, name in enumerate(names)],
    }  # fmt: skip
    (period,) = support_over_time(tables, dict.fromkeys(names, "2026-03-01")).periods
    assert period.supported.value == (count - 1) / count
    assert (period.supported.ci is not None) == has_interval


def test_a_judge_is_accepted_from_25_topics_with_varying_errors() -> None:
    within = (-0.01, 0.01)
    assert [within_margin(n, within, 0.05) for n in (MIN_N - 1, MIN_N)] == ["not tested", "yes"]
    assert within_margin(100, None, 0.05) == "not tested"
    limits = ((-0.05, 0.05), (-0.051, 0), (0, 0.051), (0.051, 0.1), (-0.1, -0.051))
    assert [within_margin(MIN_N, ci, 0.05) for ci in limits] == ["yes", "undecided", "undecided", "no", "no"]
    assert within_margin(MIN_N, (0.05, 0.1), 0.05) == "undecided"
    assert topic_interval(np.full(40, 0.1), 0.95) is None
    assert topic_interval(np.array([0.1, 0.2]), 0.95) is None
    errors = np.array([0.1, 0.2, 0.6])
    half = t.ppf(0.975, 2) * errors.std(ddof=1) / np.sqrt(3)
    assert topic_interval(errors, 0.95) == pytest.approx((0.3 - half, 0.3 + half))


def judgments(topics: int, n_errors: int) -> dict[str, list[dict[str, Any]]]:
    """Return verdicts of a person, who supports all citations, and of a model, which errs on the first topics."""
    rows = [{"query_id": f"q{i:02}", "sentence": 1, "doc_id": "d"} for i in range(topics)]
    verdicts = [{**row, "judge": judge, "verdict": "not" if judge == "m" and i < n_errors else "support"}
                for i, row in enumerate(rows) for judge in ("ann", "m")]  # fmt: skip
    return {"answers": [{"query_id": row["query_id"]} for row in rows], "citations": rows, "support": verdicts}


@pytest.mark.parametrize(
    ("topics", "n_errors", "expected"),
    [(2, 0, "not tested"), (24, 1, "not tested"), (30, 0, "not tested"), (30, 20, "no")],
)
def test_few_topics_or_constant_errors_have_no_verdict(topics: int, n_errors: int, expected: str) -> None:
    (mean,) = calibrate(judgments(topics, n_errors), "ann", "SupportP").means
    assert (mean.bias, mean.within_margin) == (pytest.approx(-n_errors / topics), expected)
    assert (mean.bias_ci is None) == (topics < 3 or n_errors == 0)


def test_the_interval_of_a_judges_own_variance_is_a_chi_square_interval() -> None:
    """Twelve half squares 0, 0, 0, 1/2, and so on, with mean 1/8; for one and for two systems."""
    first, second = np.zeros((1, 12)), np.array([[0.0, 0.0, 0.0, 1.0] * 3])
    scores = np.array([0.0, 1.0, 0.5, 0.5])
    estimate = JudgeVariance.of(first, second, scores)
    half_squares, total_variance = second[0] ** 2 / 2, scores.var(ddof=1)
    assert (estimate.topics, estimate.variance, estimate.share) == (12, 1 / 8, pytest.approx(1 / 8 / total_variance))
    relative_variance = (12 * half_squares.var(ddof=1) * 64 + 5 * 5) / 17
    freedom = min(24 / relative_variance, 12)
    limits = [freedom / 8 / chi2.ppf(q, freedom) / total_variance for q in (0.975, 0.025)]
    assert estimate.share_ci == pytest.approx((limits[0], min(limits[1], 1.0)))
    two_systems = JudgeVariance.of(np.zeros((2, 12)), np.vstack([second, second]), scores)
    relative_variance = (12 * half_squares.var(ddof=1) * 64 + 5 * 5 / 2) / 17
    assert two_systems.share_ci is not None
    assert two_systems.share_ci[0] == pytest.approx(
        24 / relative_variance / 8 / chi2.ppf(0.975, 24 / relative_variance) / total_variance
    )
    assert JudgeVariance.of(first[:, 1:], second[:, 1:], scores).share_ci is None
    assert MIN_REPEATED_TOPICS == 12
    assert JudgeVariance.of(first, first, scores).share_ci is None  # equal verdicts: no variance to estimate
    assert JudgeVariance.of(first, second, np.ones(4)).share_ci is None
    assert np.isnan(JudgeVariance.of(first, second, np.ones(4)).share)


def test_an_accepted_judge_mentions_errors_on_unseen_topics() -> None:
    """Two errors are within the margin; 1% of all topics is absent from 300 with probability 0.99 ** 300 = 5%."""
    result = calibrate(judgments(300, 2), "ann", "SupportP")
    assert (result.means[0].within_margin, result.means[0].few_topics) == ("yes", ())
    (text,) = (sentence for sentence in result.sentences if "SupportP" in sentence)
    assert ("1%" in text, "300" in text) == (True, True)


@pytest.mark.parametrize(("topics", "is_sensitive"), [(100, True), (250, False)])
def test_a_single_error_can_make_a_verdict_sensitive(topics: int, is_sensitive: bool) -> None:
    """One error of 100 can represent 5.4% of all topics (exact binomial bound), more than the margin of 5%."""
    bound = beta.ppf(0.975, 2, topics - 1)
    assert (bound > 0.05) == is_sensitive
    mean = calibrate(judgments(topics, 1), "ann", "SupportP").means[0]
    assert (mean.within_margin, mean.few_topics) == ("yes", ("q00",) if is_sensitive else ())


def test_the_bias_of_topics_that_are_no_random_sample_is_undecided() -> None:
    people = np.linspace(0.3, 0.9, 40)
    model = people + np.tile([0.01, -0.01], 20)
    equal, lower = (
        judge_bias(people, model, others, margin=0.05) for others in (np.tile(model, 5), np.tile(model, 5) / 2)
    )
    assert (equal.within_margin, lower.within_margin) == ("yes", "undecided")
    assert equal.selection_p == pytest.approx(1.0)
    expected: Any = ttest_ind(model, np.tile(model, 5) / 2, equal_var=False)
    assert lower.selection_p == pytest.approx(expected.pvalue)
    assert np.isnan(judge_bias(people, model, model[:5], margin=0.05).selection_p)
    worse = judge_bias(people, model - 0.2, np.tile(model, 5) / 2, margin=0.05)
    assert worse.within_margin == "no"


def test_a_few_topics_can_carry_a_bias_beyond_the_margin() -> None:
    """38 errors of about 0.08 and two of -0.3: exact bounds for two of 40 reach 17%, and the bias -0.001."""
    errors = np.concatenate([np.tile([0.080, 0.082], 19), [-0.3, -0.28]])
    bias = judge_bias(np.zeros(40), errors, np.zeros(0), margin=0.03)
    assert (bias.within_margin, bias.few_topics) == ("no", (38, 39))
    assert judge_bias(np.zeros(40), np.tile([0.080, 0.082], 20), np.zeros(0), margin=0.03).few_topics == ()
