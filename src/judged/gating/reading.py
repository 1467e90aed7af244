"""Read a gate's configuration from TOML; every complaint names the line and the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from judged.data.toml_files import parse_toml, read_toml
from judged.errors import InputError, MeasureError
from judged.gating.config import Check, GateConfig, Guardrail, check_dialect, nearest

if TYPE_CHECKING:
    from judged.slicing.slices import Slice

_HEADER = re.compile(r"^\s*\[(\[?)\s*([\w-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")
_REPEATED = re.compile(r"\[\[check\]\] (\d+)")
_FILES = {"attributes": "topics.csv", "queries": "queries.tsv"}
_PARTS = ("gate", "check", "guardrail", "slice", *_FILES)
_OF_GATE = tuple(
    one.name for one in fields(GateConfig) if one.name not in {"checks", "guardrails", "slices", "path", "lines"}
)
_SLICE = ("slice", "")
_OF_SLICE = ("name", "expression", "minimum", "owner")
_Place: TypeAlias = "tuple[str, int, str]"
T = TypeVar("T")


def config_of(given: Any) -> GateConfig:
    """Take a configuration as it is, read it from a file, or from a mapping laid out as the file is."""
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, Mapping):
        return _Reader("", {}).config(dict(given))
    if isinstance(given, (str, Path)):
        return read_config(given)
    raise InputError(
        f"{type(given).__name__} is no configuration of a gate", fix="give GateConfig, a path to a TOML file, or a dict"
    )


def read_config(path: str | Path) -> GateConfig:
    """Read the configuration of a gate from a TOML file."""
    # `path`: tables `[gate]`, `[[check]]`, `[[guardrail]]` and `[[slice]]`, and `attributes`. Their keys are the
    # parameters of `GateConfig`, `Check`, `Guardrail` and `judged.slicing.Slice`.
    return parse_config(read_toml(path, "write one with 'judged gate init'"), path=str(path))


def parse_config(text: str, *, path: str = "") -> GateConfig:
    r"""Read a configuration from the text of its file; `path` is what messages call it.

    >>> config = parse_config('''
    ... [[check]]
    ... measure = "nDCG@10"
    ... margin = 0.01
    ... ''')
    >>> config.checks[0].margin, config.checks[0].line
    (0.01, 2)
    >>> parse_config('[[check]]\nmeasure = "AP"\nmargn = 0.01', path="gate.toml")
    Traceback (most recent call last):
    ...
    judged.errors.InputError: gate.toml:3: [[check]] 1: no key 'margn'. Fix: write margin.
    """
    return _Reader(path, _lines(text)).config(parse_toml(text, path))


def _lines(text: str) -> dict[_Place, int]:
    """Find the line of every table and key: (table, which of its name, key), where key is empty for its header."""
    found: dict[_Place, int] = {}
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
    return found


class _Reader:
    """Builds a configuration; knows where in the file each part stands."""

    def __init__(self, path: str, lines: dict[_Place, int]) -> None:
        self._path, self._lines = path, lines

    def config(self, raw: dict[str, Any]) -> GateConfig:
        for name in raw:
            if name not in _PARTS:
                known = _OF_GATE if name in _OF_GATE else _PARTS
                fix = "write it under [gate]" if name in _OF_GATE else nearest(name, known)
                raise self._wrong(f"no table or key {name!r}", fix, ("", 0, name), (name, 0, ""))
        options = self._options(raw)
        checks = self._made("check", raw, Check)
        guardrails = self._made("guardrail", raw, Guardrail)
        slices = self._slices(raw)
        for at, check in enumerate(checks):
            self._check_measure(check, at, options.get("dialect"))
        try:
            return GateConfig(
                tuple(checks), tuple(guardrails), tuple(slices), **options, path=self._path, lines=self._known()
            )
        except InputError as error:
            again = _REPEATED.match(error.problem)
            place = ("check", int(again[1]) - 1, "") if again else ("gate", 0, error.problem.split(" ", 1)[0])
            raise self._wrong(error.problem, error.fix, place) from None

    def _known(self) -> dict[str, int]:
        """Give the lines that a gate may have to name later: of its files, and of its slices."""
        found = {
            name: line
            for name in _FILES
            for table in ("", "gate")
            if (line := self._lines.get((table, 0, name))) is not None
        }
        slices = {f"slice {at + 1}": line for (table, at, key), line in self._lines.items() if (table, key) == _SLICE}
        return found | slices

    def _options(self, raw: dict[str, Any]) -> dict[str, Any]:
        options = raw.get("gate", {})
        if not isinstance(options, dict):
            raise self._wrong("gate is no table", "write [gate]", ("", 0, "gate"))
        for key in options:
            if key not in _OF_GATE:
                raise self._wrong(f"[gate]: no key {key!r}", nearest(key, _OF_GATE), ("gate", 0, key))
        for name, example in _FILES.items():
            if name in raw:
                if name in options:
                    raise self._wrong(f"{name} are given twice", "keep one", ("gate", 0, name))
                options = {**options, name: raw[name]}
            if not isinstance(options.get(name, ""), str):
                fix = f'write {name} = "{example}"'
                raise self._wrong(f"{name} is no path", fix, ("gate", 0, name), ("", 0, name))
        return dict(options)

    def _made(self, table: str, raw: dict[str, Any], cls: Callable[..., T]) -> list[T]:
        known = tuple(one.name for one in fields(cast("Any", cls)) if one.name != "line")
        made: list[T] = []
        for at, one in enumerate(self._tables(table, raw)):
            make = partial(_with, cls, self._lines.get((table, at, "")))
            made.append(self._guarded(table, at, known, one, make))
        return made

    def _slices(self, raw: dict[str, Any]) -> list[Slice]:
        given = self._tables("slice", raw)
        if not given:
            return []
        from judged.slicing.slices import slices_of

        return [
            self._guarded("slice", at, _OF_SLICE, one, lambda keys: slices_of([keys])[0])
            for at, one in enumerate(given)
        ]

    def _tables(self, table: str, raw: dict[str, Any]) -> list[dict[str, Any]]:
        given = raw.get(table, [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise self._wrong(f"{table} is no list of tables", f"write [[{table}]]", (table, 0, ""), ("", 0, table))
        return given

    def _guarded(
        self, table: str, at: int, known: tuple[str, ...], keys: dict[str, Any], make: Callable[[dict[str, Any]], T]
    ) -> T:
        """Make one part; say of what is wrong where it stands."""
        for key in keys:
            if key not in known:
                raise self._wrong(f"[[{table}]] {at + 1}: no key {key!r}", nearest(key, known), (table, at, key))
        try:
            return make(keys)
        except InputError as error:
            key = error.problem.split(" ", 1)[0]
            raise self._wrong(
                f"[[{table}]] {at + 1}: {error.problem}", error.fix, (table, at, key), (table, at, "")
            ) from None

    def _check_measure(self, check: Check, at: int, dialect: str | None) -> None:
        from judged.evaluation import dialect_of

        try:
            check_dialect(dialect)
            rules = dialect_of(dialect)
        except InputError as error:
            raise self._wrong(error.problem, error.fix, ("gate", 0, "dialect")) from None
        try:
            count = len(rules.measures(check.measure))
        except MeasureError as error:
            problem, _, fix = str(error).partition(" Fix: ")
            raise self._wrong(
                f"[[check]] {at + 1}: {problem.rstrip('.')}",
                fix.rstrip("."),
                ("check", at, "measure"),
                ("check", at, ""),
            ) from None
        if count != 1:
            raise self._wrong(
                f"[[check]] {at + 1}: {check.measure} names {count} measures",
                "write one [[check]] for each",
                ("check", at, "measure"),
            )

    def _wrong(self, problem: str, fix: str, *places: _Place) -> InputError:
        line = next((self._lines[place] for place in places if place in self._lines), None)
        return InputError(problem, fix=fix, path=self._path, line=line)


def _with(cls: Callable[..., T], line: int | None, keys: dict[str, Any]) -> T:
    return cls(**({"measure": None} if cls is Check else {}) | keys, line=line)
