"""What is true of a simulated log: of the rows that were drawn, and of the population that they were drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judged.online.simulation.plan import KINDS
from judged.online.simulation.sessions import STEPS

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints, Table
    from judged.online.simulation.happenings import Sales
    from judged.online.simulation.plan import SimulationPlan
    from judged.online.simulation.sessions import Pages

SATISFIED_MS, SOON_MS = 30_000, 300_000
"""The dwell and the gap that metrics use where nothing else is said."""


@dataclass(frozen=True)
class Ratio:
    """What was drawn: two sums over all people, exactly."""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        """Their ratio; NaN where there is nothing to divide by."""
        return self.numerator / self.denominator if self.denominator else float("nan")


@dataclass(frozen=True)
class PopulationValue:
    """What a ratio tends to with more and more users of the same plan.

    Parameters
    ----------
    value
        The limit.
    error
        Its standard error: 0 for a closed form.
    how
        ``closed form``, or ``simulation`` of so many users.
    """

    value: float
    error: float
    how: Literal["closed form", "simulation"]


@dataclass(frozen=True, eq=False)
class Truth:
    """What is true of one simulated log, before anything broke on its way. Bots are left out of all ratios.

    Parameters
    ----------
    ratios
        By name of the metric: exact sums over the people's pages. Beside metrics of `judged.online` there is
        ``SatisfiedPages`` (pages with a click that satisfied, which no log shows). ``SatisfiedClicks`` and
        ``SatisfiedPageCTR`` are at 30 s; all hold for a log in which every end of a visit is logged.
    ctr_by_rank, examination
        By rank from 1: clicks, and results that were looked at, by results shown there.
    counts
        ``pages``, ``events``, ``sessions``, ``users`` of people.
    bots, bot_queries, bot_events
        Client ids of bots, and the rows that they caused, as far as these were written.
    broken
        Kind of damage to rows that it hit.
    pages, clicks
        One row each, bots left out: what happened, with what no log shows (``examined``, ``satisfied``, the dwell of
        visits whose end nobody saw).
    relevance
        One row a document of a topic: grade, attractiveness, satisfaction.
    """

    ratios: Mapping[str, Ratio]
    ctr_by_rank: tuple[Ratio, ...]
    examination: tuple[Ratio, ...]
    counts: Mapping[str, int]
    bots: frozenset[str]
    bot_queries: int
    bot_events: int
    broken: Mapping[str, int]
    pages: Table
    clicks: Table
    relevance: Table

    def value(self, name: str) -> float:
        """Give the realised value of a metric."""
        return self.ratios[name].value


@dataclass(frozen=True, eq=False)
class Sums:
    """Numerators and denominators before they are added, with the user of each row."""

    user: Ints
    numerator: Floats
    denominator: Floats

    def ratio(self) -> Ratio:
        """Add them up."""
        return Ratio(float(self.numerator.sum()), float(self.denominator.sum()))


def sums_of(plan: SimulationPlan, pages: Pages, sales: Sales, people: Bools) -> dict[str, Sums]:
    """Count what every ratio is made of; `people` marks the pages that count."""
    user = pages.user[people]
    every = np.ones(len(user))
    opened = pages.clicked[people]
    clicks = opened.sum(axis=1)
    answered = pages.total[people] > 0
    rank = (pages.page[people, None] - 1) * plan.page.size + np.arange(plan.page.size) + 1
    highest = np.where(opened, rank, np.iinfo(np.int64).max).min(axis=1)
    lasting = opened & ((pages.dwell[people] >= SATISFIED_MS) | sales.censored[people])
    front = pages.page[people] == 1
    plain = front & ~pages.filtered[people]
    rescued, empty = pages.rescued[people] & front, ~answered & front
    carts, bought = sales.carts[people], sales.purchases[people]
    columns = {
        "ImpressionCTR": (clicks, pages.shown[people]),
        "PageCTR": (clicks > 0, answered),
        "ClicksPerPage": (clicks, answered),
        "FirstClickRR": (np.where(clicks > 0, 1 / highest, 0.0), answered),
        "SatisfiedClicks": (lasting.sum(axis=1), clicks),
        "SatisfiedPageCTR": (lasting.any(axis=1), answered),
        "SatisfiedPages": (pages.satisfied[people].any(axis=1), answered),
        "Abandonment": (clicks == 0, every),
        "ZeroResults": (~answered & plain, plain),
        "RescuedZeroResults": (rescued, rescued | empty),
        "AddToCart": (carts.any(axis=1), every),
        "CartsPerClick": (carts.sum(axis=1), clicks),
        "Conversion": (bought.any(axis=1), every),
        "Latency": (pages.latency[people] / 1000, every),
    }
    made = {name: Sums(user, _float(top), _float(bottom)) for name, (top, bottom) in columns.items()}
    return made | _next_queries(pages, people) | _sessions(pages, people)


def by_rank(plan: SimulationPlan, pages: Pages, people: Bools) -> tuple[tuple[Ratio, ...], tuple[Ratio, ...]]:
    """Count clicks and examinations by rank."""
    size = plan.page.size
    clicked, examined = list[Ratio](), list[Ratio]()
    for page in range(1, int(pages.page[people].max(initial=1)) + 1):
        here = people & (pages.page == page)
        shown = np.array([(pages.shown[here] > place).sum() for place in range(size)])
        for found, counts in ((clicked, pages.clicked[here].sum(axis=0)), (examined, pages.examined[here].sum(axis=0))):
            found.extend(Ratio(float(top), float(all_)) for top, all_ in zip(counts, shown, strict=True))
    return tuple(clicked), tuple(examined)


def session_keys(pages: Pages) -> Ints:
    """Number the sessions in the order of users and time, from 0; pages must be in that order."""
    new = np.ones(len(pages), dtype=bool)
    new[1:] = (pages.user[1:] != pages.user[:-1]) | (pages.session[1:] != pages.session[:-1])
    return np.cumsum(new) - 1


def _next_queries(pages: Pages, people: Bools) -> dict[str, Sums]:
    """Count first pages, and those that a reformulation follows within five minutes."""
    session = session_keys(pages)
    front = np.flatnonzero(people & (pages.page == 1))
    following = np.append(front[1:], -1)
    same = (following >= 0) & (session[front] == session[following])
    step = np.where(same, pages.step[following - 1], len(STEPS))  # what led to it follows the page before it
    soon = same & (pages.time[following] - pages.time[front] <= SOON_MS)
    user, every = pages.user[front], np.ones(len(front))
    made = {"Reformulation": Sums(user, _float(soon & (step < len(KINDS))), every)}
    for at, kind in enumerate(KINDS):
        made[f"{kind.capitalize()}Reformulation"] = Sums(user, _float(soon & (step == at)), every)
    return made


def _sessions(pages: Pages, people: Bools) -> dict[str, Sums]:
    """Count sessions with a click, queries of sessions, and sessions of users."""
    session = session_keys(pages)
    _, first, inverse = np.unique(session[people], return_index=True, return_inverse=True)
    user = pages.user[people][first]
    clicks = np.bincount(inverse, weights=pages.clicked[people].any(axis=1), minlength=len(first))
    queries = np.bincount(inverse, weights=pages.page[people] == 1, minlength=len(first))
    every = np.ones(len(first))
    begins = np.unique(user, return_index=True)[1]
    one = np.zeros(len(first))
    one[begins] = 1
    return {
        "SessionCTR": Sums(user, _float(clicks > 0), every),
        "QueriesPerSession": Sums(user, _float(queries), every),
        "SessionsPerUser": Sums(user, every, one),
    }


def _float(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)
