"""Labels read from files of any tool, and written for other tools."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa

from judged.data import files
from judged.data.index import format_value, id_text
from judged.data.json_rows import check_shape, json_kind, load_json
from judged.data.layout import canonical_names
from judged.data.qrels import Qrels
from judged.data.records import read_records
from judged.data.topics import Topics
from judged.errors import InputError, JudgedWarning, add_path_to_errors
from judged.labels.labels import KINDS, SCHEMA, Labels, utc_text
from judged.results.decimals import counted, read_grade, read_number
from judged.results.escaping import csv_lines
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged.labels.labels import Kind
    from judged.labels.store import LabelStore
    from judged.results.types import Table

    Row = tuple[int | None, dict[str, Any]]

_JUDGE = ("judge", "assessor", "annotator", "rater", "worker")
_FALSE, _TRUE = frozenset({"false", "0", "no"}), frozenset({"true", "1", "yes"})


def is_store(path: str | Path) -> bool:
    """Whether this is a store of labels: the address of a database, or a file of SQLite."""
    return "://" in str(path) or (Path(path).is_file() and files.head(path, 15) == b"SQLite format 3")


def read_labels(path: str | Path, *, judge: str = "", kind: Kind = "human", topics: Any = None) -> Labels:
    """Read labels; the format is found by content.

    Parameters
    ----------
    path
        A store; a table as CSV, TSV, JSON, JSON Lines or Parquet with the columns ``query_id``, ``doc_id``, ``judge``
        and ``grade`` and as many others of labels as are known; qrels; a book of Quepid, as CSV (``query``, ``docid``
        and a column a judge) or JSON; Quepid's ratings (``query``, ``docid``, ``rating``); or a judgment list of
        OpenSearch's search relevance workbench as JSON.
    judge
        Who gave the labels, where the file does not say.
    kind
        Of what kind its labels are, where the file does not say.
    topics
        Texts of topics, as `Topics.of` takes them: some formats name queries by their texts. Without them a text is
        its topic's id.

    Raises
    ------
    InputError
        If it cannot be read; the message names the line.
    """
    if is_store(path):
        from judged.labels.store import LabelStore

        with LabelStore.open(path, new=False) as store:
            return store.labels()
    made = [row for _, row in label_rows(path, judge=judge, kind=kind, topics=topics)]
    table = pa.table({field.name: pa.array([row[field.name] for row in made], field.type) for field in SCHEMA})
    return Labels(table, Path(path).name.partition(".")[0], str(path))


class Imported(NamedTuple):
    """What an import added to a store."""

    labels: int
    replaced: int  # labels, of the file or the store, that no longer count: the same judge labeled the pair later
    new_topics: int  # topics that the store did not have


def import_labels(store: LabelStore, path: str | Path, *, judge: str = "", kind: Kind = "human") -> Imported:
    """Put the labels of a file into a store, all or none.

    Formats that name queries by their texts find their topics in the store; other texts become topics.

    Raises
    ------
    InputError
        If it cannot be read, or a grade is not on the scale of the store; the message names the line.
    """
    topics, allowed = {row["query_id"]: row["text"] for row in store.topics()}, {one.grade for one in store.scale}
    rows = list(label_rows(path, judge=judge, kind=kind, topics=topics or None, new_topics=True))
    for line, row in rows:
        if row["grade"] is not None and row["kind"] != "click" and row["grade"] not in allowed:
            fix = f"use one of {', '.join(f'{grade:g}' for grade in sorted(allowed))}, or a store with another scale"
            raise InputError(f"the grade {row['grade']:g} is not on the scale", fix=fix, path=str(path), line=line)
    new = {row["query_id"]: row["text"] for _, row in rows if "text" in row and row["query_id"] not in topics}
    before = store.labels().last.num_rows if len(store) else 0
    with add_path_to_errors(path):
        if new:
            store.add_topics(new)
        count = store.add_many({name: row[name] for name in SCHEMA.names} for _, row in rows)
    unknown = {row["query_id"] for _, row in rows}.difference(topics) if topics else new
    return Imported(count, count + before - store.labels().last.num_rows, len(unknown))


def label_rows(
    path: str | Path, *, judge: str = "", kind: Kind = "human", topics: Any = None, new_topics: bool = False
) -> Iterator[Row]:
    """Return the rows of a file as labels with all columns, each with its line.

    An id of a query decides; its text (``text``) only where there is no id: then it stands in the row, too. A text that
    is that of another topic than the id says is refused. A text of no topic is refused, or its own id (`new_topics`).
    """
    where, read, nothing = str(path), _reader(path), True
    ids = None if topics is None else _ids(Topics.of(topics))
    for line, given in read:
        row = _completed(given, judge, kind, where, line)
        text = str(given.get("text") or "")
        topic = text if ids is None else ids.get(_folded(text), "")
        if "query_id" not in given:
            if new_topics and ids is not None and _folded(text) not in ids:
                topic = text
            row |= {"text": text, "query_id": topic}
            if not topic:
                problem = f"the query {text!r:.80} is not the text of one topic alone"
                raise InputError(problem, fix="give each topic's text once", path=where, line=line)
        elif ids and topic not in {"", row["query_id"]}:
            problem = f"the row has query_id {row['query_id']}, and its text {text!r:.60} is that of topic {topic}"
            raise InputError(problem, fix="leave the column text out, or correct it", path=where, line=line)
        for name in ("query_id", "doc_id"):
            if not row[name]:
                raise InputError(f"the label has no {name}", fix=f"give each a {name}", path=where, line=line)
        nothing = False
        yield line, row
    if nothing:
        raise InputError("there are no labels in it", fix="give a file with at least one", path=where)


def _ids(topics: Topics) -> dict[str, str]:
    """Give the id of each text, whatever its case and blanks; empty where several topics have it."""
    ids: dict[str, str] = {}
    for topic, text in zip(topics.table["query_id"].to_pylist(), topics.table["text"].to_pylist(), strict=True):
        ids[_folded(text)] = "" if _folded(text) in ids else topic
    return ids


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _reader(path: str | Path) -> Iterator[Row]:
    """Choose how a file is read, by its beginning."""
    head = files.head(path).removeprefix(files.BOM).lstrip()
    where = str(path)
    if head.startswith((b"{", b"[")) and json_kind(head.decode(errors="replace"), where) == "json":
        document = load_json(Path(path), where)
        if isinstance(document, dict) and "query_doc_pairs" in document:
            return _book(document, where)
        if lists := _judgment_lists(document):
            return _rated(lists, where)
        return _records(path)
    first = re.split(r"[\r\n]", head.decode(errors="replace"), maxsplit=1)[0]
    names = [name.strip().strip('"').lower() for name in first.replace("\t", ",").replace(";", ",").split(",")]
    if names[:2] == ["query", "docid"] and not set(names) & set(_JUDGE):
        return _columns(path)
    if head.startswith((b"PAR1", b"ARROW1", b"{")) or {"query_id", "doc_id", "relevance"} <= set(_canonical(names)):
        return _records(path)
    return _qrels(path)


def _canonical(names: list[str]) -> list[str]:
    """Give our names of a table's columns; those that mean nothing here as they are."""
    plain = ["judge" if name.lower() in _JUDGE else name for name in names]
    return [ours or name for ours, name in zip(canonical_names(plain, "qrels"), plain, strict=True)]


