"""What the front end logs of pages: events in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.online.simulation.sessions import STEPS, Pages

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged._types import Bools, Floats, Ints
    from judged.online.simulation.plan import OnThePage
    from judged.online.simulation.world import World

NAMES = ("impression", "hover", "click", "heartbeat", "add_to_cart", "purchase", "copy", "page_exit")
_HEARTBEATS = 6


@dataclass(frozen=True, eq=False)
class Happenings:
    """Events.

    Parameters
    ----------
    page
        Index of the page.
    action
        Index into NAMES.
    time
        Milliseconds from the start of the log.
    place
        Place on the page from 0; -1: none.
    value
        Money, NaN where there is none.
    """

    page: Ints
    action: NDArray[np.int8]
    time: Ints
    place: NDArray[np.int16]
    value: Floats

    def __len__(self) -> int:
        return len(self.page)

    def taken(self, rows: Any) -> Happenings:
        """Give some of them."""
        return Happenings(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})


@dataclass(frozen=True, eq=False)
class Sales:
    """What was put into the cart and bought: each by page and place, and the money of what was bought by page."""

    carts: Bools
    purchases: Bools
    censored: Bools


def last_visits(pages: Pages) -> Bools:
    """Tell by page and place which visits nobody sees the end of: the last thing that is done in a session."""
    lowest = _lowest(pages.clicked)
    ends = (pages.step == len(STEPS) - 1) & (lowest >= 0) & (lowest + 1 == pages.last_seen) & pages.examined.any(axis=1)
    return ends[:, None] & (np.arange(pages.clicked.shape[1]) == lowest[:, None])


def happen(
    plan: OnThePage, world: World, pages: Pages, bot: Bools, rng: np.random.Generator
) -> tuple[Happenings, Sales]:
    """Draw the events of pages; `bot` says by page whether a program asked for it."""
    shape = pages.clicked.shape
    chance = np.where(pages.satisfied, plan.cart_satisfied, plan.cart_not)
    carts = pages.clicked & (_of_people(bot, shape, rng) < chance)
    bought = carts & (_of_people(bot, shape, rng) < plan.purchase)
    hovered = pages.examined & (_of_people(bot, shape, rng) < plan.hover)
    copied = ~pages.clicked.any(axis=1) & (pages.shown > 0) & (_of_people(bot, shape[:1], rng) < plan.copy)
    censored = last_visits(pages)
    exits = ~censored.any(axis=1) & (_of_people(bot, shape[:1], rng) < plan.exits)

    begin = (pages.time + pages.latency)[:, None] + np.cumsum(pages.look + pages.dwell, axis=1)
    end = begin[:, -1]
    begin = begin - pages.look - pages.dwell
    click = begin + pages.look
    last = pages.clicked & (np.cumsum(pages.clicked[:, ::-1], axis=1)[:, ::-1] == 1)
    seen = np.arange(shape[1]) < np.where(bot, 0, pages.last_seen)[:, None]
    prices = world.prices.ravel()
    made = [
        _at(seen, begin, "impression"),
        _at(hovered, begin + pages.look // 2, "hover"),
        _at(pages.clicked, click, "click"),
        *_heartbeats(plan, pages, click),
        _at(carts, click + pages.dwell // 2, "add_to_cart", prices[pages.docs]),
        _at(bought, click + (4 * pages.dwell) // 5, "purchase", prices[pages.docs]),
        _on(copied, end, "copy"),
        _at(last & exits[:, None], click + pages.dwell, "page_exit"),  # of what was opened: the user is back
        _on(exits & ~pages.clicked.any(axis=1), end, "page_exit"),
    ]
    together = Happenings(
        **{one.name: np.concatenate([getattr(each, one.name) for each in made]) for one in fields(Happenings)}
    )
    order = np.argsort(together.time, kind="stable")
    return together.taken(order), Sales(carts, bought, censored)


def _of_people(bot: Bools, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw numbers from 0 to 1 for the pages of people, which come first; those of bots get 2, and nothing happens."""
    drawn = np.full(shape, 2.0)
    people = int((~bot).sum())
    drawn[:people] = rng.random((people, *shape[1:]))
    return drawn


def _at(where: Bools, time: Ints, name: str, value: Any = None) -> Happenings:
    page, place = np.nonzero(where)
    return _made(page, time[page, place], place, name, None if value is None else value[page, place])


def _on(where: Bools, time: Ints, name: str) -> Happenings:
    page = np.flatnonzero(where)
    return _made(page, time[page], np.full(len(page), -1), name)


def _heartbeats(plan: OnThePage, pages: Pages, click: Ints) -> list[Happenings]:
    """Give a sign of life every so many seconds of a visit."""
    if plan.heartbeat is None:
        return []
    every = round(plan.heartbeat * 1000)
    page, place = np.nonzero(pages.clicked & pages.examined)
    many = np.minimum((pages.dwell[page, place] - 1) // every, _HEARTBEATS)
    of = np.repeat(np.arange(len(page)), many)
    number = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many) + 1
    return [_made(page[of], click[page[of], place[of]] + number * every, place[of], "heartbeat")]


def _made(page: Ints, time: Ints, place: Ints, name: str, value: Any = None) -> Happenings:
    return Happenings(
        page=page,
        action=np.full(len(page), NAMES.index(name), dtype=np.int8),
        time=time,
        place=place.astype(np.int16),
        value=np.full(len(page), np.nan) if value is None else value.astype(np.float64),
    )


def _lowest(clicked: Bools) -> Ints:
    """Give the place of the lowest click of each page, -1 without one."""
    return np.where(clicked.any(axis=1), clicked.shape[1] - 1 - np.argmax(clicked[:, ::-1], axis=1), -1)
