"""Average precision."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.aggregates import all_relevant, divide, relevant_returned, summed_precision
from judged.scoring.measures.base import Measure, Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import CUTOFF, REL, UNDEFINED, Parameter, one_of, real, several
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from judged.results.types import Bools, Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined


NORM = Parameter(
    "What the sum is divided by: all relevant documents, the smaller of those and k, or only the relevant documents"
    " returned.",
    "relevant",
    one_of("relevant", "cutoff", "returned"),
)


@measure(
    category="ranked, binary",
    cite="Harman 1993; Buckley and Voorhees 2000",
    use="Many documents are relevant and all of them are wanted: one stable number for the whole ranking.",
    misleads="It says little about the first page, and unjudged documents count as not relevant.",
    aliases={"MAP": {}, "map_cut": {}},
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "map, map_cut_100", "ir_measures": "AP", "ranx": "map"},
)
class AP(RelevanceMeasure):
    r"""Average precision: the precision at each relevant document, averaged over all that are relevant.

    .. math:: \mathrm{AP}@k = \frac{1}{R} \sum_{r \le k,\ \text{relevant}} \mathrm{P}@r

    A relevant document that was not returned adds 0. R counts all relevant documents of the qrels, also
    under a cutoff (``norm=relevant``, as trec_eval). ``norm=cutoff`` divides by min(R, k);
    ``norm=returned`` by the relevant documents found, which some libraries do and which hides what was
    missed. The mean over topics is known as MAP.

    Examples
    --------
    Four relevant documents, three of them returned, at ranks 1, 3 and 5:

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
        """Over the documents that were found, the average can fall when another is; few places cannot hold all."""
        full = self.cutoff is None or self.norm != "relevant"
        known = super().properties
        all_known = self.norm != "returned"
        better_first = known.better_first and (all_known or self.cutoff is None)  # one more found may lower the mean
        known = replace(known, better_first=better_first, perfect=known.perfect if full else None)
        return replace(known, monotone=all_known, against_ideal=all_known)

    def score(self, judged: Judged) -> Floats:
        """Precision at each relevant rank, summed and divided."""
        total = summed_precision(judged, self.rel, self.cutoff)
        if self.norm == "returned":
            found = judged.sum(judged.relevant(self.rel) & judged.within(self.cutoff))
            how = "sum_of_precision / relevant_found"
            return judged.step(self, divide(total, found), how, sum_of_precision=total, relevant_found=found)
        known = all_relevant(judged, self.rel)
        if self.norm == "cutoff" and self.cutoff:
            value, how = divide(total, np.minimum(known, self.cutoff)), "sum_of_precision / min(R, k)"
            return judged.step(self, value, how, sum_of_precision=total, R=known, k=self.cutoff)
        return judged.step(self, divide(total, known), "sum_of_precision / R", sum_of_precision=total, R=known)


