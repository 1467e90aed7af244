"""JSON and JSON Lines: a dict of dicts, or records."""

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
from judged.data.index import id_text, shown
from judged.data.layout import ONCE, WHOLE_TO, canonical, clash, missing
from judged.data.objects import VALUE, with_scores
from judged.errors import InputError
from judged.results.decimals import read_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.data.layout import Kind
    from judged.results.types import Table


_WORDS: dict[Any, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
    type(None): "null",
}  # fmt: skip
_LARGEST = 2**53  # of the whole numbers that any reader of JSON holds exactly


def check_shape(value: Any, shape: Any, name: str) -> None:
    """Raise a ValueError that names the first part of a value of JSON of another type than it should have.

    A shape is a type, a tuple of possible types, or a list of the shape of each element; an object is ``{str: shape}``,
    where all its values are alike, or has a shape for each key. A key with a question mark may be missing or null.

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
        parts: dict[str, Any] = dict.fromkeys(value, shape[str]) if str in shape else shape
        for key, part in parts.items():
            plain = key if key in value else key.removesuffix("?")
            if plain == key or value.get(plain) is not None:
                check_shape(value.get(plain), part, f"{plain} of {name}")
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        if not any(_is(value, kind) for kind in kinds):
            words = " or ".join(_WORDS[kind] for kind in kinds)
            raise ValueError(f"{name} must be {words}, got {shown(value)}")


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind not in {int, float}:
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, int) and abs(value) <= _LARGEST
    return isinstance(value, (int, float)) and abs(value) <= 1e300 and isfinite(value)


TYPES = {"relevance": pa.float64(), "score": pa.float64(), "rank": pa.int64()}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # half of a character, or the first of two halves


@dataclass(frozen=True)
class _Place:
    """Where in a file something stands: a line of JSONL, or a record of a list."""

    where: str
    line: int | None = None
    record: int | None = None

    def error(self, problem: str, fix: str, rule: str = "") -> InputError:
        prefix = f"record {self.record}: " if self.line is None and self.record else ""
        return InputError(prefix + problem, fix=fix, path=self.where, line=self.line, rule=rule)


def read_json(path: Path, kind: Kind, where: str) -> Table:
    """Read ``{query_id: {doc_id: number}}`` or a list of records."""
    data = load(path, where)
    if isinstance(data, dict) and str(cast("dict[str, Any]", data).get("schema")).startswith("judged."):
        raise saved_result(where)
    if isinstance(data, dict):
        return _dict_table(cast("dict[str, Any]", data), kind, where)
    if isinstance(data, list):
        records = [(_Place(where, None, at), record) for at, record in enumerate(cast("list[Any]", data), 1)]
        return _records_table(records, kind, where)
    raise InputError(
        "this JSON holds neither a dict of dicts nor a list of records",
        fix=f'write {{"query": {{"doc": {VALUE[kind]}}}}}, or [{{"query_id": ..., "doc_id": ...}}]',
        path=where,
    )


def saved_result(where: str) -> InputError:
    """Say that a file holds what judged made of qrels and runs, and is neither."""
    return InputError(
        "this is a result that judged saved, neither qrels nor a run",
        fix="scores saved as Parquet ('judged evaluate ... -o scores.parquet') are given as --scores FILE, or read by"
        " Scores.load; else give what they were made of",
        path=where,
        rule="saved-result",
    )


def read_jsonl(path: Path, kind: Kind, where: str) -> Table:
    """Read one record a line."""
    records = ((_Place(where, line, line), record) for line, record in json_lines(path, where))
    return _records_table(records, kind, where)


def json_kind(text: str, where: str) -> Literal["json", "jsonl"]:
    """Tell JSON from one record a line, by the first line, what follows it, and the name."""
    first, _, rest = text.lstrip().partition("\n")
    if {".jsonl", ".ndjson"} & set(Path(where).suffixes):
        return "jsonl"
    try:
        alone = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        alone = False
    return "jsonl" if alone and rest.strip() else "json"


def load(path: Path, where: str) -> Any:
    """Parse a JSON file, refusing keys that stand twice in an object."""
    with files.opened(path) as file:
        data = file.read()
    return parse_json(data.removeprefix(files.BOM), where)


def json_lines(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give the object on each line of a file with its line number."""
    number = 0
    for block in files.blocks(path):
        for raw in block.split(b"\n")[: -1 if block.endswith(b"\n") else None]:
            number += 1
            if raw.strip():
                record = parse_json(raw, where, number)
                if not isinstance(record, dict):
                    raise _Place(where, number).error("this line is not a JSON object", 'write {"query_id": ...}')
                yield number, cast("dict[str, Any]", record)


