"""An interaction log: its typed tables, its actions, and what is known of how it was read."""

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
from judged.online.findings import Account, LogFinding, are_of_nobody, doubts, unfit
from judged.results import Answer, Sentences
from judged.results.decimals import counted

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation
    from judged.results.blocks import Note


Type: TypeAlias = Literal[
    "int64", "int32", "float64", "string", "boolean", "array<string>", "array<int32>", "array<float64>"
]


@dataclass(frozen=True)
class Column:
    """A column of a typed table: its name, its type, whether it may be null, and what it means."""

    name: str
    type: Type
    null: bool
    meaning: str


def arrow_type(type: Type) -> Any:
    """Give one of our types in Arrow's words."""
    import pyarrow as pa

    inner = pa.type_for_alias(type.removeprefix("array<").removesuffix(">"))
    return pa.list_(inner) if type.startswith("array<") else inner


_FILE = tomllib.loads((resources.files("judged.online") / "tables.toml").read_text(encoding="utf-8"))


def _columns(table: dict[str, tuple[str, str]]) -> tuple[Column, ...]:
    return tuple(
        Column(name, cast("Type", kind.removesuffix("?")), kind.endswith("?"), meaning)
        for name, (kind, meaning) in table.items()
    )


SERP, SHOWN, EVENT, SESSION = (_columns(_FILE[name]) for name in ("serp", "shown", "event", "session"))
"""One row a page of results; a result on a page; an event; a session."""

RAW_QUERY, RAW_EVENT = (_columns(_FILE["raw"][name]) for name in ("query", "event"))
"""One row a logged query, or page of its results; one row a logged event."""

ACTIONS: tuple[str, ...] = tuple(_FILE["actions"])
"""The actions that metrics know. Readers map the log's own names onto them."""

CONVENTIONS = ("marginal", "conditional", "independent")
"""What a logged propensity is the probability of: the document at its rank over all pages that the policy may show
(marginal), or given the documents at higher ranks (conditional). If each rank is filled on its own (independent), both
are the same."""

AFTER_THE_CLICK = ("heartbeat", "add_to_cart", "purchase")
"""What a user does on an opened result: none of it ends the visit."""

RETURNS = ("click", "impression", "hover", "copy", "search")
"""What shows that a user is back from an opened result; so does a ``page_exit`` that names what was opened."""

ATTRIBUTE_LIMIT = 50
"""So many columns of a log's own are kept for slicing."""


NAMES: dict[str, str] = {action: names for action, (_, names) in _FILE["actions"].items() if names}
"""The names by which logs call each action."""

_KNOWN = {name: action for action, names in NAMES.items() for name in names.split()}


def action_of(name: str, actions: Mapping[str, str] | None = None) -> str | None:
    """Tell what a log's name of an action means.

    Parameters
    ----------
    name
        As the log has it. Case does not matter, and blanks and hyphens are as good as underscores.
    actions
        What this log says itself, which goes first.

    Returns
    -------
    str or None
        One of ACTIONS; None: nobody knows.

    Examples
    --------
    >>> action_of("Item-Click"), action_of("view"), action_of("view", {"view": "click"})
    ('click', None, 'click')
    """
    given = actions or {}
    if name in given:
        return given[name]
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    return plain if plain in ACTIONS else _KNOWN.get(plain)


def checked(actions: Mapping[str, str]) -> dict[str, str]:
    """Check that names mean actions that there are.

    Raises
    ------
    InputError
        If one does not.
    """
    for name, action in actions.items():
        if action not in ACTIONS:
            raise InputError(
                f"{name!r} is said to mean {action!r}, which is no action", fix=f"one of {', '.join(ACTIONS)}"
            )
    return dict(actions)


