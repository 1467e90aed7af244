"""Read a gate's configuration from TOML; every problem names the line and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.topic_slices import Slice, slices_of
from judged.data.toml_files import Places, SettingError, nearest, parse_toml, read_toml
from judged.diagnosis.gates.config import Check, GateConfig, Guardrail
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import dialect_of, measures_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.scoring.evaluation import Dialect
    from judged.scoring.measures.base import Measure

_FILES = ("attributes", "queries")
_KEYS = {
    table: [one.name for one in fields(kind) if one.name not in {"checks", "guardrails", "slices", "places", "line"}]
    for table, kind in {"gate": GateConfig, "check": Check, "guardrail": Guardrail, "slice": Slice}.items()
}
_LISTS = ("check", "guardrail", "slice")


def config_of(
    given: Any, measures: Any = None, margin: float | None = None, margin_relative: float | None = None
) -> GateConfig:
    """Take a configuration as it is, from a file or a mapping laid out as the file is; or a margin for measures alone.

    >>> [(check.measure, check.margin) for check in config_of(None, "nDCG@10,AP", 0.01).checks]
    [('nDCG@10', 0.01), ('AP', 0.01)]
    """
    plain = measures is not None or margin is not None or margin_relative is not None
    if given is not None and plain:
        raise InputError("both a configuration and measures with a margin say what is checked", fix="give one of them")
    if given is None and not plain:
        fix = "give measures and a margin, such as -m nDCG@10 --margin 0.01; or a configuration"
        raise InputError("nothing says what is checked", fix=fix)
    if given is None:
        wanted = measures_of("nDCG@10" if measures is None else measures)
        return GateConfig(tuple(Check(str(one), margin=margin, margin_relative=margin_relative) for one in wanted))
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, Mapping):
        return _config(given, Places())
    if isinstance(given, (str, Path)):
        return read_config(given)
    raise InputError(
        f"{type(given).__name__} is not a configuration of a gate",
        fix="give GateConfig, a path to a TOML file, or a dict",
    )


def read_config(path: str | Path) -> GateConfig:
    """Read the configuration of a gate from a TOML file."""
    # `path`: tables `[gate]`, `[[check]]`, `[[guardrail]]` and `[[slice]]`, and `attributes`. Their keys are the
    # parameters of `GateConfig`, `Check`, `Guardrail` and `judged.slicing.Slice`.
    return parse_config(
        read_toml(path, "write one with 'judged gate init', or check one measure without: -m nDCG@10 --margin 0.01"),
        path=str(path),
    )


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
    return _config(parse_toml(text, path, "[[check]]"), Places.of(text, path))


def _config(raw: Mapping[str, Any], places: Places) -> GateConfig:
    options = _options(raw, places)
    checks, guardrails, slices = (
        tuple(places.each(table, enumerate(raw.get(table, [])), partial(_part, table, places))) for table in _LISTS
    )
    with places.part():
        config = GateConfig(checks, guardrails, slices, **options, places=places)
    rules = dialect_of(config.dialect)
    places.each("check", config.checks, lambda check: measure_of(check.measure, rules))
    return config


def _options(raw: Mapping[str, Any], places: Places) -> dict[str, Any]:
    """Give the keys of ``[gate]``, and the files that may stand above it; refuse what is no such layout."""
    with places.part():
        for key in raw:
            if key in _KEYS["gate"] and key not in _FILES:
                raise SettingError(key, f"no table or key {key!r}", "write it under [gate]")
            if key in _KEYS["check"] and key not in _LISTS:
                raise SettingError(key, f"no table or key {key!r}", "write it under [[check]]")
        _refuse_unknown(raw, ("gate", *_LISTS, *_FILES), "table or key")
        options = raw.get("gate", {})
        if not isinstance(options, dict):
            raise SettingError("gate", "gate is not a table", "write [gate]")
        for table in _LISTS:
            given = raw.get(table, [])
            if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
                raise SettingError(table, f"{table} is not a list of tables", f"write [[{table}]]")
    with places.part("gate"):
        _refuse_unknown(options, _KEYS["gate"])
        for name in _FILES:
            if name in raw and name in options:
                raise SettingError(name, f"{name} are given twice", "keep one")
    return options | {name: raw[name] for name in _FILES if name in raw}


def _part(table: str, places: Places, numbered: tuple[int, dict[str, Any]]) -> Any:
    """Make a check, a guardrail or a slice of its keys."""
    at, keys = numbered
    _refuse_unknown(keys, _KEYS[table])
    if table == "slice":
        return slices_of([keys])[0]
    line = places.lines.get((table, at, ""))
    if table == "guardrail":
        return Guardrail(**keys, line=line)
    given: dict[str, Any] = {"measure": None, **keys}
    return Check(**given, line=line)


def _refuse_unknown(keys: Iterable[str], known: Sequence[str], what: str = "key") -> None:
    for key in keys:
        if key not in known:
            elsewhere = key in {"margin", "margin_relative"}
            fix = "write it under [[check]]" if elsewhere else nearest(key, known)
            raise SettingError(key, f"no {what} {key!r}", fix)


def measure_of(name: str, rules: Dialect, grades: Sequence[float] = ()) -> Measure:
    """Give the one measure that a check names."""
    try:
        measures = rules.measures(name, grades)
    except MeasureError as error:
        raise SettingError("measure", *error.parts) from None
    if len(measures) != 1:
        raise SettingError("measure", f"{name} names {len(measures)} measures", "write one [[check]] for each")
    return measures[0]
