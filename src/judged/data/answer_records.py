"""Read records of questions, answers, contexts, and references, as tools and scripts write them.

Columns are found by their names (`judged.data.column_names`) and by layouts of tools (`tool_layouts.toml`).
"""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any

from judged.data import files
from judged.data.column_names import canonical_names, reading_options
from judged.data.json_rows import json_kind, load_json
from judged.data.nested_rows import nested_rows
from judged.data.records import read_records
from judged.data.tool_layouts import find_layout
from judged.results.blocks import first_few
from judged.results.decimals import is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from judged.data.records import Record

    Passage = tuple[Any, str | None]  # id and text; None: unknown

_TEXT_NAMES = ("text", "content", "page_content", "value", "chunk", "passage", "body")
_ID_NAMES = ("doc_id", "id", "id_", "_id", "node_id", "document_id", "chunk_id", "docid")
_ID = re.compile("[!-~]{1,200}")
_ADJACENT = re.compile(r"(?<=['\"])\s+(?=['\"])")  # elements of printed NumPy arrays have no commas
_INDEX_ENDS = ("id", "index", "unnamed: 0")  # of names of numbers that are not scores


def read_objects(path: Path) -> list[Record]:
    """Read the records of a file with their lines. An object that is not a table is a single record."""
    file, where = files.local(path), str(path)
    head = files.head(file).lstrip()
    if head.startswith(b"{") and json_kind(head.decode(errors="replace"), where) == "json":
        return [(None, record) for record in _rows_of_columns(load_json(file, where))]
    records = list(read_records(path))
    if head.startswith((b"{", b"[", b"PAR1", b"ARROW1")):
        return records
    return [(line, {name: cell or None for name, cell in row.items()}) for line, row in records]  # delimited


