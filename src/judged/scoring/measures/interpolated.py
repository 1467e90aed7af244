"""Interpolated precision: the curve of precision over recall, and its mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import REL, Parameter, one_of, real, several
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from judged._types import Bools, Floats
    from judged.scoring.judging import Judged

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
