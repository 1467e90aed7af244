"""What a plan's ratios tend to: in closed form where pages do not depend on one another, else by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from judged.online.simulation.clicks import expect
from judged.online.simulation.happenings import happen
from judged.online.simulation.sessions import draw_crowd, walk
from judged.online.simulation.truth import PopulationValue, Sums, sums_of
from judged.online.simulation.world import World, first_forms, make_world

if TYPE_CHECKING:
    from judged._types import Floats, Ints
    from judged.online.simulation.plan import SimulationPlan

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
        version = world.version(_same(extras, topics), _same(modifier, topics), _same(0, topics))
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
    tops: dict[str, list[Floats]] = {}
    bottoms: dict[str, list[Floats]] = {}
    for number, begin in enumerate(range(0, users, _BLOCK)):
        rng = np.random.default_rng([seed, number, 0x9090])
        crowd = draw_crowd(plan, min(_BLOCK, users - begin), rng)
        pages = walk(plan, world, crowd, rng)
        _, sales = happen(plan.page, world, pages, crowd.bot[pages.user], rng)
        for name, sums in sums_of(plan, pages, sales, ~crowd.bot[pages.user]).items():
            top, bottom = _by_user(sums, len(crowd.quota))
            tops.setdefault(name, []).append(top[~crowd.bot])
            bottoms.setdefault(name, []).append(bottom[~crowd.bot])
    return {name: _limit(np.concatenate(tops[name]), np.concatenate(bottoms[name])) for name in tops}


def _by_user(sums: Sums, users: int) -> tuple[Floats, Floats]:
    """Add rows up by user."""
    top, bottom = np.zeros(users), np.zeros(users)
    np.add.at(top, sums.user, sums.numerator)
    np.add.at(bottom, sums.user, sums.denominator)
    return top, bottom


def _limit(top: Floats, bottom: Floats) -> PopulationValue:
    if not bottom.sum():
        return PopulationValue(float("nan"), float("nan"), "simulation")
    value = top.sum() / bottom.sum()
    error = np.std(top - value * bottom, ddof=1) / (np.sqrt(len(top)) * bottom.mean())
    return PopulationValue(float(value), float(error), "simulation")


def _same(value: int, like: Ints) -> Ints:
    return np.full(len(like), value, dtype=np.int64)
