"""Reader for any log that a TOML mapping file describes: JSON lines, CSV, TSV, and Parquet, also mixed.

Mappings of the built-in layouts and of other known logs are in `mappings`. docs/log-formats.md describes the format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.log import ATTRIBUTE_LIMIT, PROPENSITY_CONVENTIONS, RAW_EVENT, RAW_QUERY, LogColumn
from judged.online.readers import checks, raw
from judged.online.readers.attributes import AttributeColumns, select_attributes, unmapped_attributes
from judged.online.readers.files import LogFile, ProgressCallback, detect_format, read_head
from judged.online.readers.mapping_file import FORMATS, RENAMED, MappingFile, packaged_mappings
from judged.online.readers.paths import Location, leading_names
from judged.online.readers.raw import RawLog, ReadFinding, ReadFindings
from judged.online.readers.records import LineReader, csv_records, json_records, parquet_records
from judged.online.readers.sections import RecordTable, SectionQuery, SelectBuilder, matching_files, section_query

if TYPE_CHECKING:
    from judged.online.engine import Database


@dataclass(frozen=True)
class SectionTable:
    """The rows of one section: their query, the table or view with them, and attributes that the mapping omits."""

    query: SectionQuery
    name: str
    attributes: AttributeColumns
    source: str
    is_native: bool


@dataclass(frozen=True)
class MappedTable:
    """Records of files with the same columns, as a table of all values that the mapping names."""

    name: str
    row_count: int
    sections: tuple[SectionTable, ...]
    rank_base_column: str
    convention_column: str


def read(
    log_files: Sequence[LogFile], engine: Database, *, mapping: MappingFile, layout: str = "mapping",
    progress: ProgressCallback = None,
) -> RawLog:  # fmt: skip
    """Read files as a mapping describes them.

    Parameters
    ----------
    log_files
        JSON lines (plain, OpenSearch bulk, exports with ``_source``, lines that begin with the name of the index),
        CSV, TSV, Parquet; compressed or not.
    engine
        Database to read into.
    mapping
        Mapping of the log's columns to those of judged.
    layout
        Layout name in the result.
    progress
        Called with a description and the fraction done.

    Returns
    -------
    RawLog
        Tables of queries and events. Parquet with typed columns is not copied: its tables are views.

    Raises
    ------
    InputError
        If a file cannot be read, or no record has a column that the mapping names.
    """
    file_names = tuple(log_file.name for log_file in log_files)
    _check_mapping(mapping, file_names, engine)
    line_findings = ReadFindings()
    tables = list(_RecordReader(log_files, mapping, engine, line_findings, progress).read())
    sections = [section for table in tables for section in table.sections]
    # A misspelled path would silently give an empty column, so it is an error before anything else is counted.
    queries_by_table = [(section.source, section.query, section.name) for section in sections]
    checks.check_paths_exist(mapping, queries_by_table, log_files, engine)
    findings = [*line_findings.to_tuple()]
    lost_lines = sum(finding.rows for finding in findings if finding.lost)
    for table in tables:
        findings += checks.unusable_rows(table.name, file_names, engine)
        for section in table.sections:
            findings += checks.check_rows(section.name, section.query, file_names, engine)
    findings += _absent_columns(sections, mapping, engine)
    pages, page_findings = _pages(sections, mapping, file_names, engine)
    queries, attribute_findings = _queries_view(sections, pages, mapping, len(log_files), engine)
    rank_base, base_findings = _rank_base(tables, engine)
    convention, convention_findings = _convention(tables, mapping, engine)
    query_sections = [section for section in mapping.sections if section.kind == "queries"]
    times = [section.columns["time"] for section in mapping.sections if "time" in section.columns]
    events = [
        _events_select(section, _with_last_pages(section, pages, engine), queries if times else "")
        for section in sections
        if section.query.kind == "event"
    ]
    # Rows that are results or clicks exist only for pages that have some. An empty page shows that others are logged.
    has_page_rows = any(section.rows == "pages" for section in query_sections)
    empty_page = f"SELECT 1 FROM {queries} WHERE len(hit_ids) = 0 LIMIT 1"
    if layout == "mapping" and mapping.path.removesuffix(".toml") not in packaged_mappings():
        findings += checks.unused_columns(mapping, [section.query for section in sections], log_files)
    findings += [*page_findings, *attribute_findings, *base_findings, *convention_findings]
    return RawLog(
        engine.table(queries), engine.table(_union_view(events, RAW_EVENT, engine)), layout, file_names,
        rank_base=mapping.rank_base if mapping.rank_base_source is None else rank_base,
        propensity_convention=convention, actions=mapping.actions,
        lines=sum(table.row_count for table in tables) + lost_lines,
        findings=ReadFindings(findings).to_tuple(),
        logs_empty_pages=has_page_rows or bool(raw.run_sql(engine, empty_page)),
        # Rows of clicks with lists of results can include pages without a click.
        logs_unclicked_pages=not query_sections
        or any(section.rows != "clicks" or "hit_ids" in section.columns for section in query_sections),
        has_time=bool(times) and not any(time.format == "order" for time in times),
    )  # fmt: skip


def _check_mapping(mapping: MappingFile, file_names: Sequence[str], engine: Database) -> None:
    import duckdb

    for section in mapping.sections:
        if not matching_files(section, file_names):
            fix = f"add a file that matches, or change the pattern; the files are {', '.join(file_names)}"
            raise InputError(f"no file matches the pattern {section.file_pattern!r}", fix=fix, path=mapping.path)
        time = section.columns.get("time")
        if time is not None and "%" in time.format:
            try:
                raw.run_sql(engine, f"SELECT try_strptime('', {literal(time.format)})")
            except duckdb.Error:
                problem = f"invalid time format {time.format!r}"
                fix = "write a time format for strptime, such as %Y-%m-%d %H:%M:%S"
                raise InputError(problem, fix=fix, path=mapping.path) from None
    if (count := sum(len(section.attributes) for section in mapping.sections)) > ATTRIBUTE_LIMIT:
        problem = f"a mapping can have at most {ATTRIBUTE_LIMIT} attributes, got {count}"
        raise InputError(problem, fix="remove attributes", path=mapping.path)


class _RecordReader:
    """Reader of all files of a log into mapped tables."""

    def __init__(
        self, log_files: Sequence[LogFile], mapping: MappingFile, engine: Database, findings: ReadFindings,
        progress: ProgressCallback,
    ) -> None:  # fmt: skip
        self._log_files, self._mapping, self._engine = log_files, mapping, engine
        self._findings, self._progress = findings, progress
        self._has_time = any("time" in section.columns for section in mapping.sections)

    def read(self) -> Iterator[MappedTable]:
        """Read files of lines first, then CSV, then Parquet."""
        numbers: dict[str, list[int]] = {"lines": [], "csv": [], "parquet": []}
        for number, log_file in enumerate(self._log_files):
            numbers[_file_format(log_file, self._mapping)].append(number)
        if numbers["lines"]:
            yield self._read_lines(numbers["lines"])
        for number in numbers["csv"]:
            if self._progress:
                self._progress(f"reading {self._log_files[number].name}", number / len(self._log_files))
            yield self._map(csv_records(number, self._log_files[number], self._mapping, self._engine, self._findings))
        parquet_files = [(number, self._log_files[number]) for number in numbers["parquet"]]
        for records in parquet_records(parquet_files, self._engine):
            yield self._map(records)

    def _read_lines(self, numbers: Sequence[int]) -> MappedTable:
        log_files, paths = [self._log_files[number] for number in numbers], self._mapping.all_paths
        has_source = any(b'"_source"' in read_head(log_file) for log_file in log_files)
        reader = LineReader(log_files, numbers, self._findings, self._mapping.encoding, self._progress)
        records = partial(json_records, paths=paths, numbers=numbers, has_source=has_source)
        return reader.use_as_table(self._engine, lambda table: self._map(records(table)))

    def _map(self, records: RecordTable) -> MappedTable:
        """Create a table of all values that the sections name; a view if no JSON has to be parsed for it."""
        mapping, file_names = self._mapping, [log_file.name for log_file in self._log_files]
        # With one file its name distinguishes nothing: it is null, so that it becomes no attribute.
        file = f"[{', '.join(map(literal, file_names))}][file + 1]" if len(file_names) > 1 else "CAST(NULL AS VARCHAR)"
        row = Location("CAST(file AS VARCHAR) || ':' || row", "varchar")
        columns = {**records.columns, "#row": row, "#file": Location(file, "varchar")}
        columns.setdefault("#id", Location("CAST(NULL AS VARCHAR)", "varchar"))
        select = SelectBuilder(mapping, columns, mapping.all_paths, flat=not records.is_json)
        row_kind, conditions, only_queries = _assign_rows(records, select, file_names)
        queries: list[tuple[SectionQuery, AttributeColumns]] = []
        for index, section in enumerate(mapping.sections):
            if (condition := conditions.get(index)) is None:
                continue
            attributes = AttributeColumns({})
            if section.rows == "pages":
                attributes = unmapped_attributes(select, section, columns, records.is_json, only_queries)
            queries.append((section_query(section, condition, select), attributes))
        base, convention = mapping.rank_base_source, mapping.convention_source
        base_column = select.column("base", base)[0] if base else ""
        convention_column = select.column("propensity_convention", convention)[0] if convention else ""
        values = ", ".join(location.sql for location in records.columns.values()) or "row"
        # hash() is unsigned. Shifted by one bit it fits into a BIGINT.
        record_hash = records.record_hash or f"(hash({values}) >> 1)"
        keys = [f"{records.file} AS file", f"{records.row} AS row", f"{row_kind} AS _kind", f"{record_hash} AS record"]
        sql = select.query(records.table, keys)
        # A view avoids a copy of Parquet files, if reading them again needs no parsing.
        is_native = records.table.startswith("read_parquet") and select.is_native and not select.finder.layers
        name = raw.unique_name("stage")
        raw.run_sql(self._engine, f"CREATE {'VIEW' if is_native else 'TABLE'} {name} AS {sql}")
        records.release()
        sections = tuple(self._create(query, attributes, name, is_native) for query, attributes in queries)
        row_count = raw.run_sql(self._engine, f"SELECT count(*) FROM {records.table if is_native else name}")[0][0]
        return MappedTable(name, row_count, sections, base_column, convention_column)

    def _create(self, query: SectionQuery, attributes: AttributeColumns, source: str, is_native: bool) -> SectionTable:
        name = raw.unique_name(query.kind)
        columns = [*attributes.columns.values(), *([attributes.json_column] if attributes.json_column else [])]
        sql = query.sql(source, has_time=self._has_time, more_columns=columns)
        raw.run_sql(self._engine, f"CREATE {'TABLE' if query.items else 'VIEW'} {name} AS {sql}")
        return SectionTable(query, name, attributes, source, is_native)


def _file_format(log_file: LogFile, mapping: MappingFile) -> str:
    detected = detect_format(log_file, [leading_names(path)[0] for path in mapping.all_paths])
    if mapping.format:
        return {"jsonl": "lines", "tsv": "csv"}.get(mapping.format, mapping.format)
    # If sections identify their records by paths, a file of another kind is reported record by record instead.
    if detected is None and not any(section.key_paths for section in mapping.sections):
        fix = f"write format = one of {', '.join(FORMATS)} under [file]"
        raise InputError("unknown file format: not clear from the name or first bytes", fix=fix, path=log_file.name)
    return detected or "lines"


def _assign_rows(
    records: RecordTable, select: SelectBuilder, file_names: Sequence[str]
) -> tuple[str, dict[int, str], bool]:
    """Return SQL of each row's section or problem, each section's row condition, and whether all rows are queries."""
    mapping, all_sections = select.mapping, select.mapping.sections
    cases = [f"WHEN ({records.problem}) IS NOT NULL THEN ({records.problem})"] if records.problem else []
    if mapping.record_conditions:
        cases.append(f"WHEN NOT ({select.all_conditions(mapping.record_conditions)}) THEN 'broken-record'")
    has_problem_cases = bool(cases)
    candidates = [i for i, section in enumerate(all_sections) if section.key_paths or section.fallback_paths]
    candidates.sort(key=lambda index: all_sections[index].kind)  # events first: a record that fits both is an event
    if candidates and records.is_json:
        cases += _json_section_cases(candidates, select, records.index)
    elif candidates:
        candidates = _sections_with_columns(candidates, records, select, file_names)
        for index in candidates[:-1]:
            tests = _presence_tests(all_sections[index].key_paths, select)
            cases.append(f"WHEN {' OR '.join(tests)} THEN 's{index}'")
        cases += [f"ELSE 's{candidates[-1]}'"] if len(candidates) > 1 else []
    conditions: dict[int, str] = {}
    for index, section in enumerate(all_sections):
        numbers = set(matching_files(section, file_names)) & set(records.file_numbers)
        tests = [] if numbers == set(records.file_numbers) else [f"file IN ({', '.join(map(str, numbers))})"]
        is_identified = bool(section.key_paths or section.fallback_paths)
        if not numbers or (is_identified and index not in candidates):
            continue
        if is_identified and (records.is_json or len(candidates) > 1):
            tests.append(f"_kind = 's{index}'")
        elif has_problem_cases or (cases and not is_identified):
            tests.append("_kind IS NULL")
        # Sections with key paths use the index only as a hint, because exports often lack it.
        if section.index_pattern and not is_identified:
            tests.append(select.column_for(_index_test(section.index_pattern, records.index)))
        conditions[index] = " AND ".join(tests) or "true"
    sql = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS VARCHAR)"
    return sql, conditions, len(candidates) == 1 and all_sections[candidates[0]].kind == "queries"


def _sections_with_columns(
    candidates: Sequence[int], records: RecordTable, select: SelectBuilder, file_names: Sequence[str]
) -> list[int]:
    sections = select.mapping.sections
    for attribute in ("key_paths", "fallback_paths"):
        if present := [index for index in candidates if _presence_tests(getattr(sections[index], attribute), select)]:
            return present
    names = ", ".join(name[:40] for name in list(filter(None, records.columns))[:12])
    paths = dict.fromkeys(path for section in sections for path in (*section.key_paths, *section.fallback_paths))
    problem = f"no column identifies queries or events: the columns are {names}"
    fix = f"rename a column to {' or '.join(paths)}, or use a mapping file"
    raise InputError(problem, fix=fix, path=file_names[records.file_numbers[0]])


def _presence_tests(paths: Iterable[str], select: SelectBuilder) -> list[str]:
    """Return one SQL test for each location of the paths: it holds a value."""
    # An empty cell of a CSV file is absent. In JSON an empty text is a value.
    return [
        f"nullif({location.sql}, '') IS NOT NULL"
        if location.type == "varchar" and not location.is_parsed
        else f"{location.sql} IS NOT NULL"
        for path in paths
        for location in select.locations(path)
    ]


def _json_section_cases(candidates: Sequence[int], select: SelectBuilder, index_name: str) -> Iterable[str]:
    """Yield SQL cases that choose the only section whose index pattern fits, else the first with a known path."""
    sections = {index: select.mapping.sections[index] for index in candidates}
    paths = [path for section in sections.values() for path in (*section.key_paths, *section.fallback_paths)]
    for section in sections.values():
        paths += section.columns["time"].paths if "time" in section.columns else ()
    any_present = " OR ".join(_presence_tests(dict.fromkeys(paths), select))
    patterns = {index: section.index_pattern for index, section in sections.items() if section.index_pattern}
    index_tests = {index: _index_test(pattern, index_name) for index, pattern in patterns.items()}
    for index, test in index_tests.items():
        only_fit = " AND ".join([test, *(f"NOT {index_tests[other]}" for other in index_tests if other != index)])
        yield f"WHEN {only_fit} AND ({any_present}) THEN 's{index}'"
    for attribute in ("key_paths", "fallback_paths"):
        for index, section in sections.items():
            if tests := _presence_tests(getattr(section, attribute), select):
                yield f"WHEN {' OR '.join(tests)} THEN 's{index}'"
    yield "ELSE 'unknown-record'"


def _index_test(pattern: str, index_name: str) -> str:
    return f"({index_name or literal('')} GLOB {literal(pattern.lower())})"


def _events_select(section: SectionTable, events: str, timed_queries: str) -> str:
    """Return SQL of a section's events. If only the queries have times, the time of an event is that of its page."""
    columns = ", ".join(identifier(column.name) for column in RAW_EVENT)
    if not timed_queries or {"query_id", "time_ms"} - section.query.columns.keys() != {"time_ms"}:
        return f"SELECT {columns} FROM {events}"
    pages = f"(SELECT query_id, min(time_ms) AS time_ms FROM {timed_queries} GROUP BY query_id)"
    return f"SELECT {columns} FROM (FROM {events} SELECT * EXCLUDE time_ms) LEFT JOIN {pages} USING (query_id)"


