"""Rank-biased precision, and how much of it the judgments leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import MeasureError
from judged.results.types import cached_property
from judged.scoring.measures.aggregates import divide, for_each_hit
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import ADAPTIVE, EXPECTED, FIXED, Expected, Reading, UserModel
from judged.scoring.measures.gain import GAIN, gained, gains
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, real, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.cwl import Sheet
    from judged.scoring.measures.gain import Gain, Table
    from judged.scoring.measures.parameters import Takes

    Worth: TypeAlias = Literal["binary", "graded"] | Table


_CELLS = 1 << 17
"""Ranks that are looked at together: a megabyte, which stays in a processor's cache."""

_NEGLIGIBLE = 5e-5
"""A weight below this does not show in four decimals."""


def _worth(given: Any) -> Worth:
    if given in ("binary", "graded"):
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


def _persistence(given: Any) -> float:
    number = real(0, 1)(given)
    if number == 1:
        raise ValueError("a number from 0, below 1: a user who never stops gains nothing from any one document")
    return number


P = Parameter(
    "The probability that a user who has seen a document goes on to the next.",
    None,
    _persistence,
    required=True,
    values="number from 0, below 1, such as 0.8",
)
P_RESIDUAL = Parameter(
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
    category="user model",
    cite="Moffat and Zobel 2008",
    use="A user who may leave after every document. RBPResidual shows how much the judgments leave open.",
    misleads="Tools differ in their default persistence (.8, .85, .9), so it must be given here."
    " Graded gains are scaled in four ways.",
    properties=Properties(missing_matter=False, against_ideal=True, additive=True, better_first=True),
    tools={
        "trec_eval": "rbp (gain=graded, its scale of gains undefined; p is 0.9)",
        "ir_measures": "RBP(rel=1) (p is 0.8)",
        "ranx": "rbp.95",
        "cwl_eval": "RBP@0.9",
    },
)
class RBP(RelevanceMeasure):
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
    gain: Takes[Worth | Mapping[float, float], Worth] = param(WORTH)
    max: float | Literal["topic"] | None = param(HIGHEST)
    rel: float = param(REL)

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
        apart = self.max != "topic"
        graded, monotone = self.gain != "binary", known.monotone and apart
        return replace(known, graded=graded, monotone=monotone, missing_matter=not apart)

    def score(self, judged: Judged) -> Floats:
        """Weigh what each document is worth by the probability that it is seen."""
        weight = _chances(self.p, int(judged.rank.max(initial=1)))[judged.rank - 1]
        how = f"{spell(self.p)}^(rank - 1)"
        if self.gain == "binary":
            counted = judged.relevant(self.rel) & judged.within(self.cutoff)
            judged.column("weight", weight, how, where=counted)
            seen = judged.total("weights", weight, "weight", where=counted)
        else:
            worth, counted = self._graded(judged)
            judged.column("weight", weight, how, where=counted)
            seen = judged.total("weights", worth * weight, "worth * weight", where=counted, worth=worth, weight=weight)
        return judged.step(self, (1.0 - self.p) * seen, "(1 - p) * weights", p=self.p, weights=seen)

    def _graded(self, judged: Judged) -> tuple[Floats, Bools]:
        """Give what each hit is worth on the scale from 0 to 1, and mark the hits that are added up."""
        top, how = self._highest(judged, gains(judged.label_grade, self._gain))
        gain, counted = gained(judged, self._gain, self.cutoff)
        return judged.column("worth", gain / top, how, where=counted, gain=gain, highest=top), counted

    def _highest(self, judged: Judged, known: Floats) -> tuple[Floats | float, str]:
        """Give what each hit's gain is divided by, and how to write the quotient."""
        if self.max == "topic":
            highest = np.ones(len(judged))
            np.maximum.at(highest, judged.label_topic, known)
            judged.step("highest", highest, "highest gain in the qrels, at least 1")
            return for_each_hit(judged, highest), "gain / highest"
        top = float(self.max or 1.0)
        if known.max(initial=0.0) > top:
            raise MeasureError(f"{self}: a document gains {known.max():g}. Fix: max is the highest of the scale")
        return top, f"gain / {spell(top)}"

    @property
    def _gain(self) -> Gain:
        return "linear" if isinstance(self.gain, str) else self.gain

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics that have something to find."""
        if self.gain == "binary":
            return super().is_defined(judged)
        return judged.sum_labels(gains(judged.label_grade, self._gain) > 0) > 0


@measure(
    category="incomplete judgments",
    cite="Moffat and Zobel 2008; trec_eval 10",
    use="Beside RBP: the true score lies between RBP and RBP plus this.",
    misleads="As in trec_eval 10, a ranking whose documents are all judged has none, though what lies behind its end"
    " is open too.",
    aliases={"rbp_resid": {"p": 0.9}},
    properties=Properties(
        ignores_unjudged_tail=False, monotone=False, higher_is_better=False, missing_matter=False, sees_relevance=False
    ),
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
    >>> RBPResidual(p=1).of_list([1, None, 0])  # a user who never stops sees what is behind the last document
    1.0
    """

    p: float = param(P_RESIDUAL)

    def score(self, judged: Judged) -> Floats:
        """Weigh the open places by the probability that they are seen."""
        chances = _chances(self.p, int(judged.returned.max(initial=0)))
        seen = judged.sum(judged.grade >= 0)
        weights = self._open(judged, chances)
        if judged.working is not None:
            self._show_open(judged, chances)
        what = "documents without a judgment, or with a negative grade"
        unjudged = judged.step("unjudged", judged.returned - seen, what)
        judged.step("weights", weights, "weights of the unjudged ranks, added up")
        left = chances[judged.returned] + (1.0 - self.p) * weights
        return judged.step(
            self,
            np.where(unjudged > 0, left, 0.0),
            "p^n + (1 - p) * weights" if unjudged.any() else "0 * (p^n + (1 - p) * weights)",
            p=self.p,
            n=judged.returned,
            weights=weights,
        )

    def _show_open(self, judged: Judged, chances: Floats) -> None:
        """Show the weight of each unjudged rank, as far as it can be seen in the result."""
        if judged.working is None or len(judged) != 1:
            return
        ranks = np.setdiff1d(np.arange(1, int(judged.returned[0]) + 1), judged.rank[judged.grade >= 0])
        weight = chances[ranks - 1]
        seen = weight >= _NEGLIGIBLE
        how = f"{spell(self.p)}^(rank - 1)"
        if seen.any():
            judged.working.column(judged, "weight", weight[seen], how, {}, rank=ranks[seen])
        if (rest := weight[~seen]).any():
            judged.step(
                "rest", np.array([rest.sum()]), f"weights of the {len(rest)} unjudged ranks not shown, added up"
            )

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

    T: float = param(Parameter(WANTED.meaning, 1.0, real(_LEAST_WANTED)))

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


