"""Click models, and the sampling of clicks from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats


def check_probability(owner: object, *names: str) -> None:
    """Check that fields are probabilities."""
    for name in names:
        check_probabilities(name, (getattr(owner, name),))


def check_probabilities(name: str, values: Iterable[float]) -> None:
    """Check that values are probabilities."""
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"{name} must be between 0 and 1, got {value:g}", fix="use a probability")


def check_positive(owner: object, *names: str, minimum: float = 0.0) -> None:
    """Check that fields are above 0, or at least `minimum`."""
    for name in names:
        value = getattr(owner, name)
        if not (value >= minimum if minimum else value > 0):
            raise InputError(
                f"{name} must be {f'{minimum:g} or more' if minimum else 'above 0'}, got {value:g}",
                fix="use a larger value",
            )


def check_shares(name: str, values: Iterable[float]) -> None:
    """Check that shares add up to 1."""
    share_list = tuple(values)
    check_probabilities(name, share_list)
    if not math.isclose(sum(share_list), 1.0, abs_tol=1e-9):
        raise InputError(f"the shares of {name} add up to {sum(share_list):g}", fix="use shares that add up to 1")


@dataclass(frozen=True)
class PositionBased:
    """Position-based model: examination depends on the rank only (Craswell et al., WSDM 2008).

    Parameters
    ----------
    examination
        Probability of examination by rank, from rank 1; deeper ranks have the last value.
    """

    examination: tuple[float, ...] = (1.0, 0.8, 0.64, 0.52, 0.43, 0.36, 0.3, 0.26, 0.22, 0.2)

    def __post_init__(self) -> None:
        check_probabilities("examination", self.examination)
        if not self.examination:
            raise InputError("examination has no values", fix="use at least one probability")


@dataclass(frozen=True)
class Cascade:
    """Cascade model: results are examined from the top until the first click (Craswell et al., WSDM 2008)."""


@dataclass(frozen=True)
class Dbn:
    """Dynamic Bayesian network: examine from the top until satisfied or abandoned (Chapelle and Zhang, WWW 2009).

    Parameters
    ----------
    continuation
        Probability of examining the next result after no click, or an unsatisfied click.
    """

    continuation: float = 0.9

    def __post_init__(self) -> None:
        check_probability(self, "continuation")


Browsing: TypeAlias = PositionBased | Cascade | Dbn


class ArrayTable:
    """Base of data classes of arrays with a common first axis."""

    def take(self, rows: Any) -> Self:
        """Select rows."""
        return replace(cast("Any", self), **{name: column[rows] for name, column in vars(self).items()})

    @classmethod
    def concatenate(cls, parts: Iterable[Self]) -> Self:
        """Concatenate tables."""
        columns = [vars(part) for part in parts]
        return cls(**{name: np.concatenate([part[name] for part in columns]) for name in columns[0]})


@dataclass(frozen=True, eq=False)
class PageInteractions(ArrayTable):
    """Sampled behavior, by page and rank."""

    examined: Bools
    clicked: Bools
    satisfied: Bools


@dataclass(frozen=True, eq=False)
class ClickProbabilities:
    """Probabilities of a click model.

    Parameters
    ----------
    examined, clicked, first
        Probability, by page and rank, that a result is examined, clicked, and the first click.
    outcomes
        Probability, by page, that at least one click has an outcome.
    """

    examined: Floats
    clicked: Floats
    first: Floats
    outcomes: Mapping[str, Floats]


def browse(
    model: Browsing, attractive: Floats, satisfying: Floats, first_rank: int, rng: np.random.Generator
) -> PageInteractions:
    """Sample the behavior of users on pages.

    Parameters
    ----------
    model
        Click model.
    attractive, satisfying
        Probabilities by page and rank; an attractiveness of -1 marks a rank without a result.
    first_rank
        Rank of the first result.
    rng
        Random number generator.
    """
    has_result = attractive >= 0
    attracted = rng.random(attractive.shape) < attractive
    satisfied = rng.random(attractive.shape) < satisfying
    if isinstance(model, PositionBased):
        examined = has_result & (rng.random(attractive.shape) < _examination(model, first_rank, attractive.shape[1]))
    else:
        continues = rng.random(attractive.shape) < _continuation(model)
        stops = attracted & (satisfied if isinstance(model, Dbn) else True)
        # Chapelle and Zhang, section 3: E_{r+1} = E_r and not S_r and A_r, with P(A = 1) = gamma.
        reaches_next = np.logical_and.accumulate(has_result & continues & ~stops, axis=1)
        examined = has_result.copy()
        examined[:, 1:] &= reaches_next[:, :-1]
    clicked = examined & attracted
    return PageInteractions(examined, clicked, clicked & satisfied)


def expect(
    model: Browsing, attractive: Floats, satisfying: Floats, outcomes: Mapping[str, tuple[float, float]]
) -> ClickProbabilities:
    """Compute the probabilities of the behavior that `browse` samples, for first pages.

    Parameters
    ----------
    model, attractive, satisfying
        See `browse`.
    outcomes
        Outcomes of a click, such as adding to the cart: probabilities after a satisfied and an unsatisfied click.
    """
    has_result = attractive >= 0
    alpha = np.where(has_result, attractive, 0.0)
    if isinstance(model, PositionBased):
        examined = has_result * _examination(model, 1, alpha.shape[1])
        # PBM: clicks at different ranks are independent.
        first = examined * alpha * _product_above(1 - examined * alpha)
    else:
        gamma = _continuation(model)
        stop = satisfying if isinstance(model, Dbn) else 1.0
        # Cascade and DBN: every result above was passed without satisfaction, with probability gamma each.
        examined = has_result * _product_above(gamma * (1 - alpha * stop))
        first = alpha * _product_above(gamma * (1 - alpha))
    return ClickProbabilities(
        examined=examined,
        clicked=examined * alpha,
        first=first,
        outcomes={name: _any_outcome(model, alpha, satisfying, pair) for name, pair in outcomes.items()},
    )


def _any_outcome(model: Browsing, alpha: Floats, satisfying: Floats, probabilities: tuple[float, float]) -> Floats:
    """Return the probability that at least one click of a page has an outcome."""
    outcome = satisfying * probabilities[0] + (1 - satisfying) * probabilities[1]
    if isinstance(model, PositionBased):
        return 1 - np.prod(1 - _examination(model, 1, alpha.shape[1]) * alpha * outcome, axis=1)
    # After a click without the outcome, only the DBN goes on, and only if the click did not satisfy.
    goes_on = (1 - satisfying) * (1 - probabilities[1]) if isinstance(model, Dbn) else 0.0
    no_outcome_above = _product_above(_continuation(model) * (1 - alpha + alpha * goes_on))
    return (no_outcome_above * alpha * outcome).sum(axis=1)


def _product_above(factors: Floats) -> Floats:
    """Return, for each rank, the product of the factors at all ranks above; 1 at the first rank."""
    running: Floats = np.cumprod(factors, axis=1, dtype=np.float64)
    return np.concatenate([np.ones_like(running[:, :1]), running[:, :-1]], axis=1)


def _examination(model: PositionBased, first_rank: int, size: int) -> Floats:
    # Ranks after the last have the last value.
    index = np.minimum(np.arange(first_rank - 1, first_rank - 1 + size), len(model.examination) - 1)
    return np.array(model.examination, dtype=np.float64)[index]


def _continuation(model: Cascade | Dbn) -> float:
    return model.continuation if isinstance(model, Dbn) else 1.0
