"""Detect the format of a file from its first lines and its name.

Lines without a header are matched against `_LAYOUTS`, which lists the possible fields for each kind of file and number
of fields. If several layouts are possible, the one that fits most of the first lines is used. If the lines look like
the other kind of file, InputError is raised.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.data import files
from judged.data.column_names import canonical_names, check_name_clash, missing_columns, unused_columns
from judged.data.json_rows import json_kind, means_error
from judged.data.layout import (
    NUMERIC_COLUMNS,
    Layout,
    common_width,
    has_iteration_last,
    has_timestamps,
    is_data,
    looks_like_qrels,
    looks_like_ratings,
    looks_like_run,
    looks_like_smart,
    parse_field,
    ranks_count_up,
    ranks_shuffled,
    split_fields,
    split_line,
)
from judged.data.objects import check_score_column
from judged.data.text_rows import is_utf8
from judged.errors import NO_CONTENT, InputError, JudgedWarning
from judged.results.decimals import is_number
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.column_names import Kind

Format: TypeAlias = Literal["json", "jsonl", "parquet", "arrow"]

FORMATS = ("trec", "tsv", "csv", "msmarco", "beir", "json", "jsonl", "parquet", "arrow", "set", "prefs")
"""Valid values of `format` for qrels and runs."""

_SAMPLE_LINES = 200  # lines that the format is detected from
_DOUBLE_COLON = "::"
_MAX_FIELDS = 1000  # of a line
_HEAD_SIZES = (1 << 16, 1 << 24)  # bytes to read; the larger size is for files that start with many comments
_TREC_RUN = ("query_id", "", "doc_id", "rank", "score", "run_id")
_MSMARCO_RUN = ("query_id", "doc_id", "rank")
_PREFS = ("query_id", "user", "subgroup", "doc_id", "relevance")

_LAYOUTS: dict[tuple[Kind, int], tuple[tuple[str, ...], ...]] = {
    ("run", 6): (_TREC_RUN,),
    ("run", 5): (_TREC_RUN[:5], ("query_id", "doc_id", "rank", "score", "run_id")),
    ("run", 4): (("query_id", "doc_id", "rank", "score"),),
    ("run", 3): (("query_id", "doc_id", "score"),),
    ("run", 2): (("query_id", "doc_id"),),
    ("qrels", 5): (("query_id", "doc_id", "relevance", "", ""),),  # followed by method and probability of sampling
    ("qrels", 4): (("query_id", "iteration", "doc_id", "relevance"),),
    ("qrels", 3): (("query_id", "doc_id", "relevance"),),
}
_MISSING_NUMBERS = frozenset({"nan", "na", "null", "none", "inf", "infinity"})
_MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_UNSUPPORTED = {
    b"\xff\xfe": ("this is UTF-16 (Windows PowerShell writes it)", "save the file as UTF-8", "not-utf8"),
    b"\xfe\xff": ("this is UTF-16 (Windows PowerShell writes it)", "save the file as UTF-8", "not-utf8"),
    b"PK\x03\x04": (
        "this is a zip archive or an Excel workbook",
        "unpack the archive, or save the sheet as CSV",
        "not-text",
    ),
    b"SQLite format 3": (
        "this is an SQLite database",
        "export the table as CSV or Parquet; if it is a store of labels, create qrels with 'judged labels qrels'",
        "not-text",
    ),
}


@dataclass(frozen=True)
class _Sample:
    """First data lines of a file, with their line numbers."""

    where: str
    kind: Kind
    lines: tuple[tuple[int, bytes], ...]

    def split(self, delimiter: str, *, strict: bool) -> list[list[str]]:
        """Split lines into fields. Invalid lines are skipped, as reading the file reports them with more detail."""
        rows: list[list[str]] = []
        for _, raw in self.lines:
            try:
                fields = split_fields(raw, delimiter, strict=strict)
            except ValueError:
                continue
            rows.append([field.decode(errors="replace") for field in fields])
        return rows

    def header_fields(self, delimiter: str, *, strict: bool) -> list[str]:
        """Split the first line into fields; empty if it is invalid or has too many fields for a header."""
        fields = next(iter(replace(self, lines=self.lines[:1]).split(delimiter, strict=strict)), [])
        return fields if len(fields) <= _MAX_FIELDS else []

    def error(self, problem: str, fix: str, rule: str = "") -> InputError:
        return InputError(problem, fix=fix, path=self.where, line=self.lines[0][0], rule=rule)


def sniff(path: Path, where: str, kind: Kind, format: str | None = None) -> Layout | Format:
    """Detect the `Layout` of a file with delimited lines, or else the name of its format."""
    if format is not None and format not in FORMATS:
        raise InputError(f"unknown format {format!r}", fix=use_one_of(FORMATS), path=where, rule=NO_CONTENT)
    if format in {"json", "jsonl", "parquet", "arrow"}:
        return format  # type: ignore[return-value]
    head = files.head(path, _HEAD_SIZES[0])
    detected = _detect_binary_format(head, where)
    if detected is None and format is None and head.lstrip()[:1] in (b"{", b"["):
        detected = json_kind(head.decode(errors="replace"), where)
    if detected is not None and format is not None:
        fix = f"leave out the format, or use {detected}"
        raise InputError(f"this is {detected}, not {format}", fix=fix, path=where)
    if detected is not None:
        return detected
    lines = _first_lines(path, head)
    if not lines:
        fix = "use a file with at least one line of data"
        raise InputError("there are no rows", fix=fix, path=where, rule="empty-file")
    sample = _Sample(where, kind, lines)
    return _detect_layout(sample) if format is None else _layout_of_format(sample, format)


def fits_sample(path: Path, layout: Layout) -> bool:
    """Whether the first lines are UTF-8, have the fields of the layout, and in tables with a header no rank twice."""
    ranks: list[tuple[str, str]] = []
    lines = _first_lines(path, files.head(path, _HEAD_SIZES[0]))
    if not layout.header and not all(is_utf8(raw) for _, raw in lines):
        return False
    try:
        for _, raw in lines[layout.header :]:
            fields = split_line(raw, layout) or {}
            for name in NUMERIC_COLUMNS & set(fields):
                parse_field(name, fields[name])
            if layout.header and "rank" in fields and not {"score", "run_id"} & set(fields):
                ranks.append((fields["query_id"], fields["rank"]))
    except ValueError:
        return False
    return len(set(ranks)) == len(ranks)


def _detect_binary_format(head: bytes, where: str) -> Format | None:
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    for magic, (problem, fix, rule) in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise InputError(problem, fix=fix, path=where, rule=rule)
    if b"\0" in head:
        raise InputError(
            "this is not text: it contains zero bytes",
            fix="use a text, JSON, Parquet or Arrow file",
            path=where,
            rule="not-text",
        )
    return None


def _first_lines(path: Path, head: bytes) -> tuple[tuple[int, bytes], ...]:
    for size in _HEAD_SIZES:
        head = head if size == _HEAD_SIZES[0] else files.head(path, size)
        lines = head.splitlines()
        if len(head) == size and len(lines) > 1:
            lines.pop()  # it may be incomplete
        data = tuple(islice(((number, raw) for number, raw in enumerate(lines, 1) if is_data(raw)), _SAMPLE_LINES))
        if data or len(head) < size:
            return data
    return ()


def _detect_layout(sample: _Sample) -> Layout:
    if {"epoch", "steps"} <= {*sample.header_fields(",", strict=True)}:
        fix = "InformationRetrievalEvaluator(..., write_predictions=True)"
        raise means_error("an evaluator of sentence-transformers", fix, sample.where)
    header = next(filter(None, (_header(sample, delimiter) for delimiter in "\t, ")), None)
    if header:
        return _check_header(sample, header)
    strict = _is_comma_separated(sample)
    delimiter = "," if strict else _whitespace_delimiter(sample)
    if sample.lines[0][1].count(_DOUBLE_COLON.encode()) > 1:  # MovieLens
        delimiter, strict = _DOUBLE_COLON, True
    rows = sample.split(delimiter, strict=strict)
    if sample.kind == "qrels" and looks_like_ratings(rows) and not looks_like_smart(rows):
        if not has_timestamps(rows):
            problem = "the fields look like 'user item rating', and would be read as 'query iteration doc grade'"
            raise sample.error(problem, "add a header line, such as user,item,rating,time", "looks-like-ratings")
        warnings.warn(f"{sample.where}: read as ratings: user, item, rating, time", JudgedWarning, stacklevel=2)
        return Layout(("query_id", "doc_id", "relevance", "time"), delimiter, strict)
    if sample.kind == "qrels" and has_iteration_last(rows):
        warnings.warn(f"{sample.where}: read as query, document, grade, iteration", JudgedWarning, stacklevel=2)
        return Layout(("query_id", "doc_id", "relevance", "iteration"), delimiter, strict)
    layout = _layout_of_width(sample, rows, delimiter, strict=strict)
    _check_kind(sample, rows)
    _check_rank_field(sample, rows, layout)
    if layout.names[:3] == ("query_id", "doc_id", "score") and layout.width == 3:
        return _check_rank_or_score(sample, rows, layout)
    return layout


def _layout_of_format(sample: _Sample, format: str) -> Layout:
    """Return the layout of a format that the user named, without checks that the lines look like it."""
    if format == "set" and sample.kind == "qrels":
        raise sample.error("the format 'set' is only for runs", "leave out the format 'set'")
    if format == "prefs" and sample.kind == "run":
        raise sample.error("the format 'prefs' is only for qrels", "leave out the format 'prefs'")
    if format in {"trec", "msmarco", "set", "prefs"}:
        delimiter, strict = _whitespace_delimiter(sample), False
    else:
        delimiter, strict = ("," if format == "csv" else "\t"), True
        if header := _header(sample, delimiter):
            return _check_columns(sample, header)
    rows = sample.split(delimiter, strict=strict)
    width = common_width(rows)
    if format == "prefs" and width != len(_PREFS):
        problem = f"preferences must have 5 fields, got {width}"
        raise sample.error(problem, "write query id, user, subgroup, document id, level")
    if format == "prefs":
        return Layout(_PREFS, delimiter)
    if format == "set":
        return Layout(("query_id", "doc_id"), delimiter, fields=width)
    if format == "msmarco" and sample.kind == "run":
        return Layout(_MSMARCO_RUN, delimiter, fields=width)
    return _layout_of_width(sample, rows, delimiter, strict=strict)


def _header(sample: _Sample, delimiter: str) -> Layout | None:
    """Return the layout of a header line; None if the first line does not name columns of query and document ids."""
    strict = delimiter != " "
    columns = tuple(sample.header_fields(delimiter, strict=strict))
    names = canonical_names(columns, sample.kind)
    if not {"query_id", "doc_id"} <= set(names):
        return None
    if not is_utf8(sample.lines[0][1]):
        raise sample.error("the header is not UTF-8", "save the file as UTF-8", "not-utf8")
    check_name_clash(names, columns, sample.kind, sample.where, sample.lines[0][0])
    if "distance" in names:
        raise sample.error("a column of distances cannot be combined with a format", "omit the format")
    check_score_column(names, columns, sample.kind, sample.where)
    last_used = max(position for position, name in enumerate(names, 1) if name)
    unused = unused_columns(names, columns, sample.kind)
    return Layout(names[:last_used], delimiter, strict, header=True, fields=len(names), unused=tuple(unused))


def _check_columns(sample: _Sample, layout: Layout) -> Layout:
    if missing := missing_columns(layout.names, sample.kind):
        raise sample.error(
            f"the header has no column {' or '.join(sorted(missing))}",
            "name the columns query_id, doc_id, relevance; if the file is a run, use it as a run",
            "unknown-header",
        )
    if len(sample.lines) == 1:
        raise sample.error(
            "the file has a header but no rows", "use a file with at least one line of data", "empty-file"
        )
    return layout


def _check_header(sample: _Sample, layout: Layout) -> Layout:
    """Raise InputError if the header names columns of the other kind, or the scores look like grades."""
    if sample.kind == "qrels":
        # Without the alias `score` for the relevance of qrels.
        run_names = canonical_names(sample.header_fields(layout.delimiter, strict=layout.strict), "run")
        if "relevance" not in run_names and {"rank", "run_id"} & set(layout.names):
            raise _wrong_kind_error(sample, "its header has a column for the rank or the run")
        return _check_columns(sample, layout)
    ranking_columns = {"score", "rank"} & set(layout.names)
    if "relevance" in layout.names and not ranking_columns:
        raise _wrong_kind_error(sample, "its header has a column for the relevance and no column for the score")
    if ranking_columns == {"score"}:
        positions = [layout.names.index(name) for name in ("query_id", "doc_id", "score")]
        rows = [row for row in sample.split(layout.delimiter, strict=layout.strict)[1:] if len(row) > max(positions)]
        if reason := looks_like_qrels([[row[position] for position in positions] for row in rows]):
            raise _wrong_kind_error(sample, reason)
    return _check_columns(sample, layout)


def _is_comma_separated(sample: _Sample) -> bool:
    """Whether commas split most lines into the same number of fields, and most lines have no blanks in fields."""
    if not any(b"," in raw for _, raw in sample.lines):
        return False
    rows = sample.split(",", strict=True)
    width = common_width(rows)
    of_width = sum(len(row) == width for row in rows)
    with_blanks = sum(any(" " in field or "\t" in field for field in row) for row in rows)
    return width > 1 and 2 * of_width > len(rows) and 2 * with_blanks < len(rows)


def _whitespace_delimiter(sample: _Sample) -> str:
    with_tabs = sum(b"\t" in raw for _, raw in sample.lines)
    return "\t" if 2 * with_tabs > len(sample.lines) else " "


def _layout_of_width(sample: _Sample, rows: list[list[str]], delimiter: str, *, strict: bool) -> Layout:
    width = common_width(rows)
    if width > _MAX_FIELDS:
        raise _no_layout_error(sample, width)
    layout_width = min(width, 6)
    candidates = () if (strict, layout_width) == (True, 5) else _LAYOUTS.get((sample.kind, layout_width), ())
    names = _best_layout(rows, candidates)
    if not names or (layout_width == 2 and any(len(row) != 2 for row in rows)):
        _check_kind(sample, rows)
        raise _no_layout_error(sample, width)
    _check_unknown_header(sample, rows, names)
    names = _drop_invalid_ranks(names, rows)
    if names == _TREC_RUN[:5] and max(map(len, rows)) > 5:
        names, width = _TREC_RUN, 6  # some lines have a tag
    return Layout(names, delimiter, strict, optional=int(len(names) == 6), fields=width)


def _best_layout(rows: list[list[str]], candidates: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the layout that fits most lines."""
    # A single candidate is returned even if no line fits: reading the file then reports the invalid line.
    if len(candidates) == 1 and len(candidates[0]) != 4:
        return candidates[0]
    has_constant_second = len({row[1] for row in rows if len(row) > 1}) == 1
    ranked_candidates = [
        (sum(_fits(row, names) for row in rows), bool(names[1]) or has_constant_second, -index, names)
        for index, names in enumerate(candidates)
    ]
    count, _, _, names = max(ranked_candidates, default=(0, True, 0, ()))
    return names if count else ()