@dataclass(frozen=True, repr=False)
class InteractionLog:
    """What users did on result pages: the narrow waist of online evaluation.

    The tables are those of one database, with the columns that `judged.online.log` describes; whatever reads logs
    ends here, and every metric begins here.

    Parameters
    ----------
    serp, shown, event, session
        The typed tables.
    name
        What to call it in results.
    layout
        What it was read as.
    files
        From where.
    has_time
        False: the order of things is known and the clock is not, so that nothing is said about durations.
    dated
        False: days are made up, and nothing is said of days or of what changes over them.
    has
        What this log can tell: of `judged.online.metrics.TELLS`. A metric that needs something else is
        refused with a reason, not reported as 0.
    findings
        What was wrong with it, and what was done about that.
    accounts
        Where every row went.
    attributes
        Columns of `serp` that are the log's own, to slice by.
    policies
        The choices made while it was made (session gap, bots, rank base), name to value, printed with results.
    propensity_convention
        What propensities are probabilities of, one of `judged.online.log.CONVENTIONS`; empty: not declared.
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
    def engine(self) -> Engine:
        """The database that the tables live in: it is given up when nothing refers to it any more."""
        return self.serp.engine

    def __repr__(self) -> str:
        """Say what it is in one line: its tables would be thousands of characters, and are not run for this."""
        files = "no file" if not self.files else counted(len(self.files), "file")
        has = ", ".join(sorted(self.has)) or "nothing"
        clock = "" if self.has_time else ", no clock"
        findings = counted(len(self.findings), "finding")
        return f"InteractionLog({self.name!r:.60}: {self.layout}, {files}, {findings}{clock}; tells {has})"


@dataclass(frozen=True, eq=False, repr=False)
class FieldAnswer(Answer):
    """An answer whose title and facts are made of its fields."""

    asked: ClassVar[tuple[str, ...]] = ()
    """Fields that JSON repeats."""
    answers: ClassVar[str] = ""
    """The title, over its fields."""

    @property
    def title(self) -> str:
        """What it answers."""
        return self.answers.format_map(vars(self))

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        return {name: getattr(self, name) for name in self.asked}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogAnswer(FieldAnswer):
    """An answer about a log.

    Parameters
    ----------
    log
        The log's name.
    unit, level
        What intervals are made over, and how wide they are.
    policies
        What was chosen, name to value.
    notes
        Why the log should not be trusted as it is.
    """

    log: str
    unit: str
    level: float
    policies: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        own = {"unit": self.unit, "level": self.level, "policies": dict(self.policies)}
        return {"log": self.log, **super().facts(), **own}

    def made(self, *said: str) -> Sentences:
        """Say how it was made, for those who ask."""
        rules = (*said, *(f"{name}: {value}" for name, value in self.policies))
        return Sentences(rules, "rules", "How this was made", folded=True)


def about(
    log: InteractionLog, unit: str, level: float, first: Mapping[str, str], settings: Any = None
) -> dict[str, Any]:
    """Give the fields that every answer about a log has; policies that are empty are none."""
    chosen = [(name, value) for name, value in first.items() if value]
    policies = (*chosen, *log.policies, *(settings.policies() if settings else ()), *taken_as_users(log))
    over = "session" if are_of_nobody(log.findings) else unit
    notes = unfit(log.name, doubts(log.accounts, log.findings))
    return {"log": log.name, "unit": over, "level": level, "policies": policies, "notes": notes}


def user_counts(log: InteractionLog, users: int) -> tuple[tuple[str, int], ...]:
    """Return how many of the users that have a page are named, and how many are sessions or pages without a name.

    Empty where the log names none; `users` is the number of both together.
    """
    if are_of_nobody(log.findings):
        return ()
    if not any((one.rule, one.table) == ("no-user", "query") for one in log.findings):
        return (("users", users),)
    named = log.engine.rows(
        f"""SELECT count(DISTINCT s."user") AS users FROM {log.serp} AS s JOIN {log.session} AS v
            ON v.session = s.session WHERE v.user_id IS NOT NULL"""
    )[0]["users"]
    return (("users", named), ("users without a name", users - named))


def taken_as_users(log: InteractionLog) -> tuple[tuple[str, str], ...]:
    """Say what stands for users where the log names none: a choice that intervals hang on."""
    taken = "each session" if "sessions" in log.has else "each page"
    return (("users", f"none is logged, so {taken} counts as one"),) if are_of_nobody(log.findings) else ()


class _Rule(NamedTuple):
    """What a value must be, and what to give instead."""

    holds: Callable[[Any], bool]
    fix: str


def _number(least: float, most: float, fix: str, *, ends: tuple[bool, bool] = (False, False)) -> _Rule:
    """Take a number between two, which may be taken themselves."""

    def holds(value: Any) -> bool:
        number = float(value) if isinstance(value, Real) else math.nan
        return least <= number <= most and (ends[0] or number > least) and (ends[1] or number < most)

    return _Rule(holds, fix)


def _whole(least: float, fix: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, Integral) and int(value) >= least, f"give a whole number{fix}")


def _one_of(*names: str) -> _Rule:
    return _Rule(lambda value: isinstance(value, str) and value in names, f"take {' or '.join(names)}")


_TEXT = _Rule(lambda value: isinstance(value, str | None), "give a text")
_MANY = _Rule(lambda value: isinstance(value, str | Iterable | None), "give a name, or a list of names")
_SHARE = _number(0, 1, "give a number between 0 and 1, such as 0.95")
_SECONDS = _number(0, 1e9, "give a number of seconds, from 0 to 1e9", ends=(True, True))
_RULES = {
    **dict.fromkeys(("by", "where", "baseline", "since", "layout", "name", "memory", "tables"), _TEXT),
    **dict.fromkeys(("metrics", "measures", "lists", "rules", "outcomes"), _MANY),
    **dict.fromkeys(("level", "alpha", "fdr", "power"), _SHARE),
    **dict.fromkeys(("reformulation_gap", "attribution_window", "success", "dwell"), _SECONDS),
    **dict.fromkeys(("session_gap", "bot_minutes"), _number(0, math.inf, "give a number above 0")),
    **dict.fromkeys(("bins", "least_pages", "min_users", "bot_pages", "threads", "expected"), _whole(1, ", 1 or more")),
    **dict.fromkeys(("seed", "warm_up", "now_ms"), _whole(-math.inf, "")),
    "winsorize": _number(0, 1, "give a number above 0 and at most 1, such as 0.999", ends=(False, True)),
    "least_judged": _number(0, 1, "give a number from 0 to 1, such as 0.8", ends=(True, True)),
    "window_days": _number(0, 1e5, "give a number of days above 0, such as 7"),
    "before_days": _number(0, 1e5, "give a number of days from 0, such as 14", ends=(True, False)),
    "margin_relative": _number(0, 1, "give a share from 0, such as 0.02 for 2%", ends=(True, False)),
    **dict.fromkeys(("resamples", "splits"), _whole(100, ", 100 or more")),
    "depth": _whole(2, ", 2 or more"),
    "rank_base": _Rule(lambda value: isinstance(value, Integral) and value in {0, 1}, "give a whole number, 0 or 1"),
    "actions": _Rule(lambda value: isinstance(value, Mapping), "give {the log's name: one of ACTIONS}"),
    "mapping": _Rule(lambda value: isinstance(value, str | Path), "give a text: a path, or the name of a mapping"),
    "unit": _one_of("user", "session"),
    "interval": _one_of("delta", "bootstrap"),
    "row": _one_of("page", "session"),
    "every": _one_of("hour", "day", "week"),
    "pages": _one_of("first", "all"),
    "bots": _one_of("exclude", "keep"),
}
_OPTIONAL = frozenset({"warm_up", "now_ms", "threads", "rank_base", "actions", "mapping", "window_days"})


def need(**given: object) -> None:
    """Refuse what is not as the rule of its name says.

    >>> need(level=2)
    Traceback (most recent call last):
    judged.errors.InputError: level is 2. Fix: give a number between 0 and 1, such as 0.95.
    """
    for name, value in given.items():
        if name == "log":
            if not isinstance(value, InteractionLog):
                path = f'"{value}"' if isinstance(value, str) and len(value) < 80 else "path"
                raise InputError(f"a {type(value).__name__} is no log", fix=f"read it first: read_log({path})")
        elif name in _OPTIONAL and value is None:
            continue
        elif (isinstance(value, bool) and _RULES[name] not in {_TEXT, _MANY}) or not _RULES[name].holds(value):
            raise InputError(f"{name} is {value!r:.60}", fix=_RULES[name].fix)


def need_column(log: InteractionLog, name: str) -> None:
    """Refuse what is no column of a log's pages."""
    if name not in log.serp.columns:
        fix = f"take one of {', '.join(log.serp.columns)}"
        raise InputError(f"the log has no column {name!r}", fix=fix, path=log.name)


