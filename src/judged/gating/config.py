"""What a gate is asked: checks with their margins, guardrails, and how sure it must be."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from judged.evaluation.facts import TieTreatment
    from judged.judging import TopicPolicy
    from judged.slicing.slices import Slice

ALL = "all"
"""The slice of all topics."""

MINIMUM = 10
"""The least number of topics that a check is decided by, where neither the check nor its slice names one."""

GateTest: TypeAlias = Literal["randomisation", "t"]
GateCorrection: TypeAlias = Literal["holm", "bonferroni", "none"]
_TOPICS = ("qrels", "run", "both")
_TIES = ("docid", "docid-rising", "stable", "rank", "expected", "bounds")


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
    minimum
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
    minimum: int | None = None
    strict: bool | None = None
    large_loss: float | None = None
    max_share_of_large_losses: float | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        _text("measure", self.measure, "a name such as nDCG@10")
        _text("slice", self.slice, "the name of a [[slice]], or all")
        if (self.margin is None) == (self.margin_relative is None):
            problem = "both margin and margin_relative are given" if self.margin is not None else "it has no margin"
            raise InputError(
                problem,
                fix="give one of margin = 0.01 (in the measure's unit) and margin_relative = 0.02 (a share of the"
                " baseline's mean): the largest loss that nobody would care about",
            )
        _number("margin", self.margin, 0.0, math.inf, "0 or more, such as 0.01")
        _number("margin_relative", self.margin_relative, 0.0, 1.0, "a share from 0 up to 1, such as 0.02")
        _whole("minimum", self.minimum, 2)
        _flag("strict", self.strict)
        _large_losses(self.large_loss, self.max_share_of_large_losses)

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
                raise InputError(f"{one.name} does not go with {kind}", fix=f"with {kind} goes {allowed}")
        for name in needed:
            _text(name, getattr(self, name), "the name of a column of numbers")
        bounds = [name for name in limits if name != "quantile"]
        if bounds and all(getattr(self, name) is None for name in bounds):
            raise InputError("it has no limit", fix=f"give {' or '.join(bounds)}")
        if kind != "missing_topics":
            _text(kind, getattr(self, kind), "a text in quotes")
        self._check_numbers()

    def _check_numbers(self) -> None:
        _number("at_least", self.at_least, 0.0, 1.0, "a share from 0 to 1, such as 0.9", closed=True)
        _number("at_most_below_baseline", self.at_most_below_baseline, 0.0, 1.0, "a share from 0 to 1", closed=True)
        _number("at_most", self.at_most, -math.inf, math.inf, "a number")
        _number("at_most_ratio", self.at_most_ratio, 0.0, math.inf, "a number such as 1.1")
        _number("quantile", self.quantile, 0.0, 1.0, "a share from 0 to 1, such as 0.95", closed=True)
        _whole("missing_topics", self.missing_topics, 0)

    @property
    def kind(self) -> Literal["judged", "table", "missing topics"]:
        """Which of the three it is."""
        return "judged" if self.measure is not None else "table" if self.table is not None else "missing topics"

    @property
    def name(self) -> str:
        """How results call it."""
        if self.kind == "missing topics":
            return "missing topics"
        if self.kind == "judged":
            return f"{self.measure} (judged share)"
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
        What must hold besides.
    slices
        The slices that checks name: expressions over attributes of the topics.
    attributes, queries
        Files with what is known of the topics, and with their texts. Relative paths count from the folder of the
        configuration. What neither has may be derived: see `judged.slicing.derived.known_topics`.
    alpha
        The chance of failing a change that loses no more than the margins, over all checks together; and, for each
        check, that of passing one that loses as much as its margin. Below 0.5.
    strict
        Whether the gate fails where a check is inconclusive.
    test
        ``randomisation`` (signs of differences flipped) or ``t``.
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
    topics, ties, depth, dialect
        As for `evaluate`.
    path
        The file that it was read from, if any.
    lines
        Where it names ``attributes`` and ``queries``, and begins ``slice 1`` and so on.

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
    path: str = ""
    lines: Mapping[str, int] = field(default_factory=dict[str, int], compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("checks", "guardrails", "slices"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.checks and not self.guardrails:
            raise InputError("nothing is checked", fix='add [[check]] with measure = "nDCG@10" and margin = 0.01')
        _number("alpha", self.alpha, 0.0, 0.5, "a chance above 0 and below 0.5, such as 0.05", above=True)
        _number("power", self.power, self.alpha, 1.0, "a chance above alpha and below 1, such as 0.8", above=True)
        _flag("strict", self.strict)
        _large_losses(self.large_loss, self.max_share_of_large_losses)
        _choice("test", self.test, get_args(GateTest))
        _choice("correction", self.correction, get_args(GateCorrection))
        _whole("resamples", self.resamples, 1000)
        _whole("seed", self.seed, 0)
        _whole("depth", self.depth, 1)
        _choice("topics", self.topics, _TOPICS)
        _choice("ties", self.ties, _TIES)
        check_dialect(self.dialect)
        _known_slices(self.checks, self.slices)


def _known_slices(checks: Iterable[Check], slices: Iterable[Slice]) -> None:
    """Refuse checks that say the same, and slices of one name."""
    seen: set[tuple[str, str]] = set()
    for at, check in enumerate(checks, 1):
        if (check.measure, check.slice) in seen:
            raise InputError(f"[[check]] {at} repeats {check.name}", fix="keep one of the two")
        seen.add((check.measure, check.slice))
    names = [one.name for one in slices]
    for name in names:
        if name == ALL or names.count(name) > 1:
            problem = "a slice is named all, which is every topic" if name == ALL else f"two slices are named {name!r}"
            raise InputError(problem, fix="give it another name")


def check_dialect(name: Any) -> None:
    """Refuse what is no name of a dialect."""
    if name is not None:
        from judged.evaluation import DIALECTS

        _choice("dialect", name, DIALECTS)


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was meant, or all of them.

    >>> nearest("margn", ["margin", "slice"]), nearest("x", ["margin", "slice"])
    ('write margin', 'one of margin, slice')
    """
    import difflib

    names = list(known)
    close = difflib.get_close_matches(name, names, 1, 0.5)
    return f"write {close[0]}" if close else f"one of {', '.join(names)}"


