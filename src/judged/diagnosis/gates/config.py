"""What a gate is asked: checks with their margins, guardrails, and how sure it must be."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from judged.comparison.slicing.topic_slices import Slice, parse_slices
from judged.data.toml_files import Places, SettingError, nearest, parse_toml, read_toml
from judged.errors import InputError, MeasureError
from judged.scoring.default_measures import DEFAULT_MEASURE
from judged.scoring.evaluation import DIALECTS, dialect_of, measures_of
from judged.scoring.judging import TopicPolicy
from judged.scoring.judging.ranking import TiePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from judged.scoring.evaluation import Dialect
    from judged.scoring.evaluation.facts import TieTreatment
    from judged.scoring.measures.base import Measure


ALL = "all"
"""The slice of all topics."""

GateTest: TypeAlias = Literal["randomisation", "t", "bounded"]
GateCorrection: TypeAlias = Literal["holm", "bonferroni", "none"]


@dataclass(frozen=True)
class Check:
    """One thing that the candidate must not lose.

    Parameters
    ----------
    measure
        Its name, as for `evaluate`.
    margin
        The largest loss that nobody would care about, in the measure's unit; from 0.
    margin_relative
        The same as a share of the baseline's mean over the slice. One of the two must be given.
    slice
        The name of a slice, or ``all``.
    min_topics
        With fewer topics nothing is decided. None: the slice's own minimum, or 10.
    strict
        Whether this check fails where it is inconclusive. None: as the gate.
    large_loss, max_share_of_large_losses
        In place of those of the gate.
    line
        Where it stands in its file.

    Raises
    ------
    InputError
        If a value makes no sense.

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
            problem = "both margin and margin_relative are given" if self.margin is not None else "it has no margin"
            raise InputError(
                problem,
                fix="give one of margin = 0.01 (in the measure's unit) and margin_relative = 0.02 (a share of the"
                " baseline's mean): the largest loss that nobody would care about",
            )
        refuse_wrong(self, "measure", "slice")

    @property
    def name(self) -> str:
        """How results call it."""
        return self.measure if self.slice == ALL else f"{self.measure} in {self.slice}"


