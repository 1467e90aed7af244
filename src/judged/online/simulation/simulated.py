"""Simulate a log whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.online.simulation import ubi
from judged.online.simulation.plan import Broken, SimulationPlan
from judged.online.simulation.rows import Drawn, Names, draw, event_columns, name, query_columns
from judged.online.simulation.sessions import STEPS
from judged.online.simulation.truth import Truth, by_rank, sums_of
from judged.online.simulation.world import make_world
from judged.online.tables import Column, arrow_type

if TYPE_CHECKING:
    from judged._types import Table
    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.simulation.damage import Written


def simulate(plan: SimulationPlan, seed: int) -> SimulatedLog:
    """Draw a log.

    The collection is drawn by the plan's own seed; `seed` draws users and all that they do. The same plan and seed give
    the same bits. What breaks on the way into the log is drawn last, so that a plan with damage has the truth of the
    plan without.

    Parameters
    ----------
    plan
        All assumptions.
    seed
        Of the users.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, Users, simulate
    >>> log = simulate(SimulationPlan(users=Users(number=20)), seed=1)
    >>> log.queries.num_rows == log.truth.counts["pages"], sorted(log.truth.counts)
    (True, ['events', 'pages', 'sessions', 'users'])
    """
    return SimulatedLog(draw(plan, make_world(plan), plan.users.number, (seed,)))


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A log that was made, and what is true of it. See `simulate`."""

    drawn: Drawn

    @property
    def plan(self) -> SimulationPlan:
        """What it was made from."""
        return self.drawn.plan

    @cached_property
    def queries(self) -> Table:
        """The rows of queries in UBI's shape, damage included."""
        return ubi.query_table(self._query_columns)

    @cached_property
    def events(self) -> Table:
        """The rows of events in UBI's shape, damage included."""
        return ubi.event_table(self._event_columns)

    @cached_property
    def truth(self) -> Truth:
        """What is true of it."""
        return _truth(self.drawn, self._names, self._written)

    def unbroken(self) -> SimulatedLog:
        """Give the same log before anything broke."""
        return SimulatedLog(replace(self.drawn, plan=replace(self.plan, broken=Broken())))

    def tables(self) -> tuple[Table, Table]:
        """Give the rows as a reader would: columns RAW_QUERY and RAW_EVENT, a time that cannot be read as null."""
        from judged.online.readers.raw import RAW_EVENT, RAW_QUERY

        events = dict(self._event_columns)
        unreadable = events["unreadable"].to_numpy(zero_copy_only=False)
        events["time_ms"] = pa.array(events["time_ms"].to_numpy(), mask=unreadable)
        return _raw(RAW_QUERY, self._query_columns, 0), _raw(RAW_EVENT, events, 1)

    def write(self, folder: str | Path, form: ubi.Form = "parquet") -> tuple[Path, ...]:
        """Write it as UBI 1.3.0.

        Parameters
        ----------
        folder
            Where to; it is made.
        form
            ``parquet``, ``ndjson`` or ``csv``: two files, ``ubi_queries`` and ``ubi_events``; ``bulk``: one file in
            OpenSearch's bulk format.

        Returns
        -------
        tuple
            The files: queries first.
        """
        truncated = self.plan.broken.truncated
        return ubi.write(Path(folder), self.queries, self.events, form, truncated=truncated)

    def log(self, **options: Any) -> InteractionLog:
        """Write it, and read it as any other log; `options` go to `judged.online.read_log`."""
        import importlib
        import tempfile

        read_log = importlib.import_module("judged.online.open_log").read_log
        with tempfile.TemporaryDirectory() as folder:
            form: ubi.Form = "ndjson" if self.plan.broken.truncated else "parquet"
            return read_log([str(path) for path in self.write(folder, form)], **options)

    def qrels(self) -> Qrels:
        """Give the true grades of every document of each text's topic, for the texts that were asked."""
        from judged.data.qrels import Qrels

        grades, topic = self.drawn.world.grades, self.drawn.pages.topic
        texts, first = np.unique(np.array(self._names.text.to_pylist(), dtype=object), return_index=True)
        topics, each = topic[first], grades.shape[1]
        documents = (topics[:, None] * each + np.arange(each)).ravel()
        table = pa.table(
            {
                "query_id": pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), each))),
                "doc_id": self._names.document.take(pa.array(documents)),
                "relevance": pa.array(grades[topics].ravel().astype(np.float64)),
            }
        )
        return Qrels(table, name="truth")

    @cached_property
    def _written(self) -> Written:
        return self.drawn.broken()

    @cached_property
    def _names(self) -> Names:
        return name(self.drawn)

    @cached_property
    def _query_columns(self) -> dict[str, Any]:
        return query_columns(self.drawn, self._names, self._written)

    @cached_property
    def _event_columns(self) -> dict[str, Any]:
        return event_columns(self.drawn, self._names, self._written)


