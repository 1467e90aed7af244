"""A judge's error: planted variances recovered, corrected means that cover the truth, and who may be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from judged.errors import InputError
from judged.labels.corrected_systems import topic_interval
from judged.pipelines.rag.judge_bias import believed
from judged.pipelines.rag.judge_error import OwnVariance, calibrate
from judged.pipelines.rag.responses import Responses
from judged.stats.prediction_powered import MIN_N, prediction_powered

if TYPE_CHECKING:
    from judged.results.types import Floats

WORDS = ("not", "partial", "support")
WORTH = np.array([0.0, 0.5, 1.0])
CONFUSION = np.array([[0.80, 0.15, 0.05], [0.35, 0.45, 0.20], [0.10, 0.25, 0.65]])  # rows: the truth


def truth(chance: np.random.Generator, topics: int, nuggets: int) -> Floats:
    """Draw true verdicts of topics that differ in how much their answers say: (topics, nuggets), places in `WORDS`."""
    full = chance.beta(2, 2, topics)[:, None]
    drawn = chance.random((topics, nuggets))
    return np.where(drawn < full, 2, np.where(drawn < full + 0.2, 1, 0))


def judged(chance: np.random.Generator, verdicts: Any) -> Floats:
    """Draw what a judge of known confusion says of them."""
    return (chance.random((*verdicts.shape, 1)) > CONFUSION.cumsum(axis=1)[verdicts]).sum(axis=-1).clip(max=2)


def test_variance_of_repeats_is_recovered() -> None:
    """60 topics of 10 nuggets, 12 asked twice; 2,000 collections; the judge's variance is known from its confusion."""
    chance = np.random.default_rng(1)
    found: list[tuple[float, float]] = []
    planted: list[float] = []
    spread = CONFUSION @ WORTH**2 - (CONFUSION @ WORTH) ** 2  # of one verdict, by what is true
    for _ in range(2000):
        verdicts = truth(chance, 60, 10)
        first, again = (WORTH[judged(chance, verdicts)].mean(axis=1) for _ in range(2))
        made = OwnVariance.of(first[None, :12], again[None, :12], first)
        found.append((made.variance, made.share))
        planted.append(spread[verdicts].mean() / 10)
    variance = np.mean(planted)
    assert np.mean([one for one, _ in found]) == pytest.approx(variance, rel=0.02)  # standard error 0.9 %
    noisy = np.var([WORTH[judged(chance, truth(chance, 1, 10))].mean() for _ in range(4000)])
    assert np.mean([share for _, share in found]) == pytest.approx(variance / noisy, rel=0.06)


@pytest.mark.parametrize(("systems", "level"), [(1, 0.95), (3, 0.9)])
def test_the_interval_of_a_variance_is_a_chi_square_interval(systems: int, level: float) -> None:
    """Five topics with a variance of 5 squared means, by system, are added to the 14 that were repeated."""
    chance = np.random.default_rng(systems)
    first, again = chance.random((2, systems, 14))
    scores = 4 * chance.random(30)
    halves = ((first - again) ** 2).mean(axis=0) / 2
    relative = (14 * np.var(halves, ddof=1) / halves.mean() ** 2 + 5 * 5 / systems) / (14 + 5)
    freedom = min(2 * 14 / relative, 14 * systems)
    ends = freedom * halves.mean() / stats.chi2.ppf([(1 + level) / 2, (1 - level) / 2], freedom)
    made = OwnVariance.of(first, again, scores, level)
    assert made.variance == pytest.approx(halves.mean())
    assert made.share == pytest.approx(halves.mean() / np.var(scores, ddof=1))
    assert made.share_ci == pytest.approx(tuple(ends / np.var(scores, ddof=1)))
    assert OwnVariance.of(first[:, :11], again[:, :11], scores).share_ci is None
    if level == 0.95:
        assert OwnVariance.of(first, again, scores) == made


@pytest.mark.slow
@pytest.mark.parametrize("labeled", [30, 60])
def test_corrected_means_cover_the_truth(labeled: int) -> None:
    """300 topics of 8 nuggets; the mean nugget recall of the population; 1,500 collections; 95 % intervals.

    The standard error of a coverage is 0.6 points. The judge's own mean, with its interval over all topics, is beside.
    """
    chance, rounds = np.random.default_rng(labeled), 1500
    population = float(WORTH[truth(chance, 400_000, 8)].mean())
    covered = np.zeros(2)
    for _ in range(rounds):
        verdicts = truth(chance, 300, 8)
        people, model = WORTH[verdicts].mean(axis=1), WORTH[judged(chance, verdicts)].mean(axis=1)
        made = prediction_powered(people[:labeled], model[:labeled], model[labeled:], resamples=100)
        covered += [
            low <= population <= high for low, high in (made.interval, topic_interval(model, 0.95) or (0.0, 0.0))
        ]
    assert 0.93 <= covered[0] / rounds <= 0.97
    assert covered[1] / rounds < 0.2  # the judge alone: a narrow interval around a wrong value


def test_a_judge_whose_bias_is_the_margin_is_seldom_believed() -> None:
    """40 topics, errors of sd .15 around a bias of exactly the margin; 4,000 rounds: at most 2.5 % (se .25)."""
    chance = np.random.default_rng(3)
    errors = 0.05 + 0.15 * chance.standard_normal((4000, 40))
    said = [believed(40, topic_interval(row, 0.95), 0.05) for row in errors]
    assert said.count("yes") / len(said) <= 0.0325
    assert said.count("no") / len(said) <= 0.0325


