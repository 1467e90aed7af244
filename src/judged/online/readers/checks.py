"""What was wrong with the rows of a log that is read by a mapping, and names that no record has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from judged.errors import InputError
from judged.online.engine import literal
from judged.online.log import RAW_QUERY
from judged.online.readers.files import Part, opened
from judged.online.readers.mapping_file import MappingFile, Section, nearest
from judged.online.readers.paths import keys_of
from judged.online.readers.raw import Trouble, run, trouble_of
from judged.online.readers.sections import Check, Taken

if TYPE_CHECKING:
    from judged.online.engine import Engine


LOST = ("broken-json", "no-record", "broken-record", "unknown-record")


def lost(stage: str, files: Sequence[str], engine: Engine) -> Iterable[Trouble]:
    """Count the rows of a stage that are of no use."""
    for rule in LOST:
        like = Trouble.of("mapping", rule, "file", lost=True)
        yield from trouble_of(engine, files, stage, f"_kind = {literal(rule)}", like)


def found_in(table: str, kind: str, checks: Sequence[Check], files: Sequence[str], engine: Engine) -> Iterable[Trouble]:
    """Count what the rows of a section say is wrong with them."""
    if not checks:
        return
    counts = ", ".join(f"count(*) FILTER ({one.bad})" if one.bad != "true" else "count(*)" for one in checks)
    for check, rows in zip(checks, run(engine, f"SELECT {counts} FROM {table}")[0], strict=True):
        like = Trouble.of("mapping", check.rule, kind, rows=rows, column=check.column, written=check.written)
        like = replace(like, problem=check.note or like.problem)
        if rows and check.bad == "true":
            yield like
        elif rows:
            yield from trouble_of(engine, files, table, check.bad, like)


Stages: TypeAlias = "Sequence[tuple[str, Sequence[tuple[Taken, str]]]]"
_SAMPLE = 10_000
"""So many records of each file are looked at for names."""


def refuse_absent(mapping: MappingFile, stages: Stages, parts: Sequence[Part], engine: Engine) -> None:
    """Refuse what no record of a section has, if there are any at all.

    Parameters
    ----------
    stages
        The tables of all records, with what the sections take of each, and their tables.

    Raises
    ------
    InputError
        If a path is nowhere, and is not optional.
    """
    for section in mapping.sections:
        taken = [(stage, one, table) for stage, tables in stages for one, table in tables if one.section is section]
        lacked = [_lacked(stage, one.told, engine) | _lacked(table, one.needed, engine) for stage, one, table in taken]
        nowhere = [paths for paths in sorted(lacked[0] if lacked else ()) if all(paths in one for one in lacked)]
        if not nowhere:
            continue
        names = dict.fromkeys(name for _, one, _ in taken for name in one.names) | _names(parts)
        for paths in nowhere:
            if not any(".".join(keys_of(path)) in names for path in paths):
                fix = f"{nearest(paths[0], names)}. What only some logs have is written with optional = true"
                raise InputError(f"no record has {paths[0]!r}", fix=fix, path=mapping.path)


def _lacked(table: str, needed: Mapping[tuple[str, ...], str], engine: Engine) -> set[tuple[str, ...]]:
    """Give the paths that no row of a table has, if it has any."""
    if not needed:
        return set()
    found = ", ".join(f"coalesce(bool_or({column}), false)" for column in needed.values())
    rows, *there = run(engine, f"SELECT count(*), {found} FROM {table}")[0]
    return {
        paths
        for (paths, column), one in zip(needed.items(), there, strict=True)
        if not one and (rows or column == "false")
    }


def _names(parts: Sequence[Part]) -> dict[str, None]:
    """Give what the first records of lines have, null or not."""
    names: dict[str, None] = {}
    for part in parts:
        with opened(part) as file:
            for line in islice(file, _SAMPLE):
                with suppress(ValueError, RecursionError):  # objects in one another by the thousand: others tell names
                    record = json.loads(line[max(line.find(b"{"), 0) :])
                    _members(record.get("_source", record) if isinstance(record, dict) else record, "", names)
    return names


def _members(value: Any, before: str, found: dict[str, None]) -> None:
    if isinstance(value, list):
        for one in value[:3]:
            _members(one, before, found)
    if isinstance(value, dict):
        for key, inner in value.items():
            path = f"{before}.{key}" if before else str(key)
            found[path] = None
            _members(inner, path, found)


_OF_A_RESULT = {"hit_ids": "object_id", "teams": "team", "propensities": "propensity"}
_TYPES = {"teams": "VARCHAR[]", "propensities": "DOUBLE[]"}

ASTRAY = "query_id IS NULL OR (position IS NULL AND object_id IS NOT NULL)"
"""A row of a result that no place is known for."""


def grouped(section: Section, rows: str, rank_base: int) -> str:
    """Make pages of rows that are one result each: the rows of one ``query_id``, in order of their positions.

    A row without a position and an object is a page without results, as a left join of results to pages writes it.
    """
    skipped = {"file", "row", "query_id", "time_ms", "first_rank", "ranks", *_OF_A_RESULT}
    listed = "list({} ORDER BY position, file, row) FILTER (position IS NOT NULL)".format
    shift = 1 - rank_base
    gaps = "max(position) - min(position) + 1 <> count(position)"
    doubled = "count(DISTINCT position) <> count(position)"
    columns = [
        "min(file) AS file",
        "arg_min(row, (file, row)) AS row",
        "query_id",
        "min(time_ms) AS time_ms",
        f"nullif(min(position) + {shift}, 1) AS first_rank",
        f"CASE WHEN {gaps} OR {doubled} THEN {listed(f'position + {shift}')} END AS ranks",
        f"coalesce({listed('object_id')}, []) AS hit_ids",
    ]
    for name, of in _OF_A_RESULT.items():
        if name != "hit_ids":
            there = of in section.columns
            columns.append(f"{listed(of) if there else f'NULL::{_TYPES[name]}'} AS {name}")
    names = [one.name for one in RAW_QUERY if one.name not in skipped]
    names += [f"a_{number}" for number in range(len(section.attributes))]
    columns += [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    return f"SELECT {', '.join(columns)}, {doubled} AS doubled FROM {rows} WHERE NOT ({ASTRAY}) GROUP BY query_id"


def clicked(section: Section, rows: str) -> str:
    """Make pages of rows that are one click each: the rows of one ``query_id``; what stood on them nobody says."""
    names = [one.name for one in RAW_QUERY if one.name not in {"file", "row", "query_id", "time_ms"}]
    names += [f"a_{number}" for number in range(len(section.attributes))]
    columns = [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    keys = "min(file) AS file, arg_min(row, (file, row)) AS row, query_id, min(time_ms) AS time_ms"
    return f"SELECT {keys}, {', '.join(columns)} FROM {rows} WHERE query_id IS NOT NULL GROUP BY query_id"
