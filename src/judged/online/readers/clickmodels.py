"""Readers of logs for the "clickmodels" library of Chuklin et al., and of three challenges of Yandex (layout "wscd").

A file for clickmodels has one page per line, in seven tab-separated columns: a hash of the session, the query, the
region, the weight of an intent, and three JSON values: results, layout (whether a result is a vertical) and clicks. The
JSON values are lists, or objects from the position (from 0) to the value. There are no times and no order of clicks.

Source: the documentation of https://github.com/varepsilon/clickmodels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judged.online.log import RAW_EVENT, RAW_QUERY
from judged.online.readers.files import LogFile, ProgressCallback
from judged.online.readers.raw import (
    RawLog,
    ReadFinding,
    ReadFindings,
    TableWriter,
    locate_rows,
    run_sql,
    select_list,
    temporary_tables,
    unique_name,
)
from judged.online.readers.records import LineReader

if TYPE_CHECKING:
    from judged.online.engine import Database


_ORDINALS_PER_PAGE = 10_000  # no page has as many results or clicks


def read(log_files: Sequence[LogFile], engine: Database, *, progress: ProgressCallback = None) -> RawLog:
    """Read files for clickmodels. Each line is a session of its own, without a user.

    A click that was counted twice becomes two events. Clicks are ordered by rank, because their order is not logged.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    findings, lines, ordinal = ReadFindings(), 0, 0
    pages, clicks = TableWriter(engine, "query", RAW_QUERY, ("region",)), TableWriter(engine, "event", RAW_EVENT)
    for batch in LineReader(log_files, range(len(log_files)), findings, progress=progress).batches():
        for file, row, line in zip(*(batch[name].to_pylist() for name in ("file", "row", "line")), strict=True):
            lines += 1
            record = _parse_line(line.strip("\r\n"))
            if record is None:
                place = f"{log_files[file].name}:{row}"
                findings.add(ReadFinding.from_rule("clickmodels", "broken-line", "file", place, lost=True))
                continue
            # There are no times, so ordinals keep the order of pages and clicks.
            ordinal += _ORDINALS_PER_PAGE
            session, query, region, urls, counts = record
            keys = {"file": file, "row": row, "query_id": f"{file}:{row}", "session_id": session}
            has_gaps = list(urls) != list(range(len(urls)))
            results = {
                "hit_ids": list(urls.values()),
                "ranks": [position + 1 for position in urls] if has_gaps else None,
            }
            pages.add({**keys, "time_ms": ordinal, "query": query, **results, "region": region})
            # A click count above 1 means repeated clicks.
            positions = (position for position in sorted(counts) for _ in range(counts[position]))
            for order, position in enumerate(positions, 1):
                event = {"time_ms": ordinal + order, "object_id": urls.get(position), "position": position}
                clicks.add({**keys, "action": "click", **event})
    line_count = lines + sum(finding.rows for finding in findings.to_tuple() if finding.rule == "too-long")
    return RawLog(
        pages.finish(), clicks.finish(), "clickmodels", tuple(log_file.name for log_file in log_files), rank_base=0,
        actions={"click": "click"}, lines=line_count, findings=findings.to_tuple(), has_time=False,
    )  # fmt: skip


def _parse_line(line: str) -> tuple[str, str, str, dict[int, str], dict[int, int]] | None:
    """Return session, query, region, results and click counts by position from 0. Return None for an invalid line."""
    fields = line.split("\t")
    if len(fields) != 7:
        return None
    try:
        urls, clicks = _by_position(json.loads(fields[4])), _by_position(json.loads(fields[6]))
        counts = {position: int(count) for position, count in clicks.items() if count}
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    # Limits keep the ordinals of pages apart, and a line with a huge count from filling the memory.
    if not all(0 <= position < _ORDINALS_PER_PAGE for position in (*urls, *counts)):
        return None
    if not all(0 <= count <= _ORDINALS_PER_PAGE for count in counts.values()):
        return None
    return fields[0], fields[1], fields[2], {position: str(urls[position]) for position in sorted(urls)}, counts


def _by_position(value: Any) -> dict[int, Any]:
    if isinstance(value, dict):
        return {int(position): element for position, element in value.items()}
    if isinstance(value, list):
        return dict(enumerate(value))
    raise TypeError


_ORDINALS_PER_FILE = 1_000_000_000_000  # no file has as many lines


