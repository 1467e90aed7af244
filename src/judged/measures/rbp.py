"""Rank-biased precision, and how much of it the judgments leave open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.errors import MeasureError
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.gain import GAIN, gains
from judged.measures.parameters import CUTOFF, JUDGED_ONLY, REL, UNDEFINED, Parameter, real, spell

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.judging import Judged
    from judged.measures.gain import Gain

_CELLS = 1 << 17
"""Ranks that are looked at together: a megabyte, which stays in a processor's cache."""


def _worth(given: Any) -> Gain:
    if isinstance(given, str) and given in {"binary", "graded"}:
        return given
    try:
        return GAIN.accept([] if isinstance(given, str) else given)
    except ValueError:
        raise ValueError("binary, graded, or a table of finite gains such as {1:1,2:3}") from None


def _highest(given: Any) -> float | str:
    if given == "topic":
        return given
    try:
        return real(5e-324)(given)
    except ValueError:
        raise ValueError("a number above 0, or topic") from None


P = Parameter(
    "The probability that a user who has seen a document goes on to the next.",
    None,
    real(0, 1),
    required=True,
    values="number from 0 to 1, such as 0.8",
)
WORTH = Parameter(
    "What a document is worth: binary is 1 if it is relevant; graded is its grade, and a table gives the gain of each"
    " grade, as a share of the highest.",
    "binary",
    _worth,
    values="binary, graded, or a table such as {1:1,2:3,3:10}",
)
HIGHEST = Parameter(
    "What graded gains are divided by, so that the best document is worth 1: the highest of the scale; topic takes the"
    " highest of each topic's qrels, or 1 if that is more.",
    None,
    _highest,
    values="number above 0, or topic",
)


def _chances(p: float, ranks: int) -> Floats:
    """Give the probability that a user comes to each rank, and behind the last, multiplied up as C does."""
    return np.multiply.accumulate(np.append(1.0, np.full(ranks, p)), dtype=np.float64)


