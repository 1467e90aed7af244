"""Choosing the best of many: the choice by hand, the bias of its score, and which others may be the best."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import choices

from judged.errors import InputError
from judged.stats.selection import choose, may_be_best, select


def test_the_choice_by_hand() -> None:
    # leaving out each topic, the others choose: B, A, A, A
    result = select([[0.9, 0.1, 0.5, 0.6], [0.2, 0.6, 0.4, 0.7]], folds=4)
    picked = {int(topic): int(result.picked[result.fold[topic]]) for topic in range(4)}
    assert picked == {0: 1, 1: 0, 2: 0, 3: 0}
    assert result.values.tolist() == [0.2, 0.1, 0.5, 0.6]
    assert result.optimism == pytest.approx(0.525 - 0.35)


def test_the_nested_choice_by_hand() -> None:
    """Six topics in three folds of two: what is chosen outside each fold is scored in it, deal by deal."""
    values = np.array([[0.9, 0.1, 0.5, 0.6, 0.2, 0.4], [0.2, 0.6, 0.4, 0.7, 0.5, 0.2]])
    result = choose(values, folds=3, seed=5)
    rng, honest, first = np.random.default_rng(5), [], []
    for _ in range(20):
        fold = rng.permutation(np.arange(6) % 3)
        for at in range(3):
            outside = values[:, fold != at].sum(axis=1).round(12)
            honest.append(values[outside.argmax(), fold == at].sum())
            first.append(outside.argmax() == 0)
    assert result.honest == pytest.approx(sum(honest) / 120)
    assert result.shares == pytest.approx([np.mean(first), 1 - np.mean(first)])
    assert (result.best, result.naive) == (0, pytest.approx(0.45))
    assert result.optimism == pytest.approx(0.45 - result.honest)
    assert choose(values[:, :5]).interval is None
    assert choose(values[:, :2]).naive == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("systems", "spread", "topic"), [(12, 0.0, 1.0), (12, 1 / 7, 1.0), (40, 0.0, 1.0), (40, 1 / 7, 6.0), (3, 0.0, 6.0)]
)
def test_the_honest_number_has_a_fifth_of_the_bias_at_most(systems: int, spread: float, topic: float) -> None:
    """What is estimated: the true mean of what this procedure picks, over draws of 50 topics; intervals hold it."""
    result = choices.selection_rates(systems, spread, topic, 50, 400)
    assert abs(result.bias) <= result.naive_bias / 5
    assert abs(result.select_bias) <= result.naive_bias / 5
    assert result.coverage > 0.95 - 3 * 0.011
    assert systems > 12 or result.best_included > 0.95 - 3 * 0.011


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


def test_who_may_be_best_by_hand() -> None:
    rising = np.arange(12) / 100
    assert may_be_best([rising]).tolist() == [True]
    assert may_be_best([rising, rising]).tolist() == [True, True]
    # each of 6 topics is higher: 2^-6 on this side, of two comparisons each has half of alpha
    values = np.array([[0.1] * 6, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.15, 0.25, 0.35, 0.45, 0.55, 0.65]])
    assert may_be_best(values[:, 1:], 0.1).all()  # 5 topics are too few for a verdict
    assert may_be_best(values, 2**-5).tolist() == [False, True, False]
    assert may_be_best(values, 2**-5 - 1e-3).tolist() == [True, True, True]
