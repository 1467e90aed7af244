"""Read topics from delimited text, JSON, tagged text of TREC, XML, and numbered lines."""

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
from judged.data.column_names import known_names
from judged.data.index import id_text
from judged.data.json_rows import json_kind, json_lines, load_json
from judged.errors import InputError
from judged.results.decimals import counted
from judged.results.escaping import csv_text
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from judged.results.types import Table


_MAX_LINE_LENGTH = 1 << 20  # characters
_NUMBERED = re.compile(r"\s*([^\s:,]+)(?:\s*[:,]\s*|\s+)(\S.*)")
_TOP = re.compile(r"</?top>", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(\w+)(?:\s[^<>]*)?>")
_FIELD_TAGS = frozenset({"num", "dom", "title", "desc", "smry", "narr", "con", "fac", "def", "query", "question"})
_LABELS = re.compile(r"\s*(Number|Topic|Title|Description|Narrative)\s*:\s*", re.IGNORECASE)
_TREC_NAMES = {"num": "query_id", "title": "text", "desc": "description", "narr": "narrative"}
_ENTITIES = re.compile(r"<!ENTITY", re.IGNORECASE)

FORMATS = ("tsv", "csv", "json", "jsonl", "trec", "xml", "lines")
"""Valid values of `format` for topics."""


def read_topic_records(path: Path, where: str, format: str | None = None) -> TopicRecords:
    """Read the topics of a file; without `format` it is detected from the content."""
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown format {format!r} of topics", fix=use_one_of(FORMATS), path=where)
    records = TopicRecords(where)
    text = "" if format in {"json", "jsonl"} else files.text(path, where)  # the JSON readers open the file themselves
    detected = format or _detect_format(text, where)
    if detected in {"json", "jsonl"}:
        (_jsonl if detected == "jsonl" else _json)(path, where, records)
    else:
        _check_line_lengths(text, where)
        _READERS[detected](text, where, records)
    return records


def _check_line_lengths(text: str, where: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _MAX_LINE_LENGTH:
            problem = f"this line has more than {_MAX_LINE_LENGTH:,} characters"
            raise InputError(problem, fix="check that this is the right file", path=where, line=number)


def _detect_format(text: str, where: str) -> str:
    text = text.lstrip()
    first_line = text.split("\n", 1)[0]
    if text.startswith(("{", "[")):
        return json_kind(text, where)
    if re.match(r"<top>", text, re.IGNORECASE):
        return "trec"
    if text.startswith("<"):
        return "xml"
    if "\t" in first_line:
        return "tsv"
    return "csv" if _is_header([field.strip(' "') for field in first_line.split(",")]) else "lines"


def _is_header(fields: list[str]) -> bool:
    try:
        normalize_record(dict.fromkeys(map(normalize_name, fields), "x"))
    except InputError:
        return False
    return True


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of lines that are neither blank nor comments."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not (line.startswith("#") and "\t" not in line):
            yield number, line


def _tsv(text: str, where: str, records: TopicRecords) -> None:
    _add_rows(((number, [cell.strip() for cell in line.split("\t")]) for number, line in _lines(text)), where, records)


def _csv(text: str, where: str, records: TopicRecords) -> None:
    reader = csv.reader(re.split(r"(?<=\n)", text), skipinitialspace=True)
    try:
        rows = [(reader.line_num, list(map(csv_text, row))) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"invalid CSV ({error})", fix="correct the CSV", path=where, line=reader.line_num) from None
    _add_rows(iter(rows), where, records)


def _add_rows(rows: Iterator[tuple[int, list[str]]], where: str, records: TopicRecords) -> None:
    names = ["query_id", "text"]
    for index, (number, row) in enumerate(rows):
        if index == 0 and _is_header(row):
            names = row
            if len({*map(normalize_name, row)}) < len(row):
                problem = f"two columns have the same name: {', '.join(row)[:80]}"
                raise InputError(problem, fix="use a different name for each column", path=where, line=number)
            continue
        if len(row) != len(names):
            raise InputError(
                f"{counted(len(row), 'field')}, expected {len(names)} ({', '.join(names)[:60]})",
                fix="name the columns in a header line, or write one topic id and one text per line",
                path=where,
                line=number,
            )
        records.add(dict(zip(names, row, strict=True)), number)


def _numbered_lines(text: str, where: str, records: TopicRecords) -> None:
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
    data = load_json(path, where)
    if isinstance(data, dict) and isinstance(data.get("querySetQueries"), list):  # a query set of OpenSearch
        for query in cast("list[Any]", data["querySetQueries"]):
            query_text = query.get("queryText") if isinstance(query, dict) else None
            records.add(query, None, query_text)
    elif isinstance(data, dict):
        for query_id, topic in cast("dict[str, Any]", data).items():
            records.add(topic, None, query_id)
    elif isinstance(data, list):
        for topic in cast("list[Any]", data):
            records.add(topic, None)
    else:
        raise InputError("this JSON contains no topics", fix='write {"1": "the text"}', path=where)


def _jsonl(path: Path, where: str, records: TopicRecords) -> None:
    for number, topic in json_lines(path, where):
        records.add(topic, number)


def _find_topics(text: str, where: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the matches of the start and end tags of each topic."""
    start: re.Match[str] | None = None
    for tag in _TOP.finditer(text):
        if not tag[0].startswith("</"):
            if start is not None:
                break
            start = tag
        elif start is not None:
            yield start, tag
            start = None
    if start is not None:
        raise InputError("a <top> without </top>", fix="write </top> after each topic", path=where)


def _trec(text: str, where: str, records: TopicRecords) -> None:
    """Read ``<top> <num> Number: 303 <title> ...``: fields without end tags, which end at the next tag."""
    line, line_offset = 1, 0
    for start, end in _find_topics(text, where):
        line, line_offset = line + text.count("\n", line_offset, start.start()), start.start()
        fields: list[tuple[str, str]] = []
        for tag, content in _topic_fields(text[start.end() : end.start()]):
            label = _LABELS.match(content)
            fields.append((tag, " ".join(content[label.end() if label else 0 :].split())))
        records.add(_merge_fields(fields, where, line), line)


def _topic_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a topic; a ``<`` in a sentence, or ``List<String>``, belongs to the text."""
    # A tag starts a field if it is a known tag, the first text of its line, or follows an end tag.
    field, field_start, last_end_tag = "", 0, 0
    for tag in _TAG.finditer(text):
        name, text_before = tag[2].lower(), text[last_end_tag : tag.start()]
        if tag[1]:
            last_end_tag = tag.end()
        elif name in _FIELD_TAGS or not text_before.rpartition("\n")[2].strip():
            if field:
                yield field, _remove_end_tags(text[field_start : tag.start()], field)
            field, field_start = name, tag.end()
    if field:
        yield field, _remove_end_tags(text[field_start:], field)


def _remove_end_tags(text: str, tag: str) -> str:
    return re.sub(rf"</{tag}\s*>", " ", text, flags=re.IGNORECASE)


def _merge_fields(fields: Iterable[tuple[str, str]], where: str, line: int | None) -> dict[str, str]:
    """Merge fields to a record; the contents of fields with the same name are joined."""
    contents: dict[str, list[str]] = {}
    for name, content in fields:
        contents.setdefault(name, []).append(content)
    for name in ("num", "number"):
        if len(texts := contents.get(name, [])) > 1:
            problem = f"one topic has several numbers: {' and '.join(texts)[:60]}"
            raise InputError(problem, fix="write </top> after each topic", path=where, line=line)
    renamed = {name: _TREC_NAMES.get(name, name) for name in contents}
    return {name if renamed[name] in contents else renamed[name]: "\n".join(texts) for name, texts in contents.items()}


def _xml(text: str, where: str, records: TopicRecords) -> None:
    """Read ``<topic number="1"><query>...``; all attributes and child elements are fields."""
    if _ENTITIES.search(text):
        raise InputError(
            "XML entities are not supported",
            fix="replace each entity with the text that the entity stands for",
            path=where,
        )
    try:
        root = ET.fromstring(text)  # noqa: S314 - safe, as entities are rejected above
    except ET.ParseError as error:
        line = error.position[0]
        raise InputError(f"invalid XML ({error})", fix="correct the XML", path=where, line=line) from None
    for topic in root.iter():
        if str(topic.tag).lower() in {"topic", "top"}:
            fields = [(str(name).lower(), content.strip()) for name, content in topic.attrib.items()]
            fields += [(str(child.tag).lower(), " ".join("".join(child.itertext()).split())) for child in topic]
            records.add(_merge_fields(fields, where, None), None)


_READERS: dict[str, Callable[[str, str, TopicRecords], None]] = {
    "tsv": _tsv,
    "csv": _csv,
    "lines": _numbered_lines,
    "trec": _trec,
    "xml": _xml,
}


_ID_NAMES, _TEXT_NAMES = known_names("topics").values()
_MAX_COLUMNS = 500  # time and memory are quadratic if each record has other fields


class TopicRecords:
    """Builder of a table of topics; a topic that lacks a column of other topics has a null."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._columns: dict[str, list[str | None]] = {"query_id": [], "text": []}
        self._count = 0

    def add(self, topic: Any, line: int | None, query_id: Any = None) -> None:
        """Add a topic: its fields, or its text with an id."""
        try:
            fields = normalize_record(_to_record(topic, query_id))
        except InputError as error:
            raise InputError(error.problem, fix=error.fix, path=self._where, line=line) from None
        for name in fields:
            if name not in self._columns:
                check_column_count(len(self._columns) + 1, self._where, line)
                self._columns[name] = [None] * self._count
        for name, column in self._columns.items():
            column.append(fields.get(name))
        self._count += 1

    def table(self) -> Table:
        """Return the topics as an Arrow table."""
        return pa.table({name: pa.array(column, pa.string()) for name, column in self._columns.items()})


def _to_record(topic: Any, query_id: Any = None) -> dict[str, Any]:
    """Convert a text or a dict of fields to a record.

    >>> _to_record("income tax", 1)
    {'query_id': 1, 'text': 'income tax'}
    """
    id_field = {} if query_id is None else {"query_id": query_id}
    if isinstance(topic, str) and id_field:
        return {**id_field, "text": topic}
    if isinstance(topic, Mapping):
        return {**id_field, **cast("Mapping[str, Any]", topic)}
    raise InputError(
        f"{topic!r:.40} is not a topic", fix='use {"1": "the text"}, or {"query_id": "1", "text": "the text"}'
    )


def normalize_record(record: Mapping[str, Any]) -> dict[str, str]:
    """Rename the fields of a record to ``query_id``, ``text``, and lower-case names, and convert values to text.

    >>> normalize_record({"_id": 7, "Query": "income tax", "Domain": "law", "metadata": {}})
    {'query_id': '7', 'text': 'income tax', 'domain': 'law'}
    """
    keys = {normalize_name(key): key for key in record}
    if len(keys) < len(record):
        problem = f"two fields have the same name: {', '.join(record)[:80]}"
        raise InputError(problem, fix="use a different name for each field")
    id_name = next((name for name in _ID_NAMES if name in keys), None)
    text_name = next((name for name in _TEXT_NAMES if name in keys and name != id_name), None)
    if id_name is None or text_name is None:
        raise InputError(
            f"no {'query_id' if id_name is None else 'text'} among the fields {', '.join(record)[:80]}",
            fix="name the fields query_id and text",
        )
    query_id = id_text(record[keys[id_name]], "query id")
    if not query_id.strip():
        raise InputError("the query id is empty", fix="add an id to all topics")
    fields = {"query_id": query_id, "text": " ".join(_to_text(record[keys[text_name]]).split())}
    for name, key in keys.items():
        if name not in {id_name, text_name} and name not in fields and (text := _to_text(record[key])):
            fields[name] = text
    return fields


def check_column_count(columns: int, where: str, line: int | None = None) -> None:
    """Raise InputError if a table has too many columns."""
    if columns > _MAX_COLUMNS:
        fix = "remove unused columns; write data that varies between records as values, not as names"
        raise InputError(f"there are more than {_MAX_COLUMNS} columns", fix=fix, path=where, line=line)


def normalize_name(name: str) -> str:
    """Convert the name of a field to lower case with underscores.

    >>> normalize_name("Query-ID ")
    'query_id'
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _to_text(value: Any) -> str:
    if value is None or value in ({}, []):
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
