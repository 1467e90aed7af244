"""Sums of facts by unit: the step behind which users, and not clicks, are what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judged.online.engine import Relation, identifier
from judged.online.estimation.packed_counts import Packing, packing_of
from judged.online.facts.columns import SCALES, is_flag
from judged.online.facts.pages import PageFacts
from judged.online.facts.sessions import session_facts
from judged.online.metrics.metric import OnlineMetric

_SESSION_ROWS = ("session", "user")
_COUNTED = {"session": "n_sessions", "user": "n_users"}


def is_of_sessions(metric: OnlineMetric) -> bool:
    """Whether its columns are facts of sessions; all others are facts of pages."""
    return metric.row in _SESSION_ROWS


def scale_of(metric: OnlineMetric) -> float:
    """Give in how many parts of the metric's unit its numerator is counted."""
    return 1000.0 if metric.numerator.startswith("time_to_success") else float(SCALES.get(metric.numerator, 1))


def column_of(name: str) -> str:
    """Name the column of the sums that a fact is added up in: sessions and users are counted."""
    return _COUNTED.get(name, name)


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

    def column(self, name: str) -> str:
        """Give the SQL of the sum of a fact."""
        parted = self.packing.parted() if self.packing is not None else {}
        return parted.get(name) or identifier(name)


def page_sums(pages: PageFacts, columns: Sequence[str], unit: str, *, sliced: bool, most: int) -> UnitSums:
    """Add the facts of pages by unit, and slice; no unit has more than `most` pages."""
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    packing = packing_of([name for name in columns if is_flag(name)], most)
    facts = {name: pages.columns[name] for name in columns if not is_flag(name)} | packing.packed(pages.columns)
    sums = ", ".join(f"CAST(sum({fact}) AS BIGINT) AS {identifier(name)}" for name, fact in facts.items())
    return UnitSums(
        pages.joined.engine.keep(f"SELECT {keys}, {sums} FROM {pages.joined} GROUP BY {keys}", "sums"), sliced, packing
    )


def over_slices(sums: UnitSums, unit: str) -> UnitSums:
    """Add the slices of each unit: what is added up, a page or a session, is in exactly one."""
    names = [name for name in sums.table.columns if name not in {unit, "slice", "n_users"}]
    added = [f"CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names]
    added += ["1 AS n_users"] if "n_users" in sums.table.columns else []
    key = identifier(unit)
    whole = sums.table.engine.keep(f"SELECT {key}, {', '.join(added)} FROM {sums.table} GROUP BY {key}", "sums")
    return UnitSums(whole, sliced=False, packing=sums.packing)


def session_sums(
    pages: Relation, metrics: Iterable[OnlineMetric], thresholds: Sequence[float], unit: str, *, sliced: bool
) -> UnitSums:
    """Add the facts of sessions by unit, and slice; ``n_sessions`` counts them, ``n_users`` is 1."""
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    names = sorted({name for metric in metrics for name in metric.columns()} - set(_COUNTED))
    sums = "".join(f", CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names)
    table = pages.engine.keep(
        f"""
        SELECT {keys}, CAST(sum(session_count) AS BIGINT) AS n_sessions, 1 AS n_users{sums}
        FROM {session_facts(pages, names, thresholds, sliced=sliced)} GROUP BY {keys}""",
        "sums",
    )
    return UnitSums(table, sliced)


def counted_sessions(sums: UnitSums) -> int:
    """Count the sessions of `session_sums`: each in every slice that it has a page in."""
    return int(sums.table.engine.rows(f"SELECT sum(n_sessions) AS n FROM {sums.table}")[0]["n"] or 0)
