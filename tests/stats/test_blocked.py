"""Many systems over the same topics: against statsmodels, scipy and the tests of two systems; degenerate input."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats as scipy_stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import AnovaRM, anova_lm

import judged
from judged import InputError
from judged.stats.analysis_of_variance import anova, friedman, nemenyi
from judged.stats.multiple import dunnett, randomized_dunnett, randomized_tukey, tukey_hsd
from shared_data import SHARED, needs_shared

NAN = math.nan
ALL_PAIRS = (tukey_hsd, randomized_tukey, nemenyi)
AGAINST = (dunnett, randomized_dunnett)
EVERY = (anova, friedman, *ALL_PAIRS, *AGAINST)

tables = st.tuples(st.integers(2, 5), st.integers(2, 8)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 10)).map(lambda tenths: tenths / 10)
)


def made(systems: int, topics: int, seed: int = 0, effect: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.beta(0.6, 1.4, size=topics) + rng.normal(0, 0.15, (systems, topics)) + effect * rng.random((systems, 1))


def long_form(scores: np.ndarray) -> pd.DataFrame:
    systems, topics = scores.shape
    rows = {"score": scores.ravel(), "system": np.repeat(np.arange(systems), topics)}
    return pd.DataFrame({**rows, "topic": np.tile(np.arange(topics), systems)})


# Analysis of variance


def test_analysis_of_variance_by_hand() -> None:
    """1 2 3 and 2 4 6: means 2, 4 and 1.5, 3, 4.5 around 3. Systems 3 (1 + 1), topics 2 (2.25 + 2.25), all 16."""
    found = anova([[1, 2, 3], [2, 4, 6]])
    assert (found.systems.squares, found.topics.squares) == (6.0, 9.0)
    assert (found.residual_squares, found.residual_df, found.residual_variance) == (1.0, 2, 0.5)
    assert (found.systems.f, found.topics.f) == (12.0, 9.0)
    assert found.total_squares == 16.0
    assert found.systems.eta_squared == 6 / 16
    assert found.systems.partial_eta_squared == 6 / 7
    assert found.systems.omega_squared == pytest.approx((6 - 0.5) / (16 + 0.5))
    assert found.systems.partial_omega_squared == pytest.approx(11 / (11 + 6))  # df (F - 1) / (df (F - 1) + N)
    assert found.topics.omega_squared == pytest.approx((9 - 1) / (16 + 0.5))
    assert found.topics.partial_omega_squared == pytest.approx(16 / (16 + 6))


@pytest.mark.parametrize(("systems", "topics"), [(2, 5), (3, 2), (5, 30), (12, 7)])
def test_analysis_of_variance_is_that_of_statsmodels(systems: int, topics: int) -> None:
    scores = made(systems, topics, seed=systems)
    found, rows = anova(scores), long_form(scores)
    table = anova_lm(ols("score ~ C(system) + C(topic)", rows).fit())
    for factor, name in ((found.systems, "C(system)"), (found.topics, "C(topic)")):
        expected = table.loc[name, ["sum_sq", "df", "mean_sq", "F", "PR(>F)"]].tolist()
        assert [factor.squares, factor.df, factor.mean_square, factor.f, factor.p] == pytest.approx(expected, rel=1e-9)
    assert found.residual_variance == pytest.approx(table.loc["Residual", "mean_sq"], rel=1e-9)
    repeated = AnovaRM(rows, "score", "topic", within=["system"]).fit().anova_table.iloc[0]
    assert [found.systems.f, found.systems.p] == pytest.approx([repeated["F Value"], repeated["Pr > F"]], rel=1e-9)


# Two systems: the tests of a pair


@pytest.mark.parametrize("topics", [2, 3, 10, 50])
def test_two_systems_are_the_paired_t(topics: int) -> None:
    scores = made(2, topics, seed=topics)
    expected = scipy_stats.ttest_rel(scores[1], scores[0])
    assert anova(scores).systems.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert anova(scores).systems.f == pytest.approx(expected.statistic**2, rel=1e-9)
    pair, one = tukey_hsd(scores), dunnett(scores)
    assert pair.p[0, 1] == pytest.approx(expected.pvalue, rel=1e-9)
    assert pair.statistic[0, 1] == pytest.approx(abs(expected.statistic) * math.sqrt(2), rel=1e-9)
    assert one.p[1] == pytest.approx(expected.pvalue, rel=1e-9)
    assert one.statistic[1] == pytest.approx(expected.statistic, rel=1e-9)
    low, high = expected.confidence_interval(0.95)
    assert [pair.low[0, 1], pair.high[0, 1]] == pytest.approx([low, high], rel=1e-9)
    assert [one.low[1], one.high[1]] == pytest.approx([low, high], rel=1e-9)


@given(arrays(np.int64, (2, 8), elements=st.integers(0, 10)))
def test_two_systems_are_the_exact_randomization_test(tenths: np.ndarray) -> None:
    """All 256 sign flips of the differences, in whole numbers."""
    differences = tenths[1] - tenths[0]
    signs = 1 - 2 * (np.arange(256)[:, None] >> np.arange(8) & 1)
    expected = np.mean(np.abs(signs @ differences) >= abs(differences.sum()))
    found, one = randomized_tukey(tenths / 10), randomized_dunnett(tenths / 10)
    assert found.p[0, 1] == found.p[1, 0] == pytest.approx(expected, rel=1e-12)
    assert one.p[1] == pytest.approx(expected, rel=1e-12)
    assert found.exact
    assert found.exact == one.exact


# All pairs


@pytest.mark.parametrize(("systems", "topics"), [(3, 4), (5, 30), (8, 11)])
def test_tukey_is_the_studentized_range_on_the_residual_variance(systems: int, topics: int) -> None:
    scores = made(systems, topics, seed=topics)
    found, error = tukey_hsd(scores), math.sqrt(anova(scores).residual_variance / topics)
    df, means = (systems - 1) * (topics - 1), scores.mean(axis=1)
    q = np.abs(means - means[:, None]) / error
    assert found.differences[0, 1] == pytest.approx(means[1] - means[0])
    assert found.p == pytest.approx(scipy_stats.studentized_range.sf(q, systems, df), rel=1e-6, abs=1e-9)
    half = scipy_stats.studentized_range.ppf(0.95, systems, df) * error
    assert found.critical == pytest.approx(half, rel=1e-6)
    off = ~np.eye(systems, dtype=bool)
    assert found.low[off] == pytest.approx((found.differences - half)[off], rel=1e-6)
    assert found.high[off] == pytest.approx((found.differences + half)[off], rel=1e-6)
    assert (found.low.diagonal() == 0).all()
    assert (found.significant == (np.abs(found.differences) > found.critical)).all()


def test_topics_are_taken_out_first() -> None:
    """Topics that differ widely hide a small, steady difference from a test of independent groups."""
    rng = np.random.default_rng(1)
    scores = rng.uniform(0, 1, 40) + rng.normal(0, 0.02, (3, 40)) + np.array([[0], [0], [0.03]])
    unpaired = scipy_stats.tukey_hsd(*scores).pvalue
    assert unpaired[0, 2] > 0.8
    for test in ALL_PAIRS:
        found = test(scores)
        assert found.p[0, 2] < 0.001, found.test
        assert found.p[0, 1] > 0.1, found.test


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.95, (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)),
        (0.90, (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)),
    ],
)
def test_nemenyis_critical_difference_is_that_of_demsar(level: float, expected: tuple[float, ...]) -> None:
    """Demsar (2006), table 5 (a): the critical difference is q sqrt(k (k + 1) / (6 N))."""
    for systems, q in enumerate(expected, start=2):
        found = nemenyi(np.random.default_rng(0).random((systems, 14)), level=level)
        assert abs(found.critical / math.sqrt(systems * (systems + 1) / (6 * 14)) - q) < 0.00101, systems


def test_the_critical_difference_of_demsars_example() -> None:
    """Four classifiers, 14 data sets: 2.569 sqrt(4 5 / (6 14)) = 1.25."""
    assert round(nemenyi(made(4, 14)).critical, 2) == 1.25


def test_nemenyi_by_hand() -> None:
    """Ranks 3 2 1 on four topics but for one swap: sums 12 - 1, 8 + 1, 4; error sqrt(3 4 / (12 4)) = 1/2."""
    found = nemenyi([[1, 1, 1, 2], [2, 2, 2, 1], [3, 3, 3, 3]])
    assert found.ranks.tolist() == [2.75, 2.25, 1.0]
    assert found.statistic[0].tolist() == [0.0, 1.0, 3.5]
    assert found.p[0, 2] == pytest.approx(scipy_stats.studentized_range.sf(3.5, 3, np.inf), rel=1e-8)


# Friedman


@pytest.mark.parametrize(("systems", "topics", "grades"), [(3, 6, 3), (5, 40, 4), (4, 12, 1000)])
def test_friedman_is_scipys(systems: int, topics: int, grades: int) -> None:
    tenths = np.random.default_rng(topics).integers(0, grades, size=(systems, topics))
    found, expected = friedman(tenths / 10), scipy_stats.friedmanchisquare(*tenths)
    assert [found.chi_square, found.p] == pytest.approx([expected.statistic, expected.pvalue], rel=1e-10)
    ranks = np.stack([scipy_stats.rankdata(-column) for column in tenths.T], axis=1)
    assert found.ranks == pytest.approx(ranks.mean(axis=1))
    assert found.concordance == pytest.approx(found.chi_square / topics / (systems - 1))
    table = anova_lm(ols("score ~ C(system) + C(topic)", long_form(ranks)).fit())  # Iman and Davenport: F of the ranks
    assert [found.f, found.f_p] == pytest.approx(table.loc["C(system)", ["F", "PR(>F)"]].tolist(), rel=1e-9)


def test_iman_and_davenport_as_demsar_computes_it() -> None:
    """Without ties, (N - 1) chi / (N (k - 1) - chi)."""
    found = friedman(made(4, 14, seed=9))
    assert found.f == pytest.approx(13 * found.chi_square / (14 * 3 - found.chi_square))
    assert found.f_df == (3, 39)


def test_scores_that_are_equal_but_for_rounding_tie() -> None:
    scores = np.array([[0.1 + 0.2, 0.7, 0.5], [0.3, 0.8, 0.4], [0.2, 0.1 * 7, 0.9]])
    assert friedman(scores).ranks.tolist() == [(1.5 + 2.5 + 2) / 3, (1.5 + 1 + 3) / 3, (3 + 2.5 + 1) / 3]


def test_topics_that_all_agree_have_the_p_of_doing_so() -> None:
    """Three orders of 6 in a row by luck: (1/6)^2; where two systems tie throughout, (1/3)^2."""
    found = friedman([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    assert (found.f, found.concordance) == (math.inf, 1.0)
    assert found.f_p == pytest.approx(1 / 36)
    assert friedman([[1, 2, 3], [4, 5, 6], [4, 5, 6]]).f_p == pytest.approx(1 / 9)


# Against a baseline


def test_dunnett_asks_less_than_tukey_and_more_than_a_t_test() -> None:
    scores = made(6, 25, seed=4)
    one, pairs, df = dunnett(scores, 2), tukey_hsd(scores), 5 * 24
    others = np.array([0, 1, 3, 4, 5])
    single = 2 * scipy_stats.t.sf(np.abs(one.statistic), df)
    assert (one.p[others] < pairs.p[2, others]).all()
    assert (one.p[others] > single[others]).all()
    assert (one.p[others] <= 5 * single[others]).all()  # Bonferroni
    assert one.differences == pytest.approx(scores.mean(axis=1) - scores[2].mean())
    assert one.critical < pairs.critical
    assert (one.p[2], one.differences[2], one.low[2], one.high[2]) == (1.0, 0.0, 0.0, 0.0)
    assert (one.significant == (np.abs(one.differences) > one.critical)).all()


@given(tables)
def test_a_randomized_baseline_needs_no_larger_difference_than_all_pairs(scores: np.ndarray) -> None:
    """The largest difference from one mean is never larger than that of all, arrangement by arrangement."""
    one = randomized_dunnett(scores, resamples=100_000 if scores.size <= 12 else 300)
    pairs = randomized_tukey(scores, resamples=100_000 if scores.size <= 12 else 300)
    slack = 1e-12 if one.exact and pairs.exact else 0.2
    assert (one.p <= pairs.p[0] + slack).all()


# What holds for all of them


@given(tables, st.integers(0, 1000))
def test_neither_the_order_of_systems_nor_what_a_topic_adds_matters(scores: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    order, added = rng.permutation(len(scores)), rng.integers(0, 8, scores.shape[1]) / 8
    other = scores[order] + added
    for test in (tukey_hsd, nemenyi):
        assert test(other).p == pytest.approx(test(scores).p[np.ix_(order, order)], rel=1e-5, abs=1e-9)
    assert friedman(other).f_p == pytest.approx(friedman(scores).f_p, rel=1e-9)
    place = int(np.flatnonzero(order == 0)[0])
    assert dunnett(other, place).p == pytest.approx(dunnett(scores).p[order], rel=1e-5, abs=1e-9)


@given(tables)
def test_matrices_are_symmetric_and_p_is_a_probability(scores: np.ndarray) -> None:
    for test in ALL_PAIRS:
        found = test(scores) if test is not randomized_tukey else test(scores, resamples=200)
        assert (found.p == found.p.T).all()
        assert (found.differences == -found.differences.T).all()
        assert (found.p.diagonal() == 1).all()
        assert ((found.p >= 0) & (found.p <= 1)).all()
        assert (found.p[found.statistic == 0] == 1).all()
        if test is not nemenyi:
            assert (found.statistic == found.statistic.T).all()


@pytest.mark.parametrize("test", EVERY)
def test_topics_without_a_score_for_every_system_are_left_out_and_counted(test) -> None:
    scores = made(4, 12)
    holes = scores.copy()
    holes[1, 3] = holes[2, 3] = holes[0, 7] = NAN
    found, expected = test(holes), test(np.delete(scores, [3, 7], axis=1))
    assert (found.n, found.left_out, expected.left_out) == (10, 2, 0)
    np.testing.assert_equal({**vars(found), "left_out": 0}, vars(expected))
    assert np.isnan(holes).sum() == 3  # what was given is as it was


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize("topics", [0, 1])
def test_one_topic_tells_nothing_and_says_so(test, topics: int) -> None:
    scores = np.array([[0.1, NAN], [0.2, 0.3], [0.5, NAN]])[:, : topics + 1]
    scores[0, 0] = scores[0, 0] if topics else NAN
    found = test(scores)
    assert found.n == topics
    p = found.systems.p if test is anova else found.f_p if test is friedman else found.p
    assert np.isnan(p).all()
    assert "at least two topics" in found.sentence
    if hasattr(found, "significant"):
        assert not found.significant.any()
        assert math.isnan(found.critical)
        assert found.low is None


@pytest.mark.parametrize("test", EVERY)
def test_identical_systems_do_not_differ(test) -> None:
    found = test([[0.1, 0.4, 0.7]] * 3)
    if test is anova:
        assert (found.systems.p, found.systems.squares, found.topics.p) == (1.0, 0.0, 0.0)
    elif test is friedman:
        assert (found.f_p, found.p, found.chi_square) == (1.0, 1.0, 0.0)
    else:
        assert (found.p == 1.0).all()
        assert not found.significant.any()


@pytest.mark.parametrize("test", [*ALL_PAIRS, *AGAINST])
def test_systems_that_differ_in_the_last_bits_alone_do_not_differ(test) -> None:
    """The residual variance is 0 then, and the last bit of a sum must not become a difference with p = 0."""
    scores = [[0.1 + 0.2] * 2, [0.3] * 2]
    assert np.mean(scores[0]) != np.mean(scores[1])
    found = test(scores)
    assert (found.p == 1.0).all()
    assert (found.differences == 0.0).all()
    assert anova(scores).systems.p == 1.0


def test_two_identical_systems_among_others_do_not_differ() -> None:
    scores = made(4, 20, effect=0.4)
    scores[3] = scores[1]
    for test in ALL_PAIRS:
        found = test(scores)
        assert found.p[1, 3] == 1.0
        assert found.p[0] == pytest.approx(found.p.T[0])
        assert found.p[0, 1] == found.p[0, 3] < 1.0


def test_without_residual_variance_only_the_randomized_test_keeps_proportion() -> None:
    """The same step on each of 6 topics: 2 of 2^6 sign flips are as extreme."""
    scores = np.array([[0.1, 0.4, 0.3, 0.8, 0.6, 0.7], [0.2, 0.5, 0.4, 0.9, 0.7, 0.8]])
    for found, p in ((tukey_hsd(scores), 0.0), (dunnett(scores), 0.0), (randomized_tukey(scores), 2 / 64)):
        assert found.p.ravel()[1] == pytest.approx(p)
    analyzed = anova(scores)
    assert (analyzed.systems.p, analyzed.systems.f, analyzed.residual_squares) == (0.0, math.inf, 0.0)
    for found in (analyzed, tukey_hsd(scores), dunnett(scores)):
        assert "without residual variance" in found.sentence
    assert "p < 1e-300" in analyzed.sentence
    pair = tukey_hsd(scores)
    assert (pair.low[0, 1], pair.high[0, 1]) == (pair.differences[0, 1], pair.differences[0, 1])


@pytest.mark.parametrize("test", [tukey_hsd, randomized_tukey, nemenyi, dunnett, randomized_dunnett])
def test_fewer_than_six_topics_allow_no_verdict(test) -> None:
    scores = np.add.outer([0.0, 0.0, 0.5], np.linspace(0.1, 0.4, 6)) + 0.001 * np.random.default_rng(0).random((3, 6))
    assert test(scores, level=0.5).significant.any()
    few = test(scores[:, :5], level=0.5)
    assert not few.significant.any()
    assert "5 topics, at least 6 are required" in few.sentence


def test_all_scores_the_same() -> None:
    found = anova(np.full((3, 4), 0.3))
    assert (found.systems.p, found.topics.p, found.total_squares) == (1.0, 1.0, 0.0)
    assert math.isnan(found.systems.f)
    assert "all scores are the same" in found.sentence


@pytest.mark.parametrize("test", EVERY)
def test_small_p_values_are_neither_noise_nor_nothing(test) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 0.01, (3, 60)) + np.array([[0.0], [1.0], [2.0]])
    found = test(scores)
    if test in {randomized_tukey, randomized_dunnett}:
        assert found.p.min() == 1 / 100_001
    elif test in {tukey_hsd, dunnett}:
        assert 0 < found.p.min() < 1e-150
    elif test is nemenyi:
        assert 0 < found.p.min() < 1e-20


def test_arrays_cannot_be_written_to() -> None:
    for found in (tukey_hsd(made(3, 5)), dunnett(made(3, 5)), friedman(made(3, 5))):
        array = found.ranks if hasattr(found, "f_p") else found.p
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize(
    ("scores", "problem"),
    [([0.1, 0.2], "2 dimensions"), ([[0.1, 0.2]], "at least 2 systems"), ([[0.1, 0.2], [0.3, math.inf]], "infinite")],
)
def test_what_is_no_table_of_scores_is_refused(test, scores: list[object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        test(scores)


@pytest.mark.parametrize("test", [*ALL_PAIRS, *AGAINST])
@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_is_a_share(test, level: float) -> None:
    with pytest.raises(InputError, match="level"):
        test(made(3, 5), level=level)


@pytest.mark.parametrize("test", AGAINST)
@pytest.mark.parametrize("baseline", [-1, 3])
def test_a_baseline_is_one_of_the_rows(test, baseline: int) -> None:
    with pytest.raises(InputError, match="from 0 to 2"):
        test(made(3, 5), baseline)


def test_sentences_say_what_was_found_and_what_not() -> None:
    scores = made(3, 30, seed=1, effect=0.0) + np.array([[0], [0], [0.5]])
    assert tukey_hsd(scores).sentence.startswith(
        "Tukey's HSD over 30 topics: 2 of 3 pairs of systems differ with p <= 0.05 for all pairs together (significant "
        "if the mean scores differ by more than 0."
    )
    assert "neither a difference nor its absence" in randomized_tukey(scores).sentence
    assert "the mean ranks differ by more than" in nemenyi(scores, level=0.99).sentence
    assert "of 2 systems, 1 is better than the baseline and 0 are worse" in dunnett(scores).sentence
    assert "of 2 systems, 0 are better than the baseline and 2 are worse" in dunnett(scores, 2).sentence
    six = [[0.1, 0.2, 0.1, 0.2, 0.3, 0.4], [0.3, 0.5, 0.2, 0.6, 0.5, 0.9]]
    assert "no difference can be significant" in randomized_tukey(six, level=0.99).sentence
    assert "The test does not show which systems differ" in anova(scores).sentence


# Real runs


@needs_shared
def test_the_passage_runs_of_deep_learning_2019() -> None:
    """37 runs, 43 topics. scipy's studentized range finds 304 pairs too; its own test, for independent groups, 141.

    The permuted scores hold the differences between runs, so that the randomized test is stricter here.
    """
    folder = SHARED / "dl19_passage"
    runs = sorted((folder / "runs").glob("*.run.gz"))
    scores = judged.evaluate(folder / "qrels" / "qrels.dl19-passage.txt", runs, ["nDCG@10"])
    values = scores.values[:, 0]  # noqa: PD011
    assert values.shape == (37, 43)
    classical, randomized = tukey_hsd(values), randomized_tukey(values, resamples=10_000)
    assert classical.critical == pytest.approx(0.120187813769, rel=1e-9)
    assert int(np.triu(classical.significant).sum()) == 304
    assert abs(int(np.triu(randomized.significant).sum()) - 220) <= 2  # 219 and 220 with other seeds
    assert randomized.critical == pytest.approx(0.160, abs=0.002)  # 0.16002 by numpy's own shuffling
    assert not (randomized.significant & ~classical.significant).any()
    assert int(np.triu(nemenyi(values).significant).sum()) == 224
