"""The Bejeweled player model: users who stop when they have enough, or have spent enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import ADAPTIVE, UserModel
from judged.scoring.measures.cwl_reading import Reading, is_below
from judged.scoring.measures.parameters import Parameter, real, spell, whole
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats

_CITE = "Zhang, Liu, Li, Zhang, Xu and Ma 2017; cwl_eval"
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
    cite=_CITE,
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
    cite=_CITE,
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
