"""Counts of topics and documents that other scores are based on, and shares of judged documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.scoring.measures.aggregates import count_relevant, count_relevant_returned, count_returned, explained_ratio
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
    depends_on_missing=False,
    additive=True,
    depends_on_relevance=False,
)


@measure(
    category="count",
    cite="trec_eval",
    use="You want to check that the compared runs have the same depth.",
    misleads="The number of returned documents does not measure quality.",
    aliases={"num_ret": {}},
    aggregate="sum",
    properties=replace(_COUNT, ignores_unjudged_tail=False, depends_on_missing=False, depends_on_relevance=False),
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
        """Return the length of each ranking."""
        return judged.step(self, judged.returned.astype(np.float64), "documents returned")


@measure(
    category="count",
    cite="trec_eval",
    use="You want to check how many relevant documents the averages are based on.",
    misleads="The measure is a property of the qrels, not of the run.",
    aliases={"num_rel": {}},
    aggregate="sum",
    properties=_COUNT,
    tools={"trec_eval": "num_rel", "ir_measures": "NumRel"},
)
class NumRel(Measure):
    r"""Number of relevant documents in the qrels.

    Examples
    --------
    >>> NumRel().of_list([1, None, 0], missing=[2])
    2.0
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Count the relevant judged documents."""
        relevant = count_relevant(judged, self.rel)
        return judged.step(self, relevant, "R", R=relevant)


@measure(
    category="count",
    cite="trec_eval",
    use="You want to know the number of relevant documents that were returned, from which recall is computed.",
    misleads="Topics with many relevant documents dominate the sum.",
    aliases={"num_rel_ret": {}, "hits": {}},
    aggregate="sum",
    properties=Properties(high=None, needs_ranking=False, depends_on_missing=False, additive=True, better_first=True),
    tools={"trec_eval": "num_rel_ret", "ir_measures": "NumRelRet", "ranx": "hits@10 (averaged over topics)"},
)
class NumRelRet(Measure):
    r"""Number of relevant documents that were returned, or that are among the first k.

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
        """Count the relevant documents that were returned."""
        returned = count_relevant_returned(judged, self.rel, self.cutoff)
        return judged.step(self, returned, "relevant_returned", relevant_returned=returned)


@measure(
    category="count",
    cite="trec_eval",
    use="You want to know how many returned documents have a judgment: NumNonrelRet plus NumRelRet, if no grade is"
    " negative.",
    misleads="The number increases with the size of the pool as well as with the errors of the run.",
    aliases={"num_nonrel_judged_ret": {}},
    aggregate="sum",
    properties=Properties(
        high=None, needs_ranking=False, monotone=False, higher_is_better=False, depends_on_missing=False, additive=True
    ),
    tools={"trec_eval": "num_nonrel_judged_ret"},
)
class NumNonrelRet(Measure):
    r"""Number of returned documents that are judged not relevant.

    Documents with a negative grade are not counted.

    Examples
    --------
    >>> NumNonrelRet().of_list([1, None, 0, -1], missing=[0])
    1.0
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Count the returned documents with a grade from 0 to below `rel`."""
        counted = judged.column("judged not relevant", (judged.grade >= 0) & ~judged.relevant(self.rel))
        return judged.summed(
            self, judged.sum(counted), "judged not relevant", "sum of the column 'judged not relevant'"
        )


@measure(
    category="count",
    cite="trec_eval",
    use="You want to know the number of topics that the means are based on.",
    misleads="More topics of one kind give no evidence about topics of another kind.",
    aliases={"num_q": {}},
    aggregate="count",
    properties=replace(_COUNT, depends_on_relevance=False, depends_on_missing=False),
    tools={"trec_eval": "num_q", "ir_measures": "NumQ"},
)
class NumQ(Measure):
    r"""Number of topics: 1 for each topic.

    Examples
    --------
    >>> NumQ().of_list([1, None, 0])
    1.0
    """

    def score(self, judged: Judged) -> Floats:
        """Return 1 for each topic."""
        return judged.step(self, np.ones(len(judged)), "1 for each topic")


@measure(
    name="Judged",
    category="incomplete judgments",
    cite="ir_measures",
    use="Report the share of judged documents with every other measure, to see how reliable the scores of a run are.",
    misleads="A high share does not mean quality: a run can return judged documents that are all not relevant.",
    properties=replace(_OF_JUDGMENTS, perfect=1.0),
    aliases={"JudgedShare": {}},
    tools={"ir_measures": "Judged@10"},
)
class JudgedShare(Measure):
    r"""Share of the first k returned documents that have a judgment, with any grade.

    .. math:: \mathrm{Judged}@k = \frac{|\{\text{judged documents at rank} \le k\}|}{\min(k, \text{returned})}

    An empty ranking scores 0.

    Examples
    --------
    >>> from judged.scoring.measures import parse
    >>> parse("Judged@10").of_list([1, None, 0, None])
    0.5
    """

    cutoff: int | None = param(CUTOFF)

    def score(self, judged: Judged) -> Floats:
        """Divide the number of judged documents among the first k by that of returned documents."""
        counted = judged.within(self.cutoff)
        # Every hit has a judgment: documents without one are not among the hits.
        judged.column("judged", counted, where=counted)
        judged_count = judged.summed("judged returned", judged.sum(counted), "judged", "sum of the column 'judged'")
        returned = count_returned(judged, self.cutoff)
        return explained_ratio(judged, self, judged_returned=judged_count, returned=returned)


