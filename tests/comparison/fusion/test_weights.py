"""Weights: chosen by topics that do not count for them."""

from __future__ import annotations

import numpy as np
import pytest

from judged import evaluate
from judged.comparison.fusion import choose_weights, fuse
from judged.data import sample
from judged.errors import InputError, MeasureError


def test_weights_of_the_sample() -> None:
    runs = {run.name: run for run in sample.runs() if run.name in {"bm25", "tfidf_char"}}
    found = choose_weights(sample.qrels(), runs, "nDCG@10", steps=5)
    assert found.grid.sum(axis=1) == pytest.approx(np.ones(4))
    for weights, scores in zip(found.grid.tolist(), found.scores, strict=True):
        again = evaluate(sample.qrels(), fuse(runs, weights=weights), "nDCG@10")
        assert scores.tolist() == again.values[0, 0].tolist()
    # the run of the comparison is, topic by topic, fused with the weights that other topics chose
    by_name = dict(zip(found.comparison.scores.run_names, found.comparison.scores.values[:, 0], strict=True))
    assert by_name["chosen weights"].tolist() == pytest.approx(found.selection.values.tolist())
    assert found.selection.naive == pytest.approx(found.scores.mean(axis=1).max())
    best = evaluate(sample.qrels(), found.run(), "nDCG@10").value("nDCG@10")
    assert best == pytest.approx(found.selection.naive)
    assert sum(found.holders.values()) > 100


def test_too_many_weights_and_measures_that_are_better_low_are_refused() -> None:
    runs = {name: {"q": {"x": 1.0}, "p": {"x": 1.0}} for name in "abcdef"}
    with pytest.raises(InputError, match="combinations"):
        choose_weights({"q": {"x": 1}, "p": {"x": 1}}, runs, steps=30)
    with pytest.raises(InputError, match="combinations"):
        choose_weights({"q": {"x": 1}, "p": {"x": 1}}, runs, steps=5)
    with pytest.raises(MeasureError):
        choose_weights({"q": {"x": 1}}, {"a": {"q": {"x": 1.0}}, "b": {"q": {"x": 1.0}}}, "num_ret")