@dataclass(frozen=True)
class Guardrail:
    """A limit on a number that is known, not estimated: it is compared as it stands.

    There are three kinds: ``measure`` (the mean share of judged documents, ``Judged@k``), ``table`` with ``column``
    (numbers by run, such as latencies), and ``missing_topics``.

    Parameters
    ----------
    measure
        ``Judged@k``, with `at_least` or `at_most_below_baseline`, or both.
    at_least
        The least share that the candidate may have.
    at_most_below_baseline
        By how much its share may be less than the baseline's.
    table, column
        A file with a column ``run`` and a column of numbers, with `at_most` or `at_most_ratio`, or both. The column
        ``run`` names the two runs, or calls them ``baseline`` and ``candidate``.
    at_most
        The largest number that the candidate may have.
    at_most_ratio
        How many times the baseline's number it may be.
    quantile
        Of the rows of a run, where it has several: the least number that this share of them does not exceed.
    missing_topics
        For how many topics the candidate may return nothing, of those for which the baseline returns something.
    line
        Where it stands in its file.

    Raises
    ------
    InputError
        If it is of no kind, or of several, or a value makes no sense.
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
            problem = f"it is of several kinds: {', '.join(kinds)}" if kinds else "it limits nothing"
            raise InputError(problem, fix=f"give one of {', '.join(_KINDS)}")
        (kind,) = kinds
        limits, needed = _KINDS[kind]
        for one in fields(self):
            if one.name not in {kind, "line", *limits, *needed} and getattr(self, one.name) is not None:
                allowed = ", ".join((*needed, *limits)) or "nothing else"
                raise SettingError(one.name, f"{one.name} does not go with {kind}", f"with {kind} goes {allowed}")
        bounds = [name for name in limits if name != "quantile"]
        if bounds and all(getattr(self, name) is None for name in bounds):
            raise InputError("it has no limit", fix=f"give {' or '.join(bounds)}")
        refuse_wrong(self, *needed)

    @property
    def kind(self) -> Literal["judged", "table", "missing topics"]:
        """Which of the three it is."""
        return "judged" if self.measure is not None else "table" if self.table is not None else "missing topics"

    @property
    def name(self) -> str:
        """How results call it."""
        if self.measure is not None:
            return f"{self.measure} (judged share)"
        if self.table is None:
            return self.kind
        return f"{self.column}" if self.quantile is None else f"{self.column}, quantile {self.quantile:g}"


_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # what limits it, and what it also needs
    "measure": (("at_least", "at_most_below_baseline"), ()),
    "table": (("at_most", "at_most_ratio", "quantile"), ("column",)),
    "missing_topics": ((), ()),
}


@dataclass(frozen=True)
class GateConfig:
    """What a gate is asked; `read_config` reads one from a TOML file.

    Parameters
    ----------
    checks
        What must not be lost.
    guardrails
        What must hold as well.
    slices
        The slices that checks name: expressions over attributes of the topics.
    attributes, queries
        Files with facts about the topics, and with their texts. Relative paths count from the folder of the
        configuration. What neither has may be derived: see `judged.slicing.derived.topic_attributes`.
    alpha
        The chance of failing a change that loses no more than the margins, over all checks together; and, for each
        check, that of passing one that loses as much as its margin. Below 0.5.
    strict
        Whether the gate fails where a check is inconclusive.
    test
        ``randomisation`` (signs of differences flipped), ``t``, or ``bounded``, which holds for every distribution and
        number of topics, and needs measures with bounds.
    correction
        Of the failures for the number of checks: ``holm``, ``bonferroni`` or ``none``.
    resamples, seed
        Of the randomisation test.
    power
        With which chance the losses would have been noticed that results call detectable.
    large_loss
        Every check shows how many topics lost more than this share of the measure's range, or of the baseline's mean
        where the measure has no bounds.
    max_share_of_large_losses
        A check fails where a larger share of its topics did. None: they are shown, and decide nothing. This compares a
        number as it stands, as a guardrail does: it has no error rate.
    topics, ties, depth, dialect, exclude_self
        As for `evaluate`.
    places
        Where its parts stand in the file that it was read from.

    Raises
    ------
    InputError
        If a value makes no sense, there is neither check nor guardrail, or two checks are the same.

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
    test: GateTest = "randomisation"
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
    places: Places = field(default_factory=Places, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("checks", "guardrails", "slices"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.checks and not self.guardrails:
            raise InputError("nothing is checked", fix='add [[check]] with measure = "nDCG@10" and margin = 0.01')
        refuse_wrong(self)
        if self.power <= self.alpha:
            raise SettingError("power", f"power is {self.power}", "give a chance above alpha, such as 0.8")
        checks = [(check.measure, check.slice) for check in self.checks]
        names = [ALL, *(one.name for one in self.slices)]
        for at, check in enumerate(self.checks):
            with self.places.part("check", at):
                if (check.measure, check.slice) in checks[:at]:
                    raise InputError(f"it repeats {check.name}", fix="keep one of the two")
        for at, one in enumerate(self.slices, 1):
            with self.places.part("slice", at - 1):
                if one.name in names[:at]:
                    raise InputError(f"the name {one.name!r} is taken", fix="give it another one")

    @property
    def path(self) -> str:
        """The file that it was read from, if any."""
        return self.places.path


def refuse_wrong(part: Check | Guardrail | GateConfig, *needed: str) -> None:
    """Refuse a value that makes no sense; None is one only where the value is needed."""
    for one in fields(part):
        key, value = one.name, getattr(part, one.name)
        if key in _FIXES and (value is not None or key in needed) and (fix := _FIXES[key](value)):
            raise SettingError(key, f"{key} is {'not given' if value is None else repr(value)}", fix)


def _text(what: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value.strip() else f"give {what}"


def _number(what: str, fine: Callable[[float], bool] = lambda _: True) -> Callable[[Any], str]:
    def fix(value: Any) -> str:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        finite = number and abs(value) <= sys.float_info.max  # a whole number may be larger than any double
        return "" if finite and fine(value) else f"give {what}"

    return fix


def _whole(least: int) -> Callable[[Any], str]:
    return _number(f"a whole number from {least}", lambda value: isinstance(value, int) and value >= least)


def _choice(*known: str) -> Callable[[Any], str]:
    return lambda value: "" if isinstance(value, str) and value in known else nearest(str(value), known)


_FIXES: dict[str, Callable[[Any], str]] = {
    "measure": _text("a name such as nDCG@10"),
    "slice": _text("the name of a [[slice]], or all"),
    "margin": _number("0 or more, such as 0.01", lambda value: value >= 0),
    "margin_relative": _number("a share from 0 up to 1, such as 0.02", lambda value: 0 <= value < 1),
    "min_topics": _whole(2),
    **dict.fromkeys(("strict", "exclude_self"), lambda value: "" if isinstance(value, bool) else "write true or false"),
    "large_loss": _number("a share of the measure's range, such as 0.2", lambda value: 0 < value <= 1),
    "max_share_of_large_losses": _number("a share of the topics, such as 0.05", lambda value: 0 <= value < 1),
    "at_least": _number("a share from 0 to 1, such as 0.9", lambda value: 0 <= value <= 1),
    "at_most_below_baseline": _number("a share from 0 to 1", lambda value: 0 <= value <= 1),
    "table": _text("a text in quotes"),
    "column": _text("the name of a column of numbers"),
    "at_most": _number("a number"),
    "at_most_ratio": _number("a number such as 1.1", lambda value: value >= 0),
    "quantile": _number("a share from 0 to 1, such as 0.95", lambda value: 0 <= value <= 1),
    "missing_topics": _whole(0),
    "attributes": _text('a path: attributes = "topics.csv"'),
    "queries": _text('a path: queries = "queries.tsv"'),
    "alpha": _number("a chance above 0 and below 0.5, such as 0.05", lambda value: 0 < value < 0.5),
    "test": _choice(*get_args(GateTest)),
    "correction": _choice(*get_args(GateCorrection)),
    "resamples": _whole(1000),
    "seed": _whole(0),
    "power": _number("a chance above alpha and below 1, such as 0.8", lambda value: 0 < value < 1),
    "topics": _choice(*get_args(TopicPolicy)),
    "ties": _choice(*get_args(TiePolicy), "expected", "bounds"),
    "depth": _whole(1),
    "dialect": _choice(*DIALECTS),
}
"""What to do about a value of each key; nothing where it is fine."""


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
        wanted = measures_of(DEFAULT_MEASURE if measures is None else measures)
        return GateConfig(tuple(Check(str(one), margin=margin, margin_relative=margin_relative) for one in wanted))
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, Mapping):
        return _config(given, Places())
    if isinstance(given, (str, Path)):
        return read_config(given)
    problem = f"{type(given).__name__} is not a configuration of a gate"
    raise InputError(problem, fix="give GateConfig, a path to a TOML file, or a dict")


def read_config(path: str | Path) -> GateConfig:
    """Read the configuration of a gate from a TOML file."""
    # `path`: tables `[gate]`, `[[check]]`, `[[guardrail]]` and `[[slice]]`, and `attributes`. Their keys are the
    # parameters of `GateConfig`, `Check`, `Guardrail` and `judged.slicing.Slice`.
    fix = "write one with 'judged gate init', or check one measure without: -m nDCG@10 --margin 0.01"
    return parse_config(read_toml(path, fix), path=str(path))


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
        return parse_slices([keys])[0]
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
