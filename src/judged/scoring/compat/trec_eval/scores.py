"""Scores of each output line by topic, and their summary, optionally as z-scores."""

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
from judged.scoring.judging import RankingRules, judge
from judged.scoring.judging.align import rank_all
from judged.scoring.judging.ranking import DuplicateDocumentError
from judged.scoring.measures.aggregates import FLOOR, aggregate, logarithms
from judged.scoring.peers.trec_eval import CALCULATION, NO_TOPICS, ZSCORES, TrecEvalError, atof

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.results.types import Bools, Floats, Ints
    from judged.scoring.compat.trec_eval.options import CommandOptions
    from judged.scoring.judging import Judged
    from judged.scoring.peers.trec_eval import OutputLine


_PREFERENCES = frozenset({"prefs", "qrels_prefs"})


@dataclass(frozen=True, eq=False)
class TopicSelection:
    """Topics to evaluate."""

    judged: Judged  # all topics of the judgments
    codes: Ints  # indices of the topics to evaluate, in byte order; only those before the first topic with a problem
    problem: str = ""  # problem of the first topic that cannot be evaluated; empty if all can

    @property
    def topics(self) -> list[str]:
        """Ids of the topics to evaluate."""
        return [self.judged.query_ids[code] for code in self.codes.tolist()]


def select_topics(qrels: Qrels, run: Run, options: CommandOptions, *, needs_ranking: bool) -> TopicSelection:
    """Rank the run, join it with the judgments, and select the topics."""
    # trec_eval stops at the first topic in which a document occurs twice in the run or in the judgments, if a measure
    # uses the ranking. trec_eval 10 also stops at the first topic that is missing in the run, without option -c.
    errors_by_topic = _find_contradictions(qrels, options) if needs_ranking else {}
    judged, problems = _judge_run(_remove_contradictions(qrels, errors_by_topic), run, options)
    problems = {**_find_duplicate_judgments(qrels, options), **errors_by_topic, **problems} if needs_ranking else {}
    codes = np.arange(len(judged))
    if options.topic is not None:
        codes = np.array([code for code in codes if judged.query_ids[code] == options.topic], dtype=np.int64)
    if options.dialect == "trec_eval-9":
        codes = codes[judged.present[codes]]
    elif not options.complete:
        fix = "Fix: use -c to score missing topics as 0, or --dialect trec_eval-9 to omit missing topics"
        for code in codes[~judged.present[codes]].tolist():
            problems[code] = f"topic {judged.query_ids[code]} of {qrels.where} is not in {run.where}. {fix}"
    if not len(codes):
        raise TrecEvalError(f"no topic to evaluate in both {qrels.where} and {run.where}", NO_TOPICS)
    first_problem = min((code for code in codes.tolist() if code in problems), default=None)
    if first_problem is None:
        return TopicSelection(judged, codes)
    return TopicSelection(judged, codes[codes < first_problem], problems[first_problem])


def _judge_run(qrels: Qrels, run: Run, options: CommandOptions) -> tuple[Judged, dict[int, str]]:
    """Judge the run. Return also a problem for each topic in which a document is returned twice within the depth."""
    precision = "single" if options.dialect == "trec_eval-9" else "double"
    ties = "docid-rising" if options.qrels_format in _PREFERENCES else "docid"  # as in trec_eval
    ranking = RankingRules(ties, None if options.depth is None else max(options.depth, 1), precision)
    problems: dict[int, str] = {}
    try:
        judged = judge(qrels, run, ties=ties, depth=ranking.depth, precision=precision)
    except DuplicateDocumentError:
        run, problems = _remove_repeated_documents(qrels, run, ranking)
        judged = judge(qrels, run)
    if options.depth is not None and options.depth < 1:
        judged = _remove_rankings(judged)
        problems = {}
    return judged, problems


