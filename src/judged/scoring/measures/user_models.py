"""The Bejeweled player model: users who stop when they have enough, or have spent enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import ADAPTIVE, FIXED, Reading, UserModel, is_below
from judged.scoring.measures.parameters import Parameter, real, spell, whole
from judged.scoring.measures.rbp import falling_to
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats


_BPM_CITE = "Zhang, Liu, Li, Zhang, Xu and Ma 2017; cwl_eval"
ENOUGH = Parameter("The gain at which the user has enough: so many documents of the highest grade.", 1.0, real(0))
BUDGET = Parameter(
    "The cost at which the user gives up: the number of documents, where each costs 1.", None, whole(1), required=True
)
BENEFIT_STEP = Parameter(
    "How much a good document raises, and a bad one lowers, the gain that the user wants.", 1.0, real(0)
)
COST_STEP = Parameter(
    "How much a good document raises, and a bad one lowers, the cost that the user bears.", 1.0, real(0)
)
MEDIUM = Parameter("The gain of a document that is neither good nor bad.", 0.5, real(0, 1))


@measure(
    category="user model",
    cite=_BPM_CITE,
    use="Users want a certain amount and bear a certain cost, and stop at whichever comes first.",
    misleads="It is a step: a hair more gain, or one place more, and the user stops elsewhere.",
    aliases={"BPM-Static": {}, "BPMCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"ir_measures": "BPM(T=1.0,max_rel=3)@10", "cwl_eval": "BPM-Static-T=1-K=10"},
)
class BPM(UserModel):
    r"""Bejeweled player model, static: the gain for each document read until T is gained or k is spent.

    .. math:: C(i) = 1 \quad \text{while} \quad \sum_{j \le i} g_j < T \ \text{and}\ \sum_{j \le i} c_j < k

    With ``costs=given``, k is a budget of costs, not of documents. A sum within 1e-9 of its limit has reached it
    (relative to limits above 1): 2/3 + 1 + 1/3 fulfills T = 2, though the doubles add up to less. cwl_eval 1.0.12
    compares the doubles, and so reads on.

    Examples
    --------
    The user stops at the second document, which fulfils T = 1:

    >>> BPM(max=2, cutoff=10).of_list([0, 2, 2])
    0.5
    >>> BPM(max=2, cutoff=10, T=5).of_list([0, 2, 2])  # never fulfilled: ten places are read
    0.2
    >>> round(BPM(max=3, cutoff=10, T=2).of_list([2, 3, 1, 0, 0]), 4)  # 2 after three documents
    0.6667
    """

    cutoff: int = param(BUDGET)
    T: float = param(ENOUGH)

    def continuation(self, reading: Reading) -> Floats:
        """Neither enough gained nor enough spent."""
        going_on = is_below(reading.gained, self.T) * is_below(reading.spent, self.cutoff)
        how = f"1 while gained < {spell(self.T)} and {reading.spent_word} < {self.cutoff}, then 0"
        return reading.note("C", going_on, how, gained=reading.gained, spent=reading.spent)


@measure(
    category="user model",
    cite=_BPM_CITE,
    use="Like BPM, for users who want more, and bear more, when results are good.",
    misleads="Five parameters of the user, and each changes the number; a good document early can lower it.",
    aliases={"BPM-Dynamic": {"hc": 0}, "BPMDCWLMetric": {"hc": 0}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "BPM-Dynamic-T=1-K=10-hb=1-hc=1 (here BPMD(hc=0)@10)"},
)
class BPMD(UserModel):
    r"""Bejeweled player model, dynamic: what the user wants and what the user will bear change with each document.

    .. math:: C(i) = 1 \quad \text{while} \quad \sum_{j \le i} g_j < T + h_b \sum_{j < i} (g_j - m)
        \ \text{and}\ \sum_{j \le i} c_j < k + h_c \sum_{j < i} (g_j - m)

    A document that gains more than m makes the user want more, and bear more; one that gains less, less. Sums within
    1e-9 of their limit have reached it, as in `BPM`. cwl_eval 1.0.12 compares the doubles, and never moves the budget,
    whatever its hc: that is ``hc=0`` here.

    Examples
    --------
    The first document gains nothing, so that half as much is wanted (T = 1/2) and the second is enough:

    >>> BPMD(max=4, cutoff=10).of_list([0, 2, 4])
    0.25

    The budget shrinks with every bad document, 4, 3.5, 3, and ends the reading at the third:

    >>> BPMD(max=4, cutoff=4, T=9, of="ED").of_list([0, 0, 0, 0])
    3.0
    >>> BPMD(max=4, cutoff=4, T=9, hc=0, of="ED").of_list([0, 0, 0, 0])
    4.0
    """

    cutoff: int = param(BUDGET)
    T: float = param(ENOUGH)
    hb: float = param(BENEFIT_STEP)
    hc: float = param(COST_STEP)
    medium: float = param(MEDIUM)

    def continuation(self, reading: Reading) -> Floats:
        """Neither what is wanted gained nor what is borne spent; reading ends for good where one is."""
        wanted = self._moved(reading.gain, self.T, self.hb)
        borne = self._moved(reading.gain, self.cutoff, self.hc)
        reading.note("wanted", wanted, self._move_in_words(self.T, self.hb), gain=reading.gain)
        reading.note("borne", borne, self._move_in_words(self.cutoff, self.hc), gain=reading.gain)
        going_on = is_below(reading.gained, wanted) * is_below(reading.spent, borne)
        how = f"1 while gained < wanted and {reading.spent_word} < borne, then 0"
        parts = {"gained": reading.gained, "wanted": wanted, "spent": reading.spent, "borne": borne}
        return reading.note("C", going_on, how, **parts)

    def _move_in_words(self, start: float, step: float) -> str:
        moved = f", and {spell(step)} * (gain - {spell(self.medium)}) more for each rank above" if step else " always"
        return spell(start) + moved

    def _moved(self, gain: Floats, start: float, step: float) -> Floats:
        """Give what a limit has become when each document is read."""
        moves = step * (gain - self.medium)
        moves = np.concatenate((np.full((len(gain), 1), float(start)), moves[:, :-1]), axis=1)
        return np.cumsum(moves, axis=1)


HALFLIFE = Parameter("The time after which half of the users have stopped.", 224.0, real(1e-6), values="number above 0")
PATIENCE = Parameter(
    "How much a user reads at most, in the unit of the costs.", 1000.0, real(1e-6), values="number above 0"
)


@measure(
    category="user model",
    cite="Smucker and Clarke 2012, in the form of cwl_eval",
    use="To compare the users of time-biased gain with other user models: give each document its time as cost.",
    misleads="It is not TBG: the weights are scaled to add up to 1, and every gain counts in full. Without costs=given"
    " it is RBP with p = 2^(-1/h).",
    aliases={"TBGCWLMetric": {}},
    properties=FIXED,
    tools={"cwl_eval": "TBG-H@224"},
)
class CwlTBG(UserModel):
    r"""Half of the users stop in every h units of cost: the weights of time-biased gain, scaled to add up to 1.

    .. math:: C(i) = 2^{-c_i / h}, \qquad W(i) \propto 2^{-\frac{1}{h} \sum_{j < i} c_j}

    ``of=ETU`` is the sum of the gains under that decay, which is `TBG` if the costs are its times and each
    relevant document gains 1.

    Examples
    --------
    The first document takes one half-life: weights as 1 to 1/2.

    >>> round(CwlTBG(max=1, halflife=30, costs="given", depth=2).of_list([1, 0], facts={"cost": [30, 5]}), 6)
    0.666667
    """

    halflife: float = param(HALFLIFE)

    def continuation(self, reading: Reading) -> Floats:
        """What is left after the document's cost; nobody reads on after the last."""
        left = np.exp2(-reading.cost / self.halflife)
        left[:, -1] = 0.0
        cost = "1" if reading.spent_word == "rank" else "cost"
        return reading.note("C", left, f"2^(-{cost} / {spell(self.halflife)}), 0 at the last rank", cost=reading.cost)


