"""Scores by judgments that are uncertain: what they mean by hand, and whether their intervals cover."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import judged
import planted_clicks
from judged.errors import InputError
from judged.online.clicks import evaluate_uncertain
from judged.online.clicks.expected import coec_of

TOPICS = 30
MEASURES = ("DCG@5", "nDCG@5")


def of_log(seed: int, pages: int):
    """Make judgments of a simulated log, two runs, and their true scores."""
    rng = np.random.default_rng(seed)
    worth = np.minimum(rng.gamma(2.0, 0.06, (TOPICS, 10)), 1)
    made = planted_clicks.planted(rng, TOPICS, attractive=worth, noise=0.1)
    counts = planted_clicks.cells(made, np.full(len(made.lists), pages), rng)
    found = coec_of(counts, propensities=planted_clicks.EXAMINED)
    pairs = found.pairs.rename_columns(["query_id", "doc_id"])
    # without the log's own mean in the scale: DCG is then of one unit in all logs
    unit = found.clicks.sum() / (counts.shown * planted_clicks.EXAMINED[counts.rank - 1]).sum() / 0.12
    value, se = found.clicks / found.expected * unit, np.sqrt(found.clicks) / found.expected * unit
    columns = {"relevance": found.shrunk.value * unit, "value": value, "se": se}
    for name, column in columns.items():
        pairs = pairs.append_column(name, pa.array(column))
    orders = {"lot": np.tile(np.arange(10), (TOPICS, 1)), "good": np.argsort(-worth, axis=1)}
    runs = {
        run: {f"q{q:04}": [f"d{d:02}" for d in order.tolist()] for q, order in enumerate(table)}
        for run, table in orders.items()
    }
    truth = judged.Qrels(pairs.set_column(2, "relevance", pa.array(worth.ravel() / 0.12)))
    return judged.Qrels(pairs), runs, judged.evaluate(truth, runs, MEASURES).aggregate()


@cache
def simulated(pages: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logs = [of_log(seed, pages) for seed in range(72)]
        made = [evaluate_uncertain(qrels, runs, MEASURES, resamples=100).rows for qrels, runs, _ in logs]
    return made, [truth for *_, truth in logs]


@pytest.mark.parametrize("pages", [60, 250])
def test_intervals_cover_the_true_mean_where_grades_as_they_stand_are_biased(pages):
    made, truths = simulated(pages)
    held, plain, off = [], [], []
    for at, (run, measure) in enumerate([(run, measure) for run in ("lot", "good") for measure in MEASURES]):
        true = np.mean([truth[run][measure] for truth in truths])
        held += [rows[at].ci[0] <= true <= rows[at].ci[1] for rows in made]
        off.append(abs(np.mean([rows[at].value for rows in made]) - true))
        plain.append(abs(np.mean([rows[at].plain for rows in made]) - true))
    assert 0.92 <= np.mean(held) <= 0.98
    assert all(corrected < raw for corrected, raw in zip(off[1::2], plain[1::2], strict=True))  # nDCG


def test_intervals_of_differences_cover_too():
    made, truths = simulated(60)
    for at, measure in enumerate(MEASURES):
        true = np.mean([truth["good"][measure] - truth["lot"][measure] for truth in truths])
        rows = [made[2 + at] for made in made]
        assert np.mean([row.difference_ci[0] <= true <= row.difference_ci[1] for row in rows]) >= 0.92
    assert made[0][0].difference_ci is None


def test_of_a_sum_the_part_of_judgments_is_that_of_their_errors():
    qrels = [
        {"query_id": f"q{at}", "doc_id": doc, "grade": value, "value": value, "se": 0.3}
        for at in range(6)
        for doc, value in (("a", 1.0 + at), ("b", 2.0))
    ]
    row = evaluate_uncertain(qrels, {f"q{at}": ["a", "b"] for at in range(6)}, "DCG@2", resamples=4000).rows[0]
    assert row.value == pytest.approx(row.plain, abs=0.02)
    by_hand = 0.3**2 * (1 + 1 / np.log2(3) ** 2) / 6  # of the mean over six topics
    assert row.by_judgments**2 == pytest.approx(by_hand, rel=0.05)
    assert row.by_topics**2 + row.by_judgments**2 == pytest.approx(np.var(np.arange(6), ddof=1) / 6, rel=0.05)
    assert row.share == pytest.approx(row.by_judgments**2 / (row.by_topics**2 + row.by_judgments**2))


def test_certain_judgments_give_the_scores_of_evaluate():
    qrels = [
        {"query_id": f"q{at}", "doc_id": doc, "grade": grade, "value": grade, "se": 0.0}
        for at in range(5)
        for doc, grade in (("a", 1.0), ("b", float(at)))
    ]
    runs = {f"q{at}": ["a", "b"] for at in range(5)}
    row = evaluate_uncertain(qrels, runs, "nDCG@2", resamples=100).rows[0]
    (estimate,) = judged.evaluate(judged.Qrels.of(qrels), runs, "nDCG@2").estimates()
    assert (row.value, row.ci, row.share) == (
        pytest.approx(estimate.value),
        pytest.approx(estimate.ci),
        pytest.approx(0),
    )


def test_values_and_errors_are_asked_for(tmp_path):
    with pytest.raises(InputError, match="no value"):
        evaluate_uncertain(judged.Qrels.of({"q": {"a": 1}}), {"q": ["a"]}, "P@1")
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade,value,se\nq,a,1,1,-2\nr,a,1,1,2\n")
    with pytest.raises(InputError, match="se is below 0"):
        evaluate_uncertain(tmp_path / "judgments.csv", {"q": ["a"]}, "P@1")
    noisy = [{"query_id": "q", "doc_id": f"d{at}", "grade": at, "value": at, "se": 9.0} for at in range(1, 5)]
    assert "little-evidence" in {note.rule for note in evaluate_uncertain(noisy, {"q": ["d1"]}, "DCG@1").notes}


def test_a_mean_of_two_topics_has_errors_and_one_of_one_has_none():
    rows = [{"query_id": f"q{at}", "doc_id": "a", "grade": 1.0 + at, "value": 1.0 + at, "se": 0.1} for at in range(2)]
    both = evaluate_uncertain(rows, {"q0": ["a"], "q1": ["a"]}, "DCG@1").rows[0]
    assert both.value == pytest.approx(1.5, abs=0.05)
    assert both.by_topics**2 + both.by_judgments**2 == pytest.approx(0.25, rel=0.2)  # half of the variance 1/2
    single = evaluate_uncertain(rows[:1], {"q0": ["a"]}, "DCG@1").rows[0]
    assert (single.plain, single.ci) == (1.0, None)
    assert np.isnan([single.by_topics, single.by_judgments, single.share]).all()
