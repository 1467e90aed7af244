"""Facts of pages that come from their clicks: how many results were opened, where, and with what success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judged.online.engine import ibis_library
from judged.online.metrics.metric import written
from judged.online.tables import Relation

_RANKS = 65_536  # a rank and a time are packed into one number, so that "the first click" is a minimum
_BITS = (
    50  # ranks down to here are packed into one number, exact as a double too: a column each would be most of the cost
)


def clicked_pages(
    clicks: Relation,
    pages: Relation,
    *,
    cutoffs: Sequence[int],
    ranks: Sequence[int],
    satisfied: Sequence[float],
    dissatisfied: Sequence[float],
    timed: bool,
) -> Relation:
    """Give one row a page with clicks.

    A result opened twice is one opened result: rates must not grow when somebody comes back to it.

    Parameters
    ----------
    clicks
        `click_facts`.
    pages
        ``serp``, ``first_rank`` and ``n_shown``: only read for cutoffs deeper than are packed.
    cutoffs, ranks
        Opened results are counted down to each cutoff, and at each rank.
    satisfied, dissatisfied
        Seconds of dwell from which a click counts as satisfied, and below which as dissatisfied.
    timed
        The log has a clock.
    """
    results = _results(clicks, satisfied, dissatisfied, timed=timed)
    deep = [k for k in cutoffs if k > _BITS]
    if deep:
        results = results.join(pages.select("serp", "first_rank", "n_shown"), "serp", rname="p_{name}")
    first = results.first_packed.min()
    sums: dict[str, Any] = {
        "opened": _number(results.count()),
        "click_events": _number(results.events.sum()),
        "observed": _number(results.observed.sum()),
        "first_ms": results.first_ms.min(),
        "first_rank_opened": first % _RANKS,
        "lowest": results["rank"].max(),
        "highest": results["rank"].min(),
        "ranked": _number(results["rank"].count()),
        "rr_sum": (1.0 / results["rank"].cast("float64")).sum(),
    }
    bit = (2.0 ** (results["rank"].clip(upper=_BITS) - 1)).cast("int64")  # no backend may overflow on deeper ranks
    sums["ranks_opened"] = (results["rank"] <= _BITS).ifelse(bit, 0).sum()
    if deep:
        within = shown_at(results, results["rank"])
        sums |= {f"deep_to_{k}": _number((within & (results["rank"] <= k)).sum()) for k in deep}
    sums |= {f"deep_at_{r}": _number((results["rank"] == r).sum()) for r in ranks if r > _BITS}
    for t in map(written, satisfied):
        sums[f"satisfied_{t}"] = _number(results[f"satisfied_{t}"].sum())
        sums[f"satisfied_events_{t}"] = _number(results[f"satisfied_events_{t}"].sum())
        sums[f"satisfied_ms_{t}"] = results[f"satisfied_ms_{t}"].min()
        sums[f"satisfied_last_ms_{t}"] = results[f"satisfied_last_ms_{t}"].max()
    for t in map(written, dissatisfied):
        sums[f"dissatisfied_events_{t}"] = _number(results[f"dissatisfied_events_{t}"].sum())
    return results.group_by("serp").agg(**sums)


def opened_at(page: Relation, rank: int) -> Any:
    """Give 1 where the result at a rank was shown and opened, else 0: of `clicked_pages`, joined to pages."""
    shown = shown_at(page, rank).ifelse(1.0, 0.0)
    if rank > _BITS:
        return page[f"deep_at_{rank}"].fill_null(0.0) * shown
    return ((page.ranks_opened.fill_null(0) & 2 ** (rank - 1)) != 0).ifelse(shown, 0.0)


def shown_at(page: Relation, rank: Any) -> Any:
    """Tell whether the page has a result at a rank: a number or a column."""
    return (page.first_rank <= rank) & (page.first_rank + page.n_shown > rank)


def opened_to(page: Relation, cutoff: int) -> Any:
    """Give how many results at ranks 1 to the cutoff were shown and opened."""
    if cutoff > _BITS:
        return page[f"deep_to_{cutoff}"].fill_null(0.0)
    return sum((opened_at(page, rank) for rank in range(2, cutoff + 1)), opened_at(page, 1))


def _results(clicks: Relation, satisfied: Sequence[float], dissatisfied: Sequence[float], *, timed: bool) -> Relation:
    """Make one row of each opened result of a page: what stands at one rank, or, without a rank, one object."""
    ibis = ibis_library()
    packed = clicks.time_ms * _RANKS + clicks["rank"].clip(upper=_RANKS - 1).cast("int64")
    sums: dict[str, Any] = {
        "events": clicks.count(),
        "observed": clicks.ended.sum(),
        "first_ms": clicks.time_ms.min(),
        "first_packed": packed.min(),
    }
    never = clicks.ended < 0  # without a clock
    for seconds in satisfied:
        t, enough = written(seconds), clicks.dwell_ms >= round(seconds * 1000)
        counts = enough | (clicks.ended == 0) if timed else never
        sums[f"satisfied_{t}"] = counts.ifelse(1, 0).max()
        sums[f"satisfied_events_{t}"] = counts.ifelse(1, 0).sum()
        when = counts.ifelse(clicks.time_ms, ibis.null("int64"))
        sums |= {f"satisfied_ms_{t}": when.min(), f"satisfied_last_ms_{t}": when.max()}
    for seconds in dissatisfied:
        t, short = written(seconds), clicks.dwell_ms < round(seconds * 1000)
        counts = (clicks.ended == 1) & short if timed else never
        sums[f"dissatisfied_events_{t}"] = counts.ifelse(1, 0).sum()
    unranked = clicks["rank"].isnull().ifelse(clicks.object_id, ibis.null("string"))
    return clicks.group_by("serp", "rank", thing=unranked).agg(**sums)


def _number(value: Any) -> Any:
    """Counts are added as doubles: exact below 2**53, and several times faster to add than DuckDB's wide integers."""
    return value.cast("float64")