def _union_view(selects: Sequence[str], columns: Sequence[LogColumn], engine: Database) -> str:
    name = raw.unique_name("raw")
    empty = f"SELECT {raw.select_list(columns, {})} WHERE false"
    raw.run_sql(engine, f"CREATE VIEW {name} AS {' UNION ALL '.join(selects) or empty}")
    return name


def _pages(
    sections: Sequence[SectionTable],
    mapping: MappingFile,
    file_names: Sequence[str],
    engine: Database,
) -> tuple[list[SectionTable], list[ReadFinding]]:
    """Return the tables of pages of each section. Rows that are results or clicks are grouped into pages."""
    pages: list[SectionTable] = []
    findings: list[ReadFinding] = []
    for section in mapping.sections:
        tables = [table for table in sections if table.query.section is section]
        if section.kind == "events" or not tables:
            continue
        if section.rows == "pages":
            pages += tables
            continue
        rows = f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {table.name}' for table in tables)})"
        name = raw.unique_name("pages")
        if section.rows == "clicks":
            sql = checks.pages_from_clicks(section, rows)
        else:
            sql = checks.pages_from_results(section, rows, mapping.rank_base or 0)
        raw.run_sql(engine, f"CREATE TABLE {name} AS {sql}")
        pages.append(replace(tables[0], name=name, attributes=AttributeColumns({})))
        if section.rows == "results":
            no_page = ReadFinding.from_rule("mapping", "no-page", "query", lost=True)
            duplicate_rank = ReadFinding.from_rule("mapping", "odd-rank", "query")
            findings += raw.locate_rows(engine, file_names, rows, checks.UNPLACED, no_page)
            findings += raw.locate_rows(engine, file_names, name, "has_duplicate_ranks", duplicate_rank)
    return pages, findings


