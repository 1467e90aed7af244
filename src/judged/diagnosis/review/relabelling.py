"""What if one label were another: judged lists in which the grade of a single document differs, scored at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data import Qrels
from judged.data.compute import int_array
from judged.errors import InputError, MeasureError
from judged.judging import judge
from judged.judging.dense import all_returned
from judged.judging.grading import keeping, withdrawn
from judged.judging.policies import Ranking
from judged.judging.variants import copies
from judged.stats.pairing import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Bools, Floats, Ints
    from judged.data import Run
    from judged.data.documents import Documents
    from judged.judging import Judged
    from judged.measures import Measure

_ROWS = 1 << 20  # hits and judged pairs of one block of variants: some hundred megabytes
_COLUMNS = ["query_id", "doc_id", "relevance"]


@dataclass(frozen=True, eq=False)
class Opened:
    """Runs judged over all judged pairs and, beside them, the unjudged documents among their first.

    With P pairs, R runs.
    """

    qrels: Qrels  # with the unjudged documents as pairs of grade 0. A pair below is a position in `qrels.index`.
    unjudged: Bools = field(repr=False)  # (P,): which pairs are in truth not judged
    lists: tuple[Judged, ...]  # R: in which all pairs are judged
    ranks: Ints = field(repr=False)  # (R, P): 0: not returned


def opened_to(qrels: Qrels, runs: Sequence[Run], ranking: Ranking, k: int, documents: Documents | None) -> Opened:
    """Judge runs, with the unjudged documents among the first k of each as pairs of their own."""
    for run in runs:
        if ranking.ties == "rank" and not run.has_ranks:
            raise InputError("it has no rank column", fix="choose another order for ties", path=run.where)
        if ranking.ties != "rank" and not run.has_scores:
            raise InputError("a run without scores has no first documents", fix="give scores", path=run.where)
    extended, unjudged = _extended(qrels, runs, ranking, k)
    how: dict[str, Any] = {"ties": ranking.ties, "depth": ranking.depth, "precision": ranking.precision}
    lists = tuple(judge(extended, run, documents=documents, **how) for run in runs)
    ranks = np.zeros((len(lists), len(unjudged)), dtype=np.int64)
    for row, judged in zip(ranks, lists, strict=True):
        row[judged.label_row[judged.row]] = judged.rank
    return Opened(extended, unjudged, lists, ranks)


def _extended(qrels: Qrels, runs: Sequence[Run], ranking: Ranking, k: int) -> tuple[Qrels, Bools]:
    """Add every unjudged document among the first k of some run to the judgments, and mark these pairs."""
    index = qrels.index
    shallow = replace(ranking, depth=min(k, ranking.depth or k))
    parts = [qrels.table.select(_COLUMNS)]
    for run in runs:
        first = all_returned(run, index.topics, shallow)
        new = np.flatnonzero(index.rows_of(first.topic, first.doc) < 0)
        topics = index.topic_ids.take(int_array(first.topic[new]))
        part = pa.table([topics, first.doc.take(int_array(new)), np.zeros(len(new))], names=_COLUMNS)
        parts.append(part.cast(parts[0].schema))
    extended = Qrels(pa.concat_tables(parts), qrels.name, qrels.where)
    docs = pa.array(extended.index.row_names, pa.string())
    return extended, index.rows_of(extended.index.topic, docs) < 0


def relabelled(judged: Judged, unjudged: Bools, pairs: Ints, grades: Floats) -> Judged:
    """Make one variant for each pair, of its topic, in which it alone has another grade."""
    # `unjudged`: (P,): the pairs that no variant has, but for that whose own pair it is.
    many = copies(judged, judged.qrels.index.topic[pairs])
    own = many.label_row == pairs[many.label_topic]
    grade = np.where(own[many.row], grades[many.topic], many.grade)
    label_grade = np.where(own, grades[many.label_topic], many.label_grade)
    return keeping(replace(many, grade=grade, label_grade=label_grade), own | ~unjudged[many.label_row])


def changes(judged: Judged, measure: Measure, unjudged: Bools, pairs: Ints, grades: Floats) -> tuple[Floats, Floats]:
    """Give the score of every topic, (T,), and by how much another grade of each pair would change it, (V,)."""
    known = measure.properties
    if known.every_label or not known.topics_apart:
        what = "every label of a document" if known.every_label else "the judgments of all topics"
        raise MeasureError(f"{measure} looks at {what}: one other grade has no effect of its own. Fix: take nDCG or AP")
    base = replace(withdrawn(judged, unjudged))
    scores = measure(base)
    if "everything" in vars(base):  # the measure asked for every returned document: variants cannot read it anew
        judged = replace(judged, shown=base.everything)
    topics = judged.qrels.index.topic[pairs]
    size = np.diff(judged.starts) + np.bincount(judged.label_topic, minlength=len(judged))
    block = np.cumsum(size[topics] + 1) // _ROWS
    edges = np.concatenate(([0], np.flatnonzero(np.diff(block)) + 1, [len(pairs)]))
    new = np.empty(len(pairs))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if high > low:
            new[low:high] = measure(relabelled(judged, unjudged, pairs[low:high], grades[low:high]))
    old = scores[topics]
    change = new - old
    change[np.abs(change) <= ROUNDING * np.maximum(np.abs(new), np.abs(old))] = 0.0
    return scores, change


def turned(first: Floats, second: Floats, first_change: Floats, second_change: Floats) -> Bools:
    """Mark the changes after which the other of two scores is the higher one: (N,). A tie before or after is no turn.

    >>> turned(np.array([0.5, 0.5]), np.array([0.4, 0.5]), np.array([0.0, 0.0]), np.array([0.2, 0.1])).tolist()
    [True, False]
    """
    before = second - first
    after = before + (second_change - first_change)
    return (np.abs(before) > ROUNDING) & (np.abs(after) > ROUNDING) & (np.sign(before) != np.sign(after))
