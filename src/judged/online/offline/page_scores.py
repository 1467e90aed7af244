"""What judgments say of the lists that pages show: each list is scored as a ranking of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.evaluation.evaluate import score_lists
from judged.judging import judge
from judged.online.offline.joined import list_codes, lists_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged._types import Floats, Ints, Strings
    from judged.measures.base import Measure
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined, PageLists

_JUDGED = 2_000_000  # judged pairs that are copied at a time


def page_scores(log: InteractionLog, joined: Joined, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score what pages show.

    A measure scores one ranking a topic, and many pages have the same topic: every different list becomes a topic of
    its own, with all the judgments of its topic, so that ideals and numbers of relevant documents are the topic's and
    not the page's. Only one page of each different list is fetched.

    Parameters
    ----------
    log
        Where pages show what they show; a page begins at rank 1 of its ranking, wherever it stands in the result list.
    joined
        N pages, and their topics.
    qrels
        The judgments.
    measures
        M measures.

    Returns
    -------
    (M, N) float64
        NaN where a measure is undefined.
    """
    _, first, same = np.unique(list_codes(log, joined), return_index=True, return_inverse=True)
    topic = joined.topic[first]
    lists = lists_of(log, joined.serp[first])
    values = np.full((len(measures), len(first)), np.nan)
    for part in _parts(np.diff(qrels.index.starts)[topic]):
        pages = np.arange(part.start, part.stop)
        values[:, part] = _scored(lists, pages, topic, qrels, measures)
    return values[:, same.ravel()]


def _parts(sizes: Ints) -> Iterator[slice]:
    """Cut lists into parts with a bounded number of judged pairs."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + _JUDGED, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _scored(lists: PageLists, pages: Ints, topic: Ints, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score some pages by the public way: judgments, run, measures."""
    names = pa.array([f"{at:09}" for at in range(len(pages))], pa.string())
    rows, owner = _ranges(lists.starts[pages], lists.starts[pages + 1])
    shown = {"query_id": names.take(pa.array(owner)), "doc_id": lists.doc.take(pa.array(rows)),
             "score": pa.array(-np.arange(len(rows), dtype=np.float64))}  # fmt: skip
    judgments = _copied(qrels, topic[pages], names)
    judged = judge(judgments, Run.of(pa.table(shown), name="pages"))
    scores = score_lists([judged], measures)
    return scores.values[0]


def _copied(qrels: Qrels, topics: Ints, names: Strings) -> Qrels:
    """Give each list its topic's judgments, under the list's own name."""
    of_row = pc.index_in(qrels.table["query_id"], value_set=qrels.index.topic_ids).to_numpy()
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(len(qrels.index.topics) + 1))
    rows, owner = _ranges(bounds[topics], bounds[topics + 1])
    table = qrels.table.take(pa.array(order[rows]))
    at = table.column_names.index("query_id")
    return Qrels(table.set_column(at, "query_id", names.take(pa.array(owner))), qrels.name, qrels.where)


def _ranges(begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Write out ranges of numbers, and which range each comes from."""
    lengths = ends - begins
    owner = np.repeat(np.arange(len(begins)), lengths)
    return np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + begins[owner], owner
