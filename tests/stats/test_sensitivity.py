"""Which verdicts are called sensitive to a few topics: by hand, and how often where the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from judged.stats.sensitivity import few_topics, missed_share, reversing_difference, sensitivity

N = 50
BULK = np.array([0.03 + 0.01 * (at % 2) for at in range(N)])


def _with(*values: float, bulk: np.ndarray = BULK) -> np.ndarray:
    changed = bulk.copy()
    changed[: len(values)] = values
    return changed


def test_topics_that_oppose_may_be_more_frequent() -> None:
    """One of 50 lost 0.5. Its share is at most 10.6 % (Clopper-Pearson, 97.5 %), and the mean could then be -0.022."""
    assert few_topics(_with(-0.5)).tolist() == [0]
    assert stats.binomtest(1, N).proportion_ci(0.95).high == pytest.approx(0.1065, abs=1e-4)
    assert few_topics(_with(-0.5) + 0.2).tolist() == []  # the others gain so much that even 10.6 % change nothing


def test_topics_that_carry_the_verdict_may_be_rarer() -> None:
    """8 of 50 gain 0.5, the others lose 0.02 to 0.03: 8 of 50 may be 7.2 % of all topics, and the mean 0.012."""
    differences = _with(*[0.5] * 8, bulk=0.01 - BULK)
    assert differences.mean() / stats.sem(differences) > stats.t(N - 1).ppf(0.975)
    assert few_topics(differences).tolist() == list(range(8))
    assert few_topics(_with(*[0.5] * 14, bulk=0.01 - BULK)).tolist() == []  # 14 of 50 are not a few


@pytest.mark.parametrize("n", [6, 10, 25, 50])
def test_no_topics_are_apart_where_all_are_alike(n: int) -> None:
    assert few_topics(np.linspace(0.01, 0.2, n)).tolist() == []
    assert few_topics(np.full(n, 0.1)).tolist() == []


def test_near_ties_are_no_bulk_that_a_topic_could_be_apart_from() -> None:
    """38 of 48 topics tie but for a little: of the others, one that opposes is enough."""
    ties = [0.0005, -0.0005] * 19
    assert few_topics(np.array([*ties, *[0.1] * 9, -0.11])).tolist() == [47]
    assert few_topics(np.array([*ties, *[0.1] * 10])).tolist() == []


def test_a_verdict_that_the_bounded_test_shows_too_is_not_sensitive() -> None:
    first = np.zeros(200)
    second = np.concatenate([np.full(180, 0.3), np.full(20, -0.9)]) + 0.01 * (np.arange(200) % 2)
    result = sensitivity(first, second, max_difference=1.0)
    assert result.bounded_p < 0.05
    assert (result.bounded_significant, result.sensitive, result.may_miss) == (True, False, False)
    differences = np.concatenate([np.full(194, 0.1), np.full(6, -1.0)]) + 0.01 * (np.arange(200) % 2)
    result = sensitivity(first, differences, max_difference=1.0)
    assert len(few_topics(differences)) == 6
    assert (result.bounded_significant, result.few_topics) == (True, ())


def test_without_bounds_the_few_topics_alone_decide() -> None:
    result = sensitivity(np.zeros(N), _with(-0.5))
    assert math.isnan(result.bounded_p)
    assert (result.bounded_significant, result.sensitive, result.few_topics) == (False, True, (0,))
    assert sensitivity(np.zeros(N), _with(0.03)).sensitive is False


def test_both_directions_and_missing_scores_are_alike() -> None:
    first = np.zeros(N + 1)
    first[0] = math.nan
    second = np.concatenate([[0.9], _with(-0.5)])
    up, down = (sensitivity(first, side * second, max_difference=1.0) for side in (1, -1))
    assert up.few_topics == down.few_topics == (1,)
    assert up.n == N
    assert up.bounded_p == pytest.approx(down.bounded_p)
    assert up.reversing_difference == pytest.approx(-down.reversing_difference)


def test_a_limit_other_than_0() -> None:
    """Whether the mean is above -0.2 is the same question as whether the differences plus 0.2 are above 0."""
    limited = sensitivity(np.zeros(N), _with(-0.7) - 0.2, limit=-0.2, max_difference=1.0)
    plain = sensitivity(np.zeros(N), _with(-0.7))
    assert limited.few_topics == plain.few_topics == (0,)
    assert 0 < limited.bounded_p <= 1
    share = 1 - 0.05 ** (1 / N)
    assert limited.reversing_difference == pytest.approx((-0.2 - (1 - share) * (_with(-0.7) - 0.2).mean()) / share)


def test_what_may_be_missed_by_hand() -> None:
    """Ten topics: 0.741^10 = 0.05, so that 25.9 % may be missed; -0.1 * 0.741 / 0.259 = -0.286."""
    assert (1 - missed_share(10)) ** 10 == pytest.approx(0.05)
    assert (1 - missed_share(10, 0.9)) ** 10 == pytest.approx(0.1)
    assert reversing_difference(0.1, 10) == pytest.approx(-0.286, abs=5e-4)
    share = missed_share(10)
    assert (1 - share) * 0.1 + share * reversing_difference(0.1, 10, 0.02) == pytest.approx(0.02)
    assert math.isnan(sensitivity(np.zeros(10), np.full(10, 0.5), max_difference=1.0).reversing_difference)
    result = [sensitivity(np.zeros(n), np.linspace(0.0, 0.03, n), max_difference=1.0) for n in (99, 100)]
    assert [one.may_miss for one in result] == [True, False]


def _false_verdicts(share: float, size: float, n: int, trials: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Draw differences of mean 0 that a t-test finds, and mark the samples with a topic of the rare kind."""
    rng = np.random.default_rng([n, 1])
    rare = rng.random((trials, n)) < share
    drawn = np.where(rare, size, -size * share / (1 - share)) + 0.02 * rng.normal(size=(trials, n))
    result = stats.ttest_1samp(drawn, 0, axis=1).pvalue <= 0.05
    return drawn[result], rare[result].any(axis=1)


