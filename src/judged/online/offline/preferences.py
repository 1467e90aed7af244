"""Preferences between results that clicks express, by the rules of Joachims, Granka, Pan, Hembrooke and Gay (2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.online.arguments import names_of, need
from judged.online.engine import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog

RULES = {
    "above": "click > skip above: a clicked result is better than each result above it without a click",
    "last-above": "last click > skip above: so is the result that was clicked last, and only that one",
    "earlier": "click > earlier click: a result clicked later is better than one clicked before",
    "previous": "click > skip previous: a clicked result is better than the one right above it, if that has no click",
    "next": "click > no click next: a clicked result is better than the one right below it, if that has no click",
}
"""The rules by name. ``last-above`` and ``earlier`` need to know in which order things were clicked."""

DEFAULT_RULES = ("above", "last-above", "next")


def click_preferences(log: InteractionLog, *, rules: Sequence[str] | str = DEFAULT_RULES, depth: int = 10) -> Relation:
    """Give what clicks say about which of two results of a page is better.

    A result counts once a page, at its first rank. Clicks on something that the page does not show say nothing. Where
    the log tells what came into view, what did not was not skipped.

    Parameters
    ----------
    log
        What users did.
    rules
        Of `RULES`.
    depth
        Ranks below this are not looked at.

    Returns
    -------
    Relation
        ``serp, session, user, rule, better, worse, better_rank, worse_rank``: the two results as ids; each pair once a
        page and rule. In no order, and not run yet.

    Raises
    ------
    InputError
        If there is no such rule.

    References
    ----------
    Joachims, Granka, Pan, Hembrooke, Gay: Accurately interpreting clickthrough data as implicit feedback. SIGIR 2005;
    and with Radlinski: Evaluating the accuracy of implicit feedback from clicks and query reformulations in web search.
    TOIS 2007.
    """
    need(log=log, depth=depth)
    names = names_of(rules=rules)
    if unknown := [name for name in names if name not in RULES]:
        raise InputError(f"no rule {unknown[0]!r}", fix=f"one of {', '.join(RULES)}")
    if not names:
        raise InputError("no rule is given", fix=f"some of {', '.join(RULES)}")
    pairs = " UNION ALL ".join(f"SELECT *, {literal(name)} AS rule FROM ({_PAIRS[name]})" for name in names)
    listed = "false" if "impressions" in log.has else "true"
    return log.engine.query(f"""
        WITH result AS (
            SELECT serp, object_id, min(rank) AS rank, bool_or(coalesce(seen, {listed})) AS seen
            FROM {log.shown} WHERE rank <= {depth} GROUP BY serp, object_id),
        click AS (
            SELECT serp, object_id, min(time_ms) AS first_ms, max(time_ms) AS last_ms FROM {log.event}
            WHERE action = 'click' AND serp IS NOT NULL AND object_id IS NOT NULL GROUP BY serp, object_id),
        clicked AS (
            SELECT r.serp, r.object_id, r.rank, c.first_ms, c.last_ms,
                max(c.last_ms) OVER (PARTITION BY r.serp) AS end_ms
            FROM result AS r JOIN click AS c ON c.serp = r.serp AND c.object_id = r.object_id),
        skipped AS (
            SELECT r.serp, r.object_id, r.rank FROM result AS r
            LEFT JOIN click AS c ON c.serp = r.serp AND c.object_id = r.object_id WHERE r.seen AND c.serp IS NULL)
        SELECT p.serp, p.session, p."user", m.rule, m.better, m.worse, m.better_rank, m.worse_rank
        FROM ({pairs}) AS m JOIN {log.serp} AS p ON p.serp = m.serp""")


def _pairs(other: str, condition: str) -> str:
    return f"""
        SELECT b.serp, b.object_id AS better, w.object_id AS worse, b.rank AS better_rank, w.rank AS worse_rank
        FROM clicked AS b JOIN {other} AS w ON w.serp = b.serp WHERE {condition}"""


_PAIRS = {
    "above": _pairs("skipped", "w.rank < b.rank"),
    "last-above": _pairs("skipped", "w.rank < b.rank AND b.last_ms = b.end_ms"),
    "earlier": _pairs("clicked", "w.first_ms < b.first_ms"),
    "previous": _pairs("skipped", "w.rank = b.rank - 1"),
    "next": _pairs("skipped", "w.rank = b.rank + 1"),
}
