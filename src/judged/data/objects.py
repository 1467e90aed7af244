"""Convert Python objects to rows: dicts, data frames and tables of any library, named tuples, plain lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.column_names import (
    canonical_names,
    check_name_clash,
    missing_columns,
    unused_columns,
    warn_unused,
)
from judged.data.compute import pc
from judged.data.index import array_of_values, format_value, id_array, id_text
from judged.data.layout import NUMERIC_COLUMNS
from judged.data.rows import MappingRows, Rows, TableRows, score_array, table_of, typed_table
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data.column_names import Kind
    from judged.results.types import Table

_MAX_INTEGER = 1 << 1023  # larger integers may overflow float64
VALUE_COLUMNS = {"qrels": "relevance", "run": "score"}
_EMPTY_SCHEMA = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])


def rows_of_object(data: Any, kind: Kind) -> Rows:
    """Convert a Python object to rows of qrels or of a run."""
    # Supported are `{query_id: {doc_id: number}}`; any object with the Arrow C stream interface (pyarrow, pandas,
    # polars, DuckDB, Ibis); a dataset of ir_datasets, or named tuples with its field names; a list with a list of
    # document ids for each topic (relevant documents for qrels, documents in rank order for a run).
    if isinstance(data, Mapping):
        return _mapping_rows(data, kind)  # type: ignore[reportUnknownArgumentType]
    if is_database_table(data):
        from judged.data.engine_rows import rows_in_database  # imports this module

        return rows_in_database(data, kind)
    if hasattr(data, "has_qrels"):
        from judged.data.datasets import dataset_rows  # imports this module

        return dataset_rows(data, kind)
    if hasattr(data, "__arrow_c_stream__"):
        table = table_of(data, lambda names: canonical_names(names, kind))
        return TableRows(canonical_table(table, kind, "<table>"))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _rows_of_list(list(data), kind)  # type: ignore[reportUnknownArgumentType]
    raise InputError(
        f"an object of type {type(data).__name__} cannot be read as {kind}",
        fix="use a path, a dict of dicts, a data frame, named tuples, or lists of document ids",
    )


def is_database_table(data: Any) -> bool:
    """Whether an object is a DuckDB relation or a Spark data frame, without importing either library."""
    kind = type(data)
    return kind.__name__ == "DuckDBPyRelation" or (
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
    )


def canonical_table(table: Table, kind: Kind, where: str) -> Table:
    """Rename and cast the columns of a table to the canonical names and types."""
    names = canonical_names(table.column_names, kind)
    missing = missing_columns(names, kind)
    if missing:
        raise InputError(
            f"no column {' or '.join(sorted(missing))} among {', '.join(table.column_names)}",
            fix=f"rename the columns to query_id, doc_id, {VALUE_COLUMNS[kind]}",
            path=where,
            rule="unknown-header",
        )
    check_name_clash(names, table.column_names, kind, where)
    check_score_column(names, tuple(table.column_names), kind, where)
    used = [position for position, name in enumerate(names) if name]
    try:
        typed = typed_table(table.select(used), tuple(names[position] for position in used), where)
    except pa.ArrowException as error:
        raise InputError(
            f"a column cannot be read ({error})", fix="write ids as text, numbers as numbers", path=where
        ) from None
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=error.path or where, rule=error.rule) from None
    scored = with_scores(typed, kind, where)
    warn_unused(unused_columns(names, table.column_names, kind), where)
    return scored


def check_score_column(names: tuple[str, ...], columns: tuple[str, ...], kind: Kind, where: str) -> None:
    """Raise InputError if a run has no known column of scores, and an unknown column that may hold the scores."""
    unknown = [column for column, name in zip(columns, names, strict=True) if not name]
    if kind == "run" and unknown and not {"score", "rank", "relevance"} & set(names):
        raise InputError(
            f"no column score or rank among {', '.join(columns)}",
            fix=f"rename the column with the scores to 'score'; for a set without ranking, remove {', '.join(unknown)}",
            path=where,
            rule="unknown-header",
        )


def with_scores(table: Table, kind: Kind, where: str) -> Table:
    """Add scores to a run that has only ranks; raise InputError for NaN, and for qrels in place of a run."""
    columns = set(table.column_names)
    if kind == "run" and "distance" in columns:  # the smallest distance is the best result
        distances = table["distance"].cast(pa.float64())
        table = table.drop_columns(["distance"]).append_column("score", pc.negate(distances))
        columns = set(table.column_names)
    if kind == "run" and "score" not in columns:
        if "rank" in columns:
            return table.append_column("score", pc.negate(table["rank"].cast(pa.float64())))
        if "relevance" in columns:
            raise InputError(
                "this looks like qrels, not like a run: it has a column 'relevance', but no column 'score'",
                fix="swap the two inputs, or name the column of scores 'score'",
                path=where,
                rule="looks-like-qrels",
            )
    name = VALUE_COLUMNS[kind]
    row = pc.index(pc.is_nan(table[name]), value=True).as_py() if name in columns else -1
    if row >= 0:
        pair = f"topic {table['query_id'][row]}, document {table['doc_id'][row]}"
        raise InputError(f"the {name} of {pair} is NaN", fix="write a number", path=where, rule="nan-score")
    return table


def _mapping_rows(data: Mapping[Any, Any], kind: Kind) -> Rows:
    if data and all(is_id_list(docs) for docs in data.values()):
        return _ranked_rows({id_text(topic, "query id"): docs for topic, docs in data.items()}, kind, "<dict>")
    for topic, docs in data.items():
        if type(docs) is not dict and not isinstance(docs, Mapping):
            raise InputError(
                f"the value of topic {topic!r} must be a dict, got {type(docs).__name__}",
                fix=f"use {{query_id: {{doc_id: {VALUE_COLUMNS[kind]}}}}}",
                path="<dict>",
            )
    rows = MappingRows(data)
    if kind == "run":
        return rows
    _check_grades(data)
    batches = [part() for part in rows.parts(("query_id", "doc_id", "score"))]
    table = pa.Table.from_batches(batches, None if batches else _EMPTY_SCHEMA)
    return TableRows(table.rename_columns(["query_id", "doc_id", "relevance"]), rows.where)


def _check_grades(data: Mapping[Any, Any]) -> None:
    for topic, docs in data.items():
        kinds = set(map(type, docs.values()))
        if kinds <= {float} or (
            kinds == {int} and min(docs.values()) > -_MAX_INTEGER and max(docs.values()) < _MAX_INTEGER
        ):
            continue
        for doc, grade in docs.items():
            is_integer = isinstance(grade, int)
            if isinstance(grade, (float, np.number)) or (is_integer and abs(grade) < _MAX_INTEGER):
                continue
            reason = "is too large for a double" if is_integer else "is not a number"
            problem = f"the grade {format_value(grade)} of topic {topic}, document {doc} {reason}"
            raise InputError(problem, fix="use int or float for grades", path="<dict>")


def is_id_list(data: Any) -> bool:
    """Whether an object is a list or set of document ids."""
    return isinstance(data, (list, set, frozenset)) and all(
        isinstance(doc, (str, int, np.integer)) and not isinstance(doc, bool)
        for doc in data  # type: ignore[reportUnknownVariableType]
    )


def _rows_of_list(data: list[Any], kind: Kind) -> Rows:
    if data and hasattr(data[0], "query_id"):
        return TableRows(_record_table(data, kind), "<records>")
    if data and all(isinstance(record, Mapping) for record in data):
        return TableRows(canonical_table(dict_table(data), kind, "<records>"), "<records>")
    lists = [data] if is_id_list(data) else data  # the ids of one topic, or of several topics
    if not all(is_id_list(docs) for docs in lists):
        raise InputError(
            f"this list cannot be read as {kind}",
            fix="use a list of document ids for each topic, or records with the fields query_id, doc_id,"
            f" {VALUE_COLUMNS[kind]}: named tuples or dicts",
            path="<list>",
        )
    return _ranked_rows({str(topic): docs for topic, docs in enumerate(lists)}, kind, "<list>")


def dict_table(records: list[Mapping[str, Any]]) -> Table:
    """Convert dicts to a table with all of their keys as columns."""
    names = dict.fromkeys(name for record in records for name in record)
    try:
        return pa.table(
            {str(name): array_of_values([record.get(name) for record in records], str(name)) for name in names}
        )
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path="<records>") from None


def _ranked_rows(topics: Mapping[str, Collection[Any]], kind: Kind, where: str) -> Rows:
    """Convert document ids by topic to rows: qrels with grade 1, or a run whose scores are minus the position."""
    # A Python set has no order, so that a run of sets has no scores.
    rows = [
        (topic, id_text(doc, "document id"), -position)
        for topic, docs in topics.items()
        for position, doc in enumerate(docs)
    ]
    is_ranked = not any(isinstance(docs, (set, frozenset)) for docs in topics.values())
    if kind == "run" and topics and not rows:  # nothing was returned for any topic
        return MappingRows({topic: {} for topic in topics}, where, is_ranked)
    columns = {
        "query_id": id_array([topic for topic, _, _ in rows], "query id"),
        "doc_id": id_array([doc for _, doc, _ in rows], "document id"),
    }
    if kind == "qrels":
        columns["relevance"] = pa.array(np.ones(len(rows)))
    elif is_ranked:
        columns["score"] = pa.array([float(score) for _, _, score in rows], pa.float64())
    return TableRows(pa.table(columns), where)


def _record_table(records: list[Any], kind: Kind) -> Table:
    columns: dict[str, Any] = {}
    for name in ("query_id", "doc_id", "iteration", "run_id", "rank", VALUE_COLUMNS[kind]):
        if any(hasattr(record, name) for record in records):
            values = [getattr(record, name, None) for record in records]
            if name in NUMERIC_COLUMNS:
                columns[name] = pa.array(score_array(values, name))
            else:
                columns[name] = id_array([id_text(value, name) for value in values], name)
    return canonical_table(pa.table(columns), kind, "<records>")
