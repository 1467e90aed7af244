"""Typed tables and actions of an interaction log, and the validation of arguments about logs."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

from judged.errors import InputError
from judged.online.findings import Account, LogFinding, has_no_user_ids, unfit_log_notes, unfit_reasons
from judged.results import Answer, Sentences
from judged.results.decimals import counted
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from judged.online.engine import Database, Relation
    from judged.results.blocks import Note


Type: TypeAlias = Literal[
    "int64", "int32", "float64", "string", "boolean", "array<string>", "array<int32>", "array<float64>"
]


@dataclass(frozen=True)
class LogColumn:
    """Column of a typed table: name, type, whether it is nullable, and meaning."""

    name: str
    type: Type
    null: bool
    meaning: str


def arrow_type(type: Type) -> Any:
    """Return the Arrow type of a column type."""
    import pyarrow as pa

    value_type = pa.type_for_alias(type.removeprefix("array<").removesuffix(">"))
    return pa.list_(value_type) if type.startswith("array<") else value_type


_DEFINITIONS = tomllib.loads((resources.files("judged.online") / "tables.toml").read_text(encoding="utf-8"))


def _columns(table: dict[str, tuple[str, str]]) -> tuple[LogColumn, ...]:
    return tuple(
        LogColumn(name, cast("Type", kind.removesuffix("?")), kind.endswith("?"), meaning)
        for name, (kind, meaning) in table.items()
    )


SERP, SHOWN, EVENT, SESSION = (_columns(_DEFINITIONS[name]) for name in ("serp", "shown", "event", "session"))
"""Typed tables with one row per result page, per result on a page, per event, and per session."""

RAW_QUERY, RAW_EVENT = (_columns(_DEFINITIONS["raw"][name]) for name in ("query", "event"))
"""Raw tables with one row per logged query (or result page), and per logged event."""

ACTIONS: tuple[str, ...] = tuple(_DEFINITIONS["actions"])
"""Actions that metrics use. Readers map the names in a log to them."""

PROPENSITY_CONVENTIONS = ("marginal", "conditional", "independent")
"""Meanings of a logged propensity: the probability of the document at its rank over all pages that the policy may show
(marginal), or given the documents at higher ranks (conditional). If ranks are filled independently, both are equal."""

ACTIONS_ON_RESULT = ("heartbeat", "add_to_cart", "purchase")
"""Actions on an opened result, which do not end the visit."""

RETURN_ACTIONS = ("click", "impression", "hover", "copy", "search")
"""Actions that end a visit, because the user is back on the result page; so does a ``page_exit`` of the result."""

ATTRIBUTE_LIMIT = 50
"""Maximum number of additional log columns that are kept for slicing."""


NAMES: dict[str, str] = {action: names for action, (_, names) in _DEFINITIONS["actions"].items() if names}
"""Known synonyms of each action, separated by blanks."""

_ACTION_OF_SYNONYM = {name: action for action, names in NAMES.items() for name in names.split()}


def action_of(name: str, actions: Mapping[str, str] | None = None) -> str | None:
    """Return the action that a name in a log stands for.

    Parameters
    ----------
    name
        Name in the log. Case is ignored; blanks and hyphens equal underscores.
    actions
        Names that this log defines. They take precedence.

    Returns
    -------
    str or None
        One of ACTIONS; None if the name is unknown.

    Examples
    --------
    >>> action_of("Item-Click"), action_of("view"), action_of("view", {"view": "click"})
    ('click', None, 'click')
    """
    if actions and name in actions:
        return actions[name]
    normalized = name.strip().lower().replace("-", "_").replace(" ", "_")
    return normalized if normalized in ACTIONS else _ACTION_OF_SYNONYM.get(normalized)


def check_actions(actions: Mapping[str, str]) -> dict[str, str]:
    """Check that all values are actions, and return a copy.

    Raises
    ------
    InputError
        If a value is not in ACTIONS.
    """
    for name, action in actions.items():
        if action not in ACTIONS:
            raise InputError(f"{name!r} maps to the unknown action {action!r}", fix=use_one_of(ACTIONS))
    return dict(actions)


@dataclass(frozen=True, repr=False)
class InteractionLog:
    """Interactions of users with result pages: the common data model of all log readers and metrics.

    The tables are in one database. Their columns are described in `judged.online.log`.

    Parameters
    ----------
    serp, shown, event, session
        The typed tables.
    name
        Name in results.
    layout
        Layout that it was read as.
    files
        Files that were read.
    has_time
        False: only the order of events is known, so that metrics of durations are not supported.
    dated
        False: dates are artificial, so that analyses over days are not supported.
    has
        Data that the log contains: of `judged.online.metrics.CAPABILITIES`. A metric that needs other data is
        refused with a reason and not reported as 0.
    findings
        Problems of the log, and the actions taken.
    accounts
        Numbers of rows that were read, kept, and excluded.
    attributes
        Additional columns of `serp`, for slicing.
    policies
        Names and values of preparation options (session gap, bots, rank base), shown with results.
    propensity_convention
        One of `judged.online.log.PROPENSITY_CONVENTIONS`; empty: not declared.
    """

    serp: Relation
    shown: Relation
    event: Relation
    session: Relation
    name: str = "log"
    layout: str = "tables"
    files: tuple[str, ...] = ()
    has_time: bool = True
    dated: bool = True
    has: frozenset[str] = frozenset()
    findings: tuple[LogFinding, ...] = ()
    accounts: tuple[Account, ...] = ()
    attributes: tuple[str, ...] = ()
    policies: tuple[tuple[str, str], ...] = ()
    propensity_convention: str = ""

    @property
    def engine(self) -> Database:
        """Database of the tables, which is deleted when nothing refers to it any more."""
        return self.serp.engine

    def __repr__(self) -> str:
        # The generated repr would contain the SQL of all tables.
        files = "no file" if not self.files else counted(len(self.files), "file")
        has = ", ".join(sorted(self.has)) or "nothing"
        clock = "" if self.has_time else ", no timestamps"
        findings = counted(len(self.findings), "finding")
        return f"InteractionLog({self.name!r:.60}: {self.layout}, {files}, {findings}{clock}; has {has})"


@dataclass(frozen=True, eq=False, repr=False)
class FieldAnswer(Answer):
    """Answer whose title and facts are built from its fields."""

    fact_fields: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are included in JSON."""
    title_format: ClassVar[str] = ""
    """Format string of the title, with field names as placeholders."""

    @property
    def title(self) -> str:
        """Title of the result."""
        return self.title_format.format_map(vars(self))

    def facts(self) -> Mapping[str, Any]:
        """Return the fields named in `fact_fields`."""
        return {name: getattr(self, name) for name in self.fact_fields}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogAnswer(FieldAnswer):
    """Result about a log.

    Parameters
    ----------
    log
        Name of the log.
    unit, level
        Independent unit of confidence intervals, and confidence level.
    policies
        Options, name to value.
    notes
        Reasons why the log is not reliable.
    """

    log: str
    unit: str
    level: float
    policies: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Return the log, the options, and the fields named in `fact_fields`."""
        options = {"unit": self.unit, "level": self.level, "policies": dict(self.policies)}
        return {"log": self.log, **super().facts(), **options}

    def method_block(self, *sentences: str) -> Sentences:
        """Build the folded block about the method."""
        rules = (*sentences, *(f"{name}: {value}" for name, value in self.policies))
        return Sentences(rules, "method", "Method", folded=True)


def answer_fields(
    log: InteractionLog,
    unit: str,
    level: float,
    options: Mapping[str, str],
    settings: Any = None,
    warnings: Iterable[Note] = (),
) -> dict[str, Any]:
    """Return the fields that all results about logs share; empty policies are omitted."""
    used = [(name, value) for name, value in options.items() if value]
    policies = (*used, *log.policies, *(settings.policies() if settings else ()), *user_substitute_policy(log))
    interval_unit = "session" if has_no_user_ids(log.findings) else unit
    notes = (*unfit_log_notes(log.name, unfit_reasons(log.accounts, log.findings)), *warnings)
    return {"log": log.name, "unit": interval_unit, "level": level, "policies": policies, "notes": notes}


def user_counts(log: InteractionLog, users: int) -> tuple[tuple[str, int], ...]:
    """Count users with an ID, and sessions or pages without a user ID that serve as users.

    `users` is the total of both. The result is empty if the log has no user IDs.
    """
    if has_no_user_ids(log.findings):
        return ()
    if not any((finding.rule, finding.table) == ("no-user", "query") for finding in log.findings):
        return (("users", users),)
    identified = log.engine.rows(
        f"""SELECT count(DISTINCT s."user") AS users FROM {log.serp} AS s JOIN {log.session} AS v
            ON v.session = s.session WHERE v.user_id IS NOT NULL"""
    )[0]["users"]
    return (("users", identified), ("users without an ID", users - identified))


def user_substitute_policy(log: InteractionLog) -> tuple[tuple[str, str], ...]:
    """Return the policy of using sessions or pages as users, if the log has no user IDs."""
    substitute = "each session" if "sessions" in log.has else "each page"
    return (
        (("users", f"the log has no user IDs: {substitute} counts as a user"),) if has_no_user_ids(log.findings) else ()
    )


class _Rule(NamedTuple):
    """Predicate for valid values, and the fix for invalid ones."""

    is_valid: Callable[[Any], bool]
    fix: str


def _number(minimum: float, maximum: float, fix: str, *, ends: tuple[bool, bool] = (False, False)) -> _Rule:
    # `ends`: whether the minimum and the maximum are valid

    def is_valid(value: Any) -> bool:
        number = float(value) if isinstance(value, Real) else math.nan
        return minimum <= number <= maximum and (ends[0] or number > minimum) and (ends[1] or number < maximum)

    return _Rule(is_valid, fix)


def _integer(minimum: float, description: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, Integral) and int(value) >= minimum, f"use {description}")


def _one_of(*names: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, str) and value in names, f"use {' or '.join(names)}")


_TEXT = _Rule(lambda value: isinstance(value, str | None), "use a string")
_NAMES = _Rule(lambda value: isinstance(value, str | Iterable | None), "use a name or a list of names")
_PROBABILITY = _number(0, 1, "use a number between 0 and 1, such as 0.95")
_SECONDS = _number(0, 1e9, "use a number of seconds from 0 to 1e9", ends=(True, True))
_RULES = {
    **dict.fromkeys(("by", "where", "baseline", "since", "layout", "name", "memory", "tables"), _TEXT),
    **dict.fromkeys(("metrics", "measures", "lists", "rules", "outcomes"), _NAMES),
    **dict.fromkeys(("level", "alpha", "fdr", "power"), _PROBABILITY),
    **dict.fromkeys(("reformulation_gap", "attribution_window", "success", "dwell"), _SECONDS),
    **dict.fromkeys(("session_gap", "bot_minutes"), _number(0, math.inf, "use a number above 0")),
    **dict.fromkeys(
        ("bins", "min_pages", "min_users", "bot_pages", "threads", "expected"), _integer(1, "an integer of 1 or more")
    ),
    **dict.fromkeys(("seed", "warm_up", "now_ms"), _integer(-math.inf, "an integer")),
    "winsorize": _number(0, 1, "use a number above 0 and at most 1, such as 0.999", ends=(False, True)),
    "min_judged": _number(0, 1, "use a number from 0 to 1, such as 0.8", ends=(True, True)),
    "window_days": _number(0, 1e5, "use a number of days above 0, such as 7"),
    "before_days": _number(0, 1e5, "use a number of days of 0 or more, such as 14", ends=(True, False)),
    "margin_relative": _number(0, 1, "use a share from 0 to below 1, such as 0.02 for 2%", ends=(True, False)),
    **dict.fromkeys(("resamples", "splits"), _integer(100, "an integer of 100 or more")),
    "depth": _integer(2, "an integer of 2 or more"),
    "rank_base": _Rule(lambda value: isinstance(value, Integral) and value in {0, 1}, "use 0 or 1"),
    "actions": _Rule(
        lambda value: isinstance(value, Mapping), "use a dict that maps action names in the log to names in ACTIONS"
    ),
    "mapping": _Rule(lambda value: isinstance(value, str | Path), "use a path or the name of a mapping"),
    "unit": _one_of("user", "session"),
    "interval": _one_of("delta", "bootstrap"),
    "row": _one_of("page", "session"),
    "every": _one_of("hour", "day", "week"),
    "pages": _one_of("first", "all"),
    "bots": _one_of("exclude", "keep"),
}
# None is a valid value of these.
_OPTIONAL = frozenset({"warm_up", "now_ms", "threads", "rank_base", "actions", "mapping", "window_days"})


def validate(**arguments: object) -> None:
    """Validate arguments by the rules of their names.

    >>> validate(level=2)
    Traceback (most recent call last):
    judged.errors.InputError: level is 2. Fix: use a number between 0 and 1, such as 0.95.
    """
    for name, value in arguments.items():
        if name == "log":
            if not isinstance(value, InteractionLog):
                path = f'"{value}"' if isinstance(value, str) and len(value) < 80 else "path"
                raise InputError(f"expected a log, got {type(value).__name__}", fix=f"read the log: read_log({path})")
        elif name in _OPTIONAL and value is None:
            continue
        # bool is a subclass of int, so that True would be accepted as a number.
        elif (isinstance(value, bool) and _RULES[name] not in {_TEXT, _NAMES}) or not _RULES[name].is_valid(value):
            raise InputError(f"{name} is {value!r:.60}", fix=_RULES[name].fix)


def check_column(log: InteractionLog, name: str) -> None:
    """Check that the log's pages have a column."""
    if name not in log.serp.columns:
        fix = use_one_of(log.serp.columns)
        raise InputError(f"the log has no column {name!r}", fix=fix, path=log.name)


