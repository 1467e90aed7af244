"""Tables of facts by id, of topics or of documents: files of several formats, and columns of three types."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data import files
from judged.data.arrow_files import arrow_table, parquet_table
from judged.data.compute import pc, unescaped
from judged.data.index import decoded, id_column, id_text
from judged.data.json_rows import json_kind, json_lines, load
from judged.data.layout import refuse_same_names
from judged.data.topic_files import plain_name, refuse_wide
from judged.errors import InputError, JudgedWarning
from judged.results.decimals import is_number, read_number, resembles_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from judged.results.types import Table

_NUMBER = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_IDS = {
    "query_id": (
        "query_id", "qid", "_id", "id", "topic_id", "query_number", "query_no", "q_id", "num", "number", "topic",
        "query",
    ),
    "doc_id": (
        "doc_id", "docid", "docno", "_id", "id", "did", "pid", "corpus_id", "document_id", "passage_id", "item_id",
        "doc_number", "document", "doc",
    ),
}  # fmt: skip
OF = {"query_id": "topic", "doc_id": "document"}


@dataclass(frozen=True)
class _Facts:
    """A table as it was read, and the line of each row where there are lines."""

    table: Table
    where: str
    lines: Iterable[int] | None = None

    def line(self, row: int) -> int | None:
        return None if self.lines is None else next(line for at, line in enumerate(self.lines) if at == row)


def read_facts(path: str | Path, id_name: str = "query_id") -> Table:
    """Read facts by id from a file: CSV, TSV, JSON, JSONL, Parquet or Arrow (Feather), compressed or not."""
    # The format is found by the name's ending and by content. JSON is `{id: {...}}` or a list of records. `path`: the
    # file; `-` for standard input. `id_name`: `query_id` or `doc_id`. Other usual names of that column are understood.
    # Returns the column of ids under `id_name`, then the others in their order: string, float64 or bool.
    where = files.STDIN if str(path) == "-" else str(path)
    file = files.local(path)
    try:
        found = _read(file, where, id_name)
        refuse_wide(found.table.num_columns, where)
        made = typed_facts(found.table, id_name, where)
        _refuse_bad_ids(made[id_name], found, id_name)
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:  # what comes of broken files
        raise _unreadable(where, id_name, str(error)) from None
    return made


def typed_facts(table: Table, id_name: str, where: str) -> Table:
    """Name the column of ids, put it first, and give every other column one of three types."""
    names = [plain_name(name) for name in table.column_names]
    refuse_same_names(names, where)
    at = id_place(names, id_name)
    if at is None:
        found = ", ".join(names)[:80]
        raise InputError(
            f"no {id_name} among its columns {found}",
            fix=f"name the columns in the first line, one of them {id_name}",
            path=where,
        )
    try:
        made = {id_name: id_column(table.column(at), id_name)}
        for other, name in enumerate(names):
            if other != at:
                several = id_name == "query_id" and pa.types.is_list(table.column(other).type)
                made[name] = (several_texts if several else typed_column)(table.column(other), name)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=where) from None
    return pa.table(made)


def under_id(id_name: str, name: str, known: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Give what stands under an id as a record with it."""
    if str(known.get(id_name, name)) != name:
        problem = f"{OF[id_name]} {name} has the {id_name} {known[id_name]!r:.40} in it"
        raise InputError(problem, fix="leave one of the two out", path=where)
    return {id_name: name, **{key: value for key, value in known.items() if key != id_name}}


def id_place(names: Iterable[str], id_name: str) -> int | None:
    """Find the column of ids by its usual names, the plainest first; None where there is none.

    >>> id_place(["query", "qid", "domain"], "query_id"), id_place(["length"], "doc_id")
    (1, None)
    """
    plain = [plain_name(name) for name in names]
    return next((plain.index(name) for name in _IDS[id_name] if name in plain), None)


def several_texts(column: Any, name: str) -> Any:
    """Give a column of lists of texts, each text once, in the order of the list; an empty list becomes null.

    >>> several_texts(pa.array([["a", " a", "b"], [], None]), "x").to_pylist()
    [['a', 'b'], None, None]
    """
    kind = column.type.value_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        raise InputError(f"the column {name} holds lists of {kind}", fix="give lists of texts")
    rows = ([text.strip() for text in one or () if text and text.strip()] for one in column.to_pylist())
    return pa.array([list(dict.fromkeys(texts)) or None for texts in rows], pa.list_(pa.string()))


