"""Checks of a log that is read by a mapping: unusable rows, and paths that no record has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.engine import literal
from judged.online.log import RAW_QUERY
from judged.online.readers.files import LogFile, json_objects
from judged.online.readers.mapping_file import MappingFile, MappingSection, suggest_name
from judged.online.readers.paths import leading_names
from judged.online.readers.raw import ReadFinding, locate_rows, run_sql
from judged.online.readers.sections import SectionQuery

if TYPE_CHECKING:
    from judged.online.engine import Database


UNUSABLE = ("broken-json", "no-record", "broken-record", "unknown-record")


def unusable_rows(table: str, file_names: Sequence[str], engine: Database) -> Iterable[ReadFinding]:
    """Yield a finding for each reason why rows of a mapped table cannot be used."""
    for rule in UNUSABLE:
        finding = ReadFinding.from_rule("mapping", rule, "file", lost=True)
        yield from locate_rows(engine, file_names, table, f"_kind = {literal(rule)}", finding)


def check_rows(table: str, query: SectionQuery, file_names: Sequence[str], engine: Database) -> Iterable[ReadFinding]:
    """Yield a finding for each check that rows of a section fail."""
    if not query.checks:
        return
    # All checks are counted in one pass. Only the few that fail are queried again for their places.
    failures = [check.failure for check in query.checks]
    counts = ", ".join("count(*)" if failure == "true" else f"count(*) FILTER ({failure})" for failure in failures)
    for check, rows in zip(query.checks, run_sql(engine, f"SELECT {counts} FROM {table}")[0], strict=True):
        rule, column, path = check.rule, check.column, check.path
        finding = ReadFinding.from_rule("mapping", rule, query.kind, rows=rows, column=column, written=path)
        finding = replace(finding, problem=check.note or finding.problem)
        # If all rows fail, places are of no use.
        if rows and check.failure == "true":
            yield finding
        elif rows:
            yield from locate_rows(engine, file_names, table, check.failure, finding)


_MAX_NAMES = 20  # unused columns that a finding lists
_SAMPLE_LINES = 10_000  # lines of each file that are searched for names of members


def check_paths_exist(
    mapping: MappingFile,
    tables: Sequence[tuple[str, SectionQuery, str]],
    log_files: Sequence[LogFile],
    engine: Database,
) -> None:
    """Check that each path of a mapping is in some record, unless there are no records or the path is optional.

    Parameters
    ----------
    tables
        For each section of each mapped table: the mapped table, the query of the section, and its table.

    Raises
    ------
    InputError
        If no record has a path.
    """
    for section in mapping.sections:
        section_tables = [row for row in tables if row[1].section is section]
        missing = [
            _missing_paths(source, query.required_of_records, engine) | _missing_paths(table, query.required, engine)
            for source, query, table in section_tables
        ]
        missing_everywhere = sorted(set.intersection(*missing)) if missing else []
        if not missing_everywhere:
            continue
        # A member that is null in all records is not missing, so the names in the files are searched, too.
        names = dict.fromkeys(name for _, query, _ in section_tables for name in query.column_names)
        names |= _member_names(log_files)
        for paths in missing_everywhere:
            if not any(".".join(leading_names(path)) in names for path in paths):
                fix = f"{suggest_name(paths[0], names)}. If only some logs have the path, add optional = true"
                raise InputError(f"no record has {paths[0]!r}", fix=fix, path=mapping.path)


def unused_columns(
    mapping: MappingFile, queries: Iterable[SectionQuery], log_files: Sequence[LogFile]
) -> Iterable[ReadFinding]:
    """Yield a finding with the columns, or the members of JSON records, that a mapping does not name."""
    if mapping.flat is not None or any(section.attribute_object for section in mapping.sections):
        return
    names = dict.fromkeys(name for query in queries for name in query.column_names if name)
    names = names or dict.fromkeys(name for name in _member_names(log_files) if "." not in name)
    used = {name for path in mapping.all_paths for name in (path, leading_names(path)[0])}
    if unused := [name for name in names if name not in used]:
        more = ", ".join(unused[:_MAX_NAMES]) + (", ..." if len(unused) > _MAX_NAMES else "")
        finding = ReadFinding.from_rule("mapping", "unused-columns", "column", rows=len(unused), more=more)
        yield replace(finding, total=len(names))


def _missing_paths(table: str, required: Mapping[tuple[str, ...], str], engine: Database) -> set[tuple[str, ...]]:
    """Return the paths without a value in a table. An empty table misses only paths that can have no value."""
    if not required:
        return set()
    tests = ", ".join(f"coalesce(bool_or({column}), false)" for column in required.values())
    row_count, *is_present = run_sql(engine, f"SELECT count(*), {tests} FROM {table}")[0]
    return {
        paths
        for (paths, column), present in zip(required.items(), is_present, strict=True)
        if not present and (row_count or column == "false")
    }


def _member_names(log_files: Sequence[LogFile]) -> dict[str, None]:
    names: dict[str, None] = {}
    for log_file in log_files:
        for record in json_objects(log_file, _SAMPLE_LINES):
            with suppress(RecursionError):
                _add_members(record, "", names)
    return names


def _add_members(value: Any, prefix: str, names: dict[str, None]) -> None:
    if isinstance(value, list):
        # The first elements of a list show its members.
        for element in value[:3]:
            _add_members(element, prefix, names)
    if isinstance(value, dict):
        for key, member in value.items():
            path = f"{prefix}.{key}" if prefix else str(key)
            names[path] = None
            _add_members(member, path, names)


_RESULT_COLUMNS = {"hit_ids": "object_id", "teams": "team", "propensities": "propensity"}
_LIST_TYPES = {"teams": "VARCHAR[]", "propensities": "DOUBLE[]"}

UNPLACED = "query_id IS NULL OR (position IS NULL AND object_id IS NOT NULL)"
"""SQL condition of a result row that belongs to no page or has no position."""


def pages_from_results(section: MappingSection, rows: str, rank_base: int) -> str:
    """Return SQL that groups rows of one result each into pages by ``query_id``, ordered by position.

    A row without a position and an object is a page without results, as in a left join of pages and results.
    """
    grouped = {"file", "row", "query_id", "time_ms", "first_rank", "ranks", *_RESULT_COLUMNS}
    by_position = "list({} ORDER BY position, file, row) FILTER (position IS NOT NULL)".format
    shift = 1 - rank_base
    has_gaps = "max(position) - min(position) + 1 <> count(position)"
    has_duplicates = "count(DISTINCT position) <> count(position)"
    # Ranks are stored only if they are not consecutive. Otherwise the first rank is enough.
    ranks = by_position(f"position + {shift}")
    columns = [
        "min(file) AS file",
        "arg_min(row, (file, row)) AS row",
        "query_id",
        "min(time_ms) AS time_ms",
        f"nullif(min(position) + {shift}, 1) AS first_rank",
        f"CASE WHEN {has_gaps} OR {has_duplicates} THEN {ranks} END AS ranks",
        f"coalesce({by_position('object_id')}, []) AS hit_ids",
    ]
    for list_column, column in _RESULT_COLUMNS.items():
        if list_column != "hit_ids":
            values = by_position(column) if column in section.columns else f"NULL::{_LIST_TYPES[list_column]}"
            columns.append(f"{values} AS {list_column}")
    return (
        f"SELECT {', '.join(columns + _first_values(section, grouped))}, {has_duplicates} AS has_duplicate_ranks "
        f"FROM {rows} WHERE NOT ({UNPLACED}) GROUP BY query_id"
    )


def pages_from_clicks(section: MappingSection, rows: str) -> str:
    """Return SQL that groups rows of one click each into pages by ``query_id``. Their results are unknown."""
    columns = _first_values(section, {"file", "row", "query_id", "time_ms"})
    keys = "min(file) AS file, arg_min(row, (file, row)) AS row, query_id, min(time_ms) AS time_ms"
    return f"SELECT {keys}, {', '.join(columns)} FROM {rows} WHERE query_id IS NOT NULL GROUP BY query_id"


def _first_values(section: MappingSection, grouped: set[str]) -> list[str]:
    names = [column.name for column in RAW_QUERY if column.name not in grouped]
    names += [f"a_{number}" for number in range(len(section.attributes))]
    return [f"arg_min({name}, (file, row)) AS {name}" for name in names]
