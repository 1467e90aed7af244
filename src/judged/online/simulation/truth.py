"""What is true of a simulated log: of the users drawn, and of the population they are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

from judged.online.simulation.clicks import expect
from judged.online.simulation.plan import KINDS
from judged.online.simulation.rows import happen
from judged.online.simulation.sessions import STEPS, draw_crowd, session_keys, walk
from judged.online.simulation.world import World, first_forms, make_world

if TYPE_CHECKING:
    from judged.online.simulation.plan import SimulationPlan
    from judged.online.simulation.rows import Sales
    from judged.online.simulation.sessions import Pages
    from judged.results.types import Bools, Floats, Ints, Table

_BLOCK = 2000  # users that are simulated together


def population(plan: SimulationPlan, *, users: int = 20_000, seed: int = 0) -> Mapping[str, PopulationValue]:
    """Give the population values of a plan's ratios: what intervals must cover.

    Pages are drawn by user, and a ratio of sums over users tends to the ratio of their expectations. Where every page
    is a task of its own (`why_not_closed` gives no reason), these are sums over topics, lists and arms, and an
    integral over the users' propensity that Gauss and Jacobi's rule gives exactly, since probabilities are
    polynomials in it.

    Parameters
    ----------
    plan
        The plan. Bots and damage are left out.
    users
        So many are simulated for ratios without a closed form; 0: those are not given.
    seed
        Of that simulation.

    Returns
    -------
    Mapping
        Name to value: the names of `Truth.ratios`, and ``CTR at rank 1``, ``Examination at rank 1``, ... where there
        is a closed form.

    Examples
    --------
    >>> from judged.online.simulation.plan import SimulationPlan, Visits
    >>> alone = Visits(after_failure=0, after_zero=0, after_success=0)
    >>> found = population(SimulationPlan(visits=alone), users=0)["PageCTR"]
    >>> found.how, found.error, 0 < found.value < 1
    ('closed form', 0.0, True)
    """
    world = make_world(plan)
    closed = {} if why_not_closed(plan) else _closed(plan, world)
    return {**_simulated(plan, world, users, seed), **closed}


def why_not_closed(plan: SimulationPlan) -> tuple[str, ...]:
    """Say what makes a page depend on others, or on time: nothing where there is a closed form."""
    visits = plan.visits
    reasons = {
        "reformulations change what is asked": max(visits.after_failure, visits.after_zero, visits.after_success) > 0,
        "later pages begin at another rank": visits.next_page > 0,
        "users who leave are not like those who stay": visits.churn > 0,
        "users who click more see more pages": plan.users.propensity is not None and plan.users.together != 0,
        "something drifts": bool(plan.drift),
        "lists change": plan.fresh_days is not None,
        "lists are mixed": plan.interleaving is not None,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def _closed(plan: SimulationPlan, world: World) -> dict[str, PopulationValue]:
    """Add over all result lists, each with its probability, and over the propensity."""
    topics, arms, versions, depth = world.lists.shape
    share, answered = _pages(plan, world)
    weight = (answered[:, None, :] * np.array([one.probability for one in plan.arms])[None, :, None]).ravel()
    topic = np.repeat(np.arange(topics), arms * versions)
    lists = world.lists.reshape(-1, depth)[:, : plan.page.size]
    grade = world.grades[topic[:, None], lists]
    shown = np.arange(plan.page.size) < world.found[topic][:, None]
    alpha = np.where(shown, np.array(plan.collection.attractiveness)[grade], -1.0)
    satisfying = np.array(plan.collection.satisfaction)[grade]
    page = plan.page
    marks = {
        "SatisfiedPages": (1.0, 0.0),
        "AddToCart": (page.cart_satisfied, page.cart_not),
        "Conversion": (page.cart_satisfied * page.purchase, page.cart_not * page.purchase),
    }
    names = ("clicked", "first", "examined")
    totals = {name: np.zeros(page.size) for name in names} | {name: np.zeros(1) for name in marks}
    for value, share_of_users in zip(*_propensities(plan), strict=True):
        found = expect(plan.browsing, np.where(shown, alpha * value, -1.0), satisfying, marks)
        for name in names:
            totals[name] += share_of_users * (weight @ getattr(found, name))
        for name in marks:
            totals[name] += share_of_users * (weight @ found.some[name])
    at_rank, pages = weight @ shown, weight.sum()
    clicks = totals["clicked"].sum()
    values = {
        "ImpressionCTR": clicks / at_rank.sum(),
        "PageCTR": totals["first"].sum() / pages,
        "ClicksPerPage": clicks / pages,
        "FirstClickRR": (totals["first"] / np.arange(1, page.size + 1)).sum() / pages,
        "SatisfiedPages": totals["SatisfiedPages"][0] / pages,
        "Abandonment": 1 - totals["first"].sum(),
        "ZeroResults": 1 - share,
        "AddToCart": totals["AddToCart"][0],
        "Conversion": totals["Conversion"][0],
    }
    for at in np.flatnonzero(at_rank > 0):
        values[f"CTR at rank {at + 1}"] = totals["clicked"][at] / at_rank[at]
        values[f"Examination at rank {at + 1}"] = totals["examined"][at] / at_rank[at]
    return {name: PopulationValue(float(value), 0.0, "closed form") for name, value in values.items()}


def _pages(plan: SimulationPlan, world: World) -> tuple[float, Floats]:
    """Give the share of pages that show something, and by topic and version the probability of such a page."""
    collection = plan.collection
    topics = np.arange(collection.topics)
    answered = np.zeros(world.zero.shape)
    forms = first_forms()
    for extras, modifier in forms:
        version = world.version(*(np.full_like(topics, part) for part in (extras, modifier, 0)))
        for misspelt, share in ((False, 1 - collection.misspelt), (True, collection.misspelt)):
            zero = world.nothing(topics, version, np.full(len(topics), misspelt))
            shows = np.where(zero, collection.rescue, 1.0)
            answered[topics, version] += world.popularity * share * shows / len(forms)
    return float(answered.sum()), answered


def _propensities(plan: SimulationPlan) -> tuple[Floats, Floats]:
    """Give values of the propensity and their weights: exact for polynomials up to the page size, and beyond."""
    if plan.users.propensity is None:
        return np.ones(1), np.ones(1)
    first, second = plan.users.propensity
    nodes, weights = special.roots_jacobi(plan.page.size // 2 + 2, second - 1, first - 1)
    return (nodes + 1) / 2, weights / weights.sum()


def _simulated(plan: SimulationPlan, world: World, users: int, seed: int) -> dict[str, PopulationValue]:
    """Simulate many users, and give ratios with the standard errors of the delta method over users."""
    found: dict[str, list[Floats]] = {}
    for number, begin in enumerate(range(0, users, _BLOCK)):
        rng = np.random.default_rng([seed, number, 0x9090])
        crowd = draw_crowd(plan, min(_BLOCK, users - begin), rng)
        pages = walk(plan, world, crowd, rng)
        _, sales = happen(plan.page, world, pages, crowd.bot[pages.user], rng)
        for name, sums in sums_of(plan, pages, sales, ~crowd.bot[pages.user]).items():
            by_user = [np.bincount(sums.user, part, len(crowd.quota)) for part in (sums.numerator, sums.denominator)]
            found.setdefault(name, []).append(np.array(by_user, dtype=np.float64)[:, ~crowd.bot])
    return {name: _limit(*np.concatenate(parts, axis=1)) for name, parts in found.items()}


def _limit(top: Floats, bottom: Floats) -> PopulationValue:
    if not bottom.sum():
        return PopulationValue(float("nan"), float("nan"), "simulation")
    value = top.sum() / bottom.sum()
    error = np.std(top - value * bottom, ddof=1) / (np.sqrt(len(top)) * bottom.mean())
    return PopulationValue(float(value), float(error), "simulation")


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

    def value(self, name: str) -> float:
        """Give the realized value of a metric."""
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
