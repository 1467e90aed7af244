"""Errors of judges: recovery of simulated variances, coverage of corrected means, and verdicts about bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.labels.corrected_systems import topic_interval
from judged.pipelines.rag.judge_bias import within_margin
from judged.pipelines.rag.judge_error import JudgeVariance, calibrate
from judged.pipelines.rag.responses import Responses
from judged.stats.prediction_powered import MIN_N, prediction_powered

if TYPE_CHECKING:
    from judged.results.types import Floats

VERDICTS = ("not", "partial", "support")
SCORES = np.array([0.0, 0.5, 1.0])
CONFUSION = np.array([[0.80, 0.15, 0.05], [0.35, 0.45, 0.20], [0.10, 0.25, 0.65]])  # rows: the truth


def true_verdicts(rng: np.random.Generator, topics: int, nuggets: int) -> Floats:
    """Sample true verdicts (topics, nuggets) of topics with different coverage, as indices of `VERDICTS`."""
    coverage = rng.beta(2, 2, topics)[:, None]
    uniform = rng.random((topics, nuggets))
    return np.where(uniform < coverage, 2, np.where(uniform < coverage + 0.2, 1, 0))


def judge_verdicts(rng: np.random.Generator, verdicts: Any) -> Floats:
    """Sample the verdicts of a judge with a known confusion matrix."""
    return (rng.random((*verdicts.shape, 1)) > CONFUSION.cumsum(axis=1)[verdicts]).sum(axis=-1).clip(max=2)


def test_variance_of_repeats_is_recovered() -> None:
    """60 topics of 10 nuggets, 12 judged twice; 2,000 simulations; the confusion matrix implies the true variance."""
    rng = np.random.default_rng(1)
    estimates: list[tuple[float, float]] = []
    true_variances: list[float] = []
    verdict_variance = CONFUSION @ SCORES**2 - (CONFUSION @ SCORES) ** 2  # of a judge's verdict, by true verdict
    for _ in range(2000):
        verdicts = true_verdicts(rng, 60, 10)
        first, second = (SCORES[judge_verdicts(rng, verdicts)].mean(axis=1) for _ in range(2))
        variance = JudgeVariance.of(first[None, :12], second[None, :12], first)
        estimates.append((variance.variance, variance.share))
        true_variances.append(verdict_variance[verdicts].mean() / 10)
    variance = np.mean(true_variances)
    assert np.mean([estimate for estimate, _ in estimates]) == pytest.approx(variance, rel=0.02)  # standard error 0.9%
    noisy = np.var([SCORES[judge_verdicts(rng, true_verdicts(rng, 1, 10))].mean() for _ in range(4000)])
    assert np.mean([share for _, share in estimates]) == pytest.approx(variance / noisy, rel=0.06)


@pytest.mark.parametrize(("systems", "level"), [(1, 0.95), (3, 0.9)])
def test_the_interval_of_a_variance_is_a_chi_square_interval(systems: int, level: float) -> None:
    """Five topics with a variance of 5 squared means per system are added to the 14 repeated topics."""
    rng = np.random.default_rng(systems)
    first, second = rng.random((2, systems, 14))
    scores = 4 * rng.random(30)
    half_squares = ((first - second) ** 2).mean(axis=0) / 2
    relative_variance = (14 * np.var(half_squares, ddof=1) / half_squares.mean() ** 2 + 5 * 5 / systems) / (14 + 5)
    freedom = min(2 * 14 / relative_variance, 14 * systems)
    limits = freedom * half_squares.mean() / stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], freedom)
    variance = JudgeVariance.of(first, second, scores, level)
    assert variance.variance == pytest.approx(half_squares.mean())
    assert variance.share == pytest.approx(half_squares.mean() / np.var(scores, ddof=1))
    assert variance.share_ci == pytest.approx(tuple(limits / np.var(scores, ddof=1)))
    assert JudgeVariance.of(first[:, :11], second[:, :11], scores).share_ci is None
    if level == 0.95:
        assert JudgeVariance.of(first, second, scores) == variance


@pytest.mark.slow
@pytest.mark.parametrize("labeled", [30, 60])
def test_corrected_means_cover_the_truth(labeled: int) -> None:
    """Coverage of the mean nugget recall of the population: 300 topics of 8 nuggets, 1,500 simulations, 95% intervals.

    The standard error of the coverage is 0.6 points. The uncorrected mean of the judge is tested for comparison.
    """
    rng, rounds = np.random.default_rng(labeled), 1500
    population = float(SCORES[true_verdicts(rng, 400_000, 8)].mean())
    covered = np.zeros(2)
    for _ in range(rounds):
        verdicts = true_verdicts(rng, 300, 8)
        people, model = SCORES[verdicts].mean(axis=1), SCORES[judge_verdicts(rng, verdicts)].mean(axis=1)
        corrected = prediction_powered(people[:labeled], model[:labeled], model[labeled:], resamples=100)
        covered += [
            low <= population <= high for low, high in (corrected.interval, topic_interval(model, 0.95) or (0.0, 0.0))
        ]
    assert 0.93 <= covered[0] / rounds <= 0.97
    assert covered[1] / rounds < 0.2  # the judge alone: a narrow interval around a wrong value


def test_judges_with_a_bias_of_the_margin_are_rarely_accepted() -> None:
    """40 topics, errors with sd 0.15 and a bias equal to the margin, 4,000 rounds: at most 2.5% (se 0.25)."""
    rng = np.random.default_rng(3)
    errors = 0.05 + 0.15 * rng.standard_normal((4000, 40))
    verdicts = [within_margin(40, topic_interval(row, 0.95), 0.05) for row in errors]
    assert verdicts.count("yes") / len(verdicts) <= 0.0325
    assert verdicts.count("no") / len(verdicts) <= 0.0325


def test_few_topics_are_not_tested() -> None:
    assert within_margin(MIN_N - 1, (0.0, 0.0), 0.05) == within_margin(MIN_N, None, 0.05) == "not tested"


def tables(topics: int = 80, labeled: int = 40, repeated: int = 20, seed: int = 0) -> Responses:
    """Return two systems, judged by a person on some topics, and by a model on all, on some of them twice."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[dict[str, Any]]] = {"answers": [], "nuggets": [], "assignments": []}
    for i in range(topics):
        query = f"q{i:03}"
        rows["nuggets"] += [{"query_id": query, "nugget_id": str(number)} for number in range(6)]
        for run in ("a", "b"):
            key = {"query_id": query, "run_id": run}
            rows["answers"].append({**key, "text": "x"})
            true = true_verdicts(rng, 1, 6)[0]
            all_verdicts = [("ann", 0, true)] if i < labeled else []
            all_verdicts += [("m", repeat, judge_verdicts(rng, true)) for repeat in range(1 + (i < repeated))]
            rows["assignments"] += [
                {**key, "nugget_id": str(number), "judge": judge, "repeat": repeat, "verdict": VERDICTS[verdict]}
                for judge, repeat, verdicts in all_verdicts
                for number, verdict in enumerate(verdicts)
            ]
    return Responses.of(rows)


