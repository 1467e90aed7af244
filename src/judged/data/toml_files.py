"""TOML that people write: configurations of a gate, slices."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from datetime import date, datetime
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar, get_args, get_origin, get_type_hints

from judged.errors import InputError
from judged.results.spelling import canonical_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator


_LONGEST = 5000  # characters of a line: Python's reader takes time by the square of the parts of a key
_MOST_VALUES, _MOST_CHARACTERS, _LARGEST = 10_000, 100_000, 1e15  # of a list, of a text, and as a number
_AT = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(path: str | Path, fix: str = "check the path") -> str:
    """Give the text of a file of TOML; `fix` is what to do where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("this is not text in UTF-8", fix="save it as UTF-8", path=str(path)) from None
    except (OSError, ValueError) as error:  # the second: a path with a zero byte
        why = getattr(error, "strerror", None) or error
        raise InputError(f"it cannot be read ({why})", fix=fix, path=str(path)) from None


def parse_toml(text: str, path: str = "", tables: str = "[name] or [[name]]") -> dict[str, Any]:
    """Read TOML; `path` is what messages call it, and `tables` how they say that its tables are written.

    Numbers must be finite and at most 1e15 in size, lists have at most 10,000 values, and texts 100,000 characters;
    fields may have narrower ranges (`judged.data.toml_files.Range`).

    >>> parse_toml("alpha = 0.05")
    {'alpha': 0.05}
    """
    long = next((at for at, line in enumerate(text.split("\n"), 1) if len(line) > _LONGEST), None)
    if long is not None:
        problem = f"a line of more than {_LONGEST:,} characters"
        raise InputError(problem, fix="break it up, or leave it out", path=path, line=long)
    try:
        made = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT.search(str(error))
        line = None if at is None else int(at[1] or len(text.splitlines()) or 1)
        raise InputError(
            f"this is not TOML ({_AT.sub('', str(error))})",
            fix=f'write tables as {tables} and values as name = "text" or name = 0.01',
            path=path,
            line=line,
        ) from None
    except RecursionError:
        raise InputError("its brackets are nested too deeply", fix="close them", path=path) from None
    except ValueError as error:  # Python reads no number of more than 4,300 digits, and no 30th of February
        raise InputError(f"a value in it cannot be read ({error})", fix="correct it", path=path) from None
    for key, value in _values(made):
        if wrong := _exceeded(value):
            line = next((at for (_, _, name), at in Places.of(text).lines.items() if name == key), None)
            raise InputError(f"{key} {wrong[0]}", fix=f"give {wrong[1]}", path=path, line=line)
    return made


