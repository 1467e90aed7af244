"""Counts: how many topics and documents the other numbers stand on. Over topics they are added up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.scoring.measures.aggregates import all_relevant, divide, relevant_returned, returned_within
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import CUTOFF, NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged.results.types import Floats
    from judged.scoring.judging import Judged


_COUNT = Properties(high=None, needs_ranking=False, higher_is_better=None, additive=True, better_first=True)
_OF_JUDGMENTS = Properties(
    ignores_unjudged_tail=False,
    monotone=False,
    perfect=0.0,
    higher_is_better=None,
    missing_matter=False,
    additive=True,
    sees_relevance=False,
)


@measure(
    category="count",
    cite="trec_eval",
    use="To see that runs of different depth are being compared.",
    misleads="It says nothing about quality.",
    aliases={"num_ret": {}},
    aggregate="sum",
    properties=replace(_COUNT, ignores_unjudged_tail=False, missing_matter=False, sees_relevance=False),
    tools={"trec_eval": "num_ret", "ir_measures": "NumRet"},
)
class NumRet(Measure):
    r"""Number of documents returned, judged or not.

    Examples
    --------
    >>> NumRet().of_list([1, None, 0])
    3.0
    """

    def score(self, judged: Judged) -> Floats:
        """Take the length of each ranking."""
        return judged.step(self, judged.returned.astype(np.float64), "documents returned")


@measure(
    category="count",
    cite="trec_eval",
    use="To see how many relevant documents the averages rest on.",
    misleads="It is a property of the qrels, not of the run.",
    aliases={"num_rel": {}},
    aggregate="sum",
    properties=_COUNT,
    tools={"trec_eval": "num_rel", "ir_measures": "NumRel"},
)
class NumRel(Measure):
    r"""Number of relevant documents that the qrels know.

    Examples
    --------
    >>> NumRel().of_list([1, None, 0], missing=[2])
    2.0
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant judged documents."""
        known = all_relevant(judged, self.rel)
        return judged.step(self, known, "R", R=known)


@measure(
    category="count",
    cite="trec_eval",
    use="The raw count behind recall.",
    misleads="Topics with many relevant documents dominate the sum.",
    aliases={"num_rel_ret": {}, "hits": {}},
    aggregate="sum",
    properties=Properties(high=None, needs_ranking=False, missing_matter=False, additive=True, better_first=True),
    tools={"trec_eval": "num_rel_ret", "ir_measures": "NumRelRet", "ranx": "hits@10 (averaged over topics)"},
)
class NumRelRet(Measure):
    r"""Number of relevant documents returned, or among the first k.

    Examples
    --------
    >>> NumRelRet().of_list([1, None, 0], missing=[2])
    1.0
    >>> NumRelRet(cutoff=2).of_list([1, 0, 1])
    1.0
    """

    cutoff: int | None = param(CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned documents."""
        found = relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, found, "relevant_found", relevant_found=found)


@measure(
    category="count",
    cite="trec_eval",
    use="With NumRelRet: how many of the returned documents have a judgment at all.",
    misleads="It grows with the pool as well as with the errors of the run.",
    aliases={"num_nonrel_judged_ret": {}},
    aggregate="sum",
    properties=Properties(
        high=None, needs_ranking=False, monotone=False, higher_is_better=False, missing_matter=False, additive=True
    ),
    tools={"trec_eval": "num_nonrel_judged_ret"},
)
class NumNonrelRet(Measure):
    r"""Number of documents returned that are judged not relevant.

    Documents with a negative grade are not counted.

    Examples
    --------
    >>> NumNonrelRet().of_list([1, None, 0, -1], missing=[0])
    1.0
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Returned documents with a grade from 0 that is below the level."""
        counted = judged.column("judged not relevant", (judged.grade >= 0) & ~judged.relevant(self.rel))
        return judged.summed(self, judged.sum(counted), "judged not relevant")


@measure(
    category="count",
    cite="trec_eval",
    use="The number of topics that the means rest on.",
    misleads="More topics of one kind are not more evidence about another.",
    aliases={"num_q": {}},
    aggregate="count",
    properties=replace(_COUNT, sees_relevance=False, missing_matter=False),
    tools={"trec_eval": "num_q", "ir_measures": "NumQ"},
)
class NumQ(Measure):
    r"""Number of topics: 1 for each.

    Examples
    --------
    >>> NumQ().of_list([1, None, 0])
    1.0
    """

    def score(self, judged: Judged) -> Floats:
        """One a topic."""
        return judged.step(self, np.ones(len(judged)), "1 for each topic")


@measure(
    name="Judged",
    category="incomplete judgments",
    cite="ir_measures",
    use="Beside every other measure, to see how far the numbers of this run can be trusted.",
    misleads="A high share does not mean quality: a run can return judged documents that are all bad.",
    properties=replace(_OF_JUDGMENTS, perfect=1.0),
    aliases={"JudgedShare": {}},
    tools={"ir_measures": "Judged@10"},
)
class JudgedShare(Measure):
    r"""Share of the first k returned documents that have a judgment, of whatever grade.

    .. math:: \mathrm{Judged}@k = \frac{|\{\text{judged documents at rank} \le k\}|}{\min(k, \text{returned})}

    Nothing returned scores 0.

    Examples
    --------
    >>> from judged.scoring.measures import parse
    >>> parse("Judged@10").of_list([1, None, 0, None])
    0.5
    """

    cutoff: int | None = param(CUTOFF)

    def score(self, judged: Judged) -> Floats:
        """Judged in the first k, divided by returned in the first k."""
        counted = judged.within(self.cutoff)
        judged.column("judged", counted, where=counted)
        known = judged.summed("judged found", judged.sum(counted), "judged")
        returned = returned_within(judged, self.cutoff)
        how = "judged_found / returned"
        return judged.step(self, divide(known, returned), how, judged_found=known, returned=returned)


