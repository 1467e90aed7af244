"""The numbers of each printed line: one a topic, and their summary; as they are, or in standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run
from judged.errors import JudgedError, MeasureError
from judged.scoring.judging import Ranking, judge
from judged.scoring.judging.align import rank_all
from judged.scoring.judging.ranking import DuplicateDocumentError
from judged.scoring.measures.aggregates import FLOOR, aggregate, logarithms
from judged.scoring.peers.trec_eval import CALCULATION, NO_TOPICS, ZSCORES, TrecEvalError, atof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.compat.trec_eval.options import Options
    from judged.scoring.judging import Judged
    from judged.scoring.peers.trec_eval import Printed


_PREFERENCES = frozenset({"prefs", "qrels_prefs"})


@dataclass(frozen=True, eq=False)
class Walk:
    """The topics to evaluate."""

    judged: Judged  # over all topics of the judgments
    codes: Ints  # the topics to evaluate, in byte order; those before the one that cannot be, if there is one
    stopped: str = ""  # why the evaluation ends there; empty if it does not

    @property
    def topics(self) -> list[str]:
        """The ids of the topics to evaluate."""
        return [self.judged.query_ids[code] for code in self.codes.tolist()]


def walk(qrels: Qrels, run: Run, options: Options, *, ranked: bool) -> Walk:
    """Rank the run, join it with the judgments, and choose the topics."""
    # A topic stops the evaluation if a document appears in it twice, in the run or in the judgments, unless no measure
    # looks at the ranking (`ranked`); and, by the rules of trec_eval 10, if the run lacks it and missing topics are not
    # to count as 0.
    contradicted = _contradicted(qrels, options) if ranked else {}
    judged, problems = _joined(_without_contradictions(qrels, contradicted), run, options)
    problems = {**_judged_twice(qrels, options), **contradicted, **problems} if ranked else {}
    codes = np.arange(len(judged))
    if options.topic is not None:
        codes = np.array([code for code in codes if judged.query_ids[code] == options.topic], dtype=np.int64)
    if options.dialect == "trec_eval-9":
        codes = codes[judged.present[codes]]
    elif not options.complete:
        fix = "Fix: -c lets it count as 0, --dialect trec_eval-9 leaves it out"
        for code in codes[~judged.present[codes]].tolist():
            problems[code] = f"topic {judged.query_ids[code]} of {qrels.where} is not in {run.where}. {fix}"
    if not len(codes):
        raise TrecEvalError(f"no topic to evaluate in both {qrels.where} and {run.where}", NO_TOPICS)
    first = min((code for code in codes.tolist() if code in problems), default=None)
    if first is None:
        return Walk(judged, codes)
    return Walk(judged, codes[codes < first], problems[first])


def _joined(qrels: Qrels, run: Run, options: Options) -> tuple[Judged, dict[int, str]]:
    """Judge the run; give the topics in which a document is returned twice, among those that count."""
    precision = "single" if options.dialect == "trec_eval-9" else "double"
    ties = "docid-rising" if options.form in _PREFERENCES else "docid"  # so it is in trec_eval, and only there
    ranking = Ranking(ties, None if options.depth is None else max(options.depth, 1), precision)
    problems: dict[int, str] = {}
    try:
        judged = judge(qrels, run, ties=ties, depth=ranking.depth, precision=precision)
    except DuplicateDocumentError:
        run, problems = _without_repeats(qrels, run, ranking)
        judged = judge(qrels, run)
    if options.depth is not None and options.depth < 1:
        judged = _emptied(judged)
        problems = {}
    return judged, problems


def _without_repeats(qrels: Qrels, run: Run, ranking: Ranking) -> tuple[Run, dict[int, str]]:
    """Rank a run that repeats documents, and keep each once; duplicates below the depth are no matter."""
    topics = qrels.index.topics
    returned = rank_all(run, topics, ranking)
    doc = np.asarray(pc.dictionary_encode(returned.doc).indices.to_numpy(), dtype=np.int64)
    order = np.lexsort((returned.rank, doc, returned.topic))
    again = np.zeros(len(order), dtype=np.bool_)
    again[order[1:]] = (np.diff(returned.topic[order]) == 0) & (np.diff(doc[order]) == 0)
    problems: dict[int, str] = {}
    for at in np.flatnonzero(again).tolist():
        code = int(returned.topic[at])
        problems.setdefault(code, f"{run.where}: document {returned.doc[at]} is returned twice for {topics[code]}")
    kept = np.flatnonzero(~again)
    table = pa.table(
        {
            "query_id": pa.array(topics, pa.string()).take(pa.array(returned.topic[kept])),
            "doc_id": returned.doc.take(pa.array(kept)),
            "score": pa.array(-returned.rank[kept].astype(np.float64)),
        }
    )
    return Run(TableRows(table, run.where)), problems


def _judged_twice(qrels: Qrels, options: Options) -> dict[int, str]:
    """Find the topics in which a document is judged twice."""
    if options.form != "qrels":
        return {}
    counts = qrels.table.select(["query_id", "doc_id"]).group_by(["query_id", "doc_id"]).aggregate([([], "count_all")])
    twice = counts.filter(pc.greater(counts["count_all"], 1))
    return {
        qrels.index.codes[
            pair["query_id"]
        ]: f"{qrels.where}: document {pair['doc_id']} is judged twice for topic {pair['query_id']}"
        for pair in twice.to_pylist()
    }


def _without_contradictions(qrels: Qrels, contradicted: dict[int, str]) -> Qrels:
    """Keep one label of each topic at which the evaluation stops, so that the topics before it can be scored."""
    if not contradicted:
        return qrels
    topics = np.array([qrels.index.codes[topic] for topic in qrels.table["query_id"].to_pylist()])
    first = np.unique(topics, return_index=True)[1]
    kept = ~np.isin(topics, list(contradicted))
    kept[first] = True
    return Qrels(qrels.table.filter(pa.array(kept)), qrels.name, qrels.where)


def _contradicted(qrels: Qrels, options: Options) -> dict[int, str]:
    """Find the topics in which a user contradicts the own levels, in a way at which trec_eval stops."""
    # A user of one subgroup may not give a document two levels; of several, not 0 in one and more in another.
    if options.form not in _PREFERENCES:
        return {}
    subgroups: dict[tuple[str, str], set[str]] = {}
    levels: dict[tuple[str, str, str], set[float]] = {}
    table = qrels.table
    columns = (table[name].to_pylist() for name in ("query_id", "iteration", "doc_id", "relevance"))
    for topic, group, doc, level in zip(*columns, strict=True):
        user = group.partition(" ")[0]
        subgroups.setdefault((topic, user), set()).add(group)
        levels.setdefault((topic, user, doc), set()).add(level)
    problems: dict[int, str] = {}
    for (topic, user, doc), given in levels.items():
        alone = len(subgroups[topic, user]) == 1
        if len(given) > 1 and (alone or (0 in given and max(given) > 0)):
            what = "two levels" if alone else "level 0 in one group and more in another"
            text = f"{qrels.where}: user {user} gives document {doc} {what} for topic {topic}"
            problems.setdefault(qrels.index.codes[topic], text)
    return problems


def _emptied(judged: Judged) -> Judged:
    """Leave nothing of the rankings."""
    columns = ("topic", "rank", "grade", "row", "score", "tie_first", "tie_last")
    nothing = {name: getattr(judged, name)[:0] for name in columns}
    return replace(judged, returned=np.zeros_like(judged.returned), reordered=True, **nothing)


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
        from judged.scoring.measures.counts import relstring

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
        needed = least * self._judged.num_relevant(self._options.level)
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
