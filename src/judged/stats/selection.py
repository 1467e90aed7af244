"""Selection of the best system, with the selection bias of its score, and the systems that could be the best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError
from judged.results.types import ReadOnly
from judged.stats.inputs import ROUNDING, check_share, score_matrix, spread
from judged.stats.paired import paired_tests
from judged.stats.student import student_quantile
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged.results.types import Bools, Floats, Ints

_REPETITIONS = 20  # random assignments of topics to folds


@dataclass(frozen=True, eq=False)
class Selection(ReadOnly):
    """Best of several systems, and the cross-validated score of the selection procedure.

    Parameters
    ----------
    best
        System with the highest mean over all topics; the first of equal ones.
    naive
        Its mean over the topics that selected it.
    fold
        (T,): fold of each topic.
    picked
        (F,): system that is selected by the topics outside of each fold.
    values
        (T,): score of each topic by the system that the other folds select.
    """

    best: int
    naive: float
    fold: Ints
    picked: Ints
    values: Floats

    @property
    def honest(self) -> float:
        """Mean of `values`: the score of the selection procedure, not of one system."""
        return float(self.values.mean())

    @property
    def optimism(self) -> float:
        """Naive minus honest mean."""
        return self.naive - self.honest


def select(values: ArrayLike, *, folds: int = 10, seed: int = 0) -> Selection:
    """Select the system with the highest mean, and cross-validate the selection.

    Topics are assigned to folds at random. The score of a topic is that of the best system on the other folds, so that
    no topic takes part in the selection by which it is scored (Stone 1974; Varma and Simon 2006).

    Parameters
    ----------
    values
        (S, T): one row per system, one column per topic, without NaN; higher is better.
    folds
        Number of folds, at least 2; limited to the number of topics.
    seed
        Of the assignment.

    Raises
    ------
    InputError
        If there are fewer than two topics, a value is NaN, or an option is out of range.

    Examples
    --------
    >>> selection = select([[0.9, 0.1, 0.5, 0.6], [0.2, 0.6, 0.4, 0.7]], folds=4)
    >>> selection.best, round(selection.naive, 3), round(selection.honest, 3)
    (0, 0.525, 0.35)
    """
    scores = _check_table(values, folds, seed)
    topics = scores.shape[1]
    n_folds = min(folds, topics)
    fold = np.random.default_rng(seed).permutation(np.arange(topics) % n_folds)
    fold_sums = np.stack([np.bincount(fold, weights=row, minlength=n_folds) for row in scores])
    picked = np.argmax(np.round(scores.sum(axis=1, keepdims=True) - fold_sums, 12), axis=0)
    means = scores.mean(axis=1)
    best = int(np.argmax(np.round(means, 12)))
    return Selection(best, float(means[best]), fold, picked, scores[picked[fold], np.arange(topics)])


@dataclass(frozen=True, eq=False)
class SystemChoice(ReadOnly):
    """Best of several systems, and the expected score of the selection procedure, with an interval.

    Parameters
    ----------
    best
        System with the highest mean over all topics; the first of equal ones.
    naive
        Its mean over the topics that selected it.
    honest
        Expected score of the selection procedure: mean of `Selection.honest` over many assignments of topics.
    interval
        Of `honest`; None for fewer than six topics.
    shares
        (S,): how often the topics outside of a fold select each system, over all folds and assignments; the sum is 1.
    """

    best: int
    naive: float
    honest: float
    interval: tuple[float, float] | None
    shares: Floats

    @property
    def optimism(self) -> float:
        """Naive minus honest mean."""
        return self.naive - self.honest


def choose(values: ArrayLike, *, folds: int = 10, level: float = 0.95, seed: int = 0) -> SystemChoice:
    """Select the system with the highest mean, and estimate the score of this procedure by nested cross-validation.

    Topics are assigned to folds twenty times, because one assignment gives a noisy estimate. The topics' scores are not
    independent, as the training topics of the folds overlap. The error is estimated from inner cross-validations and
    the fold that they exclude (Bates, Hastie and Tibshirani 2024), and is at least that of one system's mean.

    Parameters
    ----------
    values, folds, seed
        As for `select`; at least three folds, and at least two topics in each.
    level
        Confidence level of the interval.

    Raises
    ------
    InputError
        As for `select`.

    Notes
    -----
    With 3, 12, or 40 equal or similar systems over 12 to 225 topics, 95% intervals covered the true score in 93% to 97%
    of samples if topics vary at least as much as systems do on a topic, and in 90% to 97% if topics do not vary at all.
    Student's interval of `Selection.values` covered it in 83% to 96%, and 71% to 89%. At most 13% of the bias of the
    naive mean remained (docs/calibration.md).

    Examples
    --------
    >>> choice = choose(np.add.outer([0.0, 0.02, 0.0], np.linspace(0.2, 0.8, 13)))
    >>> choice.best, round(choice.naive, 3), round(choice.honest, 3), choice.shares.round(3).tolist()
    (1, 0.52, 0.52, [0.0, 1.0, 0.0])
    """
    check_share("confidence level", level)
    scores = _check_table(values, folds, seed)
    topics, means = scores.shape[1], np.round(scores.mean(axis=1), 12)
    n_folds = max(min(folds, topics // 2), min(3, topics))
    rng, folds_range = np.random.default_rng(seed), np.arange(n_folds)
    honest, mse, shares = 0.0, 0.0, np.zeros(len(scores))
    for _ in range(_REPETITIONS):
        is_in_fold = np.eye(n_folds)[rng.permutation(np.arange(topics) % n_folds)]
        n, fold_sums, fold_squares = is_in_fold.sum(axis=0), scores @ is_in_fold, scores**2 @ is_in_fold
        training_sums = scores.sum(axis=1, keepdims=True) - fold_sums
        picked = np.argmax(np.round(training_sums, 12), axis=0)
        outer_means = fold_sums[picked, folds_range] / n
        honest += float((outer_means * n).sum()) / topics / _REPETITIONS
        shares += np.bincount(picked, minlength=len(scores)) / n_folds / _REPETITIONS
        inner_picked = np.argmax(np.round(training_sums[:, :, None] - fold_sums[:, None, :], 12), axis=0)
        inner_sums = fold_sums[inner_picked, folds_range]
        np.fill_diagonal(inner_sums, 0.0)  # [excluded fold, scored fold]: neither takes part in the selection
        squared_errors = (inner_sums.sum(axis=1) / (topics - n) - outer_means) ** 2
        mean_variances = (fold_squares[picked, folds_range] / n - outer_means**2) / np.maximum(n - 1, 1)
        mse += float((squared_errors - mean_variances).mean()) / _REPETITIONS
    best = int(np.argmax(means))
    mean_error = spread(scores[best]) / math.sqrt(topics)
    error = min(max(math.sqrt(max(mse, 0.0) * (n_folds - 1) / n_folds), mean_error), mean_error * math.sqrt(n_folds))
    half_width = student_quantile((1 + level) / 2, topics - 1) * error
    interval = None if topics < 6 else (honest - half_width, honest + half_width)
    return SystemChoice(best, float(scores[best].mean()), honest, interval, shares)


def _check_table(values: ArrayLike, folds: int, seed: int) -> Floats:
    scores = score_matrix(values, least=1)
    if scores.shape[1] < 2:
        raise InputError("at least two topics are required", fix="add topics")
    if np.isnan(scores).any():
        raise InputError("every system must have a score for every topic", fix="remove topics with missing scores")
    if folds < 2:
        raise InputError(f"`folds` must be at least 2, got {folds}", fix="use 10, for example")
    if seed < 0:
        raise InputError(f"the seed must not be negative, got {seed}", fix="use 0, for example")
    return scores


def may_be_best(
    values: ArrayLike, alpha: float = 0.05, test: str = "randomization", *, resamples: int = 10_000, seed: int = 0
) -> Bools:
    """Return which systems may have the highest true mean: no other system is significantly better.

    The best system is among them with a probability of at least 1 - alpha: it is excluded only if one of S - 1 tests at
    alpha / (S - 1) errs (Hsu 1984, by Bonferroni). With fewer topics than a verdict requires
    (`judged.stats.sufficiency`), no system is excluded.

    Parameters
    ----------
    values
        (S, T): one row per system, one column per topic; higher is better. NaN for missing scores.
    alpha
        Error rate of all tests of one system together.
    test, resamples, seed
        As for `judged.stats.paired_test`; a test of the mean.

    Raises
    ------
    InputError
        If the scores or an option are invalid.

    Examples
    --------
    >>> rising = np.arange(12) / 100
    >>> may_be_best([rising, rising + 0.3, rising[::-1] + 0.3]).tolist()
    [False, True, True]
    """
    check_share("significance alpha", alpha)
    scores = score_matrix(values, least=1)
    pairs = list(combinations(range(len(scores)), 2))
    is_excluded = np.zeros(len(scores), dtype=np.bool_)
    test_alpha = alpha / max(len(scores) - 1, 1) * (1 + ROUNDING)
    for pair, difference in zip(pairs, paired_tests(scores, pairs, test, resamples=resamples, seed=seed), strict=True):
        one_sided = difference.p / 2  # half of the two-sided p-value
        if one_sided <= test_alpha and difference.difference and not insufficiency(difference.n, "verdict"):
            is_excluded[pair[0] if difference.difference > 0 else pair[1]] = True
    return ~is_excluded
