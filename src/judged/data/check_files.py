"""Find all errors and oddities in files of qrels and runs, which is slower than reading them."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from judged.data import check_tables, files
from judged.data.check_tables import CheckedRows
from judged.data.findings import Finding, Findings, finding_from_error
from judged.data.identify import identify
from judged.data.json_rows import COLUMN_TYPES
from judged.data.layout import COMMENT_FIX, LineError, is_data, parse_field, split_line
from judged.data.objects import with_scores
from judged.data.qrels import QRELS_COLUMNS, Qrels
from judged.data.rows import TableRows
from judged.data.run import RUN_COLUMNS, Run
from judged.data.sources import Source, expand_path, open_source, split_name
from judged.data.text_rows import TextRows
from judged.data.texts import document_ids
from judged.errors import InputError, JudgedWarning
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from judged.data.column_names import Kind
    from judged.data.rows import Rows
    from judged.results.types import Strings, Table


class Corpus(NamedTuple):
    """Ids of all documents, and the path of the file with them."""

    ids: Strings
    where: str


_SEVERITY_ORDER = {"error": 0, "warning": 1, "info": 2}


def check(
    qrels: str | Path | Qrels,
    runs: Iterable[str | Path | Run] = (),
    *,
    qrels_format: str | None = None,
    run_format: str | None = None,
    texts: str | Path | None = None,
) -> Findings:
    """Check qrels and runs for problems that would make results wrong.

    Parameters
    ----------
    qrels, runs
        Paths, `Qrels` and `Run` objects.
    qrels_format, run_format
        Formats of the files; detected if None.
    texts
        The corpus: an input of `Texts.read`, or a text file with one id on each line. Judged and returned documents
        that are not in the corpus are reported.

    Returns
    -------
    Findings
        Errors first. Runs are also compared with the qrels, if these can be read.

    Raises
    ------
    InputError
        If a file cannot be read.

    Examples
    --------
    >>> from judged import Qrels, Run, check
    >>> findings = check(Qrels.of({"q1": {"d1": 1}}), [Run.of({"q1": {"d1": 2.0}, "q2": {"d1": 2.0}})])
    >>> [finding.severity for finding in findings]
    ['warning']
    """
    corpus = None if texts is None else Corpus(pa.array(document_ids(texts), pa.string()), str(texts))
    findings = check_qrels(qrels, format=qrels_format, corpus=corpus)
    try:
        judgments = qrels if isinstance(qrels, Qrels) else Qrels.read(qrels, format=qrels_format)
    except InputError:
        judgments = None  # already reported; the runs are checked without qrels
    for run in runs:
        for file in [run] if isinstance(run, Run) else expand_path(split_name(run)[1]):
            findings += check_run(file, judgments, format=run_format, corpus=corpus)
    return findings


def check_one(path: str | Path) -> Findings:
    r"""Say what a file contains and which commands use it, and check it if it holds qrels or a run.

    Parameters
    ----------
    path
        File of any kind that is read.

    Raises
    ------
    InputError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("query,sku,grade\nred,A-1,2\nred,A-2,0\n")
    ...     content = check_one(f"{folder}/a.csv").contents[0]
    >>> content.kind, content.counts
    ('qrels', {'judgment': 2, 'topic': 1})
    """
    try:
        content = identify(path)
    except InputError as error:
        finding = finding_from_error(error, str(path))
        if finding is None:
            raise
        return Findings((finding,))
    checks = {"qrels": check_qrels, "run": check_run}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are notes of the content
        findings = checks[content.kind](path) if content.kind in checks else Findings(())
    return replace(findings, contents=(content,))


def check_qrels(
    qrels: str | Path | Qrels,
    *,
    format: str | None = None,
    corpus: Corpus | None = None,
) -> Findings:
    """Find problems in judgments; errors first.

    Parameters
    ----------
    qrels
        Judgments, or the path of a file.
    format
        File format; None: detected.
    corpus
        IDs of all documents of the collection, to report unknown ones.

    Raises
    ------
    InputError
        If the file does not exist, or may not be read.

    Examples
    --------
    >>> for finding in check_qrels(Qrels.of({"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 0}})):
    ...     print(finding.severity, finding.rule, "-", finding.problem)
    warning topics-without-relevant - 1 topic without a relevant document: q2
    """
    if isinstance(qrels, Qrels):
        content = Content(TableRows(qrels.table, qrels.where), qrels.table)
    else:
        content = _open_content(qrels, "qrels", format)
    findings = list(content.findings)
    if rows := _checked_rows(content):
        findings += check_tables.duplicate_pairs(rows, "iteration")
        findings += [*check_tables.check_labels(rows), *check_tables.check_grades(rows), *check_tables.check_ids(rows)]
        findings += check_tables.compare_with_corpus(rows, *corpus) if corpus else []
    return _sort_findings(findings)


def check_run(
    run: str | Path | Run,
    qrels: Qrels | None = None,
    *,
    format: str | None = None,
    corpus: Corpus | None = None,
) -> Findings:
    """Find problems in a run, and differences between its ids and those of the qrels; errors first.

    Parameters
    ----------
    run
        Run, or the path of a file.
    qrels
        Judgments to compare IDs with.
    format
        File format; None: detected.
    corpus
        IDs of all documents of the collection, to report unknown ones.

    Raises
    ------
    InputError
        If the file does not exist, or may not be read.

    Examples
    --------
    >>> run, qrels = Run.of({"q1": {"d1": 0.5, "d2": 0.5}}), Qrels.of({"q1": {"D1": 1, "d2": 0}, "q2": {"d3": 1}})
    >>> [finding.rule for finding in check_run(run, qrels)]
    ['ties', 'constant-scores', 'near-same-ids', 'missing-topics']
    """
    content = _source_content(run.rows, "run") if isinstance(run, Run) else _open_content(run, "run", format)
    findings = list(content.findings)
    if rows := _checked_rows(content):
        findings += check_tables.duplicate_pairs(rows, "run_id")
        findings += [
            *check_tables.check_scores(rows, qrels.index if qrels is not None else None),
            *check_tables.check_ids(rows),
        ]
        if qrels is not None:
            findings += check_tables.compare_with_qrels(rows, qrels.index)
        findings += check_tables.compare_with_corpus(rows, *corpus) if corpus else []
    return _sort_findings(findings)


def _open_content(path: str | Path, kind: Kind, format: str | None) -> Content:
    try:
        source = open_source(path, kind, format)
    except InputError as error:
        finding = finding_from_error(error, str(path))
        if finding is None:
            raise
        return Content(None, None, (finding,))
    return _source_content(source.rows, kind)


def _source_content(rows: Rows, kind: Kind) -> Content:
    columns = QRELS_COLUMNS if kind == "qrels" else RUN_COLUMNS
    content = read_content(rows, columns, lambda: Source(rows).table(columns)[0])
    if isinstance(rows, TextRows):
        findings = (*content.findings, *text_format_findings(rows))
        content = Content(rows, content.table, findings, content.line_numbers)
    return content


def _checked_rows(content: Content) -> CheckedRows | None:
    """Return the valid rows; None if there are none."""
    if content.table is None or not content.table.num_rows or content.rows is None:
        return None
    where = content.rows.where
    table = content.table
    if "relevance" not in table.column_names:
        table = with_scores(table, "run", where)
    return CheckedRows(table, where, content.line)


def _sort_findings(findings: Iterable[Finding]) -> Findings:
    return Findings(tuple(sorted(findings, key=lambda finding: _SEVERITY_ORDER[finding.severity])))


_FIXES = {
    "too-few-fields": "complete or remove the lines",
    "too-many-fields": "quote fields that contain the delimiter; split lines that were joined",
    "empty-id": "fill in the id",
    "comment-or-row": COMMENT_FIX,
    "bad-quote": "close the quote",
    "bad-score": "write a number with a decimal point",
    "bad-relevance": "write a number with a decimal point",
    "nan-score": "add a score for these documents, or leave them out",
    "bad-rank": "write an integer",
    "not-utf8": "save the file as UTF-8",
}
_APOSTROPHES = re.compile(rb"""(?:^|[,"\n]) *'(?=[=+\-@'\t])""")  # written by `judged.results.escaping.csv_cell`


@dataclass(frozen=True)
class Content:
    """Valid rows of a source with their line numbers, and the findings about the other rows."""

    rows: Rows | None = field(repr=False)
    table: Table = field(repr=False)
    findings: tuple[Finding, ...] = ()
    line_numbers: tuple[int, ...] | None = field(default=None, repr=False)

    @cached_property
    def _lines(self) -> tuple[int, ...]:
        if self.line_numbers is not None:
            return self.line_numbers
        if not isinstance(self.rows, TextRows):
            return ()
        layout = self.rows.layout
        return tuple(
            number
            for number, raw in self.rows.numbered()
            if (split_line(raw, layout) is not None if layout.strict else is_data(raw))  # strict: # may start a row
        )

    def line(self, row: int) -> int | None:
        """Return the line number of a row of the table; None if the source has no lines."""
        return self._lines[row] if row < len(self._lines) else None


def read_content(rows: Rows, columns: tuple[str, ...], read_table: Callable[[], Table]) -> Content:
    """Read all rows with `read_table`, and line by line if that raises InputError."""
    try:
        return Content(rows, read_table())
    except InputError as error:
        if isinstance(rows, TextRows):
            return _read_lines(rows, columns)
        finding = finding_from_error(error, rows.where)
        if finding is None:
            raise
        return Content(rows, None, (finding,))


class _ErrorCounts:
    """Number of errors, and first line and problem, for each rule."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._errors: dict[str, tuple[int, int | None, str]] = {}

    def add(self, rule: str, line: int | None, problem: str) -> None:
        count, first_line, first_problem = self._errors.get(rule, (0, line, problem))
        self._errors[rule] = (count + 1, first_line, first_problem)

    def findings(self) -> list[Finding]:
        return [
            Finding("error", self._where, line, rule, problem, _FIXES[rule], count)
            for rule, (count, line, problem) in self._errors.items()
        ]


def _read_lines(rows: TextRows, columns: tuple[str, ...]) -> Content:
    values_by_name: dict[str, list[Any]] = {name: [] for name in columns if name in rows.layout.names}
    lines: list[int] = []
    errors = _ErrorCounts(rows.where)
    truncations: list[Finding] = []
    number, last_error = 0, (0, "")
    try:
        for number, raw in rows.numbered():
            try:
                fields = split_line(raw, rows.layout)
                row = [parse_field(name, fields.get(name, "")) for name in values_by_name] if fields else None
            except LineError as error:
                errors.add(error.rule, number, str(error))
                last_error = (number, error.rule)
                continue
            except UnicodeDecodeError:
                errors.add("not-utf8", number, "this file is not UTF-8")
                continue
            if row is not None:
                lines.append(number)
                for values, value in zip(values_by_name.values(), row, strict=True):
                    values.append(value)
    except InputError as error:  # the compressed data ends early
        truncations = [finding for finding in (finding_from_error(error, rows.where),) if finding]
    if last_error == (number, "too-few-fields") and not _ends_with_newline(rows):
        problem = "the last line is incomplete: the file is truncated"
        truncations.append(
            Finding("error", rows.where, number, "truncated", problem, "create or download the file again")
        )
    arrays = {name: pa.array(values, COLUMN_TYPES.get(name, pa.string())) for name, values in values_by_name.items()}
    return Content(rows, pa.table(arrays), (*errors.findings(), *truncations), tuple(lines))


def _ends_with_newline(rows: TextRows) -> bool:
    try:
        *_, last = files.blocks(rows.path)
    except InputError:
        return False
    return last.endswith((b"\n", b"\r"))


def text_format_findings(rows: TextRows) -> list[Finding]:
    """Find harmless oddities in the encoding of a text file."""
    with files.opened(rows.path) as file:
        has_bom = file.read(3) == files.BOM
    findings: list[Finding] = []
    if has_bom:
        problem = "the file starts with a byte order mark; it is ignored"
        findings.append(Finding("info", rows.where, 1, "bom", problem))
    crlf_count, apostrophe_count, last_byte = 0, 0, b""
    try:
        for block in files.blocks(rows.path):
            crlf_count += block.count(b"\r\n")
            apostrophe_count += len(_APOSTROPHES.findall(block)) if rows.layout.delimiter == "," else 0
            last_byte = block[-1:]
    except InputError:
        last_byte = b""  # truncated, which is reported elsewhere
    if crlf_count:
        problem = "lines end with CR LF (Windows); this has no effect"
        findings.append(Finding("info", rows.where, None, "crlf", problem, "", crlf_count))
    if apostrophe_count:
        problem = "an apostrophe before = + - @ or ' marks text for spreadsheets; the apostrophe is removed"
        fix = "if an id begins with an apostrophe, write two apostrophes"
        findings.append(Finding("info", rows.where, None, "apostrophe", problem, fix, apostrophe_count))
    if last_byte and last_byte not in b"\r\n":
        problem = "the last line has no line end; this has no effect if the line is complete"
        findings.append(Finding("info", rows.where, None, "no-final-newline", problem))
    return findings