@measure(
    category="user model",
    cite="Sakai and Dou 2013, in the form of cwl_eval",
    use="To compare the readers of U-measure with other user models: give each document its length as cost.",
    misleads="It is not U-measure: the weight is that of the place where a document begins, not where it ends, and"
    " weights are scaled to add up to 1.",
    aliases={"UMeasureCWLMetric": {}},
    properties=FIXED,
    tools={"cwl_eval": "U-L@1000"},
)
class CwlU(UserModel):
    r"""Users are spread evenly over how much they read, up to L: the weights of U-measure, scaled to add up to 1.

    .. math:: W(i) \propto \max\left(0,\; 1 - \frac{1}{L} \sum_{j < i} c_j\right)

    Examples
    --------
    The first document takes a quarter of L = 40 from the second: weights as 1 to 3/4, and none for the last place.

    >>> round(CwlU(max=1, L=40, costs="given", depth=3).of_list([1, 0, 0], facts={"cost": [10, 5, 5]}), 6)
    0.571429
    """

    L: float = param(PATIENCE)

    def continuation(self, reading: Reading) -> Floats:
        """The next weight, divided by this one; the last place has none."""
        weights = np.ones_like(reading.spent)
        weights[:, 1:] = np.maximum(0.0, 1.0 - reading.spent[:, :-1] / self.L)
        weights[:, -1] = 0.0
        above = "(rank - 1)" if reading.spent_word == "rank" else "spent of the rank above"
        how = f"max(0, 1 - {above} / {spell(self.L)}), 0 at the last rank"
        reading.note("weight", weights, how, spent=reading.spent)
        return reading.note("C", falling_to(weights), "weight of the next rank / weight", weight=weights)


_IFT_CITE = "Azzopardi, Thomas and Craswell 2018; cwl_eval"
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
    cite=_IFT_CITE,
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
    cite=_IFT_CITE,
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
    cite=_IFT_CITE,
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
