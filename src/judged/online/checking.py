"""The check of a log in words: what was read, where the rows went, what is wrong, and what the log can tell."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.findings import are_of_nobody, doubts
from judged.online.making.telling import FAMILIES
from judged.online.showing import trouble, words
from judged.online.showing.layout import findings_table
from judged.online.showing.numbers import counted, place, sentence, shown
from judged.online.showing.text import lines
from judged.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from judged.online.findings import LogFinding
    from judged.online.log import InteractionLog

_LONG = 60  # characters of the name of a log
_WIDTH = 100


@dataclass(frozen=True)
class LogCheck:
    """What can be said about a log before anything is measured on it.

    Parameters
    ----------
    log
        The log.
    counts
        ``pages``, ``events``, ``events on pages``, and ``sessions`` and ``users`` that have a page; no ``users`` where
        no page names one.
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
        wide = min(width or _WIDTH, _WIDTH)
        return "\n\n".join(
            self._parts(lambda table: table.text(width=width), "{}\n{}", lambda texts: lines(texts, wide))
        )

    def markdown(self) -> str:
        """Write it as Markdown."""
        return "\n\n".join(self._parts(Table.markdown, "## {}\n\n{}", "\n".join))

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

    def _parts(self, drawn: Callable[[Table], str], titled: str, said: Callable[[Iterable[str]], str]) -> Iterator[str]:
        """Give the parts of the text; forms differ in tables, titles and long lines."""
        log = self.log
        yield said(self._head())
        yield drawn(_account_table(log))
        if log.findings:
            yield titled.format("Findings, the worst first", drawn(findings_table(log.findings)))
            yield "\n\n".join(said(_explained(one)) for one in log.findings)
        tells = tuple((name, "yes" if name in log.has else "no", meaning) for name, meaning in FAMILIES.items())
        yield titled.format("What this log can tell", drawn(Table(("it has", "", "for"), tells, labels=3)))
        chosen = ", ".join(f"{name} {sentence(value)}" for name, value in trouble.told(log.policies, log.findings))
        yield said([f"Chosen: {chosen}."])
        verdict = [f"not fit: {sentence(one)}" for one in self.doubts]
        yield said(verdict or ["fit: no rule leaves out much, and events are on pages"])

    def _head(self) -> Iterator[str]:
        period = "" if self.period is None else f", {_day(self.period[0])} to {_day(self.period[1])} UTC"
        yield f"{shown(self.log.name, _LONG)}: {self.log.layout}, {counted(len(self.log.files), 'file')}{period}"
        yield ", ".join(words.counts(self.counts))


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
        *(() if are_of_nobody(log.findings) else (("users", found["users"]),)),
    )
    timed = log.has_time and log.dated and found["pages"] > 0
    return LogCheck(log, counts, (found["first"], found["last"]) if timed else None, doubts(log.accounts, log.findings))


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
    from judged.online.reading.opening import Part, first_bytes

    file = Path(name)
    return file.is_file() and not first_bytes(Part(name, file)).strip()


def _account_table(log: InteractionLog) -> Table:
    rules = tuple(dict.fromkeys(rule for one in log.accounts for rule, _ in one.excluded))
    rows = tuple(
        (one.table, f"{one.read:,}", *(f"{dict(one.excluded).get(rule, 0):,}" for rule in rules), f"{one.kept:,}")
        for one in log.accounts
    )
    return Table(("rows", "read", *rules, "kept"), rows)


def _explained(one: LogFinding) -> Iterator[str]:
    yield trouble.problem(one)
    if one.places:
        yield f"  at {', '.join(_short(one.places))}"
    if one.fix:
        yield f"  Fix: {sentence(one.fix)}."


def _short(places: tuple[str, ...]) -> list[str]:
    """Name a file once.

    >>> _short(("a.ndjson:1", "a.ndjson:7", "b.ndjson:2"))
    ['a.ndjson:1', '7', 'b.ndjson:2']
    """
    files = ["", *(at.rpartition(":")[0] for at in places)]
    return [
        shown(at.rpartition(":")[2]) if file and file == before else place(at)
        for before, file, at in zip(files, files[1:], places, strict=False)
    ]


def _day(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms"
