"""Import of labels from files of several tools, and export for other tools."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa

from judged.data import files
from judged.data.column_names import canonical_names
from judged.data.grade_words import grades_of_words
from judged.data.index import format_value, id_text
from judged.data.json_rows import json_kind, load_json
from judged.data.own_tables import read_grades, read_label_rows, single_value
from judged.data.qrels import Qrels
from judged.data.records import read_records
from judged.data.topics import Topics
from judged.errors import InputError, JudgedWarning, add_path_to_errors
from judged.labels.labels import KINDS, SCHEMA, Labels, format_utc
from judged.labels.pooling import pool
from judged.results.decimals import counted, read_number
from judged.results.escaping import csv_lines
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from judged.labels.labels import Kind
    from judged.labels.store import LabelStore
    from judged.results.types import Table

    Row = tuple[int | None, dict[str, Any]]


def is_store(path: str | Path) -> bool:
    """Return whether a path is a label store: a database URL, or an SQLite file."""
    return "://" in str(path) or (Path(path).is_file() and files.head(path, 15) == b"SQLite format 3")


def read_labels(path: str | Path, *, judge: str = "", kind: Kind = "human", topics: Any = None) -> Labels:
    """Read labels from a file; the format is detected from the content.

    Parameters
    ----------
    path
        A store; a table (CSV, TSV, JSON, JSON Lines, Parquet) with the columns ``query_id``, ``doc_id``, ``judge`` and
        ``grade``, or usual names of these columns, and optionally other columns of labels; a table with ``query``,
        ``docid`` and a column of grades per judge, as a Quepid book; qrels; Quepid ratings; or JSON of Quepid, Label
        Studio, Argilla, doccano, or OpenSearch Search Relevance Workbench.
    judge
        Name of the judge, if the file has none.
    kind
        Type of the judge, if the file has none.
    topics
        Texts of topics, as `Topics.of` accepts them, for formats that identify queries by text. Without them, the text
        is the topic ID.

    Raises
    ------
    InputError
        If the file cannot be read; the message has the line.
    """
    if is_store(path):
        from judged.labels.store import LabelStore

        with LabelStore.open(path, new=False) as store:
            return store.labels()
    rows = [row for _, row in label_rows(path, judge=judge, kind=kind, topics=topics)]
    table = pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in SCHEMA})
    labels = Labels(table, Path(path).name.partition(".")[0], str(path))
    if replaced := len(labels) - labels.last.num_rows:
        text = f"{counted(replaced, 'label')} replaced by a later label of the same judge and pair"
        warnings.warn(f"{path}: {text}", JudgedWarning, stacklevel=2)
    return labels


def describe_labels(path: str | Path) -> dict[str, Any] | None:
    """Return the counts of `Labels.counts` for a file; None if the file has no labels of named judges.

    Raises
    ------
    InputError
        If the file has labels of judges, and one of them is not valid.
    """
    if not is_store(path):
        try:
            rows = read_label_rows(files.local(path), str(path))
        except InputError:
            return None
        if rows is None or not rows.judges:
            return None
    return Labels.of(path).counts()


class Imported(NamedTuple):
    """Counts of an import."""

    labels: int
    replaced: int  # labels that no longer count, because the same judge labeled the pair later
    new_topics: int  # topics that were not in the store


def import_labels(store: LabelStore, path: str | Path, *, judge: str = "", kind: Kind = "human") -> Imported:
    """Import the labels of a file into a store, all or none.

    Formats that identify queries by text use the topics of the store; other texts become new topics.

    Raises
    ------
    InputError
        If the file cannot be read, or a grade is not on the scale of the store; the message has the line.
    """
    topics, allowed = {row["query_id"]: row["text"] for row in store.topics()}, {grade.grade for grade in store.scale}
    # All rows are checked before the first one is stored.
    rows = list(label_rows(path, judge=judge, kind=kind, topics=topics or None, new_topics=True))
    for line, row in rows:
        if row["grade"] is not None and row["kind"] != "click" and row["grade"] not in allowed:
            fix = f"use {', '.join(f'{grade:g}' for grade in sorted(allowed))}, or a store with another scale"
            raise InputError(f"the grade {row['grade']:g} is not on the scale", fix=fix, path=str(path), line=line)
    texts = {row["query_id"]: row["text"] for _, row in rows if "text" in row and row["query_id"] not in topics}
    before = store.labels().last.num_rows if len(store) else 0
    with add_path_to_errors(path):
        if texts:
            store.add_topics(texts)
        count = store.add_many({name: row[name] for name in SCHEMA.names} for _, row in rows)
    new_ids = {row["query_id"] for _, row in rows}.difference(topics) if topics else texts
    return Imported(count, count + before - store.labels().last.num_rows, len(new_ids))


def label_rows(
    path: str | Path, *, judge: str = "", kind: Kind = "human", topics: Any = None, new_topics: bool = False
) -> Iterator[Row]:
    """Yield the labels of a file with all columns, each with its line.

    The query ID has priority; ``text`` identifies the topic only without an ID, and is then part of the row. It is an
    error if ID and text are of different topics. An unknown text is an error, or with `new_topics` a new topic ID.
    """
    where, rows = str(path), _open_rows(path)
    topics = None if topics is None else Topics.of(topics)
    ids = {} if topics is None else _ids_by_text(topics)
    known = set[str]() if topics is None else set(topics.table["query_id"].to_pylist())
    for line, record in rows:
        row = _complete_label(record, judge, kind, where, line)
        text = str(record.get("text") or "").strip()
        topic = ids.get(_normalize(text))
        if text and text == row["query_id"]:
            is_id = topic is None and (new_topics or topics is None or text in known)
            row |= {"text": text, "query_id": text if is_id else topic}
            if not row["query_id"]:
                problem = f"the query {text!r:.80} must be the text of exactly one topic"
                raise InputError(problem, fix="use a different text for each topic", path=where, line=line)
        elif topic and topic != row["query_id"]:
            problem = f"the row has query_id {row['query_id']}, but its text {text!r:.60} is the text of topic {topic}"
            raise InputError(problem, fix="remove or correct the column `text`", path=where, line=line)
        for name in ("query_id", "doc_id"):
            if not row[name]:
                raise InputError(f"each label must have a {name}", fix=f"add the missing {name}", path=where, line=line)
        yield line, row
    if not rows:
        raise InputError("the file has no labels", fix="use a file with labels", path=where)


def _ids_by_text(topics: Topics) -> dict[str, str]:
    """Map normalized texts to topic IDs; empty if several topics have the text."""
    ids: dict[str, str] = {}
    for topic, text in zip(topics.table["query_id"].to_pylist(), topics.table["text"].to_pylist(), strict=True):
        ids[_normalize(text)] = "" if _normalize(text) in ids else topic
    return ids


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())


def _open_rows(path: str | Path) -> list[Row]:
    """Read the rows of a table of labels, of the export of a tool, or of qrels, and parse their grades."""
    where = str(path)
    labels = read_label_rows(files.local(path), where)
    if labels is None:
        return list(_qrels_rows(path))
    values = [single_value(row.get("relevance")) for _, row in labels.rows]
    grades = read_grades(values, where, labels.notes, [line for line, _ in labels.rows])
    for note in labels.notes:
        warnings.warn(f"{where}: {note}", JudgedWarning, stacklevel=3)
    rows: list[Row] = []
    for (line, row), grade in zip(labels.rows, grades, strict=True):
        # In a book of Quepid, a judge can postpone a document, or find that it cannot be rated.
        is_postponed = bool(row.pop("postponed", False))
        is_unrated = is_postponed or bool(row.pop("unrateable", False))
        rows.append((line, {"valid": not is_postponed, **row, "grade": None if is_unrated else grade}))
    return rows


def _qrels_rows(path: str | Path) -> Iterator[Row]:
    table = Qrels.read(path).table
    for query, doc, grade in zip(*(table[name].to_pylist() for name in table.column_names[:3]), strict=True):
        yield None, {"query_id": query, "doc_id": doc, "grade": grade}


_TEXT_COLUMNS = ("query_id", "doc_id", "judge", "kind")


def _complete_label(record: Mapping[str, Any], judge: str, kind: str, where: str, line: int | None) -> dict[str, Any]:
    """Add missing columns to a label and convert the types."""
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names, "") | {"seconds": None, "seed": None, "repeat": 0, "valid": True}
    row |= {"judge": judge, "kind": kind, "grade": None}
    if name := next((name for name in _TEXT_COLUMNS if isinstance(record.get(name), (list, dict))), ""):
        problem = f"not a valid label ({name} must be a text, got {format_value(record[name])})"
        raise InputError(problem, fix="correct the row", path=where, line=line)
    row |= {name: record[name] for name in SCHEMA.names if not _is_empty(record.get(name))}
    for name, value in row.items():
        if name in {"query_id", "doc_id"}:
            row[name] = id_text(value, name, path=where, line=line)
        elif name not in _PARSERS:
            row[name] = value if name == "grade" else str(value)
        elif value is not None:
            try:
                row[name] = _PARSERS[name](value)
            except (ValueError, TypeError) as error:
                problem = f"not a valid label ({name} {value!r} {error})"
                raise InputError(problem, fix="correct the row", path=where, line=line) from None
    row["time"] = format_utc(row["time"], where, line)
    if row["grade"] is not None and not math.isfinite(row["grade"]):
        raise InputError("grades must be finite", fix="leave missing grades empty", path=where, line=line)
    if not row["judge"].strip():
        raise InputError("the label has no judge", fix="name the judge: --judge NAME", path=where, line=line)
    if row["kind"] not in KINDS:
        problem = f"unknown type of judge {row['kind']!r}"
        raise InputError(problem, fix=f"use {', '.join(KINDS)}", path=where, line=line)
    return row


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or isinstance(value, (list, dict))


def _parse_integer(value: Any) -> int:
    number = int(value)
    # Arrow int64.
    if abs(number) >= 2**63:
        raise ValueError("has more than 64 bits")
    return number


def _parse_boolean(value: Any) -> bool:
    grades = grades_of_words([str(value)])
    if grades is None:
        raise ValueError("is not true or false")
    return bool(grades[str(value)])


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "seconds": read_number, "repeat": _parse_integer, "seed": _parse_integer, "valid": _parse_boolean,
}  # fmt: skip


def read_pairs(
    path: str | Path, topics: Mapping[str, str] | None = None, depth: int | None = None
) -> list[tuple[str, str]]:
    """Read pairs of topic and document from a table with both columns, a list of `judged review`, or qrels.

    With `depth`, the file is a run, and the pairs are its top documents. A query that is the text of one of `topics`,
    ``{id: text}``, is replaced by its ID.

    Raises
    ------
    InputError
        If there are no pairs, for example in a list of queries without documents.
    """
    where, ids, pairs = str(path), _ids_by_text(Topics.of(topics)) if topics else {}, list[tuple[str, str]]()
    top = None if depth is None else pool([path], depth=depth).pairs.to_pylist()
    for line, row in _rows_with_columns(path, {"query_id", "doc_id"}) if top is None else ((None, row) for row in top):
        query = id_text(row["query_id"], "query id", path=where, line=line)
        query_id = query if not topics or query in topics else ids.get(_normalize(query)) or query
        pairs.append((query_id, id_text(row["doc_id"], "document id", path=where, line=line)))
    if not pairs:
        raise InputError(
            "the file has no pairs of topic and document", fix="use the columns query_id and doc_id", path=where
        )
    return pairs


def read_topics(path: str | Path, topics: Mapping[str, str]) -> set[str]:
    """Read topic IDs from a list of queries, with IDs or texts: a list of `judged online queries`, or any table.

    Raises
    ------
    InputError
        If no query is one of `topics`, ``{id: text}``.
    """
    ids = _ids_by_text(Topics.of(topics)) if topics else {}
    queries = {str(row["query_id"]) for _, row in _rows_with_columns(path, {"query_id"})}
    topic_ids = {query if query in topics else ids.get(_normalize(query), "") for query in queries} - {""}
    if not topic_ids:
        problem = "no query of the file is a topic of the store"
        raise InputError(problem, fix="add topics with these texts: judged labels new STORE --topics", path=str(path))
    return topic_ids


def _rows_with_columns(path: str | Path, required: set[str]) -> Iterator[Row]:
    """Yield the rows of a file with canonical column names; for a JSON result, of tables with these columns."""
    where, head = str(path), files.head(path).removeprefix(files.BOM).decode(errors="replace").lstrip()
    cells = re.split(r"[\t,;]", re.split(r"[\r\n]", head, maxsplit=1)[0])
    names = canonical_names([cell.strip().strip('"') for cell in cells], "qrels")
    if head.startswith(("{", "[")) and json_kind(head, where) == "json":
        document = load_json(Path(path), where)
        # A JSON result of judged has one list per table.
        tables = cast("dict[str, Any]", document).values() if isinstance(document, dict) else [document]
        lists = (table for table in tables if isinstance(table, list) and table and isinstance(table[0], dict))
        matching = (table for table in lists if required <= set(canonical_names(table[0], "qrels")))
        records: Iterator[Row] = ((None, record) for table in matching for record in table)
    elif head.startswith(("PAR1", "ARROW1", "{")) or {"query_id", "doc_id"} & set(names):
        records = read_records(path)
    else:
        records = _judged_rows(path)
    for line, record in records:
        if not isinstance(record, dict):
            problem = f"rows must be objects, got {format_value(record)}"
            raise InputError(problem, fix="correct the row", path=where, line=line)
        row = dict(zip(canonical_names(record, "qrels"), record.values(), strict=True))
        if missing := required - row.keys():
            fix = f"add {min(missing)}, or use a file of 'judged pool', which selects documents to judge"
            raise InputError(f"the column {min(missing)} is missing", fix=fix, path=where, line=line)
        yield line, row


def _judged_rows(path: str | Path) -> Iterator[Row]:
    try:
        yield from _qrels_rows(path)
    except InputError as error:
        if error.rule != "looks-like-run":
            raise
        raise InputError(error.problem, fix="use --depth 10 for its top 10 documents", path=str(path)) from None


def write_labels(labels: Labels, path: str | Path, *, notes: bool = False) -> None:
    """Write labels as CSV, JSON Lines or Parquet, depending on the file name; notes only on request.

    Raises
    ------
    InputError
        If the file name has another suffix, or the file cannot be written.
    """
    table = labels.table if notes else labels.table.drop_columns("note")
    suffix = Path(path).suffix.lower() or ".csv"
    if suffix not in {".csv", ".jsonl", ".parquet"}:
        raise InputError(
            "a file of labels must be .csv, .jsonl or .parquet", fix="change the file name", path=str(path)
        )
    with atomic_write(path) as temporary_path:
        if suffix == ".csv":
            temporary_path.write_text(csv_lines([table.column_names, *_cells(table)]) + "\n", encoding="utf-8")
        elif suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, temporary_path)
        else:
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
            temporary_path.write_text("".join(lines), encoding="utf-8")


def _cells(table: Table) -> Iterator[tuple[object, ...]]:
    """Yield the rows of labels, with Booleans as lowercase words."""
    columns = (table[name].to_pylist() for name in table.column_names)
    for row in zip(*columns, strict=True):
        yield tuple(str(value).lower() if isinstance(value, bool) else value for value in row)


def quepid_ratings(qrels: Qrels, topics: Mapping[str, str]) -> str:
    """Format qrels as Quepid ratings: CSV with ``query,docid,rating``, where the query is its text.

    >>> print(quepid_ratings(Qrels.of({"q": {"a": 2, "b": 0.5}}), {"q": "who wrote Faust"}))
    query,docid,rating
    who wrote Faust,a,2
    who wrote Faust,b,0.5
    """
    ratings = _ratings_by_text(qrels, topics).items()
    rows = ((query, doc, f"{grade:.15g}") for query, grades in ratings for doc, grade in grades)
    return csv_lines([("query", "docid", "rating"), *rows])


def judgment_list(qrels: Qrels, topics: Mapping[str, str]) -> str:
    """Format qrels as a judgment list of OpenSearch Search Relevance Workbench: JSON, where the query is its text."""
    lists = [
        {"query": text, "ratings": [{"docId": doc, "rating": str(grade)} for doc, grade in ratings]}
        for text, ratings in _ratings_by_text(qrels, topics).items()
    ]
    rule = "" if qrels.origin is None else qrels.origin.how
    head = {"name": qrels.name, "description": f"judged: {rule}", "type": "IMPORT_JUDGMENT"}
    return json.dumps({**head, "judgmentRatings": lists}, indent=2, ensure_ascii=False)


def _ratings_by_text(qrels: Qrels, topics: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    ratings: dict[str, list[tuple[str, float]]] = {}
    for row in qrels.table.to_pylist():
        ratings.setdefault(row["query_id"], []).append((row["doc_id"], row["relevance"]))
    texts = [topics.get(topic) or topic for topic in ratings]
    if duplicates := [text for text, count in Counter(texts).items() if count > 1]:
        problem = f"this format identifies queries by text, and two topics have the text {duplicates[0]!r:.80}"
        raise InputError(problem, fix="export qrels or labels instead", path=qrels.where)
    return dict(zip(texts, ratings.values(), strict=True))
