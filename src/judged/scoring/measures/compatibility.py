"""Compatibility: how like the ideal ranking a ranking is, without gains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.scoring.judging.segments import segment_starts
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Measure, Properties, param
from judged.scoring.measures.parameters import UNDEFINED, Parameter, real, spell, yes_no
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Undefined

DEPTH = 1000
"""How deep the two rankings are compared, as in the authors' script; shorter ones just end."""

_BLOCK = 256  # topics at a time: each needs a row as long as the depth

_SHOWN = 20  # depths of a working: below, the sum is given

PERSISTENCE = Parameter("The weight of each depth as a share of that of the depth above.", 0.95, real(0, 1))
NORMALIZE = Parameter(
    "Divide by what the ideal ranking itself reaches, which is less than 1 where it is short.", True, yes_no
)


@measure(
    category="graded",
    cite="Clarke, Vtyurina and Smucker 2021 (normalised); Clarke, Smucker and Vtyurina 2020",
    use="For preferences or many fine grades, where only the order of the documents is known"
    " and no gain can be assigned.",
    misleads="It compares with the ideal that is nearest to the ranking itself, so two runs are"
    " compared with two different ideals. Only the order of the grades counts: how far"
    " apart they are does not.",
    properties=Properties(graded=True, monotone=False, better_first=True),
    tools={"compatibility.py": "compatibility", "ir_measures": "Compat (not so deep; see the definition)"},
)
class Compat(Measure):
    r"""Compatibility: the rank-biased overlap of the ranking with the ideal ranking nearest to it.

    .. math:: \mathrm{Compat} = \frac{\mathrm{RBO}(\text{ranking}, \text{ideal})}
        {\mathrm{RBO}(\text{ideal}, \text{ideal})}, \quad
        \mathrm{RBO}(A, B) = \frac{\sum_{d=1}^{1000} p^{d-1}\,|A_{1..d} \cap B_{1..d}| / d}{\sum_{d=1}^{1000} p^{d-1}}

    The ideal ranking holds the documents with a positive grade, by descending grade. Documents of one grade are in the
    order in which the ranking has them, and those that were not returned come last among them. ``normalize=false``
    leaves the divisor out, as the papers of 2020 do.

    The authors' script orders tied scores by ascending document id (the policy ``ties="docid-rising"``) and leaves
    out topics without a positive grade (``undefined=skip``) and those that the run does not have. ir_measures
    ends the sums where the longer list ends instead of at 1000, and orders documents of one grade by score with 0
    for those not returned, so that its number changes when a constant is added to all scores.

    Examples
    --------
    One of the two relevant documents is returned, at rank 1: one document is shared at every depth, of two that
    the ideal shares with itself from depth 2 on. The sum of 0.5^(d-1) / d over all d is 2 ln 2 = 1.3863.

    >>> round(Compat(p=0.5).of_list([1], missing=[1]), 4)  # 1.3863 / (1 + 2 x 0.3863)
    0.7821
    >>> Compat().of_list([3, 2, 2, 1])
    1.0
    >>> Compat().of_list([30, 20, 20, 10])  # only the order counts
    1.0
    """

    p: float = param(PERSISTENCE)
    normalize: bool = param(NORMALIZE)
    undefined: Undefined = param(UNDEFINED)

    def score(self, judged: Judged) -> Floats:
        """Overlap with the ideal, divided by the overlap of the ideal with itself."""
        rank = np.full(len(judged.label_grade), DEPTH + 1, dtype=np.int64)  # not returned: below everything
        rank[judged.row] = judged.rank
        best = np.flatnonzero(judged.label_grade > 0)
        best = best[np.lexsort((rank[best], -judged.label_grade[best], judged.label_topic[best]))]
        topic = judged.label_topic[best]
        place = np.arange(len(best)) - segment_starts(topic, len(judged))[topic] + 1
        since = np.maximum(place, rank[best])
        ideal = _ideal(judged, best, place, rank[best], since)
        overlap = self._overlap(judged, "RBO", topic, since)
        if not self.normalize:
            return judged.step(self, overlap, "RBO", RBO=overlap)
        own = self._overlap(ideal, "ideal RBO", topic, place)
        return judged.step(self, divide(overlap, own), "RBO / ideal_RBO", RBO=overlap, ideal_RBO=own)

    def _overlap(self, on: Judged, name: str, topic: Ints, since: Ints) -> Floats:
        """Give the rank-biased overlap of each topic, where `since` is the depth from which a document is shared."""
        topic, since, count = topic[since <= DEPTH], since[since <= DEPTH], len(on)
        weights = np.cumprod(np.concatenate(([1.0], np.full(DEPTH - 1, self.p))), dtype=np.float64)
        total = np.empty(count)
        for first in range(0, count, _BLOCK):
            size = min(_BLOCK, count - first)
            one = slice(*np.searchsorted(topic, (first, first + size)))
            new = np.bincount((topic[one] - first) * DEPTH + since[one] - 1, minlength=size * DEPTH)
            shared = np.cumsum(new.reshape(size, DEPTH), axis=1)
            added = weights * shared / np.arange(1, DEPTH + 1)
            total[first : first + size] = np.cumsum(added, axis=1)[:, -1]
            if on.working is not None:
                self._write(on, weights, shared[0].astype(np.float64), added[0])
        all_weights = np.cumsum(weights)[-1]
        on.step("sum", total, f"the same to depth {DEPTH}")
        on.step("weights", np.full(count, all_weights), f"all weights to depth {DEPTH}")
        return on.step(name, total / all_weights, "sum / weights", sum=total, weights=all_weights)

    def _write(self, on: Judged, weights: Floats, shared: Floats, added: Floats) -> None:
        """Show what the overlap at each depth adds, down to where nothing new is shared."""
        shown = min(int(np.argmax(shared == shared[-1])) + 1, _SHOWN)
        on.by_rank("weight", weights[:shown], f"{spell(self.p)}^(rank - 1)")
        on.by_rank("shared", shared[:shown], "in both rankings down to this rank")
        how = "weight * shared / rank"
        on.by_rank(how, added[:shown], how, weight=weights[:shown], shared=shared[:shown])
        on.summed(f"sum to depth {shown}", added[:shown].sum(keepdims=True), how)


def _ideal(judged: Judged, best: Ints, place: Ints, rank: Ints, since: Ints) -> Judged:
    """Make the ideal ranking, and show from which depth on each document is shared; only where there is a working."""
    if judged.working is None:
        return judged
    value = np.full(len(judged.label_grade), -np.inf)
    value[best] = -place
    ideal = judged.ideal_by(value, title="nearest ideal ranking")
    how, returned = "max(rank, rank_in_the_run)", rank <= DEPTH
    ideal.column("shared from depth", since, how, where=returned, rank_in_the_run=rank)
    return ideal
