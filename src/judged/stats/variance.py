"""Two-way analysis of variance of many systems over the same topics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.blocked_results import Anova, Factor
from judged.stats.complete import NO_RESIDUAL, Complete, complete

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def anova(values: ArrayLike) -> Anova:
    """Split the variation of scores into that of systems, of topics, and the rest.

    Parameters
    ----------
    values
        (S, T): S systems over T topics. Topics with a NaN are left out and counted.

    Returns
    -------
    Anova
        With F and p of both factors and their shares of the variance. Fewer than two topics: NaN for F and p.
        No residual variance: F is infinite and p is 0 for a factor that varies, and p is 1 for one that does not.

    Raises
    ------
    InputError
        If there are fewer than two systems, or an infinite score.

    Notes
    -----
    Each system meets each topic once, so the residual holds their interaction (Tague-Sutcliffe and Blustein 1995).
    With two systems F is the square of the paired t.

    Examples
    --------
    >>> found = anova([[0.2, 0.4, 0.6], [0.3, 0.4, 0.8]])
    >>> round(found.systems.f, 3), round(found.systems.p, 3), round(found.topics.eta_squared, 3)
    (3.0, 0.225, 0.894)
    """
    return anova_of(complete(values))


def anova_of(blocks: Complete) -> Anova:
    """Do what `anova` does for topics that are complete."""
    from scipy.special import fdtrc

    scores, n, systems = blocks.scores, blocks.n, len(blocks.scores)
    if not n:
        return _nothing(systems, blocks)
    grand = scores.mean()
    system, topic = scores.mean(axis=1) - grand, scores.mean(axis=0) - grand
    rest = scores - grand - system[:, np.newaxis] - topic
    squares = [_squares(part, blocks.tolerance) for part in (system, topic, rest)]
    between, across, residual = n * squares[0], systems * squares[1], squares[2]
    df = (systems - 1, n - 1, (systems - 1) * (n - 1))
    total = between + across + residual
    variance = residual / df[2] if df[2] else math.nan

    def factor(part: float, df_part: int) -> Factor:
        mean_square = part / df_part if df_part else math.nan
        f = _ratio(mean_square, variance)
        p = float(fdtrc(df_part, df[2], f)) if math.isfinite(f) else 0.0 if f > 0 else math.nan
        if n > 1 and part == 0.0:
            p = 1.0
        return Factor(
            part,
            df_part,
            mean_square,
            f,
            p,
            _ratio(part, total),
            _ratio(part - df_part * variance, total + variance),
            _ratio(part, part + residual),
            _ratio(part - df_part * variance, part + (systems * n - df_part) * variance),
        )

    note = blocks.note or (NO_RESIDUAL if residual == 0.0 and between > 0.0 else "")
    return Anova(
        factor(between, df[0]), factor(across, df[1]), residual, df[2], variance, total, n, blocks.left_out, note
    )


def _nothing(systems: int, blocks: Complete) -> Anova:
    nan = math.nan
    system, topic = (Factor(nan, df, nan, nan, nan, nan, nan, nan, nan) for df in (systems - 1, 0))
    return Anova(system, topic, nan, 0, nan, nan, 0, blocks.left_out, blocks.note)


def _squares(parts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tolerance: float) -> float:
    """Sum the squares; 0 if there is nothing but rounding."""
    return float((parts**2).sum()) if np.abs(parts).max() > tolerance else 0.0


def _ratio(part: float, whole: float) -> float:
    """Divide; NaN for 0 / 0."""
    if whole == 0.0:
        return math.inf if part > 0.0 else math.nan
    return part / whole
