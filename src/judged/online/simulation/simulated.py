"""Simulated logs with their true values; large logs are written in parts."""

from __future__ import annotations

import tempfile
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from judged.errors import InputError
from judged.online.simulation.clicks import PositionBased
from judged.online.simulation.plan import LogDamage, SimulatedCollection, SimulationPlan
from judged.online.simulation.rows import LogIds, Sample, assign_ids, event_columns, query_columns, sample_log
from judged.online.simulation.sessions import STEPS
from judged.online.simulation.truth import Truth, by_rank, ratio_terms
from judged.online.simulation.world import FileFormat, event_table, make_world, query_table, write_tables
from judged.results.files import remove_folder
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.simulation.world import WrittenRows
    from judged.results.types import Table

_BATCH_SIZE = 16_000  # users, with about six pages each
_STEEP_BIAS = PositionBased((1.0, 0.6, 0.4, 0.27, 0.19, 0.14, 0.1, 0.075, 0.055, 0.04))


@dataclass(frozen=True)
class LargeLog:
    """Files and sizes of a written log.

    Parameters
    ----------
    files
        Files of queries and events.
    queries, events, users
        Number of rows of each, and of users including bots.
    """

    files: tuple[Path, Path]
    queries: int
    events: int
    users: int


def large_plan() -> SimulationPlan:
    """Return the plan of large logs: 20,000 topics, two arms, and strong position bias."""
    control = replace(SimulationPlan().arms[0], probability=0.5)
    arms = (control, replace(control, name="treatment", noise=0.6))
    return SimulationPlan(collection=SimulatedCollection(topics=20_000), arms=arms, browsing=_STEEP_BIAS)


def write_large(
    folder: str | Path, *, events: int = 10_000_000, seed: int = 0, plan: SimulationPlan | None = None
) -> LargeLog:
    """Write a log with at least `events` events as Parquet files in UBI 1.3.0.

    Parameters
    ----------
    folder
        Output folder, created if needed.
    events
        Minimum number of events. The last batch is reduced, so that the log has few more.
    seed
        Seed of the users.
    plan
        Plan of the simulation, whose number of users is ignored. None: `large_plan`.

    Raises
    ------
    InputError
        If `events` is below 1, or the users of the plan cause no events.
    """
    if events < 1:
        raise InputError(f"`events` must be at least 1, got {events}", fix="use 1 or more")
    plan = plan or large_plan()
    world = make_world(plan)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = (folder / "ubi_queries.parquet", folder / "ubi_events.parquet")
    log = LargeLog(files, 0, 0, 0)
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []
        for batch in range(1, 1_000_000):
            # From the events per user so far; the first batch is small, as this rate is unknown.
            missing_users = (events - log.events) * log.users / log.events if log.events else events / 100
            people = max(1, min(_BATCH_SIZE, round(1.02 * missing_users)))
            sample = sample_log(plan, world, people, (seed, batch))
            ids, rows = assign_ids(sample), sample.written_rows()
            tables = (
                query_table(query_columns(sample, ids, rows, packed=True)),
                event_table(event_columns(sample, ids, rows, packed=True)),
            )
            # Without the Arrow schema, texts are read as strings and not as dictionaries.
            writers = writers or [
                stack.enter_context(pq.ParquetWriter(file, table.schema, store_schema=False))
                for file, table in zip(files, tables, strict=True)
            ]
            for writer, table in zip(writers, tables, strict=True):
                writer.write_table(table)
            users = log.users + len(sample.users.quota)
            log = LargeLog(files, log.queries + len(tables[0]), log.events + len(tables[1]), users)
            if log.events >= events:
                return log
            if not log.events:
                raise InputError(
                    "the plan produces no events", fix="use a plan in which pages have results that users examine"
                )
    raise AssertionError("unreachable")