def typed_column(column: Any, name: str) -> Any:
    """Give a column as string, float64 or bool; empty text and NaN become null.

    >>> [typed_column(pa.array(texts), "x").to_pylist() for texts in (["3", ""], ["007", "1"], ["true", "False"])]
    [[3.0, None], ['007', '1'], [True, False]]
    """
    # Text becomes numbers where every value is one, and true or false where every value is one of these words. `007` is
    # a code and no number; dates are text.
    column = decoded(column)
    kind = column.type
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64(), safe=False)
        if pc.any(pc.is_inf(numbers)).as_py():
            raise InputError(f"the column {name} holds an infinite number", fix="write finite numbers, or none")
        return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise InputError(f"the column {name} holds {kind}", fix="give one text, number or true/false a row")
    texts = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return _guessed(pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts), name)


def _guessed(texts: Any, name: str) -> Any:
    if texts.null_count == len(texts):
        return texts
    lower = pc.utf8_lower(texts)
    if pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(["true", "false"]))).as_py():
        return pc.equal(lower, "true")
    if pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py():
        try:
            return pa.array([None if text is None else read_number(text) for text in texts.to_pylist()], pa.float64())
        except ValueError:  # one that no double holds
            pass
    _warn_of_numbers(texts, name)
    return texts


def _warn_of_numbers(texts: Any, name: str) -> None:
    """Say that a column stays text although most of it looks like numbers; codes such as 007 are meant as text."""
    counted = Counter(texts.drop_null().to_pylist())
    if any(text.isdigit() and text[0] == "0" and text != "0" for text in counted):
        return
    known = sum(counted.values())
    numbers = {text: times for text, times in counted.items() if resembles_number(text)}
    odd = [text for text in counted if not (re.match(_NUMBER, text) and is_number(text))]
    if 2 * sum(numbers.values()) > known:
        rows = sum(counted[text] for text in odd)
        warnings.warn(
            f"the column {name} is read as text: {rows} of {known} values are not numbers, such as {odd[0]!r:.40};"
            " for numbers write 1.5, and leave cells empty where there is none",
            JudgedWarning,
            stacklevel=2,
        )


def _read(file: Path, where: str, id_name: str) -> _Facts:
    ending = where.lower().removesuffix(".gz")
    head = files.head(file)
    if head.startswith(b"PAR1") or ending.endswith((".parquet", ".pq")):
        return _Facts(parquet_table(file, where), where)
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) or ending.endswith((".arrow", ".feather")):
        return _Facts(arrow_table(file, where), where)
    text = files.text(file, where)
    start = text.lstrip()
    if not start:
        raise InputError("this file is empty", fix=f"give a file with a column {id_name}", path=where)
    if ending.endswith((".jsonl", ".ndjson")) or json_kind(start, where) == "jsonl":
        return _records(json_lines(file, where), where, id_name)
    if ending.endswith(".json") or start.startswith(("{", "[")):
        return _records(_json(load(file, where), where, id_name), where, id_name)
    return _delimited(text, where, id_name)


