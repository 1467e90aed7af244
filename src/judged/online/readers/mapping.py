"""Any log, by a TOML file that says which of its columns are ours: JSON lines, CSV, TSV, Parquet, in any mixture.

The mappings of layouts, and those of other logs, are in `mappings`; docs/logs.md describes what they can say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.log import ATTRIBUTE_LIMIT, CONVENTIONS, RAW_EVENT, RAW_QUERY, Column
from judged.online.readers.attributes import Own, attributes_of, own_of
from judged.online.readers.checks import ASTRAY, clicked, found_in, grouped, lost, refuse_absent
from judged.online.readers.files import Opener, Part, first_bytes, form_of
from judged.online.readers.mapping_file import FORMATS, RENAMED, MappingFile, Section
from judged.online.readers.paths import Place, keys_of
from judged.online.readers.raw import DUCKDB, RawLog, Trouble, Troubles, new_name, run, selected, trouble_of
from judged.online.readers.records import Lines, csv_records, parquet_records, records_of_lines
from judged.online.readers.sections import Records, Select, Taken, files_of, taken

if TYPE_CHECKING:
    from judged.online.engine import Engine


@dataclass(frozen=True)
class Stage:
    """Records as the expressions of a mapping, and the rows that each section has of them."""

    name: str
    rows: int
    tables: tuple[tuple[Taken, str, Own], ...]  # what is taken, the view of it, the section's other attributes
    base: str
    convention: str
    typed: bool
    files: int


def read(
    parts: Sequence[Part], engine: Engine, *, mapping: MappingFile, layout: str = "mapping", progress: Opener = None
) -> RawLog:
    """Read files as a mapping says.

    Parameters
    ----------
    parts
        JSON lines (plain, OpenSearch bulk, exports with ``_source``, lines with the index's name in front), CSV, TSV,
        Parquet; packed or not.
    engine
        Where the rows go.
    mapping
        What is what.
    layout
        What to call it.
    progress
        Told what is read, and the share that is done.

    Returns
    -------
    RawLog
        Tables that hold what the log says. Parquet whose columns are typed is not copied: its tables are views.

    Raises
    ------
    InputError
        If a file cannot be read, or the mapping names a column that no record has.
    """
    files = tuple(part.name for part in parts)
    _check(mapping, files, engine)
    troubles = Troubles()
    stages = list(_Reader(parts, mapping, engine, troubles, progress).stages())
    refuse_absent(mapping, [(stage.name, [one[:2] for one in stage.tables]) for stage in stages], parts, engine)
    trouble = [*troubles.given()]
    gone = sum(one.rows for one in trouble if one.lost)
    for stage in stages:
        trouble += lost(stage.name, files, engine)
        for one, table, _ in stage.tables:
            trouble += found_in(table, one.kind, one.checks, files, engine)
    trouble += _lacking(stages, mapping, engine)
    pages, more = _pages(stages, mapping, files, engine)
    queries, left_out = _queries(stages, pages, mapping, engine)
    base, mixed = _rank_base(stages, engine)
    convention, unclear = _convention(stages, mapping, engine)
    asked = [one for one in mapping.sections if one.kind == "queries"]
    events = [table for stage in stages for one, table, _ in stage.tables if one.kind == "event"]
    listed = ", ".join(identifier(one.name) for one in RAW_EVENT)
    times = [one.columns["time"] for one in mapping.sections if "time" in one.columns]
    told = not all(one.results or one.clicks for one in asked)
    return RawLog(
        queries=engine.table(queries),
        events=engine.table(_view([f"SELECT {listed} FROM {table}" for table in events], RAW_EVENT, engine)),
        layout=layout,
        files=files,
        rank_base=mapping.rank_base if mapping.base is None else base,
        propensity_convention=convention,
        actions=mapping.actions,
        lines=sum(stage.rows for stage in stages) + gone,
        trouble=Troubles([*trouble, *more, *left_out, *mixed, *unclear]).given(),
        empty_told=told or bool(run(engine, f"SELECT 1 FROM {queries} WHERE len(hit_ids) = 0 LIMIT 1")),
        left_told=not asked or not all(one.clicks for one in asked),
        has_time=bool(times) and not any(one.format == "order" for one in times),
    )


def _check(mapping: MappingFile, files: Sequence[str], engine: Engine) -> None:
    """Refuse what would leave nothing without a word, and patterns of times that the database does not understand."""
    import duckdb

    for section in mapping.sections:
        if not files_of(section, files):
            fix = f"give it, or change the pattern; given: {', '.join(files)}"
            raise InputError(f"no file fits the pattern {section.files!r}", fix=fix, path=mapping.path)
        value = section.columns.get("time")
        if value is not None and "%" in value.format:
            try:
                run(engine, f"SELECT try_strptime('', {literal(value.format)})")
            except duckdb.Error:
                problem = f"the pattern of times {value.format!r} is not understood"
                fix = "write it as for strptime, such as %Y-%m-%d %H:%M:%S"
                raise InputError(problem, fix=fix, path=mapping.path) from None
    if sum(len(one.attributes) for one in mapping.sections) > ATTRIBUTE_LIMIT:
        raise InputError(f"the mapping has more than {ATTRIBUTE_LIMIT} attributes", fix="name fewer", path=mapping.path)


class _Reader:
    """Brings the records of all files into stages."""

    def __init__(
        self, parts: Sequence[Part], mapping: MappingFile, engine: Engine, troubles: Troubles, progress: Opener
    ) -> None:
        self._parts, self._mapping, self._engine = parts, mapping, engine
        self._troubles, self._progress = troubles, progress
        self._clock = any("time" in one.columns for one in mapping.sections)

    def stages(self) -> Iterator[Stage]:
        """Read the files, those of lines first."""
        forms = [_form(part, self._mapping) for part in self._parts]
        by_form = {form: [at for at, one in enumerate(forms) if one == form] for form in ("lines", "csv", "parquet")}
        if by_form["lines"]:
            yield self._lines(by_form["lines"])
        for at in by_form["csv"]:
            if self._progress:
                self._progress(f"reading {self._parts[at].name}", at / len(self._parts))
            yield self._stage(csv_records(at, self._parts[at], self._mapping, self._engine, self._troubles))
        for records in parquet_records([(at, self._parts[at]) for at in by_form["parquet"]], self._engine):
            yield self._stage(records)

    def _lines(self, numbers: Sequence[int]) -> Stage:
        """Bring lines into the database: one pass, what is too long left out."""
        parts, wanted = [self._parts[at] for at in numbers], self._mapping.all_paths
        wrapped = any(b'"_source"' in first_bytes(part) for part in parts)
        lines = Lines(parts, numbers, self._troubles, self._mapping.encoding, self._progress)
        return lines.into(
            self._engine, lambda name: self._stage(records_of_lines(name, wanted, numbers, wrapped=wrapped))
        )

    def _stage(self, records: Records) -> Stage:
        """Make a table of all that the sections name, or a view, where nothing has to be parsed for it."""
        mapping, names = self._mapping, [part.name for part in self._parts]
        file = f"[{', '.join(map(literal, names))}][file + 1]" if len(names) > 1 else "CAST(NULL AS VARCHAR)"
        columns = {
            **records.columns,
            "#row": Place("CAST(file AS VARCHAR) || ':' || row", "varchar"),
            "#file": Place(file, "varchar"),
        }
        columns.setdefault("#id", Place("CAST(NULL AS VARCHAR)", "varchar"))
        select = Select(mapping, columns, mapping.all_paths, flat=not records.lines)
        kinds, conditions, alone = _kinds(records, select, names)
        plans: list[tuple[Taken, Own]] = []
        for number, section in enumerate(mapping.sections):
            if (where := conditions.get(number)) is None:
                continue
            whole = not section.results and not section.clicks
            own = own_of(select, section, columns, flat=not records.lines, bare=alone) if whole else Own({})
            plans.append((taken(section, where, select), own))
        base = select.column("base", mapping.base)[0] if mapping.base else ""
        logged = mapping.logged_convention
        convention = select.column("propensity_convention", logged)[0] if logged else ""
        whole = records.whole or f"(hash({', '.join(one.sql for one in records.columns.values()) or 'row'}) >> 1)"
        heads = [f"{records.file} AS file", f"{records.row} AS row", f"{kinds} AS _kind", f"{whole} AS record"]
        sql = select.sql(records.table, heads)
        typed = records.table.startswith("read_parquet") and select.typed and not select.finder.layers
        name = new_name("stage")
        run(self._engine, f"CREATE {'VIEW' if typed else 'TABLE'} {name} AS {sql}")
        records.done()
        tables = tuple((plan, self._table(plan, own, name), own) for plan, own in plans)
        rows = run(self._engine, f"SELECT count(*) FROM {records.table if typed else name}")[0][0]
        return Stage(name, rows, tables, base, convention, typed, len(records.files))

    def _table(self, plan: Taken, own: Own, stage: str) -> str:
        name = new_name(plan.kind)
        more = [*own.columns.values(), *([own.as_json] if own.as_json else [])]
        sql = plan.rows(stage, clock=self._clock, more=more)
        run(self._engine, f"CREATE {'TABLE' if plan.items else 'VIEW'} {name} AS {sql}")
        return name


def _form(part: Part, mapping: MappingFile) -> str:
    """Say how a file is written: as the mapping says, by its first bytes, or by its name."""
    form = form_of(part, [keys_of(path)[0] for path in mapping.all_paths])
    if mapping.format:
        return {"jsonl": "lines", "tsv": "csv"}.get(mapping.format, mapping.format)
    if form is None and not any(one.has for one in mapping.sections):  # else the records tell what they are
        fix = f"write format = one of {', '.join(FORMATS)} under [file]"
        raise InputError("neither its name nor its first bytes tell the format", fix=fix, path=part.name)
    return form or "lines"


def _kinds(records: Records, select: Select, files: Sequence[str]) -> tuple[str, dict[int, str], bool]:
    """Say whose a row is or what is wrong with it, on which condition it is a section's, and if all are of queries."""
    mapping = select.mapping
    cases = [f"WHEN ({records.lost}) IS NOT NULL THEN ({records.lost})"] if records.lost else []
    if mapping.must:
        cases.append(f"WHEN NOT ({select.all_of(mapping.must)}) THEN 'broken-record'")
    claims = [number for number, one in enumerate(mapping.sections) if one.has or one.or_has]
    claims.sort(key=lambda number: mapping.sections[number].kind)  # a record that may be both is an event
    whole = list(cases)
    if claims and records.lines:
        cases += _claims(claims, select, records.index)
    elif claims:
        there = [at for at in claims if _tests(mapping.sections[at].has, select)]
        claims = there or [at for at in claims if _tests(mapping.sections[at].or_has, select)]
        if not claims:
            listed = ", ".join(name[:40] for name in [one for one in records.columns if one][:12])
            wanted = dict.fromkeys(path for one in mapping.sections for path in (*one.has, *one.or_has))
            fix = f"name them {', '.join(wanted)}; or say what they are with a mapping file"
            where = files[records.files[0]]
            raise InputError(f"no column that tells what its rows are among {listed}", fix=fix, path=where)
        cases += [f"WHEN {' OR '.join(_tests(mapping.sections[at].has, select))} THEN 's{at}'" for at in claims[:-1]]
        cases += [f"ELSE 's{claims[-1]}'"] if len(claims) > 1 else []
    conditions: dict[int, str] = {}
    for number, section in enumerate(mapping.sections):
        fitting = set(files_of(section, files)) & set(records.files)
        where = [] if fitting == set(records.files) else [f"file IN ({', '.join(map(str, fitting))})"]
        claimed = bool(section.has or section.or_has)
        if not fitting or (claimed and number not in claims):
            continue
        if claimed and (records.lines or len(claims) > 1):
            where.append(f"_kind = 's{number}'")
        elif whole or (cases and not claimed):
            where.append("_kind IS NULL")
        if section.index and not claimed:
            where.append(select.kept(_fits(section.index, records.index)))
        conditions[number] = " AND ".join(where) or "true"
    sql = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS VARCHAR)"
    return sql, conditions, len(claims) == 1 and mapping.sections[claims[0]].kind == "queries"


