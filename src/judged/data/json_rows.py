"""Read qrels and runs from JSON and JSON Lines: an object of objects, or records."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa

from judged.data import files
from judged.data.column_names import canonical_names, check_name_clash, missing_columns, warn_unused
from judged.data.index import format_value, id_text
from judged.data.layout import MAX_EXACT_INTEGER
from judged.data.objects import VALUE_COLUMNS, with_scores
from judged.errors import InputError
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.data.column_names import Kind
    from judged.results.types import Table


_TYPE_NAMES: dict[Any, str] = {
    str: "a text", int: "an integer", float: "a number", bool: "true or false", list: "a list", dict: "an object",
    type(None): "null",
}  # fmt: skip
_MAX_EXACT_JSON_INTEGER = 2**53  # JSON numbers are float64 in many programs


def check_shape(value: Any, shape: Any, name: str) -> None:
    """Check the types of a JSON value; raise ValueError that names the first part with a wrong type.

    A shape is a type, a tuple of types, ``[shape]`` for a list, ``{str: shape}`` for an object whose values have the
    same shape, or ``{"key": shape}``. A key that ends with a question mark may be missing or null.

    >>> check_shape({"id": 7, "rank": "x"}, {"id": (str, int), "rank?": float}, "document")
    Traceback (most recent call last):
    ...
    ValueError: rank of document must be a number, got 'x'
    """
    if isinstance(shape, list):
        check_shape(value, list, name)
        for number, element in enumerate(value, 1):
            check_shape(element, shape[0], f"element {number} of {name}")  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(shape, dict):
        check_shape(value, dict, name)
        shapes: dict[str, Any] = dict.fromkeys(value, shape[str]) if str in shape else shape
        for shape_key, value_shape in shapes.items():
            key = shape_key if shape_key in value else shape_key.removesuffix("?")
            if key == shape_key or value.get(key) is not None:
                check_shape(value.get(key), value_shape, f"{key} of {name}")
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        if not any(_is_instance(value, kind) for kind in kinds):
            expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
            raise ValueError(f"{name} must be {expected}, got {format_value(value)}")


def _is_instance(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind not in {int, float}:
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, int) and abs(value) <= _MAX_EXACT_JSON_INTEGER
    return isinstance(value, (int, float)) and abs(value) <= 1e300 and isfinite(value)


COLUMN_TYPES = {"relevance": pa.float64(), "score": pa.float64(), "distance": pa.float64(), "rank": pa.int64()}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # escape of a surrogate, paired or not


@dataclass(frozen=True)
class _RecordLocation:
    """Location of a record for error messages: a line of JSONL, or the number of a record in a list."""

    where: str
    line: int | None = None
    record: int | None = None

    def error(self, problem: str, fix: str, rule: str = "") -> InputError:
        prefix = f"record {self.record}: " if self.line is None and self.record else ""
        return InputError(prefix + problem, fix=fix, path=self.where, line=self.line, rule=rule)


def read_json(path: Path, kind: Kind, where: str) -> Table:
    """Read ``{query_id: {doc_id: number}}`` or a list of records."""
    data = load_json(path, where)
    if isinstance(data, dict) and str(cast("dict[str, Any]", data).get("schema")).startswith("judged."):
        raise saved_result_error(where)
    if isinstance(data, dict) and _is_mteb_result(cast("dict[str, Any]", data)):
        raise means_error("MTEB", "mteb.evaluate(..., prediction_folder=FOLDER)", where)
    if isinstance(data, dict):
        return _dict_table(cast("dict[str, Any]", data), kind, where)
    if isinstance(data, list):
        records = [
            (_RecordLocation(where, None, number), record) for number, record in enumerate(cast("list[Any]", data), 1)
        ]
        return _records_table(records, kind, where)
    raise InputError(
        "this JSON must be an object of objects or a list of records",
        fix=f'write {{"query": {{"doc": {VALUE_COLUMNS[kind]}}}}}, or [{{"query_id": ..., "doc_id": ...}}]',
        path=where,
    )


def saved_result_error(where: str) -> InputError:
    """Return the error for a file with results of judged in place of qrels or a run."""
    return InputError(
        "this is a saved result of judged, neither qrels nor a run",
        fix="use the qrels and runs that the result was computed from; scores that were saved as Parquet"
        " ('judged evaluate ... -o scores.parquet') are read with --scores FILE or Scores.load",
        path=where,
        rule="saved-result",
    )


def _is_mteb_result(data: dict[str, Any]) -> bool:
    splits = data.get("scores")
    scores = cast("dict[str, Any]", splits).values() if isinstance(splits, dict) else ()
    return "mteb_version" in data or any(isinstance(score, list) for score in scores)


def means_error(tool: str, fix: str, where: str) -> InputError:
    """Return the error for a file with means over topics in place of a run."""
    return InputError(
        f"these are results of {tool}: means without the scores of each topic, which cannot be tested",
        fix=f"save the predictions with {fix}, and use them as the run",
        path=where,
        rule="means-only",
    )


def read_jsonl(path: Path, kind: Kind, where: str) -> Table:
    """Read qrels or a run from a file with one record on each line."""
    records = ((_RecordLocation(where, line, line), record) for line, record in json_lines(path, where))
    return _records_table(records, kind, where)


def json_kind(text: str, where: str) -> Literal["json", "jsonl"]:
    """Distinguish JSON from JSON Lines by the name of the file and the first lines."""
    first_line, _, following = text.lstrip().partition("\n")
    if {".jsonl", ".ndjson"} & set(Path(where).suffixes):
        return "jsonl"
    try:
        is_record = isinstance(json.loads(first_line), dict)
    except (ValueError, RecursionError):
        is_record = False
    return "jsonl" if is_record and following.strip() else "json"


def load_json(path: Path, where: str) -> Any:
    """Parse a JSON file as `parse_json` does."""
    with files.opened(path) as file:
        data = file.read()
    return parse_json(data.removeprefix(files.BOM), where)


def json_lines(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object on each line of a JSON Lines file with its line number."""
    number = 0
    for block in files.blocks(path):
        for raw in block.split(b"\n")[: -1 if block.endswith(b"\n") else None]:
            number += 1
            if raw.strip():
                record = parse_json(raw, where, number)
                if not isinstance(record, dict):
                    raise _RecordLocation(where, number).error(
                        "this line is not a JSON object", 'write {"query_id": ...}'
                    )
                yield number, cast("dict[str, Any]", record)


