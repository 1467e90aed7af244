"""Read the configuration of a gate from TOML, a dict, or measures with one margin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.comparison.slicing.class_measures import ClassMeasures, parse_class_table
from judged.comparison.slicing.topic_slices import Slice, parse_slices
from judged.data.toml_files import SettingError, SourceLines, parse_toml, read_toml, suggest_name
from judged.diagnosis.gates.config import Check, GateConfig, Guardrail
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import dialect_of, measures_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from judged.scoring.evaluation import Dialect
    from judged.scoring.measures.base import Measure


_FILES = ("attributes", "queries")
_KEYS = {
    table: [
        key.name for key in fields(kind) if key.name not in {"checks", "guardrails", "slices", "source_lines", "line"}
    ]
    for table, kind in {"gate": GateConfig, "check": Check, "guardrail": Guardrail, "slice": Slice}.items()
}
_TABLE_ARRAYS = ("check", "guardrail", "slice")


def config_of(
    config: Any, measures: Any = None, margin: float | None = None, margin_relative: float | None = None
) -> GateConfig:
    """Return a GateConfig from an object, a file, or a dict laid out as the file; or from measures and one margin.

    Parameters
    ----------
    config
        `GateConfig`, path, dict, or None.
    measures, margin, margin_relative
        Checks to build if there is no configuration, as in `gate`.

    Raises
    ------
    InputError
        If the configuration is invalid, or both or neither are given.

    Examples
    --------
    >>> [(check.measure, check.margin) for check in config_of(None, "nDCG@10,AP", 0.01).checks]
    [('nDCG@10', 0.01), ('AP', 0.01)]
    """
    has_margin = measures is not None or margin is not None or margin_relative is not None
    if config is not None and has_margin:
        raise InputError(
            "a configuration of the gate cannot be combined with a measure or a margin",
            fix="remove the configuration, or remove the measure and the margin",
        )
    if config is None and not has_margin:
        fix = "use measures and a margin, such as -m nDCG@10 --margin 0.01; or a configuration"
        raise InputError("the gate has no checks", fix=fix)
    if config is None:
        checked = measures_of("nDCG@10" if measures is None else measures)
        return GateConfig(tuple(Check(str(measure), margin, margin_relative) for measure in checked))
    if isinstance(config, GateConfig):
        return config
    if isinstance(config, Mapping):
        return _parse_mapping(config, SourceLines())
    if isinstance(config, (str, Path)):
        return read_config(config)
    problem = f"{type(config).__name__} is not a configuration of a gate"
    raise InputError(problem, fix="use a GateConfig, the path of a TOML file, or a dict")


def read_config(path: str | Path) -> GateConfig:
    """Read the configuration of a gate from a TOML file.

    Parameters
    ----------
    path
        TOML file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "judged.toml")
    ...     _ = path.write_text('check = [{measure = "nDCG@10", margin = 0.02}]')
    ...     read_config(path).checks[0].margin
    0.02
    """
    # The keys of [gate], [[check]], [[guardrail]] and [[slice]] are the parameters of GateConfig, Check, Guardrail and
    # judged.slicing.Slice. [class] stands for one [[check]] per class.
    fix = (
        "create a configuration with 'judged gate init', or check one measure without a file: -m nDCG@10 --margin 0.01"
    )
    return parse_config(read_toml(path, fix), path=str(path))


def parse_config(text: str, *, path: str = "") -> GateConfig:
    r"""Parse the text of a configuration file. `path` is shown in error messages.

    Parameters
    ----------
    text
        TOML.

    Examples
    --------
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
    judged.errors.InputError: gate.toml:3: [[check]] 1: unknown key: 'margn'. Fix: write margin.
    """
    return _parse_mapping(parse_toml(text, path, "[[check]]"), SourceLines.of(text, path))


def _parse_mapping(raw: Mapping[str, Any], source_lines: SourceLines) -> GateConfig:
    options = _gate_settings(raw, source_lines)
    checks, guardrails, slices = (
        tuple(source_lines.map_tables(table, enumerate(raw.get(table, [])), partial(_parse_table, table, source_lines)))
        for table in _TABLE_ARRAYS
    )
    if "class" in raw:
        with source_lines.locate_errors("class"):
            declared = parse_class_table(raw["class"])
            options["by"] = declared.by or options.get("by")
            checks += tuple(_class_checks(declared, options["by"], {topic_slice.name for topic_slice in slices}))
    with source_lines.locate_errors():
        config = GateConfig(checks, guardrails, slices, **options, source_lines=source_lines)
    rules = dialect_of(config.dialect)
    source_lines.map_tables("check", config.checks, lambda check: parse_measure(check.measure, rules))
    return config


def _class_checks(declared: ClassMeasures, by: str | None, slices: Collection[str]) -> Iterator[Check]:
    """Yield a check of each class by its own measure; a label is the name of a slice, or a value of `by`."""
    settings = {name: getattr(declared, name) for name in ("margin", "margin_relative", "min_topics", "strict")}
    for label, measure in declared.measures.items():
        is_name = not by or label in slices or label.startswith(tuple(f"{by}{mark}" for mark in "=<> "))
        yield Check(measure, slice=label if is_name else f"{by}={label}", **settings)


def _gate_settings(raw: Mapping[str, Any], source_lines: SourceLines) -> dict[str, Any]:
    """Return the keys of ``[gate]``, and the file paths, which may also be above it. Check the layout of all tables."""
    with source_lines.locate_errors():
        for key in raw:
            if key in _KEYS["gate"] and key not in _FILES:
                raise SettingError(key, f"the key {key} must be in the table [gate]", f"write {key} under [gate]")
            if key in _KEYS["check"] and key not in _TABLE_ARRAYS:
                raise SettingError(key, f"the key {key} must be in a table [[check]]", f"write {key} under [[check]]")
        _check_keys(raw, ("gate", "class", *_TABLE_ARRAYS, *_FILES), "table or key")
        settings = raw.get("gate", {})
        if not isinstance(settings, dict):
            raise SettingError("gate", "gate is not a table", "write [gate]")
        for table in _TABLE_ARRAYS:
            rows = raw.get(table, [])
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise SettingError(table, f"{table} is not a list of tables", f"write [[{table}]]")
    with source_lines.locate_errors("gate"):
        _check_keys(settings, _KEYS["gate"])
        for name in _FILES:
            if name in raw and name in settings:
                raise SettingError(name, f"{name} is set twice", "remove one of the two settings")
    return settings | {name: raw[name] for name in _FILES if name in raw}


def _parse_table(table: str, source_lines: SourceLines, numbered: tuple[int, dict[str, Any]]) -> Any:
    i, keys = numbered
    _check_keys(keys, _KEYS[table])
    if table == "slice":
        return parse_slices([keys])[0]
    line = source_lines.lines.get((table, i, ""))
    if table == "guardrail":
        return Guardrail(**keys, line=line)
    # Without this None, a missing measure would be a TypeError instead of a message with the line.
    settings: dict[str, Any] = {"measure": None, **keys}
    return Check(**settings, line=line)


def _check_keys(keys: Iterable[str], allowed: Sequence[str], kind: str = "key") -> None:
    for key in keys:
        if key not in allowed:
            is_margin = key in {"margin", "margin_relative"}
            fix = f"write {key} under [[check]]" if is_margin else suggest_name(key, allowed)
            raise SettingError(key, f"unknown {kind}: {key!r}", fix)


def parse_measure(name: str, rules: Dialect, grades: Sequence[float] = ()) -> Measure:
    """Parse the name of exactly one measure."""
    try:
        measures = rules.measures(name, grades)
    except MeasureError as error:
        raise SettingError("measure", *error.parts) from None
    if len(measures) != 1:
        raise SettingError("measure", f"{name} selects {len(measures)} measures", "use one [[check]] for each measure")
    return measures[0]