def _raw(columns: tuple[Column, ...], given: dict[str, Any], file: int) -> Table:
    """Give the columns of a raw table: null what no simulated log tells."""
    rows = len(given["time_ms"])
    known = {**given, "file": pa.array(np.full(rows, file, dtype=np.int32)), "row": pa.array(np.arange(1, rows + 1))}
    return pa.table(
        {
            one.name: known[one.name].cast(arrow_type(one.type))
            if one.name in known
            else pa.nulls(rows, arrow_type(one.type))
            for one in columns
        }
    )


def _truth(drawn: Drawn, names: Names, written: Written) -> Truth:
    plan, pages, crowd = drawn.plan, drawn.pages, drawn.crowd
    people = ~crowd.bot[pages.user]
    clicked, examined = by_rank(plan, pages, people)
    of_people = people[drawn.happenings.page]
    ratios = {key: sums.ratio() for key, sums in sums_of(plan, pages, drawn.sales, people).items()}
    return Truth(
        ratios=ratios,
        ctr_by_rank=clicked,
        examination=examined,
        counts={
            "pages": int(people.sum()),
            "events": int(of_people.sum()),
            "sessions": int(ratios["SessionsPerUser"].numerator),
            "users": int((~crowd.bot).sum()),
        },
        bots=frozenset(names.user.take(pa.array(np.flatnonzero(crowd.bot))).to_pylist()),
        bot_queries=int((~people[written.queries]).sum()),
        bot_events=int((~of_people[written.events]).sum()),
        broken=written.counts,
        pages=_page_table(drawn, names, people),
        clicks=_click_table(drawn, names, people),
        relevance=_relevance(drawn, names),
    )


def _page_table(drawn: Drawn, names: Names, people: Any) -> Table:
    pages, rows = drawn.pages, np.flatnonzero(people)
    plain = ("topic", "misspelt", "page", "zero", "rescued", "total", "shown", "last_seen", "latency")
    return pa.table(
        {
            "query_id": names.query.take(pa.array(rows)),
            "session_id": names.session.take(pa.array(names.session_of[rows])),
            "user_id": names.user.take(pa.array(pages.user[rows])),
            "time_ms": pa.array(drawn.plan.start + pages.time[rows]),
            "text": names.text.take(pa.array(rows)),
            "variant": pa.array([one.name for one in drawn.plan.arms]).take(
                pa.array(drawn.crowd.arm[pages.user[rows]])
            ),
            **{key: pa.array(getattr(pages, key)[rows]) for key in plain},
            "clicks": pa.array(pages.clicked[rows].sum(axis=1)),
            "satisfied": pa.array(pages.satisfied[rows].any(axis=1)),
            "next": pa.array(STEPS).take(pa.array(pages.step[rows])),
        }
    )


def _click_table(drawn: Drawn, names: Names, people: Any) -> Table:
    pages, sales = drawn.pages, drawn.sales
    page, place = np.nonzero(pages.clicked & people[:, None])
    return pa.table(
        {
            "query_id": names.query.take(pa.array(page)),
            "user_id": names.user.take(pa.array(pages.user[page])),
            "rank": pa.array((pages.page[page] - 1) * drawn.plan.page.size + place + 1),
            "object_id": names.document.take(pa.array(pages.docs[page, place])),
            "dwell_ms": pa.array(pages.dwell[page, place].astype(np.int64)),
            "satisfied": pa.array(pages.satisfied[page, place]),
            "censored": pa.array(sales.censored[page, place]),
            "cart": pa.array(sales.carts[page, place]),
            "purchase": pa.array(sales.purchases[page, place]),
        }
    )


def _relevance(drawn: Drawn, names: Names) -> Table:
    grades = drawn.world.grades.ravel()
    topics = np.repeat(np.arange(drawn.world.grades.shape[0]), drawn.world.grades.shape[1])
    return pa.table(
        {
            "topic": pa.array(topics),
            "doc_id": names.document,
            "grade": pa.array(grades.astype(np.int64)),
            "attractiveness": pa.array(np.array(drawn.plan.collection.attractiveness)[grades]),
            "satisfaction": pa.array(np.array(drawn.plan.collection.satisfaction)[grades]),
        }
    )
