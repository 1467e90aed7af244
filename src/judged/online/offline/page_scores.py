"""What pages score by judgments, and what users did on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError
from judged.online.arguments import names_of
from judged.online.facts.columns import SCALES
from judged.online.facts.pages import FactSettings, page_facts
from judged.online.metrics import written
from judged.online.offline.joined import list_codes, lists_of
from judged.scoring.evaluation.evaluate import score_lists
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from judged._types import Floats, Ints, Strings
    from judged.online.engine import Relation
    from judged.online.log import InteractionLog
    from judged.online.offline.joined import Joined
    from judged.scoring.measures.base import Measure


@dataclass(frozen=True)
class Outcome:
    """An outcome of a page.

    Parameters
    ----------
    name, title
        Its name, and what it is.
    column
        Of the facts of a page (`judged.online.facts.columns.COLUMNS`); ``{t}`` stands for seconds of dwell.
    better
        1: more is better, -1: less is.
    clock
        It needs a log with a clock.
    share
        It lies between 0 and 1 on every page.
    """

    name: str
    title: str
    column: str
    better: Literal[-1, 1]
    clock: bool = False
    share: bool = True


_ALL = (
    Outcome("satisfied", "a result was opened for {t} s or longer, or last in its session",
            "satisfied_page_{t}", 1, clock=True),
    Outcome("clicked", "a result was opened", "clicked", 1),
    Outcome("first click RR", "1 / rank of the first click, 0 without one", "first_rr", 1),
    Outcome("best click RR", "1 / rank of the highest result opened, 0 without one", "topmost_rr", 1),
    Outcome("opened", "how many results were opened", "opened", 1, share=False),
    Outcome("abandoned", "nothing was opened", "abandoned", -1),
    Outcome("reformulated", "the next query of the session says it otherwise", "reformulated", -1, clock=True),
)  # fmt: skip

OUTCOMES = {one.name: one for one in _ALL}
"""The outcomes by name."""

DEFAULT_OUTCOMES = ("satisfied", "clicked", "first click RR")
"""Where nothing is said; those that the log can tell."""


def outcomes_of(names: Sequence[str] | str | None, log: InteractionLog) -> tuple[Outcome, ...]:
    """Give outcomes by name.

    Raises
    ------
    InputError
        If there is no such outcome, or the log cannot tell it.
    """
    if names is None:
        return tuple(OUTCOMES[name] for name in DEFAULT_OUTCOMES if log.has_time or not OUTCOMES[name].clock)
    found: list[Outcome] = []
    for name in names_of(outcomes=names):
        if name not in OUTCOMES:
            raise InputError(f"no outcome {name!r}", fix=f"one of {', '.join(OUTCOMES)}")
        if OUTCOMES[name].clock and not log.has_time:
            raise InputError(f"{log.name} has no clock, and {name} needs one", fix="take clicked or first click RR")
        found.append(OUTCOMES[name])
    if not found:
        raise InputError("no outcome is given", fix=f"some of {', '.join(OUTCOMES)}")
    return tuple(found)


def page_outcomes(log: InteractionLog, outcomes: Sequence[Outcome], seconds: float) -> Relation:
    """Give one row a page: ``serp``, and an outcome a column, ``outcome_0`` and so on."""
    columns = [one.column.format(t=written(seconds)) for one in outcomes]
    pages = page_facts(log, columns, FactSettings())
    made = [
        f"CAST({pages.columns[column]} AS DOUBLE) / {SCALES.get(column, 1)} AS outcome_{at}"
        for at, column in enumerate(columns)
    ]
    return log.engine.query(f"SELECT serp, {', '.join(made)} FROM {pages.joined}")


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
    starts, doc = lists_of(log, joined.serp[first], topic)
    values = np.full((len(measures), len(first)), np.nan)
    for part in _parts(np.diff(qrels.index.starts)[topic]):
        values[:, part] = _scored(starts[part.start : part.stop + 1], doc, topic[part], qrels, measures)
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


def _scored(starts: Ints, doc: Strings, topic: Ints, qrels: Qrels, measures: Sequence[Measure]) -> Floats:
    """Score some pages by the public way: judgments, run, measures."""
    sizes = np.diff(starts)
    names = pa.array([f"{at:09}" for at in range(len(sizes))], pa.string())
    rows = np.arange(starts[0], starts[-1])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    shown = {"query_id": names.take(pa.array(owner)), "doc_id": doc.take(pa.array(rows)), "score": -rows.astype(float)}
    judgments = _copied(qrels, topic, names)
    judged = judge(judgments, Run.of(pa.table(shown), name="pages"))
    return score_lists([judged], measures).values[0]


def _copied(qrels: Qrels, topics: Ints, names: Strings) -> Qrels:
    """Give each list its topic's judgments, under the list's own name."""
    of_row = pc.index_in(qrels.table["query_id"], value_set=qrels.index.topic_ids).to_numpy()
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(len(qrels.index.topics) + 1))
    rows, owner = _ranges(bounds[topics], bounds[topics + 1])
    table = qrels.table.take(pa.array(order[rows]))
    at = table.column_names.index("query_id")
    return Qrels(
        table.set_column(at, "query_id", names.take(pa.array(owner))), qrels.name, qrels.where, origin=qrels.origin
    )


def _ranges(begins: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Write out ranges of numbers, and which range each comes from."""
    lengths = ends - begins
    owner = np.repeat(np.arange(len(begins)), lengths)
    return np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + begins[owner], owner
