"""A linear model with random effects of crossed factors, by restricted likelihood (Patterson and Thompson 1971)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints

MOST = 1500
"""Observations: each step of the search solves so many equations."""


@dataclass(frozen=True)
class MixedFit:
    """Fixed effects with their covariance, and the variances of the factors and of what is left."""

    effects: Floats
    covariance: Floats
    variances: Floats
    residual: float


def mixed_model(values: Floats, fixed: Floats, factors: Sequence[Ints]) -> MixedFit:
    """Fit it.

    Parameters
    ----------
    values
        (n,), at most `MOST`.
    fixed
        (n, p): columns of fixed effects, of full rank.
    factors
        Codes (n,) of each random factor.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> found = mixed_model(np.array([1.0, 3.0, 4.0, 6.0, 7.0, 9.0]), np.ones((6, 1)), [group])
    >>> [round(float(number), 3) for number in (found.effects[0], found.variances[0], found.residual)]
    [5.0, 8.0, 2.0]
    """
    from scipy.optimize import minimize

    n, p = fixed.shape
    alike = [(codes[:, None] == codes) * 1.0 for codes in factors]

    def fitted(logs: Floats) -> tuple[float, Floats, Floats, float]:
        spread = np.eye(n) + sum(math.exp(log) * same for log, same in zip(logs, alike, strict=True))
        root = np.linalg.cholesky(spread)
        x, y = np.linalg.solve(root, fixed), np.linalg.solve(root, values)
        inverse = np.linalg.inv(x.T @ x)
        effects = inverse @ x.T @ y
        residual = float(((y - x @ effects) ** 2).sum()) / (n - p)
        half = np.log(np.diag(root)).sum() - np.linalg.slogdet(inverse)[1] / 2
        return float((n - p) / 2 * math.log(max(residual, 1e-300)) + half), effects, inverse, residual

    found = minimize(
        lambda logs: fitted(logs)[0], np.full(len(factors), -1.0), method="L-BFGS-B", bounds=[(-16, 12)] * len(factors)
    )
    _, effects, inverse, residual = fitted(found.x)
    return MixedFit(effects, residual * inverse, np.exp(found.x) * residual, residual)