def _queries_view(
    sections: Sequence[SectionTable],
    pages: Sequence[SectionTable],
    mapping: MappingFile,
    file_count: int,
    engine: Database,
) -> tuple[str, tuple[ReadFinding, ...]]:
    """Create the view of queries, with attributes, and with result counts that only events have."""
    attributes, findings = select_attributes([(page.name, page.attributes) for page in pages], mapping, engine)
    sources = [pair for section in mapping.sections for pair in section.attributes.items()]
    # The name of a single file is the same in each row.
    mapped_names = dict.fromkeys(name for name, source in sources if file_count > 1 or source.paths != ("#file",))
    counts = _result_counts(sections, engine)
    selects: list[str] = []
    for page in pages:
        types = {column.name: raw.DUCKDB_TYPES[column.type] for column in RAW_QUERY}
        columns = {column: f"CAST(q.{identifier(column)} AS {kind})" for column, kind in types.items()}
        if counts:
            columns["n_total"] = "coalesce(q.n_total, c.result_count)"
        numbers = {attribute: f"q.a_{number}" for number, attribute in enumerate(page.query.section.attributes)}
        columns |= {attribute: numbers.get(attribute, "CAST(NULL AS VARCHAR)") for attribute in mapped_names}
        columns |= {attribute.column: attribute.sql(page.attributes) for attribute in attributes}
        expressions = ", ".join(f"{sql} AS {identifier(column)}" for column, sql in columns.items())
        join = f" LEFT JOIN {counts} AS c ON q.query_id = c.query_id" if counts else ""
        selects.append(f"SELECT {expressions} FROM {page.attributes.source(page.name, attributes)} AS q{join}")
    return _union_view(selects, RAW_QUERY, engine), findings


