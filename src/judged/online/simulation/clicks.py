"""Models of how users click, and clicks drawn by them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats


def probability(owner: object, *names: str) -> None:
    """Refuse fields that are no probabilities."""
    for name in names:
        probabilities(name, (getattr(owner, name),))


def probabilities(name: str, values: Iterable[float]) -> None:
    """Refuse values that are no probabilities."""
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value:g}, and it must be between 0 and 1", fix=f"give {name} as a share")


def positive(owner: object, *names: str, least: float = 0.0) -> None:
    """Refuse fields that are not above 0, or below `least` where that is given."""
    for name in names:
        value = getattr(owner, name)
        if not (value >= least if least else value > 0):
            raise InputError(f"{name} is {value:g}", fix=f"give {f'{least:g} or more' if least else 'more than 0'}")


def shares(name: str, values: Iterable[float]) -> None:
    """Refuse shares that do not add up to 1."""
    given = tuple(values)
    probabilities(name, given)
    if not math.isclose(sum(given), 1.0, abs_tol=1e-9):
        raise InputError(f"the shares of {name} add up to {sum(given):g}", fix="they must add up to 1")


@dataclass(frozen=True)
class PositionBased:
    """A result is looked at with a probability that its rank alone decides (Craswell et al., WSDM 2008).

    Parameters
    ----------
    examination
        By rank, from rank 1; ranks beyond have the last value.
    """

    examination: tuple[float, ...] = (1.0, 0.8, 0.64, 0.52, 0.43, 0.36, 0.3, 0.26, 0.22, 0.2)

    def __post_init__(self) -> None:
        probabilities("examination", self.examination)
        if not self.examination:
            raise InputError("examination is empty", fix="give a probability for rank 1 at least")


@dataclass(frozen=True)
class Cascade:
    """Results are looked at from the top until the first click (Craswell et al., WSDM 2008)."""


@dataclass(frozen=True)
class Dbn:
    """From the top: stop when satisfied, or else go on with a probability (Chapelle and Zhang, WWW 2009).

    Parameters
    ----------
    go_on
        Probability of looking at the next result, with and without a click that did not satisfy.
    """

    go_on: float = 0.9

    def __post_init__(self) -> None:
        probability(self, "go_on")


Browsing: TypeAlias = PositionBased | Cascade | Dbn


class Rows:
    """What is a data class of arrays with one first axis."""

    def taken(self, rows: Any) -> Self:
        """Give some of the rows."""
        return replace(cast("Any", self), **{name: column[rows] for name, column in vars(self).items()})

    @classmethod
    def together(cls, parts: Iterable[Self]) -> Self:
        """Put rows one after the other."""
        every = [vars(part) for part in parts]
        return cls(**{name: np.concatenate([part[name] for part in every]) for name in every[0]})


@dataclass(frozen=True, eq=False)
class Looks(Rows):
    """What users did: each by page and rank."""

    examined: Bools
    clicked: Bools
    satisfied: Bools


@dataclass(frozen=True, eq=False)
class Expected:
    """Probabilities.

    Parameters
    ----------
    examined, clicked, first
        By page and rank: that the result is looked at, clicked, and the first to be clicked.
    some
        By page, for every kind of mark: that some click has it.
    """

    examined: Floats
    clicked: Floats
    first: Floats
    some: Mapping[str, Floats]


def browse(model: Browsing, attractive: Floats, satisfying: Floats, first_rank: int, rng: np.random.Generator) -> Looks:
    """Draw what users do on pages.

    Parameters
    ----------
    model
        The model.
    attractive, satisfying
        By page and rank; an attractiveness of -1 marks a place without a result.
    first_rank
        Rank of the first result.
    rng
        Source of chance.
    """
    there = attractive >= 0
    attracted = rng.random(attractive.shape) < attractive
    satisfied = rng.random(attractive.shape) < satisfying
    if isinstance(model, PositionBased):
        examined = there & (rng.random(attractive.shape) < _examination(model, first_rank, attractive.shape[1]))
    else:
        on = rng.random(attractive.shape) < _go_on(model)
        stops = attracted & (satisfied if isinstance(model, Dbn) else True)
        passes = np.logical_and.accumulate(there & on & ~stops, axis=1)
        examined = there.copy()
        examined[:, 1:] &= passes[:, :-1]
    clicked = examined & attracted
    return Looks(examined, clicked, clicked & satisfied)


def expect(
    model: Browsing, attractive: Floats, satisfying: Floats, marks: Mapping[str, tuple[float, float]]
) -> Expected:
    """Give the probabilities that `browse` draws from, for first pages.

    Parameters
    ----------
    model, attractive, satisfying
        As of `browse`.
    marks
        Things that may happen to a click, such as a cart: name to the probability after one that satisfied, and after
        one that did not.
    """
    there = attractive >= 0
    alpha = np.where(there, attractive, 0.0)
    if isinstance(model, PositionBased):
        examined = there * _examination(model, 1, alpha.shape[1])
        first = examined * alpha * _shifted(1 - examined * alpha)
    else:
        on = _go_on(model)
        stop = satisfying if isinstance(model, Dbn) else 1.0
        examined = there * _shifted(on * (1 - alpha * stop))
        first = alpha * _shifted(on * (1 - alpha))
    return Expected(
        examined=examined,
        clicked=examined * alpha,
        first=first,
        some={name: _some(model, alpha, satisfying, mark) for name, mark in marks.items()},
    )


def _some(model: Browsing, alpha: Floats, satisfying: Floats, marked: tuple[float, float]) -> Floats:
    """Give the probability that some click of a page is marked."""
    mark = satisfying * marked[0] + (1 - satisfying) * marked[1]
    if isinstance(model, PositionBased):
        return 1 - np.prod(1 - _examination(model, 1, alpha.shape[1]) * alpha * mark, axis=1)
    stays = (1 - satisfying) * (1 - marked[1]) if isinstance(model, Dbn) else 0.0  # clicked, no mark, and not the end
    unmarked = _shifted(_go_on(model) * (1 - alpha + alpha * stays))
    return (unmarked * alpha * mark).sum(axis=1)


def _shifted(factors: Floats) -> Floats:
    """Give the product of the factors of all ranks above each: 1 at the first."""
    running: Floats = np.cumprod(factors, axis=1, dtype=np.float64)
    return np.concatenate([np.ones_like(running[:, :1]), running[:, :-1]], axis=1)


def _examination(model: PositionBased, first_rank: int, size: int) -> Floats:
    at = np.minimum(np.arange(first_rank - 1, first_rank - 1 + size), len(model.examination) - 1)
    return np.array(model.examination, dtype=np.float64)[at]


def _go_on(model: Cascade | Dbn) -> float:
    return model.go_on if isinstance(model, Dbn) else 1.0
