"""What `judged check` finds in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.notes import SEVERAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.errors import InputError

Level: TypeAlias = Literal["error", "warning", "info"]

# what a message that stops the reading of a whole file says -> the code of the finding
_CODES = {
    "no rows in it": "empty-file",
    "no judgments in it": "empty-file",
    "a header and no rows": "empty-file",
    "this looks like qrels": "looks-like-qrels",
    "this looks like a run": "looks-like-run",
    "cut short or damaged": "truncated",
    "damaged or cut short": "truncated",
    "not UTF-8": "not-utf8",
    "UTF-16": "not-utf8",
    "zero bytes": "not-text",
    "zip archive": "not-text",
    "SQLite": "not-text",
    "stands twice": "duplicate-pair",
    "NaN": "nan-score",
    "not a number": "bad-score",
    "not numbers": "bad-score",
    "broken JSON": "broken-json",
    "could be a rank": "rank-or-score",
    "SMART": "unknown-layout",
    "no known layout": "unknown-layout",
    "looks like a header": "unknown-header",
    "no column": "unknown-header",
    "the header names no": "unknown-header",
}
_NO_CONTENT = ("no such file", "this is a folder", "may not be read", "there is no format", "several files in")


@dataclass(frozen=True)
class Finding:
    """One kind of trouble in a file, however often it occurs.

    Parameters
    ----------
    level
        ``error``: the file is refused. ``warning``: results should be read with it in mind.
        ``info``: harmless, and good to know.
    path, line
        Where: the file, and the first line that has it, None where that makes no sense.
    code
        A short name that does not change.
    problem, fix
        What is wrong, and what to do about it.
    count
        How many lines, documents or topics have it.

    Examples
    --------
    >>> print(Finding("error", "a.run", 3, "bad-score", "the score 'x' is not a number", "write a number", 2))
    a.run:3: error: the score 'x' is not a number (2 times). Fix: write a number. [bad-score]
    """

    level: Level
    path: str
    line: int | None
    code: str
    problem: str
    fix: str = ""
    count: int = 1

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        times = f" ({self.count} times)" if self.level == "error" and self.count > 1 else ""
        fix = f" Fix: {self.fix}." if self.fix else ""
        return f"{place}: {self.level}: {self.problem}{times}.{fix} [{self.code}]"


def of_error(error: InputError, where: str) -> Finding | None:
    """Turn an error that ended the reading into a finding; None for one that is not about the content."""
    if any(words in error.problem for words in _NO_CONTENT):
        return None
    code = next((code for words, code in _CODES.items() if words in error.problem), "unreadable")
    return Finding("error", error.path or where, error.line, code, error.problem, error.fix)


def lines(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Write findings: every error, and what else is alike in three files or more as one line.

    >>> lines([Finding("warning", f"{at}.run", None, "ties", f"{at} ties", "", at) for at in range(59)])
    ('58.run: warning: 58 ties. [ties] 59 files have it, worst 58.run, 57.run, 56.run',)
    """
    alike: dict[object, list[Finding]] = {}
    for finding in findings:
        key = finding if finding.level == "error" else (finding.level, finding.code)
        alike.setdefault(key, []).append(finding)
    return tuple(line for some in alike.values() for line in _lines(some))


def _lines(alike: Sequence[Finding]) -> Sequence[str]:
    if len(alike) < SEVERAL:
        return [str(finding) for finding in alike]
    worst = sorted(alike, key=lambda finding: -finding.count)
    which = "such as" if worst[0].count == worst[-1].count else "worst"
    return [f"{worst[0]} {len(alike)} files have it, {which} {', '.join(one.path for one in worst[:SEVERAL])}"]


def examples(ids: Iterable[str], most: int = 5) -> str:
    """Name some ids of many.

    >>> examples(["q1", "q2", "q3"], most=2)
    'q1, q2 and 1 more'
    """
    shown = list(ids)
    more = f" and {len(shown) - most:,} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def plural(count: int, word: str) -> str:
    """Write a count and its noun.

    >>> plural(1, "topic"), plural(1200, "topic")
    ('1 topic', '1,200 topics')
    """
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
