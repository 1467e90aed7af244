"""INST and INSQ: users who know how much they want to find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.scoring.measures.base import param
from judged.scoring.measures.cwl import EXPECTED, FIXED, UserModel
from judged.scoring.measures.cwl_reading import Reading
from judged.scoring.measures.parameters import Parameter, real, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats

WANTED = Parameter("How much gain the user hopes for: about so many documents of the highest grade.", 1.0, real(0))
_LEAST_WANTED = 0.5  # below it x = i + 2T - gained can be less than 1, where more gain would make the user more patient


def patience(remaining: Floats) -> Floats:
    """Give the probability of reading on where it grows with a number from 1: ((x - 1) / x)^2."""
    return ((remaining - 1.0) / remaining) ** 2


PATIENCE = "((x - 1) / x)^2"
"""The same as a formula."""


@measure(
    category="user model",
    cite="Moffat, Bailey, Scholer and Thomas 2015; cwl_eval",
    use="Users come with a goal of T useful documents, and stop sooner when they get them.",
    misleads="T is the user's goal, not a cutoff: it must come from knowledge of the task, and it changes the"
    " order of systems.",
    aliases={"INSTCWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "INST(T=1.0,max_rel=3)", "cwl_eval": "INST-T=1"},
)
class INST(UserModel):
    r"""INST: the expected gain for each document read, of a user who wants T and adapts to what was found.

    .. math:: C(i) = \left(\frac{i + T + T_i - 1}{i + T + T_i}\right)^2, \qquad T_i = T - \sum_{j \le i} g_j

    The gain g of a document is its grade on the scale from ``min`` to ``max``, from 0 to 1; unjudged documents
    gain nothing. The more of T is found, the sooner the user stops. The ranking is filled up to ``depth``
    places, so short rankings are read beyond their end.

    Examples
    --------
    After a first document that gains all (T = 1, two places): C(1) = 1/4, so W = 4/5 and 1/5.

    >>> INST(max=1, depth=2).of_list([1, 0])
    0.8
    >>> INST(max=1, depth=2, of="ED").of_list([1, 0])
    1.25
    """

    T: float = param(
        Parameter(WANTED.meaning, 1.0, real(_LEAST_WANTED)),
    )

    def continuation(self, reading: Reading) -> Floats:
        """Patience with what is still missing from the goal."""
        x = reading.rank + 2.0 * self.T - reading.gained
        reading.note("x", x, f"rank + 2 * {spell(self.T)} - gained", gained=reading.gained)
        return reading.note("C", patience(x), PATIENCE, x=x)


@measure(
    category="user model",
    cite="Moffat, Scholer and Thomas 2012; cwl_eval",
    use="A discount with a goal of T useful documents that does not look at what was found.",
    misleads="Its weights fall slowly: much of the number depends on ranks that nobody judged. Look at its residual.",
    aliases={"INSQCWLMetric": {}},
    properties=FIXED,
    tools={"ir_measures": "INSQ(T=1.0,max_rel=3)", "cwl_eval": "INSQ-T=1"},
)
class INSQ(UserModel):
    r"""INSQ: the gains of a ranking under weights that fall with the square of the rank.

    .. math:: C(i) = \left(\frac{i + 2T - 1}{i + 2T}\right)^2, \qquad W(i) \propto \frac{1}{(i + 2T - 1)^2}

    Examples
    --------
    T = 1, two places: the weights are as 1/4 to 1/9.

    >>> round(INSQ(max=1, depth=2).of_list([1, 0]), 6)  # 9/13
    0.692308
    """

    T: float = param(WANTED)

    def continuation(self, reading: Reading) -> Floats:
        """Patience that grows with the rank."""
        x = (reading.rank + 2.0 * self.T)[None, :]
        return reading.note("C", patience(x), PATIENCE, x=reading.note("x", x, f"rank + 2 * {spell(self.T)}"))