def parse_names(**arguments: object) -> list[str]:
    """Return the unique names in arguments that are a name or several names.

    >>> parse_names(rules="above"), parse_names(rules=["above", "next", "above"])
    (['above'], ['above', 'next'])
    """
    validate(**arguments)
    names: list[str] = []
    for parameter, value in arguments.items():
        for name in [value] if isinstance(value, str) else list(cast("Iterable[object]", value or ())):
            if not isinstance(name, str):
                raise InputError(f"{parameter} is {name!r:.60}", fix="use a name or a list of names")
            names.append(name)
    return list(dict.fromkeys(names))


def check_has_records(log: InteractionLog) -> None:
    """Raise InputError if a log has no records.

    Parameters
    ----------
    log
        Log as returned by `read_log`.

    Raises
    ------
    InputError
        If no query and no event was read, and none was lost.
    """
    if not log.accounts or any(account.read for account in log.accounts):
        return
    if any(finding.action == "lost" for finding in log.findings):
        return
    if log.files and all(map(_is_blank, log.files)):
        count = len(log.files)
        problem = "the file is empty" if count == 1 else f"all {count} files of this log are empty"
        raise InputError(problem, fix="use a log with queries and events", path=log.files[0])
    fix = "check the file, and the layout or mapping"
    raise InputError("the log has no queries and no events", fix=fix, path=log.files[0] if log.files else log.name)


def _is_blank(name: str) -> bool:
    """Return whether a file contains only white space. Standard input cannot be read again and is not blank."""
    from judged.online.readers.files import LogFile, read_head

    file = Path(name)
    return file.is_file() and not read_head(LogFile(name, file)).strip()