def _tests(paths: Iterable[str], select: Select) -> list[str]:
    """Write a test for each place of some paths: something is there."""
    places = [place for path in paths for place in select.places(path)]
    bare = [f"nullif({one.sql}, '')" if one.type == "varchar" and not one.parsed else one.sql for one in places]
    return [f"{sql} IS NOT NULL" for sql in bare]


def _claims(claims: Sequence[int], select: Select, index: str) -> Iterable[str]:
    """Write whose a record is: of the one section that its index fits, or of the first of which it has something."""
    sections = select.mapping.sections
    every = [path for at in claims for path in (*sections[at].has, *sections[at].or_has)]
    times = [path for at in claims if "time" in sections[at].columns for path in sections[at].columns["time"].paths]
    something = " OR ".join(_tests(dict.fromkeys([*every, *times]), select))
    fits = {at: _fits(sections[at].index, index) for at in claims if sections[at].index}
    for at, test in fits.items():
        alone = " AND ".join([test, *(f"NOT {other}" for one, other in fits.items() if one != at)])
        yield f"WHEN {alone} AND ({something}) THEN 's{at}'"
    for of in ("has", "or_has"):
        for at in claims:
            if tests := _tests(getattr(sections[at], of), select):
                yield f"WHEN {' OR '.join(tests)} THEN 's{at}'"
    yield "ELSE 'unknown-record'"


