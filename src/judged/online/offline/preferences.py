"""Preferences between results that clicks express, by the rules of Joachims, Granka, Pan, Hembrooke and Gay (2005)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from judged.errors import InputError
from judged.online.arguments import names_of, need_log, need_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import ibis.expr.types as ir

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


def click_preferences(log: InteractionLog, *, rules: Sequence[str] | str = DEFAULT_RULES, depth: int = 10) -> ir.Table:
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
    ibis.Table
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
    need_log(log)
    need_numbers(whole=True, depth=depth)
    names = names_of(rules=rules)
    if unknown := [name for name in names if name not in RULES]:
        raise InputError(f"no rule {unknown[0]!r}", fix=f"one of {', '.join(RULES)}")
    if not names:
        raise InputError("no rule is given", fix=f"some of {', '.join(RULES)}")
    if depth < 2:
        raise InputError(f"the depth is {depth}", fix="2 or more: a preference is between two results")
    clicked, skipped = _sides(log, depth)
    found = [_MADE[name](clicked, skipped).mutate(rule=_literal(name)) for name in names]
    every = found[0]
    for one in found[1:]:
        every = every.union(one)
    owners = log.serp.select("serp", "session", "user")
    joined = every.inner_join(owners, "serp")
    return joined.select("serp", "session", "user", "rule", "better", "worse", "better_rank", "worse_rank")


def _literal(text: str) -> Any:
    from judged.online.engine import ibis_library

    return ibis_library().literal(text)


def _sides(log: InteractionLog, depth: int) -> tuple[ir.Table, ir.Table]:
    """Give the clicked results with the times of their first and last click, and those that were passed over."""
    shown: Any = log.shown
    shown = shown.filter(shown["rank"] <= depth)
    seen = shown.seen.fill_null("impressions" not in log.has).ifelse(1, 0).max()
    results = shown.group_by("serp", "object_id").agg(place=shown["rank"].min(), seen=seen)
    event = log.event.filter(log.event.action == "click", log.event.serp.notnull(), log.event.object_id.notnull())
    clicks = event.group_by("serp", "object_id").agg(first=event.time_ms.min(), last=event.time_ms.max())
    clicked = clicks.inner_join(results, ["serp", "object_id"])
    skipped = results.anti_join(clicks, ["serp", "object_id"])
    skipped = skipped.filter(skipped.seen == 1)
    return (
        clicked.select("serp", "first", "last", better=clicked.object_id, better_rank=clicked.place),
        skipped.select("serp", worse=skipped.object_id, worse_rank=skipped.place),
    )


def _above(clicked: ir.Table, skipped: ir.Table) -> ir.Table:
    pairs = clicked.inner_join(skipped, "serp")
    return _pair(pairs.filter(pairs.worse_rank < pairs.better_rank))


def _last_above(clicked: ir.Table, skipped: ir.Table) -> ir.Table:
    ends = clicked.group_by("serp").agg(end=clicked["last"].max())
    marked = clicked.inner_join(ends, "serp")
    return _above(marked.filter(marked["last"] == marked.end).drop("end"), skipped)


def _earlier(clicked: ir.Table, skipped: ir.Table) -> ir.Table:
    del skipped
    before = clicked.select("serp", start=clicked["first"], worse=clicked.better, worse_rank=clicked.better_rank)
    pairs = clicked.inner_join(before, "serp")
    return _pair(pairs.filter(pairs.start < pairs["first"]))


def _previous(clicked: ir.Table, skipped: ir.Table) -> ir.Table:
    pairs: Any = clicked.inner_join(skipped, "serp")
    return _pair(pairs.filter(pairs.worse_rank == pairs.better_rank - 1))


def _next(clicked: ir.Table, skipped: ir.Table) -> ir.Table:
    pairs: Any = clicked.inner_join(skipped, "serp")
    return _pair(pairs.filter(pairs.worse_rank == pairs.better_rank + 1))


def _pair(pairs: ir.Table) -> ir.Table:
    return pairs.select("serp", "better", "worse", "better_rank", "worse_rank")


_MADE: dict[str, Callable[[ir.Table, ir.Table], ir.Table]] = {
    "above": _above,
    "last-above": _last_above,
    "earlier": _earlier,
    "previous": _previous,
    "next": _next,
}
