"""Ten metrics of a UBI log by device in plain SQL, without intervals: see bench/online.py.

The query trusts the log, as an analyst might: it has no checks, no deduplication, and no warnings.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

_SQL = """
WITH page AS (
    SELECT query_id, session_id AS session, timestamp AS time, query_attributes.device AS device,
        query_attributes.result_count = 0 AS empty, query_attributes.latency_ms / 1000 AS latency
    FROM read_parquet('{folder}/ubi_queries.parquet')),
event AS (
    SELECT query_id, session_id AS session, timestamp AS time, action_name AS action,
        event_attributes.position.ordinal AS rank,
        event_attributes.object.object_id AS object
    FROM read_parquet('{folder}/ubi_events.parquet')),
sign AS (
    SELECT session, time FROM page
    UNION SELECT session, time FROM event
    WHERE action IN ('click', 'impression', 'hover') OR (action = 'page_exit' AND object IS NOT NULL)),
visit AS (SELECT session, time, lead(time) OVER (PARTITION BY session ORDER BY time) AS until FROM sign),
click AS (
    SELECT c.query_id, c.rank, c.time, until IS NULL OR until - c.time >= INTERVAL 30 SECONDS AS satisfied
    FROM event AS c JOIN visit AS v ON v.session = c.session AND v.time = c.time WHERE action = 'click'),
opened AS (
    SELECT query_id, count(DISTINCT rank) AS opened, count(*) AS clicks, count(*) FILTER (satisfied) AS satisfied,
        1 / min(rank) AS topmost_rr, 1 / arg_min(rank, (time, rank)) AS first_rr
    FROM click GROUP BY query_id),
sale AS (
    SELECT query_id, bool_or(action = 'add_to_cart') AS cart, bool_or(action = 'purchase') AS bought
    FROM event WHERE action IN ('add_to_cart', 'purchase') GROUP BY query_id)
SELECT coalesce(device, 'all') AS slice,
    count(opened) / count(*) FILTER (NOT empty) AS PageCTR,
    coalesce(sum(opened), 0) / count(*) FILTER (NOT empty) AS ClicksPerPage,
    coalesce(sum(first_rr), 0) / count(*) FILTER (NOT empty) AS FirstClickRR,
    coalesce(sum(topmost_rr), 0) / count(*) FILTER (NOT empty) AS TopmostClickRR,
    sum(satisfied) / sum(clicks) AS SatisfiedClicks,
    count(*) FILTER (opened IS NULL AND cart IS NULL) / count(*) AS Abandonment,
    count(*) FILTER (empty) / count(*) AS ZeroResults,
    count(*) FILTER (cart) / count(*) AS AddToCart,
    count(*) FILTER (bought) / count(*) AS Conversion,
    sum(latency) / count(latency) AS Latency
FROM page LEFT JOIN opened USING (query_id) LEFT JOIN sale USING (query_id)
GROUP BY GROUPING SETS ((), (device)) ORDER BY slice
"""


def main() -> None:
    """Compute and print the metrics."""
    con = duckdb.connect(config={"threads": 2})
    result = con.execute(_SQL.format(folder=Path(sys.argv[1])))
    names = [column[0] for column in result.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    estimates = {
        f"{name} {row['slice']}": [value, None] for row in rows for name, value in row.items() if name != "slice"
    }
    print(json.dumps({"estimates": estimates}))


if __name__ == "__main__":
    main()
