"""What was wrong with the rows of a UBI log: counted in the database, with the first places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from judged.online.engine import identifier
from judged.online.reading.loading import PLACES, run
from judged.online.reading.raw import Trouble
from judged.online.reading.records import Count
from judged.online.reading.ubi_fields import ESSENTIAL, EVENT_FIELDS, QUERY_FIELDS
from judged.online.reading.ubi_sql import Reading
from judged.online.reading.values import TEXT_LIMIT

if TYPE_CHECKING:
    from judged.online.engine import Engine

_WORDS = {
    "broken-json": ("this is no JSON", "write one record a line, whole"),
    "no-record": ("this is JSON, and no object", 'write {"action_name": ...} or {"user_query": ...}'),
    "not-ubi": ("neither action_name nor user_query nor query_id is in it", "leave other records out of the log"),
    "odd-time": ("this is no time, or one before 1995", "write ISO 8601 with Z or an offset"),
    "no-offset": ("the time has no offset: it was taken as UTC", "write Z or an offset behind it"),
    "long-text": (f"a query's text was cut to {TEXT_LIMIT} characters", "log what users type"),
    "dwell-time": (
        "dwell_time is the time on the page until the event, not that of a visit to a result: it is not used",
        "write how long the opened result was looked at as event_attributes.dwell_ms",
    ),
}
_LOST = ("broken-json", "no-record", "not-ubi")
_WRITTEN = {one.name: one.places[0] for one in (*QUERY_FIELDS, *EVENT_FIELDS)}


def counted(count: Count, rule: str, problem: str, fix: str, *, lost: bool = True) -> list[Trouble]:
    """Give what was counted while a file was read; nothing where it never happened."""
    if not count.rows:
        return []
    return [Trouble(rule, "file", count.rows, lost, problem, fix, tuple(count.places))]


def found_in(table: str, reading: Reading, files: Sequence[str], engine: Engine) -> list[Trouble]:
    """Count what the rows of a table say is wrong with them."""
    checks = reading.checks
    bits = "".join(f", count(*) FILTER ((_bad & {1 << at}) != 0)" for at in range(len(checks)))
    where = "" if bits or _has_lost(reading) else " WHERE false"
    found: list[Trouble] = []
    sql = f"SELECT _kind, count(*){bits} FROM {table}{where} GROUP BY _kind ORDER BY _kind"
    for kind, rows, *counts in run(engine, sql):
        if kind in _LOST:
            places = _places(f"SELECT file, row FROM {table} WHERE _kind = '{kind}'", files, engine)
            found.append(Trouble(kind, "file", rows, True, *_WORDS[kind], places))
            continue
        if reading.no_offset and rows:
            found.append(Trouble("no-offset", kind, rows, False, *_WORDS["no-offset"]))
        for at, (check, count) in enumerate(zip(checks, counts, strict=True)):
            if not count:
                continue
            marked = f"SELECT file, row FROM {table} WHERE _kind = '{kind}' AND (_bad & {1 << at}) != 0"
            problem, fix = _WORDS.get(check.rule) or _wrong_type(check.column)
            found.append(Trouble(check.rule, kind, count, False, problem, fix, _places(marked, files, engine)))
    return found


def _has_lost(reading: Reading) -> bool:
    return reading.no_offset


def _wrong_type(column: str) -> tuple[str, str]:
    written = _WRITTEN.get(column, column)
    return f"what stands in {written} cannot be used as {column}", f"write {written} as docs/ubi.md says"


def _places(sql: str, files: Sequence[str], engine: Engine) -> tuple[str, ...]:
    first = run(engine, f"{sql} ORDER BY file, row LIMIT {PLACES}")
    return tuple(f"{files[file]}:{row}" for file, row in first)


def lacking(stages: Sequence[tuple[str, Reading, Sequence[str]]], engine: Engine) -> list[Trouble]:
    """Name the columns that nearly everything needs and that a kind of record lacks altogether."""
    found: list[Trouble] = []
    for kind, columns in ESSENTIAL.items():
        rows, filled = 0, dict.fromkeys(columns, 0)
        for table, reading, kinds in stages:
            if kind not in kinds:
                continue
            counts = ", ".join(
                f"count({identifier(one)})" if len(kinds) > 1 else str(int(one in reading.columns)) for one in columns
            )
            sql = f"SELECT count(*), {counts} FROM {table}"
            number, *each = run(engine, sql + (f" WHERE _kind = '{kind}'" if len(kinds) > 1 else ""))[0]
            rows += number
            for one, count in zip(columns, each, strict=True):
                filled[one] += count
        for one in columns:
            if rows and not filled[one]:
                written = _WRITTEN[one]
                problem, fix = f"no record has {written}", f"write {written} into every record"
                found.append(Trouble("absent-column", kind, rows, lost=False, problem=problem, fix=fix))
    return found