def _json(data: Any, where: str, id_name: str) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Give the records of ``{id: {...}}`` or of a list."""
    of, shape = OF[id_name], f'write {{"id": {{"name": ...}}}}, or [{{"{id_name}": ...}}]'
    if isinstance(data, dict):
        for name, known in cast("dict[str, Any]", data).items():
            if not isinstance(known, dict):
                raise InputError(f"{json.dumps(known)[:40]} tells nothing of {of} {name}", fix=shape, path=where)
            yield None, under_id(id_name, name, cast("dict[str, Any]", known), where)
        return
    if not isinstance(data, list):
        raise InputError(f"this JSON holds no facts by {of}", fix=shape, path=where)
    for at, known in enumerate(cast("list[Any]", data), 1):
        if not isinstance(known, dict):
            raise InputError(f"record {at}: {json.dumps(known)[:40]} is not a record", fix=shape, path=where)
        yield None, known


def _records(records: Iterable[tuple[int | None, Mapping[str, Any]]], where: str, id_name: str) -> _Facts:
    """Lay records out as columns, which come from all of them."""
    made: dict[str, list[Any]] = {}
    lines: list[int] = []
    key, count = "", 0
    for line, record in records:
        if key not in record:
            at = id_place(record, id_name)
            key = "" if at is None else list(record)[at]
        place = f"record {count + 1}: " if line is None else ""
        if not key:
            found = f"no {id_name} among the fields {', '.join(record)[:80]}"
            raise InputError(place + found, fix=f"name a field {id_name}", path=where, line=line)
        for name, value in record.items():
            if name == key:
                continue
            several = id_name == "query_id" and isinstance(value, list)
            texts = several and all(isinstance(one, str) for one in cast("list[Any]", value))
            if isinstance(value, (dict, list)) and value and not texts:
                problem = f"{place}{name} holds {json.dumps(value)[:40]}"
                lists = ", or a list of texts" if id_name == "query_id" else ""
                raise InputError(problem, fix=f"give one text, number or true/false{lists}", path=where, line=line)
            if name not in made:
                refuse_wide(len(made) + 1, where, line)  # before there is room for it
                made[name] = [None] * count
            made[name].append(None if value in ({}, []) else value)
        made.setdefault(id_name, [None] * count).append(_id(record[key], id_name, place, where, line))
        count += 1
        for column in made.values():
            column.extend([None] * (count - len(column)))
        lines.extend(() if line is None else (line,))
    if not made:
        raise InputError("this file is empty", fix=f"give records with {id_name}", path=where)
    columns = {name: _array(values, name, where) for name, values in made.items()}
    return _Facts(pa.table({id_name: columns.pop(id_name), **columns}), where, lines or None)


def _id(value: Any, id_name: str, place: str, where: str, line: int | None) -> str:
    try:
        return id_text(value, id_name)
    except InputError as error:
        raise InputError(place + error.problem, fix=error.fix, path=where, line=line) from None


def _array(values: list[Any], name: str, where: str) -> Any:
    """Make a column; values of several types become text, as JSON writes them."""
    known = [one for one in values if one is not None]
    texts = [one if one is None or isinstance(one, (str, list)) else json.dumps(one) for one in values]
    try:
        if any(isinstance(one, list) for one in known):
            several = [
                one if isinstance(one, list) or one is None else [text] for one, text in zip(values, texts, strict=True)
            ]
            return pa.array(several, pa.list_(pa.string()))
        if known and all(isinstance(one, bool) for one in known):
            return pa.array(values, pa.bool_())
        if known and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in known):
            return pa.array([None if one is None else float(one) for one in values], pa.float64())
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        raise InputError(f"a text of {name} holds half a character", fix="correct it", path=where) from None
    except OverflowError:
        raise InputError(f"a number of {name} is too large", fix="write a smaller one", path=where) from None


def _delimited(text: str, where: str, id_name: str) -> _Facts:
    """Read CSV, also with semicolons, or TSV, in which a quotation mark means nothing."""
    from pyarrow import csv as arrow_csv

    first = text.split("\n", 1)[0]
    delimiter = next((sign for sign in "\t,;" if sign in first), ",")
    tabs = delimiter == "\t"
    header = next(_rows(first, delimiter), (1, [""]))[1]
    if any(not name.strip() for name in header):
        raise InputError("a column has no name", fix="name every column in the first line", path=where, line=1)
    refuse_wide(len(header), where, 1)
    places = [str(at) for at in range(len(header))]
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(text.encode()),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char=False if tabs else '"', newlines_in_values=not tabs
            ),
            read_options=arrow_csv.ReadOptions(column_names=places, skip_rows=1),
            convert_options=arrow_csv.ConvertOptions(column_types=dict.fromkeys(places, pa.string())),
        ).rename_columns(header)
        table = table if tabs else unescaped(table)
    except pa.ArrowInvalid as error:
        for line, row in _rows(text, delimiter):
            if len(row) != len(header):
                problem = f"{len(row)} fields where the header has {len(header)} ({', '.join(header)[:60]})"
                raise InputError(problem, fix="correct the line", path=where, line=line) from None
        raise _unreadable(where, id_name, str(error)) from None
    return _Facts(table, where, (line for at, (line, _) in enumerate(_rows(text, delimiter)) if at))


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Give the fields of each row with its line: for messages, slower than Arrow's reader."""
    if delimiter == "\t":
        yield from ((line, row.split("\t")) for line, row in enumerate(text.split("\n"), 1) if row)
        return
    reader = csv.reader(re.split(r"(?<=\n)", text), delimiter=delimiter)
    last = 0
    for row in reader:
        if row:
            yield last + 1, row
        last = reader.line_num


def _refuse_bad_ids(ids: Any, found: _Facts, id_name: str) -> None:
    """Refuse an id that is empty or stands twice, and say where."""
    fix = f"keep one row per {OF[id_name]}"
    empty = pc.index(pc.equal(ids, ""), value=True).as_py()
    if empty >= 0:
        where = found.where, found.line(empty)
        raise InputError(f"the {id_name} is empty", fix="fill it in", path=where[0], line=where[1])
    if len(pc.unique(ids)) == len(ids):
        return
    before: set[str] = set()
    for row, name in enumerate(ids.to_pylist()):
        if name in before:
            problem = f"{OF[id_name]} {name} appears in it twice"
            raise InputError(problem, fix=fix, path=found.where, line=found.line(row))
        before.add(name)


def _unreadable(where: str, id_name: str, why: str) -> InputError:
    return InputError(
        f"facts about {OF[id_name]}s cannot be read from it ({why.splitlines()[0]})",
        fix=f"give CSV, TSV, JSON, JSONL, Parquet or Arrow with a column {id_name}",
        path=where,
    )
