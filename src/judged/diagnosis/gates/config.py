"""Configuration of a gate: checks with margins, guardrails, and error rates."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from judged.comparison.slicing.class_measures import ClassMeasures, parse_class_table
from judged.comparison.slicing.topic_slices import Slice, parse_slices
from judged.data.toml_files import SettingError, SourceLines, parse_toml, read_toml, suggest_name
from judged.errors import InputError, MeasureError
from judged.scoring.evaluation import DIALECTS, dialect_of, measures_of
from judged.scoring.judging import TopicPolicy
from judged.scoring.judging.ranking import TiePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from judged.scoring.evaluation import Dialect
    from judged.scoring.evaluation.facts import TieTreatment
    from judged.scoring.measures.base import Measure


ALL = "all"
"""The slice of all topics."""

GateTest: TypeAlias = Literal["randomization", "t", "bounded"]
GateCorrection: TypeAlias = Literal["holm", "bonferroni", "none"]


@dataclass(frozen=True)
class Check:
    """Limit on the loss of one measure, over all topics or over a slice.

    Parameters
    ----------
    measure
        Name of the measure, as for `evaluate`.
    margin
        Largest acceptable loss, in the unit of the measure, at least 0.
    margin_relative
        Largest acceptable loss as a share of the baseline's mean over the slice. Set either this or `margin`.
    slice
        Name of a slice, or ``all``.
    min_topics
        Minimum number of topics for a decision. None: the minimum of the slice, or 10.
    strict
        Whether the check fails if it is inconclusive. None: the setting of the gate.
    large_loss, max_share_of_large_losses
        Override the settings of the gate.
    line
        Line number in the configuration file.

    Raises
    ------
    InputError
        If a value is invalid.

    Examples
    --------
    >>> Check("nDCG@10", margin=0.01).name
    'nDCG@10'
    >>> Check("R@100", margin_relative=0.02, slice="long queries").name
    'R@100 in long queries'
    """

    measure: str
    margin: float | None = None
    margin_relative: float | None = None
    slice: str = ALL
    min_topics: int | None = None
    strict: bool | None = None
    large_loss: float | None = None
    max_share_of_large_losses: float | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        if (self.margin is None) == (self.margin_relative is None):
            problem = "margin and margin_relative are both set" if self.margin is not None else "no margin is set"
            raise InputError(
                problem,
                fix="set the largest acceptable loss, either as margin = 0.01 (in the unit of the measure) or as"
                " margin_relative = 0.02 (a share of the baseline's mean)",
            )
        validate_settings(self, "measure", "slice")

    @property
    def name(self) -> str:
        """Measure, and the slice unless it is all topics."""
        return self.measure if self.slice == ALL else f"{self.measure} in {self.slice}"


@dataclass(frozen=True)
class Guardrail:
    """Limit on a number that is compared without a test.

    There are three kinds: ``measure`` (the mean share of judged documents, ``Judged@k``), ``table`` with ``column``
    (one number per run, such as a latency), and ``missing_topics``.

    Parameters
    ----------
    measure
        ``Judged@k``, with `at_least` or `at_most_below_baseline`, or both.
    at_least
        Minimum share of judged documents for the candidate.
    at_most_below_baseline
        Maximum decrease of this share from the baseline to the candidate.
    table, column
        A file with a column ``run`` and a column of numbers, with `at_most` or `at_most_ratio`, or both. The column
        ``run`` contains the names of the two runs, or ``baseline`` and ``candidate``.
    at_most
        Maximum for the candidate.
    at_most_ratio
        Maximum for the candidate as a multiple of the baseline's number.
    quantile
        Quantile of the rows of a run that is compared, if a run has several rows.
    missing_topics
        Maximum number of topics with results from the baseline but none from the candidate.
    line
        Line number in the configuration file.

    Raises
    ------
    InputError
        If not exactly one kind is set, or a value is invalid.
    """

    measure: str | None = None
    at_least: float | None = None
    at_most_below_baseline: float | None = None
    table: str | None = None
    column: str | None = None
    at_most: float | None = None
    at_most_ratio: float | None = None
    quantile: float | None = None
    missing_topics: int | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            problem = f"{', '.join(kinds)} cannot be combined" if kinds else "no limit is set"
            raise InputError(problem, fix=f"set one of {', '.join(_KINDS)}")
        (kind,) = kinds
        limits, required = _KINDS[kind]
        allowed = (*required, *limits)
        for setting in fields(self):
            if setting.name not in {kind, "line", *allowed} and getattr(self, setting.name) is not None:
                fix = f"keys allowed with {kind}: {', '.join(allowed) or 'none'}"
                raise SettingError(setting.name, f"{setting.name} is not allowed with {kind}", fix)
        bounds = [name for name in limits if name != "quantile"]
        if bounds and all(getattr(self, name) is None for name in bounds):
            raise InputError("no limit is set", fix=f"set {' or '.join(bounds)}")
        validate_settings(self, *required)

    @property
    def kind(self) -> Literal["judged", "table", "missing topics"]:
        """Kind of the guardrail."""
        return "judged" if self.measure is not None else "table" if self.table is not None else "missing topics"

    @property
    def name(self) -> str:
        """Limited number, as shown in results."""
        if self.measure is not None:
            return f"{self.measure} (judged share)"
        if self.table is None:
            return self.kind
        return f"{self.column}" if self.quantile is None else f"{self.column}, quantile {self.quantile:g}"


_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # optional and required keys of each kind
    "measure": (("at_least", "at_most_below_baseline"), ()),
    "table": (("at_most", "at_most_ratio", "quantile"), ("column",)),
    "missing_topics": ((), ()),
}


@dataclass(frozen=True)
class GateConfig:
    """Configuration of a gate. `read_config` reads it from a TOML file.

    Parameters
    ----------
    checks
        Limits on losses, each decided by a test.
    guardrails
        Limits that are compared without a test.
    slices
        Slices that checks refer to: expressions over attributes of the topics.
    attributes, queries
        Files with attributes and texts of the topics. Relative paths start at the folder of the configuration file.
        Other attributes are derived where possible: see `judged.comparison.slicing.derived.read_topic_attributes`.
    alpha
        Error rate, below 0.5. Probability that the gate fails although no loss exceeds its margin, over all checks
        together. Also, for each check, the probability that it passes a loss as large as its margin.
    strict
        Whether the gate fails if a check is inconclusive.
    test
        ``randomization`` (random signs of differences), ``t``, or ``bounded``, which is valid for every distribution
        and number of topics but requires measures with bounds.
    correction
        Correction of the failures for the number of checks: ``holm``, ``bonferroni`` or ``none``.
    resamples, seed
        Settings of the randomization test.
    power
        Power at which results report the detectable loss.
    large_loss
        Threshold above which the loss of a topic is large, as a share of the measure's range, or of the baseline's
        mean if the measure has no bounds. Every check reports the number of these topics.
    max_share_of_large_losses
        Maximum share of topics with a large loss; a check above it fails. None: no limit. The share is compared
        without a test, so it has no error rate.
    topics, ties, depth, dialect, exclude_self
        As for `evaluate`.
    by
        Attribute whose values are slices too, such as ``kind=law``.
    source_lines
        Line numbers of the tables and keys in the configuration file.

    Raises
    ------
    InputError
        If a value is invalid, there is neither a check nor a guardrail, or two checks are equal.

    Examples
    --------
    >>> GateConfig(checks=(Check("nDCG@10", margin=0.01),)).alpha
    0.05
    """

    checks: tuple[Check, ...] = ()
    guardrails: tuple[Guardrail, ...] = ()
    slices: tuple[Slice, ...] = ()
    attributes: str | None = None
    queries: str | None = None
    alpha: float = 0.05
    strict: bool = False
    test: GateTest = "randomization"
    correction: GateCorrection = "holm"
    resamples: int = 100_000
    seed: int = 0
    power: float = 0.8
    large_loss: float = 0.2
    max_share_of_large_losses: float | None = None
    topics: TopicPolicy | None = None
    ties: TieTreatment | None = None
    depth: int | None = None
    dialect: str | None = None
    exclude_self: bool | None = None
    by: str | None = None
    source_lines: SourceLines = field(default_factory=SourceLines, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("checks", "guardrails", "slices"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.checks and not self.guardrails:
            raise InputError("no check or guardrail", fix='add [[check]] with measure = "nDCG@10" and margin = 0.01')
        validate_settings(self)
        if self.power <= self.alpha:
            raise SettingError("power", f"power is {self.power}", "use a probability above alpha, such as 0.8")
        checks = [(check.measure, check.slice) for check in self.checks]
        slice_names = [ALL, *(topic_slice.name for topic_slice in self.slices)]
        for i, check in enumerate(self.checks):
            with self.source_lines.locate_errors("check", i):
                if checks[i] in checks[:i]:
                    raise InputError(f"duplicate check of {check.name}", fix="remove one of the two checks")
        for i, name in enumerate(slice_names[1:]):
            with self.source_lines.locate_errors("slice", i):
                if name in slice_names[: i + 1]:
                    raise InputError(f"the slice name {name!r} is already used", fix="use another name")

    @property
    def path(self) -> str:
        """Path of the configuration file, or empty text."""
        return self.source_lines.path


def validate_settings(settings: Check | Guardrail | GateConfig, *required: str) -> None:
    """Raise SettingError if a value is invalid, or missing although its key is in `required`."""
    for setting in fields(settings):
        key, value = setting.name, getattr(settings, setting.name)
        if key in _VALIDATORS and (value is not None or key in required) and (fix := _VALIDATORS[key](value)):
            raise SettingError(key, f"{key} is {'missing' if value is None else repr(value)}", fix)


def _require_text(expected: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value.strip() else f"use {expected}"


def _require_number(expected: str, is_valid: Callable[[float], bool] = lambda _: True) -> Callable[[Any], str]:
    def fix(value: Any) -> str:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Not math.isfinite: it raises OverflowError for an integer that is larger than any double.
        is_finite = is_number and abs(value) <= sys.float_info.max
        return "" if is_finite and is_valid(value) else f"use {expected}"

    return fix


def _require_integer(minimum: int) -> Callable[[Any], str]:
    return _require_number(
        f"an integer of at least {minimum}", lambda value: isinstance(value, int) and value >= minimum
    )


def _require_choice(*choices: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value in choices else suggest_name(str(value), choices)


_VALIDATORS: dict[str, Callable[[Any], str]] = {
    "measure": _require_text("a name such as nDCG@10"),
    "slice": _require_text('the name of a [[slice]], or "all"'),
    "margin": _require_number("0 or more, such as 0.01", lambda value: value >= 0),
    "margin_relative": _require_number("a share of at least 0 and below 1, such as 0.02", lambda value: 0 <= value < 1),
    "min_topics": _require_integer(2),
    **dict.fromkeys(("strict", "exclude_self"), lambda value: "" if isinstance(value, bool) else "use true or false"),
    "large_loss": _require_number("a share of the measure's range, such as 0.2", lambda value: 0 < value <= 1),
    "max_share_of_large_losses": _require_number("a share of the topics, such as 0.05", lambda value: 0 <= value < 1),
    "at_least": _require_number("a share from 0 to 1, such as 0.9", lambda value: 0 <= value <= 1),
    "at_most_below_baseline": _require_number("a share from 0 to 1", lambda value: 0 <= value <= 1),
    "table": _require_text("a path in quotes"),
    "column": _require_text("the name of a column of numbers"),
    "at_most": _require_number("a number"),
    "at_most_ratio": _require_number("a number such as 1.1", lambda value: value >= 0),
    "quantile": _require_number("a share from 0 to 1, such as 0.95", lambda value: 0 <= value <= 1),
    "missing_topics": _require_integer(0),
    "by": _require_text('the name of an attribute: by = "kind"'),
    "attributes": _require_text('a path: attributes = "topics.csv"'),
    "queries": _require_text('a path: queries = "queries.tsv"'),
    "alpha": _require_number("a probability above 0 and below 0.5, such as 0.05", lambda value: 0 < value < 0.5),
    "test": _require_choice(*get_args(GateTest)),
    "correction": _require_choice(*get_args(GateCorrection)),
    "resamples": _require_integer(1000),
    "seed": _require_integer(0),
    "power": _require_number("a probability above alpha and below 1, such as 0.8", lambda value: 0 < value < 1),
    "topics": _require_choice(*get_args(TopicPolicy)),
    "ties": _require_choice(*get_args(TiePolicy), "expected", "bounds"),
    "depth": _require_integer(1),
    "dialect": _require_choice(*DIALECTS),
}
"""For each key, a function that returns how to fix a value, or empty text if the value is valid."""


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
