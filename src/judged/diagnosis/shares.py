"""What each document adds to the score of a topic, for measures where each adds its share by itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from judged.judging.variants import placed

if TYPE_CHECKING:
    from judged.judging import Judged
    from judged.measures import Measure

_ROUNDING = 1e-9


def shares(one: Judged, measure: Measure) -> dict[str, float] | None:
    """Ask a measure what each judged document that was returned adds to the score of the only topic.

    >>> from judged import judge_list
    >>> from judged.measures import parse
    >>> shares(judge_list([3, None, 1], missing=[2]), parse("P@2")), shares(judge_list([1]), parse("AP"))
    ({'d1': 0.5, 'd3': 0.0}, None)
    """
    # The measure scores lists with one of the documents each, at its rank, and one without any: what a document adds is
    # the difference. Nothing is known of the measure but that it declares itself additive, and that the shares and the
    # score of nothing add up to the score. Returns by document id, 0 for those that add nothing; None where documents
    # do not add shares by themselves, or only by being judged.
    if not measure.properties.additive or not measure.properties.sees_relevance:
        return None
    cutoff = getattr(measure, "cutoff", None)
    seen = np.flatnonzero(one.within(cutoff if isinstance(cutoff, int) else None))
    rank = one.rank[seen]
    asked = placed(one, np.zeros(len(seen) + 1, dtype=np.int64), np.arange(len(seen)), seen, rank)
    scores = measure(asked)
    added, nothing = scores[:-1] - scores[-1], float(scores[-1])
    if not math.isclose(float(added.sum()) + nothing, float(measure(one)[0]), rel_tol=_ROUNDING, abs_tol=_ROUNDING):
        return None
    made = dict.fromkeys(one.doc, 0.0)
    docs = one.doc
    made.update((docs[at], share) for at, share in zip(seen.tolist(), added.tolist(), strict=True))
    return made
