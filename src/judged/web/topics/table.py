"""Scores and counts of all topics as columns, and the order in which a list shows them."""

from __future__ import annotations

import bisect
import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError, MeasureError
from judged.measures import Measure, parse

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.web.topics.asked import Order
    from judged.web.workspace import Workspace

MOST_RUNS = 12
"""Columns of scores that a table shows at once."""
POSITIVE = float(np.nextafter(0, 1))
"""The least relevant grade for measures that have no level of their own: any above 0."""
_DIGITS = re.compile(r"(\d+)")
_NEAR, _SHORT = 5, 60


@dataclass(frozen=True, eq=False)
class TopicTable:
    """All topics of the qrels, in their order."""

    measure: Measure
    runs: tuple[str, ...]  # R: the runs whose scores are columns
    scores: Floats  # (R, T): NaN where there is no score
    # mean, spread: (T,): of the scores of these runs: their mean, and the largest less the smallest
    mean: Floats
    spread: Floats
    # relevant, judged: (T,): how many documents have a relevant grade, and any
    relevant: Ints
    judged: Ints
    notes: tuple[str, ...]  # which runs have no scores, and why


def level_of(measure: Measure) -> float:
    """Give the least grade that is relevant to a measure."""
    return float(getattr(measure, "rel", POSITIVE))


def relevant_from(measure: Measure) -> float | None:
    """Give the same as people say it; None: any above 0."""
    level = level_of(measure)
    return None if level == POSITIVE else level


def lower_is_better(measure: Measure) -> bool:
    """Tell whether a low score is a good one."""
    return measure.properties.higher_is_better is False


def run_scores(workspace: Workspace, measure: Measure, run: str) -> tuple[Floats, str]:
    """Give the scores of a run on all topics, (T,); or NaN, and why it has none."""
    judged = workspace.judged(run)

    def _make() -> tuple[Floats, str]:
        try:
            return measure(judged), ""  # without the notes of `score_lists`, which cost ten times as much
        except (InputError, MeasureError) as error:
            return np.full(len(judged), np.nan), str(error)

    return workspace.remember(("topic scores", measure, run), _make)


def table_of(workspace: Workspace, measure: Measure, runs: tuple[str, ...]) -> TopicTable:
    """Score the runs, and count judgments; made once."""
    return workspace.remember(("topics", measure, runs), lambda: _table(workspace, measure, runs))


def _table(workspace: Workspace, measure: Measure, runs: tuple[str, ...]) -> TopicTable:
    found = [run_scores(workspace, measure, run) for run in runs]
    topics = len(workspace.query_ids)
    scores = np.stack([values for values, _ in found]) if found else np.empty((0, topics))
    known = (~np.isnan(scores)).sum(axis=0)
    mean = np.divide(np.nansum(scores, axis=0), known, out=np.full(topics, np.nan), where=known > 0)
    high = np.max(scores, axis=0, initial=-np.inf, where=~np.isnan(scores))
    low = np.min(scores, axis=0, initial=np.inf, where=~np.isnan(scores))
    index, level = workspace.qrels.index, level_of(measure)
    relevant = (index.grade >= level) & (index.grade >= 0)
    return TopicTable(
        measure,
        runs,
        scores,
        mean,
        np.where(known > 0, high - low, np.nan),
        np.bincount(index.topic[relevant], minlength=topics),
        np.bincount(index.topic, minlength=topics),
        tuple(dict.fromkeys(why for _, why in found if why)),
    )


def shown_runs(workspace: Workspace, asked: Order) -> tuple[str, ...]:
    """Give the runs that are columns: those that were chosen, or the first ones."""
    chosen = tuple(dict.fromkeys(name for name in asked.runs if name)) or workspace.run_names
    for name in chosen:
        workspace.judged(name)
    return chosen[:MOST_RUNS]


def ordered(workspace: Workspace, asked: Order) -> Ints:
    """Give the positions of the topics that a list has, in its order."""
    measure, runs = parse(asked.measure), shown_runs(workspace, asked)
    key = ("topic order", measure, runs, asked.sort, asked.q, asked.where)
    return workspace.remember(key, lambda: _ordered(workspace, asked, table_of(workspace, measure, runs)))


def _ordered(workspace: Workspace, asked: Order, table: TopicTable) -> Ints:
    kept = workspace.mask(asked.where) if workspace.lists or asked.where else np.ones(len(table.mean), dtype=np.bool_)
    words = asked.q.casefold().split()
    if words:
        texts: list[str] = workspace.remember(("topic texts",), lambda: _texts(workspace))
        kept = kept & np.array([all(word in text for word in words) for text in texts], dtype=np.bool_)
    falling, name = asked.sort.startswith("-"), asked.sort.removeprefix("-")
    rank = _ranks(workspace, table, name)
    order = np.argsort(-rank if falling else rank, kind="stable")  # NaN, no score, comes last either way
    return order[kept[order]]


def _ranks(workspace: Workspace, table: TopicTable, name: str) -> Floats:
    """Give numbers in whose order the topics stand when they are sorted by a column: (T,)."""
    columns: dict[str, Floats | Ints] = {
        "relevant": table.relevant,
        "judged": table.judged,
        "mean": table.mean,
        "spread": table.spread,
        **{f"run:{run}": scores for run, scores in zip(table.runs, table.scores, strict=True)},
    }
    if name in columns:
        return columns[name].astype(np.float64)
    if name not in {"id", "query"}:
        raise InputError(f"topics cannot be sorted by {name!r}", fix=f"one of id, query, {', '.join(columns)}")
    return workspace.remember(("topic names", name), lambda: _name_ranks(workspace, name))


def _name_ranks(workspace: Workspace, name: str) -> Floats:
    """Number ids as people sort them, q9 before q10; or texts by the alphabet."""
    ids = workspace.query_ids
    keys = [natural(query) for query in ids] if name == "id" else [(workspace.query(one).casefold(),) for one in ids]
    ranks = np.empty(len(ids))
    ranks[sorted(range(len(ids)), key=keys.__getitem__)] = np.arange(len(ids))
    return ranks


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Give a key that sorts numbers within a text by their size.

    >>> sorted(["q10", "q9", "q", "9"], key=natural)
    ['9', 'q', 'q9', 'q10']
    """
    parts = _DIGITS.split(text)
    return tuple((len(part.lstrip("0")), part.lstrip("0")) if at % 2 else (0, part) for at, part in enumerate(parts))


def _texts(workspace: Workspace) -> list[str]:
    return [f"{query} {workspace.query(query)}".casefold() for query in workspace.query_ids]


def near_ids(ids: tuple[str, ...], wanted: str) -> list[str]:
    """Give a few ids that are like one that does not exist: those spelled like it, then its neighbours by order.

    >>> near_ids(("q1", "q2", "t1"), "q11"), near_ids(("q04", "q40"), "q4")
    (['q1', 'q2', 't1'], ['q04', 'q40'])
    """
    same = [one for one in ids if natural(one) == natural(wanted)] if len(wanted) <= _SHORT else []
    similar = difflib.get_close_matches(wanted, ids, _NEAR, 0.7) if len(wanted) <= _SHORT else []
    at = bisect.bisect(ids, wanted)
    around = sorted(range(max(0, at - _NEAR), min(len(ids), at + _NEAR)), key=lambda place: abs(place - at + 0.4))
    return list(dict.fromkeys([*same, *similar, *(ids[place] for place in around)]))[:_NEAR]