def _fits(row: Sequence[str], names: tuple[str, ...]) -> bool:
    """Whether the fields of this line are valid; unnamed fields after the third must be numbers too."""
    if len(row) < len(names):
        return False
    names = tuple("score" if not name and position > 2 else name for position, name in enumerate(names))
    try:
        for name, text in zip(names, row, strict=False):
            parse_field(name, text)
    except ValueError:
        return False
    return True


def _drop_invalid_ranks(names: tuple[str, ...], rows: list[list[str]]) -> tuple[str, ...]:
    """Remove the name of a rank column that does not hold ranks, as the scores determine the order."""
    if "rank" not in names or "score" not in names:
        return names
    position = names.index("rank")
    try:
        for row in rows:
            if len(row) > position:
                parse_field("rank", row[position])
    except ValueError:
        return tuple("" if name == "rank" else name for name in names)
    return names


def _check_rank_field(sample: _Sample, rows: list[list[str]], layout: Layout) -> None:
    """Raise InputError if lines of five or more fields have a text in the position of the rank."""
    position = {5: 2, 6: 3}.get(len(layout.names), 0) if layout.names[1:3] != ("", "doc_id") else 3
    if sample.kind != "run" or not position:
        return
    texts = (row[position] for row in rows if len(row) > position and not is_number(row[position]))
    if text := next((text for text in texts if text.strip("-._*?/") and text.lower() not in _MISSING_NUMBERS), ""):
        raise sample.error(
            f"the rank {text!r:.60} is not a number: ids may contain spaces, or the fields may be in another order",
            "separate the fields by tabs and use --run-format tsv, or write the column names in the first line",
            "bad-rank",
        )


