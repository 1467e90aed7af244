"""Preferences as trec_eval reads them (``-R prefs``): five fields a line, ``qid user subgroup docno level``."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import pyarrow as pa

from judged.data import files
from judged.data.layout import is_data, value
from judged.data.qrels import Qrels
from judged.data.sources import source_name
from judged.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_FIELDS = "qid user subgroup docno level"


def read_prefs(path: str | Path, *, name: str | None = None) -> Qrels:
    """Read a file of preferences as qrels whose iteration is ``user subgroup``.

    Within a subgroup, a document is preferred to all of a lower level. Levels are numbers, of which the order counts,
    and whether they are 0: that says not relevant. Blank lines and lines that start with ``#`` are passed over.

    Raises
    ------
    InputError
        If a line does not have five fields, its level is not a number, or a subgroup names a document twice; the
        message gives the line.
    """
    where = files.STDIN if str(path) == "-" else str(path)
    file, digest = files.local(path), hashlib.sha256()
    lines: dict[tuple[str, ...], int] = {}  # of each key its line, to name both where one comes twice
    columns: dict[str, list[str]] = {"query_id": [], "doc_id": [], "iteration": []}
    levels: list[float] = []
    number = 0
    for block in files.blocks(file, digest):
        for raw in block.splitlines():
            number += 1
            if not is_data(raw):
                continue
            query, user, subgroup, doc, level = _fields(raw, where, number)
            key = (query, user, subgroup, doc)
            if key in lines:
                raise InputError(
                    f"document {doc} is in subgroup {subgroup} of user {user} for topic {query} twice,"
                    f" first in line {lines[key]}",
                    fix="keep one of the two lines",
                    path=where,
                    line=number,
                )
            lines[key] = number
            for column, text in zip(columns.values(), (query, doc, f"{user} {subgroup}"), strict=True):
                column.append(text)
            levels.append(_level(level, where, number))
    table = {column: pa.array(texts, pa.string()) for column, texts in columns.items()}
    given = name or ("stdin" if where == files.STDIN else source_name(path))
    return Qrels(pa.table({**table, "relevance": pa.array(levels, pa.float64())}), given, where, digest.hexdigest())


def _fields(raw: bytes, where: str, number: int) -> list[str]:
    try:
        fields = [field.decode() for field in raw.split()]
    except UnicodeDecodeError:
        raise InputError("bytes that are not UTF-8", fix="save the file as UTF-8", path=where, line=number) from None
    if len(fields) != 5:
        raise InputError(f"{len(fields)} fields where 5 are needed", fix=f"write {_FIELDS}", path=where, line=number)
    return fields


def _level(text: str, where: str, number: int) -> float:
    try:
        level = float(value("relevance", text))
    except ValueError:
        level = math.nan
    if not math.isfinite(level):
        problem = f"the level {text!r} is not a finite number"
        raise InputError(problem, fix=f"write {_FIELDS}", path=where, line=number)
    return level
