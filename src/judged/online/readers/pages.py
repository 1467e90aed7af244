"""Pages made of rows that are one result, or one click, each."""

from __future__ import annotations

from judged.online.readers.mapping_file import Section
from judged.online.tables import RAW_QUERY

_OF_A_RESULT = {"hit_ids": "object_id", "teams": "team", "propensities": "propensity"}
_TYPES = {"teams": "VARCHAR[]", "propensities": "DOUBLE[]"}

ASTRAY = "query_id IS NULL OR (position IS NULL AND object_id IS NOT NULL)"
"""A row of a result that no place is known for."""


def grouped(section: Section, rows: str, rank_base: int) -> str:
    """Make pages of rows that are one result each: the rows of one ``query_id``, in order of their positions.

    A row without a position and an object is a page without results, as a left join of results to pages writes it.
    """
    skipped = {"file", "row", "query_id", "time_ms", "first_rank", "ranks", *_OF_A_RESULT}
    listed = "list({} ORDER BY position, file, row) FILTER (position IS NOT NULL)".format
    shift = 1 - rank_base
    gaps = "max(position) - min(position) + 1 <> count(position)"
    doubled = "count(DISTINCT position) <> count(position)"
    columns = [
        "min(file) AS file",
        "arg_min(row, (file, row)) AS row",
        "query_id",
        "min(time_ms) AS time_ms",
        f"nullif(min(position) + {shift}, 1) AS first_rank",
        f"CASE WHEN {gaps} OR {doubled} THEN {listed(f'position + {shift}')} END AS ranks",
        f"coalesce({listed('object_id')}, []) AS hit_ids",
    ]
    for name, of in _OF_A_RESULT.items():
        if name != "hit_ids":
            there = of in section.columns
            columns.append(f"{listed(of) if there else f'NULL::{_TYPES[name]}'} AS {name}")
    names = [one.name for one in RAW_QUERY if one.name not in skipped]
    names += [f"a_{number}" for number in range(len(section.attributes))]
    columns += [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    return f"SELECT {', '.join(columns)}, {doubled} AS doubled FROM {rows} WHERE NOT ({ASTRAY}) GROUP BY query_id"


def clicked(section: Section, rows: str) -> str:
    """Make pages of rows that are one click each: the rows of one ``query_id``; what stood on them nobody says."""
    names = [one.name for one in RAW_QUERY if one.name not in {"file", "row", "query_id", "time_ms"}]
    names += [f"a_{number}" for number in range(len(section.attributes))]
    columns = [f"arg_min({name}, (file, row)) AS {name}" for name in names]
    keys = "min(file) AS file, arg_min(row, (file, row)) AS row, query_id, min(time_ms) AS time_ms"
    return f"SELECT {keys}, {', '.join(columns)} FROM {rows} WHERE query_id IS NOT NULL GROUP BY query_id"
