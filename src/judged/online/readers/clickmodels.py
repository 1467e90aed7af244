"""Logs for the click model library of Chuklin et al.: one page a line, seven columns with tabs between.

The columns are a hash of the session, the query, the region, the weight of an intent, and three JSON values: results,
layout (whether a result comes from a vertical) and clicks. The JSON values are lists, or objects from the position,
which starts at 0, to the value. The order of clicks and all times are missing.

Source: the documentation of https://github.com/varepsilon/clickmodels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.files import Opener, Part
from judged.online.readers.raw import (
    RawLog,
    Rows,
    Trouble,
    Troubles,
    dropped_after,
    new_name,
    run,
    selected,
    trouble_of,
)
from judged.online.readers.records import Lines

if TYPE_CHECKING:
    from judged.online.engine import Engine


_SPAN = 10_000
"""Ordinals of the next page begin so much later: no page has as many results or clicks."""


def read(parts: Sequence[Part], engine: Engine, *, progress: Opener = None) -> RawLog:
    """Read such files; each line is a session of its own, of nobody.

    A click that was counted twice is two events. Clicks are put in the order of ranks, since theirs is not logged.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    troubles, lines, ordinal = Troubles(), 0, 0
    pages, clicks = Rows(engine, "query", RAW_QUERY, ("region",)), Rows(engine, "event", RAW_EVENT)
    for batch in Lines(parts, range(len(parts)), troubles, progress=progress).batches():
        for file, row, line in zip(*(batch[name].to_pylist() for name in ("file", "row", "line")), strict=True):
            lines += 1
            record = _record(line.strip("\r\n"))
            if record is None:
                place = f"{parts[file].name}:{row}"
                troubles.add(Trouble.of("clickmodels", "broken-line", "file", place, lost=True))
                continue
            ordinal += _SPAN
            session, query, region, urls, counts = record
            who = {"file": file, "row": row, "query_id": f"{file}:{row}", "session_id": session}
            gaps = list(urls) != list(range(len(urls)))
            shown = {"hit_ids": list(urls.values()), "ranks": [at + 1 for at in urls] if gaps else None}
            pages.add({**who, "time_ms": ordinal, "query": query, **shown, "region": region})
            clicked = (at for at in sorted(counts) for _ in range(counts[at]))
            for order, at in enumerate(clicked, 1):
                what = {"time_ms": ordinal + order, "action": "click", "object_id": urls.get(at), "position": at}
                clicks.add({**who, **what})
    return RawLog(
        queries=pages.done(),
        events=clicks.done(),
        layout="clickmodels",
        files=tuple(part.name for part in parts),
        rank_base=0,
        actions={"click": "click"},
        lines=lines + sum(one.rows for one in troubles.given() if one.rule == "too-long"),
        trouble=troubles.given(),
        has_time=False,
    )


def _record(line: str) -> tuple[str, str, str, dict[int, str], dict[int, int]] | None:
    """Give session, query, region, results and clicks, both by position from 0; None where it is no such record."""
    parts = line.split("\t")
    if len(parts) != 7:
        return None
    try:
        urls, clicks = _by_position(json.loads(parts[4])), _by_position(json.loads(parts[6]))
        counts = {at: int(count) for at, count in clicks.items() if count}
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    if not all(0 <= at < _SPAN for at in (*urls, *counts)) or not all(0 <= one <= _SPAN for one in counts.values()):
        return None
    return parts[0], parts[1], parts[2], {at: str(urls[at]) for at in sorted(urls)}, counts


def _by_position(value: Any) -> dict[int, Any]:
    if isinstance(value, dict):
        return {int(at): one for at, one in value.items()}
    if isinstance(value, list):
        return dict(enumerate(value))
    raise TypeError


_FILE_SPAN = 1_000_000_000_000
"""Ordinals of the next file begin so much later: no file has as many lines."""


