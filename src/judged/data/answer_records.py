"""Read records of questions, answers, contexts, and references, as tools and scripts write them.

Columns are found by their names (`judged.data.column_names`) and by layouts of tools (`tool_layouts.toml`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from judged.data import files
from judged.data.column_names import canonical_names, reading_options
from judged.data.json_rows import json_kind, load_json
from judged.data.nested_rows import nested_rows
from judged.data.records import read_records
from judged.data.tool_layouts import find_layout
from judged.results.blocks import first_few
from judged.results.decimals import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from judged.data.records import Record

    Passage = tuple[Any, str | None]  # id and text; None: unknown

_ROLES = ("question", "answer", "contexts", "context_ids", "reference", "reference_contexts", "reference_ids")
_KEYS = ("query_id", "record_id", "run_id")
_LISTS = ("records", "rows", "data", "examples", "results", "items")  # fields of an object with all records
_TEXT_NAMES = ("text", "content", "page_content", "value", "chunk", "passage", "body")
_ID_NAMES = ("doc_id", "id", "id_", "_id", "node_id", "document_id", "chunk_id", "docid")
_ID = re.compile("[!-~]{1,200}")
_ADJACENT = re.compile(r"(?<=['\"])\s+(?=['\"])")  # elements of printed NumPy arrays have no commas


def read_objects(path: Path) -> list[Record]:
    """Read the records of a file with their lines. An object with an unknown list of records is a single record."""
    file, where = files.local(path), str(path)
    head = files.head(file).lstrip()
    if not head.startswith(b"{") or json_kind(head.decode(errors="replace"), where) == "jsonl":
        records = list(read_records(path))
        if head.startswith((b"{", b"[", b"PAR1", b"ARROW1")):
            return records
        return [
            (line, {name: cell or None for name, cell in row.items()}) for line, row in records
        ]  # of delimited text
    return [(None, record) for record in _records_of(load_json(file, where))]


def _records_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records in an object: of its columns, of a list in it, or the object itself."""
    values = list(data.values())
    if _has_roles(data) and all(isinstance(value, (list, dict)) for value in values):
        columns = [list(value.values()) if isinstance(value, dict) else value for value in values]  # of pandas
        if len({len(column) for column in columns}) == 1:
            return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]
    lists = [data[name] for name in _LISTS if isinstance(data.get(name), list)]
    has_records = len(lists) == 1 and lists[0] and all(isinstance(element, dict) for element in lists[0])
    return lists[0] if has_records and not find_layout(data, "answers") else [data]


def _has_roles(record: Mapping[str, Any]) -> bool:
    """Check if a record is about a single question, or a table about several."""
    return bool({"question", "query_id"} & set(canonical_names(record, "answers")))