def _with_last_pages(events: SectionTable, pages: Sequence[SectionTable], engine: Database) -> str:
    """Return a table of events in which events without a page have the last page before them with the same keys."""
    if not events.query.page_keys:
        return events.name
    key = f"k_{next(iter(events.query.page_keys))}"
    tables = [page.name for page in pages if page.query.section.rows == "pages"]
    rows = " UNION ALL ".join(f"SELECT {key}, time_ms, query_id, row FROM {table}" for table in tables)
    last_pages = f"SELECT {key}, time_ms, arg_max(query_id, row) AS query_id FROM ({rows}) GROUP BY ALL"
    name = raw.unique_name("event")
    raw.run_sql(
        engine,
        f"CREATE TABLE {name} AS SELECT e.* REPLACE (coalesce(e.query_id, p.query_id) AS query_id)"
        f" FROM {events.name} AS e ASOF LEFT JOIN ({last_pages}) AS p ON e.{key} = p.{key} AND e.time_ms >= p.time_ms",
    )
    return name


def _result_counts(sections: Sequence[SectionTable], engine: Database) -> str:
    """Create a table of result counts that events report, by query. Return its name, empty if there are none."""
    events = [section for section in sections if section.query.kind == "event" and section.query.has_values("n_total")]
    if not events:
        return ""
    name = raw.unique_name("counts")
    # Some logs report the result count in events of the query, not in the query.
    rows = " UNION ALL ".join(f"SELECT query_id, n_total FROM {section.name}" for section in events)
    is_known = "n_total IS NOT NULL AND query_id IS NOT NULL"
    counts = f"SELECT query_id, max(n_total) AS result_count FROM ({rows}) WHERE {is_known} GROUP BY query_id"
    raw.run_sql(engine, f"CREATE TABLE {name} AS {counts}")
    return name if raw.run_sql(engine, f"SELECT count(*) FROM {name}")[0][0] else ""


