"""Rank-biased precision, its residual for unjudged documents, and related user models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judged.errors import MeasureError
from judged.results.types import cached_property
from judged.scoring.measures.aggregates import divide, expand_to_hits
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.cwl import ADAPTIVE, EXPECTED, FIXED, RankMatrices, UserExpectations, UserModel
from judged.scoring.measures.gain import GAIN, gains, hit_gains
from judged.scoring.measures.parameters import CUTOFF, REL, Parameter, format_value, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.cwl import UserModelSheet
    from judged.scoring.measures.gain import Gain, GainTable
    from judged.scoring.measures.parameters import ConvertedAttribute

    RBPGain: TypeAlias = Literal["binary", "graded"] | GainTable


_CELLS = 1 << 17
"""Cells of one dense block: one megabyte of float64, which fits into a processor's cache."""

_NEGLIGIBLE = 5e-5
"""A weight below this does not change the fourth decimal."""


def _parse_gain(value: Any) -> RBPGain:
    if value in ("binary", "graded"):
        return value
    try:
        return GAIN.accept([] if isinstance(value, str) else value)
    except ValueError:
        raise ValueError("binary, graded, or a table of finite gains such as {1:1,2:3}") from None


def _parse_max(value: Any) -> float | str:
    if value == "topic":
        return value
    try:
        return real(5e-324)(value)
    except ValueError:
        raise ValueError("a number above 0, or the word topic") from None


def _parse_persistence(value: Any) -> float:
    number = real(0, 1)(value)
    if number == 1:
        raise ValueError("a number of at least 0 and below 1: with p=1 the user never stops, and the factor 1 - p is 0")
    return number


P = Parameter(
    "The probability that a user who has read a document reads the next one.",
    None,
    _parse_persistence,
    required=True,
    values="number of at least 0 and below 1, such as 0.8",
)
P_RESIDUAL = Parameter(
    "The probability that a user who has read a document reads the next one.",
    None,
    real(0, 1),
    required=True,
    values="number from 0 to 1, such as 0.8",
)
RBP_GAIN = Parameter(
    "The gain of a document. `binary`: 1 if the document is relevant. `graded`: the grade divided by `max`. A table"
    " lists the gain of each grade; the gains in the table are divided by `max` too.",
    "binary",
    _parse_gain,
    values="binary, graded, or a table such as {1:1,2:3,3:10}",
)
HIGHEST = Parameter(
    "The highest gain of the scale. Graded gains are divided by this value, so that the best document has a gain of"
    " 1. `topic`: the highest gain in each topic's qrels, but at least 1.",
    None,
    _parse_max,
    values="number above 0, or the word topic",
)


def _reached(p: float, ranks: int) -> Floats:
    """Return the probability of reaching each rank and the one after: p^(rank - 1), multiplied sequentially as in C."""
    return np.multiply.accumulate(np.append(1.0, np.full(ranks, p)), dtype=np.float64)