@measure(
    category="ranked, binary",
    cite="Robertson 2006",
    use="The hard topics matter most: doubling a poor score counts as much as doubling a good one.",
    misleads="One topic that scores 0 pulls the mean down like a score of 0.00001, the floor that trec_eval set.",
    aliases={"gm_map": {}},
    aggregate="geometric mean",
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "gm_map"},
)
class GMAP(RelevanceMeasure):
    r"""Average precision, with the geometric mean over the topics.

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
        """AP of each topic."""
        ap = AP(rel=self.rel, cutoff=None, norm="relevant", judged_only=False, undefined=0.0).score(judged)
        return judged.step(self, ap, "AP", AP=ap)


@measure(
    category="set",
    cite="trec_eval",
    use="For results that have no order, where AP would be used for a ranking.",
    misleads="It falls with the square of what is missing; SetF punishes a one-sided result less.",
    aliases={"set_map": {}},
    properties=Properties(
        needs_ranking=False, ignores_unjudged_tail=False, perfect=1.0, against_ideal=True, better_first=True
    ),
    tools={"trec_eval": "set_map"},
)
class SetAP(RelevanceMeasure):
    r"""Average precision of a set: its precision times its recall.

    .. math:: \mathrm{SetAP} = \mathrm{SetP} \cdot \mathrm{SetR}
        = \frac{|\{\text{relevant and returned}\}|^2}{|\{\text{returned}\}| \cdot R}

    Every relevant document returned has the precision of the whole set, every other one 0.

    Examples
    --------
    >>> SetAP().of_list([1, 0, None, 1], missing=[1, 1])  # 2/4 times 2/4
    0.25
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Square of the relevant returned, divided by returned times relevant."""
        found, known, returned = relevant_returned(judged, self.rel), all_relevant(judged, self.rel), judged.returned
        value, how = divide(found * found, returned * known), "relevant_found^2 / (returned * R)"
        return judged.step(self, value, how, relevant_found=found, returned=returned, R=known)


_LEAST = 0.00001  # trec_eval's smoothing: neither share can be 0/0


@measure(
    category="incomplete judgments",
    cite="Yilmaz and Aslam 2006",
    use="Only a random sample of the pool was judged: it estimates the AP that full judgments would give.",
    misleads="Documents in the pool that were not judged must be in the qrels with a negative grade; without such rows"
    " it is close to AP, and no estimate.",
    properties=Properties(judged_better_first=True, against_ideal=True),
    tools={"trec_eval": "infAP", "ir_measures": "infAP"},
)
class InfAP(Measure):
    r"""Inferred AP: the precision expected at each relevant document, averaged over all that are relevant.

    .. math:: \mathrm{InfAP} = \frac{1}{R} \sum_{k,\ \text{relevant}} \left( \frac{1}{k} + \frac{k-1}{k}
        \cdot \frac{p}{k-1} \cdot \frac{r + \epsilon}{r + n + 2\epsilon} \right)

    k is the rank of the relevant document; above it stand r relevant documents, n judged not relevant, and p from
    the pool: these and those with a negative grade. What has no judgment was not in the pool and counts as not
    relevant. :math:`\epsilon` is 0.00001, as in trec_eval.

    Examples
    --------
    One document above was judged not relevant: 1/3 + 2/3 * 1/2 * 0, but for epsilon. In the pool without being
    judged, it would be relevant in one of two cases: 1/2 + 1/2 * 1/1 * 1/2.

    >>> round(InfAP().of_list([0, None, 1]), 4)
    0.3333
    >>> InfAP().of_list([-1, 1])
    0.75
    """

    rel: float = param(REL)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Add up the expected precision at the relevant documents, and divide by R."""
        relevant = judged.relevant(self.rel)
        found = judged.count_so_far(relevant) - relevant
        not_relevant = judged.count_so_far((judged.grade >= 0) & ~relevant)
        pooled = found + not_relevant + judged.count_so_far(judged.grade < 0)
        above = judged.rank - 1
        likely = (found + _LEAST) / (found + not_relevant + 2 * _LEAST)
        expected = 1.0 / judged.rank + above / judged.rank * divide(pooled, above) * likely
        judged.column("r", found, "relevant above", where=relevant)
        judged.column("n", not_relevant, "judged not relevant above", where=relevant)
        judged.column("p", pooled, "r, n and what else above is from the pool", where=relevant)
        how = f"1 / rank + (rank - 1) / rank * (p / (rank - 1)) * (r + {_LEAST:.5f}) / (r + n + {2 * _LEAST:.5f})"
        judged.column("expected precision", expected, how, where=relevant, r=found, n=not_relevant, p=pooled)
        total = judged.total("sum of expected precision", expected, "expected precision", where=relevant)
        known = all_relevant(judged, self.rel)
        how = "sum_of_expected_precision / R"
        return judged.step(self, divide(total, known), how, sum_of_expected_precision=total, R=known)


RECALL = Parameter("The recall that must be reached.", None, real(0, 1), required=True)
ROUNDING = Parameter(
    "How a recall c becomes a number of documents: nearest rounds cR, halves up (trec_eval 10); up is the whole part"
    " of cR + 0.9 (trec_eval 9 and before).",
    "nearest",
    one_of("nearest", "up"),
)
POINTS = Parameter("The levels of recall to average over.", tuple(tenth / 10 for tenth in range(11)), several(0, 1))


_HOW_MANY = {"nearest": "recall * R, rounded half up", "up": "the whole part of recall * R + 0.9"}
"""How many relevant documents a recall stands for, in words."""


def highest_from(judged: Judged, counted: Bools, precision: Floats) -> Floats:
    """Give the highest precision at the hits that count, 0 where there are none: (H,) to (T,)."""
    highest = np.zeros(len(judged))
    np.maximum.at(highest, judged.topic[counted], precision[counted])
    return highest


def _documents(share: Floats, rounding: str) -> Floats:
    """Give how many relevant documents a recall stands for."""
    if rounding == "up":
        return np.floor(share + 0.9)
    whole = np.floor(share)
    return whole + (share - whole >= 0.5)  # floor(share + 0.5) would round 0.49999999999999994 up


