"""Which topics are evaluated, in which order, and where the evaluation stops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.rows import TableRows
from judged.data.run import Run
from judged.scoring.judging import Ranking, judge
from judged.scoring.judging.dense import all_returned
from judged.scoring.judging.ranking import DuplicateDocumentError
from judged.scoring.peers.errors import NO_TOPICS, TrecEvalError

if TYPE_CHECKING:
    from judged._types import Ints
    from judged.scoring.compat.trec_eval.options import Options
    from judged.scoring.judging import Judged

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
    returned = all_returned(run, topics, ranking)
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
