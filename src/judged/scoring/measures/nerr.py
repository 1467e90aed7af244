"""NERR: four user models near expected reciprocal rank, which itself is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import EXPECTED, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.inst import PATIENCE, WANTED, patience
from judged.scoring.measures.parameters import NEEDED_CUTOFF, Parameter, real, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats

_CITE = "Azzopardi, Mackenzie and Moffat 2021; cwl_eval"
_MISLEADS = "It is not ERR: the grade itself, not 2^grade, is the chance to be satisfied, and gain is taken for each"
PERSISTENCE = Parameter("The probability that a user who is not satisfied reads on.", 0.9, real(0, 1))


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and at rank k.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ8": {}, "NERReq8CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR8(max_rel=3)@10", "cwl_eval": "NERR-EQ8@k=10"},
)
class NERR8(UserModel):
    r"""NERR of equation 8: the user reads on as far as rank k until a document satisfies.

    .. math:: C(i) = 1 - g_i \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    The second of three satisfies half of the users: weights as 1 to 1 to 1/2.

    >>> NERR8(max=2, cutoff=3).of_list([0, 1, 0])  # 0.5 / 2.5
    0.2
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and not at rank k."""
        going_on = (1.0 - reading.gain) * (reading.rank < self.cutoff)
        return reading.note("C", going_on, f"1 - gain, 0 at rank {self.cutoff}", gain=reading.gain)

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, at rank k, and ever more likely on the way.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ9": {}, "NERReq9CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR9(max_rel=3)@10", "cwl_eval": "NERR-EQ9@k=10"},
)
class NERR9(UserModel):
    r"""NERR of equation 9: as equation 8, with the discount of ERR, which is 1/i at rank i.

    .. math:: C(i) = \frac{i}{i + 1} (1 - g_i) \quad (i < k), \qquad C(i) = 0 \quad (i \ge k)

    Examples
    --------
    Weights as 1 to 1/2 to 1/6:

    >>> round(NERR9(max=2, cutoff=3).of_list([0, 1, 0]), 6)  # 0.25 / (10/6)
    0.15
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, not tired, and not at rank k."""
        discount = reading.rank / (reading.rank + 1.0)
        going_on = discount * (1.0 - reading.gain) * (reading.rank < self.cutoff)
        how = f"rank / (rank + 1) * (1 - gain), 0 at rank {self.cutoff}"
        return reading.note("C", going_on, how, gain=reading.gain)

    def columns(self) -> int:
        """Nobody reads below rank k."""
        return min(self.depth, self.cutoff)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise go on with persistence p, as in RBP.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ10": {}, "NERReq10CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR10(p=0.9,max_rel=3)", "cwl_eval": "NERR-EQ10@phi=0.9"},
)
class NERR10(UserModel):
    r"""NERR of equation 10: the user of RBP, who also stops when a document satisfies.

    .. math:: C(i) = p\,(1 - g_i)

    Examples
    --------
    Weights as 1 to 1/2 to 1/8:

    >>> round(NERR10(max=2, p=0.5, depth=3).of_list([0, 1, 0]), 6)  # 0.25 / 1.625
    0.153846
    """

    p: float = param(PERSISTENCE)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and persistent."""
        return reading.note("C", self.p * (1.0 - reading.gain), f"{spell(self.p)} * (1 - gain)", gain=reading.gain)


@measure(
    category="user model",
    cite=_CITE,
    use="Users stop at a document that satisfies them, and otherwise go on with the patience of INSQ.",
    misleads=f"{_MISLEADS} document read.",
    aliases={"NERR-EQ11": {}, "NERReq11CWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "NERR11(T=1.0,max_rel=3)", "cwl_eval": "NERR-EQ11@T=1"},
)
class NERR11(UserModel):
    r"""NERR of equation 11: the user of INSQ, who also stops when a document satisfies.

    .. math:: C(i) = \left(\frac{i + 2T - 1}{i + 2T}\right)^2 (1 - g_i)

    Examples
    --------
    T = 1, weights as 1 to 4/9 to 1/8:

    >>> round(NERR11(max=2, depth=3).of_list([0, 1, 0]), 6)  # (2/9) / (113/72)
    0.141593
    """

    T: float = param(WANTED)

    def continuation(self, reading: Reading) -> Floats:
        """Not satisfied, and patient."""
        x = reading.rank + 2.0 * self.T
        reading.note("x", x, f"rank + 2 * {spell(self.T)}")
        going_on = patience(x) * (1.0 - reading.gain)
        return reading.note("C", going_on, f"{PATIENCE} * (1 - gain)", x=x, gain=reading.gain)
