"""Users walk from page to page: the next page depends on what the last one gave them.

All users take their n-th page together, so that a log of a million pages is a few hundred rounds over arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from judged.online.mixed_lists import Interleaved, interleave
from judged.online.simulation.clicks import Looks, Rows, browse
from judged.online.simulation.plan import KINDS, Interleaving, SimulationPlan
from judged.online.simulation.world import DEPARTMENTS, EXTRAS, MODIFIERS, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from judged.results.types import Bools, Floats, Ints

DAY = 86_400_000
_NEW_SESSION, _AGAIN, _NEXT_PAGE = -1, len(KINDS), len(KINDS) + 1
STEPS = (*KINDS, "new task", "next page", "end of session")
"""What follows a page; `Pages.step` indexes it."""


@dataclass(frozen=True, eq=False)
class Crowd(Rows):
    """The users of a log.

    Parameters
    ----------
    quota
        Pages that each wants to see.
    propensity
        Factor on the attractiveness of whatever they look at.
    arm, device, language
        Index into the plan's.
    arrival
        Milliseconds from the start of the log.
    bot
        It is a program.
    """

    quota: Ints
    propensity: Floats
    arm: Ints
    device: Ints
    language: Ints
    arrival: Ints
    bot: Bools


@dataclass(frozen=True, eq=False)
class Pages(Rows):
    """Pages in the order of users and time; the first axis of every field is the page, the second its place from 0.

    Parameters
    ----------
    user, session
        Who, and which of their sessions, from 0.
    topic, extras, modifier, misspelt
        The text: see `words.text`.
    coin
        What the mixing of lists hangs on; 0 where they are not mixed.
    page, application, filtered
        Number of the page in its list, from 1; index into the plan's applications; a filter was set.
    time, latency
        Milliseconds from the start of the log; milliseconds.
    zero, rescued
        The text finds nothing; another query was answered instead.
    total, shown
        Results found, of the query that was answered, and on the page.
    docs
        Documents shown, -1 beyond the last.
    examined, clicked, satisfied
        What the user did.
    look, dwell
        Milliseconds on the result, and of the visit, 0 without one.
    last_seen
        Results that came into view: all down to the last that was looked at.
    step, gap
        What follows, of `STEPS`, and milliseconds between leaving this page and the next.
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


def draw_crowd(plan: SimulationPlan, people: int, rng: np.random.Generator) -> Crowd:
    """Draw users: people first, and then bots, so that bots change nothing about people."""
    parts = ((people, False), (round(plan.bots.rate * people), True))
    return Crowd.together(_drawn_users(plan, number, bot, rng) for number, bot in parts)


def _drawn_users(plan: SimulationPlan, number: int, bot: bool, rng: np.random.Generator) -> Crowd:
    asked = plan.users
    first, second = rng.standard_normal((2, number))
    second = asked.together * first + np.sqrt(1 - asked.together**2) * second
    quota = np.minimum(asked.least * special.ndtr(-first) ** (-1 / asked.tail), asked.most).astype(np.int64)
    propensity = np.ones(number)
    if asked.propensity is not None:
        propensity = special.betaincinv(*asked.propensity, special.ndtr(second))
    return Crowd(
        quota=np.full(number, plan.bots.pages) if bot else quota,
        propensity=propensity,
        arm=_drawn(rng, [one.probability for one in plan.arms], number),
        device=_drawn(rng, list(asked.devices.values()), number),
        language=_drawn(rng, list(asked.languages.values()), number),
        arrival=(rng.random(number) * plan.days * DAY).astype(np.int64),
        bot=np.full(number, bot),
    )


def walk(plan: SimulationPlan, world: World, crowd: Crowd, rng: np.random.Generator) -> Pages:
    """Draw all pages of people, and then those of bots."""
    people = np.flatnonzero(~crowd.bot)
    walker = _Walker(plan, world, crowd, rng, np.cumsum(world.popularity))
    state = walker.begin(people, crowd.quota[people], crowd.arrival[people])
    parts = [walker.empty()]
    while len(state.user):
        pages, state = walker.round(state)
        parts.append(pages)
    parts.append(walker.bots(np.flatnonzero(crowd.bot)))
    pages = Pages.together(parts)
    return pages.taken(np.lexsort((pages.time, pages.user)))