def _text(key: str, value: Any, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{key} is {_shown(value)}", fix=f"give {what}")


def _number(
    key: str, value: Any, low: float, high: float, what: str, *, above: bool = False, closed: bool = False
) -> None:
    """Refuse what is no number in [low, high), in (low, high) or in [low, high]."""
    if value is None:
        return
    fine = (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max  # a whole number may be larger than any double
        and (low < value if above else low <= value)
        and (value <= high if closed else value < high)
    )
    if not fine:
        raise InputError(f"{key} is {_shown(value)}", fix=f"give {what}")


def _whole(key: str, value: Any, least: int) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
        raise InputError(f"{key} is {_shown(value)}", fix=f"give a whole number from {least}")


def _large_losses(large: Any, most: Any) -> None:
    _number("large_loss", large, 0.0, 1.0, "a share of the measure's range, such as 0.2", above=True, closed=True)
    _number("max_share_of_large_losses", most, 0.0, 1.0, "a share of the topics from 0 up to 1, such as 0.05")


def _flag(key: str, value: Any) -> None:
    if value is not None and not isinstance(value, bool):
        raise InputError(f"{key} is {_shown(value)}", fix="write true or false")


def _choice(key: str, value: Any, known: Iterable[str]) -> None:
    names = list(known)
    if value is not None and value not in names:
        how = nearest(value, names) if isinstance(value, str) else f"one of {', '.join(names)}"
        raise InputError(f"{key} is {_shown(value)}", fix=how)


def _shown(value: Any) -> str:
    return "not given" if value is None else f"{value!r}"
