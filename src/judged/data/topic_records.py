"""Records of topics as they are read, in whatever words a source names its fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from judged.data.ids import id_text
from judged.errors import InputError

if TYPE_CHECKING:
    from judged._types import Table

_ID = ("query_id", "qid", "_id", "id", "number", "num", "topic", "topic_id", "query_number")
_TEXT = ("text", "query", "title", "query_text", "querytext", "question", "utterance", "description", "desc")
_COLUMNS = 500  # records that all name other fields would take time and memory by the square of their number


class TopicRecords:
    """Gathers topics one by one; columns come from all of them, null where one lacks it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._made: dict[str, list[str | None]] = {"query_id": [], "text": []}
        self._count = 0

    def add(self, record: Mapping[str, Any], line: int | None) -> None:
        """Take one topic in."""
        try:
            found = named(record)
        except InputError as error:
            raise InputError(error.problem, fix=error.fix, path=self._where, line=line) from None
        for name in found:
            if name not in self._made:
                refuse_wide(len(self._made) + 1, self._where, line)
                self._made[name] = [None] * self._count
        for name, column in self._made.items():
            column.append(found.get(name))
        self._count += 1

    def table(self) -> Table:
        """Give all topics as a table."""
        return pa.table({name: pa.array(column, pa.string()) for name, column in self._made.items()})


def record_of(found: Any, query_id: Any = None) -> dict[str, Any]:
    """Take a text or a dict of fields as one record.

    >>> record_of("income tax", 1)
    {'query_id': 1, 'text': 'income tax'}
    """
    known = {} if query_id is None else {"query_id": query_id}
    if isinstance(found, str) and known:
        return {**known, "text": found}
    if isinstance(found, Mapping):
        return {**known, **cast("Mapping[str, Any]", found)}
    raise InputError(
        f"{found!r:.40} is not a topic", fix='give {"1": "the text"}, or {"query_id": "1", "text": "the text"}'
    )


def named(record: Mapping[str, Any]) -> dict[str, str]:
    """Name the fields of a record ``query_id``, ``text``, and all others by lower-case names.

    >>> named({"_id": 7, "Query": "income tax", "Domain": "law", "metadata": {}})
    {'query_id': '7', 'text': 'income tax', 'domain': 'law'}
    """
    keys = {plain_name(key): key for key in record}
    if len(keys) < len(record):
        raise InputError(f"two fields have one name among {', '.join(record)[:80]}", fix="name each once")
    of_id = next((name for name in _ID if name in keys), None)
    of_text = next((name for name in _TEXT if name in keys and name != of_id), None)
    if of_id is None or of_text is None:
        raise InputError(
            f"no {'query_id' if of_id is None else 'text'} among the fields {', '.join(record)[:80]}",
            fix="name the fields query_id and text",
        )
    query_id = id_text(record[keys[of_id]], "query id")
    if not query_id.strip():
        raise InputError("the query id is empty", fix="give every topic an id")
    made = {"query_id": query_id, "text": " ".join(_as_text(record[keys[of_text]]).split())}
    for name, key in keys.items():
        if name not in {of_id, of_text} and name not in made and (text := _as_text(record[key])):
            made[name] = text
    return made


def refuse_wide(columns: int, where: str, line: int | None = None) -> None:
    """Refuse a table of too many columns."""
    if columns > _COLUMNS:
        fix = "keep those that matter; what differs from record to record is a value, not a name"
        raise InputError(f"there are more than {_COLUMNS} columns", fix=fix, path=where, line=line)


def plain_name(name: str) -> str:
    """Write a field's name in lower case with underscores.

    >>> plain_name("Query-ID ")
    'query_id'
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _as_text(value: Any) -> str:
    if value is None or value in ({}, []):
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
