"""What format a file has, found by its first lines and its name.

Lines without a header are matched against `_LAYOUTS`, which lists for each kind of file and each
number of fields what the fields can be. Where several layouts are possible, the one that fits most
of the first lines is taken; where the lines look like the other kind of file, that is said.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.data import files
from judged.data.json_rows import json_kind
from judged.data.layout import (
    ONCE,
    Layout,
    canonical,
    clash,
    common_width,
    is_data,
    looks_like_qrels,
    looks_like_ratings,
    looks_like_run,
    looks_like_smart,
    missing,
    ranks_count_up,
    ranks_shuffled,
    split_fields,
    value,
)
from judged.data.objects import refuse_unnamed
from judged.data.text_rows import is_utf8
from judged.errors import NO_CONTENT, InputError
from judged.results.decimals import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.layout import Kind

Format: TypeAlias = Literal["json", "jsonl", "parquet", "arrow"]

FORMATS = ("trec", "tsv", "csv", "msmarco", "beir", "json", "jsonl", "parquet", "arrow", "set", "prefs")
"""The names that `format` can have."""

_SAMPLE = 200  # lines looked at
_WIDEST = 1000  # fields of a line
_HEADS = (1 << 16, 1 << 24)  # bytes read; the second when the first hold nothing but comments
_TREC_RUN = ("query_id", "", "doc_id", "rank", "score", "run_id")
_RANKED = ("query_id", "doc_id", "rank")
_PREFS = ("query_id", "user", "subgroup", "doc_id", "relevance")

_LAYOUTS: dict[tuple[Kind, int], tuple[tuple[str, ...], ...]] = {
    ("run", 6): (_TREC_RUN,),
    ("run", 5): (_TREC_RUN[:5], ("query_id", "doc_id", "rank", "score", "run_id")),
    ("run", 4): (("query_id", "doc_id", "rank", "score"),),
    ("run", 3): (("query_id", "doc_id", "score"),),
    ("run", 2): (("query_id", "doc_id"),),
    ("qrels", 5): (("query_id", "doc_id", "relevance", "", ""),),  # and how it was sampled
    ("qrels", 4): (("query_id", "iteration", "doc_id", "relevance"),),
    ("qrels", 3): (("query_id", "doc_id", "relevance"),),
}
_NO_NUMBER = frozenset({"nan", "na", "null", "none", "inf", "infinity"})
_MAGIC: dict[bytes, Format] = {b"PAR1": "parquet", b"ARROW1": "arrow"}
_FOREIGN = {
    b"\xff\xfe": ("this is UTF-16 (Windows PowerShell writes it)", "save it as UTF-8", "not-utf8"),
    b"\xfe\xff": ("this is UTF-16 (Windows PowerShell writes it)", "save it as UTF-8", "not-utf8"),
    b"PK\x03\x04": ("this is a zip archive or an Excel workbook", "unpack it, or save the sheet as CSV", "not-text"),
    b"SQLite format 3": (
        "this is an SQLite database",
        "export the table as CSV or Parquet; of a store of labels, make qrels: judged labels qrels",
        "not-text",
    ),
}


@dataclass(frozen=True)
class _Sample:
    """The first lines of a file that hold data, and where they stand."""

    where: str
    kind: Kind
    lines: tuple[tuple[int, bytes], ...]

    def split(self, delimiter: str, *, strict: bool) -> list[list[str]]:
        """Cut every line into fields; a line that cannot be cut is left out: reading will name it."""
        rows: list[list[str]] = []
        for _, raw in self.lines:
            try:
                fields = split_fields(raw, delimiter, strict=strict)
            except ValueError:
                continue
            rows.append([part.decode(errors="replace") for part in fields])
        return rows

    def first(self, delimiter: str, *, strict: bool) -> list[str]:
        """Cut the first line; nothing if it cannot be cut, or has more fields than any header."""
        fields = next(iter(replace(self, lines=self.lines[:1]).split(delimiter, strict=strict)), [])
        return fields if len(fields) <= _WIDEST else []

    def error(self, problem: str, fix: str, rule: str = "") -> InputError:
        return InputError(problem, fix=fix, path=self.where, line=self.lines[0][0], rule=rule)


def sniff(path: Path, where: str, kind: Kind, format: str | None = None) -> Layout | Format:
    """Find how a file is made: a `Layout` for lines of fields, else the name of its format."""
    if format is not None and format not in FORMATS:
        raise InputError(
            f"there is no format {format!r}", fix=f"use one of {', '.join(FORMATS)}", path=where, rule=NO_CONTENT
        )
    if format in {"json", "jsonl", "parquet", "arrow"}:
        return format  # type: ignore[return-value]
    head = files.head(path, _HEADS[0])
    found = _format_of_bytes(head, where)
    if found is None and format is None and head.lstrip()[:1] in (b"{", b"["):
        found = json_kind(head.decode(errors="replace"), where)
    if found is not None and format is not None:
        raise InputError(f"this is {found}, not {format}", fix=f"leave out the format, or name {found}", path=where)
    if found is not None:
        return found
    lines = _first_lines(path, head)
    if not lines:
        raise InputError(
            "there are no rows", fix="give a file with at least one line of data", path=where, rule="empty-file"
        )
    sample = _Sample(where, kind, lines)
    return _layout(sample) if format is None else _layout_named(sample, format)


def _format_of_bytes(head: bytes, where: str) -> Format | None:
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    for magic, (problem, fix, rule) in _FOREIGN.items():
        if head.startswith(magic):
            raise InputError(problem, fix=fix, path=where, rule=rule)
    if b"\0" in head:
        raise InputError(
            "this is not text: it holds zero bytes",
            fix="give text, JSON, Parquet or Arrow files",
            path=where,
            rule="not-text",
        )
    return None


def _first_lines(path: Path, head: bytes) -> tuple[tuple[int, bytes], ...]:
    for size in _HEADS:
        head = head if size == _HEADS[0] else files.head(path, size)
        lines = head.splitlines()
        if len(head) == size and len(lines) > 1:
            lines.pop()  # it may be cut
        found = tuple(islice(((number, raw) for number, raw in enumerate(lines, 1) if is_data(raw)), _SAMPLE))
        if found or len(head) < size:
            return found
    return ()


def _layout(sample: _Sample) -> Layout:
    header = next(filter(None, (_header(sample, delimiter) for delimiter in "\t, ")), None)
    if header:
        return _checked_header(sample, header)
    strict = _is_comma_separated(sample)
    delimiter = "," if strict else _blank(sample)
    rows = sample.split(delimiter, strict=strict)
    layout = _of_width(sample, rows, delimiter, strict=strict)
    _refuse_other_kind(sample, rows, delimiter)
    _refuse_text_as_rank(sample, rows, layout)
    if layout.names[:3] == ("query_id", "doc_id", "score") and layout.width == 3:
        return _rank_or_score(sample, rows, layout)
    return layout


def _layout_named(sample: _Sample, format: str) -> Layout:
    """Lay out the lines as the user says; what they look like is not asked."""
    if format == "set" and sample.kind == "qrels":
        raise sample.error("qrels are not a set", "leave out the format 'set'")
    if format == "prefs" and sample.kind == "run":
        raise sample.error("a run is not a file of preferences", "leave out the format 'prefs'")
    if format in {"trec", "msmarco", "set", "prefs"}:
        delimiter, strict = _blank(sample), False
    else:
        delimiter, strict = ("," if format == "csv" else "\t"), True
        if header := _header(sample, delimiter):
            return _complete_header(sample, header)
    rows = sample.split(delimiter, strict=strict)
    width = common_width(rows)
    if format == "prefs" and width != len(_PREFS):
        raise sample.error(f"{width} fields where 5 are needed", "write query id, user, subgroup, document id, level")
    if format == "prefs":
        return Layout(_PREFS, delimiter)
    if format == "set":
        return Layout(("query_id", "doc_id"), delimiter, fields=width)
    if format == "msmarco" and sample.kind == "run":
        return Layout(_RANKED, delimiter, fields=width)
    return _of_width(sample, rows, delimiter, strict=strict)


def _header(sample: _Sample, delimiter: str) -> Layout | None:
    """Read the first line as a header; None if it does not name queries and documents."""
    strict = delimiter != " "
    given = tuple(sample.first(delimiter, strict=strict))
    names = canonical(given, sample.kind)
    if not {"query_id", "doc_id"} <= set(names):
        return None
    if not is_utf8(sample.lines[0][1]):
        raise sample.error("the header is not UTF-8", "save the file as UTF-8", "not-utf8")
    if problem := clash(names, given, sample.kind):
        raise sample.error(problem, ONCE)
    refuse_unnamed(names, given, sample.kind, sample.where)
    used = max(at for at, name in enumerate(names, 1) if name)
    return Layout(names[:used], delimiter, strict=strict, header=True, fields=len(names))


def _complete_header(sample: _Sample, layout: Layout) -> Layout:
    if lacking := missing(layout.names, sample.kind):
        raise sample.error(
            f"the header names no column {' or '.join(sorted(lacking))}",
            "name the columns query_id, doc_id, relevance; a run goes in the other place",
            "unknown-header",
        )
    if len(sample.lines) == 1:
        raise sample.error("a header and no rows", "give a file with at least one line of data", "empty-file")
    return layout


def _checked_header(sample: _Sample, layout: Layout) -> Layout:
    """Refuse a header that names the columns of the other kind, or scores that are grades."""
    if sample.kind == "qrels":
        graded = "relevance" in canonical(sample.first(layout.delimiter, strict=layout.strict), "run")
        if not graded and {"rank", "run_id"} & set(layout.names):
            raise _looks_like(sample, "its header names a rank or a run")
        return _complete_header(sample, layout)
    ranked = {"score", "rank"} & set(layout.names)
    if "relevance" in layout.names and not ranked:
        raise _looks_like(sample, "its header names a relevance and no score")
    if ranked == {"score"}:
        at = [layout.names.index(name) for name in ("query_id", "doc_id", "score")]
        rows = sample.split(layout.delimiter, strict=layout.strict)[1:]
        if reason := looks_like_qrels([[row[field] for field in at] for row in rows if len(row) > max(at)]):
            raise _looks_like(sample, reason)
    return _complete_header(sample, layout)


def _is_comma_separated(sample: _Sample) -> bool:
    """Whether commas cut every line into as many fields, none of which holds a blank."""
    if not any(b"," in raw for _, raw in sample.lines):
        return False
    rows = sample.split(",", strict=True)
    width = common_width(rows)
    alike = sum(len(row) == width for row in rows)
    blanks = sum(any(" " in part or "\t" in part for part in row) for row in rows)
    return width > 1 and 2 * alike > len(rows) and 2 * blanks < len(rows)


def _blank(sample: _Sample) -> str:
    tabs = sum(b"\t" in raw for _, raw in sample.lines)
    return "\t" if 2 * tabs > len(sample.lines) else " "


def _of_width(sample: _Sample, rows: list[list[str]], delimiter: str, *, strict: bool) -> Layout:
    width = common_width(rows)
    if width > _WIDEST:
        raise _no_layout(sample, width)
    known = min(width, 6)
    choices = () if (strict, known) == (True, 5) else _LAYOUTS.get((sample.kind, known), ())
    names = _best(rows, choices)
    if not names or (known == 2 and any(len(row) != 2 for row in rows)):
        _refuse_other_kind(sample, rows, delimiter)
        raise _no_layout(sample, width)
    _refuse_unknown_header(sample, rows, names)
    names = _without_odd_ranks(names, rows)
    if names == _TREC_RUN[:5] and max(map(len, rows)) > 5:
        names, width = _TREC_RUN, 6  # some lines have a tag
    return Layout(names, delimiter, strict, optional=int(len(names) == 6), fields=width)


def _best(rows: list[list[str]], choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Give the layout that fits most lines."""
    # An only one is given even where it fits none: reading will name the bad line.
    if len(choices) == 1 and len(choices[0]) != 4:
        return choices[0]
    one_iteration = len({row[1] for row in rows if len(row) > 1}) == 1
    fitting = [
        (sum(_fits(row, names) for row in rows), bool(names[1]) or one_iteration, -at, names)
        for at, names in enumerate(choices)
    ]
    count, _, _, names = max(fitting, default=(0, True, 0, ()))
    return names if count else ()