def parse_json(data: bytes, where: str, line: int | None = None) -> Any:
    """Parse JSON; raise InputError for duplicate keys in an object and for numbers out of the range of float64."""
    location = _RecordLocation(where, line)
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=unique_keys, parse_float=_parse_float, parse_constant=_parse_constant
        )
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise location.error("a text has an unpaired surrogate (invalid Unicode)", "correct the text") from None
    except UnicodeDecodeError as error:
        location = _RecordLocation(location.where, location.line or data[: error.start].count(b"\n") + 1)
        raise location.error("this file is not UTF-8", "save the file as UTF-8", "not-utf8") from None
    except json.JSONDecodeError as error:
        fix = (
            "correct the JSON" if location.line else "correct the JSON; the format with one record per line is 'jsonl'"
        )
        if location.line and (error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip())):
            fix = "export the file again, as this line is not complete, or remove the line"
        location = _RecordLocation(location.where, location.line or error.lineno)
        raise location.error(f"invalid JSON ({error.msg}, column {error.colno})", fix, "broken-json") from None
    except _InvalidValueError as error:
        raise location.error(str(error), "correct the value", error.rule) from None
    except RecursionError:
        raise location.error("brackets are nested too deeply", "close the brackets") from None
    except ValueError:
        raise location.error("an integer has more than 4,300 digits", "write a smaller number") from None
    return value


