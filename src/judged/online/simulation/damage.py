"""What goes wrong between what happened and what is written: rows lost, doubled, and damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged._types import Bools, Ints
    from judged.online.simulation.happenings import Happenings
    from judged.online.simulation.plan import SimulationPlan
    from judged.online.simulation.sessions import Crowd, Pages

SOUND, COPY, FACETS, FUTURE, UNREADABLE = range(5)
_LOST = -1


@dataclass(frozen=True, eq=False)
class Written:
    """The rows that are written.

    Parameters
    ----------
    queries, query_flags
        Page of each row, and what is wrong with it: SOUND, COPY or FACETS.
    events, event_flags
        Happening of each row, and SOUND, COPY, FUTURE or UNREADABLE.
    behind
        By user: the clock of the browser is behind.
    zero_based
        By event row: its rank counts from 0.
    counts
        Rows that each kind of damage hit.
    """

    queries: Ints
    query_flags: NDArray[np.int8]
    events: Ints
    event_flags: NDArray[np.int8]
    behind: Bools
    zero_based: Bools
    counts: dict[str, int]


def break_rows(
    plan: SimulationPlan, crowd: Crowd, pages: Pages, happenings: Happenings, rng: np.random.Generator
) -> Written:
    """Draw what goes wrong."""
    asked = plan.broken
    page_fate = _fates(
        rng, len(pages), (asked.duplicated_queries, asked.facet_requests, asked.lost_queries), (COPY, FACETS, _LOST)
    )
    event_fate = _fates(
        rng,
        len(happenings),
        (asked.duplicated_events, asked.lost_events, asked.future_events, asked.unreadable_times),
        (COPY, _LOST, FUTURE, UNREADABLE),
    )
    in_order = np.argsort(pages.time, kind="stable")
    queries, query_flags = _rows(page_fate[in_order])
    events, event_flags = _rows(event_fate)
    behind = rng.random(len(crowd.quota)) < asked.skewed_users
    names = list(plan.applications)
    zero = names.index(asked.zero_based) if asked.zero_based in names else -1
    of_event = happenings.page[events]
    zero_based = (pages.application[of_event] == zero) & (happenings.place[events] >= 0)
    skewed = behind[pages.user[of_event]]
    early = skewed & (happenings.time[events] - round(1000 * asked.skew) < pages.time[of_event])
    counts = {
        "duplicated_queries": int((page_fate == COPY).sum()),
        "facet_requests": int((page_fate == FACETS).sum()),
        "lost_queries": int((page_fate == _LOST).sum()),
        "duplicated_events": int((event_fate == COPY).sum()),
        "lost_events": int((event_fate == _LOST).sum()),
        "future_events": int((event_fate == FUTURE).sum()),
        "unreadable_times": int((event_fate == UNREADABLE).sum()),
        "orphaned_events": int((page_fate[of_event] == _LOST).sum()),
        "zero_based_ranks": int(zero_based.sum()),
        "skewed_events": int(skewed.sum()),
        "events_before_their_query": int((early & (event_flags <= COPY)).sum()),
        "truncated_lines": int(asked.truncated),
    }
    return Written(in_order[queries], query_flags, events, event_flags, behind, zero_based, counts)


def _fates(rng: np.random.Generator, rows: int, rates: tuple[float, ...], fates: tuple[int, ...]) -> NDArray[np.int8]:
    """Draw one fate a row, so that no row suffers two."""
    at = np.searchsorted(np.cumsum(rates), rng.random(rows), side="right")
    return np.array([*fates, SOUND], dtype=np.int8)[at]


def _rows(fates: NDArray[np.int8]) -> tuple[Ints, NDArray[np.int8]]:
    """Give the rows that are written, in order: nothing of what is lost, two of what has a copy or facets."""
    double = (fates == COPY) | (fates == FACETS)
    rows = np.repeat(np.arange(len(fates)), np.where(fates == _LOST, 0, np.where(double, 2, 1)))
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    return rows, np.where(double[rows] & first, SOUND, fates[rows]).astype(np.int8)