def names_of(**values: object) -> list[str]:
    """Give names, one or several, each once; anything else is refused.

    >>> names_of(rules="above"), names_of(rules=["above", "next", "above"])
    (['above'], ['above', 'next'])
    """
    need(**values)
    found: list[str] = []
    for name, value in values.items():
        for one in [value] if isinstance(value, str) else list(cast("Iterable[object]", value or ())):
            if not isinstance(one, str):
                raise InputError(f"{name} is {one!r:.60}", fix="give a name, or a list of names")
            found.append(one)
    return list(dict.fromkeys(found))


def need_records(log: InteractionLog) -> None:
    """Refuse a log in which nothing stands: whatever is said of it would be said of nothing.

    Parameters
    ----------
    log
        The log, as `read_log` gives it.

    Raises
    ------
    InputError
        If no query and no event was read, and none was lost.
    """
    if not log.accounts or any(one.read for one in log.accounts) or any(one.done == "lost" for one in log.findings):
        return
    if log.files and all(map(_is_blank, log.files)):
        many = len(log.files)
        empty = "the file is empty" if many == 1 else f"the file is empty, and so are all {many} of this log"
        raise InputError(empty, fix="name a log with queries and events", path=log.files[0])
    fix = "see that it is not empty, and that its layout or mapping fits"
    raise InputError("no query and no event stands in it", fix=fix, path=log.files[0] if log.files else log.name)


def _is_blank(name: str) -> bool:
    """Whether nothing but white space stands in a file; what cannot be looked at again is not said to be empty."""
    from judged.online.readers.files import LogFile, read_head

    file = Path(name)
    return file.is_file() and not read_head(LogFile(name, file)).strip()
