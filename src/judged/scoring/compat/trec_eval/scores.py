"""The numbers of each printed line: one a topic, and their summary; as they are, or in standard deviations."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from judged.errors import JudgedError, MeasureError
from judged.scoring.measures.aggregates import FLOOR, aggregate, logarithms
from judged.scoring.measures.arithmetic import relevant_known
from judged.scoring.peers.cnumbers import atof
from judged.scoring.peers.errors import CALCULATION, ZSCORES, TrecEvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Floats
    from judged.scoring.compat.trec_eval.options import Options
    from judged.scoring.compat.trec_eval.topics import Walk
    from judged.scoring.judging import Judged
    from judged.scoring.peers.trec_eval import Printed

_ZEROED = frozenset({"num_ret", "utility", "rbp_resid"})
"""Lines that trec_eval sets to 0 for a missing topic, by their whole names: with parameters they escape it."""


class Scorer:
    """Computes the lines of one walk."""

    def __init__(self, walk: Walk, options: Options, means: Means | None) -> None:
        self.walk = walk
        self._options = options
        self._means = means
        self._missing: Bools = ~walk.judged.present
        self._judged = self._ranking(walk.judged)

    def _ranking(self, judged: Judged) -> Judged:
        """Give what the measures see: a missing topic is a ranking of one unjudged document, as trec_eval has it."""
        if self._options.depth is None or self._options.depth > 0:
            judged = replace(judged, returned=np.where(judged.present, judged.returned, 1))
        return judged.condensed if self._options.judged_only and "prefs" not in self._options.form else judged

    def strings(self, line: Printed) -> list[str]:
        """Give a line of text for each topic: the grades of its first documents, in quotes."""
        from judged.scoring.measures.relstring import relstring

        found = relstring(self._judged, line.given["length"])
        blank = self._missing if line.name == "relstring" else np.zeros_like(self._missing)
        return ["''" if blank[code] else f"'{found[code]}'" for code in self.walk.codes.tolist()]

    def scores(self, line: Printed) -> Floats:
        """Give the value of a line for each topic that is evaluated; the logarithm for geometric means."""
        measure = line.measure
        if measure is None:
            raise MeasureError(f"{line.name} is not a number")
        if self._options.judged_only and line.format == "qrels_jg":
            measure = measure.replace(judged_only=True)  # by each user
        try:
            scores = measure(self._judged)
        except JudgedError as error:
            raise TrecEvalError(str(error), CALCULATION) from None
        if line.root in {"iprec_at_recall", "11pt_avg"}:
            scores = np.where(self._undefined(line), math.nan, scores)
        if line.name in _ZEROED or line.root == "unj":
            scores = np.where(self._missing, 0.0, scores)
        scores = scores[self.walk.codes]
        if measure.entry.aggregate == "geometric mean":
            scores = logarithms(scores)
        return scores if self._means is None else as_zscores(scores, line.name, self.walk.topics, self._means)

    def _undefined(self, line: Printed) -> Bools:
        """Mark empty rankings in which trec_eval divides 0 by 0: where a recall point needs no document."""
        given: Any = line.given
        least = given["recall"] if "recall" in given else min(given["points"])
        needed = least * relevant_known(self._judged, self._options.level)
        none = needed < 0.5 if given["rounding"] == "nearest" else needed + 0.9 < 1
        return (self._judged.returned == 0) & none

    def summary(self, line: Printed, scores: Floats) -> float:
        """Put the topics of a line together, one after the other as trec_eval adds them."""
        measure = line.measure
        if measure is None:
            raise MeasureError(f"{line.name} is not a number")
        kind = measure.entry.aggregate
        if kind == "count":
            return float(self._topics)
        if line.root == "num_rel" and self._options.complete:
            return float((self._judged.qrels.grades > 0).sum())  # whatever the level: trec_eval does not ask for it
        total = aggregate("sum", scores)
        if kind == "sum":
            return total
        if kind == "geometric mean":
            return math.exp((total + (self._topics - len(scores)) * math.log(FLOOR)) / self._topics)
        return total / self._topics

    @property
    def _topics(self) -> int:
        """By how many topics sums are divided."""
        return len(self.walk.judged) if self._options.complete else len(self.walk.codes)


MISSING = -1000000.0
"""What stands where the file has no mean, or no deviation for a score that differs from the mean."""

Means: TypeAlias = dict[tuple[str, str], tuple[float, float]]


def read_means(path: str) -> Means:
    """Read lines of ``topic line mean deviation``."""
    try:
        lines = Path(path).read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    except OSError as error:
        raise TrecEvalError(f"{path}: it cannot be read ({error.strerror})", ZSCORES) from None
    found: Means = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != 4:
            problem = f"{len(fields)} fields. Fix: write 'topic measure mean deviation'"
            raise TrecEvalError(f"{path}:{number}: {problem}", ZSCORES)
        found.setdefault((fields[0], fields[1]), (atof(fields[2]), atof(fields[3])))
    return found


def as_zscores(scores: Floats, name: str, topics: Sequence[str], means: Means) -> Floats:
    """Express the scores of one line, a topic each, in deviations from the mean.

    >>> import numpy as np
    >>> as_zscores(np.array([0.5, 0.5]), "map", ["1", "2"], {("1", "map"): (0.3, 0.1)}).round(9).tolist()
    [2.0, -1000000.0]
    """
    made = scores.copy()
    for at, (topic, score) in enumerate(zip(topics, scores.tolist(), strict=True)):
        mean, deviation = means.get((topic, name), (None, 0.0))
        if mean is not None and deviation:
            made[at] = (score - mean) / deviation + 0.0  # 0 divided by a negative deviation is printed without a sign
        else:
            made[at] = 0.0 if score == mean else MISSING
    return made
