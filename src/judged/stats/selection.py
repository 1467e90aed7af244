"""What choosing the best costs: the score of the best of many is too high on the topics that chose it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged._types import ReadOnly
from judged.errors import InputError
from judged.stats.inputs import score_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from judged._types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Selection(ReadOnly):
    """The best of several systems, and what the procedure that chose it scores on topics that did not choose.

    Parameters
    ----------
    best
        The system with the highest mean over all topics; of equals the first.
    naive
        Its mean over the topics that chose it.
    fold
        (T,): the fold of each topic.
    picked
        (F,): the system that the topics outside a fold choose.
    values
        (T,): the score of each topic by the system that other topics choose.
    """

    best: int
    naive: float
    fold: Ints
    picked: Ints
    values: Floats

    @property
    def honest(self) -> float:
        """The mean of `values`: what the procedure of choosing scores, not what one system does."""
        return float(self.values.mean())

    @property
    def optimism(self) -> float:
        """By how much the naive mean is higher."""
        return self.naive - self.honest


def select(values: ArrayLike, *, folds: int = 10, seed: int = 0) -> Selection:
    """Choose the system with the highest mean, and cross-validate the choice.

    The topics are dealt at random into folds. The score of a topic is that of the system which is best on the topics of
    the other folds, so that no topic counts for a choice by which it is scored (Stone 1974; Varma and Simon 2006).

    Parameters
    ----------
    values
        (S, T): one row a system, one column a topic, without NaN; higher is better.
    folds
        From 2; as many as there are topics at most.
    seed
        Of the deal.

    Raises
    ------
    InputError
        If there are fewer than two topics, a value is no number, or the folds make no sense.

    Examples
    --------
    >>> found = select([[0.9, 0.1, 0.5, 0.6], [0.2, 0.6, 0.4, 0.7]], folds=4)
    >>> found.best, round(found.naive, 3), round(found.honest, 3)
    (0, 0.525, 0.35)
    """
    table = score_matrix(values, least=1)
    if table.shape[1] < 2:
        raise InputError("there are fewer than two topics to choose by", fix="give scores of two topics or more")
    if np.isnan(table).any():
        raise InputError("a score is missing", fix="choose by topics that every system has a score for")
    if folds < 2:
        raise InputError(f"{folds} folds leave no topics to choose by", fix="give 2 or more; 10 is usual")
    if seed < 0:
        raise InputError(f"the seed {seed} is below 0", fix="give a whole number from 0")
    topics = table.shape[1]
    count = min(folds, topics)
    fold = np.random.default_rng(seed).permutation(np.arange(topics) % count)
    inside = np.stack([np.bincount(fold, weights=row, minlength=count) for row in table])
    picked = np.argmax(np.round(table.sum(axis=1, keepdims=True) - inside, 12), axis=0)
    means = table.mean(axis=1)
    best = int(np.argmax(np.round(means, 12)))
    return Selection(best, float(means[best]), fold, picked, table[picked[fold], np.arange(topics)])