def _rows_of_columns(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert an object of columns of equal length, as pandas writes it, to records."""
    columns: list[Any] = [list(value.values()) if isinstance(value, dict) else value for value in data.values()]
    is_table = _has_roles(data) and all(isinstance(column, list) for column in columns)
    if not is_table or len({len(column) for column in columns}) > 1:
        return [data]
    return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]


def _has_roles(record: Mapping[str, Any]) -> bool:
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
    rows = [(line, row) for line, record in records for row in nested_rows(record if is_object else [record], paths)]
    used = {name for path in paths.values() for name in path.rpartition(".")[2].split("|")}
    fields = [_flat(row.pop("record", {}), used) for _, row in rows]
    names = list(dict.fromkeys(name for record in fields for name in record))
    column_of: dict[str, str] = {}
    for name, role in zip(names, canonical_names(names, "answers"), strict=True):
        if role in _CONVERSIONS and role not in paths:
            column_of.setdefault(role, name)
    if "question" in column_of:
        column_of.pop("record_id", None)
    for (_, row), record in zip(rows, fields, strict=True):
        row.update({role: record.get(name) for role, name in column_of.items()})
        row.update({role: convert(row[role]) for role, convert in _CONVERSIONS.items() if role in row})
    known = found[0].known if found else ()
    others = [name for name in names if name not in {*column_of.values(), *known} and name.strip()]
    if not any(row.get("reference_contexts") for _, row in rows):  # texts, which have no ids
        others += [name for role, name in column_of.items() if role == "reference_contexts"]
    _mark_abstentions(rows)
    unused = _add_scores(rows, fields, others)
    notes = [f"read as {found[0].tool}: {found[0].name}", found[0].note] if found else []
    return rows, [*filter(None, notes), *[f"columns that are not used: {first_few(unused, 12)}"] * bool(unused)]


def _mark_abstentions(rows: list[Record]) -> None:
    """Read an empty text as an abstention, as in predictions for SQuAD 2.0. Then, other answers are no abstentions."""
    has_marks = any(row.get("answer") == "" or "question" not in row for _, row in rows)
    for _, row in rows:
        row["abstained"] = row["answer"] == "" if has_marks and row.get("answer") is not None else None


def _flat(record: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Return the other fields of a record, those of objects in it, as in ``outputs.answer``, and scores by name."""
    fields: dict[str, Any] = {}
    for name, value in record.items():
        elements: list[Any] = value if isinstance(value, list) else []
        if isinstance(value, dict):
            fields |= {f"{name}.{key}": inner for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
        elif elements and all(isinstance(part, dict) and {"name", "score"} <= part.keys() for part in elements):
            fields |= {str(part["name"]): part["score"] for part in elements}
        elif name not in used:
            fields[name] = value
    return fields


def _add_scores(rows: list[Record], fields: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """Add the numbers in columns of these names to the rows; return the other names."""
    values: dict[str, list[Any]] = {name: [record.get(name) for record in fields] for name in names}
    numeric = [name for name in names if not name.lower().endswith(_INDEX_ENDS) and _are_numbers(values[name])]
    for i, (_, row) in enumerate(rows):
        prefix = f"{row['metric']}." if "metric" in row else ""
        row["scores"] = {prefix + name: float(values[name][i]) for name in numeric if values[name][i] is not None}
    return [name for name in names if name not in numeric]


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, bool) or is_number(str(value)) for value in known)


def _decoded(value: Any, starts: tuple[str, ...] = ("[", '"')) -> Any:
    """Return the value of a cell with JSON, or with a printed list of Python or NumPy.

    >>> _decoded('["a", "b"]'), _decoded("['a', 'b']"), _decoded("['a' 'b']"), _decoded("[a]")
    (['a', 'b'], ['a', 'b'], ['a', 'b'], '[a]')
    """
    if isinstance(value, str) and value.lstrip().startswith(starts):
        for parse, text in ((json.loads, value), (ast.literal_eval, _ADJACENT.sub(", ", value.strip()))):
            try:
                return parse(text)
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    return value


def _text(value: Any) -> Any:
    """Return a text: in quotes, in an object, or in a list with one element; other values are unchanged."""
    value = _decoded(value, ('"',))
    texts = _texts(value) if isinstance(value, (list, dict, int, float)) else []
    return texts[0] if len(texts) == 1 else value


def _texts(value: Any) -> list[str]:
    """Return one or several texts, in a list or in objects.

    >>> _texts("['7', 'seven']"), _texts([{"text": "7"}]), _texts(None)
    (['7', 'seven'], ['7'], [])
    """
    value = _decoded(value)
    if isinstance(value, list):
        return [text for element in value for text in _texts(element)]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return _texts(_first(value, _TEXT_NAMES))  # pyright: ignore[reportUnknownArgumentType]
    return [] if value is None or value == "" else [str(value)]


def _passages(value: Any) -> list[Passage]:
    """Return the ids and texts of a context. If all elements are single ASCII words, they are ids.

    >>> _passages([{"id": "d7", "page_content": "Cats sleep."}, "Dogs bark."]), _passages(["d7"])
    ([('d7', 'Cats sleep.'), (None, 'Dogs bark.')], [('d7', None)])
    """
    value = _decoded(value)
    elements: list[Any] = value if isinstance(value, list) else [] if value is None else [value]
    are_ids = all(isinstance(element, (int, str)) and _ID.fullmatch(str(element)) for element in elements)
    return [(element, None) if are_ids else _passage(element) for element in elements]


def _passage(element: Any) -> Passage:
    if not isinstance(element, dict):
        return None, " ".join(_texts(element))
    inner: Any = _first(element, ("node", "document"), element)  # pyright: ignore[reportUnknownArgumentType]
    fields: dict[str, Any] = inner if isinstance(inner, dict) else element
    metadata: Any = _first(fields, ("metadata", "meta"), {})
    return _first({**metadata, **fields}, _ID_NAMES), _first(fields, _TEXT_NAMES)


def _first(fields: Mapping[str, Any], names: Sequence[str], default: Any = None) -> Any:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), default)


def _ids(value: Any) -> list[Any]:
    """Return ids in a list, in objects, or in a text with separators; texts have none."""
    is_text = isinstance(value, str) and not value.startswith("[")
    passages = _passages([part.strip() for part in re.split(r"[|;,]", value)] if is_text else value)
    return [doc for doc, _ in passages if doc is not None]


_CONVERSIONS = {
    "question": _text,
    "answer": _text,
    "reference": _texts,
    "contexts": _passages,
    **dict.fromkeys(("context_ids", "reference_ids", "reference_contexts"), _ids),
    **dict.fromkeys(("query_id", "record_id", "run_id"), _decoded),
}
