"""How well parameters are known: standard errors from what single pages say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from judged._types import Floats, Ints

Parameters: TypeAlias = "dict[str, Floats]"
"""Probabilities by the name of what they are of: ``attractiveness`` by pair, and so on."""

Sums: TypeAlias = "dict[str, tuple[Floats, Floats]]"
"""Expected successes and trials of each parameter."""


def totals(place: Any, column: Any, size: int) -> Floats:
    """Add up a column by place: (size,)."""
    return np.asarray(np.bincount(place, column, size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Information:
    """The information in pages: sums of squares and products of scores (Meilijson, JRSS B 1989).

    A page's score is expected successes less expected trials times the parameter, over its variance: what the E-step
    gives already. Parameters of pairs are taken as independent of one another, given those that all pages share: for a
    parameter that a page uses once, the square of its score is its observed information exactly.

    Parameters
    ----------
    own
        (P,) by name: of the parameters that every pair has its own of.
    free
        By name, the places of those that all share, in the order of `shared`.
    shared
        (G, G).
    cross
        (P, G) by name, dense or sparse.
    """

    own: dict[str, Floats]
    free: dict[str, Ints]
    shared: Floats
    cross: dict[str, Any] = field(default_factory=dict[str, Any])

    def errors(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return standard errors of the parameters that all pages share; NaN where nothing is known, and at 0 and 1."""
        found = {name: np.full(len(parameters[name]), np.nan) for name in self.free}
        _, inside = self._variances(parameters, priors)
        begin = 0
        for name, places in self.free.items():
            variance = np.diag(inside)[begin : begin + len(places)]
            found[name][places] = np.sqrt(np.where(variance > 0, variance, np.nan))
            begin += len(places)
        return found

    def widening(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return how much wider standard errors of pairs are because parameters that all share are estimated: (P,)."""
        own, inside = self._variances(parameters, priors)
        more = {name: np.nan_to_num(self._by_shared(name, inside) * variance) for name, variance in own.items()}
        return {name: np.sqrt(1 + np.maximum(part, 0)) for name, part in more.items()}

    def _variances(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> tuple[Parameters, Floats]:
        """Return variances of parameters of pairs, were all others known, and covariances of those that all share."""
        own: Parameters = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, told in self.own.items():
                known = told + _curvature(parameters[name], priors.get(name))
                own[name] = np.where(np.isfinite(known) & (known > 0), 1 / known, np.nan)
            told = self.shared + np.diag(
                np.concatenate(
                    [_curvature(parameters[name][places], priors.get(name)) for name, places in self.free.items()]
                    or [np.zeros(0)]
                )
            )
        less = sum((_squared(cross, np.nan_to_num(own[name])) for name, cross in self.cross.items()), 0.0)
        inside: Any = np.linalg.pinv(told - less, hermitian=True) if told.size else told
        return own, inside

    def _by_shared(self, name: str, inside: Floats) -> Floats | float:
        if name not in self.cross:
            return 0.0
        cross = self.cross[name]
        return np.asarray((cross * (cross @ inside)).sum(axis=1)).ravel()


def _curvature(value: Floats, prior: tuple[float, float] | None) -> Floats:
    """Give what a prior tells of a parameter beside the pages."""
    a, b = prior or (0.0, 0.0)
    none = np.zeros_like(value)
    return (a / value**2 if a else none) + (b / (1 - value) ** 2 if b else none)


def shared_only(name: str, told: Floats) -> Information:
    """Give the information about parameters that all share, each told apart from the others."""
    free = np.flatnonzero(np.isfinite(told) & (told > 0))
    return Information({}, {name: free}, np.diag(told[free]))


def _squared(cross: Any, variance: Floats) -> Any:
    return cross.T @ (cross * variance[:, None])
