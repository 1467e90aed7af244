"""C/W/L user models with limits: the Bejeweled player model, information foraging, and users with a budget of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import ADAPTIVE, FIXED, RankMatrices, UserModel, is_below
from judged.scoring.measures.parameters import Parameter, format_value, integer, real
from judged.scoring.measures.rbp import weights_to_continuation
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats


_BPM_CITE = "Zhang, Liu, Li, Zhang, Xu and Ma 2017; cwl_eval"
TARGET_GAIN = Parameter(
    "The total gain at which the user stops, measured in documents of the highest grade.", 1.0, real(0)
)
BUDGET = Parameter(
    "The cost at which the user stops: the number of documents, if each document costs 1.",
    None,
    integer(1),
    required=True,
)
BENEFIT_STEP = Parameter(
    "The amount by which a good document raises, or a bad document lowers, the gain at which the user stops.",
    1.0,
    real(0),
)
COST_STEP = Parameter(
    "The amount by which a good document raises, or a bad document lowers, the cost at which the user stops.",
    1.0,
    real(0),
)
MEDIUM = Parameter("The gain of a document that is neither good nor bad.", 0.5, real(0, 1))


@measure(
    category="user model",
    cite=_BPM_CITE,
    use="Users want a certain gain and accept a certain cost, and stop when they reach this gain or this cost.",
    misleads="The probability of reading on is a step function: a small change of the gain can change the rank at"
    " which the user stops.",
    aliases={"BPM-Static": {}, "BPMCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"ir_measures": "BPM(T=1.0,max_rel=3)@10", "cwl_eval": "BPM-Static-T=1-K=10"},
)
class BPM(UserModel):
    r"""Bejeweled player model, static: the gain per document of a user who stops at a total gain T or a total cost k.

    .. math:: C(i) = 1 \quad \text{while} \quad \sum_{j \le i} g_j < T \ \text{and}\ \sum_{j \le i} c_j < k

    With ``costs=column``, k is a budget of costs, not of documents. A sum within 1e-9 of its limit has reached it
    (relative to limits above 1): 2/3 + 1 + 1/3 fulfills T = 2, although the sum of the doubles is smaller. cwl_eval
    1.0.12 compares the doubles without tolerance.

    Examples
    --------
    The user stops at the second document, which fulfills T = 1:

    >>> BPM(max=2, cutoff=10).of_list([0, 2, 2])
    0.5
    >>> BPM(max=2, cutoff=10, T=5).of_list([0, 2, 2])  # never fulfilled: ten places are read
    0.2
    >>> round(BPM(max=3, cutoff=10, T=2).of_list([2, 3, 1, 0, 0]), 4)  # 2 after three documents
    0.6667
    """

    cutoff: int = param(BUDGET)
    T: float = param(TARGET_GAIN)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: 1 while both the gain and the cost are below their limits, then 0."""
        continuation = is_below(matrices.gained, self.T) * is_below(matrices.spent, self.cutoff)
        how = f"1 while gained < {format_value(self.T)} and {matrices.spent_word} < {self.cutoff}, then 0"
        return matrices.note("C", continuation, how, gained=matrices.gained, spent=matrices.spent)


