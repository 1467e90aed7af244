"""All that is wrong or odd in a file of qrels or of a run: slower than reading, and complete."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from judged.data import check_tables as tables
from judged.data import files
from judged.data.check_tables import Rows as CheckedRows
from judged.data.findings import Finding, Findings, of_error
from judged.data.json_rows import TYPES
from judged.data.layout import COMMENT_FIX, LineError, is_data, split_line, value
from judged.data.objects import with_scores
from judged.data.qrels import QRELS_COLUMNS, Qrels
from judged.data.rows import TableRows
from judged.data.run import RUN_COLUMNS, Run
from judged.data.sources import Source, open_source
from judged.data.text_rows import TextRows
from judged.data.texts import document_ids
from judged.errors import InputError
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from judged.data.layout import Kind
    from judged.data.rows import Rows
    from judged.results.types import Strings, Table


class Corpus(NamedTuple):
    """The ids of all documents, and the path that they were read from."""

    ids: Strings
    where: str


_ORDER = {"error": 0, "warning": 1, "info": 2}


def check(
    qrels: str | Path | Qrels,
    runs: Iterable[str | Path | Run] = (),
    *,
    qrels_format: str | None = None,
    run_format: str | None = None,
    texts: str | Path | None = None,
) -> Findings:
    """Look in qrels and runs for what would make numbers wrong.

    Parameters
    ----------
    qrels, runs
        Paths, or what was read from them.
    qrels_format, run_format
        The formats, if they are not found by themselves.
    texts
        The corpus: documents as `Texts.read` takes them, or a list of one id a line. Judged and returned documents
        that are not in it are reported.

    Returns
    -------
    Findings
        Errors first; runs are also held against the qrels, where these can be read.

    Raises
    ------
    InputError
        If a file cannot be read at all.

    Examples
    --------
    >>> from judged import Qrels, Run, check
    >>> found = check(Qrels.of({"q1": {"d1": 1}}), [Run.of({"q1": {"d1": 2.0}, "q2": {"d1": 2.0}})])
    >>> [finding.severity for finding in found.findings]
    ['warning']
    """
    corpus = None if texts is None else Corpus(pa.array(document_ids(texts), pa.string()), str(texts))
    findings = check_qrels(qrels, format=qrels_format, corpus=corpus)
    try:
        judgments = qrels if isinstance(qrels, Qrels) else Qrels.read(qrels, format=qrels_format)
    except InputError:
        judgments = None  # what is wrong with it has been found; the runs are still looked at by themselves
    for run in runs:
        findings += check_run(run, judgments, format=run_format, corpus=corpus)
    return findings


def check_qrels(
    qrels: str | Path | Qrels,
    *,
    format: str | None = None,
    corpus: Corpus | None = None,
) -> Findings:
    """Find everything that is wrong or odd in judgments; errors first.

    Raises
    ------
    InputError
        If there is no such file, or it may not be read.

    Examples
    --------
    >>> for finding in check_qrels(Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 0}})):
    ...     print(finding.severity, finding.rule, "-", finding.problem)
    warning topics-without-relevant - 1 topic without a relevant document: q2
    """
    if isinstance(qrels, Qrels):
        content = Content(TableRows(qrels.table, qrels.where), qrels.table)
    else:
        content = _opened(qrels, "qrels", format)
    found = list(content.findings)
    if rows := _filled(content):
        found += tables.duplicate_pairs(rows, "iteration")
        found += [*tables.several_labels(rows), *tables.grades(rows), *tables.forms(rows)]
        found += tables.against_corpus(rows, *corpus) if corpus else []
    return _sorted(found)


def check_run(
    run: str | Path | Run,
    qrels: Qrels | None = None,
    *,
    format: str | None = None,
    corpus: Corpus | None = None,
) -> Findings:
    """Find everything that is wrong or odd in a run, and between it and the qrels; errors first.

    Raises
    ------
    InputError
        If there is no such file, or it may not be read.

    Examples
    --------
    >>> run, qrels = Run.of({"q1": {"d1": 0.5, "d2": 0.5}}), Qrels.of({"q1": {"D1": 1, "d2": 0}, "q2": {"d3": 1}})
    >>> [finding.rule for finding in check_run(run, qrels)]
    ['ties', 'constant-scores', 'near-same-ids', 'missing-topics']
    """
    content = _content(run.rows, "run") if isinstance(run, Run) else _opened(run, "run", format)
    found = list(content.findings)
    if rows := _filled(content):
        found += tables.duplicate_pairs(rows, "run_id")
        found += [*tables.score_order(rows, qrels.index if qrels is not None else None), *tables.forms(rows)]
        if qrels is not None:
            found += tables.against_qrels(rows, qrels.index)
        found += tables.against_corpus(rows, *corpus) if corpus else []
    return _sorted(found)


def _opened(path: str | Path, kind: Kind, format: str | None) -> Content:
    try:
        source = open_source(path, kind, format)
    except InputError as error:
        finding = of_error(error, str(path))
        if finding is None:
            raise
        return Content(None, None, (finding,))
    return _content(source.rows, kind)


def _content(rows: Rows, kind: Kind) -> Content:
    columns = QRELS_COLUMNS if kind == "qrels" else RUN_COLUMNS
    content = read_content(rows, columns, lambda: Source(rows).table(columns)[0])
    if isinstance(rows, TextRows):
        form = tuple(form_findings(rows))
        content = Content(rows, content.table, (*content.findings, *form), content.known_lines)
    return content


def _filled(content: Content) -> CheckedRows | None:
    """Give the good rows to look at, if there are any."""
    if content.table is None or not content.table.num_rows or content.rows is None:
        return None
    where = content.rows.where
    table = content.table
    if "relevance" not in table.column_names:
        table = with_scores(table, "run", where)
    return CheckedRows(table, where, content.line)


def _sorted(found: Iterable[Finding]) -> Findings:
    return Findings(tuple(sorted(found, key=lambda finding: _ORDER[finding.severity])))


_FIXES = {
    "too-few-fields": "complete or remove the lines",
    "too-many-fields": "quote fields that hold the delimiter; cut lines that run into the next",
    "empty-id": "fill in the id",
    "comment-or-row": COMMENT_FIX,
    "bad-quote": "close the quote",
    "bad-score": "write a number with a decimal point",
    "bad-relevance": "write a number with a decimal point",
    "nan-score": "give these documents a score, or leave them out",
    "bad-rank": "write a whole number",
    "not-utf8": "save the file as UTF-8",
}
_APOSTROPHES = re.compile(rb"""(?:^|[,"\n]) *'(?=[=+\-@'\t])""")  # as `judged.results.escaping.csv_cell` writes them


@dataclass(frozen=True)
class Content:
    """The good rows of a source, what is wrong with the others, and the lines they stand in."""

    rows: Rows | None = field(repr=False)
    table: Table = field(repr=False)
    findings: tuple[Finding, ...] = ()
    known_lines: tuple[int, ...] | None = field(default=None, repr=False)

    @cached_property
    def _lines(self) -> tuple[int, ...]:
        if self.known_lines is not None:
            return self.known_lines
        if not isinstance(self.rows, TextRows):
            return ()
        layout = self.rows.layout
        strict = layout.strict  # there a line that starts with # can be a row
        return tuple(
            number
            for number, raw in self.rows.numbered()
            if (split_line(raw, layout) is not None if strict else is_data(raw))
        )

    def line(self, row: int) -> int | None:
        """Give the line of a row of the table; None where the source has no lines."""
        return self._lines[row] if row < len(self._lines) else None


def read_content(rows: Rows, columns: tuple[str, ...], whole: Callable[[], Table]) -> Content:
    """Read all rows in bulk, and line by line only where that fails."""
    # `whole` reads the table and raises `InputError`; a source without lines then has one finding.
    try:
        return Content(rows, whole())
    except InputError as error:
        if isinstance(rows, TextRows):
            return _line_by_line(rows, columns)
        finding = of_error(error, rows.where)
        if finding is None:
            raise
        return Content(rows, None, (finding,))


class _Gathered:
    """Problems by rule: how often, and where first."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._found: dict[str, tuple[int, int | None, str]] = {}

    def add(self, rule: str, line: int | None, problem: str) -> None:
        count, first, text = self._found.get(rule, (0, line, problem))
        self._found[rule] = (count + 1, first, text)

    def findings(self) -> list[Finding]:
        return [
            Finding("error", self._where, line, rule, problem, _FIXES[rule], count)
            for rule, (count, line, problem) in self._found.items()
        ]


def _line_by_line(rows: TextRows, columns: tuple[str, ...]) -> Content:
    wanted = [name for name in columns if name in rows.layout.names]
    made: dict[str, list[Any]] = {name: [] for name in wanted}
    lines: list[int] = []
    gathered = _Gathered(rows.where)
    ended: list[Finding] = []
    number, last = 0, (0, "")
    try:
        for number, raw in rows.numbered():
            try:
                fields = split_line(raw, rows.layout)
                values = [value(name, fields.get(name, "")) for name in wanted] if fields else None
            except LineError as error:
                gathered.add(error.rule, number, str(error))
                last = (number, error.rule)
                continue
            except UnicodeDecodeError:
                gathered.add("not-utf8", number, "this file is not UTF-8")
                continue
            if values is not None:
                lines.append(number)
                for name, one in zip(wanted, values, strict=True):
                    made[name].append(one)
    except InputError as error:  # the compressed data ends early
        ended = [found for found in (of_error(error, rows.where),) if found]
    if last == (number, "too-few-fields") and not _ends_with_a_line(rows):
        problem = "the last line is not complete: the file was cut short"
        ended.append(Finding("error", rows.where, number, "truncated", problem, "make or fetch the file again"))
    table = pa.table({name: pa.array(column, TYPES.get(name, pa.string())) for name, column in made.items()})
    return Content(rows, table, (*gathered.findings(), *ended), tuple(lines))


def _ends_with_a_line(rows: TextRows) -> bool:
    try:
        *_, last = files.blocks(rows.path)
    except InputError:
        return False
    return last.endswith((b"\n", b"\r"))


def form_findings(rows: TextRows) -> list[Finding]:
    """Say what is unusual in the form of a text file, and does no harm."""
    with files.opened(rows.path) as file:
        marked = file.read(3) == files.BOM
    found: list[Finding] = []
    if marked:
        problem = "the file starts with a byte order mark; it is ignored"
        found.append(Finding("info", rows.where, 1, "bom", problem))
    returns, apostrophes, last = 0, 0, b""
    try:
        for block in files.blocks(rows.path):
            returns += block.count(b"\r\n")
            apostrophes += len(_APOSTROPHES.findall(block)) if rows.layout.delimiter == "," else 0
            last = block[-1:]
    except InputError:
        last = b""  # cut short: that is found elsewhere
    if returns:
        problem = "lines end as on Windows (CR LF); that makes no difference"
        found.append(Finding("info", rows.where, None, "crlf", problem, "", returns))
    if apostrophes:
        problem = "an apostrophe before = + - @ or ' marks text for spreadsheets; the text is read without it"
        fix = "write two apostrophes where an id begins with one"
        found.append(Finding("info", rows.where, None, "apostrophe", problem, fix, apostrophes))
    if last and last not in b"\r\n":
        problem = "the last line has no line end; that makes no difference if it is complete"
        found.append(Finding("info", rows.where, None, "no-final-newline", problem))
    return found
