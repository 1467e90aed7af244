"""A linear model with random effects of crossed factors, by restricted likelihood (Patterson and Thompson 1971)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.stats.crossed import dummies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats, Ints

MOST = 1500
"""Levels of all random factors together: each step of the search solves so many equations."""


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
        (n,).
    fixed
        (n, p): columns of fixed effects, of full rank.
    factors
        Codes (n,) of each random factor; at most `MOST` different ones in all.

    Examples
    --------
    >>> group = np.repeat([0, 1, 2], 2)
    >>> found = mixed_model(np.array([1.0, 3.0, 4.0, 6.0, 7.0, 9.0]), np.ones((6, 1)), [group])
    >>> [round(float(number), 3) for number in (found.effects[0], found.variances[0], found.residual)]
    [5.0, 8.0, 2.0]
    """
    from scipy.optimize import minimize

    n, p = fixed.shape
    levels = [np.unique(codes, return_inverse=True)[1] for codes in factors]
    members = np.hstack([dummies(codes) for codes in levels])
    which = np.repeat(np.arange(len(factors)), [int(codes.max()) + 1 for codes in levels])
    known = np.column_stack([fixed, values])
    among, across, outside = members.T @ members, members.T @ known, known.T @ known

    def fitted(logs: Floats) -> tuple[float, Floats, Floats, float]:
        sizes = np.exp(logs / 2)[which]  # standard deviations, by that of what is left
        root = np.linalg.cholesky(np.eye(len(sizes)) + sizes[:, None] * among * sizes)
        inside = np.linalg.solve(root, sizes[:, None] * across)
        products = outside - inside.T @ inside  # X'WX, X'Wy, y'Wy, with W the inverse of the covariance
        inverse: Floats = np.linalg.inv(products[:p, :p]).astype(np.float64, copy=False)
        effects = inverse @ products[:p, p]
        residual = max(float(products[p, p] - products[:p, p] @ effects), 0.0) / (n - p)
        half = np.log(np.diag(root)).sum() - np.linalg.slogdet(inverse)[1] / 2
        return float((n - p) / 2 * math.log(max(residual, 1e-300)) + half), effects, inverse, residual

    found = minimize(
        lambda logs: fitted(logs)[0], np.full(len(factors), -1.0), method="L-BFGS-B", bounds=[(-16, 12)] * len(factors)
    )
    _, effects, inverse, residual = fitted(found.x)
    return MixedFit(effects, residual * inverse, np.exp(found.x) * residual, residual)