@measure(
    category="user model",
    cite=_BPM_CITE,
    use="Use this measure instead of BPM if users want more gain, and accept more cost, when results are good.",
    misleads="The measure has five parameters, each of which changes the score, and a good document near the top can"
    " lower the score.",
    aliases={"BPM-Dynamic": {"hc": 0}, "BPMDCWLMetric": {"hc": 0}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "BPM-Dynamic-T=1-K=10-hb=1-hc=1 (here BPMD(hc=0)@10)"},
)
class BPMD(UserModel):
    r"""Bejeweled player model, dynamic: the gain and the cost at which the user stops change with each document.

    .. math:: C(i) = 1 \quad \text{while} \quad \sum_{j \le i} g_j < T + h_b \sum_{j < i} (g_j - m)
        \ \text{and}\ \sum_{j \le i} c_j < k + h_c \sum_{j < i} (g_j - m)

    A document with a gain above m raises both limits, and a document with a gain below m lowers them. A sum within
    1e-9 of its limit has reached it, as in `BPM`. cwl_eval 1.0.12 compares the doubles without tolerance, and
    never changes the budget, for any hc. This corresponds to ``hc=0`` here.

    Examples
    --------
    The first document has no gain, so T becomes 1/2, and the second document is enough:

    >>> BPMD(max=4, cutoff=10).of_list([0, 2, 4])
    0.25

    The budget decreases with every bad document, to 4, 3.5, and 3, and the user stops at the third:

    >>> BPMD(max=4, cutoff=4, T=9, of="ED").of_list([0, 0, 0, 0])
    3.0
    >>> BPMD(max=4, cutoff=4, T=9, hc=0, of="ED").of_list([0, 0, 0, 0])
    4.0
    """

    cutoff: int = param(BUDGET)
    T: float = param(TARGET_GAIN)
    hb: float = param(BENEFIT_STEP)
    hc: float = param(COST_STEP)
    medium: float = param(MEDIUM)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: 1 while the gain and the cost are below limits that change with each document, then 0."""
        gain_limit = self._moving_limit(matrices.gain, self.T, self.hb)
        cost_limit = self._moving_limit(matrices.gain, self.cutoff, self.hc)
        matrices.note("gain_limit", gain_limit, self._limit_formula(self.T, self.hb), gain=matrices.gain)
        matrices.note("cost_limit", cost_limit, self._limit_formula(self.cutoff, self.hc), gain=matrices.gain)
        continuation = is_below(matrices.gained, gain_limit) * is_below(matrices.spent, cost_limit)
        how = f"1 while gained < gain_limit and {matrices.spent_word} < cost_limit, then 0"
        parts = {"gained": matrices.gained, "gain_limit": gain_limit, "spent": matrices.spent, "cost_limit": cost_limit}
        return matrices.note("C", continuation, how, **parts)

    def _limit_formula(self, start: float, step: float) -> str:
        change = (
            f", and {format_value(step)} * (gain - {format_value(self.medium)}) more for each rank above"
            if step
            else " always"
        )
        return format_value(start) + change

    def _moving_limit(self, gain: Floats, start: float, step: float) -> Floats:
        """Return the limit when each document is read, which depends on the gains above: (B, n)."""
        changes = step * (gain - self.medium)
        changes = np.concatenate((np.full((len(gain), 1), float(start)), changes[:, :-1]), axis=1)
        return np.cumsum(changes, axis=1)


HALFLIFE = Parameter("The cost after which half of the users have stopped.", 224.0, real(1e-6), values="number above 0")
MAX_READ = Parameter(
    "The cost at which the last user stops, in the same unit as the costs of documents.",
    1000.0,
    real(1e-6),
    values="number above 0",
)


@measure(
    category="user model",
    cite="Smucker and Clarke 2012, in the form of cwl_eval",
    use="You want to compare the user model of time-biased gain with other user models. Use the reading time of a"
    " document as its cost.",
    misleads="CwlTBG differs from TBG: the weights are normalized to sum to 1, and gains are not multiplied by"
    " probabilities of clicking and saving. Without costs=column, CwlTBG is RBP with p = 2^(-1/h).",
    aliases={"TBGCWLMetric": {}},
    properties=FIXED,
    tools={"cwl_eval": "TBG-H@224"},
)
class CwlTBG(UserModel):
    r"""Time-biased gain as a C/W/L user model: half of the remaining users stop in every h units of cost.

    .. math:: C(i) = 2^{-c_i / h}, \qquad W(i) \propto 2^{-\frac{1}{h} \sum_{j < i} c_j}

    ``of=ETU`` is the sum of the gains with this decay. It equals `TBG` if the costs are the times of that measure and
    each relevant document has a gain of 1.

    Examples
    --------
    The first document takes one half-life. The weights are proportional to 1 and 1/2.

    >>> round(CwlTBG(max=1, halflife=30, costs="column", depth=2).of_list([1, 0], facts={"cost": [30, 5]}), 6)
    0.666667
    """

    halflife: float = param(HALFLIFE)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: 2^(-cost / halflife), and 0 at the last rank."""
        continuation = np.exp2(-matrices.cost / self.halflife)
        continuation[:, -1] = 0.0
        cost = "1" if matrices.spent_word == "rank" else "cost"
        how = f"2^(-{cost} / {format_value(self.halflife)}), 0 at the last rank"
        return matrices.note("C", continuation, how, cost=matrices.cost)


