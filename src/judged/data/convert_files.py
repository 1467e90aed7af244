"""Convert qrels and runs from any layout that is read to another layout."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from judged.data.column_names import Kind
from judged.data.compute import pc
from judged.data.identify import is_run
from judged.data.qrels import QRELS_COLUMNS, Qrels
from judged.data.run import Run
from judged.data.sources import open_source
from judged.data.write import write_qrels, write_run, write_table
from judged.errors import InputError
from judged.results.decimals import read_number
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from judged.results.types import Table

_MIN_MILLISECONDS = 1e11  # a time in seconds of the year 5138, or in milliseconds of 1973

ConvertFormat = Literal["trec", "csv", "tsv", "jsonl", "parquet", "beir"]


def convert(
    path: str | Path,
    out: str | Path,
    *,
    to: ConvertFormat | None = None,
    kind: Kind | None = None,
    min_grade: float | None = None,
    since: str | None = None,
) -> Qrels | Run:
    r"""Convert a file of judgments or of a run to another format, and return what was written.

    Parameters
    ----------
    path
        File in any layout that `Qrels.read` or `Run.read` accepts.
    out
        File to write.
    to
        Format. ``beir`` is a table with the columns ``query-id``, ``corpus-id``, ``score`` for qrels, and JSON
        ``{query_id: {doc_id: score}}`` for runs. Default: by the extension of `out`.
    kind
        ``qrels`` or ``run``. Default: detected.
    min_grade
        Keep only judgments with at least this grade, for example only ratings of 4 and 5.
    since
        Keep only judgments with this time or a later one, for tables with a column of times: a number, or a text that
        is compared with the texts, such as ``2024-01-31`` (in UTC, if the times are seconds or milliseconds).

    Raises
    ------
    InputError
        If the file cannot be read, or the format cannot hold its content unchanged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "qrels.txt").write_text("q1 0 d1 2\n")
    ...     _ = convert(f"{folder}/qrels.txt", f"{folder}/test.tsv", to="beir")
    ...     Path(folder, "test.tsv").read_text()
    'query-id\tcorpus-id\tscore\nq1\td1\t2\n'
    """
    if kind == "run" or (kind is None and is_run(path)):
        if min_grade is not None or since is not None:
            raise InputError(
                "`min_grade` and `since` select judgments, got a run",
                fix="omit `min_grade` and `since`",
                path=str(path),
            )
        run = Run.read(path)
        if to == "beir":
            _write_beir_run(run, Path(out))
        else:
            write_run(run, out, to)
        return run
    qrels = Qrels.read(path)
    if min_grade is not None or since is not None:
        qrels = Qrels(_select(path, min_grade, since), qrels.name, qrels.where)
    if to == "beir":
        _write_beir_qrels(qrels, Path(out))
    else:
        write_qrels(qrels, out, to)
    return qrels


def _select(path: str | Path, min_grade: float | None, since: str | None) -> Table:
    table, _ = open_source(path, "qrels").table((*QRELS_COLUMNS, "time"))
    if since is not None:
        if "time" not in table.column_names:
            raise InputError("there is no column of times", fix="use --columns time=COLUMN", path=str(path))
        table = table.filter(pa.array(_is_since(table["time"].to_pylist(), since)))
    if min_grade is not None:
        table = table.filter(pc.greater_equal(table["relevance"], min_grade))
    return table.select([name for name in QRELS_COLUMNS if name in table.column_names])


def _is_since(times: list[str], since: str) -> list[bool]:
    try:
        numbers = [read_number(time) for time in times]
    except ValueError:
        return [time >= since for time in times]
    try:
        start = read_number(since)
    except ValueError:
        try:
            start = datetime.fromisoformat(since).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InputError(f"`since` must be a date or a number, got {since!r}", fix="use 2024-01-31") from None
    unit = 1000 if numbers and min(numbers) > _MIN_MILLISECONDS else 1
    return [number >= start * unit for number in numbers]


def _write_beir_qrels(qrels: Qrels, path: Path) -> None:
    if "iteration" in qrels.table.column_names and len(pc.unique(qrels.table["iteration"])) > 1:
        problem = "the format beir has no place for iterations (subtopics or assessors)"
        raise InputError(problem, fix="use --to trec", path=qrels.where)
    names = {"query_id": "query-id", "doc_id": "corpus-id", "relevance": "score"}
    table = qrels.table.select(list(names)).rename_columns(list(names.values()))
    write_table(table, "qrels", path, "tsv")


def _write_beir_run(run: Run, path: Path) -> None:
    table = run.table
    if "score" not in table.column_names:
        raise InputError("the format beir requires scores", fix="use --to csv", path=run.where)
    scores: dict[str, dict[str, float]] = {}
    for query, doc, score in zip(*(table[name].to_pylist() for name in ("query_id", "doc_id", "score")), strict=True):
        scores.setdefault(query, {})[doc] = score
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(scores, ensure_ascii=False), encoding="utf-8")
