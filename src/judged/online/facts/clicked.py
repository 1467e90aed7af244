"""Facts of pages that come from their clicks: how many results were opened, where, and with what success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judged.online.engine import ibis_library
from judged.online.metrics.metric import written
from judged.online.tables import Relation

_RANKS = 65_536  # a rank and a time are packed into one number, so that "the first click" is a minimum


def clicked_pages(
    clicks: Relation, *, cutoffs: Sequence[int], ranks: Sequence[int], thresholds: Sequence[float], timed: bool
) -> Relation:
    """Give one row a page with clicks.

    A result opened twice is one opened result: rates must not grow when somebody comes back to it.

    Parameters
    ----------
    clicks
        `click_facts`.
    cutoffs, ranks
        Opened results are counted down to each cutoff, and at each rank.
    thresholds
        Seconds of dwell from which a click counts as satisfied, or below which as dissatisfied.
    timed
        The log has a clock.
    """
    results = _results(clicks, thresholds, timed=timed)
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
        "rank_sum": _number(results["rank"].sum()),
    }
    sums |= {f"opened_to_{k}": _number((results["rank"] <= k).sum()) for k in cutoffs}
    sums |= {f"opened_at_{r}": _number((results["rank"] == r).sum()) for r in ranks}
    for t in map(written, thresholds):
        sums[f"satisfied_{t}"] = _number(results[f"satisfied_{t}"].sum())
        sums[f"satisfied_events_{t}"] = _number(results[f"satisfied_events_{t}"].sum())
        sums[f"dissatisfied_events_{t}"] = _number(results[f"dissatisfied_events_{t}"].sum())
        sums[f"satisfied_ms_{t}"] = results[f"satisfied_ms_{t}"].min()
    return results.group_by("serp").agg(**sums)


def _results(clicks: Relation, thresholds: Sequence[float], *, timed: bool) -> Relation:
    """Make one row of each opened result of a page."""
    ibis = ibis_library()
    packed = clicks.time_ms * _RANKS + clicks["rank"].clip(upper=_RANKS - 1).cast("int64")
    sums: dict[str, Any] = {
        "events": clicks.count(),
        "observed": clicks.ended.sum(),
        "first_ms": clicks.time_ms.min(),
        "first_packed": packed.min(),
    }
    for seconds in thresholds:
        t, least = written(seconds), round(seconds * 1000)
        never = clicks.ended < 0
        satisfied = (clicks.dwell_ms >= least) | (clicks.ended == 0) if timed else never
        dissatisfied = (clicks.ended == 1) & (clicks.dwell_ms < least) if timed else never
        sums[f"satisfied_{t}"] = satisfied.ifelse(1, 0).max()
        sums[f"satisfied_events_{t}"] = satisfied.ifelse(1, 0).sum()
        sums[f"dissatisfied_events_{t}"] = dissatisfied.ifelse(1, 0).sum()
        sums[f"satisfied_ms_{t}"] = satisfied.ifelse(clicks.time_ms, ibis.null("int64")).min()
    return clicks.group_by("serp", "rank", "object_id").agg(**sums)


def _number(value: Any) -> Any:
    """Counts are added as doubles: exact below 2**53, and several times faster to add than DuckDB's wide integers."""
    return value.cast("float64")
