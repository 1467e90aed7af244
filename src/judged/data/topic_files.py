"""Files of topics: delimited lines, JSON, TREC's tagged text, XML, and numbered lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.etree import ElementTree as ET

import pyarrow as pa

from judged.data import files
from judged.data.index import id_text
from judged.data.json_rows import json_kind, json_lines, load
from judged.errors import InputError
from judged.results.escaping import csv_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from judged.results.types import Table


_LONGEST = 1 << 20  # characters of a line
_NUMBERED = re.compile(r"\s*([^\s:,]+)(?:\s*[:,]\s*|\s+)(\S.*)")
_TOP = re.compile(r"</?top>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(\w+)(?:\s[^<>]*)?>")
_FIELDS = frozenset({"num", "dom", "title", "desc", "smry", "narr", "con", "fac", "def", "query", "question"})
_LABELS = re.compile(r"\s*(Number|Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE)
_TREC_NAMES = {"num": "query_id", "title": "text", "desc": "description", "narr": "narrative"}
_ENTITIES = re.compile(r"<!ENTITY", re.IGNORECASE)

FORMATS = ("tsv", "csv", "json", "jsonl", "trec", "xml", "lines")
"""The names that `format` can have for topics."""


def read_topic_records(path: Path, where: str, format: str | None = None) -> TopicRecords:
    """Read the topics of a file; its format is found by its content."""
    if format is not None and format not in FORMATS:
        raise InputError(f"there is no format {format!r} of topics", fix=f"use one of {', '.join(FORMATS)}", path=where)
    records = TopicRecords(where)
    text = "" if format in {"json", "jsonl"} else files.text(path, where)  # a reader of JSON opens the file itself
    found = format or _format_of(text, where)
    if found in {"json", "jsonl"}:
        (_jsonl if found == "jsonl" else _json)(path, where, records)
    else:
        _refuse_long(text, where)
        _READERS[found](text, where, records)
    return records


def _refuse_long(text: str, where: str) -> None:
    """Refuse a line that is not a topic, before it is looked at field by field."""
    long = next((number for number, line in enumerate(text.split("\n"), 1) if len(line) > _LONGEST), None)
    if long is not None:
        problem = f"a line of more than {_LONGEST:,} characters"
        raise InputError(problem, fix="check that this is the right file", path=where, line=long)


def _format_of(text: str, where: str) -> str:
    start = text.lstrip()
    first = start.split("\n", 1)[0]
    if start.startswith(("{", "[")):
        return json_kind(start, where)
    if re.match(r"<top>", start, re.IGNORECASE):
        return "trec"
    if start.startswith("<"):
        return "xml"
    if "\t" in first:
        return "tsv"
    return "csv" if _header([part.strip(' "') for part in first.split(",")]) else "lines"


def _header(fields: list[str]) -> bool:
    try:
        named(dict.fromkeys(map(plain_name, fields), "x"))
    except InputError:
        return False
    return True


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Give every line that is neither blank nor a comment."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not (line.startswith("#") and "\t" not in line):
            yield number, line


def _tsv(text: str, where: str, records: TopicRecords) -> None:
    _table(((number, [cell.strip() for cell in line.split("\t")]) for number, line in _lines(text)), where, records)


def _csv(text: str, where: str, records: TopicRecords) -> None:
    reader = csv.reader(re.split(r"(?<=\n)", text), skipinitialspace=True)
    try:
        rows = [(reader.line_num, list(map(csv_text, row))) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"broken CSV ({error})", fix="correct it", path=where, line=reader.line_num) from None
    _table(iter(rows), where, records)


def _table(rows: Iterator[tuple[int, list[str]]], where: str, records: TopicRecords) -> None:
    names = ["query_id", "text"]
    for at, (number, row) in enumerate(rows):
        if at == 0 and _header(row):
            names = row
            if len({*map(plain_name, row)}) < len(row):
                problem = f"two columns have one name among {', '.join(row)[:80]}"
                raise InputError(problem, fix="name each once", path=where, line=number)
            continue
        if len(row) != len(names):
            raise InputError(
                f"{len(row)} fields where {len(names)} are expected ({', '.join(names)[:60]})",
                fix="name the columns in a first line, or give an id and a text",
                path=where,
                line=number,
            )
        records.add(dict(zip(names, row, strict=True)), number)


def _numbered(text: str, where: str, records: TopicRecords) -> None:
    for number, line in _lines(text):
        match = _NUMBERED.fullmatch(line)
        if not match:
            raise InputError(
                f"no topic id and text in {line.strip()[:60]!r}",
                fix="write '1 the text'",
                path=where,
                line=number,
            )
        records.add({"query_id": match[1], "text": match[2]}, number)


def _json(path: Path, where: str, records: TopicRecords) -> None:
    data = load(path, where)
    if isinstance(data, dict) and isinstance(data.get("querySetQueries"), list):  # a query set of OpenSearch
        for found in cast("list[Any]", data["querySetQueries"]):
            text = found.get("queryText") if isinstance(found, dict) else None
            _add(records, where, None, found, text)
    elif isinstance(data, dict):
        for query_id, found in cast("dict[str, Any]", data).items():
            _add(records, where, None, found, query_id)
    elif isinstance(data, list):
        for found in cast("list[Any]", data):
            _add(records, where, None, found)
    else:
        raise InputError("this JSON holds no topics", fix='write {"1": "the text"}', path=where)


def _jsonl(path: Path, where: str, records: TopicRecords) -> None:
    for number, found in json_lines(path, where):
        _add(records, where, number, found)


def _add(records: TopicRecords, where: str, line: int | None, found: Any, query_id: Any = None) -> None:
    try:
        record = record_of(found, query_id)
    except InputError as error:
        raise InputError(error.problem, fix=error.fix, path=where, line=line) from None
    records.add(record, line)


def _tops(text: str, where: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Find where each topic begins and ends."""
    start: re.Match[str] | None = None
    for mark in _TOP.finditer(text):
        if not mark[0].startswith("</"):
            if start is not None:
                break
            start = mark
        elif start is not None:
            yield start, mark
            start = None
    if start is not None:
        raise InputError("a <top> without </top>", fix="close every topic", path=where)


