"""Models of how a page is browsed, with their parameters; `judged.online.simulation.clicks` draws from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from judged.errors import InputError
from judged.online.simulation.ranges import probabilities, probability


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
