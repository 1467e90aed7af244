"""Verdicts on answers need enough data: judges, steps, systems, periods, and a judge's own variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, chi2, t, ttest_ind

from judged.labels.corrected_systems import topic_interval
from judged.pipelines.rag import support_over_time, waterfall
from judged.pipelines.rag.judge_bias import believed, judge_bias
from judged.pipelines.rag.judge_error import LEAST_REPEATED, OwnVariance, calibrate
from judged.pipelines.rag.steps import Share
from judged.stats.prediction_powered import MIN_N


def shares(passed: list[float], given: list[float]) -> Share:
    return Share(np.array(passed), np.array(given), 0.95)


@pytest.mark.parametrize(("units", "interval", "verdict"), [(2, False, False), (3, True, False), (5, True, False),
                                                            (6, True, True)])  # fmt: skip
def test_a_share_has_an_interval_from_three_units_and_a_test_from_six(
    units: int, interval: bool, verdict: bool
) -> None:
    one, two = shares([1.0, 0.0] * 4, [1.0] * 8), shares([1.0] * units, [1.0] * units)
    assert (two.ci is not None, two.value) == (interval, 1.0)
    first = shares([0.0] * units, [1.0] * units)
    made = two.less(first)
    assert made.value == 1.0
    assert (not np.isnan(made.low), not np.isnan(made.p)) == (interval, verdict)
    assert one.ci is not None


def test_one_unit_with_most_of_the_weight_is_too_little_data() -> None:
    even, uneven = shares([1.0, 0.0] * 4, [2.0] * 8), shares([1.0, 0.0] * 4, [2.0] * 7 + [15.0])
    assert even.ci is not None
    assert uneven.ci is None  # 15 of 29
    assert np.isnan(uneven.less(even).p)
    assert np.isnan(even.less(uneven).p)


def answers(topics: int) -> dict[str, list[dict[str, Any]]]:
    """Two systems: each of the documents is in the context; it is cited by b only."""
    names = [f"q{at}" for at in range(topics)]
    rows = [{"query_id": query, "run_id": run} for query in names for run in ("a", "b")]
    documents = [{**row, "doc_id": doc} for row in rows for doc in "xy"]
    cited = [{**row, "sentence": 1} for row in documents if row["run_id"] == "b" or row["doc_id"] == "x"]
    return {"answers": [{**row, "text": "It is so."} for row in rows], "context": documents, "citations": cited}


@pytest.mark.parametrize(("topics", "tested"), [(5, False), (6, True)])
def test_steps_and_systems_are_compared_from_six_topics(topics: int, tested: bool) -> None:
    qrels = {f"q{at}": dict.fromkeys("xyz", 1) for at in range(topics)}
    made = waterfall(answers(topics), qrels)
    steps = {(step.run, step.step): step for step in made.steps if step.unit == "document"}
    assert (steps["a", "context"].share.value, steps["a", "cited"].share.value) == (2 / 3, 1 / 2)
    weakest = made.weakest["a"]
    assert (weakest.step.step, weakest.lacking is None, not np.isnan(weakest.p)) == ("cited", tested, tested)
    differences = [one for one in made.differences if one.unit == "document" and one.step == "cited"]
    # every topic differs by the same share, so no variance can be estimated
    assert [(difference.share.value, np.isnan(difference.p)) for difference in differences] == [(0.5, True)]
    # a difference that is not tested is not among those that Holm's correction counts
    assert all(np.isnan(one.p) for one in made.differences) != tested


@pytest.mark.parametrize(("count", "interval"), [(2, False), (3, True)])
def test_a_period_has_an_interval_from_three_answers(count: int, interval: bool) -> None:
    names = [f"q{at}" for at in range(count)]
    given = {
        "answers": [{"query_id": name} for name in names],
        "support": [{"query_id": name, "sentence": 1, "doc_id": "d", "verdict": "support" if at else "not"}
                    for at, name in enumerate(names)],
    }  # fmt: skip
    (period,) = support_over_time(given, dict.fromkeys(names, "2026-03-01")).periods
    assert period.supported.value == (count - 1) / count
    assert (period.supported.ci is not None) == interval


def test_a_judge_is_believed_from_25_topics_whose_errors_vary() -> None:
    within = (-0.01, 0.01)
    assert [believed(n, within, 0.05) for n in (MIN_N - 1, MIN_N)] == ["not tested", "yes"]
    assert believed(100, None, 0.05) == "not tested"
    limits = ((-0.05, 0.05), (-0.051, 0), (0, 0.051), (0.051, 0.1), (-0.1, -0.051))
    assert [believed(MIN_N, ci, 0.05) for ci in limits] == ["yes", "undecided", "undecided", "no", "no"]
    assert believed(MIN_N, (0.05, 0.1), 0.05) == "undecided"
    assert topic_interval(np.full(40, 0.1), 0.95) is None
    assert topic_interval(np.array([0.1, 0.2]), 0.95) is None
    errors = np.array([0.1, 0.2, 0.6])
    half = t.ppf(0.975, 2) * errors.std(ddof=1) / np.sqrt(3)
    assert topic_interval(errors, 0.95) == pytest.approx((0.3 - half, 0.3 + half))


def judgments(topics: int, wrong: int) -> dict[str, list[dict[str, Any]]]:
    """A person supports every citation; a model does not, on the first topics."""
    rows = [{"query_id": f"q{at:02}", "sentence": 1, "doc_id": "d"} for at in range(topics)]
    verdicts = [{**row, "judge": judge, "verdict": "not" if judge == "m" and at < wrong else "support"}
                for at, row in enumerate(rows) for judge in ("ann", "m")]  # fmt: skip
    return {"answers": [{"query_id": row["query_id"]} for row in rows], "citations": rows, "support": verdicts}


@pytest.mark.parametrize(
    ("topics", "wrong", "said"), [(2, 0, "not tested"), (24, 1, "not tested"), (30, 0, "not tested"), (30, 20, "no")]
)
def test_few_topics_or_errors_that_do_not_vary_give_no_verdict(topics: int, wrong: int, said: str) -> None:
    (mean,) = calibrate(judgments(topics, wrong), "ann", "SupportP").means
    assert (mean.bias, mean.believed) == (pytest.approx(-wrong / topics), said)
    assert (mean.bias_ci is None) == (topics < 3 or wrong == 0)


def test_the_interval_of_a_judge_s_own_variance_is_that_of_a_variance() -> None:
    """Halves 0, 0, 0, 1/2 and so on: twelve of them, mean 1/8; one system and two."""
    first, again = np.zeros((1, 12)), np.array([[0.0, 0.0, 0.0, 1.0] * 3])
    scores = np.array([0.0, 1.0, 0.5, 0.5])
    made = OwnVariance.of(first, again, scores)
    halves, whole = again[0] ** 2 / 2, scores.var(ddof=1)
    assert (made.topics, made.variance, made.share) == (12, 1 / 8, pytest.approx(1 / 8 / whole))
    spread = (12 * halves.var(ddof=1) * 64 + 5 * 5) / 17
    freedom = min(24 / spread, 12)
    limits = [freedom / 8 / chi2.ppf(q, freedom) / whole for q in (0.975, 0.025)]
    assert made.share_ci == pytest.approx((limits[0], min(limits[1], 1.0)))
    both = OwnVariance.of(np.zeros((2, 12)), np.vstack([again, again]), scores)
    spread = (12 * halves.var(ddof=1) * 64 + 5 * 5 / 2) / 17
    assert both.share_ci is not None
    assert both.share_ci[0] == pytest.approx(24 / spread / 8 / chi2.ppf(0.975, 24 / spread) / whole)
    assert OwnVariance.of(first[:, 1:], again[:, 1:], scores).share_ci is None
    assert LEAST_REPEATED == 12
    assert OwnVariance.of(first, first, scores).share_ci is None  # it never wavered: no variance to estimate from
    assert OwnVariance.of(first, again, np.ones(4)).share_ci is None
    assert np.isnan(OwnVariance.of(first, again, np.ones(4)).share)


def test_a_judge_that_is_believed_may_be_wrong_on_topics_that_nobody_saw() -> None:
    """Two errors of 400 are within the margin; 1% of all topics (0.99 to the power 300) is in none of 300 in 5%."""
    made = calibrate(judgments(300, 2), "ann", "SupportP")
    assert (made.means[0].believed, made.means[0].few_topics) == ("yes", ())
    (said,) = (sentence for sentence in made.sentences if "SupportP" in sentence)
    assert ("1%" in said, "300" in said) == (True, True)


@pytest.mark.parametrize(("topics", "sensitive"), [(100, True), (250, False)])
def test_one_error_may_be_one_of_many(topics: int, sensitive: bool) -> None:
    """One error of 100 may stand for 5.4% of all topics (exact binomial bound), which is beyond a margin of 5%."""
    bound = beta.ppf(0.975, 2, topics - 1)
    assert (bound > 0.05) == sensitive
    mean = calibrate(judgments(topics, 1), "ann", "SupportP").means[0]
    assert (mean.believed, mean.few_topics) == ("yes", ("q00",) if sensitive else ())


def test_topics_chosen_otherwise_than_at_random_leave_a_bias_undecided() -> None:
    people = np.linspace(0.3, 0.9, 40)
    model = people + np.tile([0.01, -0.01], 20)
    same, lower = (judge_bias(people, model, rest, margin=0.05) for rest in (np.tile(model, 5), np.tile(model, 5) / 2))
    assert (same.believed, lower.believed) == ("yes", "undecided")
    assert same.selection_p == pytest.approx(1.0)
    expected: Any = ttest_ind(model, np.tile(model, 5) / 2, equal_var=False)
    assert lower.selection_p == pytest.approx(expected.pvalue)
    assert np.isnan(judge_bias(people, model, model[:5], margin=0.05).selection_p)
    worse = judge_bias(people, model - 0.2, np.tile(model, 5) / 2, margin=0.05)
    assert worse.believed == "no"


def test_a_few_topics_can_carry_a_bias_beyond_the_margin() -> None:
    """38 errors of about .06, none but two of -.3: exact bounds for two of 40 reach 17%, and the bias -.001."""
    errors = np.concatenate([np.tile([0.080, 0.082], 19), [-0.3, -0.28]])
    made = judge_bias(np.zeros(40), errors, np.zeros(0), margin=0.03)
    assert (made.believed, made.few_topics) == ("no", (38, 39))
    assert judge_bias(np.zeros(40), np.tile([0.080, 0.082], 20), np.zeros(0), margin=0.03).few_topics == ()
