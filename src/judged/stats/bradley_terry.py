"""Strengths of systems from comparisons of two at a time (Bradley and Terry 1952), by Hunter's steps (2004)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats

_STEPS, _CLOSE = 10_000, 1e-12


def strengths(wins: Floats) -> Floats:
    """Give the logarithms of the strengths, of mean 0; NaN for all where they have no finite maximum.

    Parameters
    ----------
    wins
        (S, S): how often the row's system was preferred to the column's; a tie is half a win of each.

    Examples
    --------
    >>> strengths(np.array([[0.0, 3.0], [1.0, 0.0]])).round(4).tolist()  # half the logarithm of 3, and less it
    [0.5493, -0.5493]
    """
    games, won = wins + wins.T, wins.sum(axis=1)
    reach = np.linalg.matrix_power((wins > 0) + np.eye(len(wins)), len(wins)) > 0
    if not reach.all():  # a system, or some together, that never lost or never won (Ford 1957)
        return np.full(len(wins), np.nan)
    strength = np.ones(len(wins))
    for _ in range(_STEPS):
        before = strength
        strength = won / (games / (before[:, None] + before)).sum(axis=1)
        strength /= np.exp(np.log(strength).mean())
        if np.abs(strength - before).max() < _CLOSE:
            break
    return np.log(strength)


def strength_errors(wins: Floats, strength: Floats) -> Floats:
    """Return standard errors of the strengths, (S,), that are robust to how the comparisons of a person hang together.

    The sandwich estimator clustered by person, times P / (P - 1).

    Parameters
    ----------
    wins
        (P, S, S): the wins of each person.
    strength
        (S,): what `strengths` returns for the sum over persons.

    Examples
    --------
    Four persons with one comparison each, three of them won: the variance of the logarithm of the odds is 1/3 + 1, here
    times 4/3; a strength is half of that logarithm.

    >>> wins = np.array([[[0.0, 1.0], [0.0, 0.0]]] * 3 + [[[0.0, 0.0], [1.0, 0.0]]])
    >>> (strength_errors(wins, strengths(wins.sum(axis=0))) ** 2 * 4).round(6).tolist()
    [1.777778, 1.777778]
    """
    persons = len(wins)
    expected = 1.0 / (1.0 + np.exp(strength - strength[:, None]))  # the chance that the row is preferred to the column
    games = wins + wins.transpose(0, 2, 1)
    scores = (wins - games * expected).sum(axis=2)
    weights = games.sum(axis=0) * expected * expected.T
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    spread = scores @ inverse
    return np.sqrt((spread**2).sum(axis=0) * persons / (persons - 1))
