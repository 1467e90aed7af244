"""A log, as typed tables beside what was found in it; and what all answers about one share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from judged.online.findings import Account, LogFinding, are_of_nobody, doubts, unfit
from judged.results import Answer, Sentences
from judged.results.decimals import counted

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation
    from judged.results.notes import Note


@dataclass(frozen=True, repr=False)
class InteractionLog:
    """What users did on result pages: the narrow waist of online evaluation.

    The tables are those of one database, with the columns that `judged.online.tables` describes; whatever reads logs
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
        What propensities are probabilities of, one of `judged.online.tables.CONVENTIONS`; empty: not declared.
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LogAnswer(Answer):
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

    asked: ClassVar[tuple[str, ...]] = ()
    """Fields that JSON repeats."""
    answers: ClassVar[str] = ""
    """The title, over its fields."""

    log: str
    unit: str
    level: float
    policies: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return self.answers.format_map(vars(self))

    def facts(self) -> Mapping[str, Any]:
        """Give what was asked for."""
        names = ("log", *self.asked, "unit", "level")
        return {name: getattr(self, name) for name in names} | {"policies": dict(self.policies)}

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