@measure(
    category="user model",
    cite="Moffat and Zobel 2008",
    use="Users may stop after every document. RBPResidual shows the uncertainty due to missing judgments.",
    misleads="The default persistence differs between tools (.8, .85, .9), so p has no default here. Tools also"
    " differ in how they scale graded gains (four ways).",
    properties=Properties(depends_on_missing=False, relative_to_ideal=True, additive=True, better_first=True),
    tools={
        "trec_eval": "rbp (gain=graded, with an undefined divisor of the gains; p is 0.9)",
        "ir_measures": "RBP(rel=1) (p is 0.8)",
        "ranx": "rbp.95",
        "cwl_eval": "RBP@0.9",
    },
)
class RBP(RelevanceMeasure):
    r"""Rank-biased precision: the expected gain per document read, for a user of persistence p.

    .. math:: \mathrm{RBP} = (1 - p) \sum_r g_r\, p^{r-1}

    ``gain=graded`` requires ``max``, the highest grade of the scale. With ``max=topic``, gains are divided by the
    highest grade of each topic, which is the intended formula of trec_eval 10. The scores of trec_eval 10 can differ,
    because trec_eval 10 uses an uninitialized variable.

    Examples
    --------
    >>> RBP(p=0.5).of_list([1, 0, 1])
    0.625
    >>> RBP(p=0.5, gain="graded", max=2).of_list([1, 0, 2])  # 1/2 at rank 1, 1 at rank 3
    0.375
    """

    cutoff: int | None = param(CUTOFF)
    p: float = param(P)
    gain: ConvertedAttribute[RBPGain | Mapping[float, float], RBPGain] = param(RBP_GAIN)
    max: float | Literal["topic"] | None = param(HIGHEST)
    rel: float = param(REL)

    def verify(self) -> None:
        """Raise if `rel` is combined with graded gains, or `max` with binary ones.

        Raises
        ------
        MeasureError
            If the parameters contradict each other.
        """
        gain = format_value(self.gain)
        if self.gain == "binary" and self.max is not None:
            raise MeasureError(f"RBP: max={format_value(self.max)} requires graded gains. Fix: add gain=graded")
        if self.gain != "binary" and self.max is None:
            raise MeasureError(
                f"RBP: gain={gain} requires max, the highest gain of the scale. Fix: add max=4, or max=topic"
            )
        if self.gain != "binary" and self.rel != REL.default:
            raise MeasureError(f"RBP: rel has no effect with gain={gain}. Fix: omit rel={format_value(self.rel)}")

    @property
    def properties(self) -> Properties:
        """Properties with these parameters. With ``max=topic``, a higher grade also raises the divisor."""
        declared = super().properties
        is_fixed_scale = self.max != "topic"
        graded, monotone = self.gain != "binary", declared.monotone and is_fixed_scale
        return replace(declared, graded=graded, monotone=monotone, depends_on_missing=not is_fixed_scale)

    def score(self, judged: Judged) -> Floats:
        """Sum the gains, weighted by the probability that the user reaches each rank."""
        # p^(rank - 1) is the probability that the user reaches the rank.
        weight = _reached(self.p, int(judged.rank.max(initial=1)))[judged.rank - 1]
        how = f"{format_value(self.p)}^(rank - 1)"
        if self.gain == "binary":
            counted = judged.relevant(self.rel) & judged.within(self.cutoff)
            judged.column("weight", weight, how, where=counted)
            total = judged.total("weights", weight, "weight", where=counted)
        else:
            gain, counted = self._graded_gain(judged)
            judged.column("weight", weight, how, where=counted)
            total = judged.total(
                "weights", gain * weight, "scaled_gain * weight", where=counted, scaled_gain=gain, weight=weight
            )
        return judged.step(self, (1.0 - self.p) * total, "(1 - p) * weights", p=self.p, weights=total)

    def _graded_gain(self, judged: Judged) -> tuple[Floats, Bools]:
        """Return the gain of each hit on the scale from 0 to 1, and the mask of the hits to sum."""
        divisor, how = self._divisor(judged, gains(judged.label_grade, self._gain_table))
        gain, counted = hit_gains(judged, self._gain_table, self.cutoff)
        return judged.column("scaled_gain", gain / divisor, how, where=counted, gain=gain, highest=divisor), counted

    def _divisor(self, judged: Judged, label_gains: Floats) -> tuple[Floats | float, str]:
        """Return the divisor of the gain of each hit, and the formula of the quotient."""
        if self.max == "topic":
            highest = np.ones(len(judged))
            np.maximum.at(highest, judged.label_topic, label_gains)
            judged.step("highest", highest, "highest gain in the qrels, at least 1")
            return expand_to_hits(judged, highest), "gain / highest"
        max_gain = float(self.max or 1.0)
        if (highest_gain := label_gains.max(initial=0.0)) > max_gain:
            raise MeasureError(f"{self}: a document has the gain {highest_gain:g}, above max. Fix: use a higher max")
        return max_gain, f"gain / {format_value(max_gain)}"

    @property
    def _gain_table(self) -> Gain:
        return "linear" if isinstance(self.gain, str) else self.gain

    def is_defined(self, judged: Judged) -> Any:
        """Return whether each topic has a document with a positive gain: (T,) bool."""
        if self.gain == "binary":
            return super().is_defined(judged)
        return judged.sum_labels(gains(judged.label_grade, self._gain_table) > 0) > 0