@measure(
    category="ranked, binary",
    cite="Salton and McGill 1983; trec_eval",
    use="To draw the curve of precision over recall, averaged over topics.",
    misleads="A recall of few relevant documents is not a whole number of them, and tools round it in different ways.",
    aliases={"iprec_at_recall": {}},
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={
        "trec_eval": "iprec_at_recall_0.10 (in version 9 rounding=up)",
        "ir_measures": "IPrec@0.1 (here IPrec(rounding=up)@0.1)",
    },
    at="recall",
)
class IPrec(RelevanceMeasure):
    r"""Interpolated precision: the best precision at this recall or a higher one.

    .. math:: \mathrm{IPrec}@c = \max_{r \ge r_n} \mathrm{P}@r, \quad n = \mathrm{round}(cR)

    :math:`r_n` is the rank of the n-th relevant document; where it was not returned, the score is 0. With n = 0
    the whole ranking counts. An empty ranking scores 0; trec_eval prints nan there for n = 0.

    cR is a product of doubles, as in trec_eval: 0.7 times 45 is 31.499999999999996, so n is 31, where exact arithmetic
    rounds 31.5 to 32. Of the 11 usual recalls and R up to 200 this concerns four cases, and 14 with ``rounding=up``.

    Examples
    --------
    Relevant at ranks 1, 3 and 5 of four: from the second on, the precision is at most 2/3.

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
        """Highest precision from this recall on."""
        found, known = judged.relevant(self.rel), all_relevant(judged, self.rel)
        so_far, needed = judged.count_so_far(found), _documents(self.recall * known, self.rounding)
        judged.step("n", needed, _HOW_MANY[self.rounding], recall=self.recall, R=known)
        counted, precision = found & (so_far >= needed[judged.topic]), so_far / judged.rank
        judged.column("relevant_so_far", so_far, where=found)
        judged.column("precision", precision, "relevant_so_far / rank", where=counted, relevant_so_far=so_far)
        highest = highest_from(judged, counted, precision)
        judged.step("highest precision", highest, "where n or more are relevant so far")
        return judged.step(self, highest, "highest_precision", highest_precision=highest)


@measure(
    category="ranked, binary",
    cite="Salton and McGill 1983; trec_eval",
    use="To compare with results from before 1994; AP has replaced it.",
    misleads="It gives the first relevant document as much weight as a tenth of all of them.",
    aliases={"11pt_avg": {}},
    properties=Properties(perfect=1.0, against_ideal=True, better_first=True),
    tools={"trec_eval": "11pt_avg (in version 9 rounding=up)"},
)
class AP11(RelevanceMeasure):
    r"""Eleven-point average precision: the mean of the interpolated precision at recall 0, 0.1, ..., 1.

    .. math:: \mathrm{AP11} = \frac{1}{11} \sum_{c \in \{0, 0.1, \dots, 1\}} \mathrm{IPrec}@c

    Other recalls may be given: ``points={0.25,0.5,0.75}`` is the three-point average.

    Examples
    --------
    Relevant at ranks 1 and 4 of two: the precision is 1 while one document is enough (2c rounds to 0 or 1, up to a
    recall of 0.7), and 2/4 from 0.8 on.

    >>> round(AP11().of_list([1, 0, 0, 1]), 4)  # (8 + 3 / 2) / 11
    0.8636
    >>> round(AP11(points=(0.2, 0.5, 0.8)).of_list([1, 0, 0, 1]), 4)  # (1 + 1 + 1/2) / 3
    0.8333
    """

    points: tuple[float, ...] = param(POINTS)
    rounding: Literal["nearest", "up"] = param(ROUNDING)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Add up the interpolated precision from the highest recall down, and divide by the number of recalls."""
        found, known = judged.relevant(self.rel), all_relevant(judged, self.rel)
        so_far = judged.count_so_far(found)
        precision = so_far / judged.rank
        judged.column("precision", precision, "relevant_so_far / rank", where=found, relevant_so_far=so_far)
        needed = [_documents(recall * known, self.rounding) for recall in self.points]
        highest = [highest_from(judged, found & (so_far >= n[judged.topic]), precision) for n in needed]
        total = np.zeros(len(judged))
        for one in reversed(highest):  # this order gives trec_eval's last bit
            total += one
        self._write(judged, needed, highest)
        judged.step("sum", total, "highest precisions added up")
        return judged.step(self, total / len(self.points), f"sum / {len(self.points)}", sum=total)

    def _write(self, judged: Judged, needed: Sequence[Floats], highest: Sequence[Floats]) -> None:
        """Show the point of each recall."""
        for at, name in enumerate(judged.query_ids) if judged.working is not None else ():
            columns = {
                "recall": self.points,
                "n": [one[at] for one in needed],
                "highest precision": [one[at] for one in highest],
            }
            how = {"n": _HOW_MANY[self.rounding], "highest precision": "where n or more are relevant so far"}
            judged.rows("recall points" if len(judged) == 1 else f"recall points: {name}", columns, **how)
