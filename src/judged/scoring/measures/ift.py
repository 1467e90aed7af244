"""The information foraging measures: users with a goal, an expected rate of gain, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import ADAPTIVE, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.parameters import Parameter, real, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats

_CITE = "Azzopardi, Thomas and Craswell 2018; cwl_eval"
_MISLEADS = "Its parameters are fitted to a user population: without such a fit they are a guess, and"
_LARGEST_EXPONENT = 700.0  # a double ends at e^709

GOAL = Parameter("The gain that the user is after.", None, real(0), required=True)
RATE = Parameter("The gain for each unit of cost that the user expects.", None, real(0), required=True)
B1 = Parameter("Where the goal counts for nothing, C is b1/(1+b1).", 0.9, real(0))
B2 = Parameter("Where the rate counts for nothing, C is 1/(1+b2).", 0.9, real(0))
R1 = Parameter("How sharply the user stops once the goal is reached.", 10.0, real(0))
R2 = Parameter("How sharply the user stops below the expected rate.", 10.0, real(0))


def after_goal(reading: Reading, goal: float, b: float, sharpness: float, name: str = "C") -> Floats:
    """Give the probability of reading on that falls as the goal comes nearer."""
    going_on = 1.0 - _logistic(goal - reading.gained, b, sharpness)
    how = f"1 - 1 / (1 + {spell(b)} * exp(({spell(goal)} - gained) * {spell(sharpness)}))"
    return reading.note(name, going_on, how, gained=reading.gained)


def above_rate(reading: Reading, rate: float, b: float, sharpness: float, name: str = "C") -> Floats:
    """Give the probability of reading on that is low below the expected rate."""
    found = reading.gained / reading.spent
    reading.note("rate", found, f"gained / {reading.spent_word}", gained=reading.gained, spent=reading.spent)
    how = f"1 / (1 + {spell(b)} * exp(({spell(rate)} - rate) * {spell(sharpness)}))"
    return reading.note(name, _logistic(rate - found, b, sharpness), how, rate=found)


def _logistic(lacking: Floats, b: float, sharpness: float) -> Floats:
    return 1.0 / (1.0 + b * np.exp(np.minimum(lacking * sharpness, _LARGEST_EXPONENT)))


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop when they have found about as much as they came for.",
    misleads=f"{_MISLEADS} the order of systems follows T.",
    aliases={"IFT-C1": {}, "IFTGoalCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C1-T=2-b1=0.9-R1=10"},
)
class IFT1(UserModel):
    r"""Information foraging, goal: the user stops around a total gain of T.

    .. math:: C(i) = C_1(i) = 1 - \frac{1}{1 + b_1\, e^{(T - \sum_{j \le i} g_j) R_1}}

    Examples
    --------
    At the goal after the first of two documents, C(1) = b1/(1+b1), here 1/2:

    >>> round(IFT1(T=1, b1=1, max=1, depth=2).of_list([1, 0]), 6)
    0.666667
    """

    T: float = param(GOAL)
    b1: float = param(B1)
    R1: float = param(R1)

    def continuation(self, reading: Reading) -> Floats:
        """Go on while the goal is far."""
        return after_goal(reading, self.T, self.b1, self.R1)


@measure(
    category="user model",
    cite=_CITE,
    use="Users leave when the results give less for their effort than they are used to.",
    misleads=f"{_MISLEADS} one bad document at rank 1 drives every user away.",
    aliases={"IFT-C2": {}, "IFTRateCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C2-A=0.2-b2=0.9-R2=10"},
)
class IFT2(UserModel):
    r"""Information foraging, rate: the user stops where the gain for each unit of cost falls below A.

    .. math:: C(i) = C_2(i) = \frac{1}{1 + b_2\, e^{(A - \sum_{j \le i} g_j / \sum_{j \le i} c_j) R_2}}

    Examples
    --------
    Just at the rate after the first of two documents, C(1) = 1/(1+b2), here 1/2:

    >>> round(IFT2(A=1, b2=1, max=1, depth=2).of_list([1, 0]), 6)
    0.666667
    """

    A: float = param(RATE)
    b2: float = param(B2)
    R2: float = param(R2)

    def continuation(self, reading: Reading) -> Floats:
        """Go on while the rate is high."""
        return above_rate(reading, self.A, self.b2, self.R2)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at their goal, or leave when the results give too little: the full foraging model.",
    misleads=f"{_MISLEADS} two rankings may change places when one parameter moves.",
    aliases={"IFT-C1-C2": {}, "IFTGoalRateCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C1-C2-T=2-b1=0.9-R1=10-A=0.2-b2=0.9-R2=10"},
)
class IFT12(UserModel):
    r"""Information foraging, goal and rate: the user must want more, and be getting enough.

    .. math:: C(i) = C_1(i) \cdot C_2(i)

    C1 is that of `IFT1`, C2 that of `IFT2`.

    Examples
    --------
    Just at the goal and at the rate after the first of two documents, C(1) = 1/2 times 1/2:

    >>> IFT12(T=1, b1=1, A=1, b2=1, max=1, depth=2).of_list([1, 0])
    0.8
    """

    T: float = param(GOAL)
    b1: float = param(B1)
    R1: float = param(R1)
    A: float = param(RATE)
    b2: float = param(B2)
    R2: float = param(R2)

    def continuation(self, reading: Reading) -> Floats:
        """Go on while the goal is far and the rate is high."""
        wanting = after_goal(reading, self.T, self.b1, self.R1, "C1")
        getting = above_rate(reading, self.A, self.b2, self.R2, "C2")
        return reading.note("C", wanting * getting, "C1 * C2", C1=wanting, C2=getting)