@pytest.mark.parametrize(("share", "size"), [(0.05, -0.6), (0.1, 0.45)])
def test_false_verdicts_of_samples_with_rare_topics_are_called_sensitive(share: float, size: float) -> None:
    called = total = 0
    for n in (50, 100):
        drawn, rare = _false_verdicts(share, size, n)
        labels = [sensitivity(np.zeros(n), row, max_difference=1.0).sensitive for row in drawn[rare]]
        called, total = called + sum(labels), total + len(labels)
    assert total > 100
    assert called >= 0.94 * total


@pytest.mark.parametrize("name", ["normal", "exponential", "two halves", "P@5"])
@pytest.mark.parametrize("n", [10, 50])
def test_true_differences_of_ordinary_shapes_are_seldom_called_sensitive(name: str, n: int) -> None:
    rng = np.random.default_rng([n, 2])
    shape = (300, n)
    drawn = {
        "normal": lambda: 0.2 * rng.normal(size=shape),
        "exponential": lambda: 0.1 * (rng.exponential(size=shape) - 1),
        "two halves": lambda: rng.choice([-0.2, 0.2], shape) + 0.05 * rng.normal(size=shape),
        "P@5": lambda: rng.choice([-0.4, -0.2, 0.0, 0.2, 0.4], shape, p=[0.1, 0.2, 0.4, 0.2, 0.1]),
    }[name]()
    drawn = drawn + 2.8 * drawn.std() / math.sqrt(n)
    result = drawn[(stats.ttest_1samp(drawn, 0, axis=1).pvalue <= 0.05) & (drawn.mean(axis=1) > 0)]
    labels = [sensitivity(np.zeros(n), row, max_difference=2.0).sensitive for row in result]
    assert len(labels) > 150
    assert np.mean(labels) <= 0.05