@dataclass(frozen=True, eq=False)
class _State(Rows):
    """Where each user who is still there stands before a page."""

    user: Ints
    left: Ints
    time: Ints
    session: Ints
    happy: Bools
    page: Ints
    topic: Ints
    extras: Ints
    modifier: Ints
    misspelt: Bools

    def asked(self) -> dict[str, Any]:
        """Give what a page has of it."""
        return {name: column for name, column in vars(self).items() if name not in {"left", "happy"}}


@dataclass(frozen=True, eq=False)
class _Walker:
    plan: SimulationPlan
    world: World
    crowd: Crowd
    rng: np.random.Generator
    cumulative: Floats

    def tasks(self, number: int) -> dict[str, Any]:
        """Draw what users begin to look for."""
        drawn = np.searchsorted(self.cumulative, self.rng.random(number), side="right")
        return {
            "topic": np.minimum(drawn, len(self.cumulative) - 1),
            "extras": self.rng.integers(1, EXTRAS - 1, number),
            "modifier": self.rng.integers(0, MODIFIERS, number),
            "misspelt": self.rng.random(number) < self.plan.collection.misspelt,
        }

    def begin(self, user: Ints, left: Ints, time: Ints) -> _State:
        """Let users begin at their first task."""
        none = np.zeros(len(user), dtype=np.int64)
        return _State(user, left, time, session=none, happy=none > 0, page=none + 1, **self.tasks(len(user)))

    def round(self, state: _State) -> tuple[Pages, _State]:
        """Show every user a page, and find out what they do next."""
        seen = self._seen(state)
        number = len(state.user)
        happy = state.happy | seen["satisfied"].any(axis=1)
        task = self.tasks(number)
        step = self._steps(state, seen, task)
        step[state.left <= 1] = _NEW_SESSION
        median, sigma = self.plan.visits.think
        gap = np.minimum(1000 * np.exp(self.rng.normal(np.log(median), sigma, number)), 120_000)
        pause = 1_860_000 + self.rng.exponential(self.plan.visits.hours_between, number) * 3_600_000
        new = step == _NEW_SESSION
        gap = np.where(new, pause, gap).astype(np.int64)
        end = state.time + seen["latency"] + (seen["look"].sum(axis=1) + seen["dwell"].sum(axis=1))
        gone = new & ~happy & (self.rng.random(number) < self.plan.visits.churn)
        fresh = new | (step == _AGAIN)
        form = self._reformulated(state, step)
        following = _State(
            user=state.user,
            left=np.where(gone, 0, state.left - 1),
            time=end + gap,
            session=state.session + new,
            happy=happy & ~new,
            page=np.where(step == _NEXT_PAGE, state.page + 1, 1),
            topic=np.where(fresh, task["topic"], state.topic),
            extras=np.where(fresh, task["extras"], form[0]),
            modifier=np.where(fresh, task["modifier"], form[1]),
            misspelt=np.where(fresh, task["misspelt"], form[2]),
        )
        pages = Pages(**state.asked(), **seen, step=np.where(new, len(STEPS) - 1, step), gap=gap)
        return pages, following.taken(following.left > 0)

    def empty(self) -> Pages:
        """Give no pages, with the right shapes."""
        none = np.zeros(0, dtype=np.int64)
        return self.round(self.begin(none, none, none))[0]

    def bots(self, users: Ints) -> Pages:
        """Give the pages of bots: one long session each, at a steady pace, with clicks that take no time."""
        asked = self.plan.bots
        user = np.repeat(users, asked.pages)
        every = round(60_000 / asked.a_minute)
        time = self.crowd.arrival[user] + np.tile(np.arange(asked.pages), len(users)) * every
        state = self.begin(user, user, time)
        seen = self._seen(state)
        there = seen["docs"] >= 0
        clicked = there & (self.rng.random(there.shape) < asked.clicks)
        seen |= {"examined": there & False, "clicked": clicked, "satisfied": there & False}
        seen |= {"look": np.zeros(there.shape, np.int32), "dwell": np.zeros(there.shape, np.int32)}
        seen["last_seen"] = np.where(clicked.any(axis=1), there.shape[1] - np.argmax(clicked[:, ::-1], axis=1), 0)
        seen["latency"] = np.minimum(seen["latency"], every // 2)
        last = np.tile(np.arange(asked.pages) == asked.pages - 1, len(users))
        step = np.where(last, len(STEPS) - 1, _AGAIN)
        return Pages(**state.asked(), **seen, step=step, gap=np.full(len(user), every))

    def _seen(self, state: _State) -> dict[str, Any]:
        """Show pages and draw what is done on them."""
        plan, world, rng, size = self.plan, self.world, self.rng, self.plan.page.size
        number, topic = len(state.user), state.topic
        day = state.time / DAY
        version = versions(plan, world, state.extras, state.modifier, state.time)
        zero = world.nothing(topic, version, state.misspelt)
        rescued = zero & (rng.random(number) < plan.collection.rescue)
        first = (state.page - 1) * size
        lists = world.lists[topic, self.crowd.arm[state.user], version]
        places = np.minimum(first[:, None] + np.arange(size), plan.depth - 1)
        within = np.take_along_axis(lists, places, axis=1)
        shown = np.clip(world.found[topic] - first, 0, size) * (~zero | rescued)
        coin = np.zeros(number, dtype=np.int64)
        if plan.interleaving is not None:
            coin = rng.integers(1, 1 << 62, number)
            for row, mixed in enumerate(mixed_lists(plan, world, topic, version, shown, coin)):
                within[row, : len(mixed.documents)] = list(map(int, mixed.documents))
        there = np.arange(size) < shown[:, None]
        grade = world.grades[topic[:, None], within]
        factor = self.crowd.propensity[state.user] * self._drifted("attractiveness", day)
        attractive = np.where(
            there, np.minimum(np.array(plan.collection.attractiveness)[grade] * factor[:, None], 1.0), -1.0
        )
        satisfying = np.array(plan.collection.satisfaction)[grade]
        looks = self._browsed(attractive, satisfying, state.page)
        in_view = np.where(looks.examined.any(axis=1), size - np.argmax(looks.examined[:, ::-1], axis=1), 0)
        look = self._seconds(plan.page.look, there.shape) * (np.arange(size) < in_view[:, None])
        dwell = np.where(
            looks.satisfied,
            self._seconds(plan.page.dwell_satisfied, there.shape),
            self._seconds(plan.page.dwell_not, there.shape),
        )
        median, sigma = plan.page.latency
        latency = np.exp(rng.normal(np.log(median), sigma, number)) * self._drifted("latency", day)
        return {
            "coin": coin,
            "application": _drawn(rng, list(plan.applications.values()), number),
            "filtered": rng.random(number) < plan.page.filtered,
            "latency": np.maximum(latency, 1).astype(np.int64),
            "zero": zero,
            "rescued": rescued,
            "total": np.where(zero & ~rescued, 0, world.found[topic]),
            "shown": shown,
            "docs": np.where(there, topic[:, None] * plan.collection.documents + within, -1).astype(np.int32),
            **vars(looks),
            "look": look.astype(np.int32),
            "dwell": (np.clip(dwell, 1000, 1000 * plan.page.longest) * looks.clicked).astype(np.int32),
            "last_seen": in_view,
        }

    def _browsed(self, attractive: Floats, satisfying: Floats, page: Ints) -> Looks:
        """Browse first pages and later ones: examination depends on the rank in the whole list."""
        size = self.plan.page.size
        if self.plan.visits.next_page == 0 or not len(page) or page.max() == 1:
            return browse(self.plan.browsing, attractive, satisfying, 1, self.rng)
        parts = [
            (page == number, (number - 1) * size + 1)
            for number in range(1, int(page.max()) + 1)
            if (page == number).any()
        ]
        done = [browse(self.plan.browsing, attractive[rows], satisfying[rows], rank, self.rng) for rows, rank in parts]
        order = np.argsort(np.concatenate([np.flatnonzero(rows) for rows, _ in parts]))
        return Looks.together(done).taken(order)

    def _steps(self, state: _State, seen: dict[str, Any], task: dict[str, Any]) -> Ints:
        """Draw what follows each page, if the user has not had enough."""
        visits, number = self.plan.visits, len(state.user)
        satisfied = seen["satisfied"].any(axis=1)
        empty = seen["shown"] == 0
        chance = np.where(satisfied, visits.after_success, np.where(empty, visits.after_zero, visits.after_failure))
        chance = chance * self._drifted("reformulation", state.time / DAY)
        kind = _drawn(self.rng, [visits.kinds.get(one, 0.0) for one in KINDS], number)
        kind = np.where((kind == 1) & (state.extras == EXTRAS - 1), 2, kind)
        kind = np.where((kind == 2) & (state.extras == 0), 1, kind)
        other = (task["topic"] % DEPARTMENTS) != (state.topic % DEPARTMENTS)
        again = other & (self.rng.random(number) < visits.again)
        step = np.where(again, _AGAIN, _NEW_SESSION)
        more = (state.page < visits.pages) & (seen["total"] > state.page * self.plan.page.size)
        turned = more & ~seen["clicked"].any(axis=1) & ~empty & (self.rng.random(number) < visits.next_page)
        step = np.where(turned, _NEXT_PAGE, step)
        return np.where(self.rng.random(number) < chance, kind, step)

    def _reformulated(self, state: _State, step: Ints) -> tuple[Ints, Ints, Bools]:
        """Give the next text of the same topic: extras, modifier, misspelt."""
        jump = self.rng.integers(1, MODIFIERS, len(step))
        return (
            state.extras + (step == 1) - (step == 2),
            np.where(step == 3, (state.modifier + jump) % MODIFIERS, state.modifier),
            state.misspelt ^ (step == 0),
        )

    def _seconds(self, median_sigma: tuple[float, float], shape: tuple[int, ...]) -> Floats:
        """Draw milliseconds from a log-normal distribution of seconds."""
        median, sigma = median_sigma
        return 1000 * median * np.exp(sigma * self.rng.standard_normal(shape))

    def _drifted(self, what: str, day: Floats) -> Floats:
        factor = np.ones(len(day))
        for one in self.plan.drift:
            if one.what == what:
                factor = factor * np.where(day >= one.day, one.factor, 1.0)
        return factor


def _drawn(rng: np.random.Generator, shares: Sequence[float], number: int) -> Ints:
    """Draw indexes by their shares."""
    edges = np.cumsum(shares)
    return np.minimum(np.searchsorted(edges, rng.random(number), side="right"), len(shares) - 1)


def versions(plan: SimulationPlan, world: World, extras: Ints, modifier: Ints, time: Ints) -> Ints:
    """Give the version of the lists of each page."""
    epoch = np.zeros_like(time) if plan.fresh_days is None else (time / DAY // plan.fresh_days).astype(np.int64)
    return world.version(extras, modifier, epoch)


def mixed_lists(
    plan: SimulationPlan, world: World, topic: Ints, version: Ints, shown: Ints, coin: Ints
) -> Iterator[Interleaved]:
    """Mix the lists of both arms for each page; documents are numbered in their topic."""
    asked = plan.interleaving or Interleaving()
    names = plan.arms[0].name, plan.arms[1].name
    for of, version_of, many, key in zip(topic, version, shown, coin, strict=True):
        first, second = (list(map(str, world.lists[of, arm, version_of, :many])) for arm in (0, 1))
        yield interleave(first, second, key=(str(key),), names=names, method=asked.method, length=asked.length,
                         size=plan.page.size)  # fmt: skip


def session_keys(pages: Pages) -> Ints:
    """Number the sessions in the order of users and time, from 0; pages must be in that order."""
    new = np.ones(len(pages), dtype=bool)
    new[1:] = (pages.user[1:] != pages.user[:-1]) | (pages.session[1:] != pages.session[:-1])
    return np.cumsum(new) - 1
