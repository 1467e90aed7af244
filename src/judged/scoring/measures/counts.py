"""Counts: how many topics and documents the other numbers stand on. Over topics they are added up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.measures.arithmetic import all_relevant, relevant_returned
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged

_COUNT = Properties(high=None, needs_ranking=False, higher_is_better=None, additive=True, better_first=True)


@measure(
    category="count",
    cite="trec_eval",
    use="To see that runs of different depth are being compared.",
    misleads="It says nothing about quality.",
    aliases={"num_ret": {}},
    aggregate="sum",
    properties=Properties(
        high=None,
        needs_ranking=False,
        ignores_unjudged_tail=False,
        higher_is_better=None,
        missing_matter=False,
        additive=True,
        better_first=True,
        sees_relevance=False,
    ),
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
