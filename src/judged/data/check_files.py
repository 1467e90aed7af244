"""All that is wrong or odd in a file of qrels or of a run: slower than reading, and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from judged.data import check_tables as tables
from judged.data.check_lines import Content, form_findings, read_content
from judged.data.check_tables import Rows as CheckedRows
from judged.data.findings import Finding, Findings, of_error
from judged.data.objects import with_scores
from judged.data.qrels import QRELS_COLUMNS, Qrels
from judged.data.rows import TableRows
from judged.data.run import RUN_COLUMNS, Run
from judged.data.sources import Source, open_source
from judged.data.text_rows import TextRows
from judged.data.texts import document_ids
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from judged._types import Strings
    from judged.data.columns import Kind
    from judged.data.rows import Rows


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
