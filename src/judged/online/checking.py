"""The check of a log in words: what was read, where the rows went, what is wrong, and what the log can tell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from judged.online.engine import rows_of
from judged.online.findings import doubts
from judged.online.making.telling import FAMILIES
from judged.tables import Table

if TYPE_CHECKING:
    from judged.online.findings import LogFinding
    from judged.online.log import InteractionLog


@dataclass(frozen=True)
class LogCheck:
    """What can be said about a log before anything is measured on it.

    Parameters
    ----------
    log
        The log.
    counts
        ``pages``, ``events``, ``events on pages``, and ``sessions`` and ``users`` that have a page.
    period
        First and last time, in milliseconds since 1970; None: it has no clock, or no page.
    doubts
        Why its numbers should not be trusted as they are; empty: it is fit.
    """

    log: InteractionLog
    counts: tuple[tuple[str, int], ...]
    period: tuple[int, int] | None
    doubts: tuple[str, ...]

    def text(self, *, width: int | None = None) -> str:
        """Write it for a terminal."""
        return "\n\n".join(self._parts(lambda table: table.text(width=width), "{}\n{}"))

    def markdown(self) -> str:
        """Write it as Markdown."""
        return "\n\n".join(self._parts(Table.markdown, "## {}\n\n{}"))

    def to_dict(self) -> dict[str, Any]:
        """Give it as plain values: what JSON is made of."""
        log = self.log
        return {
            "name": log.name,
            "layout": log.layout,
            "files": list(log.files),
            "has_time": log.has_time,
            "period_ms": None if self.period is None else list(self.period),
            "counts": dict(self.counts),
            "accounts": [{**asdict(one), "excluded": dict(one.excluded)} for one in log.accounts],
            "findings": [{**asdict(one), "places": list(one.places), "share": one.share} for one in log.findings],
            "tells": [name for name in FAMILIES if name in log.has],
            "cannot_tell": [name for name in FAMILIES if name not in log.has],
            "policies": dict(log.policies),
            "doubts": list(self.doubts),
        }

    def _parts(self, drawn: Any, titled: str) -> list[str]:
        log = self.log
        parts = [self._head(), drawn(_account_table(log))]
        if log.findings:
            parts.append(titled.format("Findings, the worst first", drawn(_finding_table(log.findings))))
            parts.append("\n\n".join(map(_sentence, log.findings)))
        tells = [(name, "yes" if name in log.has else "no", meaning) for name, meaning in FAMILIES.items()]
        parts.append(
            titled.format("What this log can tell", drawn(Table(("it has", "", "for"), tuple(tells), labels=3)))
        )
        parts.append("Chosen: " + ", ".join(f"{name} {value}" for name, value in log.policies) + ".")
        verdict = [f"not fit: {one}" for one in self.doubts] or [
            "fit: no rule leaves out much, and events are on pages"
        ]
        return [*parts, "\n".join(verdict)]

    def _head(self) -> str:
        counted = ", ".join(f"{count:,} {name}" for name, count in self.counts)
        period = "" if self.period is None else f", {_day(self.period[0])} to {_day(self.period[1])} UTC"
        files = f"{len(self.log.files)} file{'s' if len(self.log.files) != 1 else ''}"
        return f"{self.log.name}: {self.log.layout}, {files}{period}\n{counted}"


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
    >>> from judged.online.opening import read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.ndjson"
    ...     _ = path.write_text('{"query_id": "1", "user_query": "car", "timestamp": "2026-01-05T10:00:00Z"}\n')
    ...     found = check_log(read_log(path))
    >>> dict(found.counts)["pages"], found.doubts
    (1, ())
    """
    serp, event = log.serp, log.event
    (pages,) = rows_of(serp.aggregate(pages=serp.count(), first=serp.time_ms.min(), last=serp.time_ms.max()))
    (others,) = rows_of(serp.aggregate(sessions=serp.session.nunique(), users=serp.user.nunique()))
    (events,) = rows_of(event.aggregate(events=event.count(), joined=event.serp.count()))
    counts = (
        ("pages", pages["pages"]),
        ("events", events["events"]),
        ("events on pages", events["joined"]),
        ("sessions", others["sessions"]),
        ("users", others["users"]),
    )
    timed = log.has_time and pages["pages"] > 0
    return LogCheck(log, counts, (pages["first"], pages["last"]) if timed else None, doubts(log.accounts, log.findings))


def _account_table(log: InteractionLog) -> Table:
    rules = tuple(dict.fromkeys(rule for one in log.accounts for rule, _ in one.excluded))
    rows = tuple(
        (one.table, f"{one.read:,}", *(f"{dict(one.excluded).get(rule, 0):,}" for rule in rules), f"{one.kept:,}")
        for one in log.accounts
    )
    return Table(("rows", "read", *rules, "kept"), rows)


def _finding_table(findings: tuple[LogFinding, ...]) -> Table:
    rows = tuple(
        (one.rule, one.table, one.done, f"{one.rows:,}", f"{one.of:,}", _percent(one.share)) for one in findings
    )
    return Table(("rule", "of", "done", "rows", "of rows", "share"), rows, labels=3)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "<0.1 %"


def _sentence(one: LogFinding) -> str:
    where = f"\n  at {', '.join(_short(one.places))}" if one.places else ""
    fix = f"\n  Fix: {one.fix}." if one.fix else ""
    return f"{one.rule} ({one.table}): {one.rows:,} {one.problem}.{where}{fix}"


def _short(places: tuple[str, ...]) -> list[str]:
    """Name a file once.

    >>> _short(("a.ndjson:1", "a.ndjson:7", "b.ndjson:2"))
    ['a.ndjson:1', '7', 'b.ndjson:2']
    """
    files = ["", *(place.rpartition(":")[0] for place in places)]
    return [
        place.rpartition(":")[2] if file and file == before else place
        for before, file, place in zip(files, files[1:], places, strict=False)
    ]


def _day(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