def _absent_columns(sections: Sequence[SectionTable], mapping: MappingFile, engine: Database) -> Iterable[ReadFinding]:
    """Yield a finding for each expected column that no record has. Of typed tables only the schema is read."""
    row_counts: Counter[str] = Counter()
    value_counts: Counter[tuple[str, str]] = Counter()
    for section in sections:
        query = section.query
        names = [RENAMED.get(name, name) for name, source in query.section.columns.items() if source.expected]
        if not names:
            continue
        counts = ", ".join(
            str(int(query.has_values(name))) if section.is_native else f"count({name})" for name in names
        )
        grouping = " GROUP BY ALL" if section.is_native else ""
        row_count, *filled = raw.run_sql(engine, f"SELECT count(*), {counts} FROM {section.name}{grouping}")[0]
        row_counts[query.kind] += row_count
        value_counts.update({(query.kind, name): count for name, count in zip(names, filled, strict=True)})
    for section in mapping.sections:
        kind = "query" if section.kind == "queries" else "event"
        for name, source in section.columns.items():
            if source.expected and (rows := row_counts[kind]) and not value_counts[kind, RENAMED.get(name, name)]:
                yield ReadFinding.from_rule("mapping", "absent-column", kind, rows=rows, written=source.paths[0])


def _rank_base(tables: Sequence[MappedTable], engine: Database) -> tuple[int | None, tuple[ReadFinding, ...]]:
    """Return the rank of the first result that the log declares. Return None if it declares none, or several."""
    counts = _count_values(engine, ((table.name, table.rank_base_column) for table in tables))
    if len(counts) == 1 and next(iter(counts)) in {0, 1}:
        return next(iter(counts)), ()
    if not counts:
        return None, ()
    bases = ", ".join(str(base) for base in sorted(counts)[:5])
    return None, (ReadFinding.from_rule("mapping", "mixed-base", "query", rows=counts.total(), more=bases),)


def _convention(tables: Sequence[MappedTable], mapping: MappingFile, engine: Database) -> tuple[str, list[ReadFinding]]:
    """Return the propensity convention that the mapping or the log declares; empty if none, unknown, or several."""
    if mapping.convention_source is None:
        return mapping.convention, []
    counts = _count_values(engine, ((table.name, table.convention_column) for table in tables))
    if len(counts) <= 1 and counts.keys() <= set(PROPENSITY_CONVENTIONS):
        return next(iter(counts), ""), []
    names = ", ".join(repr(str(convention)[:40]) for convention in sorted(counts)[:5])
    rows, possible = counts.total(), ", ".join(PROPENSITY_CONVENTIONS)
    return "", [ReadFinding.from_rule("mapping", "mixed-convention", "query", rows=rows, more=names, possible=possible)]


def _count_values(engine: Database, columns: Iterable[tuple[str, str]]) -> Counter[Any]:
    """Count the values of columns, each a pair of its table and its name (empty: none)."""
    counts: Counter[Any] = Counter()
    for table, column in columns:
        if column:
            sql = f"SELECT {column}, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY 1 LIMIT 100"
            counts.update(dict(raw.run_sql(engine, sql)))
    return counts