def _fits(pattern: str, index: str) -> str:
    return f"({index or literal('')} GLOB {literal(pattern.lower())})"


def _view(selects: Sequence[str], columns: Sequence[Column], engine: Engine) -> str:
    name = new_name("raw")
    empty = f"SELECT {selected(columns, {})} WHERE false"
    run(engine, f"CREATE VIEW {name} AS {' UNION ALL '.join(selects) or empty}")
    return name


def _pages(
    stages: Sequence[Stage], mapping: MappingFile, files: Sequence[str], engine: Engine
) -> tuple[list[tuple[Section, str, Own]], list[Trouble]]:
    """Give the tables of pages of each section: rows that are results or clicks are put together."""
    pages: list[tuple[Section, str, Own]] = []
    trouble: list[Trouble] = []
    for section in mapping.sections:
        given = [(table, own) for stage in stages for one, table, own in stage.tables if one.section is section]
        if section.kind == "events" or not given:
            continue
        if not section.results and not section.clicks:
            pages += [(section, table, own) for table, own in given]
            continue
        rows = f"({' UNION ALL BY NAME '.join(f'SELECT * FROM {table}' for table, _ in given)})"
        name = new_name("pages")
        made = clicked(section, rows) if section.clicks else grouped(section, rows, mapping.rank_base or 0)
        run(engine, f"CREATE TABLE {name} AS {made}")
        pages.append((section, name, Own({})))
        if section.results:
            no_page = Trouble.of("mapping", "no-page", "query", lost=True)
            doubled = Trouble.of("mapping", "odd-rank", "query")
            trouble += trouble_of(engine, files, rows, ASTRAY, no_page)
            trouble += trouble_of(engine, files, name, "doubled", doubled)
    return pages, trouble


