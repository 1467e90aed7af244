"""Binary measures over the subtopics of a topic: each subtopic by itself, and all of them alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.split import by_aspect
from judged.scoring.measures.ap import AP
from judged.scoring.measures.arithmetic import divide, relevant_known
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.diversity import covered, distinct_subtopics, show_coverage, subtopics
from judged.scoring.measures.parameters import NEEDED_CUTOFF, REL
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats
    from judged.scoring.judging import Judged


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="Many documents are relevant to each of several intents, and all of them are wanted.",
    misleads="Every intent counts the same, one with a single relevant document like one with a hundred. It does not"
    " punish repetition.",
    aliases={"AP_IA": {}, "MAP_IA": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "MAP-IA", "ir_measures": "AP_IA"},
)
class APIA(RelevanceMeasure):
    r"""Intent-aware average precision: AP for each subtopic separately, averaged over the subtopics.

    .. math:: \mathrm{AP\text{-}IA} = \frac{1}{n} \sum_s \mathrm{AP}_s

    Only the n subtopics to which some judged document is relevant count.

    Examples
    --------
    >>> APIA().of_list([(1, 0), (1, 1)])  # AP is 1 for the first, 0.5 for the second
    0.75
    """

    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Average the AP of the subtopics that have relevant documents."""
        split = by_aspect(judged, "subtopic")
        ap = AP(cutoff=None, rel=self.rel, norm="relevant", judged_only=False, undefined=0.0)
        counted = relevant_known(split.judged, self.rel) > 0
        return split.show_mean(judged, self, "AP", "subtopic", ap.score(split.judged), counted)


@measure(
    category="diversity",
    cite="Agrawal et al. 2009; as in ndeval",
    use="The share of a page that serves an intent, averaged over the intents.",
    misleads="One document that serves every intent is as good as one for each, and repetition is not punished.",
    aliases={"P_IA": {}},
    properties=Properties(every_label=True, additive=True),
    tools={"ndeval": "P-IA@20", "ir_measures": "P_IA@20"},
)
class PIA(RelevanceMeasure):
    r"""Intent-aware precision at k: precision for each subtopic separately, averaged over the subtopics.

    .. math:: \mathrm{P\text{-}IA}@k = \frac{1}{n k} \sum_s |\{\text{documents relevant to } s
        \text{ at rank} \le k\}|

    Only the n subtopics to which some judged document is relevant count. The divisor is k even where fewer documents
    were returned.

    Examples
    --------
    >>> PIA(cutoff=2).of_list([(1, 0), (1, 1)])  # 1 for the first, 0.5 for the second
    0.75
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Labels covered by the first k, divided by k and by the number of subtopics."""
        topic, aspect = covered(judged, self.rel, self.cutoff)
        found, count = np.bincount(topic, minlength=len(judged)), subtopics(judged, self.rel)
        if judged.working is not None:
            show_coverage(judged, self.rel, aspect)
        judged.step("relevant", found.astype(np.float64), "documents of each subtopic, added up")
        share = divide(found, self.cutoff * count)
        return judged.step(self, share, "relevant / (k * n)", relevant=found, k=self.cutoff, n=count)


@measure(
    category="diversity",
    cite="Zhai, Cohen and Lafferty 2003 (S-recall); as in ndeval",
    use="Whether the page touches every meaning of the query at all.",
    misleads="It sees neither the order within the k nor whether a subtopic is served well.",
    aliases={"strec": {}, "subtopic_recall": {}, "S_recall": {}},
    properties=Properties(every_label=True),
    tools={"ndeval": "strec@20", "ir_measures": "StRecall@20"},
)
class StRecall(RelevanceMeasure):
    r"""Subtopic recall: the share of the subtopics that some document among the first k is relevant to.

    .. math:: \mathrm{StRecall}@k = \frac{|\{\text{subtopics covered at rank} \le k\}|}{n}

    n counts the subtopics to which some judged document is relevant.

    Examples
    --------
    >>> StRecall(cutoff=1).of_list([(1, 0), (1, 1)])
    0.5
    """

    cutoff: int = param(NEEDED_CUTOFF)
    rel: float = param(REL)

    def score(self, judged: Judged) -> Floats:
        """Subtopics covered by the first k, divided by all."""
        topic, aspect = covered(judged, self.rel, self.cutoff)
        found, count = distinct_subtopics(judged, topic, aspect), subtopics(judged, self.rel)
        if judged.working is not None:
            show_coverage(judged, self.rel, aspect)
        judged.step("covered", found.astype(np.float64), "subtopics with a document")
        return judged.step(self, divide(found, count), "covered / n", covered=found, n=count)