class _InvalidValueError(ValueError):
    """Valid JSON that is not allowed in qrels and runs."""

    def __init__(self, problem: str, rule: str = "") -> None:  # `rule` has a default so that pickling works
        super().__init__(problem)
        self.rule = rule


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build the dict of a JSON object; raise an error for duplicate keys (`object_pairs_hook` of `json.loads`)."""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise _InvalidValueError(f"the key {duplicate!r} appears twice in one object", "duplicate-pair")
    return unique


def _parse_float(text: str) -> float:
    number = float(text)
    if number == 0 or math.isinf(number):
        try:
            return read_number(text)
        except ValueError as error:
            raise _InvalidValueError(f"the number {text[:40]} {error}", "bad-score") from None
    return number


def _parse_constant(name: str) -> float:
    if name == "NaN":
        raise _InvalidValueError("a number is NaN", "nan-score")
    return float(name)


_NESTED = " with their lists: --columns query_id=results.query,doc_id=results.hits.id"


def _dict_table(data: dict[str, Any], kind: Kind, where: str) -> Table:
    columns: dict[str, list[Any]] = {"query_id": [], "doc_id": [], VALUE_COLUMNS[kind]: []}
    location = _RecordLocation(where)
    for query, docs in data.items():
        if not isinstance(docs, dict):
            raise location.error(
                f"the value of topic {query!r} must be a dict, got {json.dumps(docs)[:40]}",
                f'write {{"query": {{"doc": {VALUE_COLUMNS[kind]}}}}}, or name the fields,{_NESTED}',
            )
        for doc, value in cast("dict[str, Any]", docs).items():
            if not query or not doc:
                raise location.error("an id is empty", "fill in all ids of topics and documents")
            columns["query_id"].append(query)
            columns["doc_id"].append(doc)
            description = f"{VALUE_COLUMNS[kind]} of topic {query}, document {doc}"
            columns[VALUE_COLUMNS[kind]].append(_parse_number(value, VALUE_COLUMNS[kind], location, description))
    return _column_table(columns, where)


def _records_table(records: Iterable[tuple[_RecordLocation, Any]], kind: Kind, where: str) -> Table:
    columns: dict[str, list[Any]] = {}
    names: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    unused: dict[str, None] = {}
    for location, record in records:
        if not isinstance(record, dict):
            raise location.error(
                f"a record must be an object, got {json.dumps(record)[:40]}", 'write {"query_id": ...}'
            )
        if tuple(cast("dict[str, Any]", record)) != keys:
            keys = tuple(cast("dict[str, Any]", record))
            names = _find_columns(keys, kind, names, location)
            unused |= dict.fromkeys(key for key in keys if key not in names.values())
        for name, key in names.items():
            columns.setdefault(name, []).append(_parse_field(name, record[key], location))
    warn_unused(unused, where)
    table = _column_table(columns, where)
    return with_scores(table, kind, where) if columns else table


def _column_table(columns: dict[str, list[Any]], where: str) -> Table:
    try:
        return pa.table(
            {name: pa.array(column, COLUMN_TYPES.get(name, pa.string())) for name, column in columns.items()}
        )
    except UnicodeEncodeError:  # an escape such as \ud800
        problem = "an id has an unpaired surrogate (invalid Unicode)"
        raise InputError(problem, fix="correct the ids", path=where) from None


def _find_columns(
    keys: tuple[str, ...], kind: Kind, previous: dict[str, str], location: _RecordLocation
) -> dict[str, str]:
    """Return the key of each canonical column, which must be the columns of the previous records."""
    names = canonical_names(keys, kind)
    check_name_clash(names, keys, kind, location.where, location.line)
    key_by_name = {name: key for key, name in zip(keys, names, strict=True) if name}
    fix = f"write the fields query_id, doc_id, {VALUE_COLUMNS[kind]} in all records"
    if missing := missing_columns(key_by_name, kind):
        fix += f", or name other fields,{_NESTED}"
        raise location.error(f"no {' or '.join(sorted(missing))} among the fields {', '.join(keys)[:80]}", fix)
    if previous and set(key_by_name) != set(previous):
        differences = ", ".join(sorted(set(key_by_name) ^ set(previous)))
        raise location.error(f"this record has other fields than the previous records: {differences}", fix)
    return key_by_name


def _parse_field(name: str, value: Any, location: _RecordLocation) -> Any:
    if name in {"score", "relevance", "distance"}:
        return _parse_number(value, name, location)
    if name == "rank":
        number = _parse_number(value, name, location)
        if not (number.is_integer() and abs(number) <= MAX_EXACT_INTEGER):
            raise location.error(f"the rank {value!r} is not an integer", "write integers such as 1, 2, 3")
        return int(number)
    try:
        text = id_text(value, name)
    except InputError as error:
        raise location.error(error.problem, error.fix) from None
    if not text and name in {"query_id", "doc_id"}:
        raise location.error(f"the {name} is empty", "fill in the id")
    return text


def _parse_number(value: Any, name: str, location: _RecordLocation, description: str = "") -> float:
    if isinstance(value, (int, float)) and (name == "relevance" or not isinstance(value, bool)):
        try:
            return float(value)
        except OverflowError:
            problem = f"the {description or name} is too large for a 64-bit floating-point number"
            raise location.error(problem, "write a smaller number") from None
    problem = f"the {description or name} is {json.dumps(value)[:40]}, not a number"
    raise location.error(problem, "write a number", "bad-score")