def _check_unknown_header(sample: _Sample, rows: list[list[str]], names: tuple[str, ...]) -> None:
    """Raise InputError if the first line has words where all other lines have numbers."""
    if len(rows) < 2 or _fits(rows[0], names) or not all(_fits(row, names) for row in rows[1:]):
        return
    words = [text for name, text in zip(names, rows[0], strict=False) if name in {"score", "relevance"}]
    if all(text.isidentifier() and text.lower() not in _MISSING_NUMBERS for text in words):
        raise sample.error(
            f"the first line looks like a header with unknown names: {', '.join(rows[0])}",
            f"name the columns query_id, doc_id, {'score' if sample.kind == 'run' else 'relevance'}",
            "unknown-header",
        )


def _check_kind(sample: _Sample, rows: list[list[str]]) -> None:
    if sample.kind == "run" and (reason := looks_like_qrels(rows)):
        raise _wrong_kind_error(sample, reason)
    if sample.kind == "qrels" and (reason := looks_like_run(rows)):
        raise _wrong_kind_error(sample, reason)
    if sample.kind == "qrels" and looks_like_smart(rows):
        raise sample.error(
            "all judgments have the same document and grade 0: the fields may be 'query doc 0 0.0' (SMART)",
            "write 'query 0 doc 1', or use format='trec' if the lines are correct",
            "unknown-layout",
        )