def _remove_repeated_documents(qrels: Qrels, run: Run, ranking: RankingRules) -> tuple[Run, dict[int, str]]:
    """Rank the run, and keep the first occurrence of each document. Ignore repeated documents below the depth."""
    topics = qrels.index.topics
    returned = rank_all(run, topics, ranking)
    doc_codes = np.asarray(pc.dictionary_encode(returned.doc).indices.to_numpy(), dtype=np.int64)
    order = np.lexsort((returned.rank, doc_codes, returned.topic))
    is_repeated = np.zeros(len(order), dtype=np.bool_)
    is_repeated[order[1:]] = (np.diff(returned.topic[order]) == 0) & (np.diff(doc_codes[order]) == 0)
    problems: dict[int, str] = {}
    for row in np.flatnonzero(is_repeated).tolist():
        code = int(returned.topic[row])
        problems.setdefault(code, f"{run.where}: document {returned.doc[row]} is returned twice for {topics[code]}")
    first_rows = np.flatnonzero(~is_repeated)
    table = pa.table(
        {
            "query_id": pa.array(topics, pa.string()).take(pa.array(returned.topic[first_rows])),
            "doc_id": returned.doc.take(pa.array(first_rows)),
            "score": pa.array(-returned.rank[first_rows].astype(np.float64)),
        }
    )
    return Run(TableRows(table, run.where)), problems


def _find_duplicate_judgments(qrels: Qrels, options: CommandOptions) -> dict[int, str]:
    if options.qrels_format != "qrels":
        return {}
    counts = qrels.table.select(["query_id", "doc_id"]).group_by(["query_id", "doc_id"]).aggregate([([], "count_all")])
    duplicates = counts.filter(pc.greater(counts["count_all"], 1))
    return {
        qrels.index.codes[
            pair["query_id"]
        ]: f"{qrels.where}: document {pair['doc_id']} is judged twice for topic {pair['query_id']}"
        for pair in duplicates.to_pylist()
    }


def _remove_contradictions(qrels: Qrels, errors_by_topic: dict[int, str]) -> Qrels:
    # Keep one label of each topic with a contradiction, so that the topics before it can be evaluated.
    if not errors_by_topic:
        return qrels
    topic_codes = np.array([qrels.index.codes[topic] for topic in qrels.table["query_id"].to_pylist()])
    first_rows = np.unique(topic_codes, return_index=True)[1]
    mask = ~np.isin(topic_codes, list(errors_by_topic))
    mask[first_rows] = True
    return Qrels(qrels.table.filter(pa.array(mask)), qrels.name, qrels.where)


def _find_contradictions(qrels: Qrels, options: CommandOptions) -> dict[int, str]:
    # trec_eval stops if a user with one subgroup gives a document two levels, or a user with several subgroups gives it
    # level 0 in one and a higher level in another.
    if options.qrels_format not in _PREFERENCES:
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
    for (topic, user, doc), user_levels in levels.items():
        has_one_group = len(subgroups[topic, user]) == 1
        if len(user_levels) > 1 and (has_one_group or (0 in user_levels and max(user_levels) > 0)):
            text = "two grades" if has_one_group else "grade 0 in one subgroup and a higher grade in another subgroup"
            problem = f"{qrels.where}: user {user} assigned {text} to document {doc} of topic {topic}"
            problems.setdefault(qrels.index.codes[topic], problem)
    return problems


def _remove_rankings(judged: Judged) -> Judged:
    columns = ("topic", "rank", "grade", "row", "score", "tie_first", "tie_last")
    empty_columns = {name: getattr(judged, name)[:0] for name in columns}
    return replace(judged, returned=np.zeros_like(judged.returned), reordered=True, **empty_columns)


_ZERO_IF_MISSING = frozenset({"num_ret", "utility", "rbp_resid"})
"""Lines that trec_eval sets to 0 for a missing topic. trec_eval compares full names, so lines with parameters are
not set to 0."""


