"""Configuration of a gate: checks with margins, guardrails, and error rates."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from judged.comparison.slicing.topic_slices import Slice
from judged.data.toml_files import SettingError, SourceLines, suggest_name
from judged.errors import InputError
from judged.scoring.evaluation import DIALECTS
from judged.scoring.judging import TopicPolicy
from judged.scoring.judging.ranking import TiePolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.scoring.evaluation.facts import TieTreatment


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
