"""`reproduce`: a small case by hand, and general properties."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.stats

from judged import InputError
from judged.comparison.agreement import reproduce
from judged.stats.rank_biased_overlap import rbo

QRELS = {"q1": {"a": 1, "b": 0, "c": 1}, "q2": {"a": 1, "b": 1}, "q3": {"a": 1}}
ORIGINAL = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 2.0, "b": 1.0}, "q3": {"a": 2.0, "b": 1.0}}
AGAIN = {"q1": {"a": 3.0, "b": 2.0, "d": 1.0}, "q2": {"b": 2.0, "a": 1.0}, "q3": {"b": 2.0, "a": 1.0}}
BASELINE = {"q1": {"b": 3.0, "a": 2.0}, "q2": {"x": 2.0, "b": 1.0}, "q3": {"a": 2.0}}


def test_by_hand() -> None:
    result = reproduce(QRELS, ORIGINAL, AGAIN, "RR", baseline=BASELINE, baseline_reproduced=BASELINE)
    assert result.query_ids == ("q1", "q2", "q3")
    assert result.tau.tolist() == [1, -1, -1]
    assert result.overlap.tolist() == pytest.approx([2 / 3, 1, 1])
    assert result.rbo[0] == rbo(np.array([1, 2, 3, 0]), np.array([1, 2, 0, 3]), 0.8).value
    (scores,) = result.scores
    assert (scores.original, scores.reproduced) == (1, pytest.approx(5 / 6))
    assert scores.rmse == pytest.approx(math.sqrt(0.25 / 3))
    assert scores.p == pytest.approx(scipy.stats.ttest_rel([1, 1, 1], [1, 1, 0.5]).pvalue)
    assert scores.effect_ratio == pytest.approx((5 / 6 - 2 / 3) / (1 - 2 / 3))
    assert scores.delta_relative_improvement == pytest.approx(1 / 2 - 1 / 4)
    assert result.table().grid().rows == (("RR", "1.0000", "0.8333", "0.2887", "0.4226", "0.5000", "0.2500"),)


def test_the_same_run() -> None:
    result = reproduce(QRELS, ORIGINAL, ORIGINAL, ["AP", "nDCG@10"])
    assert result.tau.tolist() == [1, 1, 1]
    assert result.rbo.tolist() == pytest.approx([1, 1, 1])
    assert [(score.rmse, score.p, score.effect_ratio) for score in result.scores] == [(0, 1, None), (0, 1, None)]
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.sentences[0].startswith(
        "reproduced and original share 100% of their top 100 documents on average over 3 topics;"
    )


def test_topics_of_one_run_alone_do_not_count_for_rankings() -> None:
    result = reproduce(QRELS, ORIGINAL, {"q2": {"a": 1.0}, "q9": {"a": 1.0}}, "RR", cutoff=1)
    assert result.query_ids == ("q2",)
    assert math.isnan(result.tau[0])  # one document has no order
    assert result.overlap.tolist() == [1]
    assert result.scores[0].reproduced == pytest.approx(1 / 3)
    json.dumps(result.to_dict(), allow_nan=False)


def test_errors() -> None:
    with pytest.raises(InputError, match="baseline and baseline_reproduced must be set together"):
        reproduce(QRELS, ORIGINAL, AGAIN, baseline=BASELINE)
    with pytest.raises(InputError, match="no topic in common"):
        reproduce(QRELS, ORIGINAL, {"q7": {"a": 1.0}})