def _records(path: str | Path) -> Iterator[Row]:
    for line, record in read_records(path):
        row = dict(zip(_canonical(list(record)), record.values(), strict=True))
        if lacking := {"query_id", "doc_id", "relevance"} - row.keys():
            problem = f"there is no column {min(lacking)}"
            raise InputError(problem, fix="give query_id, doc_id, judge and grade", path=str(path), line=line)
        yield line, {**row, "grade": row["relevance"]}


def _columns(path: str | Path) -> Iterator[Row]:
    """Read Quepid's tables: a row a query and document, a column a judge; or one of ratings."""
    unrated = 0
    for line, record in read_records(path):
        (_, query), (_, doc), *ratings = record.items()
        unrated += not any(str(rating).strip() for _, rating in ratings)
        for name, rating in ratings:
            if str(rating).strip():
                judge = {} if name.lower() == "rating" else {"judge": name.strip()}
                yield line, {"text": str(query).strip(), "doc_id": doc, "grade": rating, **judge}
    if unrated:
        text = f"{path}: {counted(unrated, 'row')} without a rating {'is' if unrated == 1 else 'are'} left out"
        warnings.warn(text, JudgedWarning, stacklevel=2)


def _book(document: dict[str, Any], where: str) -> Iterator[Row]:
    """Read a book of Quepid: what cannot be rated has no grade, what is put off is not valid."""
    try:
        for pair in document["query_doc_pairs"]:
            for said in pair["judgments"]:
                put_off, unrateable = bool(said.get("judge_later")), bool(said.get("unrateable"))
                yield None, {
                    "text": pair["query_text"].strip(), "doc_id": pair["doc_id"],
                    "judge": said.get("user_email") or "Unknown", "valid": not put_off,
                    "grade": None if put_off or unrateable else said["rating"], "note": said.get("explanation") or "",
                }  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise _foreign("book of Quepid", error, where) from None