def simulate(plan: SimulationPlan, seed: int) -> SimulatedLog:
    """Simulate a log.

    The collection depends on the seed of the plan, users and their behavior on `seed`. Results are reproducible.
    Damage is sampled last, so that a plan with damage has the same true values as the plan without.

    Parameters
    ----------
    plan
        All assumptions.
    seed
        Seed of the users.

    Examples
    --------
    >>> from judged.online.simulation import SimulationPlan, Users, simulate
    >>> log = simulate(SimulationPlan(users=Users(number=20)), seed=1)
    >>> log.queries.num_rows == log.truth.counts["pages"], sorted(log.truth.counts)
    (True, ['events', 'pages', 'sessions', 'users'])
    """
    return SimulatedLog(sample_log(plan, make_world(plan), plan.users.number, (seed,)))


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """Simulated log with its true values. See `simulate`."""

    sample: Sample

    @property
    def plan(self) -> SimulationPlan:
        """Plan of the simulation."""
        return self.sample.plan

    @cached_property
    def queries(self) -> Table:
        """Queries in the format of UBI, with damage."""
        return query_table(query_columns(self.sample, self._ids, self._written))

    @cached_property
    def events(self) -> Table:
        """Events in the format of UBI, with damage."""
        return event_table(event_columns(self.sample, self._ids, self._written))

    @cached_property
    def truth(self) -> Truth:
        """True values of the log."""
        return _truth(self.sample, self._ids, self._written)

    def without_damage(self) -> SimulatedLog:
        """Return the same log without damage."""
        return SimulatedLog(replace(self.sample, plan=replace(self.plan, damage=LogDamage())))

    def write(self, folder: str | Path, form: FileFormat = "parquet") -> tuple[Path, ...]:
        """Write the log in UBI 1.3.0.

        Parameters
        ----------
        folder
            Output folder, created if needed.
        form
            ``parquet``, ``ndjson`` or ``csv``: two files, ``ubi_queries`` and ``ubi_events``; ``bulk``: one file in
            the bulk format of OpenSearch.

        Returns
        -------
        tuple
            Written files, queries first.
        """
        truncated = self.plan.damage.truncated
        return write_tables(Path(folder), self.queries, self.events, form, truncated=truncated)

    def log(self, **options: Any) -> InteractionLog:
        """Write the log to a temporary folder and read it; `options` are those of `judged.online.read_log`."""
        import importlib

        read_log = importlib.import_module("judged.online.storage").read_log
        folder = tempfile.mkdtemp()
        form: FileFormat = "ndjson" if self.plan.damage.truncated else "parquet"
        log: InteractionLog = read_log([str(path) for path in self.write(folder, form)], **options)
        weakref.finalize(log.engine, remove_folder, folder)  # Shown results are read lazily from the files.
        return log

    def qrels(self) -> Qrels:
        """Return the true grades of the documents of each query's topic, for the queries in the log."""
        from judged.data.qrels import Qrels

        grades, topic = self.sample.world.grades, self.sample.pages.topic
        texts, first = np.unique(np.array(self._ids.text.to_pylist(), dtype=object), return_index=True)
        topics, n_documents = topic[first], grades.shape[1]
        documents = (topics[:, None] * n_documents + np.arange(n_documents)).ravel()
        table = pa.table(
            {
                "query_id": pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), n_documents))),
                "doc_id": self._ids.document.take(pa.array(documents)),
                "relevance": pa.array(grades[topics].ravel().astype(np.float64)),
            }
        )
        return Qrels(table, name="truth")

    @cached_property
    def _written(self) -> WrittenRows:
        return self.sample.written_rows()

    @cached_property
    def _ids(self) -> LogIds:
        return assign_ids(self.sample)


def _truth(sample: Sample, ids: LogIds, written: WrittenRows) -> Truth:
    plan, pages, users = sample.plan, sample.pages, sample.users
    people = ~users.bot[pages.user]
    clicked, examined = by_rank(plan, pages, people)
    of_people = people[sample.events.page]
    ratios = {key: terms.ratio() for key, terms in ratio_terms(plan, pages, sample.sales, people).items()}
    return Truth(
        ratios=ratios,
        ctr_by_rank=clicked,
        examination=examined,
        counts={
            "pages": int(people.sum()),
            "events": int(of_people.sum()),
            "sessions": int(ratios["SessionsPerUser"].numerator),
            "users": int((~users.bot).sum()),
        },
        bots=frozenset(ids.user.take(pa.array(np.flatnonzero(users.bot))).to_pylist()),
        bot_queries=int((~people[written.queries]).sum()),
        bot_events=int((~of_people[written.events]).sum()),
        damage_counts=written.counts,
        pages=_page_table(sample, ids, people),
        clicks=_click_table(sample, ids, people),
    )


def _page_table(sample: Sample, ids: LogIds, people: Any) -> Table:
    pages, rows = sample.pages, np.flatnonzero(people)
    user = pages.user[rows]
    names = ("topic", "misspelt", "page", "zero", "rescued", "total", "shown", "last_seen", "latency")
    return pa.table(
        {
            "query_id": ids.query.take(pa.array(rows)),
            "session_id": ids.session.take(pa.array(ids.session_of[rows])),
            "user_id": ids.user.take(pa.array(user)),
            "time_ms": sample.plan.start + pages.time[rows],
            "text": ids.text.take(pa.array(rows)),
            "variant": pa.array([arm.name for arm in sample.plan.arms]).take(pa.array(sample.users.arm[user])),
            **{key: getattr(pages, key)[rows] for key in names},
            "clicks": pages.clicked[rows].sum(axis=1),
            "satisfied": pages.satisfied[rows].any(axis=1),
            "next": pa.array(STEPS).take(pa.array(pages.step[rows])),
        }
    )


def _click_table(sample: Sample, ids: LogIds, people: Any) -> Table:
    pages, sales = sample.pages, sample.sales
    page, place = position = np.nonzero(pages.clicked & people[:, None])
    outcomes = {"satisfied": pages.satisfied, "censored": sales.censored}
    outcomes |= {"cart": sales.carts, "purchase": sales.purchases}
    return pa.table(
        {
            "query_id": ids.query.take(pa.array(page)),
            "user_id": ids.user.take(pa.array(pages.user[page])),
            "rank": (pages.page[page] - 1) * sample.plan.page.size + place + 1,
            "object_id": ids.document.take(pa.array(pages.docs[position])),
            "dwell_ms": pages.dwell[position].astype(np.int64),
            **{key: column[position] for key, column in outcomes.items()},
        }
    )
