"""What breaks on the way into a log, and logs written as UBI."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from judged.data.compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from judged._types import Bools, Ints, Table
    from judged.online.simulation.plan import Broken, SimulationPlan
    from judged.online.simulation.rows import Happenings
    from judged.online.simulation.sessions import Crowd, Pages

SOUND, COPY, FACETS, FUTURE, UNREADABLE = range(5)
_LOST = -1


@dataclass(frozen=True, eq=False)
class Written:
    """The rows that are written.

    Parameters
    ----------
    queries, query_flags
        Page of each row, and what is wrong with it: SOUND, COPY or FACETS.
    events, event_flags
        Happening of each row, and SOUND, COPY, FUTURE or UNREADABLE.
    behind
        By user: the clock of the browser is behind.
    zero_based
        By event row: its rank counts from 0.
    counts
        Rows that each kind of damage hit.
    """

    queries: Ints
    query_flags: NDArray[np.int8]
    events: Ints
    event_flags: NDArray[np.int8]
    behind: Bools
    zero_based: Bools
    counts: dict[str, int]


_OF_QUERIES = {"duplicated_queries": COPY, "facet_requests": FACETS, "lost_queries": _LOST}
_OF_EVENTS = {"duplicated_events": COPY, "lost_events": _LOST, "future_events": FUTURE, "unreadable_times": UNREADABLE}


def break_rows(
    plan: SimulationPlan, crowd: Crowd, pages: Pages, happenings: Happenings, rng: np.random.Generator
) -> Written:
    """Draw what goes wrong."""
    asked = plan.broken
    page_fate, event_fate = _fates(rng, len(pages), asked, _OF_QUERIES), _fates(rng, len(happenings), asked, _OF_EVENTS)
    in_order = np.argsort(pages.time, kind="stable")
    queries, query_flags = _rows(page_fate[in_order])
    events, event_flags = _rows(event_fate)
    behind = rng.random(len(crowd.quota)) < asked.skewed_users
    names = list(plan.applications)
    zero = names.index(asked.zero_based) if asked.zero_based in names else -1
    of_event = happenings.page[events]
    zero_based = (pages.application[of_event] == zero) & (happenings.place[events] >= 0)
    skewed = behind[pages.user[of_event]]
    early = skewed & (happenings.time[events] - round(1000 * asked.skew) < pages.time[of_event])
    hit = {name: page_fate == fate for name, fate in _OF_QUERIES.items()}
    hit |= {name: event_fate == fate for name, fate in _OF_EVENTS.items()}
    hit |= {"orphaned_events": page_fate[of_event] == _LOST, "zero_based_ranks": zero_based, "skewed_events": skewed}
    hit["events_before_their_query"] = early & (event_flags <= COPY)
    counts = {name: int(rows.sum()) for name, rows in hit.items()} | {"truncated_lines": int(asked.truncated)}
    return Written(in_order[queries], query_flags, events, event_flags, behind, zero_based, counts)


def _fates(rng: np.random.Generator, rows: int, asked: Broken, fates: Mapping[str, int]) -> NDArray[np.int8]:
    """Draw one fate a row, so that no row suffers two."""
    at = np.searchsorted(np.cumsum([getattr(asked, name) for name in fates]), rng.random(rows), side="right")
    return np.array([*fates.values(), SOUND], dtype=np.int8)[at]


def _rows(fates: NDArray[np.int8]) -> tuple[Ints, NDArray[np.int8]]:
    """Give the rows that are written, in order: nothing of what is lost, two of what has a copy or facets."""
    double = (fates == COPY) | (fates == FACETS)
    rows = np.repeat(np.arange(len(fates)), np.where(fates == _LOST, 0, np.where(double, 2, 1)))
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    return rows, np.where(double[rows] & first, SOUND, fates[rows]).astype(np.int8)


Form: TypeAlias = Literal["parquet", "ndjson", "bulk", "csv"]
_UNREADABLE = ("yesterday", "31/02/2026 25:61", "")
_STAMP = pa.timestamp("ms", "UTC")


def query_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_QUERY as UBI's queries."""
    attributes = {
        **_named(columns, "page page_size=size result_count=n_total rescued filtered language device latency_ms"),
        "experiment": _struct(_named(columns, "name=experiment variant probability=assign_p")),
        **_named(columns, "ranker user_agent"),
        **{name: column for name, column in columns.items() if name.startswith(("interleaving", "propensit"))},
    }
    known = _named(columns, "query_id client_id=user_id session_id application user_query=query")
    hits = {"query_response_hit_ids": columns["hit_ids"], "query_attributes": _struct(attributes)}
    return pa.table({**known, "timestamp": columns["time_ms"].cast(_STAMP), **hits})


