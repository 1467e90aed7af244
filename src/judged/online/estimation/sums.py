"""Sums of facts by unit: the step behind which users, and not clicks, are what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from judged.online.engine import Relation, identifier
from judged.online.facts.columns import SCALES, is_flag
from judged.online.facts.pages import FactSettings, PageFacts, page_facts
from judged.online.facts.sessions import of_pages, session_facts
from judged.online.metrics import OnlineMetric

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

_ADDED = ("ratio", "total", "quantile")
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


_BITS = 62


@dataclass(frozen=True)
class Packing:
    """Which flags stand in which column, and at which bit.

    Parameters
    ----------
    flags
        Columns that hold 0 or 1.
    bits
        Enough for the largest sum.

    Examples
    --------
    >>> packing = packing_of(["a", "b", "c"], most=1000)
    >>> packing.bits, packing.columns
    (10, ('packed_0',))
    >>> packing.parted()["b"]
    '(packed_0 >> 10) & 1023'
    """

    flags: tuple[str, ...]
    bits: int

    @property
    def _room(self) -> int:
        return max(1, _BITS // self.bits)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the packed columns."""
        return tuple(f"packed_{at}" for at in range(-(-len(self.flags) // self._room)))

    def packed(self, facts: Mapping[str, str]) -> dict[str, str]:
        """Give the SQL of the packed columns, out of the SQL of each flag."""
        made: dict[str, str] = {}
        for at, name in enumerate(self.columns):
            inside = self.flags[at * self._room : (at + 1) * self._room]
            made[name] = " + ".join(
                f"({facts[flag]}) * CAST({1 << (place * self.bits)} AS BIGINT)" for place, flag in enumerate(inside)
            )
        return made

    def parted(self) -> dict[str, str]:
        """Give the SQL of the sum of each flag, out of sums of packed columns."""
        mask = (1 << self.bits) - 1
        return {
            flag: f"({self.columns[at // self._room]} >> {at % self._room * self.bits}) & {mask}"
            for at, flag in enumerate(self.flags)
        }


def packing_of(flags: Sequence[str], most: int) -> Packing:
    """Pack flags whose sums are at most `most`."""
    return Packing(tuple(flags), max(1, int(most).bit_length()))


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
    most
        Of a fact, the most that a unit counts with: sums above are cut (winsorised).
    """

    table: Relation
    sliced: bool
    packing: Packing | None = None
    most: Mapping[str, int] = field(default_factory=dict[str, int])

    def column(self, name: str) -> str:
        """Give the SQL of the sum of a fact."""
        parted = self.packing.parted() if self.packing is not None else {}
        made = parted.get(name) or identifier(name)
        return f"least({made}, {self.most[name]})" if name in self.most else made


def pages_of(log: InteractionLog, metrics: Sequence[OnlineMetric], settings: FactSettings, **only: Any) -> PageFacts:
    """Make the facts of pages that metrics are added up of; `only` are slices and chosen pages, as of `page_facts`."""
    names = {True: set[str](), False: {"page"}}
    for one in metrics:
        if one.kind in _ADDED:
            names[is_of_sessions(one)].update(one.columns())
    return page_facts(
        log, sorted({*names[False], *of_pages(names[True])}), settings, successes=_successes(metrics), **only
    )


def _successes(metrics: Iterable[OnlineMetric]) -> list[float]:
    """Give the seconds of dwell that make a success for metrics of sessions."""
    return sorted({float(one.parameters["t"] or 0) for one in metrics if is_of_sessions(one) and "t" in one.parameters})


def unit_sums(
    pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool
) -> list[tuple[UnitSums, list[OnlineMetric]]]:
    """Add up by unit, and slice, what ratios are of: facts of pages, and those of sessions, each with its metrics."""
    parts: list[tuple[UnitSums, list[OnlineMetric]]] = []
    if of_page := [one for one in metrics if not is_of_sessions(one)]:
        parts.append((_page_sums(pages, of_page, unit, sliced=sliced), of_page))
    if of_session := [one for one in metrics if is_of_sessions(one)]:
        parts.append((_session_sums(pages, of_session, unit, sliced=sliced), of_session))
    return parts


def whole_sums(pages: PageFacts, sums: UnitSums, metrics: Sequence[OnlineMetric], unit: str) -> UnitSums:
    """Add up over all slices; a session that has pages in two of them was counted in both, and is counted anew."""
    if "n_sessions" in sums.table.columns:
        of = f"(SELECT sum(n_sessions) FROM {sums.table}) AS slices, count(DISTINCT session) AS sessions"
        counted = pages.joined.engine.rows(f"SELECT {of} FROM {pages.joined}")[0]
        if counted["slices"] != counted["sessions"]:
            return _session_sums(pages, metrics, unit, sliced=False)
    return _over_slices(sums, unit)


def _page_sums(pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool) -> UnitSums:
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    columns = sorted({name for one in metrics for name in one.columns()})
    counts = f"SELECT count(*) AS pages FROM {pages.log.serp} GROUP BY {identifier(unit)}"
    most = pages.log.engine.rows(f"SELECT max(pages) AS most FROM ({counts})")[0]["most"] or 0
    packing = packing_of([name for name in columns if is_flag(name)], most)
    facts = {name: pages.columns[name] for name in columns if not is_flag(name)} | packing.packed(pages.columns)
    sums = ", ".join(f"CAST(sum({fact}) AS BIGINT) AS {identifier(name)}" for name, fact in facts.items())
    kept = pages.joined.engine.keep(f"SELECT {keys}, {sums} FROM {pages.joined} GROUP BY {keys}", "sums")
    return UnitSums(kept, sliced, packing)


def _session_sums(pages: PageFacts, metrics: Sequence[OnlineMetric], unit: str, *, sliced: bool) -> UnitSums:
    """Add the facts of sessions by unit, and slice; ``n_sessions`` counts them, ``n_users`` is 1."""
    keys = f"{identifier(unit)}, slice" if sliced else identifier(unit)
    names = sorted({name for metric in metrics for name in metric.columns()} - set(_COUNTED))
    sums = "".join(f", CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names)
    facts = session_facts(pages.select(of_pages(names)), names, _successes(metrics), sliced=sliced)
    table = pages.joined.engine.keep(
        f"""
        SELECT {keys}, CAST(sum(session_count) AS BIGINT) AS n_sessions, 1 AS n_users{sums}
        FROM {facts} GROUP BY {keys}""",
        "sums",
    )
    return UnitSums(table, sliced)


def _over_slices(sums: UnitSums, unit: str) -> UnitSums:
    """Add the slices of each unit: what is added up, a page or a session, is in exactly one."""
    names = [name for name in sums.table.columns if name not in {unit, "slice", "n_users"}]
    added = [f"CAST(sum({identifier(name)}) AS BIGINT) AS {identifier(name)}" for name in names]
    added += ["1 AS n_users"] if "n_users" in sums.table.columns else []
    key = identifier(unit)
    whole = sums.table.engine.keep(f"SELECT {key}, {', '.join(added)} FROM {sums.table} GROUP BY {key}", "sums")
    return UnitSums(whole, sliced=False, packing=sums.packing)
