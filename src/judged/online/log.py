"""A log that is ready for metrics: four typed tables, and what was found and done while they were made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from judged.decimals import counted
from judged.online.findings import Account, LogFinding

if TYPE_CHECKING:
    from judged.online.engine import Engine, Relation


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
