"""Read TREC files and files of labels by a few lines that are independent of judged."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    Row = tuple[str, str, float]
    Label = tuple[str, str, str, float | None]

_TRUTHS = {"true": 1.0, "false": 0.0}
_COLUMNS = {  # where topic, document and number stand, and the numbers of fields with which they may stand there
    "qrels": (((0, 2, 3), {4}), ((0, 1, 2), {3, 5})),
    "run": (((0, 2, 4), {5, 6}), ((0, 1, 3), {4, 5}), ((0, 1, 2), {3})),
}


def rows(data: bytes, kind: str) -> Iterator[list[Row]]:
    """Return the rows by layout, without layouts that cannot read each line."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    lines = [
        line.split() for line in re.split(rb"\r\n|\n|\r", text) if line.strip() and not line.strip().startswith(b"#")
    ]
    for (topic, doc, number), counts in _COLUMNS[kind]:
        for sign in (1, -1):  # ranks stand for scores where there are none
            try:
                numbers = [line[number].decode() for line in lines]
                grades = [_TRUTHS.get(text.lower()) if kind == "qrels" else None for text in numbers]
                values = [float(text) if grade is None else grade for text, grade in zip(numbers, grades, strict=True)]
                rows = [
                    (line[topic].decode(), line[doc].decode(), sign * value)
                    for line, value in zip(lines, values, strict=True)
                ]
            except (ValueError, IndexError):
                continue
            if max(counts) >= 6 or all(len(line) in counts for line in lines):
                yield rows


def labels(data: bytes, judge: str) -> Iterator[list[Label]]:
    """Return the labels of JSON Lines, or of a table with judged's column names, or no labels.

    `judge` is the judge of rows without a judge.
    """
    text = data.decode("utf-8-sig")
    if text.lstrip()[:1] == "{":
        try:
            records = [json.loads(line) for line in re.split(r"\r?\n", text) if line.strip()]
        except ValueError:
            return  # one document, perhaps
    else:
        first = text.splitlines()[0]
        delimiter = max("\t,;", key=first.count)
        plain_text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = list(csv.reader(io.StringIO(plain_text), delimiter=delimiter))
        names = lines[0]
        records = [dict(zip(names, line, strict=False)) for line in lines[1:] if any(cell.strip() for cell in line)]
    if records and all(isinstance(record, dict) for record in records):
        records = [{name.strip().lower(): value for name, value in record.items()} for record in records]
    if records and all({"query_id", "doc_id", "grade"} <= record.keys() for record in records):
        yield [
            (str(row["query_id"]), str(row["doc_id"]), _judge(row.get("judge"), judge), _grade(row["grade"]))
            for row in records
        ]


def _judge(value: Any, otherwise: str) -> str:
    return otherwise if value is None or value == "" else str(value)


def _grade(value: Any) -> float | None:
    if value is None or value == "":
        return None
    truth = _TRUTHS.get(str(value).strip().lower())
    return float(value) if truth is None else truth