@measure(
    name="Unjudged",
    category="incomplete judgments",
    cite="trec_eval 10 (unj)",
    use="How many holes the judgments have where users look.",
    misleads="The divisor is k even for a short list, and a negative grade counts as unjudged: then it is not"
    " 1 - Judged@k.",
    aliases={"unj": {}, "UnjudgedShare": {}},
    properties=_OF_JUDGMENTS,
    tools={"trec_eval": "unj_10"},
)
class UnjudgedShare(Measure):
    r"""Share of the first k places that hold a document without a judgment, or with a negative grade.

    .. math:: \mathrm{Unjudged}@k = \frac{|\{\text{unjudged documents at rank} \le k\}|}{k}

    Examples
    --------
    >>> from judged.scoring.measures import parse
    >>> parse("Unjudged@4").of_list([1, None, 0, -1])
    0.5
    >>> parse("Unjudged@10").of_list([1, None])
    0.1
    """

    cutoff: int | None = param(CUTOFF)

    def score(self, judged: Judged) -> Floats:
        """Unjudged in the first k, divided by k."""
        counted = judged.within(self.cutoff)
        is_known = judged.column("judged", judged.grade >= 0, where=counted)
        known = judged.summed("judged found", judged.sum(is_known & counted), "judged")
        returned = returned_within(judged, self.cutoff)
        unjudged = judged.step(
            "unjudged", returned - known, "returned - judged_found", returned=returned, judged_found=known
        )
        if self.cutoff is None:
            value = divide(unjudged, returned)
            return judged.step(self, value, "unjudged / returned", unjudged=unjudged, returned=returned)
        return judged.step(self, divide(unjudged, self.cutoff), "unjudged / k", unjudged=unjudged, k=self.cutoff)


_SHOWN = 50  # ranks of a working: below, the sum is given


@measure(
    category="incomplete judgments",
    cite="Thakur et al. 2021 (BEIR)",
    use="How foreign a run is to the collection's pool as a whole: it counts documents that"
    " no earlier system brought up.",
    misleads="A document that was judged for another topic counts as known here, though nobody knows whether it is"
    " relevant to this one; Unjudged@k counts it.",
    properties=replace(_OF_JUDGMENTS, missing_matter=True, topics_apart=False),
    tools={"BEIR": "Hole@10"},
)
class Hole(Measure):
    r"""Share of the first k places that hold a document which is judged for no topic at all.

    .. math:: \mathrm{Hole}@k = \frac{|\{\text{documents at rank} \le k\ \text{judged for no topic}\}|}{k}

    A negative grade is a judgment. The divisor is k even where fewer documents were returned.

    Examples
    --------
    >>> Hole(cutoff=4).of_list([1, None, 0, None])
    0.5
    >>> from judged import evaluate
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    >>> scores = evaluate(qrels, {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"b": 1.0}}, ["Hole@3", "Unjudged@3"])
    >>> [round(by_topic["q1"], 4) for by_topic in scores.per_topic()["run"].values()]  # b is judged, for q2
    [0.3333, 0.6667]
    """

    cutoff: int = param(NEEDED_CUTOFF)

    def score(self, judged: Judged) -> Floats:
        """Documents without any judgment in the first k, divided by k."""
        every = judged.everything
        known = pc.is_in(every.doc, value_set=pa.array(judged.qrels.index.row_names, pa.string()))
        hole, first = ~np.asarray(known, dtype=np.bool_), every.rank <= self.cutoff
        holes = np.bincount(every.topic[hole & first], minlength=len(judged)).astype(np.float64)
        if judged.working is not None:
            self._write(judged, hole[first].astype(np.float64), holes)
        return judged.step(self, holes / self.cutoff, "holes / k", holes=holes, k=self.cutoff)

    def _write(self, judged: Judged, hole: Floats, holes: Floats) -> None:
        """Show the holes of a page; of a long one, where it begins."""
        shown = hole[:_SHOWN]
        judged.by_rank("hole", shown, "judged for no topic")
        if len(hole) <= _SHOWN:
            judged.summed("holes", holes, "hole")
        else:
            judged.summed(f"holes to rank {_SHOWN}", shown.sum(keepdims=True), "hole")
            judged.step("holes", holes, f"the same to rank {self.cutoff}")


def relstring(judged: Judged, length: int = 10) -> list[str]:
    """Write the grades of the first documents of each topic, one character each.

    >>> from judged.scoring.judging import judge_list
    >>> relstring(judge_list([3, None, 0, -1, 12, 1]))
    ['3-0.>1']
    >>> relstring(judge_list([3, None, 0]), 2)
    ['3-']
    """
    # A digit is the grade (its whole part), `>` a grade of 10 or more, `.` a negative grade, `-` a document without a
    # judgment.
    shown = [["-"] * min(int(returned), max(length, 0)) for returned in judged.returned]
    kept = judged.rank <= length
    hits = zip(judged.topic[kept].tolist(), judged.rank[kept].tolist(), judged.grade[kept].tolist(), strict=True)
    for topic, rank, grade in hits:
        shown[topic][rank - 1] = _character(grade)
    return ["".join(characters) for characters in shown]


def _character(grade: float) -> str:
    if grade < 0:
        return "."
    return ">" if grade >= 10 else str(int(grade))
