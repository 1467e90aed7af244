"""Rows of Python objects: dicts, data frames and tables of any library, named tuples, plain lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.columns import canonical, missing
from judged.data.compute import pc
from judged.data.ids import id_text
from judged.data.rows import MappingRows, Rows, TableRows, score_array, table_of, typed_table
from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Table
    from judged.data.columns import Kind

_VALUE = {"qrels": "relevance", "run": "score"}
_EMPTY = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])


def rows_of_object(data: Any, kind: Kind) -> Rows:
    """Take rows from whatever Python object holds them.

    Accepted: ``{query_id: {doc_id: number}}``; any object with the Arrow C stream interface (pyarrow,
    pandas, polars, DuckDB, Ibis); named tuples with the field names of ir_datasets; a list that holds,
    for each topic, the list of its document ids (relevant ones for qrels, in rank order for a run).

    Raises
    ------
    InputError
        If it is none of these, or an id or number in it has the wrong type.
    """
    if isinstance(data, Mapping):
        return _mapping_rows(data, kind)  # type: ignore[reportUnknownArgumentType]
    if hasattr(data, "__arrow_c_stream__"):
        table = table_of(data)
        return TableRows(named_table(table, kind, "<table>"))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _listed_rows(list(data), kind)  # type: ignore[reportUnknownArgumentType]
    raise InputError(
        f"a {type(data).__name__} cannot be read as {kind}",
        fix="give a path, a dict of dicts, a data frame, named tuples, or lists of document ids",
    )


def named_table(table: Table, kind: Kind, where: str) -> Table:
    """Name and type the columns of a table as ours, and say which one is missing."""
    names = canonical(table.column_names, kind)
    lacking = missing(names, kind)
    if lacking:
        raise InputError(
            f"no column {' or '.join(sorted(lacking))} among {', '.join(table.column_names)}",
            fix=f"rename the columns to query_id, doc_id, {_VALUE[kind]}",
            path=where,
        )
    used = [at for at, name in enumerate(names) if name]
    try:
        typed = typed_table(table.select(used), tuple(names[at] for at in used), where)
    except pa.ArrowException as error:
        raise InputError(
            f"a column cannot be read ({error})", fix="write ids as text, numbers as numbers", path=where
        ) from None
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=error.path or where) from None
    return with_scores(typed, kind, where)


def with_scores(table: Table, kind: Kind, where: str) -> Table:
    """Let ranks stand in for the scores of a run that has none; refuse NaN, and qrels in a run's place."""
    columns = set(table.column_names)
    if kind == "run" and "score" not in columns:
        if "rank" in columns:
            return table.append_column("score", pc.negate(table["rank"].cast(pa.float64())))
        if "relevance" in columns:
            raise InputError(
                "this looks like qrels, not like a run: a relevance and no score",
                fix="swap the two inputs, or name the column of scores 'score'",
                path=where,
            )
    name = _VALUE[kind]
    row = pc.index(pc.is_nan(table[name]), value=True).as_py() if name in columns else -1
    if row >= 0:
        pair = f"topic {table['query_id'][row]}, document {table['doc_id'][row]}"
        raise InputError(f"the {name} of {pair} is NaN", fix="write a number", path=where)
    return table


def _mapping_rows(data: Mapping[Any, Any], kind: Kind) -> Rows:
    for topic, docs in data.items():
        if type(docs) is not dict and not isinstance(docs, Mapping):
            raise InputError(
                f"topic {topic!r} holds a {type(docs).__name__}, not a dict",
                fix=f"give {{query_id: {{doc_id: {_VALUE[kind]}}}}}",
                path="<dict>",
            )
    rows = MappingRows(data)
    if kind == "run":
        return rows
    batches = [part() for part in rows.parts(("query_id", "doc_id", "score"))]
    table = pa.Table.from_batches(batches, None if batches else _EMPTY)
    return TableRows(table.rename_columns(["query_id", "doc_id", "relevance"]), rows.where)


def _listed_rows(data: list[Any], kind: Kind) -> Rows:
    if data and hasattr(data[0], "query_id"):
        return TableRows(_record_table(data, kind), "<records>")
    if all(isinstance(topic, Sequence) and not isinstance(topic, (str, bytes)) for topic in data):
        lists: list[Sequence[Any]] = data
    elif not any(isinstance(doc, (Mapping, list, tuple)) for doc in data):
        lists = [data]  # one topic
    else:
        raise InputError(f"this list cannot be read as {kind}", fix="give one list of document ids a topic")
    pairs = [
        (str(topic), id_text(doc, "document id"), at) for topic, docs in enumerate(lists) for at, doc in enumerate(docs)
    ]
    values = [1.0 if kind == "qrels" else -float(at) for _, _, at in pairs]
    columns = {
        "query_id": pa.array([topic for topic, _, _ in pairs], pa.string()),
        "doc_id": pa.array([doc for _, doc, _ in pairs], pa.string()),
        _VALUE[kind]: pa.array(values, pa.float64()),
    }
    return TableRows(pa.table(columns), "<list>")


def _record_table(records: list[Any], kind: Kind) -> Table:
    columns: dict[str, Any] = {}
    for name in ("query_id", "doc_id", "iteration", "run_id"):
        if hasattr(records[0], name):
            ids = [id_text(getattr(record, name), name) for record in records]
            columns[name] = pa.array(ids, pa.string())
    value = _VALUE[kind]
    if hasattr(records[0], value):
        columns[value] = pa.array(score_array([getattr(record, value) for record in records]))
    return named_table(pa.table(columns), kind, "<records>")
