"""Graded average precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.scoring.judging.segments import running_count, running_sum
from judged.scoring.measures.arithmetic import divide
from judged.scoring.measures.base import Properties, RelevanceMeasure, param
from judged.scoring.measures.parameters import Parameter, shares, spell
from judged.scoring.measures.registry import measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from judged._types import Floats
    from judged.scoring.judging import Judged
    from judged.scoring.measures.parameters import Takes

Thresholds: TypeAlias = str | tuple[tuple[float, float], ...]


def _grade(given: Any) -> float:
    grade = float(given)
    if not 0 < grade < float("inf"):
        raise ValueError
    return grade


def _thresholds(given: Any) -> Thresholds:
    return given if given == "equal" else shares(given, _grade, "equal, or grades above 0 with", "{1:0.4,2:0.6}")


THRESHOLDS = Parameter(
    "The probability that a user calls relevant what has this grade or more, for each grade; equal gives every step"
    " of one grade the same.",
    "equal",
    _thresholds,
    values="equal, or a table such as {1:0.5,2:0.3,3:0.2}",
)


@measure(
    category="graded",
    cite="Robertson, Kanoulas and Yilmaz 2010",
    use="Graded judgments, where you would use AP if they were binary: users differ in where they draw the line.",
    misleads="Rarely reported, so there is little to compare with; and like AP it says little about the first page.",
    properties=Properties(graded=True, monotone=False, perfect=1.0, against_ideal=True, better_first=True),
    tools={"TREC Session 2011 script": "GAP (equal thresholds)", "MATTERS": "gradedAveragePrecision"},
)
class GAP(RelevanceMeasure):
    r"""Graded average precision: AP for users who draw the line between relevant and not at different grades.

    .. math:: \mathrm{GAP} = \frac{\sum_{r} \frac{1}{r} \sum_{s \le r} G(\min(i_r, i_s))}{\sum_{\text{judged}} G(i)},
        \quad G(i) = \sum_{j \le i} g_j

    i is the grade of the document at a rank, 0 without a judgment; g_j is the probability that a user takes j as
    the lowest relevant grade, so G(i) is the probability that grade i is relevant. Only the ratios of the
    probabilities count: where they are equal, G(i) can be taken as i itself, whatever the highest grade is.
    With one probability of 1 it is AP with that grade as ``rel``.

    Examples
    --------
    Grades 1, 2, 2: (1/1 + (1 + 2)/2 + (1 + 2 + 2)/3) / (1 + 2 + 2).

    >>> round(GAP().of_list([1, 2, 2]), 4)
    0.8333
    >>> round(GAP(g={1: 1.0}).of_list([1, 0, 2], missing=[1]), 4)  # AP: (1/1 + 2/3) / 3
    0.5556
    """

    g: Takes[Literal["equal"] | Mapping[float, float], Thresholds] = param(THRESHOLDS)

    def score(self, judged: Judged) -> Floats:
        """Average the expected precision at each rank, over the expected number of relevant documents."""
        worth, known = self._probability(judged.grade), self._probability(judged.label_grade)
        agreed, found = _agreed(judged, worth), worth > 0
        judged.column("G", worth, self._rule(), where=found)
        judged.column("agreed", agreed, "sum of min(G, own G) down to this rank", where=found)
        precisions = judged.total("precisions", agreed / judged.rank, "agreed / rank", where=found, agreed=agreed)
        relevant = judged.sum_labels(known)
        if judged.working is not None:
            self._show_judged(judged, known)
        judged.step("expected relevant", relevant, "G of all judged documents, added up")
        return judged.step(
            self,
            divide(precisions, relevant),
            "precisions / expected_relevant",
            precisions=precisions,
            expected_relevant=relevant,
        )

    def _rule(self) -> str:
        if isinstance(self.g, str):
            return "grade"
        return "sum of " + ", ".join(f"{spell(share)} if grade >= {spell(grade)}" for grade, share in self.g)

    def _show_judged(self, judged: Judged, known: Floats) -> None:
        """Show how many judged documents have each grade, and what each of them adds."""
        kept = known > 0
        grades, first, count = np.unique(-judged.label_grade[kept], return_index=True, return_counts=True)
        judged.rows("judged documents by grade", {"grade": -grades, "G": known[kept][first], "documents": count})

    def _probability(self, grades: Floats) -> Floats:
        """Give the probability that each grade is relevant, up to a factor."""
        if isinstance(self.g, str):
            return np.maximum(grades, 0.0)
        probability = np.zeros(len(grades))
        for grade, share in self.g:
            probability += share * (grades >= grade)
        return probability

    def is_defined(self, judged: Judged) -> Any:
        """Mark the topics in which some judged document may be relevant."""
        return judged.sum_labels(self._probability(judged.label_grade) > 0) > 0


def _agreed(judged: Judged, worth: Floats) -> Floats:
    """Add up the lesser of the two worths over each hit and all above it: (H,), 0 for a hit worth nothing."""
    # Those above that are worth less count as themselves, all others as the hit. Two worths, numbered, differ in some
    # highest bit: for each bit, among hits whose higher bits are equal, those without it are worth less than those with
    # it. Grades may be as many as hits, so nothing here takes a step for each.
    some = np.flatnonzero(worth > 0)
    topic, value = judged.topic[some], worth[some]
    level = np.unique(value, return_inverse=True)[1]
    lesser, less = np.zeros(len(some)), np.zeros(len(some), dtype=np.int64)
    for bit in range(int(level.max(initial=0)).bit_length()):
        alike = topic * (len(some) + 1) + (level >> (bit + 1))
        order = np.argsort(alike, kind="stable")  # and by rank
        begins = np.diff(alike[order], prepend=-1) != 0
        starts = np.append(np.flatnonzero(begins), len(some))
        greater = (level[order] >> bit & 1).astype(np.bool_)
        lesser[order] += running_sum(value[order] * ~greater, starts) * greater
        less[order] += running_count(~greater, np.cumsum(begins) - 1, starts) * greater
    agreed = np.zeros(len(worth))
    agreed[some] = lesser + value * (judged.count_so_far(worth > 0)[some] - less)
    return agreed
