"""Counts: how many topics and documents the other numbers stand on. Over topics they are added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.measures.arithmetic import relevant_known, relevant_returned
from judged.measures.base import Measure, Properties, measure, param
from judged.measures.parameters import REL

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.judging import Judged

_COUNT = Properties(high=None, needs_ranking=False, higher_is_better=None)


@measure(
    family="count",
    cite="trec_eval",
    use="To see that runs of different depth are being compared.",
    misleads="It says nothing of quality.",
    aliases={"num_ret": {}},
    aggregate="sum",
    properties=Properties(high=None, needs_ranking=False, ignores_unjudged_tail=False, higher_is_better=None),
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
        return judged.returned.astype(np.float64)


@measure(
    family="count",
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
        return relevant_known(judged, self.rel)


@measure(
    family="count",
    cite="trec_eval",
    use="The raw count behind recall.",
    misleads="Topics with many relevant documents dominate the sum.",
    aliases={"num_rel_ret": {}},
    aggregate="sum",
    properties=Properties(high=None, needs_ranking=False),
    tools={"trec_eval": "num_rel_ret", "ir_measures": "NumRelRet"},
)
class NumRelRet(Measure):
    r"""Number of relevant documents returned.

    Examples
    --------
    >>> NumRelRet().of_list([1, None, 0], missing=[2])
    1.0
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Relevant returned documents."""
        return relevant_returned(judged, self.rel)


@measure(
    family="count",
    cite="trec_eval",
    use="The number of topics that the means rest on.",
    misleads="More topics of one kind are not more evidence about another.",
    aliases={"num_q": {}},
    aggregate="count",
    properties=_COUNT,
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
        return np.ones(len(judged))
