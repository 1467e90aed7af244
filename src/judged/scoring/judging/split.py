"""Split judged lists by subtopic or assessor, so that any measure can be averaged over them."""

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
    """A judged list whose topics are pairs of a topic and one of its subtopics or assessors ("aspects").

    With T topics, and S pairs of a topic and an aspect that labels one of its documents.
    """

    # S copies of the ranking, each with the documents and grades of one aspect only. Do not use the `aspects` of this
    # list: its labels are already individual ones.
    judged: Judged
    topic: Ints  # (S,): topic of each pair; ascending
    aspect: Ints  # (S,): aspect of each pair: a position in `qrels.aspects.names`; ascending within a topic
    count: int  # number of topics, T

    def mean(self, scores: Floats, counted: Bools | None = None) -> Floats:
        """Average scores per topic and aspect over the counted aspects; 0 for a topic without any: (S,) to (T,)."""
        total, count = self._sums(scores, counted)
        return total / np.maximum(count, 1.0)

    def record_mean(
        self, unsplit: Judged, name: object, score: str, aspect: str, scores: Floats, counted: Bools | None = None
    ) -> Floats:
        """Average as `mean` does, and record the calculation in the unsplit list: (S,) to (T,)."""
        # `score`, `aspect`: singular nouns for the explanation, such as `"AP"` and `"subtopic"`.
        mean = self.mean(scores, counted)
        if unsplit.calculation is None:
            return mean
        rows = np.flatnonzero(counted) if counted is not None else np.arange(len(scores))
        names = [unsplit.qrels.aspects.names[code] for code in self.aspect[rows].tolist()]
        if names:
            unsplit.rows(f"{score} of each {aspect}", {aspect: names, score: scores[rows]})
        total, count = self._sums(scores, counted)
        parts = {f"sum_of_{score}": total, f"{aspect}s": count}
        return unsplit.step(name, mean, f"sum_of_{score} / {aspect}s", **parts)

    def _sums(self, scores: Floats, counted: Bools | None) -> tuple[Floats, Floats]:
        counted = np.ones(len(scores), dtype=np.bool_) if counted is None else counted
        return segment_sum(scores * counted, self.topic, self.count), segment_sum(counted, self.topic, self.count)


def by_aspect(judged: Judged, noun: str = "aspect") -> ByAspect:
    """Split a judged list by subtopic or assessor.

    A document without a label of an aspect is unjudged for this aspect. `noun` names the aspects in explanations.

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
    pairs, of_label = np.unique(judged.label_topic[labels.owner] * aspects + labels.aspect, return_inverse=True)
    topic, aspect = pairs // aspects, pairs % aspects
    of_hit = np.searchsorted(pairs, judged.topic[hits.owner] * aspects + hits.aspect)
    label_order = np.argsort(of_label, kind="stable")
    hit_order = np.argsort(of_hit, kind="stable")  # the hits are in rank order already
    hit = hits.owner[hit_order]
    label_keys = of_label[label_order] * len(judged.label_topic) + labels.owner[label_order]
    hit_keys = of_hit[hit_order] * len(judged.label_topic) + judged.row[hit]
    names = judged.qrels.aspects.names
    row = np.searchsorted(label_keys, hit_keys)
    split = replace(
        judged,
        query_ids=tuple(
            f"{judged.query_ids[t]} {names[a]}" for t, a in zip(topic.tolist(), aspect.tolist(), strict=True)
        ),
        returned=judged.returned[topic],
        present=judged.present[topic],
        **judged.hit_columns(hit, topic=of_hit[hit_order], grade=hits.grade[hit_order], row=row),
        label_topic=of_label[label_order],
        label_grade=labels.grade[label_order],
        label_row=judged.label_row[labels.owner[label_order]],
        title=f"{judged.title} for {noun}" + (f" {names[aspect[0]]}".rstrip() if len(aspect) == 1 else ""),
        reordered=True,  # the run has no such topics, so their documents cannot be read from it
    )
    return ByAspect(split, topic, aspect, len(judged))
