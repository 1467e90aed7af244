"""Read labels of several judges: tables with a column of judges, books with a column per judge, JSON of tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from judged.data import files
from judged.data.column_names import (
    DUPLICATE_FIX,
    canonical_names,
    check_unique_names,
    find_name_clash,
    is_query_text,
    missing_columns,
    missing_columns_error,
    unused_columns,
)
from judged.data.delimited import read_delimited
from judged.data.grade_words import grades_of_words
from judged.data.json_rows import json_kind, json_lines, load_json
from judged.data.records import read_records
from judged.data.tool_layouts import find_layout
from judged.errors import InputError
from judged.results.blocks import first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from judged.data.delimited import DelimitedTable

    Row = tuple[int | None, dict[str, Any]]

_MAX_GRADE = 10  # of a column that is recognized as the grades of a judge


class LabelRows(NamedTuple):
    """Rows with canonical names of columns, each with its line or None, and notes on how the file was read.

    If the query is identified by its text, ``text`` equals ``query_id``. The ``relevance`` is not parsed.
    """

    rows: list[Row]
    notes: list[str]

    @property
    def judges(self) -> set[str]:
        """Names of all judges."""
        return {str(row["judge"]) for _, row in self.rows if row.get("judge") not in {None, ""}}


def read_label_rows(path: Path, where: str) -> LabelRows | None:
    """Read a file as labels; None if it has no columns of queries and documents.

    Raises
    ------
    InputError
        If there is no column of grades, or two columns have the same meaning.
    """
    head = files.head(path).removeprefix(files.BOM).lstrip()
    if head.startswith((b"PAR1", b"ARROW1")):
        return _named_rows(read_records(path), where)
    if not head.startswith((b"{", b"[")):
        table = read_delimited(path, where, "labels")
        return None if table is None else _delimited_rows(table, where)
    is_jsonl = json_kind(head.decode(errors="replace"), where) == "jsonl"
    records: list[Row] = [*json_lines(path, where)] if is_jsonl else []
    data = [record for _, record in records] if is_jsonl else load_json(path, where)
    first = next(iter(data), None) if isinstance(data, list) else None
    is_flat = isinstance(first, dict) and not missing_columns(canonical_names(first, "labels"), "labels")
    if not is_flat and (found := find_layout(data, "labels")):
        layout, rows = found
        named: list[Row] = [(None, {**row, "judge": _judge_name(row.get("judge")) or layout.judge}) for row in rows]
        return LabelRows(named, layout.notes(data)[1:])  # without the tool, as any of these layouts is certain
    return _named_rows(records if is_jsonl else read_records(path), where)


def _judge_name(judge: Any) -> Any:
    """Return the name in a record of a user, as Label Studio can write it."""
    return judge.get("email") or judge.get("id") if isinstance(judge, dict) else judge


def _named_rows(records: Iterable[Row], where: str) -> LabelRows | None:
    """Rename the columns of records, which need not all have the same columns."""
    rows: list[Row] = []
    unused: dict[str, None] = {}
    for line, record in records:
        columns = list(record)
        names = canonical_names(columns, "labels")
        if problem := find_name_clash(names, columns, "labels"):
            raise InputError(problem, fix=DUPLICATE_FIX, path=where, line=line, rule="same-columns")
        if missing := missing_columns(names, "labels"):
            if not rows and missing - {"relevance"}:
                return None
            raise missing_columns_error(columns, "labels", where, line=line)
        row = {
            name: value
            for name, value in zip(names, record.values(), strict=True)
            if name == "relevance" or (name and not isinstance(value, (list, dict)))
        }
        if is_query_text(columns[names.index("query_id")]):
            row["text"] = row.get("query_id")
        rows.append((line, row))
        unused |= dict.fromkeys(unused_columns(names, columns, "labels"))
    return LabelRows(rows, [f"columns that are not used: {first_few(list(unused))}"] * bool(unused))


def _delimited_rows(table: DelimitedTable, where: str) -> LabelRows | None:
    """Name the columns of a table, and write a row for each cell with a grade, if each judge has a column."""
    check_unique_names([column for column in table.columns if column], where, 1)
    names = canonical_names(table.columns, "labels")
    if judges := _judge_columns(table, names):
        shared = [position for position in range(len(names)) if position not in judges]
        columns = [*(table.columns[position] for position in shared), "judge", "grade"]
        cells = [
            (line, [*(row[position] for position in shared), table.columns[judge], row[judge]])
            for line, row in zip(table.lines, table.rows, strict=True)
            for judge in judges
            if row[judge]
        ]
        unrated = sum(not any(row[judge] for judge in judges) for row in table.rows)
        is_quepid = [column.lower() for column in table.columns[:2]] == ["query", "docid"]
        raters = first_few([table.columns[judge] for judge in judges])
        notes = [] if is_quepid else [f"each of these columns has the grades of one judge: {raters}"]
    else:
        columns, notes = list(table.columns), []
        grade = names.index("relevance") if "relevance" in names and "judge" not in names else None
        cells = [pair for pair in zip(table.lines, table.rows, strict=True) if grade is None or pair[1][grade]]
        unrated = len(table.rows) - len(cells)
    labels = _named_rows([(line, dict(zip(columns, row, strict=True))) for line, row in cells], where)
    notes += [f"{counted(unrated, 'row')} without a grade left out"] * bool(unrated)
    return None if labels is None else LabelRows(labels.rows, [*table.notes, *notes, *labels.notes])


def _judge_columns(table: DelimitedTable, names: Sequence[str]) -> list[int]:
    """Return the positions of the columns of a book, with the grades of one judge each; empty if it is no book."""
    if not {"query_id", "doc_id"} <= set(names) or {"relevance", "judge", "rank", "run_id"} & set(names):
        return []
    cells = {
        position: [row[position] for row in table.rows if row[position]]
        for position, name in enumerate(names)
        if not name
    }
    return [position for position, grades in cells.items() if grades and sum(map(_is_grade, grades)) * 2 >= len(grades)]


def _is_grade(text: str) -> bool:
    grades = grades_of_words([text])
    return grades is not None and 0 <= grades[text] <= _MAX_GRADE
