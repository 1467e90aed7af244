"""Statistics of agents: coverage, error rates, power, variance components, calibration, and conversations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from judged.errors import InputError, MeasureError
from judged.pipelines.trajectories import confidence, conversations, evaluate, plan
from judged.pipelines.trajectories.confidence import bin_codes, browsecomp_calibration_error
from judged.pipelines.trajectories.conversations import turn_of
from judged.pipelines.trajectories.plan import components, difference_components
from judged.stats.interval import IntervalMethod, mean_intervals
from judged.stats.paired import paired_test
from judged.stats.sample_size import minimum_detectable, power

QUESTIONS, TRIALS, SAMPLES = 40, 4, 2000


def question_means(rng: np.random.Generator, shift: float = 0.0, samples: int = SAMPLES) -> tuple[Any, Any]:
    """Return mean accuracy of two agents by sample and question; questions differ much, and trials are random."""
    difficulty = rng.beta(0.7, 0.7, (samples, QUESTIONS))
    other = np.clip(difficulty + shift + 0.1 * rng.choice([-1, 1], (samples, QUESTIONS)), 0, 1)
    return tuple(rng.binomial(TRIALS, p) / TRIALS for p in (difficulty, other))


def test_question_means_are_the_scores_that_are_tested() -> None:
    trials = [
        {"query_id": q, "answer": "7", "correct": correct} for q, rights in (("a", [1, 0, 0]), ("b", [1]))
        for correct in map(bool, rights)
    ]  # fmt: skip
    scores = evaluate(trials, "AnswerAccuracy")
    assert scores.values[0, 0].tolist() == [pytest.approx(1 / 3), 1.0]
    assert scores.value("AnswerAccuracy") == pytest.approx(2 / 3)


@pytest.mark.slow
def test_intervals_over_questions_cover_and_those_over_trials_do_not() -> None:
    rng = np.random.default_rng(1)
    means, _ = question_means(rng)
    limits = mean_intervals(means, IntervalMethod(), (0, 1))
    coverage = np.mean((limits[:, 0] <= 0.5) & (limits[:, 1] >= 0.5))
    assert 0.93 <= coverage <= 0.97
    # trials as if they were independent: the same means with the error of QUESTIONS * TRIALS observations
    share = means.mean(axis=1)
    naive = 1.96 * np.sqrt(share * (1 - share) / (QUESTIONS * TRIALS))
    assert np.mean(np.abs(share - 0.5) <= naive) < 0.85


@pytest.mark.slow
def test_differences_hold_coverage_error_rate_and_power() -> None:
    rng = np.random.default_rng(2)
    first, second = question_means(rng, samples=1000)
    results = [paired_test(a, b, "t") for a, b in zip(first, second, strict=True)]
    # clipping at 0 and 1 moves the mean: its true difference is estimated from all samples
    true = float((second - first).mean())
    covered = np.mean([result.interval[0] <= true <= result.interval[1] for result in results if result.interval])
    assert 0.93 <= covered <= 0.97
    null = rng.beta(0.7, 0.7, (1000, QUESTIONS))
    pairs = [rng.binomial(TRIALS, null) / TRIALS for _ in range(2)]
    rejected = np.mean([paired_test(a, b, "t").p <= 0.05 for a, b in zip(*pairs, strict=True)])
    assert rejected <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.slow
def test_planned_power_is_the_simulated_power() -> None:
    """Components of one large pilot study, and designs with other numbers of questions and trials."""
    rng = np.random.default_rng(3)

    def study(questions: int, trials: int) -> tuple[Any, Any, Any]:
        difficulty = rng.beta(2, 2, questions)
        other = np.clip(difficulty + 0.08 + rng.normal(0, 0.1, questions), 0, 1)
        return *(rng.random((questions, trials)) < p[:, None] for p in (difficulty, other)), other - difficulty

    pilot_first, pilot_second, truth = study(20_000, 4)
    question = np.repeat(np.arange(20_000), 4)
    part = difference_components(*((table.ravel().astype(float), question) for table in (pilot_first, pilot_second)))
    assert part.between == pytest.approx(float(truth.var()), abs=0.005)
    for questions, trials in ((60, 1), (60, 5), (150, 2)):
        sd = math.sqrt(part.between + part.within / trials)
        planned = power(float(truth.mean()), sd, questions)
        found = np.mean([
            paired_test(a.mean(axis=1), b.mean(axis=1), "t").p <= 0.05
            for a, b, _ in (study(questions, trials) for _ in range(2000))
        ])  # fmt: skip
        assert abs(planned - found) <= 0.05, (questions, trials)


def test_components_by_simulation_with_unequal_trials() -> None:
    rng = np.random.default_rng(4)
    question = np.repeat(np.arange(400), rng.integers(1, 6, 400))
    estimates = [
        components(rng.normal(0, 2, 400)[question] + rng.normal(0, 3, len(question)), question) for _ in range(40)
    ]
    assert np.mean([part.between for part in estimates]) == pytest.approx(4, rel=0.05)
    assert np.mean([part.within for part in estimates]) == pytest.approx(9, rel=0.05)


def test_components_of_a_difference_by_hand() -> None:
    """Differences of means are 0.5 and 4.5; question 2 and the missing score count for neither system."""
    first = np.array([0.0, 1.0, 0.0, 0.0, 9.0, 3.0]), np.array([0, 0, 1, 1, 2, 2])
    second = np.array([1.0, 1.0, 5.0, 4.0, np.nan]), np.array([0, 0, 1, 1, 2])
    part = difference_components(first, second)
    assert (part.questions, part.trials, part.within) == (2, 8, 0.25 + 0.25)
    assert part.between == 8 - (0.25 + 0.25) / 2


def test_components_without_repeated_trials() -> None:
    assert math.isnan(components(np.array([0.0, 1.0, 0.5]), np.arange(3)).within)


def test_plan_by_hand() -> None:
    trials = [
        {"query_id": f"q{i}", "run_id": run, "answer": "7", "correct": (i * 7 + t * 3 + (run == "b")) % 5 > 1}
        for run in "ab" for i in range(30) for t in range(3)
    ]  # fmt: skip
    cheap = plan(trials).best["b - a"]
    assert (cheap.trials, cheap.questions) == (1, 90)
    dear = plan(trials, question_cost=20, budget=690)
    part, best = dear.pairs[0], dear.best["b - a"]
    errors = {r: math.sqrt(part.between + part.within / r) for r in range(1, 11)}
    assert best.trials > 1
    assert best.trials == min(errors, key=lambda r: minimum_detectable(errors[r], 690 // (20 + r)))
    assert (best.questions, best.cost) == (690 // (20 + best.trials), best.questions * (20 + best.trials))
    with pytest.raises(InputError, match="budget"):
        plan(trials, budget=1)
    with pytest.raises(MeasureError, match="single trial"):
        plan(trials, "Pass@2")


def stated(rng: np.random.Generator, questions: int, excess: float, trials: int = 3) -> list[dict[str, Any]]:
    """Return trials whose stated confidence is too high by `excess`; trials of a question are alike."""
    records: list[dict[str, Any]] = []
    for q in range(questions):
        p = float(rng.choice([0.25, 0.45, 0.65, 0.85]))
        lucky = rng.random() < p
        for _ in range(trials):
            right = lucky if rng.random() < 0.5 else rng.random() < p
            records.append({"query_id": f"q{q}", "answer": "7", "confidence": p + excess, "correct": bool(right)})
    return records


@pytest.mark.slow
@pytest.mark.parametrize(
    ("excess", "distance"), [(0.0, "mean"), (0.0, "rms"), (0.03, "mean"), (0.1, "mean"), (0.1, "rms")]
)
def test_intervals_of_the_calibration_error_cover(excess: float, distance: Any) -> None:
    """At least 95% of the conservative intervals cover, without and with an error."""
    rng = np.random.default_rng(5)
    covered, samples = 0, 150
    for _ in range(samples):
        ci = confidence(stated(rng, 100, excess), distance=distance, resamples=400).systems[0].error_ci
        assert ci is not None
        covered += ci[0] - 1e-9 <= excess <= ci[1]
    assert covered / samples >= 0.94


def test_calibration_errors_by_hand() -> None:
    trials = [
        {"query_id": f"q{i}", "answer": "7", "confidence": p, "correct": right}
        for i, (p, right) in enumerate([(0.95, True), (0.95, False), (0.3, False), (0.3, False)])
    ]
    gaps = (0.45, 0.3)
    assert confidence(trials).systems[0].error == pytest.approx(sum(gaps) / 2)
    squared = confidence(trials, distance="rms", bins=2, binning="size")
    assert squared.systems[0].error == pytest.approx(math.sqrt(sum(gap**2 for gap in gaps) / 2))
    assert squared.name == "calibration error (rms distance, 2 bins of equal size, equal confidences together)"
    with pytest.raises(InputError, match="distance"):
        confidence(trials, distance="max")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="confidence"):
        confidence([{"query_id": "q", "answer": "7", "correct": True}])


def test_bins_have_all_confidences() -> None:
    values = np.random.default_rng(6).random(1000).round(2)
    for binning in ("width", "size"):
        codes = bin_codes(values, 10, binning)  # type: ignore[arg-type]
        assert set(codes.tolist()) == set(range(10))
        assert all(len(set(codes[values == value].tolist())) == 1 for value in values)


def published(confidence: Any, right: Any) -> float:
    """Compute the calibration error as the published scripts do, which extend the last bin and skip it."""
    order = np.argsort(confidence, kind="stable")
    confidence, right = confidence[order], right[order]
    bins = [[i * 100, (i + 1) * 100] for i in range(len(confidence) // 100)]
    bins[-1] = [bins[-1][0], len(confidence)]
    error = 0.0
    for i in range(len(bins) - 1):
        rows = slice(*bins[i])
        error += (bins[i][1] - bins[i][0]) / len(confidence) * (confidence[rows].mean() - right[rows].mean()) ** 2
    return float(np.sqrt(error))


def test_browsecomp_calibration_error_skips_the_last_bin() -> None:
    rng = np.random.default_rng(7)
    for n in (100, 150, 250, 830):
        p, right = rng.random(n), (rng.random(n) < 0.3).astype(float)
        assert browsecomp_calibration_error(p, right) == pytest.approx(published(p, right), abs=1e-12)
    assert math.isnan(browsecomp_calibration_error(p[:99], right[:99]))
    # the most confident answers are all wrong: only the error over all bins sees it
    p = np.r_[np.full(100, 0.5), np.full(100, 1.0)]
    right = np.r_[np.tile([0.0, 1.0], 50), np.zeros(100)]
    trials = [{"query_id": f"q{i}", "answer": "7", "confidence": p[i], "correct": bool(right[i])} for i in range(200)]
    result = confidence(trials).systems[0]
    assert (result.browsecomp, result.error) == (0.0, 0.5)


def test_conversations_by_hand() -> None:
    qrels = {f"{c}_{t}": {"a": 1} for c, turns in (("1", 3), ("2", 1)) for t in range(1, turns + 1)}
    run = {"1_1": ["a"], "1_2": ["x", "a"], "1_3": ["x"], "2_1": ["x", "y", "a"]}
    result = conversations(qrels, run, "RR")
    row = result.means[0]
    assert row.over_turns == pytest.approx((1 + 1 / 2 + 0 + 1 / 3) / 4)
    assert row.over_conversations == pytest.approx((1.5 / 3 + 1 / 3) / 2)
    assert [(turn.turn, turn.conversations, turn.first_failures) for turn in result.turns] == [
        (1, 2, 0),
        (2, 1, 0),
        (3, 1, 1),
    ]
    assert result.turns[1].change == pytest.approx(-0.5)
    lists = {"1_1": ["a"], "1_3": ["x"], "1_4": ["x"]}
    gap = conversations({query_id: {"a": 1} for query_id in lists}, lists, "RR").turns
    assert [(turn.turn, turn.first_failures) for turn in gap] == [(1, 0), (3, 1), (4, 0)]
    assert [math.isnan(turn.change) for turn in gap] == [True, True, False]  # turn 2 was not scored
    for invalid in ("q1", "_3", "a_x", "a_"):
        with pytest.raises(InputError, match="no conversation and turn"):
            turn_of(invalid)
    same = conversations({"q1": {"a": 1}}, {"q1": ["a"]}, "RR", turns={"q1": ("c", 1)})
    assert same.means[0].over_turns == 1
    with pytest.raises(InputError, match="no turn"):
        conversations({"q1": {"a": 1}}, {"q1": ["a"]}, "RR", turns={})
    both = {query_id: {"a": 1} for query_id in ("q1", "q2")}
    with pytest.raises(InputError, match="the same turn"):
        conversations(both, both, "RR", turns=dict.fromkeys(both, ("c", 1)))


@pytest.mark.slow
def test_intervals_over_conversations_cover() -> None:
    """Turns of a conversation are alike, and conversations have different lengths."""
    rng = np.random.default_rng(8)
    covered, samples = np.zeros(2), 400
    for _ in range(samples):
        lengths, level = rng.integers(2, 11, 30), rng.beta(1, 1, 30)
        turns = [(c, t) for c in range(30) for t in range(1, lengths[c] + 1)]
        found = {(c, t): rng.random() < level[c] for c, t in turns}
        qrels = {f"{c}_{t}": {"a": 1} for c, t in turns}
        run = {f"{c}_{t}": ["a" if found[c, t] else "x"] for c, t in turns}
        row = conversations(qrels, run, "P@1").means[0]
        for i, ci in enumerate((row.over_turns_ci, row.over_conversations_ci)):
            assert ci is not None
            covered[i] += ci[0] <= 0.5 <= ci[1]
    assert (covered / samples >= 0.925).all()
    assert (covered / samples <= 0.975).all()