def _check_rank_or_score(sample: _Sample, rows: list[list[str]], layout: Layout) -> Layout:
    if ranks_count_up(rows):
        return Layout(_MSMARCO_RUN, layout.delimiter, layout.strict, fields=layout.fields)
    if ranks_shuffled(rows):
        raise sample.error(
            "the third field could be a rank (1 is best) or a score",
            "choose: format='msmarco' for ranks, format='trec' (or 'tsv', 'csv') for scores",
            "rank-or-score",
        )
    return layout


def _no_layout_error(sample: _Sample, width: int) -> InputError:
    examples = {
        "run": "'query Q0 doc rank score tag' or 'query doc score'",
        "qrels": "'query 0 doc relevance' or 'query doc relevance'",
    }
    text = sample.lines[0][1].strip()[:80].decode(errors="replace")
    return sample.error(
        f"unknown layout of a {sample.kind} file with {width} fields: {text!r}",
        f"write lines like {examples[sample.kind]}, or add a header line with the column names",
        "unknown-layout",
    )


def _wrong_kind_error(sample: _Sample, reason: str) -> InputError:
    is_qrels = sample.kind == "run"
    detected, expected = ("qrels", "a run") if is_qrels else ("a run", "qrels")
    may_be_preferences = not is_qrels and len(sample.header_fields(" ", strict=False)) == len(_PREFS)
    formats = (*FORMATS[:5], "prefs") if may_be_preferences else FORMATS[:5]
    return sample.error(
        f"this looks like {detected}, not like {expected} ({reason})",
        f"swap the two files, or name the format ({', '.join(formats)})",
        "looks-like-qrels" if is_qrels else "looks-like-run",
    )