class Scorer:
    """Computes the values of output lines for selected topics."""

    def __init__(self, selection: TopicSelection, options: CommandOptions, means: Means | None) -> None:
        self.selection = selection
        self._options = options
        self._means = means
        self._missing: Bools = ~selection.judged.present
        self._judged = self._prepare_ranking(selection.judged)

    def _prepare_ranking(self, judged: Judged) -> Judged:
        # trec_eval treats a missing topic as a ranking of one unjudged document.
        if self._options.depth is None or self._options.depth > 0:
            judged = replace(judged, returned=np.where(judged.present, judged.returned, 1))
        return judged.condensed if self._options.judged_only and "prefs" not in self._options.qrels_format else judged

    def relevance_strings(self, line: OutputLine) -> list[str]:
        """Return the grades of the first documents of each topic as a quoted text."""
        from judged.scoring.measures.counts import relstring

        texts = relstring(self._judged, line.parameters["length"])
        is_blank = self._missing if line.name == "relstring" else np.zeros_like(self._missing)
        return ["''" if is_blank[code] else f"'{texts[code]}'" for code in self.selection.codes.tolist()]

    def scores(self, line: OutputLine) -> Floats:
        """Return the value of a line for each selected topic; the logarithm for a geometric mean."""
        measure = line.measure
        if measure is None:
            raise MeasureError(f"{line.name} is text, not a score")
        if self._options.judged_only and line.format == "qrels_jg":
            measure = measure.replace(judged_only=True)  # separately for each user
        try:
            scores = measure(self._judged)
        except JudgedError as error:
            raise TrecEvalError(str(error), CALCULATION) from None
        if line.root in {"iprec_at_recall", "11pt_avg"}:
            scores = np.where(self._is_undefined(line), math.nan, scores)
        if line.name in _ZERO_IF_MISSING or line.root == "unj":
            scores = np.where(self._missing, 0.0, scores)
        scores = scores[self.selection.codes]
        if measure.entry.aggregate == "geometric mean":
            scores = logarithms(scores)
        return scores if self._means is None else to_zscores(scores, line.name, self.selection.topics, self._means)

    def _is_undefined(self, line: OutputLine) -> Bools:
        # trec_eval divides 0 by 0 for an empty ranking if a recall point requires no relevant document.
        parameters: Any = line.parameters
        recall = parameters["recall"] if "recall" in parameters else min(parameters["points"])
        num_needed = recall * self._judged.num_relevant(self._options.level)
        needs_no_document = num_needed < 0.5 if parameters["rounding"] == "nearest" else num_needed + 0.9 < 1
        return (self._judged.returned == 0) & needs_no_document

    def summary(self, line: OutputLine, scores: Floats) -> float:
        """Return the aggregate of a line over topics, summed in trec_eval's order."""
        measure = line.measure
        if measure is None:
            raise MeasureError(f"{line.name} is text, not a score")
        kind = measure.entry.aggregate
        if kind == "count":
            return float(self._num_topics)
        if line.root == "num_rel" and self._options.complete:
            return float((self._judged.qrels.grades > 0).sum())  # trec_eval ignores the level here
        total = aggregate("sum", scores)
        if kind == "sum":
            return total
        if kind == "geometric mean":
            return math.exp((total + (self._num_topics - len(scores)) * math.log(FLOOR)) / self._num_topics)
        return total / self._num_topics

    @property
    def _num_topics(self) -> int:
        """Denominator of means."""
        return len(self.selection.judged) if self._options.complete else len(self.selection.codes)


UNDEFINED_ZSCORE = -1000000.0
"""Z-score if the file has no mean, or a deviation of 0 for a score that differs from the mean."""

Means: TypeAlias = dict[tuple[str, str], tuple[float, float]]


def read_means(path: str) -> Means:
    """Read a file with lines of topic, measure, mean, and standard deviation."""
    try:
        lines = Path(path).read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    except OSError as error:
        raise TrecEvalError(f"{path}: cannot read the file ({error.strerror})", ZSCORES) from None
    means: Means = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) != 4:
            problem = f"4 fields are required, got {len(fields)}. Fix: write 'topic measure mean deviation'"
            raise TrecEvalError(f"{path}:{number}: {problem}", ZSCORES)
        means.setdefault((fields[0], fields[1]), (atof(fields[2]), atof(fields[3])))
    return means


def to_zscores(scores: Floats, name: str, topics: Sequence[str], means: Means) -> Floats:
    """Return the z-scores of one line, one per topic.

    >>> import numpy as np
    >>> to_zscores(np.array([0.5, 0.5]), "map", ["1", "2"], {("1", "map"): (0.3, 0.1)}).round(9).tolist()
    [2.0, -1000000.0]
    """
    zscores = scores.copy()
    for i, (topic, score) in enumerate(zip(topics, scores.tolist(), strict=True)):
        mean, deviation = means.get((topic, name), (None, 0.0))
        if mean is not None and deviation:
            zscores[i] = (score - mean) / deviation + 0.0  # + 0.0 turns -0.0 into 0.0
        else:
            zscores[i] = 0.0 if score == mean else UNDEFINED_ZSCORE
    return zscores
