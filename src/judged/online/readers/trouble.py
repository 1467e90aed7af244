"""What was wrong with the rows of a log that is read by a mapping: counted in the database, with the first places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from judged.online.engine import literal
from judged.online.readers.load import run, trouble_of
from judged.online.readers.mapping_file import RENAMED, MappingFile
from judged.online.readers.raw import Trouble
from judged.online.readers.sections import Check

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


def lacking(mapping: MappingFile, rows: Counter[str], filled: Counter[tuple[str, str]]) -> Iterable[Trouble]:
    """Name the columns that are expected, and that no record has."""
    for section in mapping.sections:
        kind = "query" if section.kind == "queries" else "event"
        for name, value in section.columns.items():
            if value.expected and rows[kind] and not filled[kind, RENAMED.get(name, name)]:
                written = value.paths[0]
                yield Trouble.of("mapping", "absent-column", kind, rows=rows[kind], written=written)
