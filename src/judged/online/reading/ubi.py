"""User Behavior Insights: queries and events as OpenSearch's plugin, its clients and its generators write them.

Lines of JSON are brought into the database in one pass; the same SQL that reads Parquet takes the values out of them,
so that a log gives the same rows whatever it is written in. `docs/ubi.md` lists every place that is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.online.engine import identifier, literal
from judged.online.reading.blocks import LINE_LIMIT
from judged.online.reading.loading import new_name, run, selected
from judged.online.reading.opening import Opener, Part, first_bytes, form_of
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY, RawLog, Trouble
from judged.online.reading.records import Lines, schema
from judged.online.reading.shapes import Place, object_of, structure, tree
from judged.online.reading.ubi_attributes import attributes_of
from judged.online.reading.ubi_sql import WANTED, Reading, Records, reading_of
from judged.online.reading.ubi_tables import csv_records, parquet_records
from judged.online.reading.ubi_trouble import counted, found_in, lacking
from judged.online.tables import Column

if TYPE_CHECKING:
    from judged._types import Batch
    from judged.online.engine import Engine

_NEVER_IN = ("too-long", "wrong-width", "open-quote")
"""Rows with this trouble do not even come into the database."""


_NOT_UTF8 = ("not-utf8", "bytes that are no UTF-8 were replaced", "write logs as UTF-8")


@dataclass(frozen=True)
class Stage:
    """Records as our columns: a table or a view of the database, and how it was made."""

    name: str
    reading: Reading
    kinds: tuple[str, ...]
    rows: int


def read(parts: Sequence[Part], engine: Engine, *, progress: Opener = None) -> RawLog:
    """Read a UBI log: queries and events in the same files or in others, in any mixture of forms.

    Parameters
    ----------
    parts
        Files of JSON lines (plain, OpenSearch bulk, exports with ``_source``, lines with the index's name in front),
        CSV, Parquet; packed or not.
    engine
        Where the rows go.
    progress
        Told what is read, and the share that is done.

    Returns
    -------
    RawLog
        Tables that hold what the log says. Parquet whose columns are typed is not copied: its tables are views.

    Raises
    ------
    InputError
        If a file cannot be read, or holds nothing of UBI.
    """
    forms = [form_of(part, said=True) for part in parts]
    stages: list[Stage] = []
    trouble: list[Trouble] = []
    if lines := [at for at, form in enumerate(forms) if form == "lines"]:
        stage, found = _lines(lines, [parts[at] for at in lines], engine, progress)
        stages.append(stage)
        trouble += found
    for at, form in enumerate(forms):
        if form == "csv":
            if progress:
                progress(f"reading {parts[at].name}", at / len(parts))
            stage, found = _csv(at, parts[at], engine)
            stages.append(stage)
            trouble += found
    tables = parquet_records([(at, parts[at]) for at, form in enumerate(forms) if form == "parquet"], engine)
    stages += [_stage(records, engine) for records in tables]
    files = tuple(part.name for part in parts)
    for stage in stages:
        trouble += found_in(stage.name, stage.reading, files, engine)
    trouble += lacking([(one.name, one.reading, one.kinds) for one in stages], engine)
    queries, more = _queries(stages, engine)
    base, mixed = _rank_base(stages, engine)
    return RawLog(
        queries=engine.table(queries),
        events=engine.table(_events(stages, engine)),
        layout="ubi",
        files=files,
        rank_base=base,
        lines=sum(one.rows for one in stages) + sum(one.rows for one in trouble if one.rule in _NEVER_IN),
        trouble=(*trouble, *more, *mixed),
    )


def _lines(
    numbers: Sequence[int], parts: Sequence[Part], engine: Engine, progress: Opener
) -> tuple[Stage, list[Trouble]]:
    """Bring lines into the database: one pass, what is too long left out, what is no record kept by its place alone."""
    import pyarrow as pa

    given = Lines(parts, numbers, progress)
    wrapped = any(b'"_source"' in first_bytes(part) for part in parts)
    failed: list[InputError] = []

    def batches() -> Iterator[Batch]:
        try:
            yield from given.batches()
        except InputError as error:  # the database would wrap it in an error of its own
            failed.append(error)

    source, name = new_name("lines"), new_name("ubi")
    con = engine.con
    con.register(source, pa.RecordBatchReader.from_batches(schema(), batches()))
    reading = reading_of(_records_of_lines(source, wrapped=wrapped))
    try:
        con.execute(f"CREATE TABLE {name} AS {reading.sql}")
    finally:
        con.unregister(source)
    if failed:
        raise failed[0]
    rows = run(engine, f"SELECT count(*) FROM {name}")[0][0]
    trouble = [
        *counted(given.too_long, "too-long", f"a line of more than {LINE_LIMIT >> 20} MiB", "log less in one record"),
        *counted(given.not_utf8, *_NOT_UTF8, lost=False),
    ]
    return Stage(name, reading, ("query", "event"), rows), trouble


def _records_of_lines(source: str, *, wrapped: bool) -> Records:
    """Take the record out of each line, and say whether it is a query or an event: by the index, or by its fields."""
    text = "CASE WHEN prefix(line, '{') THEN line ELSE line[strpos(line, '{'):] END"  # most lines are the record
    before = "trim(left(line, strpos(line, '{') - 1), ' ' || chr(9))"
    front = f"CASE WHEN prefix(line, '{{') THEN '' WHEN strpos(line, '{{') > 0 THEN {before} ELSE '-' END"
    table = f"(SELECT file, row, lead, line, {text} AS whole, {front} AS front FROM {source})"
    record, index = "whole", 'regexp_extract(lead, \'"_index"\\s*:\\s*"([^"]*)"\', 1)'
    name = 'nullif(regexp_extract(lead, \'"_id"\\s*:\\s*"([^"]*)"\', 1), \'\')'
    if wrapped:
        around = "CASE WHEN contains(whole, '\"_source\"') AND json_valid(whole) THEN {} END"
        record = f"coalesce({around.format('''json_extract(whole, '$._source')::VARCHAR''')}, whole)"
        index = f"coalesce({around.format('''json_extract_string(whole, '$._index')''')}, {index}, '')"
        name = f"coalesce({around.format('''json_extract_string(whole, '$._id')''')}, {name})"
    shape = structure(tree(WANTED))
    table = (
        f"(SELECT file, row, line, lower(coalesce(nullif(front, ''), {index}, '')) AS hint, {name} AS name, "
        f"{record} AS record, CASE WHEN front = '' THEN true ELSE regexp_full_match(front, '[A-Za-z0-9_.:-]*') END "
        f"AS front_ok FROM {table})"
    )
    table = f"(SELECT *, CASE WHEN front_ok THEN {object_of('record', shape)} END AS r FROM {table})"
    # What was taken apart is valid: nothing is looked through twice but what is broken.
    valid = "CASE WHEN r IS NOT NULL THEN true ELSE (front_ok AND json_valid(record)) OR json_valid(line) END"
    table = f"(SELECT file, row, hint, name, r, {valid} AS ok, hash(record) >> 1 AS whole_hash FROM {table})"
    action = "r.action_name IS NOT NULL"
    asked = "coalesce(r.user_query, r.query_id, r.query_response_hit_ids, r.query_response_object_ids) IS NOT NULL"
    queries = "contains(hint, 'quer') AND NOT contains(hint, 'event')"
    events = "contains(hint, 'event') AND NOT contains(hint, 'quer')"
    kind = (
        "CASE WHEN NOT ok THEN 'broken-json' WHEN r IS NULL THEN 'no-record' "
        f"WHEN {queries} AND ({asked} OR r.timestamp IS NOT NULL) THEN 'query' "
        f"WHEN {events} AND ({asked} OR {action} OR r.timestamp IS NOT NULL) THEN 'event' "
        f"WHEN {action} THEN 'event' WHEN {asked} THEN 'query' ELSE 'not-ubi' END"
    )
    columns = {one: Place(f"r.{identifier(one)}", inner, parsed=True) for one, inner in shape.items()}
    return Records(table, "records", columns, "file", "row", kind, "name", "whole_hash", flat=False)


def _csv(number: int, part: Part, engine: Engine) -> tuple[Stage, list[Trouble]]:
    found = csv_records(number, part, engine)
    stage = _stage(found.records, engine)
    run(engine, f"DROP TABLE {found.table}")
    trouble = [
        *counted(found.wrong_width, "wrong-width", "more cells than the header has", "quote cells that hold commas"),
        *counted(found.too_long, "too-long", "a cell of more than 131,072 characters", "log less in one record"),
        *counted(found.open_quote, "open-quote", "a quotation mark that is never closed", "double those in a cell"),
        *counted(found.not_utf8, *_NOT_UTF8, lost=False),
    ]
    return stage, trouble


def _stage(records: Records, engine: Engine) -> Stage:
    """Make a view of a table; or a table, where texts have to be parsed for it."""
    reading = reading_of(records)
    is_file = records.table.startswith("read_parquet")
    name = new_name("ubi")
    kept = "VIEW" if is_file and not reading.costly else "TABLE"
    run(engine, f"CREATE {kept} {name} AS {reading.sql}")
    kinds = (records.holds,) if records.holds in {"query", "event"} else ("query", "event")
    return Stage(name, reading, kinds, run(engine, f"SELECT count(*) FROM {records.table}")[0][0])


def _events(stages: Sequence[Stage], engine: Engine) -> str:
    names = ", ".join(identifier(one.name) for one in RAW_EVENT)
    return _view([_of_kind(one, "event", names) for one in stages if "event" in one.kinds], RAW_EVENT, engine)


def _of_kind(stage: Stage, kind: str, columns: str, table: str = "") -> str:
    where = f" WHERE _kind = '{kind}'" if len(stage.kinds) > 1 else ""
    return f"SELECT {columns} FROM {table or stage.name}{where}"


def _view(selects: Sequence[str], columns: Sequence[Column], engine: Engine) -> str:
    name = new_name("raw")
    empty = f"SELECT {selected(columns, {})} WHERE false"
    run(engine, f"CREATE VIEW {name} AS {' UNION ALL '.join(selects) or empty}")
    return name


def _queries(stages: Sequence[Stage], engine: Engine) -> tuple[str, tuple[Trouble, ...]]:
    """Make the view of queries, with the log's own attributes, and the counts that search events give."""
    chosen, trouble = attributes_of([(one.name, one.reading) for one in stages if "query" in one.kinds], engine)
    counts = _counts(stages, engine)
    selects: list[str] = []
    for stage in stages:
        if "query" not in stage.kinds:
            continue
        table = stage.name
        columns = {one.name: f"q.{identifier(one.name)}" for one in RAW_QUERY}
        if counts:
            columns["n_total"] = "coalesce(q.n_total, c.found)"
        own = {one.column: one.sql_in(stage.reading) for one in chosen}
        if stage.reading.as_json and chosen:
            wanted = literal(json.dumps({one.name: "VARCHAR" for one in chosen}))
            table = f"(SELECT *, from_json(_attributes, {wanted}) AS _own FROM {table})"
        listed = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in (columns | own).items())
        joined = f"{table} AS q" + (f" LEFT JOIN {counts} AS c ON q.query_id = c.query_id" if counts else "")
        selects.append(_of_kind(stage, "query", listed, joined))
    return _view(selects, RAW_QUERY, engine), trouble