def test_means_by_people_by_a_model_and_corrected() -> None:
    scoring = pytest.importorskip("judged.pipelines.rag.scoring", reason="needs measures of answers")
    responses = tables()
    calibration = calibrate(responses, "ann", "NuggetRecall")
    first, second = calibration.means
    assert (first.run, first.labeled, first.repeated, second.run) == ("a", 40, 20, "b")
    rows = responses["assignments"].to_pylist()

    def mean(judge: str, run: str, n_topics: int) -> float:
        key = (judge, 0, run)
        judge_rows = [row for row in rows if (row["judge"], row["repeat"], row["run_id"]) == key]
        scores = [SCORES[VERDICTS.index(row["verdict"])] for row in judge_rows if row["query_id"] < f"q{n_topics:03}"]
        return float(np.mean(scores))  # each topic has six nuggets

    assert first.people == pytest.approx(mean("ann", "a", 40))
    assert first.model == pytest.approx(mean("m", "a", 80))
    assert first.bias == pytest.approx(mean("m", "a", 40) - mean("ann", "a", 40))
    assert first.ci is not None
    assert first.ci[0] < first.value < first.ci[1]
    assert 0 < first.judge_variance_share < 1
    (agreement,) = calibration.agreement
    assert (agreement.shared, agreement.failed) == (40 * 2 * 6, 0)
    assert 0.5 < agreement.same < 0.85
    assert scoring.evaluate(responses, "NuggetRecall") is not None


def test_failed_verdicts_are_excluded_and_counted() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="needs measures of answers")
    responses = tables(topics=4, labeled=4, repeated=0)
    rows = responses["assignments"].to_pylist()
    for row in rows:
        if row["judge"] == "m" and row["nugget_id"] in "01":
            row["verdict"] = "failed"
    (agreement,) = calibrate(responses.with_tables(assignments=rows), "ann").agreement
    assert (agreement.shared, agreement.failed) == (4 * 2 * 4, 4 * 2 * 2)


def test_the_middle_verdict_of_several_people_is_used() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="needs measures of answers")
    responses = tables(topics=30, labeled=30, repeated=0)
    rows = responses["assignments"].to_pylist()
    people_rows = [row for row in rows if row["judge"] == "ann"]
    rows += [
        {**row, "judge": name, "verdict": verdict}
        for row in people_rows
        for name, verdict in (("bob", row["verdict"]), ("eve", "not"))
    ]
    several_people = responses.with_tables(assignments=rows)
    assert str(calibrate(several_people, ["ann", "bob", "eve"]).means) == str(calibrate(responses, "ann").means)


@pytest.mark.parametrize(
    ("verdicts", "people_mean"),
    [(("support", "partial", "not"), 0.5), (("support", "not"), 0.0), (("support", "partial"), 0.5)],
)
def test_the_middle_verdict_of_people_who_disagree(verdicts: tuple[str, ...], people_mean: float) -> None:
    key = {"query_id": "q", "sentence": 1, "doc_id": "d"}
    people_rows = [{**key, "judge": f"p{i}", "verdict": verdict} for i, verdict in enumerate(verdicts)]
    model = {**key, "judge": "m", "verdict": "support"}
    all_tables = {"answers": [{"query_id": "q"}], "citations": [key], "support": [*people_rows, model]}
    (mean,) = calibrate(all_tables, [f"p{i}" for i in range(len(verdicts))], "SupportP").means
    assert (mean.people, mean.bias) == (people_mean, 1 - people_mean)


def test_partly_repeated_topics_are_excluded_from_the_variance() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="needs measures of answers")
    responses = tables()
    rows = [row for row in responses["assignments"].to_pylist() if not (row["repeat"] and row["nugget_id"] == "3")]
    assert calibrate(responses.with_tables(assignments=rows), "ann", "NuggetRecall").means[0].repeated == 0


def test_inputs_without_a_comparison_raise() -> None:
    responses = tables(topics=3, labeled=3, repeated=0)
    with pytest.raises(InputError, match="use one or more of ann, m"):
        calibrate(responses, "anne")
    with pytest.raises(InputError, match="no model judged"):
        calibrate(responses, ["ann", "m"])
