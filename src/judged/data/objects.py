"""Rows of Python objects: dicts, data frames and tables of any library, named tuples, plain lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.index import column_of, id_array, id_text, shown
from judged.data.layout import NUMBERS, ONCE, canonical, clash, missing
from judged.data.rows import MappingRows, Rows, TableRows, score_array, table_of, typed_table
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.data.layout import Kind
    from judged.results.types import Table

_LARGEST = 1 << 1023
VALUE = {"qrels": "relevance", "run": "score"}
_EMPTY = pa.schema([("query_id", pa.string()), ("doc_id", pa.string()), ("score", pa.float64())])


def rows_of_object(data: Any, kind: Kind) -> Rows:
    """Take rows from whatever Python object holds them."""
    # Accepted: `{query_id: {doc_id: number}}`; any object with the Arrow C stream interface (pyarrow, pandas, polars,
    # DuckDB, Ibis); named tuples with the field names of ir_datasets; a list that holds, for each topic, the list of
    # its document ids (relevant ones for qrels, in rank order for a run).
    if isinstance(data, Mapping):
        return _mapping_rows(data, kind)  # type: ignore[reportUnknownArgumentType]
    if in_database(data):
        from judged.data.engine_rows import rows_in_database  # it names columns as is done here

        return rows_in_database(data, kind)
    if hasattr(data, "__arrow_c_stream__"):
        table = table_of(data, lambda names: canonical(names, kind))
        return TableRows(named_table(table, kind, "<table>"))
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _listed_rows(list(data), kind)  # type: ignore[reportUnknownArgumentType]
    raise InputError(
        f"a {type(data).__name__} cannot be read as {kind}",
        fix="give a path, a dict of dicts, a data frame, named tuples, or lists of document ids",
    )


def in_database(data: Any) -> bool:
    """Whether something is a relation of DuckDB or a data frame of Spark; neither is imported for this."""
    kind = type(data)
    return kind.__name__ == "DuckDBPyRelation" or (
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
    )


def named_table(table: Table, kind: Kind, where: str) -> Table:
    """Name and type the columns of a table as ours, and say which one is missing."""
    names = canonical(table.column_names, kind)
    lacking = missing(names, kind)
    if lacking:
        raise InputError(
            f"no column {' or '.join(sorted(lacking))} among {', '.join(table.column_names)}",
            fix=f"rename the columns to query_id, doc_id, {VALUE[kind]}",
            path=where,
            rule="unknown-header",
        )
    if problem := clash(names, table.column_names, kind):
        raise InputError(problem, fix=ONCE, path=where)
    refuse_unnamed(names, tuple(table.column_names), kind, where)
    used = [at for at, name in enumerate(names) if name]
    try:
        typed = typed_table(table.select(used), tuple(names[at] for at in used), where)
    except pa.ArrowException as error:
        raise InputError(
            f"a column cannot be read ({error})", fix="write ids as text, numbers as numbers", path=where
        ) from None
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=error.path or where, rule=error.rule) from None
    return with_scores(typed, kind, where)


def refuse_unnamed(names: tuple[str, ...], given: tuple[str, ...], kind: Kind, where: str) -> None:
    """Refuse a run whose scores may stand in a column of another name, instead of taking it for a set."""
    unknown = [column for column, name in zip(given, names, strict=True) if not name]
    if kind == "run" and unknown and not {"score", "rank", "relevance"} & set(names):
        raise InputError(
            f"no column score or rank among {', '.join(given)}",
            fix=f"rename the one that holds the scores to score; for a set, leave out {', '.join(unknown)}",
            path=where,
            rule="unknown-header",
        )


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
                rule="looks-like-qrels",
            )
    name = VALUE[kind]
    row = pc.index(pc.is_nan(table[name]), value=True).as_py() if name in columns else -1
    if row >= 0:
        pair = f"topic {table['query_id'][row]}, document {table['doc_id'][row]}"
        raise InputError(f"the {name} of {pair} is NaN", fix="write a number", path=where, rule="nan-score")
    return table


def _mapping_rows(data: Mapping[Any, Any], kind: Kind) -> Rows:
    if data and all(is_ids(docs) for docs in data.values()):
        return _ranked_rows({id_text(topic, "query id"): docs for topic, docs in data.items()}, kind, "<dict>")
    for topic, docs in data.items():
        if type(docs) is not dict and not isinstance(docs, Mapping):
            raise InputError(
                f"topic {topic!r} holds a {type(docs).__name__}, not a dict",
                fix=f"give {{query_id: {{doc_id: {VALUE[kind]}}}}}",
                path="<dict>",
            )
    rows = MappingRows(data)
    if kind == "run":
        return rows
    _refuse_odd_grades(data)
    batches = [part() for part in rows.parts(("query_id", "doc_id", "score"))]
    table = pa.Table.from_batches(batches, None if batches else _EMPTY)
    return TableRows(table.rename_columns(["query_id", "doc_id", "relevance"]), rows.where)


def _refuse_odd_grades(data: Mapping[Any, Any]) -> None:
    for topic, docs in data.items():
        kinds = set(map(type, docs.values()))
        if kinds <= {float} or (kinds == {int} and min(docs.values()) > -_LARGEST and max(docs.values()) < _LARGEST):
            continue
        for doc, grade in docs.items():
            whole = isinstance(grade, int)
            if isinstance(grade, (float, np.number)) or (whole and abs(grade) < _LARGEST):
                continue
            why = "is too large for a double" if whole else "is not a number"
            problem = f"the grade {shown(grade)} of topic {topic}, document {doc} {why}"
            raise InputError(problem, fix="give grades as int or float", path="<dict>")


def is_ids(data: Any) -> bool:
    """Whether something is a list or set of ids, and nothing else is in it."""
    return isinstance(data, (list, set, frozenset)) and all(
        isinstance(one, (str, int, np.integer)) and not isinstance(one, bool)
        for one in data  # type: ignore[reportUnknownVariableType]
    )


def _listed_rows(data: list[Any], kind: Kind) -> Rows:
    if data and hasattr(data[0], "query_id"):
        return TableRows(_record_table(data, kind), "<records>")
    if data and all(isinstance(one, Mapping) for one in data):
        return TableRows(named_table(dict_table(data), kind, "<records>"), "<records>")
    lists = [data] if is_ids(data) else data  # the ids of one topic, or of several
    if not all(is_ids(topic) for topic in lists):
        raise InputError(
            f"this list cannot be read as {kind}",
            fix="give one list of document ids a topic, or records with the fields query_id, doc_id,"
            f" {VALUE[kind]}: named tuples or dicts",
            path="<list>",
        )
    return _ranked_rows({str(at): topic for at, topic in enumerate(lists)}, kind, "<list>")


def dict_table(records: list[Mapping[str, Any]]) -> Table:
    """Lay dicts out as columns, which come from all of them."""
    names = dict.fromkeys(name for record in records for name in record)
    try:
        return pa.table({str(name): column_of([record.get(name) for record in records], str(name)) for name in names})
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path="<records>") from None


def _ranked_rows(topics: Mapping[str, Collection[Any]], kind: Kind, where: str) -> Rows:
    """Make rows of the ids of each topic: relevant ones with grade 1, or returned ones in rank order."""
    # A Python set has no order, so a run of sets has no scores.
    rows = [(topic, id_text(doc, "document id"), -at) for topic, docs in topics.items() for at, doc in enumerate(docs)]
    ranked = not any(isinstance(docs, (set, frozenset)) for docs in topics.values())
    if kind == "run" and topics and not rows:  # topics were answered, with nothing
        return MappingRows({topic: {} for topic in topics}, where, ranked)
    columns = {
        "query_id": id_array([topic for topic, _, _ in rows], "query id"),
        "doc_id": id_array([doc for _, doc, _ in rows], "document id"),
    }
    if kind == "qrels":
        columns["relevance"] = pa.array(np.ones(len(rows)))
    elif ranked:
        columns["score"] = pa.array([float(score) for _, _, score in rows], pa.float64())
    return TableRows(pa.table(columns), where)


def _record_table(records: list[Any], kind: Kind) -> Table:
    columns: dict[str, Any] = {}
    for name in ("query_id", "doc_id", "iteration", "run_id", "rank", VALUE[kind]):
        if any(hasattr(record, name) for record in records):
            values = [getattr(record, name, None) for record in records]
            if name in NUMBERS:
                columns[name] = pa.array(score_array(values, name))
            else:
                columns[name] = id_array([id_text(value, name) for value in values], name)
    return named_table(pa.table(columns), kind, "<records>")
