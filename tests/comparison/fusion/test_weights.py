"""Selection of fusion weights with cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from judged import evaluate
from judged.comparison.fusion import choose_weights, fuse
from judged.data import sample
from judged.errors import InputError, MeasureError


def test_weights_of_the_sample() -> None:
    runs = {run.name: run for run in sample.runs() if run.name in {"bm25", "tfidf_char"}}
    result = choose_weights(sample.qrels(), runs, "nDCG@10", steps=5)
    assert result.grid.sum(axis=1) == pytest.approx(np.ones(4))
    for weights, scores in zip(result.grid.tolist(), result.scores, strict=True):
        again = evaluate(sample.qrels(), fuse(runs, weights=weights), "nDCG@10")
        assert scores.tolist() == again.values[0, 0].tolist()
    # the compared run is fused with weights that were selected without the topic itself
    by_name = dict(zip(result.comparison.scores.run_names, result.comparison.scores.values[:, 0], strict=True))
    assert by_name["selected weights"].tolist() == pytest.approx(result.selection.values.tolist())
    assert result.selection.naive == pytest.approx(result.scores.mean(axis=1).max())
    best = evaluate(sample.qrels(), result.run(), "nDCG@10").value("nDCG@10")
    assert best == pytest.approx(result.selection.naive)
    assert sum(result.holders.values()) > 100


def test_too_many_weights_and_measures_that_are_better_low_are_refused() -> None:
    runs = {name: {"q": {"x": 1.0}, "p": {"x": 1.0}} for name in "abcdef"}
    with pytest.raises(InputError, match="combinations"):
        choose_weights({"q": {"x": 1}, "p": {"x": 1}}, runs, steps=30)
    with pytest.raises(InputError, match="combinations"):
        choose_weights({"q": {"x": 1}, "p": {"x": 1}}, runs, steps=5)
    with pytest.raises(MeasureError):
        choose_weights({"q": {"x": 1}}, {"a": {"q": {"x": 1.0}}, "b": {"q": {"x": 1.0}}}, "num_ret")
