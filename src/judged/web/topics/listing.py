"""The list of topics: a page of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.measures import parse
from judged.web.paging import Paging
from judged.web.topics.table import lower_is_better, ordered, relevant_from, shown_runs, table_of

if TYPE_CHECKING:
    from judged.web.topics.asked import AskedList
    from judged.web.workspace import Workspace


@dataclass(frozen=True)
class TopicLine:
    """One topic of the list."""

    query_id: str  # the text is empty where it is not known
    query: str  # the text is empty where it is not known
    # relevant, judged: how many documents have a relevant grade, and any
    relevant: int
    judged: int
    scores: tuple[float | None, ...]  # one a run; None: no score
    # mean, spread: of these scores: their mean, and the largest less the smallest
    mean: float | None
    spread: float | None


@dataclass(frozen=True)
class TopicList:
    """A page of the list of topics."""

    # measure, family: the measure of the scores, and the name under which it is described
    measure: str
    family: str
    lower_is_better: bool
    relevant_from: float | None  # the least relevant grade; None: any above 0
    # runs, other_runs: those whose scores are shown, and all others
    runs: tuple[str, ...]
    other_runs: tuple[str, ...]
    sort: str
    topics: tuple[TopicLine, ...]
    # total, of: how many topics the list has, and how many there are without search and expression
    total: int
    of: int
    page: int
    pages: int
    notes: tuple[str, ...]

    @property
    def paging(self) -> Paging:
        """Which part of the list is shown."""
        return Paging.at(self.page, self.total)


def topics(workspace: Workspace, asked: AskedList) -> TopicList:
    """Give a page of the list of topics."""
    measure, runs = parse(asked.measure), shown_runs(workspace, asked)
    table, order = table_of(workspace, measure, runs), ordered(workspace, asked)
    paging = Paging.at(asked.page, len(order))
    ids = workspace.query_ids
    lines = tuple(
        TopicLine(
            query_id=ids[at],
            query=workspace.query(ids[at]),
            relevant=int(table.relevant[at]),
            judged=int(table.judged[at]),
            scores=tuple(map(number, table.scores[:, at].tolist())),
            mean=number(float(table.mean[at])),
            spread=number(float(table.spread[at])),
        )
        for at in paging.of(order.tolist())
    )
    return TopicList(
        measure=str(measure),
        family=measure.entry.name,
        lower_is_better=lower_is_better(measure),
        relevant_from=relevant_from(measure),
        runs=runs,
        other_runs=tuple(name for name in workspace.run_names if name not in runs),
        sort=asked.sort,
        topics=lines,
        total=len(order),
        of=len(ids),
        page=paging.page,
        pages=paging.last,
        notes=table.notes,
    )


def number(value: float) -> float | None:
    """Give None for a score that does not exist."""
    return None if math.isnan(value) else value
