"""What `judged check` finds in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import NO_CONTENT
from judged.results import COUNT, TEXT, Answer, Block, Code, Sentences, Table, columns_of
from judged.results.blocks import MIN_GROUPED
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.errors import InputError

Severity: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One kind of problem in a file, however often it occurs.

    Parameters
    ----------
    severity
        ``error``: the file is refused. ``warning``: results should be read with it in mind.
        ``info``: harmless, and good to know.
    path, line
        Where: the file, and the first line that has it, None where that makes no sense.
    rule
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

    severity: Severity
    path: str
    line: int | None
    rule: str
    problem: str
    fix: str = ""
    count: int = 1

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        times = f" ({self.count} times)" if self.severity == "error" and self.count > 1 else ""
        fix = f" Fix: {self.fix}." if self.fix else ""
        return f"{place}: {self.severity}: {self.problem}{times}.{fix} [{self.rule}]"


def of_error(error: InputError, where: str) -> Finding | None:
    """Turn an error that ended the reading into a finding; None for one that is not about the content."""
    if error.rule == NO_CONTENT:
        return None
    return Finding("error", error.path or where, error.line, error.rule or "unreadable", error.problem, error.fix)


@dataclass(frozen=True, repr=False)
class Findings(Answer):
    """What is wrong or odd in some files; of each file errors come first.

    Attributes
    ----------
    findings : tuple of Finding
    files : int
        How many were looked at.
    """

    kind: ClassVar[str] = "check"

    findings: tuple[Finding, ...]
    files: int = 1

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __getitem__(self, at: int) -> Finding:
        return self.findings[at]

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.findings + other.findings, self.files + other.files)

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many errors and warnings there are."""
        found = sum(finding.severity == "warning" for finding in self.findings)
        return (f"{counted(self.errors, 'error')}, {counted(found, 'warning')} in {counted(self.files, 'file')}",)

    def facts(self) -> dict[str, Any]:
        """Give how many files were looked at, and how many errors found."""
        return {"files": self.files, "errors": self.errors}

    def blocks(self) -> tuple[Block, ...]:
        """Give the findings, alike ones of several files in one line, how many there are, and a table for data."""
        columns = columns_of(
            self.findings, ("severity", TEXT), ("path", TEXT), ("line", COUNT), ("rule", TEXT), ("problem", TEXT),
            ("fix", TEXT), ("count", COUNT),
        )  # fmt: skip
        said = [Code(lines(self.findings), "lines")] if self.findings else []
        return *said, Sentences(self.sentences), Table("findings", columns, only="data")


def lines(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Write findings: every error, and what else is alike in three files or more as one line.

    >>> lines([Finding("warning", f"{at}.run", None, "ties", f"{at} ties", "", at) for at in range(59)])
    ('58.run: warning: 58 ties. [ties] 59 files have it, worst 58.run, 57.run, 56.run',)
    """
    alike: dict[object, list[Finding]] = {}
    for finding in findings:
        key = finding if finding.severity == "error" else (finding.severity, finding.rule)
        alike.setdefault(key, []).append(finding)
    return tuple(line for some in alike.values() for line in _lines(some))


def _lines(alike: Sequence[Finding]) -> Sequence[str]:
    worst = sorted(alike, key=lambda finding: -finding.count)
    if len(paths := list(dict.fromkeys(finding.path for finding in worst))) < MIN_GROUPED:
        return [str(finding) for finding in alike]
    which = "such as" if worst[0].count == worst[-1].count else "worst"
    return [f"{worst[0]} {len(paths)} files have it, {which} {', '.join(paths[:MIN_GROUPED])}"]