def _queries(
    stages: Sequence[Stage], pages: Sequence[tuple[Section, str, Own]], mapping: MappingFile, engine: Engine
) -> tuple[str, tuple[Trouble, ...]]:
    """Make the view of queries, with the log's own attributes, and the numbers of results that events tell of."""
    alone = sum(stage.files for stage in stages) < 2  # then the name of the file tells nothing
    of = [pair for one in mapping.sections for pair in one.attributes.items()]
    named = list(dict.fromkeys(name for name, value in of if not (alone and value.paths == ("#file",))))
    chosen, trouble = attributes_of([(table, own) for _, table, own in pages], mapping, engine)
    counts = _counts(stages, engine)
    selects: list[str] = []
    for section, table, own in pages:
        columns = {one.name: f"CAST(q.{identifier(one.name)} AS {DUCKDB[one.type]})" for one in RAW_QUERY}
        if counts:
            columns["n_total"] = "coalesce(q.n_total, c.found)"
        numbers = {name: f"q.a_{number}" for number, name in enumerate(section.attributes)}
        columns |= {name: numbers.get(name, "CAST(NULL AS VARCHAR)") for name in named}
        columns |= {one.column: one.sql_in(own) for one in chosen}
        listed = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())
        joined = f" LEFT JOIN {counts} AS c ON q.query_id = c.query_id" if counts else ""
        selects.append(f"SELECT {listed} FROM {own.source(table, chosen)} AS q{joined}")
    return _view(selects, RAW_QUERY, engine), trouble


