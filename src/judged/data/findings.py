"""Findings of `judged check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import NO_CONTENT
from judged.results import COUNT, TEXT, Answer, Block, Code, Sentences, Table, columns_of
from judged.results.blocks import MIN_GROUPED
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from judged.data.identify import FileContent
    from judged.errors import InputError

Severity: TypeAlias = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """A kind of problem in a file, with the number of its occurrences.

    Parameters
    ----------
    severity
        ``error``: the file cannot be used. ``warning``: results may be misleading. ``info``: harmless.
    path, line
        The file, and the first line with the problem; None if it has no line.
    rule
        Stable identifier of the kind of problem.
    problem, fix
        Description of the problem, and how to fix it.
    count
        Number of lines, documents or topics with the problem.

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
        location = self.path if self.line is None else f"{self.path}:{self.line}"
        times = f" ({self.count} times)" if self.severity == "error" and self.count > 1 else ""
        fix = f" Fix: {self.fix}." if self.fix else ""
        return f"{location}: {self.severity}: {self.problem}{times}.{fix} [{self.rule}]"


def finding_from_error(error: InputError, where: str) -> Finding | None:
    """Convert an error to a finding; None if the error is not about the content of the file."""
    if error.rule == NO_CONTENT:
        return None
    return Finding("error", error.path or where, error.line, error.rule or "unreadable", error.problem, error.fix)


@dataclass(frozen=True, repr=False)
class Findings(Answer):
    """Findings in one or more files; errors first for each file.

    Attributes
    ----------
    findings : tuple of Finding
    files : int
        Number of files that were checked.
    contents : tuple of FileContent
        What each file is, if one file was checked.
    """

    kind: ClassVar[str] = "check"

    findings: tuple[Finding, ...]
    files: int = 1
    contents: tuple[FileContent, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def __add__(self, other: Findings) -> Findings:
        return Findings(self.findings + other.findings, self.files + other.files, self.contents + other.contents)

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentence with the numbers of errors and warnings."""
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        return (f"{counted(self.errors, 'error')}, {counted(warnings, 'warning')} in {counted(self.files, 'file')}",)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of files and errors."""
        contents = [
            {"path": content.path, "kind": content.kind, "counts": dict(content.counts), **content.details}
            for content in self.contents
        ]
        return {"files": self.files, "errors": self.errors} | ({"contents": contents} if contents else {})

    def blocks(self) -> tuple[Block, ...]:
        """Return the findings as text, with one line for those shared by several files, a summary, and a data table."""
        columns = columns_of(
            self.findings, ("severity", TEXT), ("path", TEXT), ("line", COUNT), ("rule", TEXT), ("problem", TEXT),
            ("fix", TEXT), ("count", COUNT),
        )  # fmt: skip
        notes = tuple(line for content in self.contents for line in (content.sentence, *content.notes))
        commands = tuple(command for content in self.contents for command in content.commands)
        candidates = (
            (notes, Sentences(notes, "contents")),
            (self.findings, Code(format_findings(self.findings), "lines")),
            (True, Sentences(self.sentences)),
            (commands and not self.errors, Code(commands, "next", title="Next")),
        )
        return *(block for has_content, block in candidates if has_content), Table("findings", columns, only="data")


def format_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Format findings as lines: each error, and one line for a warning that three or more files have.

    >>> format_findings([Finding("warning", f"{n}.run", None, "ties", f"{n} ties", "", n) for n in range(59)])
    ('58.run: warning: 58 ties. [ties] 59 files have this problem, worst 58.run, 57.run, 56.run',)
    """
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        key = finding if finding.severity == "error" else (finding.severity, finding.rule)
        groups.setdefault(key, []).append(finding)
    return tuple(line for group in groups.values() for line in _format_group(group))


def _format_group(group: Sequence[Finding]) -> Sequence[str]:
    worst_first = sorted(group, key=lambda finding: -finding.count)
    if len(paths := list(dict.fromkeys(finding.path for finding in worst_first))) < MIN_GROUPED:
        return [str(finding) for finding in group]
    label = "such as" if worst_first[0].count == worst_first[-1].count else "worst"
    return [f"{worst_first[0]} {len(paths)} files have this problem, {label} {', '.join(paths[:MIN_GROUPED])}"]
