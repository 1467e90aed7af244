"""Result of `check_log`: row counts, findings, and the kinds of data in a log."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from judged.online import findings
from judged.online.findings import format_counts, relevant_policies, unfit_reasons
from judged.online.layout import UNITS, clip, clip_words
from judged.online.log import user_counts
from judged.online.metrics import CAPABILITIES
from judged.results import TEXT, YES_NO, Answer, Column, Sentences, Table, counted

if TYPE_CHECKING:
    from judged.online.findings import Account, LogFinding
    from judged.online.log import InteractionLog
    from judged.results import Block

_MAX_NAME = 60  # maximum characters of a log's name
_FIT = "The log is fit for metrics: no problem exceeds its limit."
_NO_CLICKS = "No click was read, so metrics of clicks are not available. If the log has clicks, correct the mapping."


@dataclass(frozen=True, eq=False, repr=False)
class LogCheck(Answer):
    """Check of a log before metrics are computed: result of `check_log`.

    Attributes
    ----------
    log, layout : str
        Name, and layout it was read as.
    files : tuple of str
        Files that were read.
    has_time : bool
        Whether it has timestamps.
    has : frozenset of str
        Kinds of data it contains.
    counts : tuple of (str, int)
        ``pages``, ``events``, ``events on pages``, and ``sessions`` and ``users`` with a page; no ``users`` if no page
        has a user ID.
    period : (int, int) or None
        First and last time, in milliseconds since 1970; None without timestamps or pages.
    accounts : tuple of Account
        Numbers of rows read, kept, and excluded.
    findings : tuple of LogFinding
        Problems of the log.
    policies : tuple of (str, str)
        Options, name to value.
    unfit_reasons : tuple of str
        Reasons why metrics are not reliable; empty if the log is fit.
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
    unfit_reasons: tuple[str, ...]

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Log check: {clip(self.log, _MAX_NAME)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Whether the log is fit, or the reasons why not."""
        verdicts = tuple(f"The log is not fit for metrics: {clip_words(reason)}." for reason in self.unfit_reasons)
        return (*(verdicts or (_FIT,)), *(() if "clicks" in self.has else (_NO_CLICKS,)))

    def blocks(self) -> tuple[Block, ...]:
        """Return the summary, rows, findings, supported data, and verdict."""
        period = "" if self.period is None else f", {_day(self.period[0])} to {_day(self.period[1])} UTC"
        summary = f"{clip(self.log, _MAX_NAME)}: {self.layout}, {counted(len(self.files), 'file')}{period}"
        used = relevant_policies(self.policies, self.findings)
        policies = ", ".join(f"{name} {clip_words(value)}" for name, value in used)
        capabilities = (
            Column("name", list(CAPABILITIES), TEXT, "data"),
            Column("available", [name in self.has for name in CAPABILITIES], YES_NO),
            Column("description", list(CAPABILITIES.values()), TEXT),
        )
        return (
            Sentences((summary, ", ".join(format_counts(self.counts)))),
            self._accounts(),
            findings.findings_table(self.findings),
            *(Sentences(texts, f"finding{i}") for i, texts in enumerate(findings.describe_findings(self.findings), 1)),
            Table("capabilities", capabilities, "Data for metrics", labels=3),
            Sentences((f"Options: {policies}.",), "options"),
            Sentences(self.sentences, "verdict"),
        )

    def facts(self) -> dict[str, Any]:
        """Return the log, options, row counts, and unfit_reasons."""
        names = ("log", "layout", "files", "has_time")
        return {
            **{name: getattr(self, name) for name in names},
            "period_ms": self.period,
            "counts": dict(self.counts),
            "accounts": [{**asdict(account), "excluded": dict(account.excluded)} for account in self.accounts],
            "policies": dict(self.policies),
            "unfit_reasons": self.unfit_reasons,
        }

    def _accounts(self) -> Table:
        accounts = self.accounts
        rules = tuple(dict.fromkeys(rule for account in accounts for rule, _ in account.excluded))
        columns = (
            Column("table", [account.table for account in accounts], TEXT),
            Column("read", [account.read for account in accounts], UNITS),
            *(Column(rule, [dict(account.excluded).get(rule, 0) for account in accounts], UNITS) for rule in rules),
            Column("kept", [account.kept for account in accounts], UNITS),
        )
        return Table("rows", columns, only="people")


def check_log(log: InteractionLog) -> LogCheck:
    r"""Check a log before computing metrics.

    Parameters
    ----------
    log
        Log as returned by `read_log`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from judged.online.storage import read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.ndjson"
    ...     _ = path.write_text('{"query_id": "1", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     check = check_log(read_log(path))
    >>> dict(check.counts)["pages"], check.unfit_reasons
    (1, ())
    """
    (totals,) = log.engine.rows(f"""
        SELECT count(*) AS pages, count(DISTINCT session) AS sessions, count(DISTINCT "user") AS users,
            min(time_ms) AS first, max(time_ms) AS last, (SELECT count(*) FROM {log.event}) AS events,
            (SELECT count(serp) FROM {log.event}) AS joined
        FROM {log.serp}""")
    counts = (
        ("pages", totals["pages"]),
        ("events", totals["events"]),
        ("events on pages", totals["joined"]),
        ("sessions", totals["sessions"]),
        *user_counts(log, totals["users"]),
    )
    # Artificial dates would look like real ones.
    timed = log.has_time and log.dated and totals["pages"] > 0
    period = (totals["first"], totals["last"]) if timed else None
    source = (log.name, log.layout, log.files, log.has_time, log.has)
    reasons = unfit_reasons(log.accounts, log.findings)
    return LogCheck(*source, counts, period, log.accounts, log.findings, log.policies, reasons)


def _day(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
