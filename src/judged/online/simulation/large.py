"""Logs of any size, in bounded memory: users are simulated some at a time, each lot one row group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from judged.errors import InputError
from judged.online.simulation import ubi
from judged.online.simulation.models import PositionBased
from judged.online.simulation.plan import Collection, SimulationPlan
from judged.online.simulation.rows import Drawn, Names, draw, event_columns, name, query_columns
from judged.online.simulation.world import make_world

if TYPE_CHECKING:
    from judged._types import Table

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
    start = SimulationPlan()
    arms = (
        replace(start.arms[0], probability=0.5),
        replace(start.arms[0], name="treatment", noise=0.6, probability=0.5),
    )
    return replace(start, collection=Collection(topics=20_000), arms=arms, browsing=_STEEP)


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
    # without Arrow's schema, so that texts are read as texts and not as dictionaries
    first = _shaped(draw(plan, world, 1, (seed, 0)))
    done = LargeLog(files, 0, 0, 0)
    with (
        pq.ParquetWriter(files[0], first[0].schema, store_schema=False) as queries,
        pq.ParquetWriter(files[1], first[1].schema, store_schema=False) as written,
    ):
        for lot in range(1, 1_000_000):
            missing = (events - done.events) * done.users / done.events if done.events else events / 100
            drawn = draw(plan, world, max(1, min(_LOT, round(1.02 * missing))), (seed, lot))
            shaped = _shaped(drawn)
            queries.write_table(shaped[0])
            written.write_table(shaped[1])
            users = done.users + len(drawn.crowd.quota)
            done = LargeLog(files, done.queries + shaped[0].num_rows, done.events + shaped[1].num_rows, users)
            if done.events >= events:
                return done
            if not done.events:
                raise InputError("the plan's users leave no events", fix="let them see something")
    raise AssertionError("unreachable")


def _shaped(drawn: Drawn) -> tuple[Table, Table]:
    names: Names = name(drawn)
    rows = drawn.broken()
    return (
        ubi.query_table(query_columns(drawn, names, rows, packed=True)),
        ubi.event_table(event_columns(drawn, names, rows, packed=True)),
    )
