"""Average precision and its variants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import (
    count_relevant,
    count_relevant_returned,
    divide,
    explained_ratio,
    summed_precision,
)
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, choice, distinct_numbers, real
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined


NORM = Parameter(
    "The divisor of the sum. `relevant`: R, the number of relevant documents. `cutoff`: the smaller of R and k."
    " `returned`: the number of returned relevant documents.",
    "relevant",
    choice("relevant", "cutoff", "returned"),
)


@measure(
    category="ranked, binary",
    cite="Harman 1993; Buckley and Voorhees 2000",
    use="Many documents are relevant, users need all of them, and you want a single stable score for the entire"
    " ranking.",
    misleads="The score shows little about the quality of the first page, and unjudged documents count as not"
    " relevant.",
    aliases={"MAP": {}, "map_cut": {}},
    properties=Properties(perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={"trec_eval": "map, map_cut_100", "ir_measures": "AP", "ranx": "map"},
)
class AP(RelevanceMeasure):
    r"""Average precision: the precision at each relevant document, averaged over all relevant documents.

    .. math:: \mathrm{AP}@k = \frac{1}{R} \sum_{r \le k,\ \text{relevant}} \mathrm{P}@r

    A relevant document that was not returned adds 0. R is the number of relevant documents in the qrels, also with a
    cutoff (``norm=relevant``, as in trec_eval). ``norm=cutoff`` divides by min(R, k). ``norm=returned`` divides by the
    number of relevant documents returned, as some libraries do, and so hides the missed documents. The mean over
    topics is called MAP.

    Examples
    --------
    Four relevant documents, of which three are returned, at ranks 1, 3, and 5:

    >>> round(AP().of_list([1, 0, 1, 0, 1], missing=[1]), 3)
    0.567
    >>> round(AP(norm="returned").of_list([1, 0, 1, 0, 1], missing=[1]), 3)
    0.756
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)
    norm: Literal["relevant", "cutoff", "returned"] = param(NORM)

    @property
    def properties(self) -> Properties:
        """Properties with these parameters.

        With ``norm=returned``, one more relevant document can lower the mean. With a cutoff and ``norm=relevant``, the
        best ranking may not reach 1.
        """
        declared, counts_missed = super().properties, self.norm != "returned"
        better_first = declared.better_first and (counts_missed or self.cutoff is None)
        perfect = declared.perfect if self.cutoff is None or self.norm != "relevant" else None
        declared = replace(declared, better_first=better_first, perfect=perfect)
        return replace(declared, monotone=counts_missed, relative_to_ideal=counts_missed)

    def score(self, judged: Judged) -> Floats:
        """Sum the precision at each relevant document, and divide by the divisor of `norm`."""
        total = summed_precision(judged, self.rel, self.cutoff)
        if self.norm == "returned":
            returned = judged.sum(judged.relevant(self.rel) & judged.within(self.cutoff))
            return explained_ratio(judged, self, sum_of_precision=total, relevant_returned=returned)
        relevant = count_relevant(judged, self.rel)
        if self.norm == "cutoff" and self.cutoff:
            value, how = divide(total, np.minimum(relevant, self.cutoff)), "sum_of_precision / min(R, k)"
            return judged.step(self, value, how, sum_of_precision=total, R=relevant, k=self.cutoff)
        return explained_ratio(judged, self, sum_of_precision=total, R=relevant)