@measure(
    category="incomplete judgments",
    cite="Moffat and Zobel 2008; trec_eval 10",
    use="Report the residual with RBP: the RBP under complete judgments is between RBP and RBP plus the residual.",
    misleads="As in trec_eval 10, the residual is 0 if all returned documents are judged, although the documents below"
    " the end of the ranking are unknown too.",
    aliases={"rbp_resid": {"p": 0.9}},
    properties=Properties(
        ignores_unjudged_tail=False,
        monotone=False,
        higher_is_better=False,
        depends_on_missing=False,
        depends_on_relevance=False,
    ),
    tools={"trec_eval": "rbp_resid (p is 0.9)"},
)
class RBPResidual(Measure):
    r"""Residual of RBP: the increase of RBP if every document without a judgment were relevant.

    .. math:: \mathrm{RBPResidual} = p^{n} + (1 - p) \sum_{r \le n,\ \text{unjudged}} p^{r-1}

    n is the number of documents returned. The first term stands for all ranks below n. The formula applies if at
    least one of the n documents is unjudged. Otherwise, or for an empty ranking, the residual is 0. This is the
    rule of trec_eval 10, although :math:`p^n` is unknown then too. A negative grade counts as unjudged.

    Examples
    --------
    >>> RBPResidual(p=0.5).of_list([1, None, 0])  # 1/8 + 1/2 * 1/2
    0.375
    >>> RBPResidual(p=0.5).of_list([1, 0])  # all judged: 0, not 1/4
    0.0
    >>> RBPResidual(p=1).of_list([1, None, 0])  # a user who never stops reads beyond the last document
    1.0
    """

    p: float = param(P_RESIDUAL)

    def score(self, judged: Judged) -> Floats:
        """Sum the weights of the unjudged ranks, and add the weight of all ranks below the last."""
        reached = _reached(self.p, int(judged.returned.max(initial=0)))
        judged_count = judged.sum(judged.grade >= 0)
        weights = self._unjudged_weight(judged, reached)
        if judged.calculation is not None:
            self._explain_unjudged(judged, reached)
        how = "documents without a judgment, or with a negative grade"
        unjudged = judged.step("unjudged", judged.returned - judged_count, how)
        judged.step("weights", weights, "sum of the weights of the unjudged ranks")
        residual = reached[judged.returned] + (1.0 - self.p) * weights
        return judged.step(
            self,
            np.where(unjudged > 0, residual, 0.0),
            "p^n + (1 - p) * weights" if unjudged.any() else "0 * (p^n + (1 - p) * weights)",
            p=self.p,
            n=judged.returned,
            weights=weights,
        )

    def _explain_unjudged(self, judged: Judged, reached: Floats) -> None:
        """Show the weight of each unjudged rank that affects the first four decimals."""
        if judged.calculation is None or len(judged) != 1:
            return
        # Hits are judged, so the unjudged ranks are those without a hit of grade 0 or more.
        ranks = np.setdiff1d(np.arange(1, int(judged.returned[0]) + 1), judged.rank[judged.grade >= 0])
        weight = reached[ranks - 1]
        is_shown = weight >= _NEGLIGIBLE
        how = f"{format_value(self.p)}^(rank - 1)"
        if is_shown.any():
            judged.calculation.column(judged, "weight", weight[is_shown], how, {}, rank=ranks[is_shown])
        if (hidden := weight[~is_shown]).any():
            how = f"sum over the {len(hidden)} unjudged ranks that are not shown"
            judged.step("weights not shown", np.array([hidden.sum()]), how)

    def _unjudged_weight(self, judged: Judged, reached: Floats) -> Floats:
        """Sum the weights of the unjudged ranks sequentially, for blocks of rankings of similar length: (T,)."""
        total = np.zeros(len(judged))
        by_length = np.argsort(-judged.returned, kind="stable")
        start = 0
        while start < len(by_length) and (longest := int(judged.returned[by_length[start]])):
            topics = by_length[start : start + max(1, _CELLS // longest)]
            total[topics] = _block_unjudged_weight(judged, topics, reached[:longest])
            start += len(topics)
        return total


def _block_unjudged_weight(judged: Judged, topics: Ints, reached: Floats) -> Floats:
    weight = np.where(np.arange(len(reached)) < judged.returned[topics, np.newaxis], reached, 0.0)
    row = np.full(len(judged), -1)
    row[topics] = np.arange(len(topics))
    judged_hits = np.flatnonzero((row[judged.topic] >= 0) & (judged.grade >= 0))
    weight[row[judged.topic[judged_hits]], judged.rank[judged_hits] - 1] = 0.0
    return np.cumsum(weight, axis=1)[:, -1]


GOAL = Parameter("The total gain that the user wants, measured in documents of the highest grade.", 1.0, real(0))
_MIN_GOAL = 0.5  # below it, x = rank + 2T - gained can be less than 1, where more gain would make the user more patient


def continuation_probability(x: Floats) -> Floats:
    """Return ((x - 1) / x)^2, the probability of reading on for x from 1. It increases with x."""
    return ((x - 1.0) / x) ** 2


CONTINUATION_FORMULA = "((x - 1) / x)^2"
"""Formula of `continuation_probability`."""


@measure(
    category="user model",
    cite="Moffat, Bailey, Scholer and Thomas 2015; cwl_eval",
    use="Users have a goal of T useful documents, and stop earlier if they find useful documents early.",
    misleads="T is the user's goal, not a cutoff. T must be known from the task, and can change the order of systems.",
    aliases={"INSTCWLMetric": {}},
    properties=EXPECTED,
    tools={"ir_measures": "INST(T=1.0,max_rel=3)", "cwl_eval": "INST-T=1"},
)
class INST(UserModel):
    r"""INST: the expected gain per document read, for a user who wants T and adapts to the gain so far.

    .. math:: C(i) = \left(\frac{i + T + T_i - 1}{i + T + T_i}\right)^2, \qquad T_i = T - \sum_{j \le i} g_j

    The gain g of a document is its grade on the scale from ``min`` to ``max``, mapped to 0 to 1. The gain of an
    unjudged document is 0. The larger the gain so far, the earlier the user stops. The ranking is extended to ``depth``
    places, so users read beyond the end of a short ranking.

    Examples
    --------
    The first document has the full gain (T = 1, two places): C(1) = 1/4, so W = 4/5 and 1/5.

    >>> INST(max=1, depth=2).of_list([1, 0])
    0.8
    >>> INST(max=1, depth=2, of="ED").of_list([1, 0])
    1.25
    """

    T: float = param(Parameter(GOAL.meaning, 1.0, real(_MIN_GOAL)))

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, which decreases with the gain so far."""
        x = matrices.rank + 2.0 * self.T - matrices.gained
        matrices.note("x", x, f"rank + 2 * {format_value(self.T)} - gained", gained=matrices.gained)
        return matrices.note("C", continuation_probability(x), CONTINUATION_FORMULA, x=x)


@measure(
    category="user model",
    cite="Moffat, Scholer and Thomas 2012; cwl_eval",
    use="Users have a goal of T useful documents, but the discount should not depend on the gain so far.",
    misleads="The weights decrease slowly with the rank, so much of the score depends on unjudged ranks. Report the"
    " score with residual=true too.",
    aliases={"INSQCWLMetric": {}},
    properties=FIXED,
    tools={"ir_measures": "INSQ(T=1.0,max_rel=3)", "cwl_eval": "INSQ-T=1"},
)
class INSQ(UserModel):
    r"""INSQ: the gain of a ranking under weights that decrease with the square of the rank.

    .. math:: C(i) = \left(\frac{i + 2T - 1}{i + 2T}\right)^2, \qquad W(i) \propto \frac{1}{(i + 2T - 1)^2}

    Examples
    --------
    T = 1, two places: the weights are proportional to 1/4 and 1/9.

    >>> round(INSQ(max=1, depth=2).of_list([1, 0]), 6)  # 9/13
    0.692308
    """

    T: float = param(GOAL)

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C, which increases with the rank."""
        x = (matrices.rank + 2.0 * self.T)[None, :]
        return matrices.note(
            "C",
            continuation_probability(x),
            CONTINUATION_FORMULA,
            x=matrices.note("x", x, f"rank + 2 * {format_value(self.T)}"),
        )


def weights_to_continuation(weights: Floats) -> Floats:
    """Return the continuation that produces these weights. It is 0 at the last rank.

    >>> weights_to_continuation(np.array([[1.0, 0.5, 0.0, 0.0]])).tolist()
    [[0.5, 0.0, 0.0, 0.0]]
    """
    next_weights = np.zeros_like(weights)
    next_weights[:, :-1] = weights[:, 1:]
    return divide(next_weights, weights)


@dataclass(frozen=True, eq=False)
class _WeightedExpectations(UserExpectations):
    """Expectations for weights that need not sum to 1."""

    weights: Floats

    @cached_property
    def W(self) -> Floats:
        return self.weights

    @cached_property
    def ED(self) -> Floats:
        return 1.0 / self.weights[:, 0]

    def explain_ED(self, sheet: UserModelSheet, name: object) -> None:
        self._explain_weights(sheet)
        sheet.top.judged.step(name, self.ED, "1 / W_of_rank_1", W_of_rank_1=self.weights[:, 0])

    def explain_W(self, sheet: UserModelSheet, amount: str) -> UserModelSheet:  # noqa: ARG002
        self._explain_weights(sheet)
        return sheet

    def explain_reached(self, sheet: UserModelSheet) -> None:
        self._explain_weights(sheet)
        sheet.column("C", self.continuation, "W of the next rank / W", W=self.weights)
        sheet.column("reached", self.reached, "product of C over all ranks above", C=self.continuation)

    def _explain_weights(self, sheet: UserModelSheet) -> None:
        relevant = np.maximum(self.matrices.relevant[:, 0], 1.0)
        sheet.top.judged.step("R", relevant, "documents with a positive gain, returned or not; at least 1")
        sheet.add_continuation()


@measure(
    category="user model",
    cite="Harman 1992; cwl_eval",
    use="You want to compare AP with other user models, with graded gains and costs of documents.",
    misleads="TrAP is not a user model: the weights depend on later ranks, do not sum to 1, and can increase"
    " with the rank, so ETU and ETC can be negative. For AP itself, use AP.",
    aliases={"TrAPCWLMetric": {}},
    properties=replace(ADAPTIVE, depends_on_missing=True),
    tools={"cwl_eval": "TrAP"},
)
class TrAP(UserModel):
    r"""Average precision in terms of C/W/L: with binary grades, EU is AP.

    .. math:: W(i) = \frac{1}{R} \cdot \frac{\sum_{j \le i} g_j}{\sum_{j \le i} c_j}, \qquad
        C(i) = \frac{W(i+1)}{W(i)}

    R counts the judged documents with a positive gain. Before the first gain, the cumulative gain counts as 1. This
    follows the code of cwl_eval 1.0.12. Its documentation confuses its two versions: its ``AP`` divides by the
    number of relevant documents returned, and its ``TrAP`` by the number in the qrels.

    Examples
    --------
    >>> round(TrAP(max=1).of_list([1, 0, 1, 0, 1], missing=[1]), 3)  # AP, to the digit
    0.567
    """

    def continuation(self, matrices: RankMatrices) -> Floats:
        """Return C: the next weight, divided by the weight of the rank."""
        return weights_to_continuation(self.weights(matrices))

    def weights(self, matrices: RankMatrices) -> Floats:
        """Return the gain per cost so far, divided by the number of relevant documents."""
        gained = np.where(matrices.gained == 0, 1.0, matrices.gained)
        gained[:, -1] = matrices.gained[:, -1]
        relevant = np.maximum(matrices.relevant, 1.0)
        matrices.note("G", gained, "gained; 1 while gained is 0", gained=matrices.gained)
        how, parts = (
            f"G / {matrices.spent_word} / R",
            {"G": gained, "spent": matrices.spent, "R": float(relevant[0, 0])},
        )
        return matrices.note("W", gained / matrices.spent / relevant, how, **parts)

    def expected(self, matrices: RankMatrices) -> UserExpectations:
        """Return the expectations for these weights, which are not normalized."""
        weights = self.weights(matrices)
        return _WeightedExpectations(matrices, weights_to_continuation(weights), weights)
