"""The Open Bandit Dataset: recommendations of fashion items, each with the probability that the policy gave it.

A row of its CSV files is one item, shown at one of three positions of a page, with whether it was clicked and with its
propensity: the probability that the logging policy put this item at this position. Rows of one page are not tied
together in the published files, so each row becomes a page of its own with one result, whose rank is the position.
Metrics of whole pages (abandonment, clicks per page) are therefore metrics of single positions here.

Source: Saito, Aihara, Matsutani and Narita, NeurIPS 2021 (datasets and benchmarks), "Open Bandit Dataset and
Pipeline".
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from judged.data.files import head
from judged.errors import InputError
from judged.online.engine import literal
from judged.online.reading.loading import (
    Progress,
    dropped_after,
    existing,
    load_lines,
    new_name,
    run,
    selected,
    trouble_of,
)
from judged.online.reading.raw import RAW_EVENT, RAW_QUERY, RawLog, Trouble
from judged.online.reading.times import sql_time

if TYPE_CHECKING:
    from judged.online.engine import Engine

_NEEDED = ("timestamp", "item_id", "position", "click", "propensity_score")
_FEATURES = tuple(f"user_feature_{number}" for number in range(4))


def read(paths: Sequence[Path | str], engine: Engine, *, progress: Progress = None) -> RawLog:
    """Read such files.

    There are no ids of users or sessions, and none are made up: pages are counted as those of nobody. The four user
    features become attributes, as do the position and, where several files are read, the name of the file (behaviour
    policy). The time of a click is the time of its row.

    Raises
    ------
    InputError
        If a file cannot be opened, or its first line does not name the columns.
    """
    files = existing(paths)
    headers = [_header(path) for path in paths]
    parts, pages, clicks = new_name("parts"), new_name("query"), new_name("event")
    with dropped_after(engine, parts):
        lines, long = load_lines(paths, engine, f"CREATE TABLE {parts} AS {_parts(headers)}", progress)
        run(engine, f"CREATE TABLE {pages} AS {_pages(parts, files)}")
        run(engine, f"CREATE TABLE {clicks} AS {_clicks(parts)}")
        trouble = (
            *long,
            *trouble_of(engine, files, parts, "NOT good", _BROKEN),
            *trouble_of(engine, files, parts, "good AND time_ms IS NULL", _ODD_TIME),
            *trouble_of(engine, files, parts, "good AND propensity IS NULL", _ODD_PROPENSITY),
        )
    return RawLog(
        queries=engine.table(pages),
        events=engine.table(clicks),
        layout="open-bandit",
        files=files,
        rank_base=1,
        actions={"click": "click"},
        lines=lines - len(paths),
        trouble=trouble,
        empty_told=False,
    )


_BROKEN = Trouble(
    "broken-line",
    "file",
    0,
    True,
    "the row has no item, no position from 1, or a click that is neither 0 nor 1",
    "put it right",
)
_ODD_TIME = Trouble(
    "odd-time", "query", 0, False, "the timestamp cannot be read", "write it as 2019-11-24 00:00:17+00:00"
)
_ODD_PROPENSITY = Trouble(
    "odd-propensity",
    "query",
    0,
    False,
    "the propensity is not above 0 and at most 1",
    "log the probability of the item",
)


def _header(path: Path | str) -> list[str]:
    first = head(path).decode("utf-8", errors="replace").split("\n", 1)[0].rstrip("\r")
    try:
        names = next(csv.reader([first]), [])
    except csv.Error:  # a carriage return amid the line, or a cell without end
        names = []
    if absent := [name for name in _NEEDED if name not in names]:
        raise InputError(
            f"the first line does not name the column {absent[0]!r}",
            fix="give a file of the Open Bandit Dataset, such as men.csv, with its header",
            path=str(path),
            line=1,
        )
    return names


def _parts(headers: Sequence[Sequence[str]]) -> str:
    """Write the query that cuts lines at commas: no value of the dataset has one inside."""

    def field(name: str) -> str:
        if all(names == headers[0] for names in headers):
            return f"p[{headers[0].index(name) + 1}]" if name in headers[0] else "NULL"
        places = "".join(
            f" WHEN {file} THEN p[{names.index(name) + 1}]" for file, names in enumerate(headers) if name in names
        )
        return f"CASE file{places} END" if places else "NULL"

    features = ", ".join(f"nullif({field(name)}, '') AS {name}" for name in _FEATURES)
    widths = "".join(f" WHEN {file} THEN {len(names)}" for file, names in enumerate(headers))
    return f"""
    WITH split AS (
        SELECT file, row, string_split(line, ',') AS p FROM {{lines}} WHERE row > 1
    ), named AS (
        SELECT file, row, len(p) = CASE file{widths} END AS whole,
            {field("timestamp")} AS time,
            nullif({field("item_id")}, '') AS item,
            TRY_CAST({field("position")} AS INTEGER) AS position,
            TRY_CAST({field("click")} AS DOUBLE) AS click,
            TRY_CAST({field("propensity_score")} AS DOUBLE) AS propensity, {features}
        FROM split
    )
    SELECT * EXCLUDE (time) REPLACE (CASE WHEN propensity > 0 AND propensity <= 1 THEN propensity END AS propensity),
        {sql_time("time", "varchar")} AS time_ms,
        coalesce(whole AND item IS NOT NULL AND position >= 1 AND click IN (0, 1), false) AS good
    FROM named
    """


def _known() -> dict[str, str]:
    return {"file": "file", "row": "row", "query_id": "file || ':' || row", "time_ms": "time_ms"}


def _pages(parts: str, files: Sequence[str]) -> str:
    known = {**_known(), "first_rank": "position", "hit_ids": "[item]", "propensities": "[propensity]"}
    attributes = {"position": "position", **{name: name for name in _FEATURES}}
    if len(files) > 1:
        attributes["source"] = f"[{', '.join(map(literal, files))}][file + 1]"
    return f"SELECT {selected(RAW_QUERY, known, attributes)} FROM {parts} WHERE good"


def _clicks(parts: str) -> str:
    known = {**_known(), "action": "'click'", "object_id": "item", "position": "position", "propensity": "propensity"}
    return f"SELECT {selected(RAW_EVENT, known)} FROM {parts} WHERE good AND click = 1"
