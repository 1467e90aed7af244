"""Scores from uncertain judgments: by hand, and coverage of intervals."""

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
from judged.online.clicks.clicks_over_expected import compute_coec

TOPICS = 30
MEASURES = ("DCG@5", "nDCG@5")


def simulate_judgments(seed: int, pages: int):
    """Return judgments from a simulated log, two runs, and their true scores."""
    rng = np.random.default_rng(seed)
    attractiveness = np.minimum(rng.gamma(2.0, 0.06, (TOPICS, 10)), 1)
    plan = planted_clicks.rank_documents(rng, TOPICS, attractive=attractiveness, noise=0.1)
    counts = planted_clicks.sample_counts(plan, np.full(len(plan.lists), pages), rng)
    coec = compute_coec(counts, propensities=planted_clicks.EXAMINED)
    pairs = coec.pairs.rename_columns(["query_id", "doc_id"])
    # a fixed scale, so that DCG of all simulated logs is comparable
    scale = coec.clicks.sum() / (counts.impressions * planted_clicks.EXAMINED[counts.rank - 1]).sum() / 0.12
    value, se = coec.clicks / coec.expected * scale, np.sqrt(coec.clicks) / coec.expected * scale
    columns = {"relevance": coec.shrunk.value * scale, "value": value, "se": se}
    for name, column in columns.items():
        pairs = pairs.append_column(name, pa.array(column))
    orders = {"lot": np.tile(np.arange(10), (TOPICS, 1)), "good": np.argsort(-attractiveness, axis=1)}
    runs = {
        run: {f"q{q:04}": [f"d{d:02}" for d in order.tolist()] for q, order in enumerate(order_table)}
        for run, order_table in orders.items()
    }
    truth = judged.Qrels(pairs.set_column(2, "relevance", pa.array(attractiveness.ravel() / 0.12)))
    return judged.Qrels(pairs), runs, judged.evaluate(truth, runs, MEASURES).aggregate()


@cache
def simulate_scores(pages: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logs = [simulate_judgments(seed, pages) for seed in range(72)]
        results = [evaluate_uncertain(qrels, runs, MEASURES, resamples=100).rows for qrels, runs, _ in logs]
    return results, [truth for *_, truth in logs]


@pytest.mark.parametrize("pages", [60, 250])
def test_intervals_cover_the_true_mean_and_reduce_bias(pages):
    results, truths = simulate_scores(pages)
    is_covered, plain_bias, corrected_bias = [], [], []
    for i, (run, measure) in enumerate([(run, measure) for run in ("lot", "good") for measure in MEASURES]):
        expected = np.mean([truth[run][measure] for truth in truths])
        is_covered += [rows[i].ci[0] <= expected <= rows[i].ci[1] for rows in results]
        corrected_bias.append(abs(np.mean([rows[i].value for rows in results]) - expected))
        plain_bias.append(abs(np.mean([rows[i].uncorrected for rows in results]) - expected))
    assert 0.92 <= np.mean(is_covered) <= 0.98
    assert all(
        corrected < uncorrected for corrected, uncorrected in zip(corrected_bias[1::2], plain_bias[1::2], strict=True)
    )  # nDCG


def test_intervals_of_differences_cover():
    results, truths = simulate_scores(60)
    for measure_index, measure in enumerate(MEASURES):
        expected = np.mean([truth["good"][measure] - truth["lot"][measure] for truth in truths])
        rows = [result[2 + measure_index] for result in results]
        assert np.mean([row.difference_ci[0] <= expected <= row.difference_ci[1] for row in rows]) >= 0.92
    assert results[0][0].difference_ci is None


def test_share_of_judgments_by_hand():
    qrels = [
        {"query_id": f"q{i}", "doc_id": doc, "grade": value, "value": value, "se": 0.3}
        for i in range(6)
        for doc, value in (("a", 1.0 + i), ("b", 2.0))
    ]
    row = evaluate_uncertain(qrels, {f"q{i}": ["a", "b"] for i in range(6)}, "DCG@2", resamples=4000).rows[0]
    assert row.value == pytest.approx(row.uncorrected, abs=0.02)
    expected = 0.3**2 * (1 + 1 / np.log2(3) ** 2) / 6  # of the mean over six topics
    assert row.judgment_se**2 == pytest.approx(expected, rel=0.05)
    assert row.topic_se**2 + row.judgment_se**2 == pytest.approx(np.var(np.arange(6), ddof=1) / 6, rel=0.05)
    assert row.judgment_share == pytest.approx(row.judgment_se**2 / (row.topic_se**2 + row.judgment_se**2))


def test_certain_judgments_have_the_scores_of_evaluate():
    qrels = [
        {"query_id": f"q{i}", "doc_id": doc, "grade": grade, "value": grade, "se": 0.0}
        for i in range(5)
        for doc, grade in (("a", 1.0), ("b", float(i)))
    ]
    runs = {f"q{i}": ["a", "b"] for i in range(5)}
    row = evaluate_uncertain(qrels, runs, "nDCG@2", resamples=100).rows[0]
    (estimate,) = judged.evaluate(judged.Qrels.of(qrels), runs, "nDCG@2").estimates()
    assert (row.value, row.ci, row.judgment_share) == (
        pytest.approx(estimate.value),
        pytest.approx(estimate.ci),
        pytest.approx(0),
    )


def test_values_and_errors_are_required(tmp_path):
    with pytest.raises(InputError, match="no column value"):
        evaluate_uncertain(judged.Qrels.of({"q": {"a": 1}}), {"q": ["a"]}, "P@1")
    (tmp_path / "judgments.csv").write_text("query_id,doc_id,grade,value,se\nq,a,1,1,-2\nr,a,1,1,2\n")
    with pytest.raises(InputError, match="each se must be"):
        evaluate_uncertain(tmp_path / "judgments.csv", {"q": ["a"]}, "P@1")
    noisy = [{"query_id": "q", "doc_id": f"d{i}", "grade": i, "value": i, "se": 9.0} for i in range(1, 5)]
    assert "little-evidence" in {note.rule for note in evaluate_uncertain(noisy, {"q": ["d1"]}, "DCG@1").notes}


def test_a_single_topic_has_no_errors():
    rows = [{"query_id": f"q{i}", "doc_id": "a", "grade": 1.0 + i, "value": 1.0 + i, "se": 0.1} for i in range(2)]
    two_topics = evaluate_uncertain(rows, {"q0": ["a"], "q1": ["a"]}, "DCG@1").rows[0]
    assert two_topics.value == pytest.approx(1.5, abs=0.05)
    assert two_topics.topic_se**2 + two_topics.judgment_se**2 == pytest.approx(
        0.25, rel=0.2
    )  # half of the variance 1/2
    single_topic = evaluate_uncertain(rows[:1], {"q0": ["a"]}, "DCG@1").rows[0]
    assert (single_topic.uncorrected, single_topic.ci) == (1.0, None)
    assert np.isnan([single_topic.topic_se, single_topic.judgment_se, single_topic.judgment_share]).all()