def read_wscd(parts: Sequence[Part], engine: Engine, *, progress: Opener = None) -> RawLog:
    """Read files of one of the three challenges.

    A click of 2011 and 2012 names no page: it goes to the last page of its session, before it, that shows what was
    clicked, or else to the last page. Sessions of those years are of nobody. The text of a query is its number, and in
    2014 the numbers of its terms. Pages of 2014 with the letter T are left out, and counted: their clicks were held
    back from the publication.

    Parameters
    ----------
    parts
        Text files, packed or not.
    engine
        Where the rows go.
    progress
        Told what is read, and the share that is done.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    files, troubles = tuple(part.name for part in parts), Troubles()
    lines, pages, clicks = new_name("parts"), new_name("query"), new_name("event")
    with dropped_after(engine, lines):
        given = Lines(parts, range(len(parts)), troubles, progress=progress)
        given.into(engine, lambda name: run(engine, f"CREATE TABLE {lines} AS {_PARTS.format(lines=name)}"))
        run(engine, _pages(lines, pages))
        run(engine, _clicks(lines, pages, clicks))
        lost = troubles.given()
        trouble = [
            *lost,
            *trouble_of(engine, files, lines, "kind IS NULL", Trouble.of("wscd", "broken-line", "file", lost=True)),
            *trouble_of(engine, files, lines, "kind = 'T'", Trouble.of("wscd", "withheld-clicks", "query", lost=True)),
        ]
        count = run(engine, f"SELECT count(*) FROM {lines}")[0][0] + sum(one.rows for one in lost if one.lost)
    return RawLog(
        queries=engine.table(pages),
        events=engine.table(clicks),
        layout="wscd",
        files=files,
        rank_base=1,
        actions={"C": "click"},
        lines=count,
        trouble=tuple(trouble),
        has_time=False,
        empty_told=False,
    )


_PARTS = f"""
WITH split AS (
    SELECT file, row, string_split(rtrim(line, chr(9) || chr(10) || chr(13)), chr(9)) AS p,
        contains(rtrim(line, chr(9) || chr(10) || chr(13)), chr(9) || chr(9)) OR contains(line, chr(9) || ',') AS empty
    FROM {{lines}}
), years AS MATERIALIZED (
    SELECT *, len(p) AS n, file::BIGINT * {_FILE_SPAN} + row AS ordinal FROM split
), told AS (
    SELECT file, sum(CASE
        WHEN p[2] = 'M' AND n = 4 OR p[3] = 'C' AND n = 5 THEN 1
        WHEN p[3] IN ('Q', 'T') AND contains(coalesce(p[7], ''), ',') THEN 1
        WHEN p[3] = 'C' AND n = 4 OR p[3] = 'Q' AND n > 6 THEN -1
        ELSE 0
    END) > 0 AS later
    FROM years GROUP BY file
)
SELECT file, row, ordinal, p, later, CASE
    WHEN p[1] = '' THEN NULL
    WHEN later AND p[2] = 'M' AND n = 4 THEN 'M'
    WHEN TRY_CAST(p[2] AS DOUBLE) IS NULL THEN NULL
    WHEN later AND p[3] IN ('Q', 'T') AND n >= 6 AND NOT empty THEN p[3]
    WHEN NOT later AND p[3] = 'Q' AND n >= 5 AND NOT empty THEN 'Q'
    WHEN later AND p[3] = 'C' AND n = 5 THEN 'C'
    WHEN NOT later AND p[3] = 'C' AND n = 4 THEN 'C'
END AS kind
FROM years JOIN told USING (file)
"""


def _pages(parts: str, name: str) -> str:
    known = {
        "file": "q.file",
        "row": "q.row",
        # Pages of 2014 have a number within their session; those before are known by their lines.
        "query_id": "q.p[1] || '/' || CASE WHEN q.later THEN q.p[4] WHEN q.file = 0 THEN q.row::VARCHAR "
        "ELSE q.file || ':' || q.row END",
        "session_id": "q.p[1]",
        "user_id": "m.user_id",
        "time_ms": "q.ordinal",
        "query": "CASE WHEN q.later THEN replace(q.p[6], ',', ' ') ELSE q.p[4] END",
        "hit_ids": "CASE WHEN q.later THEN list_transform(q.p[7:], lambda u: string_split(u, ',')[1]) ELSE q.p[6:] END",
    }
    attributes = {
        "region": "CASE WHEN NOT q.later THEN q.p[5] END",
        "day": "m.day",
        "query_key": "CASE WHEN q.later THEN q.p[5] ELSE q.p[4] END",
    }
    return f"""
    CREATE TABLE {name} AS
    SELECT {selected(RAW_QUERY, known, attributes)} FROM {parts} q
    LEFT JOIN ({_people(parts)}) m ON m.session_id = q.p[1]
    WHERE q.kind = 'Q'
    """


def _people(parts: str) -> str:
    return f"""
    SELECT p[1] AS session_id, arg_min(p[4], ordinal) AS user_id, arg_min(p[3], ordinal) AS day
    FROM {parts} WHERE kind = 'M' GROUP BY p[1]
    """


def _clicks(parts: str, pages: str, name: str) -> str:
    known = {
        "file": "c.file",
        "row": "c.row",
        "query_id": "c.query_id",
        "session_id": "c.session_id",
        "user_id": "m.user_id",
        "time_ms": "c.ordinal",
        "action": "'C'",
        "object_id": "c.url",
    }
    return f"""
    CREATE TABLE {name} AS
    WITH click AS (
        SELECT file, row, ordinal, later, p[1] AS session_id, p[4] AS serp, p[-1] AS url FROM {parts} WHERE kind = 'C'
    ), last_page AS (
        SELECT click.*, page.query_id AS last_id, list_contains(page.hit_ids, click.url) AS shown
        FROM (FROM click WHERE NOT later) click
        ASOF LEFT JOIN {pages} page ON click.session_id = page.session_id AND click.ordinal >= page.time_ms
    ), missed AS (
        SELECT * FROM last_page WHERE NOT coalesce(shown, false)
    ), result AS (
        SELECT session_id, time_ms, query_id, unnest(hit_ids) AS url FROM {pages}
        WHERE session_id IN (SELECT session_id FROM missed)
    ), found AS (
        SELECT missed.file, missed.row, max_by(result.query_id, result.time_ms) AS query_id
        FROM missed JOIN result
          ON missed.session_id = result.session_id AND missed.url = result.url AND missed.ordinal >= result.time_ms
        GROUP BY ALL
    ), placed AS (
        SELECT last_page.* EXCLUDE (last_id, shown), coalesce(found.query_id, last_id) AS query_id
        FROM last_page LEFT JOIN found USING (file, row)
        UNION ALL
        SELECT *, session_id || '/' || serp AS query_id FROM click WHERE later
    )
    SELECT {selected(RAW_EVENT, known)} FROM placed c LEFT JOIN ({_people(parts)}) m USING (session_id)
    """