def _judgment_lists(document: Any) -> list[Any]:
    """Find what OpenSearch keeps, sends, or gives for a search of its judgment lists."""
    if isinstance(document, list):
        given = cast("list[Any]", document)
        return given if given and all(isinstance(one, dict) and "ratings" in one for one in given) else []
    known = cast("dict[str, Any]", document)
    found = known["hits"].get("hits") if isinstance(known.get("hits"), dict) else None
    hits = found if isinstance(found, list) else []
    sources = [known, *(hit.get("_source") for hit in hits if isinstance(hit, dict))]
    ratings = [source.get("judgmentRatings") for source in sources if isinstance(source, dict)]
    return [rating for part in ratings if isinstance(part, list) for rating in part]


def _rated(lists: list[Any], where: str) -> Iterator[Row]:
    try:
        for one in lists:
            for rating in one["ratings"]:
                yield None, {"text": one["query"].strip(), "doc_id": rating["docId"], "grade": rating["rating"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise _foreign("judgment list", error, where) from None


def _foreign(what: str, error: Exception, where: str) -> InputError:
    return InputError(f"this {what} lacks something ({error})", fix="export it again", path=where)


def _qrels(path: str | Path) -> Iterator[Row]:
    table = Qrels.read(path).table
    for query, doc, grade in zip(*(table[name].to_pylist() for name in table.column_names[:3]), strict=True):
        yield None, {"query_id": query, "doc_id": doc, "grade": grade}


def _completed(given: Mapping[str, Any], judge: str, kind: str, where: str, line: int | None) -> dict[str, Any]:
    """Give a label all columns, of their types."""
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names, "") | {"seconds": None, "seed": None, "repeat": 0, "valid": True}
    row |= {"judge": judge, "kind": kind, "grade": None}
    try:
        check_shape(given, {f"{name}?": (str, int, float, bool) for name in SCHEMA.names}, "the label")
        row |= {name: given[name] for name in SCHEMA.names if given.get(name) not in {None, ""}}
        for name in ("query_id", "doc_id"):
            if name in given:
                row[name] = id_text(given[name], name)
        for name, read in (("grade", read_grade), ("seconds", read_number)):
            value = row[name]
            try:
                row[name] = None if value is None else read(value)
            except ValueError as error:
                raise ValueError(f"{name} {value!r} {error}") from None
        for name in ("repeat", "seed"):
            row[name] = None if row[name] is None else _whole(row[name], name)
        if isinstance(row["valid"], str) and row["valid"].lower() not in _TRUE | _FALSE:
            raise ValueError(f"valid is {row['valid']!r}")
    except (ValueError, TypeError) as error:
        raise InputError(f"this is no label ({error})", fix="correct it", path=where, line=line) from None
    row["valid"] = row["valid"].lower() in _TRUE if isinstance(row["valid"], str) else bool(row["valid"])
    row |= {name: str(row[name]) for name in ("judge", "kind", "note", "at", "prompt", "model", "logprobs")}
    row["at"] = utc_text(row["at"], where, line)
    if row["grade"] is not None and not math.isfinite(row["grade"]):
        raise InputError("the grade is not finite", fix="leave it empty where there is none", path=where, line=line)
    if not row["judge"].strip() or row["kind"] not in KINDS:
        problem = f"no kind of judge {row['kind']!r}" if row["judge"].strip() else "nothing says who gave this label"
        fix = f"use one of {', '.join(KINDS)}" if row["judge"].strip() else "name the judge: --judge NAME"
        raise InputError(problem, fix=fix, path=where, line=line)
    return row


def _whole(value: Any, name: str) -> int:
    number = int(value)
    if abs(number) >= 2**63:
        raise ValueError(f"{name} has more than 64 bits")
    return number


def read_pairs(path: str | Path, topics: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Read pairs of topic and document: any table that names both, a list of `judged review`, or qrels.

    A query that is no id of `topics`, ``{id: text}``, but the text of one of them has its id.

    Raises
    ------
    InputError
        If there are none; a list of queries alone names no documents.
    """
    where, ids, pairs = str(path), _ids(Topics.of(topics)) if topics else {}, list[tuple[str, str]]()
    for line, row in _rows_with(path, {"query_id", "doc_id"}):
        query = id_text(row["query_id"], "query id", path=where, line=line)
        known = query if not topics or query in topics else ids.get(_folded(query)) or query
        pairs.append((known, id_text(row["doc_id"], "document id", path=where, line=line)))
    if not pairs:
        raise InputError("there are no pairs in it", fix="give query_id and doc_id", path=where)
    return pairs


def read_topics(path: str | Path, topics: Mapping[str, str]) -> set[str]:
    """Read which topics a list names, by their ids or texts: one of `judged online queries`, or any table of queries.

    Raises
    ------
    InputError
        If it names none of `topics`, ``{id: text}``.
    """
    ids = _ids(Topics.of(topics)) if topics else {}
    named = {str(row["query_id"]) for _, row in _rows_with(path, {"query_id"})}
    known = {query if query in topics else ids.get(_folded(query), "") for query in named} - {""}
    if not known:
        problem = "none of its queries is a topic of the store"
        raise InputError(problem, fix="add topics with these texts: judged labels new STORE --topics", path=str(path))
    return known


def _rows_with(path: str | Path, needed: set[str]) -> Iterator[Row]:
    """Give the rows of a file with our names of columns; of an answer as JSON, those of the tables that have these."""
    where, head = str(path), files.head(path).lstrip()
    first = re.split(r"[\r\n]", head.decode(errors="replace"), maxsplit=1)[0]
    names = _canonical([name.strip().strip('"') for name in first.replace("\t", ",").replace(";", ",").split(",")])
    if head.startswith((b"{", b"[")) and json_kind(head.decode(errors="replace"), where) == "json":
        document = load_json(Path(path), where)
        tables = cast("dict[str, Any]", document).values() if isinstance(document, dict) else [document]
        lists = (table for table in tables if isinstance(table, list) and table and isinstance(table[0], dict))
        chosen = (table for table in lists if needed <= set(_canonical(list(table[0]))))
        records: Iterator[Row] = ((None, record) for table in chosen for record in table)
    elif head.startswith((b"PAR1", b"ARROW1", b"{")) or {"query_id", "doc_id"} & set(names):
        records = read_records(path)
    else:
        records = _qrels(path)
    for line, record in records:
        if not isinstance(record, dict):
            raise InputError(
                f"a row is not an object but {format_value(record)}", fix="correct it", path=where, line=line
            )
        row = dict(zip(_canonical(list(record)), record.values(), strict=True))
        if lacking := needed - row.keys():
            fix = "give query_id and doc_id; 'judged pool' chooses documents for queries from runs"
            raise InputError(f"there is no column {min(lacking)}", fix=fix, path=where, line=line)
        yield line, row


def write_labels(labels: Labels, path: str | Path, *, notes: bool = False) -> None:
    """Write a table of labels as CSV, JSON Lines or Parquet, by the file's name; notes only where they are asked for.

    Raises
    ------
    InputError
        If the name says another format, or the file cannot be written.
    """
    table = labels.table if notes else labels.table.drop_columns("note")
    suffix = Path(path).suffix.lower() or ".csv"
    if suffix not in {".csv", ".jsonl", ".parquet"}:
        raise InputError("labels are not written so", fix="name a .csv, .jsonl or .parquet", path=str(path))
    with atomic_write(path) as part:
        if suffix == ".csv":
            part.write_text(csv_lines([table.column_names, *_cells(table)]) + "\n", encoding="utf-8")
        elif suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(table, part)
        else:
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist())
            part.write_text("".join(lines), encoding="utf-8")


def _cells(table: Table) -> Iterator[tuple[object, ...]]:
    """Return the rows of labels, with truth values as lower-case words."""
    columns = (table[name].to_pylist() for name in table.column_names)
    for row in zip(*columns, strict=True):
        yield tuple(str(value).lower() if isinstance(value, bool) else value for value in row)


def quepid_ratings(qrels: Qrels, topics: Mapping[str, str]) -> str:
    """Write qrels as Quepid imports ratings: CSV of ``query,docid,rating``, the query by its text.

    >>> print(quepid_ratings(Qrels.of({"q": {"a": 2, "b": 0.5}}), {"q": "who wrote Faust"}))
    query,docid,rating
    who wrote Faust,a,2
    who wrote Faust,b,0.5
    """
    rows = ((text, doc, f"{grade:.15g}") for text, ratings in _by_text(qrels, topics).items() for doc, grade in ratings)
    return csv_lines([("query", "docid", "rating"), *rows])


def judgment_list(qrels: Qrels, topics: Mapping[str, str]) -> str:
    """Write qrels as OpenSearch's search relevance workbench imports judgments: JSON, the query by its text."""
    lists = [
        {"query": text, "ratings": [{"docId": doc, "rating": str(grade)} for doc, grade in ratings]}
        for text, ratings in _by_text(qrels, topics).items()
    ]
    how = "" if qrels.origin is None else qrels.origin.how
    head = {"name": qrels.name, "description": f"judged: {how}", "type": "IMPORT_JUDGMENT"}
    return json.dumps({**head, "judgmentRatings": lists}, indent=2, ensure_ascii=False)


def _by_text(qrels: Qrels, topics: Mapping[str, str]) -> dict[str, list[tuple[str, float]]]:
    by_topic: dict[str, list[tuple[str, float]]] = {}
    for row in qrels.table.to_pylist():
        by_topic.setdefault(row["query_id"], []).append((row["doc_id"], row["relevance"]))
    texts = [topics.get(topic) or topic for topic in by_topic]
    if twice := [text for at, text in enumerate(texts) if text in texts[:at]]:
        problem = f"two topics have the text {twice[0]!r:.80}, and this format knows queries by their texts"
        raise InputError(problem, fix="write qrels or labels", path=qrels.where)
    return dict(zip(texts, by_topic.values(), strict=True))