def _values(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give every value at any depth, with the nearest key above it."""
    waiting: list[tuple[str, Any]] = [*given.items()]
    while waiting:
        key, value = waiting.pop()
        yield key, value
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(key, each) for each in value[:_MOST_VALUES]]


def _exceeded(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with the size of a value, and its limit; None if it is within."""
    if isinstance(value, list | dict) and len(value) > _MOST_VALUES:
        return f"has {len(value):,} values", f"at most {_MOST_VALUES:,}"
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"has {len(value):,} characters", f"at most {_MOST_CHARACTERS:,}"
    if isinstance(value, int | float) and not abs(value) <= _LARGEST:  # NaN is in no range
        return f"is {value!r:.40}", f"a number from -{_LARGEST:g} to {_LARGEST:g}"
    return None


Part = TypeVar("Part")


class Range(NamedTuple):
    """The numbers that a field takes, both ends included: ``results: Annotated[int, Range(1, 1000)]``."""

    least: float
    most: float


def check_ranges(part: Any) -> None:
    """Refuse numbers of a data class outside of the ranges that its fields declare; None is in every range.

    Raises
    ------
    SettingError
        If a number is outside.
    """
    for key, (least, most) in _ranges(type(part)).items():
        value = getattr(part, key)
        if value is not None and not least <= value <= most:
            raise SettingError(key, f"{key} is {value:.15g}", f"give a number from {least:,g} to {most:,g}")


@cache
def _ranges(kind: type) -> dict[str, Range]:
    hints = get_type_hints(kind, include_extras=True)
    found = {key: getattr(hint, "__metadata__", ()) for key, hint in hints.items()}
    return {key: each for key, extras in found.items() for each in extras if isinstance(each, Range)}


def part_of(
    kind: type[Part], keys: Mapping[str, Any], more: Mapping[str, Any] | None = None, *, apart: Collection[str] = ()
) -> Part:
    """Make a part of its keys; refuse those that it does not have, and values of another type.

    `more` are values from elsewhere, and `apart` the fields that are no keys of this table.

    Raises
    ------
    SettingError
        If a key is unknown, or a value of another type than the field.
    InputError
        If a key is missing.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Group:
    ...     name: str
    ...     participants: int = 12
    >>> part_of(Group, {"name": "novice"})
    Group(name='novice', participants=12)
    >>> part_of(Group, {"nmae": "novice"})
    Traceback (most recent call last):
    ...
    judged.data.toml_files.SettingError: no key 'nmae'. Fix: write name.
    """
    known = {field.name: field for field in fields(kind) if field.name not in {*apart, *(more or {})}}  # pyright: ignore[reportArgumentType]
    types = get_type_hints(kind)
    values = dict(more or {})
    for key, value in keys.items():
        if key not in known:
            raise SettingError(key, f"no key {key!r}", nearest(key, tuple(known)))
        values[key] = _value(key, value, types[key])
    for name, known_field in known.items():
        if known_field.default is MISSING and known_field.default_factory is MISSING and name not in values:
            raise InputError(f"it has no {name}", fix=f"write {name} = ...")
    return kind(**values)


def _value(key: str, value: Any, kind: Any) -> Any:
    """Read a value of TOML as the type of its field."""
    if type(None) in get_args(kind):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        given: Any = [value] if inner is str and isinstance(value, str) else value
        if not isinstance(given, list) or not given:
            what, example = ("names", '"..."') if inner is str else ("numbers", "...")
            raise SettingError(key, f"{key} is no list of {what}", f"write {key} = [{example}, {example}]")
        return tuple(_value(key, one, inner) for one in given)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise SettingError(key, f"{key} is {value!r:.40}", nearest(str(value), get_args(kind)))
        return value
    if kind is date:
        day = value.date() if isinstance(value, datetime) else value
        if not isinstance(day, date):
            raise SettingError(key, f"{key} is no date", f"write {key} = 2026-09-30, without quotes")
        return day
    expected: Any = (int, float) if kind is float else kind
    if not isinstance(value, expected) or (kind is not bool and isinstance(value, bool)):
        name = {bool: "true or false", int: "a whole number", float: "a number", str: 'a text in "quotes"'}[kind]
        raise SettingError(key, f"{key} is {value!r:.40}", f"write {name}")
    return float(value) if kind is float else value


_HEADER = re.compile(r"^\s*\[(\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")
Made = TypeVar("Made")


class SettingError(InputError):
    """A value of a configuration that makes no sense, with its key."""

    def __init__(self, key: str, problem: str, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.key = key


@dataclass(frozen=True)
class Places:
    """The file of a configuration, and the line of every table and key.

    A place is a table, which of its name, and a key; the key of a table's header is empty, and so is the table of what
    stands above all of them.

    >>> places = Places("gate.toml", {("check", 0, ""): 5})
    >>> with places.part("check", 0):
    ...     raise InputError("no slice 'od'", fix="write odd")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: gate.toml:5: [[check]] 1: no slice 'od'. Fix: write odd.
    """

    path: str = ""
    lines: Mapping[tuple[str, int, str], int] = field(default_factory=dict[tuple[str, int, str], int])

    @classmethod
    def of(cls, text: str, path: str = "") -> Self:
        """Find the line of every table and key in a text; `path` is what messages call it."""
        found: dict[tuple[str, int, str], int] = {}
        table, which, inside = "", 0, ""
        counts: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if inside:  # a text over several lines
                inside = "" if inside in line else inside
                continue
            if header := _HEADER.match(line):
                table = header[2]
                which = counts[table] = counts.get(table, -1) + 1
                found[table, which, ""] = number
            elif key := _KEY.match(line):
                found.setdefault((table, which, key[1]), number)
                inside = next((mark for mark in ('"""', "'''") if line.count(mark) == 1), "")
        return cls(path, found)

    @contextmanager
    def part(self, table: str = "", at: int | None = None) -> Generator[None]:
        """Say of what is wrong in here in which part it is, and on which line."""
        try:
            yield
        except InputError as error:
            if error.line is not None or (error.path and self.path in {"", error.path}):
                raise
            key = error.key if isinstance(error, SettingError) else ""
            which = at or 0
            tried = [(table, which, key), ("gate", 0, key), ("", 0, key), (key, 0, ""), (table, which, "")]
            line = next((self.lines[place] for place in tried if place in self.lines), None)
            head = "" if not table else f"[{table}]: " if at is None else f"[[{table}]] {at + 1}: "
            head += f"{error.path}: " if error.path else ""
            raise InputError(head + error.problem, fix=error.fix, path=self.path, line=line) from None

    def each(self, table: str, parts: Iterable[Part], make: Callable[[Part], Made]) -> list[Made]:
        """Make something of each part of a table; of what is wrong it is said in which part it is."""
        made: list[Made] = []
        for at, part in enumerate(parts):
            with self.part(table, at):
                made.append(make(part))
        return made


_MARGINS = {"at_most_ratio", "delta", "max_drop", "max_loss", "max_regression", "threshold", "tolerance"}
"""What a margin is called elsewhere."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was meant, or all of them.

    >>> nearest("margn", ["margin", "slice"]), nearest("x", ["margin", "slice"])
    ('write margin', 'use one of margin, slice')
    """
    names = list(known)
    if (right := canonical_name(name, names)) in names:
        return f"write {right}"
    if "margin" in names and name in _MARGINS:
        return "write margin"
    away = {"least": "most", "min": "most", "most": "least", "max": "least"}  # the other side is not what is meant
    sides = [other for side, other in away.items() if side in name.split("_")]
    close = get_close_matches(name, [one for one in names if not set(sides) & set(one.split("_"))], 1, 0.5)
    return f"write {close[0]}" if close else f"use one of {', '.join(names)}"
