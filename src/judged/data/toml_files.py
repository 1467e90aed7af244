"""Read and validate TOML configuration files."""

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
from judged.results.spelling import canonical_name, use_one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator


_MAX_LINE_LENGTH = 5000  # characters; the run time of tomllib is quadratic in the number of parts of a dotted key
_MAX_VALUES, _MAX_CHARACTERS, _MAX_NUMBER = 10_000, 100_000, 1e15  # limits of a list, a text, and a number
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


def read_toml(path: str | Path, fix: str = "check the path") -> str:
    """Read the text of a TOML file; `fix` is the advice in the error if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("this is not text in UTF-8", fix="save the file as UTF-8", path=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"it cannot be read ({reason})", fix=fix, path=str(path)) from None


def parse_toml(text: str, path: str = "", tables: str = "[name] or [[name]]") -> dict[str, Any]:
    """Parse TOML; `path` and `tables`, an example of a table header, are used in error messages.

    The absolute value of numbers must be at most 1e15. Lists may have 10,000 values, and texts 100,000 characters.
    Fields may have narrower ranges (`judged.data.toml_files.Range`).

    >>> parse_toml("alpha = 0.05")
    {'alpha': 0.05}
    """
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _MAX_LINE_LENGTH:
            problem = f"this line has more than {_MAX_LINE_LENGTH:,} characters"
            raise InputError(problem, fix="split or remove the line", path=path, line=number)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        line = None if position is None else int(position[1] or len(text.splitlines()) or 1)
        raise InputError(
            f"this is not TOML ({_POSITION.sub('', str(error))})",
            fix=f'write tables as {tables} and values as name = "text" or name = 0.01',
            path=path,
            line=line,
        ) from None
    except RecursionError:
        raise InputError("brackets are nested too deeply", fix="close the brackets", path=path) from None
    except ValueError as error:  # an integer of more than 4,300 digits, or a date such as the 30th of February
        if "digits" in str(error):
            problem = "an integer has more than 4,300 digits"
            raise InputError(problem, fix="write a smaller number", path=path) from None
        raise InputError(f"a value cannot be read ({error})", fix="correct the value", path=path) from None
    for key, value in _values(document):
        if violation := _exceeded_limit(value):
            line = next((line for (_, _, name), line in SourceLines.of(text).lines.items() if name == key), None)
            raise InputError(f"{key} {violation[0]}", fix=f"use {violation[1]}", path=path, line=line)
    return document


def _values(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield all nested values, each with its nearest key."""
    stack: list[tuple[str, Any]] = [*document.items()]
    while stack:
        key, value = stack.pop()
        yield key, value
        if isinstance(value, dict):
            stack += value.items()
        elif isinstance(value, list):
            stack += [(key, element) for element in value[:_MAX_VALUES]]


def _exceeded_limit(value: Any) -> tuple[str, str] | None:
    """Return the problem with a value that is too large, and the limit."""
    if isinstance(value, list | dict) and len(value) > _MAX_VALUES:
        return f"has {len(value):,} values", f"at most {_MAX_VALUES:,}"
    if isinstance(value, str) and len(value) > _MAX_CHARACTERS:
        return f"has {len(value):,} characters", f"at most {_MAX_CHARACTERS:,}"
    if isinstance(value, int | float) and not abs(value) <= _MAX_NUMBER:  # also true for NaN
        return f"is {value!r:.40}", f"a number from -{_MAX_NUMBER:g} to {_MAX_NUMBER:g}"
    return None


Part = TypeVar("Part")


class Range(NamedTuple):
    """Allowed range of a numeric field, both ends included: ``results: Annotated[int, Range(1, 1000)]``."""

    minimum: float
    maximum: float


def check_ranges(settings: Any) -> None:
    """Check the numbers of a dataclass against the `Range` of their fields; None is always allowed.

    Raises
    ------
    SettingError
        If a number is out of its range.
    """
    for key, (minimum, maximum) in _ranges(type(settings)).items():
        value = getattr(settings, key)
        if value is not None and not minimum <= value <= maximum:
            raise SettingError(key, f"{key} is {value:.15g}", f"use a number from {minimum:,g} to {maximum:,g}")


@cache
def _ranges(part_type: type) -> dict[str, Range]:
    hints = get_type_hints(part_type, include_extras=True)
    metadata = {key: getattr(hint, "__metadata__", ()) for key, hint in hints.items()}
    return {key: extra for key, extras in metadata.items() for extra in extras if isinstance(extra, Range)}


def build_from_keys(
    part_type: type[Part],
    keys: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    *,
    exclude: Collection[str] = (),
) -> Part:
    """Create a dataclass from the keys of a TOML table.

    `defaults` are values from outside the table. `exclude` are fields that cannot be set in the table.

    Raises
    ------
    SettingError
        If a key is unknown, or a value does not have the type of its field.
    InputError
        If a required key is missing.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Group:
    ...     name: str
    ...     participants: int = 12
    >>> build_from_keys(Group, {"name": "novice"})
    Group(name='novice', participants=12)
    >>> build_from_keys(Group, {"nmae": "novice"})
    Traceback (most recent call last):
    ...
    judged.data.toml_files.SettingError: no key 'nmae'. Fix: write name.
    """
    excluded = {*exclude, *(defaults or {})}
    settable = {field.name: field for field in fields(part_type) if field.name not in excluded}  # pyright: ignore[reportArgumentType]
    types = get_type_hints(part_type)
    values = dict(defaults or {})
    for key, value in keys.items():
        if key not in settable:
            raise SettingError(key, f"no key {key!r}", suggest_name(key, tuple(settable)))
        values[key] = _convert(key, value, types[key])
    for name, part_field in settable.items():
        if part_field.default is MISSING and part_field.default_factory is MISSING and name not in values:
            raise InputError(f"the key {name} is missing", fix=f"write {name} = ...")
    return part_type(**values)