def _fits(row: Sequence[str], names: tuple[str, ...]) -> bool:
    """Whether the numbers of a layout are numbers in this line, and its unused last fields too."""
    if len(row) < len(names):
        return False
    wanted = ["score" if not name and at > 2 else name for at, name in enumerate(names)]
    try:
        for name, text in zip(wanted, row, strict=False):
            value(name, text)
    except ValueError:
        return False
    return True


def _without_odd_ranks(names: tuple[str, ...], rows: list[list[str]]) -> tuple[str, ...]:
    """Leave a rank column unnamed where it does not hold ranks: the scores say the order."""
    if "rank" not in names or "score" not in names:
        return names
    at = names.index("rank")
    try:
        for row in rows:
            if len(row) > at:
                value("rank", row[at])
    except ValueError:
        return tuple("" if name == "rank" else name for name in names)
    return names


def _refuse_text_as_rank(sample: _Sample, rows: list[list[str]], layout: Layout) -> None:
    """Refuse lines of 5 fields or more in whose place of the rank stands a text."""
    at = {5: 2, 6: 3}.get(len(layout.names), 0) if layout.names[1:3] != ("", "doc_id") else 3
    if sample.kind != "run" or not at:
        return
    texts = (row[at] for row in rows if len(row) > at and not is_number(row[at]))
    if text := next((text for text in texts if text.strip("-._*?/") and text.lower() not in _NO_NUMBER), ""):
        raise sample.error(
            f"the rank {text!r:.60} is not a number: ids may hold blanks, or fields stand in another order",
            "write tabs between the fields and --run-format tsv, or a first line that names the columns",
            "bad-rank",
        )