def _counts(stages: Sequence[Stage], engine: Engine) -> str:
    """Keep the numbers of results that events tell of, by query; empty where they tell of none."""
    telling = [
        f"SELECT query_id, n_total FROM {table} WHERE n_total IS NOT NULL AND query_id IS NOT NULL"
        for stage in stages
        for one, table, _ in stage.tables
        if one.kind == "event" and one.gives("n_total")
    ]
    if not telling:
        return ""
    name = new_name("counts")
    every = " UNION ALL ".join(telling)
    run(engine, f"CREATE TABLE {name} AS SELECT query_id, max(n_total) AS found FROM ({every}) GROUP BY query_id")
    return name if run(engine, f"SELECT count(*) FROM {name}")[0][0] else ""


def _lacking(stages: Sequence[Stage], mapping: MappingFile, engine: Engine) -> Iterable[Trouble]:
    """Name the columns that are expected, and that no record has; those of typed tables are there without a look."""
    rows: Counter[str] = Counter()
    filled: Counter[tuple[str, str]] = Counter()
    for typed, one, table in [(stage.typed, one, table) for stage in stages for one, table, _ in stage.tables]:
        expected = [RENAMED.get(name, name) for name, value in one.section.columns.items() if value.expected]
        if not expected:
            continue
        counts = ", ".join(str(int(one.gives(name))) if typed else f"count({name})" for name in expected)
        number, *each = run(engine, f"SELECT count(*), {counts} FROM {table}" + (" GROUP BY ALL" if typed else ""))[0]
        rows[one.kind] += number
        filled.update({(one.kind, name): count for name, count in zip(expected, each, strict=True)})
    for section in mapping.sections:
        kind = "query" if section.kind == "queries" else "event"
        for name, value in section.columns.items():
            if value.expected and rows[kind] and not filled[kind, RENAMED.get(name, name)]:
                yield Trouble.of("mapping", "absent-column", kind, rows=rows[kind], written=value.paths[0])


def _rank_base(stages: Sequence[Stage], engine: Engine) -> tuple[int | None, tuple[Trouble, ...]]:
    """Give the rank of the first result where the log says it."""
    said = _stated(engine, ((stage.name, stage.base) for stage in stages))
    if len(said) == 1 and next(iter(said)) in {0, 1}:
        return next(iter(said)), ()
    if not said:
        return None, ()
    listed = ", ".join(str(base) for base in sorted(said)[:5])
    return None, (Trouble.of("mapping", "mixed-base", "query", rows=said.total(), more=listed),)


def _convention(stages: Sequence[Stage], mapping: MappingFile, engine: Engine) -> tuple[str, tuple[Trouble, ...]]:
    """Return the convention of propensities that the mapping or the log declares; empty if none, or if unclear."""
    if mapping.logged_convention is None:
        return mapping.convention, ()
    stated = _stated(engine, ((stage.name, stage.convention) for stage in stages))
    if len(stated) <= 1 and stated.keys() <= set(CONVENTIONS):
        return next(iter(stated), ""), ()
    listed = ", ".join(repr(str(convention)[:40]) for convention in sorted(stated)[:5])
    possible = ", ".join(CONVENTIONS)
    trouble = Trouble.of("mapping", "mixed-convention", "query", rows=stated.total(), more=listed, possible=possible)
    return "", (trouble,)


def _stated(engine: Engine, columns: Iterable[tuple[str, str]]) -> Counter[Any]:
    """Count the values of a column that the log states for all of it: (table, column) of each stage."""
    stated: Counter[Any] = Counter()
    for table, column in columns:
        if column:
            sql = f"SELECT {column}, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY 1 LIMIT 100"
            stated.update(dict(run(engine, sql)))
    return stated