def answer_rows(records: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Return a row of values by role for each answer, and notes.

    Contexts are pairs of an id and a text, references a list of texts, and scores numbers by the name of their column.

    >>> rows, _ = answer_rows([(1, {"q": "When?", "response": "At 7.", "ground_truth": "7", "toxicity": 0.1})])
    >>> rows[0][1]["answer"], rows[0][1]["reference"], rows[0][1]["scores"]
    ('At 7.', ['7'], {'toxicity': 0.1})
    """
    line, first = records[0]
    is_object = line is None and len(records) == 1 and not _has_roles(first)
    found = None if reading_options().columns else find_layout(first if is_object else [first], "answers")
    paths: Mapping[str, str] = found[0].paths if found else {"record": "[]"}
    used = {name for path in paths.values() for name in path.rpartition(".")[2].split("|")}
    rows = [(line, row) for line, record in records for row in nested_rows(record if is_object else [record], paths)]
    flat = [
        {name: value for name, value in _flat(row.pop("record", {})).items() if name not in used} for _, row in rows
    ]
    names = list(dict.fromkeys(name for record in flat for name in record))
    column_of: dict[str, str] = {}
    for name, role in zip(names, canonical_names(names, "answers"), strict=True):
        if role in {*_ROLES, *_KEYS} and role not in paths:
            column_of.setdefault(role, name)
    if "question" in column_of:
        column_of.pop("record_id", None)
    others = [name for name in names if name not in column_of.values() and name.strip()]
    numeric = [name for name in others if _is_score(name, [record.get(name) for record in flat])]
    for (_, row), record in zip(rows, flat, strict=True):
        row.update({role: record.get(name) for role, name in column_of.items()})
        prefix = f"{row['metric']}." if "metric" in row else ""
        row["roles"] = {*column_of, *paths}
        row["scores"] = {prefix + name: float(record[name]) for name in numeric if record.get(name) not in (None, "")}
        for role, convert in _CONVERSIONS.items():
            row[role] = convert(row.get(role))
    # An empty text is an abstention, as in predictions for SQuAD 2.0. Then, other answers are no abstentions.
    marks_abstentions = "question" not in rows[0][1]["roles"] or any(row["answer"] == "" for _, row in rows)
    for _, row in rows:
        row["abstained"] = row["answer"] == "" if marks_abstentions and row["answer"] is not None else None
    unused = [name for name in others if name not in numeric and name not in (found[0].known if found else ())]
    for texts, ids in (("contexts", "context_ids"), ("reference_contexts", "reference_ids")):
        if _are_ids([passage for _, row in rows for passage in row[texts]]):
            for _, row in rows:
                row[ids], row[texts] = row[ids] or [text for _, text in row[texts]], []
    if any(text for _, row in rows for _, text in row["reference_contexts"]) and "reference_contexts" in column_of:
        unused.append(column_of["reference_contexts"])
    notes = [f"read as {found[0].tool}: {found[0].name}", found[0].note] if found else []
    notes.append(f"columns that are not used: {first_few(unused, 12)}" if unused else "")
    return rows, [note for note in notes if note]


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record and of the objects in it, as in ``outputs.answer``, and its scores by name."""
    fields: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            fields |= {f"{name}.{key}": inner for key, inner in cast("dict[str, Any]", value).items()}
        elif isinstance(value, list) and value and all(_is_metric(element) for element in cast("list[Any]", value)):
            fields |= {f"{element['name']}": element["score"] for element in cast("list[Any]", value)}
        else:
            fields[name] = value
    return fields


def _is_metric(value: Any) -> bool:
    return isinstance(value, dict) and {"name", "score"} <= value.keys() and not value.keys() & {*_TEXT_NAMES, "node"}


def _is_score(name: str, values: Sequence[Any]) -> bool:
    """Check if a column has a number in each row with a value, and is not an index."""
    known = [value for value in values if value not in (None, "")]
    is_index = name.lower().endswith(("id", "index", "unnamed: 0"))
    return bool(known) and not is_index and all(is_number(str(value)) or isinstance(value, bool) for value in known)


def _are_ids(passages: Sequence[Passage]) -> bool:
    """Check if elements of lists are ids in place of texts: printable ASCII without blanks."""
    return bool(passages) and all(doc_id is None and text and _ID.fullmatch(text) for doc_id, text in passages)


def _decoded(value: Any, starts: tuple[str, ...] = ("[", '"')) -> Any:
    """Return the value of a cell with JSON, or with a printed list of Python or NumPy.

    >>> _decoded('["a", "b"]'), _decoded("['a', 'b']"), _decoded("['a' 'b']"), _decoded("[a]")
    (['a', 'b'], ['a', 'b'], ['a', 'b'], '[a]')
    """
    if not isinstance(value, str) or not value.lstrip().startswith(starts):
        return value
    for parse, text in ((json.loads, value), (ast.literal_eval, _ADJACENT.sub(", ", value.strip()))):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return value


def _answer(value: Any) -> Any:
    """Return an answer: the text in quotes, in an object, or in a list with one element."""
    value = _decoded(value, ('"',))
    if isinstance(value, (list, dict)) and len(texts := _texts(value)) == 1:
        return texts[0]
    return str(value) if isinstance(value, (int, float)) else value


def _texts(value: Any) -> list[str]:
    """Return one or several texts, in a list or in objects.

    >>> _texts("['7', 'seven']"), _texts([{"text": "7"}]), _texts(None)
    (['7', 'seven'], ['7'], [])
    """
    value = _decoded(value)
    if isinstance(value, list):
        return [text for element in cast("list[Any]", value) for text in _texts(element)]
    if isinstance(value, dict):
        return _texts(_first(cast("dict[str, Any]", value), _TEXT_NAMES))
    return [] if value is None or value == "" else [str(value)]


def _passages(value: Any) -> list[Passage]:
    """Return the ids and texts of a context.

    >>> _passages([{"id": "d7", "page_content": "Cats sleep."}, "Dogs bark."]), _passages("One text.")
    ([('d7', 'Cats sleep.'), (None, 'Dogs bark.')], [(None, 'One text.')])
    """
    value = _decoded(value)
    elements = cast("list[Any]", value) if isinstance(value, list) else [] if value in (None, "") else [value]
    return [_passage(element) for element in elements]


def _passage(element: Any) -> Passage:
    if isinstance(element, list) and element and isinstance(element[0], dict):  # pyright: ignore[reportUnknownArgumentType]
        element = element[0]  # of a document and its score
    if not isinstance(element, dict):
        return None, " ".join(_texts(element))
    fields = cast("dict[str, Any]", element)
    inner = next((fields[name] for name in ("node", "document") if isinstance(fields.get(name), dict)), fields)
    metadata = next((inner[name] for name in ("metadata", "meta") if isinstance(inner.get(name), dict)), {})
    doc_id = _first(inner, _ID_NAMES)
    return doc_id if doc_id is not None else _first(metadata, _ID_NAMES), _first(inner, _TEXT_NAMES)


def _first(fields: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def _ids(value: Any) -> list[Any]:
    """Return ids in a list, in a cell with a list, or with separators."""
    value = _decoded(value)
    if isinstance(value, str):
        return [part.strip() for part in re.split(r"[|;,]", value) if part.strip()]
    elements = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
    return [_passage(element)[0] if isinstance(element, dict) else element for element in elements]


_CONVERSIONS = {
    "question": lambda value: _decoded(value, ('"',)),
    "answer": _answer,
    "contexts": _passages,
    "reference_contexts": _passages,
    "reference": _texts,
    "context_ids": _ids,
    "reference_ids": _ids,
}
