"""Weights: chosen by topics that do not count for them; and what choosing the best of many is worth."""

from __future__ import annotations

import numpy as np
import pytest

from judged import evaluate, sample
from judged.errors import InputError, MeasureError
from judged.fusion import choose_weights, fuse
from judged.stats.selection import select


def test_the_choice_by_hand() -> None:
    # leaving out each topic, the others choose: B, A, A, A
    found = select([[0.9, 0.1, 0.5, 0.6], [0.2, 0.6, 0.4, 0.7]], folds=4)
    picked = {int(topic): int(found.picked[found.fold[topic]]) for topic in range(4)}
    assert picked == {0: 1, 1: 0, 2: 0, 3: 0}
    assert found.values.tolist() == [0.2, 0.1, 0.5, 0.6]
    assert found.optimism == pytest.approx(0.525 - 0.35)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_honest_number_has_a_fifth_of_the_bias_at_most(spread: float) -> None:
    """What is estimated: the true mean of what this procedure picks, over draws of 50 topics."""
    rng = np.random.default_rng(12)
    truth = spread * rng.normal(size=30) / 7  # true means of 30 systems
    naive, honest, worth = [], [], []
    for seed in range(400):
        values = truth[:, None] + rng.normal(size=(30, 50)) + rng.normal(size=50)
        found = select(values, seed=seed)
        naive.append(found.naive - truth[found.best])
        honest.append(found.honest - truth[found.best])
        worth.append(truth[found.best])
    bias, error = np.mean(honest), np.std(honest) / 20
    assert np.mean(naive) > 0.2
    assert abs(bias) <= np.mean(naive) / 5 + 2 * error


def test_folds_are_even_and_hang_on_the_seed() -> None:
    values = np.random.default_rng(1).normal(size=(3, 25))
    one, same, other = (select(values, folds=10, seed=seed) for seed in (1, 1, 2))
    assert set(np.bincount(one.fold).tolist()) == {2, 3}
    assert one.fold.tolist() == same.fold.tolist() != other.fold.tolist()
    assert select(values, folds=99).fold.max() == 24


@pytest.mark.parametrize(
    ("values", "options"),
    [([[1.0]], {}), ([[1.0, np.nan]], {}), ([[1.0, 2.0]], {"folds": 1}), ([[1.0, 2.0]], {"seed": -1})],
)
def test_what_nobody_can_choose_by_is_refused(values: list[list[float]], options: dict[str, int]) -> None:
    with pytest.raises(InputError):
        select(values, **options)


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