@measure(
    category="user model",
    cite="Sakai and Dou 2013, in the form of cwl_eval",
    use="You want to compare the user model of U-measure with other user models. Use the length of a document as its"
    " cost.",
    misleads="CwlU differs from U-measure: the weight of a document depends on the position where it starts, not"
    " where it ends, and the weights are normalized to sum to 1.",
    aliases={"UMeasureCWLMetric": {}},
    properties=FIXED,
    tools={"cwl_eval": "U-L@1000"},
)
class CwlU(UserModel):
    r"""U-measure as a C/W/L user model: the cost at which users stop is uniformly distributed up to L.

    .. math:: W(i) \propto \max\left(0,\; 1 - \frac{1}{L} \sum_{j < i} c_j\right)

    Examples
    --------
    The first document costs 10 of L = 40. The weights are proportional to 1 and 3/4, and 0 at the last rank.

    >>> round(CwlU(max=1, L=40, costs="column", depth=3).of_list([1, 0, 0], facts={"cost": [10, 5, 5]}), 6)
    0.571429
    """

    L: float = param(MAX_READ)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: the next weight, divided by the weight of the rank."""
        weights = np.ones_like(matrices.spent)
        weights[:, 1:] = np.maximum(0.0, 1.0 - matrices.spent[:, :-1] / self.L)
        weights[:, -1] = 0.0
        above = "(rank - 1)" if matrices.spent_word == "rank" else "spent at the previous rank"
        how = f"max(0, 1 - {above} / {format_value(self.L)}), 0 at the last rank"
        matrices.note("weight", weights, how, spent=matrices.spent)
        return matrices.note("C", weights_to_continuation(weights), "weight of the next rank / weight", weight=weights)


_IFT_CITE = "Azzopardi, Thomas and Craswell 2018; cwl_eval"
_MISLEADS = (
    "The parameters describe a population of users. Without a fit to your users, the parameter values are a guess, and"
)
_MAX_EXPONENT = 700.0  # e^710 is too large for a double

GOAL = Parameter("The total gain that the user wants.", None, real(0), required=True)
RATE = Parameter("The gain per unit of cost that the user expects.", None, real(0), required=True)
B1 = Parameter("The probability of reading on is b1/(1+b1) if the gain equals the goal, or if R1 is 0.", 0.9, real(0))
B2 = Parameter(
    "The probability of reading on is 1/(1+b2) if the rate of gain equals the expected rate, or if R2 is 0.",
    0.9,
    real(0),
)
R1 = Parameter(
    "The steepness with which the probability of reading on decreases as the gain passes the goal.", 10.0, real(0)
)
R2 = Parameter(
    "The steepness with which the probability of reading on decreases as the rate of gain falls below the"
    " expected rate.",
    10.0,
    real(0),
)


def goal_continuation(matrices: RankMatrices, goal: float, b: float, steepness: float, name: str = "C") -> Floats:
    """Return a probability of reading on that decreases as the gain approaches the goal."""
    continuation = 1.0 - _logistic(goal - matrices.gained, b, steepness)
    how = f"1 - 1 / (1 + {format_value(b)} * exp(({format_value(goal)} - gained) * {format_value(steepness)}))"
    return matrices.note(name, continuation, how, gained=matrices.gained)


def rate_continuation(matrices: RankMatrices, expected: float, b: float, steepness: float, name: str = "C") -> Floats:
    """Return a probability of reading on that is low below the expected rate of gain."""
    rate = matrices.gained / matrices.spent
    matrices.note("rate", rate, f"gained / {matrices.spent_word}", gained=matrices.gained, spent=matrices.spent)
    how = f"1 / (1 + {format_value(b)} * exp(({format_value(expected)} - rate) * {format_value(steepness)}))"
    return matrices.note(name, _logistic(expected - rate, b, steepness), how, rate=rate)


def _logistic(shortfall: Floats, b: float, steepness: float) -> Floats:
    # A larger exponent would overflow. At the limit the result is practically 0, unless b is 0.
    return 1.0 / (1.0 + b * np.exp(np.minimum(shortfall * steepness, _MAX_EXPONENT)))


@measure(
    category="user model",
    cite=_IFT_CITE,
    use="Users stop when their total gain is about as large as their goal.",
    misleads=f"{_MISLEADS} the order of systems depends on T.",
    aliases={"IFT-C1": {}, "IFTGoalCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C1-T=2-b1=0.9-R1=10"},
)
class IFT1(UserModel):
    r"""Information foraging, goal: the user stops around a total gain of T.

    .. math:: C(i) = C_1(i) = 1 - \frac{1}{1 + b_1\, e^{(T - \sum_{j \le i} g_j) R_1}}

    Examples
    --------
    At the goal after the first of two documents, C(1) = b1/(1+b1), which is 1/2 here:

    >>> round(IFT1(T=1, b1=1, max=1, depth=2).of_list([1, 0]), 6)
    0.666667
    """

    T: float = param(GOAL)
    b1: float = param(B1)
    R1: float = param(R1)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, which decreases as the gain approaches the goal."""
        return goal_continuation(matrices, self.T, self.b1, self.R1)


