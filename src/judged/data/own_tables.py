"""Read qrels and runs in the layouts of other tools and of spreadsheets, which need not have the usual columns."""

from __future__ import annotations

import re
from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from judged.data import files
from judged.data.column_names import (
    canonical_names,
    check_name_clash,
    check_no_numbers,
    is_query_text,
    known_names,
    missing_columns,
    missing_columns_error,
    misspelled_column,
    name_key,
    unused_columns,
)
from judged.data.delimited import numbered_columns, parse_numbers, read_delimited
from judged.data.grade_words import grades_of_words
from judged.data.json_rows import json_kind, json_lines, load_json
from judged.data.objects import canonical_table
from judged.data.records import read_records
from judged.data.tool_layouts import find_layout
from judged.errors import InputError
from judged.results.blocks import first_few
from judged.results.decimals import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from judged.data.column_names import Kind
    from judged.data.delimited import DelimitedTable
    from judged.results.types import Table

    Row = tuple[int | None, dict[str, Any]]

_JUDGMENT = ["query_id", "doc_id", "relevance"]
_LETOR = re.compile(r"([0-9]+) qid:(\S+) ")
_LISTS = known_names("lists")["results"]
"""Names of columns with all results of a query, in rank order."""


def read_own_table(path: Path, kind: Kind, where: str) -> tuple[Table, list[str]] | None:
    """Read a file as qrels or a run, with notes on how it was read; None if its layout is unknown."""
    head = files.head(path).decode(errors="replace").lstrip()
    if head.startswith(("PAR1", "ARROW1")):
        return None
    if head.startswith(("{", "[")):
        return _read_json(path, kind, where, json_kind(head, where))
    if kind == "qrels" and _LETOR.match(head):
        return _read_letor(path, where)
    return _read_delimited(path, kind, where)