def event_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_EVENT as UBI's events; times are texts where some are none."""
    position, product = (_struct(_named(columns, one)) for one in ("ordinal=position", "object_id"))
    parts = {"position": position, "object": product, "value": columns["value"]}
    attributes = _struct(parts, mask=pc.is_null(columns["position"]))
    known = _named(columns, "event_id action_name=action query_id session_id client_id=user_id application")
    return pa.table({**known, "timestamp": _times(columns), "event_attributes": attributes})


def _named(columns: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Give columns by UBI's names, each with ours behind it where it is another: ``client_id=user_id``."""
    pairs = (name.partition("=") for name in names.split())
    return {name: columns[ours or name] for name, _, ours in pairs}


def write(folder: Path, queries: Table, events: Table, form: Form, *, truncated: bool) -> tuple[Path, ...]:
    """Write both tables into files of a form; see `SimulatedLog.write`."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {"ubi_queries": queries, "ubi_events": events}
    if form == "parquet":
        return tuple(_parquet(folder / f"{name}.parquet", table) for name, table in given.items())
    if form == "csv":
        return tuple(_csv(folder / f"{name}.csv", table) for name, table in given.items())
    if form == "ndjson":
        lines = {folder / f"{name}.ndjson": list(_lines(table)) for name, table in given.items()}
    else:
        lines = {folder / "ubi.ndjson": [line for name, table in given.items() for line in _bulk(name, table)]}
    for path, every in lines.items():
        cut = truncated and path.name != "ubi_queries.ndjson"
        path.write_text("\n".join(every)[: -len(every[-1]) // 2] if cut and every else "\n".join([*every, ""]))
    return tuple(lines)


def _parquet(path: Path, table: Table) -> Path:
    pq.write_table(table, path)
    return path


def _csv(path: Path, table: Table) -> Path:
    """Write structs as columns with dots in their names, and lists as JSON."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    for at, one in enumerate(table.schema):
        if pa.types.is_list(one.type):
            table = table.set_column(at, one.name, pa.array([json.dumps(each) for each in table[at].to_pylist()]))
        if pa.types.is_timestamp(one.type):
            table = table.set_column(at, one.name, _written(table[at]))
    pyarrow.csv.write_csv(table, path)
    return path


def _bulk(name: str, table: Table) -> Iterator[str]:
    head = json.dumps({"index": {"_index": name}})
    for line in _lines(table):
        yield head
        yield line


def _lines(table: Table) -> Iterator[str]:
    """Give rows as JSON, without what is null: UBI's schema has no nulls."""
    if pa.types.is_timestamp(table.schema.field("timestamp").type):
        table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", _written(table["timestamp"]))
    for row in table.to_pylist():
        yield json.dumps(_known(row))


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items() if one is not None}  # pyright: ignore[reportUnknownVariableType]
    return value


def _times(columns: Mapping[str, Any]) -> Any:
    times = columns["time_ms"].cast(_STAMP)
    damaged = np.flatnonzero(columns["unreadable"].to_numpy(zero_copy_only=False))
    if not len(damaged):
        return times
    replaced = pa.array([_UNREADABLE[at % len(_UNREADABLE)] for at in range(len(damaged))])
    return pc.replace_with_mask(_written(times), columns["unreadable"], replaced)


def _written(times: Any) -> Any:
    """Write times as ISO 8601 with a Z."""
    return pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ")


def _struct(parts: Mapping[str, Any], mask: Any = None) -> Any:
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=mask)