@measure(
    category="ranked, binary",
    cite="Robertson 2006",
    use="The hard topics matter most: doubling a low score counts as much as doubling a high score.",
    misleads="A topic with a score of 0 counts as 0.00001, as in trec_eval, and lowers the mean considerably.",
    aliases={"gm_map": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={"trec_eval": "gm_map"},
)
class GMAP(RelevanceMeasure):
    r"""Average precision, aggregated by the geometric mean over topics.

    .. math:: \mathrm{GMAP} = \exp\left(\frac{1}{T} \sum_t \ln \max(\mathrm{AP}_t, 0.00001)\right)

    The score of a topic is its AP.

    Examples
    --------
    >>> GMAP().of_list([0, 1])
    0.5
    >>> from judged import evaluate
    >>> runs = {"1": {"a": 2.0}, "2": {"b": 2.0, "a": 1.0}}  # AP 1 and 0.5
    >>> round(evaluate({"1": {"a": 1}, "2": {"a": 1}}, runs, "GMAP").value("GMAP"), 4)
    0.7071
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Compute the AP of each topic."""
        ap = AP(rel=self.rel, cutoff=None, norm="relevant", judged_only=False, undefined=0.0).score(judged)
        return judged.step(self, ap, "AP", AP=ap)


@measure(
    category="set",
    cite="trec_eval",
    use="Use this measure instead of AP if the results are sets without order.",
    misleads="The score is precision times recall, so it decreases quickly if precision or recall is low. SetF"
    " decreases less.",
    aliases={"set_map": {}},
    properties=Properties(
        needs_ranking=False, ignores_unjudged_tail=False, perfect=1.0, relative_to_ideal=True, better_first=True
    ),
    tools={"trec_eval": "set_map"},
)
class SetAP(RelevanceMeasure):
    r"""Average precision of a set: its precision times its recall.

    .. math:: \mathrm{SetAP} = \mathrm{SetP} \cdot \mathrm{SetR}
        = \frac{|\{\text{relevant and returned}\}|^2}{|\{\text{returned}\}| \cdot R}

    Each returned relevant document has the precision of the entire set, and each other relevant document has 0.

    Examples
    --------
    >>> SetAP().of_list([1, 0, None, 1], missing=[1, 1])  # 2/4 times 2/4
    0.25
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Divide the square of the number of relevant documents returned by the number returned times R."""
        relevant_returned, relevant = count_relevant_returned(judged, self.rel), count_relevant(judged, self.rel)
        value = divide(relevant_returned * relevant_returned, judged.returned * relevant)
        parts = {"relevant_returned": relevant_returned, "returned": judged.returned, "R": relevant}
        return judged.step(self, value, "relevant_returned^2 / (returned * R)", **parts)


_EPSILON = 0.00001  # trec_eval's smoothing, which avoids 0/0


@measure(
    category="incomplete judgments",
    cite="Yilmaz and Aslam 2006",
    use="Only a random sample of the pool was judged, and you want to estimate the AP under complete judgments.",
    misleads="Documents in the pool that were not judged must be in the qrels with a negative grade. Without rows"
    " for these documents, the score is close to AP and does not estimate the AP under complete judgments.",
    properties=Properties(judged_better_first=True, relative_to_ideal=True),
    tools={"trec_eval": "infAP", "ir_measures": "infAP"},
)
class InfAP(Measure):
    r"""Inferred AP: the expected precision at each relevant document, averaged over all relevant documents.

    .. math:: \mathrm{InfAP} = \frac{1}{R} \sum_{k,\ \text{relevant}} \left( \frac{1}{k} + \frac{k-1}{k}
        \cdot \frac{p}{k-1} \cdot \frac{r + \epsilon}{r + n + 2\epsilon} \right)

    k is the rank of the relevant document. Above it are r relevant documents, n documents judged not relevant, and p
    documents of the pool: these documents and documents with a negative grade. A document without a judgment was not
    in the pool and counts as not relevant. :math:`\epsilon` is 0.00001, as in trec_eval.

    Examples
    --------
    First, one document above was judged not relevant: 1/3 + 2/3 * 1/2 * 0, except for epsilon. Second, one document
    above was in the pool but not judged, so its expected relevance is 1/2: 1/2 + 1/2 * 1/1 * 1/2.

    >>> round(InfAP().of_list([0, None, 1]), 4)
    0.3333
    >>> InfAP().of_list([-1, 1])
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Sum the expected precision at the relevant documents, and divide by R."""
        is_relevant = judged.relevant(self.rel)
        relevant_above = judged.count_so_far(is_relevant) - is_relevant
        nonrelevant_above = judged.count_so_far((judged.grade >= 0) & ~is_relevant)
        pooled_above = relevant_above + nonrelevant_above + judged.count_so_far(judged.grade < 0)
        above = judged.rank - 1
        # Yilmaz and Aslam 2006: a document above is in the pool with probability p / (k - 1), and then relevant with
        # the smoothed share of relevant documents among the judged ones above.
        relevant_share = (relevant_above + _EPSILON) / (relevant_above + nonrelevant_above + 2 * _EPSILON)
        expected = 1.0 / judged.rank + above / judged.rank * divide(pooled_above, above) * relevant_share
        judged.column("r", relevant_above, "higher-ranked documents that are relevant", where=is_relevant)
        judged.column("n", nonrelevant_above, "higher-ranked documents that are judged not relevant", where=is_relevant)
        judged.column(
            "p",
            pooled_above,
            "r + n + higher-ranked documents with a negative grade (pooled, but not judged)",
            where=is_relevant,
        )
        share_formula = f"(r + {_EPSILON:.5f}) / (r + n + {2 * _EPSILON:.5f})"
        how = f"1 / rank + (rank - 1) / rank * (p / (rank - 1)) * {share_formula}"
        parts = {"r": relevant_above, "n": nonrelevant_above, "p": pooled_above}
        judged.column("expected precision", expected, how, where=is_relevant, **parts)
        total = judged.total("sum of expected precision", expected, "expected precision", where=is_relevant)
        return explained_ratio(judged, self, sum_of_expected_precision=total, R=count_relevant(judged, self.rel))


RECALL = Parameter("The recall level.", None, real(0, 1), required=True)
ROUNDING = Parameter(
    "How a recall level c is converted to a number of documents. `nearest`: cR, rounded half up (trec_eval 10). `up`:"
    " the integer part of cR + 0.9 (trec_eval 9 and earlier).",
    "nearest",
    choice("nearest", "up"),
)
POINTS = Parameter(
    "The recall levels at which interpolated precision is averaged.",
    tuple(tenth / 10 for tenth in range(11)),
    distinct_numbers(0, 1),
)


_ROUNDING_FORMULAS = {"nearest": "recall * R, rounded half up", "up": "the integer part of recall * R + 0.9"}
"""Formula of the number of relevant documents at a recall level."""


def max_precision(judged: Judged, counted: Bools, precision: Floats) -> Floats:
    """Return the highest precision at the selected hits, 0 if there are none: (H,) to (T,)."""
    highest = np.zeros(len(judged))
    np.maximum.at(highest, judged.topic[counted], precision[counted])
    return highest


def _documents(share: Floats, rounding: str) -> Floats:
    """Return the number of relevant documents at a recall level, for recall times R."""
    if rounding == "up":
        return np.floor(share + 0.9)
    integer_part = np.floor(share)
    return integer_part + (share - integer_part >= 0.5)  # floor(share + 0.5) would round 0.49999999999999994 up


@measure(
    category="ranked, binary",
    cite="Salton and McGill 1983; trec_eval",
    use="You want to plot precision over recall, averaged over topics.",
    misleads="A recall level may not correspond to an integer number of relevant documents, and tools round this"
    " number differently.",
    aliases={"iprec_at_recall": {}},
    properties=Properties(perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={
        "trec_eval": "iprec_at_recall_0.10 (in version 9 rounding=up)",
        "ir_measures": "IPrec@0.1 (here IPrec(rounding=up)@0.1)",
    },
    cutoff_name="recall",
)
class IPrec(RelevanceMeasure):
    r"""Interpolated precision: the highest precision at this recall or a higher one.

    .. math:: \mathrm{IPrec}@c = \max_{r \ge r_n} \mathrm{P}@r, \quad n = \mathrm{round}(cR)

    The n-th relevant document is at rank :math:`r_n`. If fewer than n relevant documents were returned, the score is 0.
    With n = 0, all ranks count. An empty ranking scores 0; if also n = 0, trec_eval prints nan.

    cR is computed with floating-point numbers, as in trec_eval: 0.7 times 45 gives 31.499999999999996, so n is 31. In
    exact arithmetic, cR is 31.5 and n is 32. For the 11 usual recall levels and R up to 200, n differs from exact
    arithmetic in 4 cases with ``rounding=nearest``, and in 14 cases with ``rounding=up``.

    Examples
    --------
    Four relevant documents, of which three are returned, at ranks 1, 3, and 5. From the second relevant document on,
    precision is at most 2/3.

    >>> round(IPrec(recall=0.5).of_list([1, 0, 1, 0, 1], missing=[1]), 4)
    0.6667
    >>> IPrec(recall=0).of_list([1, 0, 1, 0, 1], missing=[1]), IPrec(recall=1).of_list([1, 0, 1, 0, 1], missing=[1])
    (1.0, 0.0)
    >>> (IPrec @ 0.2).of_list([0, 1, 1], missing=[0]), IPrec(recall=0.6, rounding="up").of_list([1, 0, 1])
    (0.6666666666666666, 0.6666666666666666)
    """

    recall: float = param(RECALL)
    rounding: Literal["nearest", "up"] = param(ROUNDING)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Return the highest precision from this recall level on."""
        is_relevant, relevant = judged.relevant(self.rel), count_relevant(judged, self.rel)
        so_far, needed = judged.count_so_far(is_relevant), _documents(self.recall * relevant, self.rounding)
        judged.step("n", needed, _ROUNDING_FORMULAS[self.rounding], recall=self.recall, R=relevant)
        counted, precision = is_relevant & (so_far >= needed[judged.topic]), so_far / judged.rank
        judged.column("relevant_so_far", so_far, where=is_relevant)
        judged.column("precision", precision, "relevant_so_far / rank", where=counted, relevant_so_far=so_far)
        highest = max_precision(judged, counted, precision)
        judged.step("highest precision", highest, "maximum over the ranks with at least n relevant documents so far")
        return judged.step(self, highest, "highest_precision", highest_precision=highest)


@measure(
    category="ranked, binary",
    cite="Salton and McGill 1983; trec_eval",
    use="You want to compare with results from before 1994. AP has replaced AP11.",
    misleads="The measure gives the first relevant document the same weight as one tenth of all relevant documents.",
    aliases={"11pt_avg": {}},
    properties=Properties(perfect=1.0, relative_to_ideal=True, better_first=True),
    tools={"trec_eval": "11pt_avg (in version 9 rounding=up)"},
)
class AP11(RelevanceMeasure):
    r"""Eleven-point average precision: the mean of the interpolated precision at recall 0, 0.1, ..., 1.

    .. math:: \mathrm{AP11} = \frac{1}{11} \sum_{c \in \{0, 0.1, \dots, 1\}} \mathrm{IPrec}@c

    Other recall levels are possible: ``points={0.25,0.5,0.75}`` is the three-point average.

    Examples
    --------
    Both relevant documents are returned, at ranks 1 and 4. For recall levels c up to 0.7, 2c rounds to 0 or 1, so the
    first relevant document is enough, and the interpolated precision is 1. From a recall level of 0.8 on, both relevant
    documents are required, and the precision is 2/4.

    >>> round(AP11().of_list([1, 0, 0, 1]), 4)  # (8 + 3 / 2) / 11
    0.8636
    >>> round(AP11(points=(0.2, 0.5, 0.8)).of_list([1, 0, 0, 1]), 4)  # (1 + 1 + 1/2) / 3
    0.8333
    """

    points: tuple[float, ...] = param(POINTS)
    rounding: Literal["nearest", "up"] = param(ROUNDING)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Average the interpolated precision over the recall levels."""
        is_relevant, relevant = judged.relevant(self.rel), count_relevant(judged, self.rel)
        so_far = judged.count_so_far(is_relevant)
        precision = so_far / judged.rank
        judged.column("precision", precision, "relevant_so_far / rank", where=is_relevant, relevant_so_far=so_far)
        needed = [_documents(recall * relevant, self.rounding) for recall in self.points]
        highest = [max_precision(judged, is_relevant & (so_far >= n[judged.topic]), precision) for n in needed]
        total = np.zeros(len(judged))
        for point_precision in reversed(highest):  # this order reproduces the last bit of trec_eval
            total += point_precision
        self._explain(judged, needed, highest)
        judged.step("sum", total, "sum of the highest precisions")
        return judged.step(self, total / len(self.points), f"sum / {len(self.points)}", sum=total)

    def _explain(self, judged: Judged, needed: Sequence[Floats], highest: Sequence[Floats]) -> None:
        for topic_index, name in enumerate(judged.query_ids) if judged.calculation is not None else ():
            columns = {
                "recall": self.points,
                "n": [count[topic_index] for count in needed],
                "highest precision": [precision[topic_index] for precision in highest],
            }
            how = {
                "n": _ROUNDING_FORMULAS[self.rounding],
                "highest precision": "maximum over the ranks with at least n relevant documents so far",
            }
            judged.rows("recall points" if len(judged) == 1 else f"recall points: {name}", columns, **how)
