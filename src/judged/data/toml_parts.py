"""Make the parts of a configuration, each a frozen data class, of the tables of its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from judged.data.toml_places import SettingError, nearest
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection

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
    judged.data.toml_places.SettingError: no key 'nmae'. Fix: write name.
    """
    known = {field.name: field for field in fields(kind) if field.name not in {*apart, *(more or {})}}  # pyright: ignore[reportArgumentType]
    types = get_type_hints(kind)
    values = dict(more or {})
    for key, value in keys.items():
        if key not in known:
            raise SettingError(key, f"no key {key!r}", nearest(key, tuple(known)))
        values[key] = _value(key, value, types[key])
    for name, field in known.items():
        if field.default is MISSING and field.default_factory is MISSING and name not in values:
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
