"""The split of a loss: what is lost at each step, from all judged documents to the list that people see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import measures_of
from judged.scoring.judging.variants import placed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.base import Measure

POSITIVE = float(np.nextafter(0, 1))
"""The `rel` of measures that have none: any grade above 0."""
_ROUNDING = 1e-12  # of the larger of two scores
ORDER = "order"
"""The last part of a loss: by the order of the list that people see."""


class Split(NamedTuple):
    """What each topic lost, (T,) each: ``parts`` add up to ``best - score``."""

    best: Floats  # of the best order of all judged documents
    attainable: Mapping[str, Floats]  # of the best order of what is still there behind each step
    score: Floats
    parts: Mapping[str, Floats]  # by step, and by `ORDER`


def split(measure: Measure, sets: Mapping[str, Judged], final: Judged) -> Split:
    """Split what was lost: with U(S) the measure of the best order of S, a step's part is U before it less U behind it.

    A part is negative where a step adds documents. What rounding alone leaves is 0.
    """
    best, score = measure(final.ideal), measure(final)
    attainable = {name: measure(best_order(documents)) for name, documents in sets.items()}
    parts: dict[str, Floats] = {}
    before = best
    for name, after in {**attainable, ORDER: score}.items():
        part = before - after
        part[np.abs(part) <= _ROUNDING * np.maximum(np.abs(before), np.abs(after))] = 0.0
        parts[name], before = part, after
    return Split(best, attainable, score, parts)


def one_measure(given: Any) -> Measure:
    """Take a measure, its class or its name."""
    measures = measures_of(given)
    if len(measures) != 1:
        raise InputError(f"{given} are {len(measures)} measures", fix="name one, such as nDCG@10")
    return measures[0]


def check_measure(measure: Measure) -> None:
    """Refuse measures for which "relevant documents first, best grade first" need not be the best order."""
    unrestricted = measure.replace(judged_only=False) if getattr(measure, "judged_only", False) else measure
    known = unrestricted.properties
    ordered = known.better_first or known.judged_better_first
    usable = known.needs_ranking and known.sees_relevance and known.higher_is_better and known.ignores_unjudged_tail
    mean = measure.entry.aggregate == "mean"
    if ordered and usable and mean and not known.every_label and known.topics_apart:
        return
    why = "need not be highest for the best grades first"
    if not known.needs_ranking:
        why = "does not look at the order"
    elif not mean:
        why = f"is a {measure.entry.aggregate}, which parts do not add up to"
    raise MeasureError(
        f"{measure} {why}: its loss cannot be split into stages. Fix: take one such as nDCG@10, AP, RR@10, P@10"
    )


def best_order(judged: Judged) -> Judged:
    """Put the documents of each topic into the best order: grades falling, then unjudged ones, then negative grades.

    >>> from judged.scoring.judging import judge_list
    >>> best = best_order(judge_list([None, -1, 1, 3], missing=[2]))
    >>> best.rank.tolist(), best.grade.tolist()
    ([1, 2, 4], [3.0, 1.0, -1.0])
    """
    hit = np.lexsort((-judged.grade, judged.topic))
    topic = judged.topic[hit]
    rank = np.arange(len(hit)) - judged.starts[topic] + 1
    unjudged = judged.returned - np.diff(judged.starts)
    rank = np.where(judged.grade[hit] < 0, rank + unjudged[topic], rank)
    ordered = placed(judged, np.arange(len(judged)), topic, hit, rank)
    return replace(ordered, reordered=True, title="best order of the candidates")
