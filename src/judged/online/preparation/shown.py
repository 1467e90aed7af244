"""What stood on each page: the ids that were sent, or else the results that came into view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.online.preparation.work import KEY

if TYPE_CHECKING:
    from judged.online.engine import Relation
    from judged.online.preparation.work import Work

_VIEWED = """
CREATE TEMP TABLE $viewed AS
SELECT serp, object_id, min(rank) AS rank, $chance AS propensity
FROM $act WHERE rule_no = 0 AND serp IS NOT NULL AND action = 'impression' AND object_id IS NOT NULL
    AND serp IN (SELECT serp FROM $page WHERE rule_no = 0 AND n_returned IS NULL)
GROUP BY serp, object_id
"""

_LISTED = f"""
SELECT l.serp, (CASE WHEN ranks IS NULL THEN first_rank + nth - 1 ELSE ranks[nth] END)::INTEGER AS rank, l.object_id,
    l.team, $propensity AS propensity, $seen AS seen
FROM (SELECT serp, first_rank, ranks, unnest(hit_ids) AS object_id, unnest(list_resize(teams, len(hit_ids))) AS team,
        unnest(list_resize(propensities, len(hit_ids))) AS propensity, unnest(range(1, len(hit_ids) + 1)) AS nth
    FROM (SELECT p.serp, first_rank, p.ranks, q.hit_ids, q.teams, q.propensities
        FROM (SELECT {KEY} AS serp, hit_ids, teams, propensities FROM $query) AS q
        JOIN (SELECT serp, first_rank, ranks FROM $page WHERE rule_no = 0 AND n_returned > 0) AS p
            ON q.serp = p.serp)) AS l
$joined
WHERE l.object_id IS NOT NULL AND (ranks IS NULL OR ranks[nth] IS NOT NULL)
"""

_SEEN = """
LEFT JOIN (SELECT serp, object_id, $chance AS propensity, bool_or(action = 'impression') AS seen FROM $act
    WHERE rule_no = 0 AND serp IS NOT NULL AND object_id IS NOT NULL AND (action = 'impression' OR $likely)
    GROUP BY serp, object_id) AS v ON l.serp = v.serp AND l.object_id = v.object_id
"""


def view_impressions(work: Work, impressions: int, propensities: int) -> bool:
    """Make the table ``viewed``, of what came into view on pages without a logged list; tell if there is any."""
    unlisted = work.one("SELECT count(*) AS n FROM $page WHERE rule_no = 0 AND n_returned IS NULL")["n"]
    if not (unlisted and impressions):
        return False
    work.run(_VIEWED, chance=_chance(propensities))
    return True


def shown_results(work: Work, impressions: int, propensities: int, *, viewed: bool) -> Relation:
    """Give what was shown as an expression: lists stay where they were read, and are taken apart when asked for."""
    joined = bool(impressions or propensities)
    sql = work.written(
        _LISTED,
        propensity="coalesce(l.propensity, v.propensity)" if propensities else "l.propensity",
        seen="coalesce(v.seen, false)" if impressions else "NULL::BOOLEAN",
        joined=work.written(
            _SEEN, chance=_chance(propensities), likely="propensity IS NOT NULL" if propensities else "false"
        )
        if joined
        else "",
    )
    if viewed:
        sql += work.written("""
            UNION ALL SELECT serp, rank, object_id, NULL, propensity, true FROM $viewed WHERE rank IS NOT NULL""")
    return work.engine.query(sql)


def _chance(propensities: int) -> str:
    return "max(propensity)" if propensities else "NULL::DOUBLE"
