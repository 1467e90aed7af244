"""Paths into records, such as ``event.results[].id``, and the SQL that follows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from judged.online.engine import literal


@dataclass(frozen=True)
class Step:
    """One step of a path: to a member, to the n-th item, to all items, or to the item with a member of some value."""

    kind: Literal["key", "item", "all", "having"]
    name: str = ""
    value: str = ""


SPECIAL = ("#row", "#id", "#file", "@index")
"""The record's own name, its id in the index, the name of its file, and the number of an item from 0."""

_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_BRACKET = re.compile(r"\[(?:(?P<item>\d{1,9})|(?P<key>[^\]=\[]+)=(?P<value>[^\]]*))?\]")


@cache
def parsed(path: str) -> tuple[Step, ...]:
    """Understand a path: its steps, the first of them to a column or a member of the record.

    ``a.b`` is the member b of the member a; ``a[2]`` the third item of a list, ``a[]`` all of them, ``a[key=x]`` the
    first whose member ``key`` is x. A backslash before a dot or bracket takes away its meaning. ``@`` is what an
    ``each`` goes through.

    Raises
    ------
    ValueError
        If it makes no sense.

    Examples
    --------
    >>> [step.kind for step in parsed("params[key=term].value.text")]
    ['key', 'having', 'key', 'key']
    >>> [step.name for step in parsed("@.id")]
    ['@', 'id']
    """
    if path in SPECIAL:
        return (Step("key", path),)
    if not path:
        raise ValueError("is empty")
    item = path.startswith("@")
    rest = path[1:].removeprefix(".") if item else path
    steps = [Step("key", "@")] if item else []
    at = 0
    while at < len(rest):
        if bracket := _BRACKET.match(rest, at):
            steps.append(_bracket(bracket))
            at = bracket.end()
        elif name := _NAME.match(rest, at + 1 if steps and rest[at] == "." else at):
            steps.append(Step("key", _named(name[0])))
            at = name.end()
        else:
            raise ValueError(f"cannot be understood at {rest[at:]!r}")
    kinds = [step.kind for step in steps]
    if "all" in kinds and {"all", "having"} & set(kinds[kinds.index("all") + 1 :]):
        raise ValueError("goes through lists in lists")
    return tuple(steps)


def is_many(path: str) -> bool:
    """Say whether a path gives a list."""
    return any(step.kind == "all" for step in parsed(path))


def keys_of(path: str) -> tuple[str, ...]:
    """Give the names that a path begins with, up to its first bracket."""
    steps = parsed(path)
    return tuple(step.name for step in steps[: next((n for n, one in enumerate(steps) if one.kind != "key"), None)])


def _named(text: str) -> str:
    name = re.sub(r"\\(.)", r"\1", text)
    if '"' in name or "\\" in name or "\x00" in name:
        raise ValueError("has a quotation mark or backslash in a name")
    return name


def _bracket(match: re.Match[str]) -> Step:
    if match["item"] is not None:
        return Step("item", match["item"])
    if match["key"] is not None:
        return Step("having", _named(match["key"]), match["value"])
    return Step("all")


def followed(json: str, steps: Sequence[Step]) -> tuple[str, bool]:
    """Write the SQL of what steps lead to from JSON, and whether that is a list of JSON."""
    inside = "$"
    for number, step in enumerate(steps):
        items = f"json_extract({json}, {literal(inside + '[*]')})"
        if step.kind == "all":
            rest = f"json_extract(e, {literal('$' + ''.join(map(_inside, steps[number + 1 :])))})"
            there = f"json_type(json_extract({json}, {literal(inside)})) = 'ARRAY'"
            return f"CASE WHEN {there} THEN list_transform({items}, lambda e: {rest}) END", True  # absent is not empty
        if step.kind == "having":
            member = f"json_extract_string(e{number}, {literal('$' + _inside(step))})"
            json, inside = f"list_filter({items}, lambda e{number}: {member} = {literal(step.value)})[1]", "$"
        else:
            inside += _inside(step)
    return (json if inside == "$" else f"json_extract({json}, {literal(inside)})"), False


def _inside(step: Step) -> str:
    return f"[{step.name}]" if step.kind == "item" else f'."{step.name}"'