def test_with_few_topics_nothing_is_shown() -> None:
    assert believed(MIN_N - 1, (0.0, 0.0), 0.05) == believed(MIN_N, None, 0.05) == "not tested"


def tables(topics: int = 80, labeled: int = 40, twice: int = 20, seed: int = 0) -> Responses:
    """Two systems under a person, on some topics, and a judge of known confusion on all, on some twice."""
    chance = np.random.default_rng(seed)
    rows: dict[str, list[dict[str, Any]]] = {"answers": [], "nuggets": [], "assignments": []}
    for at in range(topics):
        query = f"q{at:03}"
        rows["nuggets"] += [{"query_id": query, "nugget_id": str(number)} for number in range(6)]
        for run in ("a", "b"):
            key = {"query_id": query, "run_id": run}
            rows["answers"].append({**key, "text": "x"})
            verdicts = truth(chance, 1, 6)[0]
            said = [("ann", 0, verdicts)] if at < labeled else []
            said += [("m", repeat, judged(chance, verdicts)) for repeat in range(1 + (at < twice))]
            rows["assignments"] += [
                {**key, "nugget_id": str(number), "judge": judge, "repeat": repeat, "verdict": WORDS[verdict]}
                for judge, repeat, given in said
                for number, verdict in enumerate(given)
            ]
    return Responses.of(rows)


def test_people_a_model_and_both() -> None:
    scoring = pytest.importorskip("judged.pipelines.rag.scoring", reason="the measures of answers are not there yet")
    given = tables()
    made = calibrate(given, "ann", "NuggetRecall")
    one, other = made.means
    assert (one.run, one.labeled, one.repeated, other.run) == ("a", 40, 20, "b")
    rows = given["assignments"].to_pylist()

    def mean(judge: str, run: str, most: int) -> float:
        who = (judge, 0, run)
        own = [row for row in rows if (row["judge"], row["repeat"], row["run_id"]) == who]
        worth = [WORTH[WORDS.index(row["verdict"])] for row in own if row["query_id"] < f"q{most:03}"]
        return float(np.mean(worth))  # every topic has six nuggets

    assert one.known == pytest.approx(mean("ann", "a", 40))
    assert one.model == pytest.approx(mean("m", "a", 80))
    assert one.bias == pytest.approx(mean("m", "a", 40) - mean("ann", "a", 40))
    assert one.ci is not None
    assert one.ci[0] < one.value < one.ci[1]
    assert 0 < one.own_share < 1
    (agreement,) = made.agreement
    assert (agreement.shared, agreement.failed) == (40 * 2 * 6, 0)
    assert 0.5 < agreement.same < 0.85
    assert scoring.evaluate(given, "NuggetRecall") is not None


def test_failed_verdicts_are_no_verdicts_and_counted() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="the measures of answers are not there yet")
    given = tables(topics=4, labeled=4, twice=0)
    rows = given["assignments"].to_pylist()
    for row in rows:
        if row["judge"] == "m" and row["nugget_id"] in "01":
            row["verdict"] = "failed"
    (agreement,) = calibrate(given.with_tables(assignments=rows), "ann").agreement
    assert (agreement.shared, agreement.failed) == (4 * 2 * 4, 4 * 2 * 2)


def test_of_several_people_the_middle_verdict_counts() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="the measures of answers are not there yet")
    given = tables(topics=30, labeled=30, twice=0)
    rows = given["assignments"].to_pylist()
    theirs = [row for row in rows if row["judge"] == "ann"]
    rows += [
        {**row, "judge": name, "verdict": verdict}
        for row in theirs
        for name, verdict in (("bob", row["verdict"]), ("eve", "not"))
    ]
    both = given.with_tables(assignments=rows)
    assert str(calibrate(both, ["ann", "bob", "eve"]).means) == str(calibrate(given, "ann").means)


@pytest.mark.parametrize(
    ("verdicts", "known"),
    [(("support", "partial", "not"), 0.5), (("support", "not"), 0.0), (("support", "partial"), 0.5)],
)
def test_people_who_all_say_something_else_mean_the_middle_of_it(verdicts: tuple[str, ...], known: float) -> None:
    key = {"query_id": "q", "sentence": 1, "doc_id": "d"}
    said = [{**key, "judge": f"p{at}", "verdict": verdict} for at, verdict in enumerate(verdicts)]
    model = {**key, "judge": "m", "verdict": "support"}
    given = {"answers": [{"query_id": "q"}], "citations": [key], "support": [*said, model]}
    (mean,) = calibrate(given, [f"p{at}" for at in range(len(verdicts))], "SupportP").means
    assert (mean.known, mean.bias) == (known, 1 - known)


def test_a_topic_that_was_repeated_in_part_says_nothing_of_variance() -> None:
    pytest.importorskip("judged.pipelines.rag.scoring", reason="the measures of answers are not there yet")
    given = tables()
    rows = [row for row in given["assignments"].to_pylist() if not (row["repeat"] and row["nugget_id"] == "3")]
    assert calibrate(given.with_tables(assignments=rows), "ann", "NuggetRecall").means[0].repeated == 0


def test_nothing_to_compare_is_said() -> None:
    given = tables(topics=3, labeled=3, twice=0)
    with pytest.raises(InputError, match="use some of ann, m"):
        calibrate(given, "anne")
    with pytest.raises(InputError, match="no model and people"):
        calibrate(given, ["ann", "m"])
