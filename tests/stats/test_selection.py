"""Choosing the best of many: the choice by hand, the bias of its score, and which others may be the best."""

from __future__ import annotations

import numpy as np
import pytest

from judged.errors import InputError
from judged.stats.selection import choose, may_be_best, select


def test_the_choice_by_hand() -> None:
    # leaving out each topic, the others choose: B, A, A, A
    found = select([[0.9, 0.1, 0.5, 0.6], [0.2, 0.6, 0.4, 0.7]], folds=4)
    picked = {int(topic): int(found.picked[found.fold[topic]]) for topic in range(4)}
    assert picked == {0: 1, 1: 0, 2: 0, 3: 0}
    assert found.values.tolist() == [0.2, 0.1, 0.5, 0.6]
    assert found.optimism == pytest.approx(0.525 - 0.35)


def test_the_nested_choice_by_hand() -> None:
    """Six topics in three folds of two: what is chosen outside each fold is scored in it, deal by deal."""
    values = np.array([[0.9, 0.1, 0.5, 0.6, 0.2, 0.4], [0.2, 0.6, 0.4, 0.7, 0.5, 0.2]])
    found = choose(values, folds=3, seed=5)
    rng, honest, first = np.random.default_rng(5), [], []
    for _ in range(20):
        fold = rng.permutation(np.arange(6) % 3)
        for at in range(3):
            outside = values[:, fold != at].sum(axis=1).round(12)
            honest.append(values[outside.argmax(), fold == at].sum())
            first.append(outside.argmax() == 0)
    assert found.honest == pytest.approx(sum(honest) / 120)
    assert found.shares == pytest.approx([np.mean(first), 1 - np.mean(first)])
    assert (found.best, found.naive) == (0, pytest.approx(0.45))
    assert found.optimism == pytest.approx(0.45 - found.honest)
    assert choose(values[:, :5]).interval is None
    assert choose(values[:, :2]).naive == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("systems", "spread", "topic", "noise"),
    [(12, 0.0, 1.0, 1.0), (12, 0.15, 1.0, 1.0), (40, 0.0, 1.0, 1.0), (40, 0.15, 3.0, 0.5), (40, 0.05, 3.0, 0.5)],
)
def test_the_honest_number_has_a_fifth_of_the_bias_at_most(
    systems: int, spread: float, topic: float, noise: float
) -> None:
    """What is estimated: the true mean of what this procedure picks, over draws of 50 topics; intervals hold it."""
    rng = np.random.default_rng(12)
    truth = spread * rng.normal(size=systems)
    naive, one_deal, honest, held = [], [], [], []
    for seed in range(400):
        values = truth[:, None] + noise * rng.normal(size=(systems, 50)) + topic * rng.normal(size=50)
        found = choose(values, seed=seed)
        worth = truth[found.best]
        assert found.interval is not None
        held.append(found.interval[0] <= worth <= found.interval[1])
        worth += values.mean() - truth.mean()  # with the luck that all share: it says nothing of a bias
        naive.append(found.naive - worth)
        honest.append(found.honest - worth)
        one_deal.append(select(values, seed=seed).honest - worth)
    for corrected in (honest, one_deal):
        assert abs(np.mean(corrected)) <= np.mean(naive) / 5
    assert np.mean(held) > 0.95 - 3 * 0.011


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


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_the_truly_best_is_among_those_that_may_be_best(spread: float) -> None:
    """At alpha 0.1, of 8 systems over 30 topics; where all are equal any may be said to be the best."""
    rng = np.random.default_rng(4)
    truth = spread * rng.normal(size=8)
    kept, left_out = 0, 0
    for _ in range(400):
        values = truth[:, None] + rng.normal(size=(8, 30)) + rng.normal(size=30)
        found = may_be_best(values, 0.1, "t")
        kept += bool(found[truth.argmax()])
        left_out += int((~found).sum())
    assert kept >= 400 * 0.9 - 2.6 * 6
    assert (left_out > 400) == (spread > 0)


def test_who_may_be_best_by_hand() -> None:
    rising = np.arange(12) / 100
    assert may_be_best([rising]).tolist() == [True]
    assert may_be_best([rising, rising]).tolist() == [True, True]
    # each of 5 topics is higher: 2^-5 on this side, of two comparisons each has 0.05
    values = np.array([[0.1] * 5, [0.2, 0.3, 0.4, 0.5, 0.6], [0.15, 0.25, 0.35, 0.45, 0.55]])
    assert may_be_best(values, 2**-4).tolist() == [False, True, False]
    assert may_be_best(values, 2**-4 - 1e-3).tolist() == [True, True, True]
