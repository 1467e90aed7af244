"""True values of a simulated log, and of the population of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

from judged.online.simulation.clicks import expect
from judged.online.simulation.plan import KINDS
from judged.online.simulation.rows import sample_events
from judged.online.simulation.sessions import STEPS, sample_pages, sample_users, session_numbers
from judged.online.simulation.world import World, first_queries, make_world

if TYPE_CHECKING:
    from judged.online.simulation.plan import SimulationPlan
    from judged.online.simulation.rows import Sales
    from judged.online.simulation.sessions import Pages
    from judged.results.types import Bools, Floats, Ints, Table

_BATCH_SIZE = 2000  # users per simulated batch


def population(plan: SimulationPlan, *, users: int = 20_000, seed: int = 0) -> Mapping[str, PopulationValue]:
    """Compute the population values of a plan's ratios, which confidence intervals should cover.

    A ratio of sums over users converges to the ratio of expectations. If pages are independent tasks
    (`closed_form_obstacles` is empty), expectations are sums over topics, lists, and arms, and an integral over the
    propensity. Gauss-Jacobi quadrature of this integral is exact, since probabilities are polynomials.

    Parameters
    ----------
    plan
        Plan, of which bots and damage are ignored.
    users
        Number of simulated users for ratios without a closed form; 0: omit these ratios.
    seed
        Seed of this simulation.

    Returns
    -------
    Mapping
        Values by name: the names of `Truth.ratios`, and with a closed form ``CTR at rank 1``, ``Examination at rank
        1``, ...

    Examples
    --------
    >>> from judged.online.simulation.plan import SimulationPlan, Visits
    >>> alone = Visits(after_failure=0, after_zero=0, after_success=0)
    >>> ctr = population(SimulationPlan(visits=alone), users=0)["PageCTR"]
    >>> ctr.how, ctr.error, 0 < ctr.value < 1
    ('closed form', 0.0, True)
    """
    world = make_world(plan)
    # Closed forms replace the simulated values, as they have no error.
    closed = {} if closed_form_obstacles(plan) else _closed(plan, world)
    return {**_simulated(plan, world, users, seed), **closed}


def closed_form_obstacles(plan: SimulationPlan) -> tuple[str, ...]:
    """Return the reasons why a page depends on other pages or on time; empty if there is a closed form."""
    visits = plan.visits
    reasons = {
        "reformulations change the queries": max(visits.after_failure, visits.after_zero, visits.after_success) > 0,
        "result pages after the first page begin at another rank": visits.next_page > 0,
        "users who leave differ from users who stay": visits.churn > 0,
        "users who click more see more pages": plan.users.propensity is not None and plan.users.correlation != 0,
        "quantities change over time": bool(plan.drift),
        "result lists change": plan.fresh_days is not None,
        "result lists are interleaved": plan.interleaving is not None,
    }
    return tuple(reason for reason, applies in reasons.items() if applies)


def _closed(plan: SimulationPlan, world: World) -> dict[str, PopulationValue]:
    """Sum over all result lists, weighted by probability, and integrate over the propensity."""
    topics, arms, versions, depth = world.lists.shape
    share, answered = _page_probabilities(plan, world)
    weight = (answered[:, None, :] * np.array([arm.probability for arm in plan.arms])[None, :, None]).ravel()
    topic = np.repeat(np.arange(topics), arms * versions)
    # One row per topic, arm, and version.
    lists = world.lists.reshape(-1, depth)[:, : plan.page.size]
    grade = world.grades[topic[:, None], lists]
    is_shown = np.arange(plan.page.size) < world.result_counts[topic][:, None]
    alpha = np.where(is_shown, np.array(plan.collection.attractiveness)[grade], -1.0)
    satisfying = np.array(plan.collection.satisfaction)[grade]
    page = plan.page
    outcomes = {
        "SatisfiedPages": (1.0, 0.0),
        "AddToCart": (page.cart_satisfied, page.cart_not),
        "Conversion": (page.cart_satisfied * page.purchase, page.cart_not * page.purchase),
    }
    names = ("clicked", "first", "examined")
    totals = {name: np.zeros(page.size) for name in names} | {name: np.zeros(1) for name in outcomes}
    for propensity, share_of_users in zip(*_propensities(plan), strict=True):
        probabilities = expect(plan.browsing, np.where(is_shown, alpha * propensity, -1.0), satisfying, outcomes)
        for name in names:
            totals[name] += share_of_users * (weight @ getattr(probabilities, name))
        for name in outcomes:
            totals[name] += share_of_users * (weight @ probabilities.outcomes[name])
    shown_at_rank, pages = weight @ is_shown, weight.sum()
    clicks = totals["clicked"].sum()
    values = {
        "ImpressionCTR": clicks / shown_at_rank.sum(),
        "PageCTR": totals["first"].sum() / pages,
        "ClicksPerPage": clicks / pages,
        "FirstClickRR": (totals["first"] / np.arange(1, page.size + 1)).sum() / pages,
        "SatisfiedPages": totals["SatisfiedPages"][0] / pages,
        "Abandonment": 1 - totals["first"].sum(),
        "ZeroResults": 1 - share,
        "AddToCart": totals["AddToCart"][0],
        "Conversion": totals["Conversion"][0],
    }
    for i in np.flatnonzero(shown_at_rank > 0):
        values[f"CTR at rank {i + 1}"] = totals["clicked"][i] / shown_at_rank[i]
        values[f"Examination at rank {i + 1}"] = totals["examined"][i] / shown_at_rank[i]
    return {name: PopulationValue(float(value), 0.0, "closed form") for name, value in values.items()}


def _page_probabilities(plan: SimulationPlan, world: World) -> tuple[float, Floats]:
    """Return the share of pages with results, and their probability by topic and version."""
    collection = plan.collection
    topics = np.arange(collection.topics)
    results_probability = np.zeros(world.zero.shape)
    queries = first_queries()
    # Each first query of a task has the same probability.
    for extras, modifier in queries:
        list_version = world.version(*(np.full_like(topics, part) for part in (extras, modifier, 0)))
        for misspelt, share in ((False, 1 - collection.misspelt), (True, collection.misspelt)):
            no_results = world.has_no_results(topics, list_version, np.full(len(topics), misspelt))
            answer_probability = np.where(no_results, collection.rescue, 1.0)
            results_probability[topics, list_version] += world.popularity * share * answer_probability / len(queries)
    return float(results_probability.sum()), results_probability


def _propensities(plan: SimulationPlan) -> tuple[Floats, Floats]:
    """Return quadrature nodes and weights of the propensity, exact for polynomials up to the page size."""
    if plan.users.propensity is None:
        return np.ones(1), np.ones(1)
    alpha, beta = plan.users.propensity
    # The density of Beta(alpha, beta) on [0, 1] is the Jacobi weight on [-1, 1] after x -> 2x - 1.
    nodes, weights = special.roots_jacobi(plan.page.size // 2 + 2, beta - 1, alpha - 1)
    return (nodes + 1) / 2, weights / weights.sum()


def _simulated(plan: SimulationPlan, world: World, users: int, seed: int) -> dict[str, PopulationValue]:
    """Simulate users, and estimate ratios with standard errors by the delta method."""
    sums_by_user: dict[str, list[Floats]] = {}
    for number, begin in enumerate(range(0, users, _BATCH_SIZE)):
        # A separate random stream per batch.
        rng = np.random.default_rng([seed, number, 0x9090])
        sampled_users = sample_users(plan, min(_BATCH_SIZE, users - begin), rng)
        pages = sample_pages(plan, world, sampled_users, rng)
        _, sales = sample_events(plan.page, world, pages, sampled_users.bot[pages.user], rng)
        for name, terms in ratio_terms(plan, pages, sales, ~sampled_users.bot[pages.user]).items():
            columns, size = (terms.numerator, terms.denominator), len(sampled_users.quota)
            by_user = [np.bincount(terms.user, column, size) for column in columns]
            sums_by_user.setdefault(name, []).append(np.array(by_user, dtype=np.float64)[:, ~sampled_users.bot])
    return {name: _estimate(*np.concatenate(parts, axis=1)) for name, parts in sums_by_user.items()}


def _estimate(numerator: Floats, denominator: Floats) -> PopulationValue:
    if not denominator.sum():
        return PopulationValue(float("nan"), float("nan"), "simulation")
    value = numerator.sum() / denominator.sum()
    # Delta method over users: the variance of n - R d, divided by the squared mean of d.
    error = np.std(numerator - value * denominator, ddof=1) / (np.sqrt(len(numerator)) * denominator.mean())
    return PopulationValue(float(value), float(error), "simulation")


SATISFIED_MS, SOON_MS = 30_000, 300_000
"""Default dwell threshold and reformulation gap of the metrics."""


@dataclass(frozen=True)
class Ratio:
    """Exact sums over all people in the sample."""

    numerator: float
    denominator: float

    @property
    def value(self) -> float:
        """Ratio of the sums; NaN if the denominator is 0."""
        return self.numerator / self.denominator if self.denominator else float("nan")


@dataclass(frozen=True)
class PopulationValue:
    """Limit of a ratio for an increasing number of users.

    Parameters
    ----------
    value
        Limit.
    error
        Standard error: 0 for a closed form.
    how
        ``closed form``, or ``simulation``.
    """

    value: float
    error: float
    how: Literal["closed form", "simulation"]


@dataclass(frozen=True, eq=False)
class Truth:
    """True values of a simulated log, without damage. All ratios are without bots.

    Parameters
    ----------
    ratios
        Exact sums by name of the metric, which includes ``SatisfiedPages`` (pages with a satisfied click, which is not
        observable in a log). ``SatisfiedClicks`` and ``SatisfiedPageCTR`` use 30 s. All values assume that every end
        of a visit is logged.
    ctr_by_rank, examination
        Clicks, and examined results, divided by shown results, by rank from 1.
    counts
        Number of ``pages``, ``events``, ``sessions``, ``users`` of people.
    bots, bot_queries, bot_events
        Client IDs of bots, and the number of their written rows.
    damage_counts
        Number of damaged rows by kind of damage.
    pages, clicks
        Tables of pages and clicks without bots, including unobservable columns (``examined``, ``satisfied``, the
        dwell time of visits without a logged end).
    """

    ratios: Mapping[str, Ratio]
    ctr_by_rank: tuple[Ratio, ...]
    examination: tuple[Ratio, ...]
    counts: Mapping[str, int]
    bots: frozenset[str]
    bot_queries: int
    bot_events: int
    damage_counts: Mapping[str, int]
    pages: Table
    clicks: Table

    def value(self, name: str) -> float:
        """Return the true value of a metric in this log."""
        return self.ratios[name].value


@dataclass(frozen=True, eq=False)
class UserRatioTerms:
    """Terms of the numerator and denominator of a ratio, with the user of each row."""

    user: Ints
    numerator: Floats
    denominator: Floats

    def ratio(self) -> Ratio:
        """Return the sums of the terms."""
        return Ratio(float(self.numerator.sum()), float(self.denominator.sum()))


def ratio_terms(plan: SimulationPlan, pages: Pages, sales: Sales, people: Bools) -> dict[str, UserRatioTerms]:
    """Compute the terms of all ratios; `people` marks the pages that count."""
    user = pages.user[people]
    ones = np.ones(len(user))
    opened = pages.clicked[people]
    clicks = opened.sum(axis=1)
    answered = pages.total[people] > 0
    rank = (pages.page[people, None] - 1) * plan.page.size + np.arange(plan.page.size) + 1
    first_click_rank = np.where(opened, rank, np.iinfo(np.int64).max).min(axis=1)
    is_long = opened & ((pages.dwell[people] >= SATISFIED_MS) | sales.censored[people])
    is_first_page = pages.page[people] == 1
    is_unfiltered = is_first_page & ~pages.filtered[people]
    rescued, no_results = pages.rescued[people] & is_first_page, ~answered & is_first_page
    carts, bought = sales.carts[people], sales.purchases[people]
    columns = {
        "ImpressionCTR": (clicks, pages.shown[people]),
        "PageCTR": (clicks > 0, answered),
        "ClicksPerPage": (clicks, answered),
        "FirstClickRR": (np.where(clicks > 0, 1 / first_click_rank, 0.0), answered),
        "SatisfiedClicks": (is_long.sum(axis=1), clicks),
        "SatisfiedPageCTR": (is_long.any(axis=1), answered),
        "SatisfiedPages": (pages.satisfied[people].any(axis=1), answered),
        "Abandonment": (clicks == 0, ones),
        "ZeroResults": (~answered & is_unfiltered, is_unfiltered),
        "RescuedZeroResults": (rescued, rescued | no_results),
        "AddToCart": (carts.any(axis=1), ones),
        "CartsPerClick": (carts.sum(axis=1), clicks),
        "Conversion": (bought.any(axis=1), ones),
        "Latency": (pages.latency[people] / 1000, ones),
    }
    terms = {name: UserRatioTerms(user, *map(_float, pair)) for name, pair in columns.items()}
    return terms | _reformulation_terms(pages, people) | _session_terms(pages, people)


def by_rank(plan: SimulationPlan, pages: Pages, people: Bools) -> tuple[tuple[Ratio, ...], tuple[Ratio, ...]]:
    """Count clicks and examinations by rank."""
    size = plan.page.size
    clicked, examined = list[Ratio](), list[Ratio]()
    for page in range(1, int(pages.page[people].max(initial=1)) + 1):
        rows = people & (pages.page == page)
        n_shown = np.array([(pages.shown[rows] > place).sum() for place in range(size)])
        for ratios, interactions in ((clicked, pages.clicked), (examined, pages.examined)):
            counts = interactions[rows].sum(axis=0)
            ratios.extend(Ratio(float(count), float(total)) for count, total in zip(counts, n_shown, strict=True))
    return tuple(clicked), tuple(examined)


def _reformulation_terms(pages: Pages, people: Bools) -> dict[str, UserRatioTerms]:
    """Return the terms of reformulations within five minutes after a first page."""
    session = session_numbers(pages)
    first_page = np.flatnonzero(people & (pages.page == 1))
    next_page = np.append(first_page[1:], -1)
    same_session = (next_page >= 0) & (session[first_page] == session[next_page])
    # The step that leads to a query is stored with the page before it, which may be a later page of the list.
    step = np.where(same_session, pages.step[next_page - 1], len(STEPS))
    is_soon = same_session & (pages.time[next_page] - pages.time[first_page] <= SOON_MS)
    user, ones = pages.user[first_page], np.ones(len(first_page))
    terms = {"Reformulation": UserRatioTerms(user, _float(is_soon & (step < len(KINDS))), ones)}
    for i, kind in enumerate(KINDS):
        terms[f"{kind.capitalize()}Reformulation"] = UserRatioTerms(user, _float(is_soon & (step == i)), ones)
    return terms


def _session_terms(pages: Pages, people: Bools) -> dict[str, UserRatioTerms]:
    """Return the terms of sessions with a click, queries of sessions, and sessions of users."""
    session = session_numbers(pages)
    _, first, inverse = np.unique(session[people], return_index=True, return_inverse=True)
    user = pages.user[people][first]
    clicks = np.bincount(inverse, weights=pages.clicked[people].any(axis=1), minlength=len(first))
    queries = np.bincount(inverse, weights=pages.page[people] == 1, minlength=len(first))
    ones = np.ones(len(first))
    is_first_of_user = np.zeros(len(first))
    is_first_of_user[np.unique(user, return_index=True)[1]] = 1
    return {
        "SessionCTR": UserRatioTerms(user, _float(clicks > 0), ones),
        "QueriesPerSession": UserRatioTerms(user, _float(queries), ones),
        "SessionsPerUser": UserRatioTerms(user, ones, is_first_of_user),
    }


def _float(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)