def _refuse_unknown_header(sample: _Sample, rows: list[list[str]], names: tuple[str, ...]) -> None:
    """Refuse a first line that holds words where all others hold numbers."""
    if len(rows) < 2 or _fits(rows[0], names) or not all(_fits(row, names) for row in rows[1:]):
        return
    words = [text for name, text in zip(names, rows[0], strict=False) if name in {"score", "relevance"}]
    if all(text.isidentifier() and text.lower() not in _NO_NUMBER for text in words):
        raise sample.error(
            f"the first line looks like a header, and its names are not known: {', '.join(rows[0])}",
            f"name the columns query_id, doc_id, {'score' if sample.kind == 'run' else 'relevance'}",
            "unknown-header",
        )


def _refuse_other_kind(sample: _Sample, rows: list[list[str]], delimiter: str) -> None:
    if sample.kind == "run" and (reason := looks_like_qrels(rows)):
        raise _looks_like(sample, reason)
    if sample.kind == "qrels" and (reason := looks_like_run(rows)):
        raise _looks_like(sample, reason)
    if sample.kind == "qrels" and looks_like_smart(rows):
        raise sample.error(
            "all judgments are of one document and of grade 0: the fields may be 'query doc 0 0.0' (SMART)",
            "write 'query 0 doc 1', or give format='trec' if the lines are right as they are",
            "unknown-layout",
        )
    if sample.kind == "qrels" and looks_like_ratings(rows):
        cut = {"\t": "cut -f 1-3", ",": "cut -d , -f 1-3"}.get(delimiter, "awk '{print $1, $2, $3}'")
        raise sample.error(
            "the fields look like 'user item rating time', and would be read as 'query iteration doc grade'",
            f"keep the first three: {cut} {shlex.quote(sample.where)} > qrels.txt; or name the columns in a first line",
            "looks-like-ratings",
        )