def _trec(text: str, where: str, records: TopicRecords) -> None:
    """Read ``<top> <num> Number: 303 <title> ...``: tags without ends, fields run to the next tag."""
    line, counted = 1, 0
    for start, end in _tops(text, where):
        line, counted = line + text.count("\n", counted, start.start()), start.start()
        fields: list[tuple[str, str]] = []
        for tag, content in _fields(text[start.end() : end.start()]):
            label = _LABELS.match(content)
            fields.append((tag, " ".join(content[label.end() if label else 0 :].split())))
        _add(records, where, line, _merged(fields, where, line))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Cut a topic into its fields; a ``<`` in a sentence, or ``List<String>``, belongs to the text."""
    # A tag begins a field where it is a usual one, the first of its line, or follows a closing tag.
    opened, begin, closed = "", 0, 0
    for mark in _TAG.finditer(text):
        name, before = mark[2].lower(), text[closed : mark.start()]
        if mark[1]:
            closed = mark.end()
        elif name in _FIELDS or not before.rpartition("\n")[2].strip():
            if opened:
                yield opened, _inside(text[begin : mark.start()], opened)
            opened, begin = name, mark.end()
    if opened:
        yield opened, _inside(text[begin:], opened)


def _inside(text: str, tag: str) -> str:
    return re.sub(rf"</{tag}\s*>", " ", text, flags=re.IGNORECASE)


def _merged(fields: Iterable[tuple[str, str]], where: str, line: int | None) -> dict[str, str]:
    """Make a record of fields, of which some may stand twice; none is dropped."""
    found: dict[str, list[str]] = {}
    for name, content in fields:
        found.setdefault(name, []).append(content)
    for name in ("num", "number"):
        if len(texts := found.get(name, [])) > 1:
            problem = f"a topic has the numbers {' and '.join(texts)[:60]}"
            raise InputError(problem, fix="close each topic", path=where, line=line)
    ours = {name: _TREC_NAMES.get(name, name) for name in found}
    return {name if ours[name] in found else ours[name]: "\n".join(texts) for name, texts in found.items()}


def _xml(text: str, where: str, records: TopicRecords) -> None:
    """Read ``<topic number="1"><query>...``: every attribute and child element is a field."""
    if _ENTITIES.search(text):
        raise InputError("XML entities are not read", fix="write the topics out", path=where)
    try:
        root = ET.fromstring(text)  # noqa: S314 - entities, the danger here, are refused above
    except ET.ParseError as error:
        line = error.position[0]
        raise InputError(f"broken XML ({error})", fix="correct it", path=where, line=line) from None
    for topic in root.iter():
        if str(topic.tag).lower() in {"topic", "top"}:
            fields = [(str(name).lower(), content.strip()) for name, content in topic.attrib.items()]
            fields += [(str(child.tag).lower(), " ".join("".join(child.itertext()).split())) for child in topic]
            _add(records, where, None, _merged(fields, where, None))


_READERS: dict[str, Callable[[str, str, TopicRecords], None]] = {
    "tsv": _tsv,
    "csv": _csv,
    "lines": _numbered,
    "trec": _trec,
    "xml": _xml,
}


_ID = ("query_id", "qid", "_id", "id", "number", "num", "topic", "topic_id", "query_number")
_TEXT = ("text", "query", "title", "query_text", "querytext", "question", "utterance", "description", "desc")
_COLUMNS = 500  # records that all name other fields would take time and memory by the square of their number


class TopicRecords:
    """Gathers topics one by one; columns come from all of them, null where one lacks it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._made: dict[str, list[str | None]] = {"query_id": [], "text": []}
        self._count = 0

    def add(self, record: Mapping[str, Any], line: int | None) -> None:
        """Take one topic in."""
        try:
            found = named(record)
        except InputError as error:
            raise InputError(error.problem, fix=error.fix, path=self._where, line=line) from None
        for name in found:
            if name not in self._made:
                refuse_wide(len(self._made) + 1, self._where, line)
                self._made[name] = [None] * self._count
        for name, column in self._made.items():
            column.append(found.get(name))
        self._count += 1

    def table(self) -> Table:
        """Give all topics as a table."""
        return pa.table({name: pa.array(column, pa.string()) for name, column in self._made.items()})