@measure(
    category="user model",
    cite=_IFT_CITE,
    use="Users leave if the results yield less gain per cost than they expect.",
    misleads=f"{_MISLEADS} one bad document at rank 1 makes every user leave.",
    aliases={"IFT-C2": {}, "IFTRateCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C2-A=0.2-b2=0.9-R2=10"},
)
class IFT2(UserModel):
    r"""Information foraging, rate: the user stops if the gain per unit of cost falls below A.

    .. math:: C(i) = C_2(i) = \frac{1}{1 + b_2\, e^{(A - \sum_{j \le i} g_j / \sum_{j \le i} c_j) R_2}}

    Examples
    --------
    At the expected rate after the first of two documents, C(1) = 1/(1+b2), which is 1/2 here:

    >>> round(IFT2(A=1, b2=1, max=1, depth=2).of_list([1, 0]), 6)
    0.666667
    """

    A: float = param(RATE)
    b2: float = param(B2)
    R2: float = param(R2)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, which is low below the expected rate."""
        return rate_continuation(matrices, self.A, self.b2, self.R2)


@measure(
    category="user model",
    cite=_IFT_CITE,
    use="Users stop at their goal, or leave if the rate of gain is too low: the full foraging model.",
    misleads=f"{_MISLEADS} the order of two rankings can change with any parameter.",
    aliases={"IFT-C1-C2": {}, "IFTGoalRateCWLMetric": {}},
    properties=ADAPTIVE,
    tools={"cwl_eval": "IFT-C1-C2-T=2-b1=0.9-R1=10-A=0.2-b2=0.9-R2=10"},
)
class IFT12(UserModel):
    r"""Information foraging, goal and rate: the user reads on if the goal is not reached and the rate is high enough.

    .. math:: C(i) = C_1(i) \cdot C_2(i)

    C1 is the factor of `IFT1`, and C2 is the factor of `IFT2`.

    Examples
    --------
    At the goal and at the expected rate after the first of two documents, C(1) = 1/2 * 1/2:

    >>> IFT12(T=1, b1=1, A=1, b2=1, max=1, depth=2).of_list([1, 0])
    0.8
    """

    T: float = param(GOAL)
    b1: float = param(B1)
    R1: float = param(R1)
    A: float = param(RATE)
    b2: float = param(B2)
    R2: float = param(R2)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, the product of C1 of `IFT1` and C2 of `IFT2`."""
        c1 = goal_continuation(matrices, self.T, self.b1, self.R1, "C1")
        c2 = rate_continuation(matrices, self.A, self.b2, self.R2, "C2")
        return matrices.note("C", c1 * c2, "C1 * C2", C1=c1, C2=c2)