def _rank_or_score(sample: _Sample, rows: list[list[str]], layout: Layout) -> Layout:
    if ranks_count_up(rows):
        return Layout(_RANKED, layout.delimiter, layout.strict, fields=layout.fields)
    if ranks_shuffled(rows):
        raise sample.error(
            "the third field could be a rank (1 is best) or a score",
            "say which: format='msmarco' for ranks, format='trec' (or 'tsv', 'csv') for scores",
            "rank-or-score",
        )
    return layout


def _no_layout(sample: _Sample, width: int) -> InputError:
    shapes = {
        "run": "'query Q0 doc rank score tag' or 'query doc score'",
        "qrels": "'query 0 doc relevance' or 'query doc relevance'",
    }
    text = sample.lines[0][1].strip()[:80].decode(errors="replace")
    return sample.error(
        f"no known layout of a {sample.kind} file with {width} fields: {text!r}",
        f"write {shapes[sample.kind]}, or a header that names the columns",
        "unknown-layout",
    )


def _looks_like(sample: _Sample, reason: str) -> InputError:
    is_qrels = sample.kind == "run"
    words = ("qrels", "a run") if is_qrels else ("a run", "qrels")
    five = not is_qrels and len(sample.first(" ", strict=False)) == len(_PREFS)
    known = (*FORMATS[:5], "prefs") if five else FORMATS[:5]
    return sample.error(
        f"this looks like {words[0]}, not like {words[1]} ({reason})",
        f"swap the two files, or say what it is with a format ({', '.join(known)})",
        "looks-like-qrels" if is_qrels else "looks-like-run",
    )