def record_of(found: Any, query_id: Any = None) -> dict[str, Any]:
    """Take a text or a dict of fields as one record.

    >>> record_of("income tax", 1)
    {'query_id': 1, 'text': 'income tax'}
    """
    known = {} if query_id is None else {"query_id": query_id}
    if isinstance(found, str) and known:
        return {**known, "text": found}
    if isinstance(found, Mapping):
        return {**known, **cast("Mapping[str, Any]", found)}
    raise InputError(
        f"{found!r:.40} is not a topic", fix='give {"1": "the text"}, or {"query_id": "1", "text": "the text"}'
    )


def named(record: Mapping[str, Any]) -> dict[str, str]:
    """Name the fields of a record ``query_id``, ``text``, and all others by lower-case names.

    >>> named({"_id": 7, "Query": "income tax", "Domain": "law", "metadata": {}})
    {'query_id': '7', 'text': 'income tax', 'domain': 'law'}
    """
    keys = {plain_name(key): key for key in record}
    if len(keys) < len(record):
        raise InputError(f"two fields have one name among {', '.join(record)[:80]}", fix="name each once")
    of_id = next((name for name in _ID if name in keys), None)
    of_text = next((name for name in _TEXT if name in keys and name != of_id), None)
    if of_id is None or of_text is None:
        raise InputError(
            f"no {'query_id' if of_id is None else 'text'} among the fields {', '.join(record)[:80]}",
            fix="name the fields query_id and text",
        )
    query_id = id_text(record[keys[of_id]], "query id")
    if not query_id.strip():
        raise InputError("the query id is empty", fix="give every topic an id")
    made = {"query_id": query_id, "text": " ".join(_as_text(record[keys[of_text]]).split())}
    for name, key in keys.items():
        if name not in {of_id, of_text} and name not in made and (text := _as_text(record[key])):
            made[name] = text
    return made


def refuse_wide(columns: int, where: str, line: int | None = None) -> None:
    """Refuse a table of too many columns."""
    if columns > _COLUMNS:
        fix = "keep those that matter; what differs from record to record is a value, not a name"
        raise InputError(f"there are more than {_COLUMNS} columns", fix=fix, path=where, line=line)


def plain_name(name: str) -> str:
    """Write a field's name in lower case with underscores.

    >>> plain_name("Query-ID ")
    'query_id'
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _as_text(value: Any) -> str:
    if value is None or value in ({}, []):
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
