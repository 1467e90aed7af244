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
_LETOR = re.compile(rb"(\d+) qid:(\S+) ")
_LISTS = frozenset([
    "prediction", "predictions", "predicted", "results", "result", "retrieved", "ranking", "docs", "documents", "items",
    "recommendations", "recommended", "docids", "retrievedids", "retrieveddocids", "itemids", "trefferliste",
])  # fmt: skip
"""Names of columns with all results of a query, in rank order."""


def read_own_table(path: Path, kind: Kind, where: str) -> tuple[Table, list[str]] | None:
    """Read a file as qrels or a run, with notes on how it was read; None if its layout is unknown."""
    head = files.head(path).lstrip()
    if head.startswith((b"PAR1", b"ARROW1")):
        return None
    if head[:1] in (b"{", b"["):
        return _read_json(path, kind, where, json_kind(head.decode(errors="replace"), where))
    if kind == "qrels" and _LETOR.match(head):
        return _read_letor(path, where)
    return _read_delimited(path, kind, where)


def _read_letor(path: Path, where: str) -> tuple[Table, list[str]]:
    """Read judgments of LETOR and SVMlight: the document is named by its position in the query, from 0."""
    columns: dict[str, list[Any]] = {"query_id": [], "doc_id": [], "relevance": []}
    counts = Counter[str]()
    for number, line in enumerate(files.text(path, where).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LETOR.match(line.encode())
        if not match:
            raise InputError("expected GRADE qid:QUERY FEATURES", fix="correct it", path=where, line=number)
        query = match[2].decode()
        for name, value in (("query_id", query), ("doc_id", str(counts[query])), ("relevance", match[1].decode())):
            columns[name].append(value)
        counts[query] += 1
    notes = ["read as LETOR (SVMlight): a document has its position in the query as its id, from 0, as in score files"]
    return _typed(columns, "qrels", where, notes), notes


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
    found = find_layout(data, kind)
    if found is None:
        return None
    layout, rows = found
    notes = layout.notes(data)
    read = _JUDGMENT if layout.kind == "labels" else layout.paths
    columns = {name: [single_value(row.get(name)) for row in rows] for name in read}
    if kind == "qrels" and "relevance" not in columns:
        columns["relevance"] = [1] * len(rows)
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
    head = files.head(path).removeprefix(files.BOM).lstrip()
    if not head.startswith((b"PAR1", b"ARROW1", b"{", b"[")):
        table = read_delimited(path, where, "labels")
        return None if table is None else _label_rows_of_table(table, where)
    records: Iterable[Row] = read_records(path)
    if head.startswith((b"{", b"[")):
        is_jsonl = json_kind(head.decode(errors="replace"), where) == "jsonl"
        records = list(json_lines(path, where)) if is_jsonl else records
        data = [record for _, record in records] if is_jsonl else load_json(path, where)
        first = next(iter(data), None) if isinstance(data, list) else None
        is_flat = isinstance(first, dict) and not missing_columns(canonical_names(first, "labels"), "labels")
        if not is_flat and (found := find_layout(data, "labels")):
            layout, rows = found
            for row in rows:  # Label Studio can write the record of a user
                user = row.get("judge") or layout.judge
                row["judge"] = user.get("email") or user.get("id") if isinstance(user, dict) else user
            # The tool is not named, as only its own files have this layout.
            return LabelRows([(None, row) for row in rows], layout.notes(data)[1:])
    return _named_rows(((line, list(record), list(record.values())) for line, record in records), where)


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
    cells = {p: [row[p] for row in table.rows if row[p]] for p, name in enumerate(names) if not name}
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
    columns = dict(zip(_JUDGMENT, map(list, zip(*rows, strict=True)), strict=True))
    return _typed(columns, "qrels", where, labels.notes, list(rows.values()))


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
    cells, used = _cells_by_role(table, kind, where)
    if kind == "qrels" and "relevance" not in cells and len(_judge_columns(table)) > 1:
        labels = read_label_rows(path, where)
        if labels is not None:
            note = f"read as labels of {counted(len(labels.judges), 'judge')}, each with a column of grades"
            return _judgments(labels, where), [note, *labels.notes]
    used |= _add_missing_column(cells, table, kind, where, notes)
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


def _add_missing_column(
    cells: dict[str, list[Any]], table: DelimitedTable, kind: Kind, where: str, notes: list[str]
) -> set[int]:
    """Add grades if there is no column of grades, or one with a misspelled name; return its position."""
    used = set[int]()
    if kind == "qrels" and set(cells) == {"query_id", "doc_id"} and len(table.columns) == 2:
        cells["relevance"] = ["1"] * len(table.rows)
        notes.append("there is no column of grades, so that all documents are read as relevant")
    if name := misspelled_column(table.columns, kind, table.rows):
        used = {table.columns.index(name)}
        cells["relevance"] = [row[position] for row in table.rows for position in used]
        notes.append(f"the column {name} was read as relevance")
    if missing_columns(cells, kind):
        raise missing_columns_error(table.columns, kind, where, table.rows, table.lines[0] - 1)
    return used


def _cells_by_role(table: DelimitedTable, kind: Kind, where: str) -> tuple[dict[str, list[Any]], set[int]]:
    """Return the cells of each known column, and the positions of these columns."""
    names = list(canonical_names(table.columns, kind))
    check_name_clash(names, table.columns, kind, where)
    used = {position for position, name in enumerate(names) if name}
    cells = {names[position]: [row[position] for row in table.rows] for position in used}
    if kind == "run" and "query_id" in cells and ("doc_id" not in cells or not {"score", "rank"} & set(cells)):
        ranked, positions = _ranked_lists(table, cells["query_id"], names)
        if ranked:
            return ranked, used | positions
    return cells, used


def _ranked_lists(
    table: DelimitedTable, queries: Sequence[str], names: Sequence[str]
) -> tuple[dict[str, list[Any]], set[int]]:
    """Convert rows with all results of a query to a row for each result, with its rank; empty if there are none."""
    positions = numbered_columns(table.columns)
    if positions:
        lists = [[row[position] for position in positions] for row in table.rows]
    else:
        positions = [p for p, column in enumerate(table.columns) if name_key(column) in _LISTS and not names[p]]
        positions = positions or [p for p, name in enumerate(names) if name == "score" and _are_lists(table.rows, p)]
        lists = [_split_list(row[positions[0]]) for row in table.rows] if positions else []
    rows = [
        (query, doc, rank)
        for query, docs in zip(queries, lists, strict=False)
        for rank, doc in enumerate((doc for doc in docs if doc), 1)
    ]
    columns: dict[str, list[Any]] = {}
    if rows:
        columns["query_id"], columns["doc_id"], columns["rank"] = map(list, zip(*rows, strict=True))
    return columns, set(positions[: len(positions) if numbered_columns(table.columns) else 1])


def _are_lists(rows: Sequence[Sequence[str]], position: int) -> bool:
    return all(len(row[position].split()) > 1 for row in rows if row[position])


def _split_list(text: str) -> list[str]:
    separator = next((mark for mark in "|;," if mark in text), None)
    return [doc.strip(" \"'") for doc in text.strip("[]").split(separator)]


def _combine_pages(cells: dict[str, list[Any]], table: DelimitedTable, used: set[int], notes: list[str]) -> set[int]:
    """Number ranks through all pages, if they begin at 1 on each page; return the position of the column of pages."""
    keys = list(zip(cells["query_id"], cells["rank"], strict=True))
    pages = [position for position, column in enumerate(table.columns) if name_key(column) in {"page", "pageno"}]
    if len(set(keys)) == len(keys) or not set(pages) - used:
        return set()
    numbers, ranks = parse_numbers([row[pages[0]] for row in table.rows]), parse_numbers(cells["rank"])
    if numbers is None or ranks is None:
        return set()
    size = max(ranks) + 1
    cells["rank"] = [str(int(page * size + rank)) for page, rank in zip(numbers, ranks, strict=True)]
    notes.append("ranks begin again on each page, so that results are ordered by page and rank")
    return {pages[0]}


def _typed(
    columns: dict[str, list[Any]], kind: Kind, where: str, notes: list[str], lines: Sequence[int | None] = ()
) -> Table:
    """Convert columns of texts to a table of qrels or of a run."""
    for name in ("distance", "score", "rank"):
        values = columns.get(name, [])
        if values and all(value in (None, "") for value in values):
            del columns[name]
            notes.append(f"all values of the {name} are empty")
        elif values and not all(isinstance(value, (int, float)) for value in values):
            numbers = parse_numbers([str(value) for value in values])
            if numbers is None:
                row = next((i for i, value in enumerate(values) if parse_numbers([str(value)]) is None), 0)
                problem = f"the {name} {values[row]!r:.60} is not a number, or could be read in two ways"
                fix = "write numbers with a decimal point and without other separators"
                raise InputError(problem, fix=fix, path=where, line=lines[row] if lines else None, rule=f"bad-{name}")
            columns[name] = numbers
    if (distances := columns.pop("distance", None)) and "score" not in columns:
        columns["score"] = [-value for value in distances]
        notes.append("the distances were read as scores: the smallest distance is the best result")
    if kind == "run" and not {"score", "rank", "relevance"} & set(columns):
        columns["rank"] = list(range(1, len(columns["doc_id"]) + 1))
        notes.append("there are no scores, so that the results of each query are read in the order of the rows")
    if kind == "qrels":
        columns["relevance"] = read_grades(columns["relevance"], where, notes, lines)
        _drop_unrated(columns, notes)
    ids = {name: [str(value) for value in columns[name]] for name in ("query_id", "doc_id")}
    others = {
        name: values if name in {"score", "rank", "relevance"} else [str(value) for value in values]
        for name, values in columns.items()
        if name not in ids
    }
    table = pa.table({**ids, **others})
    return canonical_table(_without_repeats(table, notes) if kind == "qrels" else table, kind, where)


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


def _drop_unrated(columns: dict[str, list[Any]], notes: list[str]) -> None:
    rated = [grade is not None for grade in columns["relevance"]]
    if not all(rated):
        notes.append(f"{counted(rated.count(False), 'row')} without a grade left out")
        for name, values in columns.items():
            columns[name] = [value for value, is_rated in zip(values, rated, strict=True) if is_rated]


def _without_repeats(table: Table, notes: list[str]) -> Table:
    """Remove rows that repeat another row."""
    distinct = table.group_by(table.column_names, use_threads=False).aggregate([])
    if distinct.num_rows < table.num_rows:
        notes.append(f"{counted(table.num_rows - distinct.num_rows, 'repeated row')} left out")
    return distinct
