"""The check of a log as an answer: what was read, where the rows went, what is wrong, and what the log can tell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from judged.online import findings
from judged.online import findings as words
from judged.online.findings import doubts
from judged.online.layout import UNITS, sentence, shown
from judged.online.log import user_counts
from judged.online.metrics import TELLS
from judged.results import TEXT, YES_NO, Answer, Column, Sentences, Table, counted

if TYPE_CHECKING:
    from judged.online.findings import Account, LogFinding
    from judged.online.log import InteractionLog
    from judged.results import Block

_LONG = 60  # characters of the name of a log


@dataclass(frozen=True, eq=False, repr=False)
class LogCheck(Answer):
    """What can be said about a log before anything is measured on it: what `check_log` returns.

    Attributes
    ----------
    log, layout : str
        Its name, and what it was read as.
    files : tuple of str
        What was read.
    has_time : bool
        Whether it has a clock.
    has : frozenset of str
        What it can tell.
    counts : tuple of (str, int)
        ``pages``, ``events``, ``events on pages``, and ``sessions`` and ``users`` that have a page; no ``users`` where
        no page names one.
    period : (int, int) or None
        First and last time, in milliseconds since 1970; None: it has no clock, or no page.
    accounts : tuple of Account
        Where the rows went.
    findings : tuple of LogFinding
        What is wrong.
    policies : tuple of (str, str)
        What was chosen, name to value.
    doubts : tuple of str
        Why its numbers should not be trusted as they are; empty: it is fit.
    """

    kind: ClassVar[str] = "log"
    main: ClassVar[str] = "findings"

    log: str
    layout: str
    files: tuple[str, ...]
    has_time: bool
    has: frozenset[str]
    counts: tuple[tuple[str, int], ...]
    period: tuple[int, int] | None
    accounts: tuple[Account, ...]
    findings: tuple[LogFinding, ...]
    policies: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]

    @property
    def title(self) -> str:
        """What it answers."""
        return f"Whether {shown(self.log, _LONG)} is fit"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether it is fit, and why not."""
        said = tuple(f"not fit: {sentence(reason)}" for reason in self.doubts)
        return said or ("fit: no rule leaves out much, and events are on pages",)

    def blocks(self) -> tuple[Block, ...]:
        """Give how much there is, where the rows went, what is wrong, what the log can tell, and the verdict."""
        period = "" if self.period is None else f", {_day(self.period[0])} to {_day(self.period[1])} UTC"
        about = f"{shown(self.log, _LONG)}: {self.layout}, {counted(len(self.files), 'file')}{period}"
        chosen = ", ".join(f"{name} {sentence(value)}" for name, value in findings.told(self.policies, self.findings))
        families = (
            Column("name", list(TELLS), TEXT, "it has"),
            Column("has", [name in self.has for name in TELLS], YES_NO, ""),
            Column("meaning", list(TELLS.values()), TEXT, "for"),
        )
        return (
            Sentences((about, ", ".join(words.counts(self.counts)))),
            self._accounts(),
            findings.findings_table(self.findings),
            *(Sentences(meant, f"finding{at}") for at, meant in enumerate(findings.meanings(self.findings), 1)),
            Table("tells", families, "What this log can tell", labels=3),
            Sentences((f"Chosen: {chosen}.",), "chosen"),
            Sentences(self.sentences, "verdict"),
        )

    def facts(self) -> dict[str, Any]:
        """Give what the log is, what was chosen, and why it should not be trusted."""
        names = ("log", "layout", "files", "has_time")
        return {
            **{name: getattr(self, name) for name in names},
            "period_ms": self.period,
            "counts": dict(self.counts),
            "accounts": [{**asdict(one), "excluded": dict(one.excluded)} for one in self.accounts],
            "policies": dict(self.policies),
            "doubts": self.doubts,
        }

    def _accounts(self) -> Table:
        rules = tuple(dict.fromkeys(rule for one in self.accounts for rule, _ in one.excluded))
        columns = (
            Column("table", [one.table for one in self.accounts], TEXT, "rows"),
            Column("read", [one.read for one in self.accounts], UNITS),
            *(Column(rule, [dict(one.excluded).get(rule, 0) for one in self.accounts], UNITS) for rule in rules),
            Column("kept", [one.kept for one in self.accounts], UNITS),
        )
        return Table("rows", columns, only="people")


def check_log(log: InteractionLog) -> LogCheck:
    r"""Look at a log before anything is measured on it.

    Parameters
    ----------
    log
        The log, as `read_log` gives it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from judged.online.storage import read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.ndjson"
    ...     _ = path.write_text('{"query_id": "1", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     found = check_log(read_log(path))
    >>> dict(found.counts)["pages"], found.doubts
    (1, ())
    """
    (found,) = log.engine.rows(f"""
        SELECT count(*) AS pages, count(DISTINCT session) AS sessions, count(DISTINCT "user") AS users,
            min(time_ms) AS first, max(time_ms) AS last, (SELECT count(*) FROM {log.event}) AS events,
            (SELECT count(serp) FROM {log.event}) AS joined
        FROM {log.serp}""")
    counts = (
        ("pages", found["pages"]),
        ("events", found["events"]),
        ("events on pages", found["joined"]),
        ("sessions", found["sessions"]),
        *user_counts(log, found["users"]),
    )
    timed = log.has_time and log.dated and found["pages"] > 0
    period = (found["first"], found["last"]) if timed else None
    what = (log.name, log.layout, log.files, log.has_time, log.has)
    why = doubts(log.accounts, log.findings)
    return LogCheck(*what, counts, period, log.accounts, log.findings, log.policies, why)


def _day(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