def read_wscd(log_files: Sequence[LogFile], engine: Database, *, progress: ProgressCallback = None) -> RawLog:
    """Read files of one of the challenges of Yandex of 2011, 2012 and 2014.

    Clicks of 2011 and 2012 have no page. They are assigned to the last earlier page of the session that shows the
    clicked result, or else to the last page. These years have no users. The text of a query is its number, in 2014 the
    numbers of its terms. Pages of 2014 with the letter T are counted and left out: their clicks were not published.

    Parameters
    ----------
    log_files
        Text files, compressed or not.
    engine
        Database to read into.
    progress
        Called with a description and the fraction done.

    Raises
    ------
    InputError
        If a file cannot be opened.
    """
    file_names, line_findings = tuple(log_file.name for log_file in log_files), ReadFindings()
    lines, pages, clicks = unique_name("lines"), unique_name("query"), unique_name("event")
    broken_line = ReadFinding.from_rule("wscd", "broken-line", "file", lost=True)
    withheld_clicks = ReadFinding.from_rule("wscd", "withheld-clicks", "query", lost=True)
    with temporary_tables(engine, lines):
        reader = LineReader(log_files, range(len(log_files)), line_findings, progress=progress)
        create = f"CREATE TABLE {lines} AS {_LINES}"
        reader.use_as_table(engine, lambda table: run_sql(engine, create.format(lines=table)))
        run_sql(engine, _pages(lines, pages))
        run_sql(engine, _clicks(lines, pages, clicks))
        findings = line_findings.to_tuple()
        lost_lines = sum(finding.rows for finding in findings if finding.lost)
        findings += locate_rows(engine, file_names, lines, "kind IS NULL", broken_line)
        findings += locate_rows(engine, file_names, lines, "kind = 'T'", withheld_clicks)
        line_count = run_sql(engine, f"SELECT count(*) FROM {lines}")[0][0] + lost_lines
    return RawLog(
        engine.table(pages), engine.table(clicks), "wscd", file_names, rank_base=1, actions={"C": "click"},
        lines=line_count, findings=findings, has_time=False, logs_empty_pages=False,
    )  # fmt: skip


# The columns of a line are p. Years differ in their columns: a file is of 2014 ("later") if more of its lines have
# the columns of 2014 than those of the years before.
_LINES = f"""
WITH split AS (
    SELECT file, row, string_split(rtrim(line, chr(9) || chr(10) || chr(13)), chr(9)) AS p,
        contains(rtrim(line, chr(9) || chr(10) || chr(13)), chr(9) || chr(9)) OR contains(line, chr(9) || ',') AS empty
    FROM {{lines}}
), fields AS MATERIALIZED (
    SELECT *, len(p) AS n, file::BIGINT * {_ORDINALS_PER_FILE} + row AS ordinal FROM split
), file_year AS (
    SELECT file, sum(CASE
        WHEN p[2] = 'M' AND n = 4 OR p[3] = 'C' AND n = 5 THEN 1
        WHEN p[3] IN ('Q', 'T') AND contains(coalesce(p[7], ''), ',') THEN 1
        WHEN p[3] = 'C' AND n = 4 OR p[3] = 'Q' AND n > 6 THEN -1
        ELSE 0
    END) > 0 AS later
    FROM fields GROUP BY file
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
FROM fields JOIN file_year USING (file)
"""


def _pages(lines: str, name: str) -> str:
    columns = {
        "file": "q.file",
        "row": "q.row",
        # Pages of 2014 have a number in their session. Those of the years before get their line number.
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
    SELECT {select_list(RAW_QUERY, columns, attributes)} FROM {lines} q
    LEFT JOIN ({_session_users(lines)}) m ON m.session_id = q.p[1]
    WHERE q.kind = 'Q'
    """


def _session_users(lines: str) -> str:
    return f"""
    SELECT p[1] AS session_id, arg_min(p[4], ordinal) AS user_id, arg_min(p[3], ordinal) AS day
    FROM {lines} WHERE kind = 'M' GROUP BY p[1]
    """


def _clicks(lines: str, pages: str, name: str) -> str:
    columns = {
        "file": "c.file", "row": "c.row", "query_id": "c.query_id", "session_id": "c.session_id",
        "user_id": "m.user_id", "time_ms": "c.ordinal", "action": "'C'", "object_id": "c.url",
    }  # fmt: skip
    return f"""
    CREATE TABLE {name} AS
    WITH click AS (
        SELECT file, row, ordinal, later, p[1] AS session_id, p[4] AS serp, p[-1] AS url FROM {lines} WHERE kind = 'C'
    ), last_page AS (
        SELECT click.*, page.query_id AS last_id, list_contains(page.hit_ids, click.url) AS shown
        FROM (FROM click WHERE NOT later) click
        ASOF LEFT JOIN {pages} page ON click.session_id = page.session_id AND click.ordinal >= page.time_ms
    ), not_shown AS (SELECT * FROM last_page WHERE NOT coalesce(shown, false)
    ), result AS (
        SELECT session_id, time_ms, query_id, unnest(hit_ids) AS url FROM {pages}
        WHERE session_id IN (SELECT session_id FROM not_shown)
    ), earlier_page AS (
        SELECT not_shown.file, not_shown.row, max_by(result.query_id, result.time_ms) AS query_id
        FROM not_shown JOIN result USING (session_id, url)
        WHERE not_shown.ordinal >= result.time_ms
        GROUP BY ALL
    ), assigned AS (
        SELECT last_page.* EXCLUDE (last_id, shown), coalesce(earlier_page.query_id, last_id) AS query_id
        FROM last_page LEFT JOIN earlier_page USING (file, row)
        UNION ALL
        SELECT *, session_id || '/' || serp AS query_id FROM click WHERE later
    )
    SELECT {select_list(RAW_EVENT, columns)} FROM assigned c LEFT JOIN ({_session_users(lines)}) m USING (session_id)
    """
