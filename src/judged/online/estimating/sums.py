"""Sums of facts by unit: the step behind which users, and not clicks, are what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judged.online.facts.sessions import session_facts
from judged.online.metrics.metric import OnlineMetric
from judged.online.tables import Relation

SLICE = "slice"
_SESSION_ROWS = ("session", "user")


def is_of_sessions(metric: OnlineMetric) -> bool:
    """Whether its columns are facts of sessions; all others are facts of pages."""
    return metric.row in _SESSION_ROWS


@dataclass(frozen=True)
class UnitSums:
    """One row a unit, or a unit and slice.

    Parameters
    ----------
    table
        The unit, ``slice`` where it is sliced, and one column a fact, summed.
    sliced
        There is a column ``slice``.
    """

    table: Relation
    sliced: bool


def page_sums(pages: Relation, columns: Sequence[str], unit: str, *, sliced: bool) -> UnitSums:
    """Add the facts of pages by unit, and slice."""
    keys = [unit, SLICE] if sliced else [unit]
    return UnitSums(pages.group_by(*keys).agg(**{name: pages[name].sum() for name in columns}), sliced)


def over_slices(sums: UnitSums, columns: Sequence[str], unit: str) -> UnitSums:
    """Add the slices of each unit: every page is in exactly one."""
    table = sums.table
    return UnitSums(table.group_by(unit).agg(**{name: table[name].sum() for name in columns}), sliced=False)


def session_sums(
    pages: Relation, metrics: Iterable[OnlineMetric], thresholds: Sequence[float], unit: str, *, sliced: bool
) -> UnitSums:
    """Add the facts of sessions by unit, and slice; ``n_sessions`` counts them, ``n_users`` is 1."""
    sessions = session_facts(pages, thresholds, by=SLICE if sliced else None)
    keys = [unit, SLICE] if sliced else [unit]
    names = {name for metric in metrics for name in metric.columns()} - {"session", "user"}
    sums = {name: sessions[name].sum() for name in sorted(names)}
    table = sessions.group_by(*keys).agg(n_sessions=sessions.session_count.sum(), **sums)
    return UnitSums(table.mutate(n_users=1.0), sliced)
