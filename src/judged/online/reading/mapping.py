"""Any other log: JSON lines, CSV, TSV or Parquet, by a TOML file that says which of its columns are ours.

The layouts of mappings and examples are described in docs/logs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.online.engine import literal
from judged.online.reading.loading import Progress, Rows, dropped_after, existing, new_name, run, trouble_of
from judged.online.reading.mapping_file import MappingFile, Section, Value, nearest, read_mapping
from judged.online.reading.mapping_rows import Loader
from judged.online.reading.mapping_sql import (
    ASTRAY,
    Records,
    absent,
    chosen,
    clicked_pages,
    files_of,
    grouped,
    kept_columns,
    made,
)
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY, RawLog, Trouble
from judged.online.tables import ATTRIBUTE_LIMIT

if TYPE_CHECKING:
    from judged.online.engine import Engine


def read(paths: Sequence[Path | str], engine: Engine, *, mapping: str | Path, progress: Progress = None) -> RawLog:
    """Read files as a mapping says.

    Parameters
    ----------
    paths
        JSON lines, CSV, TSV (all three compressed or not) or Parquet.
    engine
        Where the rows go.
    mapping
        A TOML file, or the name of one that comes with judged: see `examples`.
    progress
        Called with the number of records since the last call.

    Raises
    ------
    InputError
        If a file or the mapping cannot be read, or the mapping names a column that no record has.
    """
    files = existing(paths)
    known = read_mapping(mapping)
    if sum(len(one.attributes) for one in known.sections) > ATTRIBUTE_LIMIT:
        raise InputError(f"the mapping has more than {ATTRIBUTE_LIMIT} attributes", fix="name fewer", path=known.path)
    records_name = new_name("records")
    with dropped_after(engine, records_name):
        loader = Loader(engine, known, files, records_name, progress)
        loader.load(paths)
        clock = any("time" in one.columns for one in known.sections)
        records = Records(records_name, loader.columns, known.null, files, clock, known.rank_base or 0)
        _check_formats(engine, known)
        _check_where(engine, known, records, loader)
        queries, query_trouble = _Maker(engine, known, records, loader).all("queries")
        pages = [one for one in known.sections if one.kind == "queries"]
        empty = run(engine, f"SELECT 1 FROM {queries} WHERE len(hit_ids) = 0 LIMIT 1")
        events, event_trouble = _Maker(engine, known, records, loader).all("events")
    return RawLog(
        queries=engine.table(queries),
        events=engine.table(events),
        layout="mapping",
        files=files,
        rank_base=known.rank_base,
        actions=known.actions,
        lines=loader.lines,
        trouble=(*loader.trouble, *query_trouble, *event_trouble),
        empty_told=bool(empty) or not all(one.results or one.clicks for one in pages),
        left_told=not pages or not all(one.clicks for one in pages),
        has_time=clock
        and not any(one.columns["time"].format == "order" for one in known.sections if "time" in one.columns),
    )


def _check_formats(engine: Engine, mapping: MappingFile) -> None:
    """Refuse patterns of times that the database does not understand."""
    import duckdb

    for section in mapping.sections:
        value = section.columns.get("time")
        if value is not None and "%" in value.format:
            try:
                run(engine, f"SELECT try_strptime('', {literal(value.format)})")
            except duckdb.Error:
                fix = "write it as for strptime, such as %Y-%m-%d %H:%M:%S"
                raise InputError(
                    f"the pattern of times {value.format!r} is not understood", fix=fix, path=mapping.path
                ) from None


def _check_where(engine: Engine, mapping: MappingFile, records: Records, loader: Loader) -> None:
    """Refuse patterns that no file fits, and conditions on what no record has: they leave nothing without a word."""
    for section in mapping.sections:
        if not files_of(section, records.files):
            fix = f"give it, or change the pattern; given: {', '.join(records.files)}"
            raise InputError(f"no file fits the pattern {section.files!r}", fix=fix, path=mapping.path)
        values = [Value(paths=(one.path,)) for one in section.where if not one.path.startswith("@")]
        values += [section.each] if section.each else []
        _check_values(engine, mapping, values, Section(section.kind, {}), records, loader)


def _check_values(
    engine: Engine, mapping: MappingFile, values: Sequence[Value], section: Section, records: Records, loader: Loader
) -> None:
    """Refuse what no record of a section has, if there are any at all."""
    tests = absent(values, records)
    if not tests:
        return
    found = ", ".join(f"coalesce(bool_or({test}), false)" for test in tests.values())
    rows, *there = run(engine, f"SELECT count(*), {found} FROM ({chosen(section, records)})")[0]
    missing = [path for path, one in zip(tests, there, strict=True) if not one]
    if rows and missing:
        raise InputError(
            f"no record has {missing[0]!r}",
            fix=f"{nearest(missing[0], loader.paths())}. What only some logs have is written with optional = true",
            path=mapping.path,
        )


class _Maker:
    """Makes one raw table of all its sections."""

    def __init__(self, engine: Engine, mapping: MappingFile, records: Records, loader: Loader) -> None:
        self._engine, self._mapping, self._records, self._loader = engine, mapping, records, loader

    def all(self, kind: str) -> tuple[str, list[Trouble]]:
        """Give the table's name, and what could not be used."""
        sections = [one for one in self._mapping.sections if one.kind == kind]
        attributes = dict.fromkeys(name for one in sections for name in one.attributes)
        name, kept, trouble = new_name(kind), [], []
        staged: list[str] = []
        for section in sections:
            values = [*section.columns.values(), *section.attributes.values()]
            _check_values(self._engine, self._mapping, values, section, self._records, self._loader)
            stage = new_name("stage")
            run(self._engine, f"CREATE TABLE {stage} AS {made(section, self._records)}")
            staged.append(stage)
            trouble += self._odd(section, stage)
            if section.clicks:
                pages = new_name("pages")
                run(self._engine, f"CREATE TABLE {pages} AS {clicked_pages(section, stage)}")
                staged.append(pages)
                stage = pages
            elif section.results:
                pages = new_name("pages")
                run(self._engine, f"CREATE TABLE {pages} AS {grouped(section, stage, self._mapping.rank_base or 0)}")
                staged.append(pages)
                trouble += self._misplaced(stage, pages)
                stage = pages
            kept.append(f"SELECT {kept_columns(section, attributes, self._mapping.rank_base or 0)} FROM {stage}")
        empty = Rows(self._engine, "empty", RAW_QUERY if kind == "queries" else RAW_EVENT)
        staged.append(empty.name)
        with dropped_after(self._engine, *staged):
            run(self._engine, f"CREATE TABLE {name} AS {' UNION ALL '.join(kept) or f'FROM {empty.name}'}")
        return name, trouble

    def _odd(self, section: Section, stage: str) -> list[Trouble]:
        kind = "query" if section.kind == "queries" else "event"
        names = [one for (one,) in run(self._engine, f"SELECT DISTINCT unnest(odd) AS one FROM {stage} ORDER BY one")]
        found: list[Trouble] = []
        for name in names:
            time = name == "time_ms"
            like = Trouble(
                "odd-time" if time else "odd-value",
                kind,
                0,
                False,
                f"the value of {name} cannot be read",
                "give its format in the mapping" if time else "write a number, or true or false",
            )
            condition = f"list_contains(odd, {literal(name)})"
            found += trouble_of(self._engine, self._records.files, stage, condition, like)
        return found

    def _misplaced(self, stage: str, pages: str) -> list[Trouble]:
        lost = Trouble("no-page", "query", 0, True, "the result has no query_id or no position", "log both")
        problem = "two results of the page have one position"
        doubled = Trouble("odd-rank", "query", 0, False, problem, "log each result once, or one page for each list")
        files = self._records.files
        return [
            *trouble_of(self._engine, files, stage, ASTRAY, lost),
            *trouble_of(self._engine, files, pages, "doubled", doubled),
        ]
