"""Paths into records, such as ``event.results[].id``, and the SQL that follows them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from judged.online.engine import literal


@dataclass(frozen=True)
class Step:
    """One step of a path: to a member, to the n-th item, to all items, or to the item with a member of some value."""

    kind: Literal["key", "item", "all", "having"]
    name: str = ""
    value: str = ""


@dataclass(frozen=True)
class Path:
    """A path, understood.

    ``root`` is ``row`` for the record, ``item`` for what an ``each`` goes through (``@``), ``index`` for its number
    from 0 (``@index``) and ``place`` for the record's own name (``#row``).
    """

    root: Literal["row", "item", "index", "place"]
    steps: tuple[Step, ...] = ()

    @property
    def many(self) -> bool:
        """It gives a list."""
        return any(step.kind == "all" for step in self.steps)


_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_BRACKET = re.compile(r"\[(?:(?P<item>\d{1,9})|(?P<key>[^\]=\[]+)=(?P<value>[^\]]*))?\]")


def parsed(path: str) -> Path:
    """Understand a path.

    ``a.b`` is the member b of the member a; ``a[2]`` the third item of a list, ``a[]`` all of them, ``a[key=x]`` the
    first whose member ``key`` is x. A backslash before a dot or bracket takes away its meaning.

    Raises
    ------
    ValueError
        If it makes no sense.

    Examples
    --------
    >>> [step.kind for step in parsed("params[key=term].value.text").steps]
    ['key', 'having', 'key', 'key']
    >>> parsed("results[].id").many
    True
    """
    if path == "#row":
        return Path("place")
    if path == "@index":
        return Path("index")
    root: Literal["row", "item"] = "item" if path.startswith("@") else "row"
    rest = path.removeprefix("@").removeprefix(".") if root == "item" else path
    if not rest and root == "row":
        raise ValueError("is empty")
    steps: list[Step] = []
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
    return Path(root, tuple(steps))


def resolved(path: str, columns: Collection[str]) -> Path:
    """Understand a path into a table: a column is known by its whole name, dots and all."""
    return Path("row", (Step("key", path),)) if path in columns else parsed(path)


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


def json_of(path: Path) -> str:
    """Write the SQL of what a path leads to: JSON, or a list of JSON where the path gives many."""
    if path.root == "place":
        return "to_json(file || ':' || row)"
    if path.root == "index":
        return "to_json(nth)"
    current, inside = ("doc" if path.root == "row" else "element"), "$"
    for number, step in enumerate(path.steps):
        if step.kind == "key":
            inside += f'."{step.name}"'
        elif step.kind == "item":
            inside += f"[{step.name}]"
        elif step.kind == "having":
            items = f"json_extract({current}, {literal(inside + '[*]')})"
            member = f"json_extract_string(e{number}, {literal(_member(step.name))})"
            current, inside = f"list_filter({items}, lambda e{number}: {member} = {literal(step.value)})[1]", "$"
        else:
            items = f"json_extract({current}, {literal(inside + '[*]')})"
            rest = json_of_element(path.steps[number + 1 :])
            there = f"json_type(json_extract({current}, {literal(inside)})) = 'ARRAY'"
            return f"CASE WHEN {there} THEN list_transform({items}, lambda e: {rest}) END"  # absent is not empty
    return current if inside == "$" else f"json_extract({current}, {literal(inside)})"


def json_of_element(steps: tuple[Step, ...]) -> str:
    """Write the SQL of what steps lead to from the item ``e`` of a list."""
    inside = "$" + "".join(f'."{step.name}"' if step.kind == "key" else f"[{step.name}]" for step in steps)
    return f"json_extract(e, {literal(inside)})"


def _member(name: str) -> str:
    return f'$."{name}"'


def exists(path: Path) -> str | None:
    """Write a test of whether a record has a path at all, up to its first list; None where that is no question."""
    if path.root in {"index", "place"}:
        return None
    inside = "$"
    for step in path.steps:
        if step.kind != "key":
            break
        inside += f'."{step.name}"'
    return None if inside == "$" else f"json_exists({'doc' if path.root == 'row' else 'element'}, {literal(inside)})"
