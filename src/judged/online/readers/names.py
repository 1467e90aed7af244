"""Names of records: paths that no record has are refused, with the nearest that one has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from judged.errors import InputError
from judged.online.readers.files import Part, opened
from judged.online.readers.load import run
from judged.online.readers.mapping_file import MappingFile, nearest
from judged.online.readers.mapping_path import keys_of
from judged.online.readers.sections import Taken

if TYPE_CHECKING:
    from judged.online.engine import Engine

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
        nowhere = [paths for paths in (lacked[0] if lacked else {}) if all(paths in one for one in lacked)]
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