def _convert(key: str, value: Any, field_type: Any) -> Any:
    """Convert a TOML value to the type of its field."""
    if type(None) in get_args(field_type):
        field_type = next(choice for choice in get_args(field_type) if choice is not type(None))
    if get_origin(field_type) is tuple:
        element_type = get_args(field_type)[0]
        elements: Any = [value] if element_type is str and isinstance(value, str) else value
        if not isinstance(elements, list) or not elements:
            plural, example = ("names", '"..."') if element_type is str else ("numbers", "...")
            raise SettingError(key, f"{key} is not a list of {plural}", f"write {key} = [{example}, {example}]")
        return tuple(_convert(key, element, element_type) for element in elements)
    if get_origin(field_type) is Literal:
        if value not in get_args(field_type):
            raise SettingError(key, f"{key} is {value!r:.40}", suggest_name(str(value), get_args(field_type)))
        return value
    if field_type is date:
        day = value.date() if isinstance(value, datetime) else value
        if not isinstance(day, date):
            raise SettingError(key, f"{key} is not a date", f"write {key} = 2026-09-30, without quotes")
        return day
    expected: Any = (int, float) if field_type is float else field_type
    if not isinstance(value, expected) or (field_type is not bool and isinstance(value, bool)):
        type_names = {bool: "true or false", int: "an integer", float: "a number", str: 'a text in "quotes"'}
        raise SettingError(key, f"{key} is {value!r:.40}", f"write {type_names[field_type]}")
    return float(value) if field_type is float else value


_HEADER = re.compile(r"^\s*\[(\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")
Result = TypeVar("Result")


class SettingError(InputError):
    """An invalid value in a configuration, with its key."""

    def __init__(self, key: str, problem: str, fix: str) -> None:
        super().__init__(problem, fix=fix)
        self.key = key


@dataclass(frozen=True)
class SourceLines:
    """Line numbers of the tables and keys of a configuration file.

    The keys of `lines` are the name of a table, its index among the tables of this name, and a key. The key of a
    table header is ``""``, and so is the name of the table for keys above the first header.

    >>> places = SourceLines("gate.toml", {("check", 0, ""): 5})
    >>> with places.locate_errors("check", 0):
    ...     raise InputError("no slice 'od'", fix="write odd")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: gate.toml:5: [[check]] 1: no slice 'od'. Fix: write odd.
    """

    path: str = ""
    lines: Mapping[tuple[str, int, str], int] = field(default_factory=dict[tuple[str, int, str], int])

    @classmethod
    def of(cls, text: str, path: str = "") -> Self:
        """Find the lines of all tables and keys in a text; `path` is used in error messages."""
        lines: dict[tuple[str, int, str], int] = {}
        table, index, open_quotes = "", 0, ""
        counts: dict[str, int] = {}
        for number, line in enumerate(text.splitlines(), 1):
            if open_quotes:  # inside of a multi-line string
                open_quotes = "" if open_quotes in line else open_quotes
                continue
            if header := _HEADER.match(line):
                table = header[2]
                index = counts[table] = counts.get(table, -1) + 1
                lines[table, index, ""] = number
            elif key := _KEY.match(line):
                lines.setdefault((table, index, key[1]), number)
                open_quotes = next((quotes for quotes in ('"""', "'''") if line.count(quotes) == 1), "")
        return cls(path, lines)

    @contextmanager
    def locate_errors(self, table: str = "", index: int | None = None) -> Generator[None]:
        """Add the table and the line to each InputError that is raised in the block without them."""
        try:
            yield
        except InputError as error:
            if error.line is not None or (error.path and self.path in {"", error.path}):
                raise
            key = error.key if isinstance(error, SettingError) else ""
            first = index or 0
            candidates = [(table, first, key), ("gate", 0, key), ("", 0, key), (key, 0, ""), (table, first, "")]
            line = next((self.lines[candidate] for candidate in candidates if candidate in self.lines), None)
            prefix = "" if not table else f"[{table}]: " if index is None else f"[[{table}]] {index + 1}: "
            prefix += f"{error.path}: " if error.path else ""
            raise InputError(prefix + error.problem, fix=error.fix, path=self.path, line=line) from None

    def map_tables(self, table: str, parts: Iterable[Part], function: Callable[[Part], Result]) -> list[Result]:
        """Apply a function to each table of this name; errors name the table and its line."""
        results: list[Result] = []
        for index, part in enumerate(parts):
            with self.locate_errors(table, index):
                results.append(function(part))
        return results


_MARGIN_ALIASES = {"at_most_ratio", "delta", "max_drop", "max_loss", "max_regression", "threshold", "tolerance"}
"""Names of a margin in other tools."""


def suggest_name(name: str, valid_names: Iterable[str]) -> str:
    """Return the fix for an unknown name: the most similar valid name, or a list of all valid names.

    >>> suggest_name("margn", ["margin", "slice"]), suggest_name("x", ["margin", "slice"])
    ('write margin', 'use one of margin, slice')
    """
    names = list(valid_names)
    if (respelled := canonical_name(name, names)) in names:
        return f"write {respelled}"
    if "margin" in names and name in _MARGIN_ALIASES:
        return "write margin"
    # Similar names of the opposite bound are wrong: min_loss is not at_most_loss.
    opposites = {"least": "most", "min": "most", "most": "least", "max": "least"}
    excluded = {opposite for word, opposite in opposites.items() if word in name.split("_")}
    candidates = [candidate for candidate in names if not excluded & set(candidate.split("_"))]
    matches = get_close_matches(name, candidates, 1, 0.5)
    return f"write {matches[0]}" if matches else use_one_of(names)
