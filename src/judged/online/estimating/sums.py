"""Sums of facts by unit: the step behind which users, and not clicks, are what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judged.online.engine import kept, rows_of
from judged.online.estimating.packing import Packing, packing_of
from judged.online.facts.pages import is_flag
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
    packing
        The flags that stand packed in the table.
    """

    table: Relation
    sliced: bool
    packing: Packing | None = None

    def parted(self) -> Relation:
        """Give the table with a column for every fact."""
        return self.table if self.packing is None else self.table.mutate(**self.packing.parted(self.table))


def page_sums(pages: Relation, columns: Sequence[str], unit: str, *, sliced: bool, most: int) -> UnitSums:
    """Add the facts of pages by unit, and slice; no unit has more than `most` pages."""
    keys = [unit, SLICE] if sliced else [unit]
    packing = packing_of([name for name in columns if is_flag(name)], most)
    sums = {name: pages[name].sum() for name in columns if not is_flag(name)}
    sums |= {name: packed.sum() for name, packed in packing.packed(pages).items()}
    return UnitSums(kept(pages.group_by(*keys).agg(**sums)), sliced, packing)


def over_slices(sums: UnitSums, unit: str) -> UnitSums:
    """Add the slices of each unit: what is added up, a page or a session, is in exactly one."""
    table = sums.table
    names = [name for name in table.columns if name not in {unit, SLICE, "n_users"}]
    whole = table.group_by(unit).agg(**{name: table[name].sum() for name in names})
    if "n_users" in table.columns:
        whole = whole.mutate(n_users=1.0)
    return UnitSums(kept(whole), sliced=False, packing=sums.packing)


def session_sums(
    pages: Relation, metrics: Iterable[OnlineMetric], thresholds: Sequence[float], unit: str, *, sliced: bool
) -> UnitSums:
    """Add the facts of sessions by unit, and slice; ``n_sessions`` counts them, ``n_users`` is 1."""
    sessions = session_facts(pages, thresholds, by=SLICE if sliced else None)
    keys = [unit, SLICE] if sliced else [unit]
    names = {name for metric in metrics for name in metric.columns()} - {"session", "user"}
    sums = {name: sessions[name].sum() for name in sorted(names)}
    table = sessions.group_by(*keys).agg(n_sessions=sessions.session_count.sum(), **sums)
    return UnitSums(kept(table.mutate(n_users=1.0)), sliced)


def counted_sessions(sums: UnitSums) -> int:
    """Count the sessions of `session_sums`: each in every slice that it has a page in."""
    return int(rows_of(sums.table.agg(sessions=sums.table.n_sessions.sum()))[0]["sessions"] or 0)