def falling_to(weights: Floats) -> Floats:
    """Give the continuation that leads from each weight to the next; nobody reads on after the last.

    >>> falling_to(np.array([[1.0, 0.5, 0.0, 0.0]])).tolist()
    [[0.5, 0.0, 0.0, 0.0]]
    """
    after = np.zeros_like(weights)
    after[:, :-1] = weights[:, 1:]
    return divide(after, weights)


@dataclass(frozen=True, eq=False)
class _Weighted(Expected):
    """Expectations under weights that need not add up to 1."""

    weights: Floats

    @cached_property
    def W(self) -> Floats:
        return self.weights

    @cached_property
    def ED(self) -> Floats:
        return 1.0 / self.weights[:, 0]

    def write_ED(self, sheet: Sheet, name: object) -> None:
        self._write_weights(sheet)
        sheet.top.judged.step(name, self.ED, "1 / W_of_rank_1", W_of_rank_1=self.weights[:, 0])

    def write_W(self, sheet: Sheet, amount: str) -> Sheet:  # noqa: ARG002
        self._write_weights(sheet)
        return sheet

    def write_reached(self, sheet: Sheet) -> None:
        self._write_weights(sheet)
        sheet.column("C", self.continuation, "W of the next rank / W", W=self.weights)
        sheet.column("reached", self.reached, "C of all ranks above, multiplied", C=self.continuation)

    def _write_weights(self, sheet: Sheet) -> None:
        relevant = np.maximum(self.reading.relevant[:, 0], 1.0)
        sheet.top.judged.step("R", relevant, "documents that gain something, returned or not, at least 1")
        sheet.notes()


@measure(
    category="user model",
    cite="Harman 1992; cwl_eval",
    use="To compare AP with other user models, with grades as gains and costs of documents.",
    misleads="It is not a user model: the weights depend on what comes next, do not add up to 1, and can grow with the"
    " rank, so ETU and ETC may be negative. For AP itself, use AP.",
    aliases={"TrAPCWLMetric": {}},
    properties=replace(ADAPTIVE, missing_matter=True),
    tools={"cwl_eval": "TrAP"},
)
class TrAP(UserModel):
    r"""Average precision in terms of C/W/L: with two grades, EU is AP.

    .. math:: W(i) = \frac{1}{R} \cdot \frac{\sum_{j \le i} g_j}{\sum_{j \le i} c_j}, \qquad
        C(i) = \frac{W(i+1)}{W(i)}

    R counts the judged documents that gain something. Before the first gain the sum above counts as 1. This is how
    cwl_eval 1.0.12 computes it, though its documentation says the opposite of its two: its ``AP`` divides by the
    relevant documents returned, and this one by all that are known.

    Examples
    --------
    >>> round(TrAP(max=1).of_list([1, 0, 1, 0, 1], missing=[1]), 3)  # AP, to the digit
    0.567
    """

    def continuation(self, reading: Reading) -> Floats:
        """The next weight, divided by this one."""
        return falling_to(self.weights(reading))

    def weights(self, reading: Reading) -> Floats:
        """Gain for each cost so far, divided by the number of relevant documents."""
        gained = np.where(reading.gained == 0, 1.0, reading.gained)
        gained[:, -1] = reading.gained[:, -1]
        relevant = np.maximum(reading.relevant, 1.0)
        reading.note("G", gained, "gained, or 1 until something is gained", gained=reading.gained)
        how, parts = f"G / {reading.spent_word} / R", {"G": gained, "spent": reading.spent, "R": float(relevant[0, 0])}
        return reading.note("W", gained / reading.spent / relevant, how, **parts)

    def expected(self, reading: Reading) -> Expected:
        """Take the weights as they are."""
        weights = self.weights(reading)
        return _Weighted(reading, falling_to(weights), weights)