def _counts(stages: Sequence[Stage], engine: Engine) -> str:
    """Keep the numbers of results that events tell of, by query; empty where they tell of none."""
    telling = [
        f"SELECT query_id, _found AS found FROM {one.name} WHERE _kind = 'event' "
        "AND _found IS NOT NULL AND query_id IS NOT NULL"
        for one in stages
        if "event" in one.kinds and "found" in one.reading.extras
    ]
    if not telling:
        return ""
    name = new_name("counts")
    every = " UNION ALL ".join(telling)
    run(engine, f"CREATE TABLE {name} AS SELECT query_id, max(found) AS found FROM ({every}) GROUP BY query_id")
    return name if run(engine, f"SELECT count(*) FROM {name}")[0][0] else ""


def _rank_base(stages: Sequence[Stage], engine: Engine) -> tuple[int | None, tuple[Trouble, ...]]:
    """Give the rank of the first result where the log says it."""
    said: dict[int, int] = {}
    for one in stages:
        if "base" in one.reading.extras:
            sql = f"SELECT _base, count(*) FROM {one.name} WHERE _base IS NOT NULL GROUP BY _base LIMIT 100"
            for base, rows in run(engine, sql):
                said[base] = said.get(base, 0) + rows
    if len(said) == 1 and next(iter(said)) in {0, 1}:
        return next(iter(said)), ()
    if not said:
        return None, ()
    listed = ", ".join(str(base) for base in sorted(said)[:5])
    problem = f"the rank of the first result is said to be {listed}: it is found from the positions instead"
    fix = "write rank_base as 0 or 1, the same in the whole log"
    return None, (Trouble("mixed-base", "query", sum(said.values()), lost=False, problem=problem, fix=fix),)