def parse_json(data: bytes, where: str, line: int | None = None) -> Any:
    """Parse JSON, refusing keys that stand twice in an object and numbers that no double holds."""
    place = _Place(where, line)
    try:
        found = json.loads(data.decode(), object_pairs_hook=unique_keys, parse_float=_float, parse_constant=_constant)
        if _SURROGATE.search(data):
            json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise place.error(r"a text in it holds half a character (\ud800 to \udfff alone)", "correct it") from None
    except UnicodeDecodeError as error:
        place = _Place(place.where, place.line or data[: error.start].count(b"\n") + 1)
        raise place.error("this file is not UTF-8", "save the file as UTF-8", "not-utf8") from None
    except json.JSONDecodeError as error:
        fix = "correct it" if place.line else "correct it; one record a line is the format 'jsonl'"
        place = _Place(place.where, place.line or error.lineno)
        raise place.error(f"broken JSON ({error.msg}, column {error.colno})", fix, "broken-json") from None
    except _ValueError as error:
        raise place.error(str(error), "correct it", error.rule) from None
    except RecursionError:
        raise place.error("its brackets are nested too deeply", "close them") from None
    except ValueError:
        raise place.error("a whole number has more digits than can be read", "write a smaller one") from None
    return found


class _ValueError(ValueError):
    """A value or key that JSON allows and we do not."""

    def __init__(self, problem: str, rule: str = "") -> None:  # a copy gets the rule afterwards
        super().__init__(problem)
        self.rule = rule


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON, as a hook of its parser."""
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise _ValueError(f"the key {twice!r} appears twice in one object", "duplicate-pair")
    return made


def _float(text: str) -> float:
    number = float(text)
    if number == 0 or math.isinf(number):
        try:
            return read_number(text)
        except ValueError as error:
            raise _ValueError(f"the number {text[:40]} {error}", "bad-score") from None
    return number


def _constant(name: str) -> float:
    if name == "NaN":
        raise _ValueError("a number is NaN", "nan-score")
    return float(name)


def _dict_table(data: dict[str, Any], kind: Kind, where: str) -> Table:
    made: dict[str, list[Any]] = {"query_id": [], "doc_id": [], VALUE[kind]: []}
    place = _Place(where)
    for query, judged in data.items():
        if not isinstance(judged, dict):
            raise place.error(
                f"topic {query!r} holds {json.dumps(judged)[:40]}, not a dict",
                f'write {{"query": {{"doc": {VALUE[kind]}}}}}',
            )
        for doc, number in cast("dict[str, Any]", judged).items():
            if not query or not doc:
                raise place.error("an id is empty", "name every topic and document")
            made["query_id"].append(query)
            made["doc_id"].append(doc)
            what = f"{VALUE[kind]} of topic {query}, document {doc}"
            made[VALUE[kind]].append(_number(number, VALUE[kind], place, what))
    return _table(made, where)


def _records_table(records: Iterable[tuple[_Place, Any]], kind: Kind, where: str) -> Table:
    made: dict[str, list[Any]] = {}
    names: dict[str, str] = {}
    keys: tuple[str, ...] = ()
    for place, record in records:
        if not isinstance(record, dict):
            raise place.error(f"{json.dumps(record)[:40]} is not a record", 'write {"query_id": ...}')
        if tuple(cast("dict[str, Any]", record)) != keys:
            keys = tuple(cast("dict[str, Any]", record))
            names = _columns_of(keys, kind, names, place)
        for ours, key in names.items():
            made.setdefault(ours, []).append(_field(ours, record[key], place))
    table = _table(made, where)
    return with_scores(table, kind, where) if made else table


def _table(made: dict[str, list[Any]], where: str) -> Table:
    try:
        return pa.table({name: pa.array(column, TYPES.get(name, pa.string())) for name, column in made.items()})
    except UnicodeEncodeError:  # JSON can write half of a character as \ud800
        raise InputError("an id holds half a character", fix="correct the ids", path=where) from None


def _columns_of(keys: tuple[str, ...], kind: Kind, before: dict[str, str], place: _Place) -> dict[str, str]:
    """Find our columns among a record's keys; they must be those of the records before."""
    ours = canonical(keys, kind)
    if problem := clash(ours, keys, kind):
        raise place.error(problem, ONCE)
    names = {name: key for key, name in zip(keys, ours, strict=True) if name}
    fix = f"give every record the fields query_id, doc_id, {VALUE[kind]}"
    if lacking := missing(names, kind):
        raise place.error(f"no {' or '.join(sorted(lacking))} among the fields {', '.join(keys)[:80]}", fix)
    if before and set(names) != set(before):
        odd = ", ".join(sorted(set(names) ^ set(before)))
        raise place.error(f"this record differs from those before it in {odd}", fix)
    return names


def _field(name: str, found: Any, place: _Place) -> Any:
    if name in {"score", "relevance"}:
        return _number(found, name, place)
    if name == "rank":
        number = _number(found, name, place)
        if not (number.is_integer() and abs(number) <= WHOLE_TO):
            raise place.error(f"the rank {found!r} is not a whole number", "write 1, 2, 3...")
        return int(number)
    try:
        text = id_text(found, name)
    except InputError as error:
        raise place.error(error.problem, error.fix) from None
    if not text and name in {"query_id", "doc_id"}:
        raise place.error(f"the {name} is empty", "fill it in")
    return text


def _number(found: Any, name: str, place: _Place, what: str = "") -> float:
    if isinstance(found, (int, float)) and (name == "relevance" or not isinstance(found, bool)):
        try:
            return float(found)
        except OverflowError:
            raise place.error(f"the {what or name} is too large for a number", "write a smaller one") from None
    raise place.error(f"the {what or name} is {json.dumps(found)[:40]}, not a number", "write a number", "bad-score")