@measure(
    name="Unjudged",
    category="incomplete judgments",
    cite="trec_eval 10 (unj)",
    use="You want to know the share of missing judgments at the ranks that users see.",
    misleads="The divisor is k even for a short list, and a negative grade counts as unjudged. For a short list or"
    " negative grades, the score is not 1 - Judged@k.",
    aliases={"unj": {}, "UnjudgedShare": {}},
    properties=_OF_JUDGMENTS,
    tools={"trec_eval": "unj_10"},
)
class UnjudgedShare(Measure):
    r"""Share of the first k ranks that have a document without a judgment, or with a negative grade.

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
        """Divide the number of unjudged documents among the first k by k."""
        within = judged.within(self.cutoff)
        is_judged = judged.column("judged", judged.grade >= 0, where=within)
        judged_count = judged.summed(
            "judged returned", judged.sum(is_judged & within), "judged", "sum of the column 'judged'"
        )
        returned = count_returned(judged, self.cutoff)
        unjudged = judged.step(
            "unjudged",
            returned - judged_count,
            "returned - judged_returned",
            returned=returned,
            judged_returned=judged_count,
        )
        if self.cutoff is None:
            return explained_ratio(judged, self, unjudged=unjudged, returned=returned)
        return explained_ratio(judged, self, unjudged=unjudged, k=self.cutoff)


_MAX_SHOWN = 50  # ranks that an explanation shows one by one


@measure(
    category="incomplete judgments",
    cite="Thakur et al. 2021 (BEIR)",
    use="You want to know how different a run is from the pool: which share of its documents were judged for no topic.",
    misleads="A document that was judged only for another topic does not count as a hole, although its relevance to the"
    " current topic is unknown. Unjudged@k counts such a document.",
    properties=replace(_OF_JUDGMENTS, depends_on_missing=True, topics_independent=False),
    tools={"BEIR": "Hole@10"},
)
class Hole(Measure):
    r"""Share of the first k ranks with a document that is not judged for any topic of the qrels.

    .. math:: \mathrm{Hole}@k = \frac{|\{\text{documents at rank} \le k\ \text{judged for no topic}\}|}{k}

    A negative grade is a judgment. The divisor is k, even if fewer documents were returned.

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
        """Divide the number of documents without any judgment among the first k by k."""
        returned = judged.returned_docs
        # A document counts as judged if it is in the qrels of any topic, so the score depends on other topics.
        is_judged = pc.is_in(returned.doc, value_set=pa.array(judged.qrels.index.row_names, pa.string()))
        is_hole, within = ~np.asarray(is_judged, dtype=np.bool_), returned.rank <= self.cutoff
        holes = np.bincount(returned.topic[is_hole & within], minlength=len(judged)).astype(np.float64)
        if judged.calculation is not None:
            self._explain(judged, is_hole[within].astype(np.float64), holes)
        return explained_ratio(judged, self, holes=holes, k=self.cutoff)

    def _explain(self, judged: Judged, is_hole: Floats, holes: Floats) -> None:
        top = is_hole[:_MAX_SHOWN]
        judged.by_rank("hole", top, "judged for no topic")
        if len(is_hole) <= _MAX_SHOWN:
            judged.summed("holes", holes, "hole", "sum of the column 'hole'")
        else:
            judged.summed(f"holes to rank {_MAX_SHOWN}", top.sum(keepdims=True), "hole", "sum of the column 'hole'")
            judged.step("holes", holes, f"number of holes at ranks 1 to {self.cutoff}")


def relstring(judged: Judged, length: int = 10) -> list[str]:
    """Format the grades of the first documents of each topic with one character each, as in trec_eval.

    >>> from judged.scoring.judging import judge_list
    >>> relstring(judge_list([3, None, 0, -1, 12, 1]))
    ['3-0.>1']
    >>> relstring(judge_list([3, None, 0]), 2)
    ['3-']
    """
    # A digit is the integer part of the grade, `>` a grade of 10 or more, `.` a negative grade, `-` no judgment.
    characters = [["-"] * min(int(returned), max(length, 0)) for returned in judged.returned]
    within = judged.rank <= length
    hits = zip(judged.topic[within].tolist(), judged.rank[within].tolist(), judged.grade[within].tolist(), strict=True)
    for topic, rank, grade in hits:
        characters[topic][rank - 1] = _character(grade)
    return ["".join(topic_characters) for topic_characters in characters]


def _character(grade: float) -> str:
    if grade < 0:
        return "."
    return ">" if grade >= 10 else str(int(grade))