def _read_letor(path: Path, where: str) -> tuple[Table, list[str]]:
    """Read judgments of LETOR and SVMlight: the document is named by its position in the query, from 0."""
    rows: list[tuple[str, str, str]] = []
    counts = Counter[str]()
    for number, line in enumerate(files.text(path, where).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LETOR.match(line)
        if not match:
            raise InputError("expected GRADE qid:QUERY FEATURES", fix="correct the line", path=where, line=number)
        grade, query = match.groups()
        rows.append((query, str(counts[query]), grade))
        counts[query] += 1
    notes = [
        "read as LETOR (SVMlight): a document id is the document's position in the query, from 0, as in score files"
    ]
    return _typed(_columns(_JUDGMENT, rows), "qrels", where, notes), notes


def _columns(names: Iterable[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))  # empty without rows


def _read_json(path: Path, kind: Kind, where: str, format: str) -> tuple[Table, list[str]] | None:
    """Read JSON or JSON Lines of another tool; None if its layout is unknown. Also return notes."""
    records: list[Any] = []
    try:
        if format == "jsonl":
            records.extend(record for _, record in json_lines(path, where))
        data = records if format == "jsonl" else load_json(path, where)
    except InputError:
        if records and find_layout(records, kind):  # the file of a tool is damaged
            raise
        return None
    if (found := find_layout(data, kind)) is None:
        return None
    layout, rows = found
    notes = layout.notes(data)
    read = _JUDGMENT if layout.kind == "labels" else layout.paths
    columns = {name: [single_value(row.get(name)) for row in rows] for name in read}
    if {"score", "rank"} <= set(columns):
        notes += _choose_order(columns, by_score=layout.by_score)
    return _typed(columns, kind, where, notes), notes


class LabelRows(NamedTuple):
    """Rows of labels with canonical names of columns, each with its line or None, and notes on how they were read.

    If the query is identified by its text, ``text`` equals ``query_id``. The ``relevance`` is not parsed.
    """

    rows: list[Row]
    notes: list[str]

    @property
    def judges(self) -> set[str]:
        """Names of all judges."""
        return {str(row["judge"]) for _, row in self.rows if row.get("judge")}


def read_label_rows(path: Path, where: str) -> LabelRows | None:
    """Read a file as labels of several judges; None if it has no columns of queries and documents.

    Raises
    ------
    InputError
        If there is no column of grades, or two columns have the same meaning.
    """
    head = files.head(path).removeprefix(files.BOM).decode(errors="replace").lstrip()
    if not head.startswith(("PAR1", "ARROW1", "{", "[")):
        table = read_delimited(path, where, "labels")
        return None if table is None else _label_rows_of_table(table, where)
    labels = _label_rows_of_tool(path, where, json_kind(head, where)) if head.startswith(("{", "[")) else None
    return labels or _named_rows(((line, list(row), list(row.values())) for line, row in read_records(path)), where)


def _label_rows_of_tool(path: Path, where: str, format: str) -> LabelRows | None:
    """Read JSON of another tool; None if its layout is unknown, or its records have columns of labels."""
    data = [record for _, record in json_lines(path, where)] if format == "jsonl" else load_json(path, where)
    first = next(iter(data), None) if isinstance(data, list) else None
    is_flat = isinstance(first, dict) and not missing_columns(canonical_names(first, "labels"), "labels")
    if is_flat or (found := find_layout(data, "labels")) is None:
        return None
    layout, rows = found
    for row in rows:  # Label Studio can write the record of a user
        user = row.get("judge") or layout.judge
        row["judge"] = user.get("email") or user.get("id") if isinstance(user, dict) else user
    # The tool is not named, as only its own files have this layout.
    return LabelRows([(None, row) for row in rows], layout.notes(data)[1:])


def _named_rows(records: Iterable[tuple[int | None, list[str], list[Any]]], where: str) -> LabelRows | None:
    """Name the values of rows, given as line, columns, and values; the rows need not all have the same columns."""
    rows: list[Row] = []
    unused: dict[str, None] = {}
    previous, names, is_text = list[str](), tuple[str, ...](), False
    for line, columns, values in records:
        if columns != previous or not rows:
            previous, names = columns, canonical_names(columns, "labels")
            unused |= dict.fromkeys(unused_columns(names, columns, "labels"))
            check_name_clash(names, columns, "labels", where, line)
            if missing := missing_columns(names, "labels"):
                if not rows and missing != {"relevance"}:
                    return None
                raise missing_columns_error(columns, "labels", where, line=line)
            is_text = is_query_text(columns[names.index("query_id")])
        row = dict(zip(names, values, strict=True))
        rows.append((line, row | {"text": row["query_id"]} if is_text else row))
    rated = [(line, row) for line, row in rows if row.get("judge") or row["relevance"] not in (None, "")]
    notes = [f"{counted(len(rows) - len(rated), 'row')} without a grade left out"] * (len(rated) < len(rows))
    return LabelRows(rated, notes + [f"columns that are not used: {first_few(list(unused))}"] * bool(unused))


def _label_rows_of_table(table: DelimitedTable, where: str) -> LabelRows | None:
    """Read a table of labels. In a book, as of Quepid, each judge has a column: its rows become one for each grade."""
    judges = _judge_columns(table)
    columns = ["" if position in judges else column for position, column in enumerate(table.columns)]
    columns += ["judge", "grade"] * bool(judges)
    records = (
        (line, columns, [*cells, *grade])
        for line, cells in zip(table.lines, table.rows, strict=True)
        for grade in [(table.columns[p], cells[p]) for p in judges if cells[p]] or [("", "") if judges else ()]
    )
    labels = _named_rows(records, where)
    if labels is not None and judges and [name.lower() for name in columns[:2]] != ["query", "docid"]:
        raters = first_few([table.columns[position] for position in judges])
        labels.notes.insert(0, f"each of these columns has the grades of one judge: {raters}")
    return labels and LabelRows(labels.rows, [*table.notes, *labels.notes])


def _judge_columns(table: DelimitedTable) -> list[int]:
    """Return the positions of the columns with the grades of one judge each, mostly words or numbers from 0 to 10."""
    names = canonical_names(table.columns, "labels")
    if not {"query_id", "doc_id"} <= set(names) or {"relevance", "judge", "rank", "run_id"} & set(names):
        return []
    cells = {p: list(filter(None, table.column(p))) for p, name in enumerate(names) if not name}
    are_grades = {p: [0 <= (grades_of_words([text]) or {}).get(text, -1) <= 10 for text in cells[p]] for p in cells}
    return [p for p, checks in are_grades.items() if checks and sum(checks) * 2 >= len(checks)]


def read_agreed_judgments(path: Path, where: str) -> Table | None:
    """Read the grades of several judges, if all judges of a pair agree; None if the file has no judges.

    Raises
    ------
    InputError
        If they do not agree.
    """
    labels = read_label_rows(path, where)
    if labels is None or not labels.judges:
        return None
    table = _judgments(labels, where)
    counts = table.group_by(_JUDGMENT[:2]).aggregate([([], "count_all")])
    different = sum(count > 1 for count in counts["count_all"].to_pylist())
    if different:
        judges, pairs = counted(len(labels.judges), "judge"), counted(counts.num_rows, "pair")
        # As JSON Lines, because a query text cannot be an id in TREC format.
        command = f"judged labels qrels {quote(where)} -o qrels.jsonl --by majority"
        problem = f"these are labels of {judges}, whose grades differ for {different:,} of {pairs}"
        raise InputError(problem, fix=f"use {command}, and then qrels.jsonl", path=where)
    return table


def _judgments(labels: LabelRows, where: str) -> Table:
    values = ((line, [single_value(row.get(name)) for name in _JUDGMENT]) for line, row in labels.rows)
    # Equal grades of several judges are one judgment.
    rows = {tuple("" if value is None else str(value) for value in cells): line for line, cells in values}
    return _typed(_columns(_JUDGMENT, rows), "qrels", where, labels.notes, list(rows.values()))


def _choose_order(columns: dict[str, list[Any]], *, by_score: bool) -> list[str]:
    """Keep the scores or else the positions of results; return a note if they disagree."""
    scores, ranks = columns["score"], columns["rank"]
    if not all(isinstance(score, (int, float)) for score in scores):
        del columns["score"]
        return []
    pairs = zip(scores, scores[1:], ranks[1:], strict=False)
    agree = all(rank == 1 or after <= before for before, after, rank in pairs)
    del columns["rank" if by_score or agree else "score"]
    order = "scores" if by_score else "positions"
    return [] if agree else [f"scores and positions disagree, so that results are ordered by their {order}"]


def single_value(value: Any) -> Any:
    """Return the element of a list with one element."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value  # pyright: ignore[reportUnknownVariableType]


def _read_delimited(path: Path, kind: Kind, where: str) -> tuple[Table, list[str]] | None:
    """Read a delimited table with a header; None if there is no header. Also return notes."""
    table = read_delimited(path, where, kind)
    if table is None or not table.rows:
        return None
    notes = list(table.notes)
    names = canonical_names(table.columns, kind)
    check_name_clash(names, table.columns, kind, where)
    used = {position for position, name in enumerate(names) if name}
    cells: dict[str, list[Any]] = {names[position]: table.column(position) for position in used}
    if kind == "run" and "query_id" in cells and ("doc_id" not in cells or not {"score", "rank"} & set(cells)):
        ranked, positions = _ranked_lists(table, names)
        cells, used = ranked or cells, used | positions
    if kind == "qrels" and "relevance" not in cells and len(_judge_columns(table)) > 1:
        labels = read_label_rows(path, where)
        if labels is not None:
            note = f"read as labels of {counted(len(labels.judges), 'judge')}, each with a column of grades"
            return _judgments(labels, where), [note, *labels.notes]
    if missing_columns(cells, kind):
        used |= _find_grades(cells, table, kind, where, notes)
    for number, query, doc in zip(table.lines, cells["query_id"], cells["doc_id"], strict=False):
        if not query or not doc:
            problem = f"the {'doc_id' if query else 'query_id'} is empty"
            raise InputError(problem, fix="fill in the id", path=where, line=number, rule="empty-id")
    if "rank" in cells and "score" not in cells:
        used |= _combine_pages(cells, table, used, notes)
    if kind == "run" and not {"score", "rank", "distance", "relevance"} & set(cells):
        check_no_numbers(table.columns, table.rows, used, where)
    others = [column for position, column in enumerate(table.columns) if position not in used and column.strip()]
    notes += [f"columns that are not used: {first_few(others)}"] if others else []
    return _typed(cells, kind, where, notes, table.lines), notes


def _find_grades(
    cells: dict[str, list[Any]], table: DelimitedTable, kind: Kind, where: str, notes: list[str]
) -> set[int]:
    """Read a column with a misspelled name as grades, or no grades of two columns; return its position."""
    if kind == "qrels" and set(cells) == {"query_id", "doc_id"} and len(table.columns) == 2:
        notes.append("there is no column of grades, so that all documents are read as relevant")
        return set()
    name = misspelled_column(table.columns, kind, table.rows)
    if not name:
        raise missing_columns_error(table.columns, kind, where, table.rows, table.lines[0] - 1)
    position = table.columns.index(name)
    cells["relevance"] = table.column(position)
    notes.append(f"the column {name} was read as relevance")
    return {position}


def _ranked_lists(table: DelimitedTable, names: Sequence[str]) -> tuple[dict[str, list[Any]], set[int]]:
    """Convert rows with all results of a query to a row for each result, with its rank; empty if there are none."""
    positions = numbered_columns(table.columns)
    lists = [[row[position] for position in positions] for row in table.rows]
    if not positions:
        named = [p for p, column in enumerate(table.columns) if name_key(column) in _LISTS and not names[p]]
        scores = [p for p, name in enumerate(names) if name == "score"]
        positions = (named or [p for p in scores if all(" " in cell for cell in table.column(p) if cell)])[:1]
        lists = [_split_list(row[position]) for row in table.rows for position in positions]
    rows = [
        (query, doc, rank)
        for query, docs in zip(table.column(names.index("query_id")), lists, strict=False)
        for rank, doc in enumerate(filter(None, docs), 1)
    ]
    return _columns(("query_id", "doc_id", "rank"), rows), set(positions) if rows else set()


def _split_list(text: str) -> list[str]:
    separator = next((mark for mark in "|;," if mark in text), None)
    return [doc.strip(" \"'") for doc in text.strip("[]").split(separator)]


def _combine_pages(cells: dict[str, list[Any]], table: DelimitedTable, used: set[int], notes: list[str]) -> set[int]:
    """Number ranks through all pages, if they begin at 1 on each page; return the position of the column of pages."""
    pages = {p for p, column in enumerate(table.columns) if name_key(column) in {"page", "pageno"}} - used
    if len(set(zip(cells["query_id"], cells["rank"], strict=True))) == len(table.rows) or not pages:
        return set()
    numbers, ranks = parse_numbers(table.column(min(pages))), parse_numbers(cells["rank"])
    if numbers is None or ranks is None:
        return set()
    size = max(ranks) + 1
    cells["rank"] = [str(int(page * size + rank)) for page, rank in zip(numbers, ranks, strict=True)]
    notes.append("ranks begin again on each page, so that results are ordered by page and rank")
    return {min(pages)}


def _typed(
    columns: dict[str, list[Any]], kind: Kind, where: str, notes: list[str], lines: Sequence[int | None] = ()
) -> Table:
    """Convert columns of texts to a table of qrels or of a run."""
    for name in ("distance", "score", "rank"):
        values = columns.pop(name, [])
        if any(value not in (None, "") for value in values):
            columns[name] = _parse_column(values, name, where, lines)
        elif values:
            notes.append(f"all values of the {name} are empty")
    if (distances := columns.pop("distance", None)) and "score" not in columns:
        columns["score"] = [-value for value in distances]
        notes.append("the distances were read as scores: the smallest distance is the best result")
    if kind == "run" and not {"score", "rank", "relevance"} & set(columns):
        columns["rank"] = list(range(1, len(columns["doc_id"]) + 1))
        notes.append("there are no scores, so that the results of each query are read in the order of the rows")
    if kind == "qrels":
        grades = columns.get("relevance") or [1] * len(columns["doc_id"])
        columns["relevance"] = read_grades(grades, where, notes, lines)
    table = pa.table({
        name: values if name in {"score", "rank", "relevance"} else list(map(str, values))
        for name, values in columns.items()
    })  # fmt: skip
    if kind == "qrels":
        rated = table.filter(table["relevance"].is_valid())
        if rated.num_rows < table.num_rows:
            notes.append(f"{counted(table.num_rows - rated.num_rows, 'row')} without a grade left out")
        table = rated.group_by(table.column_names, use_threads=False).aggregate([])  # distinct rows
        if table.num_rows < rated.num_rows:
            notes.append(f"{counted(rated.num_rows - table.num_rows, 'repeated row')} left out")
    return canonical_table(table, kind, where)


def _parse_column(values: list[Any], name: str, where: str, lines: Sequence[int | None]) -> list[float]:
    if all(isinstance(value, (int, float)) for value in values):
        return values
    numbers = parse_numbers(list(map(str, values)))
    if numbers is None:
        row = next((i for i, value in enumerate(values) if parse_numbers([str(value)]) is None), 0)
        problem = f"the {name} {values[row]!r:.60} is not a number, or could be read in two ways"
        fix = "write numbers with a decimal point and without other separators"
        raise InputError(problem, fix=fix, path=where, line=lines[row] if lines else None, rule=f"bad-{name}")
    return numbers


def read_grades(values: Sequence[Any], where: str, notes: list[str], lines: Sequence[int | None]) -> list[float | None]:
    """Parse grades, all on the same scale of words or numbers; None for an empty text. Add a note on words."""
    texts = ["" if value is None else str(value).strip() for value in values]
    distinct = dict.fromkeys(text for text in texts if text)
    grades = grades_of_words(distinct)
    if grades is None and (numbers := parse_numbers(list(distinct))):
        grades = dict(zip(distinct, numbers, strict=True))
    if grades is None:
        row = next((i for i, text in enumerate(texts) if text and grades_of_words([text]) is None), 0)
        problem = f"the grade {texts[row]!r:.60} is not a number or a known word"
        fix = "write numbers, or words of one scale such as relevant, not relevant"
        line = lines[row] if lines else None
        raise InputError(problem, fix=fix, path=where, line=line, rule="bad-relevance")
    if any(text != f"{grade:g}" and parse_numbers([text]) is None for text, grade in grades.items()):
        notes.append("grades: " + ", ".join(f"{text} = {grade:g}" for text, grade in grades.items()))
    return [grades.get(text) for text in texts]
