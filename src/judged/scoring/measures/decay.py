"""Users who lose patience with what they have spent: cwl_eval's forms of time-biased gain and U-measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import FIXED, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.parameters import Parameter, real, spell
from judged.scoring.measures.registry import measure
from judged.scoring.measures.trap import falling_to

if TYPE_CHECKING:
    from judged._types import Floats

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
