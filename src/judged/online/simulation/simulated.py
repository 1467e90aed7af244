"""Simulated logs, beside what is true of them; large ones part by part."""

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
from judged.online.simulation import world as damage
from judged.online.simulation.clicks import PositionBased
from judged.online.simulation.plan import Broken, Collection, SimulationPlan
from judged.online.simulation.rows import Drawn, Names, draw, event_columns, name, query_columns
from judged.online.simulation.sessions import STEPS
from judged.online.simulation.truth import Truth, by_rank, sums_of
from judged.online.simulation.world import make_world
from judged.results.files import remove_folder
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.online.log import InteractionLog
    from judged.online.simulation.world import Written
    from judged.results.types import Table

_LOT = 16_000  # users, of some six pages each
_STEEP = PositionBased((1.0, 0.6, 0.4, 0.27, 0.19, 0.14, 0.1, 0.075, 0.055, 0.04))


@dataclass(frozen=True)
class LargeLog:
    """What was written: the files, and how many rows.

    Parameters
    ----------
    files
        Queries, and events.
    queries, events, users
        Rows of each, and users, bots among them.
    """

    files: tuple[Path, Path]
    queries: int
    events: int
    users: int


def large_plan() -> SimulationPlan:
    """Give the plan of large logs: 20,000 topics, two arms, and seldom a look far down the page."""
    control = replace(SimulationPlan().arms[0], probability=0.5)
    arms = (control, replace(control, name="treatment", noise=0.6))
    return SimulationPlan(collection=Collection(topics=20_000), arms=arms, browsing=_STEEP)


def write_large(
    folder: str | Path, *, events: int = 10_000_000, seed: int = 0, plan: SimulationPlan | None = None
) -> LargeLog:
    """Write a log of at least so many events as Parquet, UBI 1.3.0.

    Parameters
    ----------
    folder
        Where to; it is made.
    events
        Rows of events to reach. The last lot of users is cut to what is missing, so that there are few more.
    seed
        Of the users.
    plan
        What to simulate; its number of users is not looked at. None: `large_plan`.

    Raises
    ------
    InputError
        If `events` is below 1, or the plan's users do nothing.
    """
    if events < 1:
        raise InputError(f"{events} events are no log", fix="ask for 1 or more")
    plan = plan or large_plan()
    world = make_world(plan)
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    files = (where / "ubi_queries.parquet", where / "ubi_events.parquet")
    done = LargeLog(files, 0, 0, 0)
    with ExitStack() as stack:
        writers: list[pq.ParquetWriter] = []
        for lot in range(1, 1_000_000):
            missing = (events - done.events) * done.users / done.events if done.events else events / 100
            drawn = draw(plan, world, max(1, min(_LOT, round(1.02 * missing))), (seed, lot))
            names, rows = name(drawn), drawn.broken()
            tables = (
                damage.query_table(query_columns(drawn, names, rows, packed=True)),
                damage.event_table(event_columns(drawn, names, rows, packed=True)),
            )
            # without Arrow's schema, so that texts are read as texts and not as dictionaries
            writers = writers or [
                stack.enter_context(pq.ParquetWriter(file, table.schema, store_schema=False))
                for file, table in zip(files, tables, strict=True)
            ]
            for writer, table in zip(writers, tables, strict=True):
                writer.write_table(table)
            users = done.users + len(drawn.crowd.quota)
            done = LargeLog(files, done.queries + len(tables[0]), done.events + len(tables[1]), users)
            if done.events >= events:
                return done
            if not done.events:
                raise InputError("the plan's users leave no events", fix="let them see something")
    raise AssertionError("unreachable")


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
        return damage.query_table(query_columns(self.drawn, self._names, self._written))

    @cached_property
    def events(self) -> Table:
        """The rows of events in UBI's shape, damage included."""
        return damage.event_table(event_columns(self.drawn, self._names, self._written))

    @cached_property
    def truth(self) -> Truth:
        """What is true of it."""
        return _truth(self.drawn, self._names, self._written)

    def unbroken(self) -> SimulatedLog:
        """Give the same log before anything broke."""
        return SimulatedLog(replace(self.drawn, plan=replace(self.plan, broken=Broken())))

    def write(self, folder: str | Path, form: damage.Form = "parquet") -> tuple[Path, ...]:
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
        return damage.write(Path(folder), self.queries, self.events, form, truncated=truncated)

    def log(self, **options: Any) -> InteractionLog:
        """Write it, and read it as any other log; `options` go to `judged.online.read_log`."""
        import importlib

        read_log = importlib.import_module("judged.online.storage").read_log
        folder = tempfile.mkdtemp()
        form: damage.Form = "ndjson" if self.plan.broken.truncated else "parquet"
        log: InteractionLog = read_log([str(path) for path in self.write(folder, form)], **options)
        weakref.finalize(log.engine, remove_folder, folder)  # what is shown is read where it stands
        return log

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
    )


def _page_table(drawn: Drawn, names: Names, people: Any) -> Table:
    pages, rows = drawn.pages, np.flatnonzero(people)
    user = pages.user[rows]
    plain = ("topic", "misspelt", "page", "zero", "rescued", "total", "shown", "last_seen", "latency")
    return pa.table(
        {
            "query_id": names.query.take(pa.array(rows)),
            "session_id": names.session.take(pa.array(names.session_of[rows])),
            "user_id": names.user.take(pa.array(user)),
            "time_ms": drawn.plan.start + pages.time[rows],
            "text": names.text.take(pa.array(rows)),
            "variant": pa.array([one.name for one in drawn.plan.arms]).take(pa.array(drawn.crowd.arm[user])),
            **{key: getattr(pages, key)[rows] for key in plain},
            "clicks": pages.clicked[rows].sum(axis=1),
            "satisfied": pages.satisfied[rows].any(axis=1),
            "next": pa.array(STEPS).take(pa.array(pages.step[rows])),
        }
    )


def _click_table(drawn: Drawn, names: Names, people: Any) -> Table:
    pages, sales = drawn.pages, drawn.sales
    page, place = at = np.nonzero(pages.clicked & people[:, None])
    told = {"satisfied": pages.satisfied, "censored": sales.censored, "cart": sales.carts, "purchase": sales.purchases}
    return pa.table(
        {
            "query_id": names.query.take(pa.array(page)),
            "user_id": names.user.take(pa.array(pages.user[page])),
            "rank": (pages.page[page] - 1) * drawn.plan.page.size + place + 1,
            "object_id": names.document.take(pa.array(pages.docs[at])),
            "dwell_ms": pages.dwell[at].astype(np.int64),
            **{key: column[at] for key, column in told.items()},
        }
    )
