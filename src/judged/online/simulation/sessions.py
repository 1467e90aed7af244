"""Sampling of users and their pages: each page depends on the interactions with the previous page.

The n-th pages of all users are sampled together, so that a million pages take a few hundred rounds of array operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from judged.online.mixed_lists import Interleaved, interleave
from judged.online.simulation.clicks import ArrayTable, PageInteractions, browse
from judged.online.simulation.plan import KINDS, SimulatedInterleaving, SimulationPlan
from judged.online.simulation.world import DEPARTMENTS, EXTRAS, MODIFIERS, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from judged.results.types import Bools, Floats, Ints

DAY = 86_400_000
_NEW_SESSION, _AGAIN, _NEXT_PAGE = -1, len(KINDS), len(KINDS) + 1
STEPS = (*KINDS, "new task", "next page", "end of session")
"""Steps after a page, indexed by `Pages.step`."""


@dataclass(frozen=True, eq=False)
class UserTable(ArrayTable):
    """Table of users.

    Parameters
    ----------
    quota
        Number of pages that the user requests.
    propensity
        Factor on the attractiveness of all results.
    arm, device, language
        Index in the plan.
    arrival
        Milliseconds from the start of the log.
    bot
        Whether the user is a bot.
    """

    quota: Ints
    propensity: Floats
    arm: Ints
    device: Ints
    language: Ints
    arrival: Ints
    bot: Bools


@dataclass(frozen=True, eq=False)
class Pages(ArrayTable):
    """Table of pages, ordered by user and time. The first axis of all fields is the page, the second the place from 0.

    Parameters
    ----------
    user, session
        User, and number of the session of the user from 0.
    topic, extras, modifier, misspelt
        Query: see `query_text`.
    coin
        Seed of the interleaving; 0 without interleaving.
    page, application, filtered
        Number of the page in its list, from 1; index of the application; whether a filter is set.
    time, latency
        Milliseconds from the start of the log; milliseconds.
    zero, rescued
        Whether the query has zero results; whether a corrected query was answered.
    total, shown
        Number of results of the answered query, and on the page.
    docs
        Shown documents, -1 after the last.
    examined, clicked, satisfied
        Interactions of the user.
    look, dwell
        Milliseconds of examining the result, and of the visit, 0 without a visit.
    last_seen
        Number of results in view, down to the last examined one.
    step, gap
        Next step (index in `STEPS`), and milliseconds between leaving this page and the next page.
    """

    user: Ints
    session: Ints
    topic: Ints
    extras: Ints
    modifier: Ints
    misspelt: Bools
    coin: Ints
    page: Ints
    application: Ints
    filtered: Bools
    time: Ints
    latency: Ints
    zero: Bools
    rescued: Bools
    total: Ints
    shown: Ints
    docs: NDArray[np.int32]
    examined: Bools
    clicked: Bools
    satisfied: Bools
    look: NDArray[np.int32]
    dwell: NDArray[np.int32]
    last_seen: Ints
    step: Ints
    gap: Ints

    def __len__(self) -> int:
        return len(self.user)


def sample_users(plan: SimulationPlan, people: int, rng: np.random.Generator) -> UserTable:
    """Sample users: first people, then bots, so that bots do not change the sample of people."""
    parts = ((people, False), (round(plan.bots.rate * people), True))
    return UserTable.concatenate(_sample_group(plan, number, bot, rng) for number, bot in parts)


def _sample_group(plan: SimulationPlan, number: int, bot: bool, rng: np.random.Generator) -> UserTable:
    users = plan.users
    first, second = rng.standard_normal((2, number))
    second = users.correlation * first + np.sqrt(1 - users.correlation**2) * second
    # A Gaussian copula: `first` determines the number of pages, `second` the propensity.
    quota = np.minimum(users.least * special.ndtr(-first) ** (-1 / users.tail), users.most).astype(np.int64)
    propensity = np.ones(number)
    if users.propensity is not None:
        # Inverse transform sampling of the beta distribution.
        propensity = special.betaincinv(*users.propensity, special.ndtr(second))
    return UserTable(
        quota=np.full(number, plan.bots.pages) if bot else quota,
        propensity=propensity,
        arm=_sample_indices(rng, [arm.probability for arm in plan.arms], number),
        device=_sample_indices(rng, list(users.devices.values()), number),
        language=_sample_indices(rng, list(users.languages.values()), number),
        arrival=(rng.random(number) * plan.days * DAY).astype(np.int64),
        bot=np.full(number, bot),
    )


def sample_pages(plan: SimulationPlan, world: World, users: UserTable, rng: np.random.Generator) -> Pages:
    """Sample all pages of people, then those of bots."""
    people = np.flatnonzero(~users.bot)
    sampler = _PageSampler(plan, world, users, rng, np.cumsum(world.popularity))
    state = sampler.begin(people, users.quota[people], users.arrival[people])
    parts = [sampler.empty()]
    while len(state.user):
        pages, state = sampler.round(state)
        parts.append(pages)
    parts.append(sampler.bots(np.flatnonzero(users.bot)))
    pages = Pages.concatenate(parts)
    # `session_numbers` requires the order of users and time.
    return pages.take(np.lexsort((pages.time, pages.user)))


@dataclass(frozen=True, eq=False)
class _State(ArrayTable):
    """State of the active users before a page."""

    user: Ints
    remaining: Ints
    time: Ints
    session: Ints
    satisfied: Bools
    page: Ints
    topic: Ints
    extras: Ints
    modifier: Ints
    misspelt: Bools

    def page_fields(self) -> dict[str, Any]:
        """Return the fields that are part of a page."""
        return {name: column for name, column in vars(self).items() if name not in {"remaining", "satisfied"}}


@dataclass(frozen=True, eq=False)
class _PageSampler:
    plan: SimulationPlan
    world: World
    users: UserTable
    rng: np.random.Generator
    cumulative: Floats

    def tasks(self, number: int) -> dict[str, Any]:
        """Sample new tasks."""
        topics = np.searchsorted(self.cumulative, self.rng.random(number), side="right")
        return {
            "topic": np.minimum(topics, len(self.cumulative) - 1),
            "extras": self.rng.integers(1, EXTRAS - 1, number),
            "modifier": self.rng.integers(0, MODIFIERS, number),
            "misspelt": self.rng.random(number) < self.plan.collection.misspelt,
        }

    def begin(self, user: Ints, remaining: Ints, time: Ints) -> _State:
        """Return the state of users at their first task."""
        zeros = np.zeros(len(user), dtype=np.int64)
        start = {"session": zeros, "satisfied": zeros > 0, "page": zeros + 1}
        return _State(user, remaining, time, **start, **self.tasks(len(user)))

    def round(self, state: _State) -> tuple[Pages, _State]:
        """Sample a page of each user, and the next step."""
        outcome = self._sample_page(state)
        number = len(state.user)
        satisfied = state.satisfied | outcome["satisfied"].any(axis=1)
        task = self.tasks(number)
        step = self._steps(state, outcome, task)
        # The last page of the quota ends the session.
        step[state.remaining <= 1] = _NEW_SESSION
        median, sigma = self.plan.visits.think
        gap = np.minimum(1000 * np.exp(self.rng.normal(np.log(median), sigma, number)), 120_000)
        # 31 minutes, so that a session gap of 30 minutes separates all sessions.
        pause = 1_860_000 + self.rng.exponential(self.plan.visits.hours_between, number) * 3_600_000
        is_new_session = step == _NEW_SESSION
        gap = np.where(is_new_session, pause, gap).astype(np.int64)
        end = state.time + outcome["latency"] + (outcome["look"].sum(axis=1) + outcome["dwell"].sum(axis=1))
        churned = is_new_session & ~satisfied & (self.rng.random(number) < self.plan.visits.churn)
        is_new_task = is_new_session | (step == _AGAIN)
        query = self._reformulate(state, step)
        next_state = _State(
            user=state.user,
            remaining=np.where(churned, 0, state.remaining - 1),
            time=end + gap,
            session=state.session + is_new_session,
            satisfied=satisfied & ~is_new_session,
            page=np.where(step == _NEXT_PAGE, state.page + 1, 1),
            topic=np.where(is_new_task, task["topic"], state.topic),
            extras=np.where(is_new_task, task["extras"], query[0]),
            modifier=np.where(is_new_task, task["modifier"], query[1]),
            misspelt=np.where(is_new_task, task["misspelt"], query[2]),
        )
        pages = Pages(**state.page_fields(), **outcome, step=np.where(is_new_session, len(STEPS) - 1, step), gap=gap)
        return pages, next_state.take(next_state.remaining > 0)

    def empty(self) -> Pages:
        """Return a table of no pages, with the correct shapes."""
        empty = np.zeros(0, dtype=np.int64)
        return self.round(self.begin(empty, empty, empty))[0]

    def bots(self, users: Ints) -> Pages:
        """Return the pages of bots: one session each with a constant pace and instant clicks."""
        plan = self.plan.bots
        user = np.repeat(users, plan.pages)
        interval_ms = round(60_000 / plan.a_minute)
        time = self.users.arrival[user] + np.tile(np.arange(plan.pages), len(users)) * interval_ms
        state = self.begin(user, user, time)
        outcome = self._sample_page(state)
        has_result = outcome["docs"] >= 0
        clicked = has_result & (self.rng.random(has_result.shape) < plan.clicks)
        outcome |= {"examined": has_result & False, "clicked": clicked, "satisfied": has_result & False}
        outcome |= {"look": np.zeros(has_result.shape, np.int32), "dwell": np.zeros(has_result.shape, np.int32)}
        last = has_result.shape[1] - np.argmax(clicked[:, ::-1], axis=1)
        outcome["last_seen"] = np.where(clicked.any(axis=1), last, 0)
        outcome["latency"] = np.minimum(outcome["latency"], interval_ms // 2)
        last = np.tile(np.arange(plan.pages) == plan.pages - 1, len(users))
        step = np.where(last, len(STEPS) - 1, _AGAIN)
        return Pages(**state.page_fields(), **outcome, step=step, gap=np.full(len(user), interval_ms))

    def _sample_page(self, state: _State) -> dict[str, Any]:
        """Sample a page of each user, with the interactions."""
        plan, world, rng, size = self.plan, self.world, self.rng, self.plan.page.size
        number, topic = len(state.user), state.topic
        day = state.time / DAY
        version = versions(plan, world, state.extras, state.modifier, state.time)
        zero = world.has_no_results(topic, version, state.misspelt)
        rescued = zero & (rng.random(number) < plan.collection.rescue)
        first = (state.page - 1) * size
        lists = world.lists[topic, self.users.arm[state.user], version]
        indices = np.minimum(first[:, None] + np.arange(size), plan.depth - 1)
        within = np.take_along_axis(lists, indices, axis=1)
        n_shown = np.clip(world.result_counts[topic] - first, 0, size) * (~zero | rescued)
        coin = np.zeros(number, dtype=np.int64)
        if plan.interleaving is not None:
            coin = rng.integers(1, 1 << 62, number)
            for row, mixed in enumerate(interleaved_lists(plan, world, topic, version, n_shown, coin)):
                within[row, : len(mixed.documents)] = list(map(int, mixed.documents))
        has_result = np.arange(size) < n_shown[:, None]
        grade = world.grades[topic[:, None], within]
        factor = self.users.propensity[state.user] * self._drift_factor("attractiveness", day)
        alpha = np.minimum(np.array(plan.collection.attractiveness)[grade] * factor[:, None], 1.0)
        attractive = np.where(has_result, alpha, -1.0)
        satisfying = np.array(plan.collection.satisfaction)[grade]
        interactions = self._browse(attractive, satisfying, state.page)
        examined = interactions.examined
        in_view = np.where(examined.any(axis=1), size - np.argmax(examined[:, ::-1], axis=1), 0)
        look = self._durations(plan.page.look, has_result.shape) * (np.arange(size) < in_view[:, None])
        dwell = np.where(
            interactions.satisfied,
            self._durations(plan.page.dwell_satisfied, has_result.shape),
            self._durations(plan.page.dwell_not, has_result.shape),
        )
        median, sigma = plan.page.latency
        latency = np.exp(rng.normal(np.log(median), sigma, number)) * self._drift_factor("latency", day)
        return {
            "coin": coin,
            "application": _sample_indices(rng, list(plan.applications.values()), number),
            "filtered": rng.random(number) < plan.page.filtered,
            "latency": np.maximum(latency, 1).astype(np.int64),
            "zero": zero,
            "rescued": rescued,
            "total": np.where(zero & ~rescued, 0, world.result_counts[topic]),
            "shown": n_shown,
            "docs": np.where(has_result, topic[:, None] * plan.collection.documents + within, -1).astype(np.int32),
            **vars(interactions),
            "look": look.astype(np.int32),
            "dwell": (np.clip(dwell, 1000, 1000 * plan.page.longest) * interactions.clicked).astype(np.int32),
            "last_seen": in_view,
        }

    def _browse(self, attractive: Floats, satisfying: Floats, page: Ints) -> PageInteractions:
        """Sample the interactions, where examination depends on the rank in the list."""
        size = self.plan.page.size
        if self.plan.visits.next_page == 0 or not len(page) or page.max() == 1:
            return browse(self.plan.browsing, attractive, satisfying, 1, self.rng)
        numbers = np.unique(page).tolist()
        parts = [(page == number, (number - 1) * size + 1) for number in numbers]
        model, rng = self.plan.browsing, self.rng
        interactions = [browse(model, attractive[rows], satisfying[rows], rank, rng) for rows, rank in parts]
        # Restore the order of the pages after grouping them by page number.
        order = np.argsort(np.concatenate([np.flatnonzero(rows) for rows, _ in parts]))
        return PageInteractions.concatenate(interactions).take(order)

    def _steps(self, state: _State, outcome: dict[str, Any], task: dict[str, Any]) -> Ints:
        """Sample the next step of each user, ignoring the quota."""
        visits, number = self.plan.visits, len(state.user)
        satisfied = outcome["satisfied"].any(axis=1)
        has_no_results = outcome["shown"] == 0
        reformulation_probability = np.where(
            satisfied, visits.after_success, np.where(has_no_results, visits.after_zero, visits.after_failure)
        )
        reformulation_probability = reformulation_probability * self._drift_factor("reformulation", state.time / DAY)
        kind = _sample_indices(self.rng, [visits.kinds.get(name, 0.0) for name in KINDS], number)
        # A query with the maximum number of words cannot be specialized, and one with the minimum not generalized.
        kind = np.where((kind == 1) & (state.extras == EXTRAS - 1), 2, kind)
        kind = np.where((kind == 2) & (state.extras == 0), 1, kind)
        is_other_department = (task["topic"] % DEPARTMENTS) != (state.topic % DEPARTMENTS)
        again = is_other_department & (self.rng.random(number) < visits.again)
        step = np.where(again, _AGAIN, _NEW_SESSION)
        has_next_page = (state.page < visits.pages) & (outcome["total"] > state.page * self.plan.page.size)
        turns = has_next_page & ~outcome["clicked"].any(axis=1) & ~has_no_results
        turns_page = turns & (self.rng.random(number) < visits.next_page)
        step = np.where(turns_page, _NEXT_PAGE, step)
        return np.where(self.rng.random(number) < reformulation_probability, kind, step)

    def _reformulate(self, state: _State, step: Ints) -> tuple[Ints, Ints, Bools]:
        """Return the next query of the same topic: extras, modifier, misspelt."""
        offset = self.rng.integers(1, MODIFIERS, len(step))
        return (
            state.extras + (step == 1) - (step == 2),
            np.where(step == 3, (state.modifier + offset) % MODIFIERS, state.modifier),
            state.misspelt ^ (step == 0),
        )

    def _durations(self, median_sigma: tuple[float, float], shape: tuple[int, ...]) -> Floats:
        """Sample milliseconds from a log-normal distribution of seconds."""
        median, sigma = median_sigma
        return 1000 * median * np.exp(sigma * self.rng.standard_normal(shape))

    def _drift_factor(self, quantity: str, day: Floats) -> Floats:
        factor = np.ones(len(day))
        for drift in self.plan.drift:
            if drift.quantity == quantity:
                factor = factor * np.where(day >= drift.day, drift.factor, 1.0)
        return factor


def _sample_indices(rng: np.random.Generator, shares: Sequence[float], number: int) -> Ints:
    """Sample indices with probabilities `shares`."""
    edges = np.cumsum(shares)
    return np.minimum(np.searchsorted(edges, rng.random(number), side="right"), len(shares) - 1)


def versions(plan: SimulationPlan, world: World, extras: Ints, modifier: Ints, time: Ints) -> Ints:
    """Return the version of the result list of each page."""
    epoch = np.zeros_like(time) if plan.fresh_days is None else (time / DAY // plan.fresh_days).astype(np.int64)
    return world.version(extras, modifier, epoch)


def interleaved_lists(
    plan: SimulationPlan, world: World, topic: Ints, version: Ints, sizes: Ints, coin: Ints
) -> Iterator[Interleaved]:
    """Interleave the lists of both arms for each page; documents are numbered within their topic."""
    options = plan.interleaving or SimulatedInterleaving()
    names = plan.arms[0].name, plan.arms[1].name
    for page_topic, page_version, size, key in zip(topic, version, sizes, coin, strict=True):
        first, second = (list(map(str, world.lists[page_topic, arm, page_version, :size])) for arm in (0, 1))
        yield interleave(first, second, key=(str(key),), names=names, method=options.method, length=options.length,
                         size=plan.page.size)  # fmt: skip


def session_numbers(pages: Pages) -> Ints:
    """Number the sessions of pages that are ordered by user and time, from 0."""
    is_first = np.ones(len(pages), dtype=bool)
    is_first[1:] = (pages.user[1:] != pages.user[:-1]) | (pages.session[1:] != pages.session[:-1])
    return np.cumsum(is_first) - 1