@measure(
    family="user model",
    cite="Moffat and Zobel 2008",
    use="A user who may leave after every document. What the judgments leave open is known: see RBPResidual.",
    misleads="Tools differ in the persistence that they take without being told: .8, .85, .9; so it must be given here."
    " Graded gains are scaled in four ways.",
    properties=Properties(),
    tools={
        "trec_eval": "rbp (gain=graded, its scale of gains undefined; p is 0.9)",
        "ir_measures": "RBP(rel=1) (p is 0.8)",
        "ranx": "rbp.95",
        "cwl_eval": "RBP@0.9",
    },
)
class RBP(Measure):
    r"""Rank-biased precision: what a user of persistence p gains per document looked at.

    .. math:: \mathrm{RBP} = (1 - p) \sum_r g_r\, p^{r-1}

    ``gain=graded`` needs ``max``, the highest grade of the scale. trec_eval 10 means to divide by the highest grade
    of each topic, which is ``max=topic``; as it compares with a number that was never set, its own digits can differ.

    Examples
    --------
    >>> RBP(p=0.5).of_list([1, 0, 1])
    0.625
    >>> RBP(p=0.5, gain="graded", max=2).of_list([1, 0, 2])  # 1/2 at rank 1, 1 at rank 3
    0.375
    """

    cutoff: int | None = param(CUTOFF)
    p: float = param(P)
    gain: Gain = param(WORTH)
    max: float | str | None = param(HIGHEST)
    rel: float = param(REL)
    judged_only: bool = param(JUDGED_ONLY)
    undefined: float = param(UNDEFINED)

    def verify(self) -> None:
        """Refuse a level of relevance for graded gains, and a scale for binary ones.

        Raises
        ------
        MeasureError
            If they do not go together.
        """
        if self.gain == "binary" and self.max is not None:
            raise MeasureError(f"RBP: max={spell(self.max)} scales graded gains. Fix: add gain=graded")
        if self.gain != "binary" and self.max is None:
            raise MeasureError(
                f"RBP: gain={spell(self.gain)} needs max, the highest of the scale. Fix: add max=4, or max=topic"
            )
        if self.gain != "binary" and self.rel != REL.default:
            raise MeasureError(f"RBP: gain={spell(self.gain)} knows no rel. Fix: leave out rel={spell(self.rel)}")

    @property
    def properties(self) -> Properties:
        """Grades count if the gain is made of them; a higher one raises the highest of its topic too."""
        known = super().properties
        return replace(known, graded=self.gain != "binary", monotone=known.monotone and self.max != "topic")

    def score(self, judged: Judged) -> Floats:
        """Weigh what each document is worth by the probability that it is seen."""
        weight = _chances(self.p, int(judged.rank.max(initial=1)))[judged.rank - 1]
        worth = judged.relevant(self.rel) if self.gain == "binary" else self._graded(judged)
        return (1.0 - self.p) * judged.sum(worth * weight * judged.within(self.cutoff))

    def _graded(self, judged: Judged) -> Floats:
        """Give what each hit is worth on the scale from 0 to 1."""
        worth, known = self._gains(judged.grade), self._gains(judged.label_grade)
        if self.max == "topic":
            highest = np.ones(len(judged))
            np.maximum.at(highest, judged.label_topic, known)
            return worth / highest[judged.topic]
        top = float(self.max or 1.0)
        if known.max(initial=0.0) > top:
            raise MeasureError(f"{self}: a document gains {known.max():g}. Fix: max is the highest of the scale")
        return worth / top

    def _gains(self, grades: Floats) -> Floats:
        return gains(grades, "linear" if self.gain == "graded" else self.gain)

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics that have something to find."""
        if self.gain == "binary":
            return super().is_defined(judged)
        return judged.sum_labels(self._gains(judged.label_grade) > 0) > 0


@measure(
    family="incomplete judgments",
    cite="Moffat and Zobel 2008; trec_eval 10",
    use="Beside RBP: the true score lies between RBP and RBP plus this.",
    misleads="As in trec_eval 10, a ranking whose documents are all judged has none, though what lies behind its end"
    " is open too.",
    aliases={"rbp_resid": {"p": 0.9}},
    properties=Properties(ignores_unjudged_tail=False, monotone=False, higher_is_better=False),
    tools={"trec_eval": "rbp_resid (p is 0.9)"},
)
class RBPResidual(Measure):
    r"""How much RBP could grow if every document without a judgment were relevant.

    .. math:: \mathrm{RBPResidual} = p^{n} + (1 - p) \sum_{r \le n,\ \text{unjudged}} p^{r-1}

    n is the number of documents returned; the first term stands for all behind them. The formula holds where at
    least one of the n is unjudged. Where all are judged, or nothing was returned, the residual is 0: this is
    trec_eval 10's rule, though :math:`p^n` is open there too. Documents with a negative grade count as unjudged.

    Examples
    --------
    >>> RBPResidual(p=0.5).of_list([1, None, 0])  # 1/8 + 1/2 * 1/2
    0.375
    >>> RBPResidual(p=0.5).of_list([1, 0])  # all judged: 0, not 1/4
    0.0
    """

    p: float = param(P)

    def score(self, judged: Judged) -> Floats:
        """Weigh the open places by the probability that they are seen."""
        chances = _chances(self.p, int(judged.returned.max(initial=0)))
        seen = judged.sum(judged.grade >= 0)
        left = chances[judged.returned] + (1.0 - self.p) * self._open(judged, chances)
        return np.where(seen < judged.returned, left, 0.0)

    def _open(self, judged: Judged, chances: Floats) -> Floats:
        """Add up the weights of the unjudged ranks, rank after rank: rankings of a like length together."""
        total = np.zeros(len(judged))
        by_length = np.argsort(-judged.returned, kind="stable")
        first = 0
        while first < len(by_length) and (longest := int(judged.returned[by_length[first]])):
            some = by_length[first : first + max(1, _CELLS // longest)]
            total[some] = _open_weight(judged, some, chances[:longest])
            first += len(some)
        return total


def _open_weight(judged: Judged, topics: Ints, chances: Floats) -> Floats:
    weight = np.where(np.arange(len(chances)) < judged.returned[topics, np.newaxis], chances, 0.0)
    row = np.full(len(judged), -1)
    row[topics] = np.arange(len(topics))
    known = np.flatnonzero((row[judged.topic] >= 0) & (judged.grade >= 0))
    weight[row[judged.topic[known]], judged.rank[known] - 1] = 0.0
    return np.cumsum(weight, axis=1)[:, -1]
