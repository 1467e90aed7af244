"""One judged list for each subtopic or assessor of a topic, all in one: any measure can then be averaged over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.ranking import segment_sum

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.judging.judged import Judged


@dataclass(frozen=True, eq=False)
class ByAspect:
    """A judged list whose topics are pairs of a topic and one of its subtopics or assessors.

    With T topics, and S pairs of a topic and an aspect that labels one of its documents.
    """

    # the same ranking S times: each with the documents that this aspect labels, and its grades alone. Its labels are
    # already single ones, so that its own `aspects` mean nothing.
    judged: Judged
    topic: Ints  # (S,): the topic that each stands for; rising
    aspect: Ints  # (S,): the aspect: a position in `qrels.aspects.names`; rising within one topic
    count: int  # the number of topics, T

    def mean(self, scores: Floats, counted: Bools | None = None) -> Floats:
        """Average one score per topic and aspect over the aspects that count; 0 for a topic without: (S,) to (T,)."""
        total, count = self._summed(scores, counted)
        return total / np.maximum(count, 1.0)

    def show_mean(
        self, whole: Judged, name: object, each: str, what: str, scores: Floats, counted: Bools | None = None
    ) -> Floats:
        """Average as `mean` does, and show how: (S,) to (T,)."""
        # `each`, `what`: what is averaged, and over what: `"AP"`, `"subtopic"`.
        mean = self.mean(scores, counted)
        if whole.working is None:
            return mean
        kept = np.flatnonzero(counted) if counted is not None else np.arange(len(scores))
        names = [whole.qrels.aspects.names[code] for code in self.aspect[kept].tolist()]
        if names:
            whole.rows(f"{each} of each {what}", {what: names, each: scores[kept]})
        total, count = self._summed(scores, counted)
        parts = {f"sum_of_{each}": total, f"{what}s": count}
        return whole.step(name, mean, f"sum_of_{each} / {what}s", **parts)

    def _summed(self, scores: Floats, counted: Bools | None) -> tuple[Floats, Floats]:
        counted = np.ones(len(scores), dtype=np.bool_) if counted is None else counted
        return segment_sum(scores * counted, self.topic, self.count), segment_sum(counted, self.topic, self.count)


def by_aspect(judged: Judged, what: str = "aspect") -> ByAspect:
    """Split a judged list by subtopic or assessor.

    A document that an aspect does not label is an unjudged one there. `what` says in a working what the aspects are.

    Examples
    --------
    >>> from judged import AP
    >>> from judged.scoring.judging import judge_list
    >>> split = by_aspect(judge_list([(1, 0), (0, 1)]))  # two assessors, who disagree
    >>> AP()(split.judged).tolist()
    [1.0, 0.5]
    >>> split.mean(AP()(split.judged)).tolist()
    [0.75]
    """
    labels, hits = judged.label_aspects, judged.aspects
    aspects = len(judged.qrels.aspects.names)
    pairs, of_label = np.unique(judged.label_topic[labels.of] * aspects + labels.aspect, return_inverse=True)
    topic, aspect = pairs // aspects, pairs % aspects
    of_hit = np.searchsorted(pairs, judged.topic[hits.of] * aspects + hits.aspect)
    label_order = np.argsort(of_label, kind="stable")
    hit_order = np.argsort(of_hit, kind="stable")  # the hits are in rank order already
    at = hits.of[hit_order]
    label_keys = of_label[label_order] * len(judged.label_topic) + labels.of[label_order]
    hit_keys = of_hit[hit_order] * len(judged.label_topic) + judged.row[at]
    names = judged.qrels.aspects.names
    row = np.searchsorted(label_keys, hit_keys)
    split = replace(
        judged,
        query_ids=tuple(
            f"{judged.query_ids[t]} {names[a]}" for t, a in zip(topic.tolist(), aspect.tolist(), strict=True)
        ),
        returned=judged.returned[topic],
        present=judged.present[topic],
        **judged.hits_at(at, topic=of_hit[hit_order], grade=hits.grade[hit_order], row=row),
        label_topic=of_label[label_order],
        label_grade=labels.grade[label_order],
        label_row=judged.label_row[labels.of[label_order]],
        title=f"{judged.title} for {what}" + (f" {names[aspect[0]]}".rstrip() if len(aspect) == 1 else ""),
        reordered=True,  # its topics are none that the run could be asked for again
    )
    return ByAspect(split, topic, aspect, len(judged))
