"""What happens in sessions, as rows of raw tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.online.simulation import world as damage
from judged.online.simulation.clicks import Rows
from judged.online.simulation.plan import SimulationPlan
from judged.online.simulation.sessions import STEPS, Crowd, Pages, draw_crowd, mixed_lists, session_keys, versions, walk
from judged.online.simulation.world import EXTRAS, MODIFIERS, World, text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged.online.simulation.plan import OnThePage
    from judged.online.simulation.world import Written
    from judged.results.types import Bools, Floats, Ints

NAMES = ("impression", "hover", "click", "heartbeat", "add_to_cart", "purchase", "copy", "page_exit")
_HEARTBEATS = 6


@dataclass(frozen=True, eq=False)
class Happenings(Rows):
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


@dataclass(frozen=True, eq=False)
class Sales:
    """What was put into the cart and bought: each by page and place, and the money of what was bought by page."""

    carts: Bools
    purchases: Bools
    censored: Bools


def last_visits(pages: Pages) -> Bools:
    """Tell by page and place which visits nobody sees the end of: the last thing that is done in a session."""
    places = pages.clicked.shape[1]
    lowest = np.where(pages.clicked.any(axis=1), places - 1 - np.argmax(pages.clicked[:, ::-1], axis=1), -1)
    ends = (pages.step == len(STEPS) - 1) & (lowest >= 0) & (lowest + 1 == pages.last_seen) & pages.examined.any(axis=1)
    return ends[:, None] & (np.arange(places) == lowest[:, None])


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
    together = Happenings.together(made)
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


_TEN_YEARS = 3653 * 86_400_000
_FACETS_LATER = 15  # milliseconds: the front end asks for facets right behind the page
_CROWD, _WALK, _HAPPEN, _BREAK = range(4)  # each stage has a source of chance of its own
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile",
    "examplebot/1.0 (+https://example.org/bot)",
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Everything that happened, as numbers."""

    plan: SimulationPlan
    world: World
    crowd: Crowd
    pages: Pages
    happenings: Happenings
    sales: Sales
    key: tuple[int, ...]

    def broken(self) -> Written:
        """Draw what goes wrong on the way into the log: apart from all else, so that damage changes nothing else."""
        return damage.break_rows(self.plan, self.crowd, self.pages, self.happenings, _chance(self.key, _BREAK))


def draw(plan: SimulationPlan, world: World, users: int, key: tuple[int, ...]) -> Drawn:
    """Draw users, their pages and what they did; `key` seeds it."""
    crowd = draw_crowd(plan, users, _chance(key, _CROWD))
    pages = walk(plan, world, crowd, _chance(key, _WALK))
    happenings, sales = happen(plan.page, world, pages, crowd.bot[pages.user], _chance(key, _HAPPEN))
    return Drawn(plan, world, crowd, pages, happenings, sales, key)


def _chance(key: tuple[int, ...], stage: int) -> np.random.Generator:
    return np.random.default_rng([*key, stage])


@dataclass(frozen=True, eq=False)
class Names:
    """The ids of a log, as Arrow arrays: by user, session, page and document, and the text by page."""

    user: Any
    session: Any
    session_of: Ints
    query: Any
    document: Any
    text: Any


def name(drawn: Drawn) -> Names:
    """Give everything its id."""
    session = session_keys(drawn.pages)
    sessions = int(session[-1]) + 1 if len(session) else 0
    documents = pc.utf8_lpad(pa.array(np.arange(drawn.world.grades.size)).cast(pa.string()), 7, "0")
    return Names(
        user=_ids(drawn.key, 1, len(drawn.crowd.quota)),
        session=_ids(drawn.key, 2, sessions),
        session_of=session,
        query=_long_ids(drawn.key, len(drawn.pages)),
        document=pc.binary_join_element_wise("P", documents, ""),
        text=texts(drawn.pages),
    )


def texts(pages: Pages) -> Any:
    """Write the query of every page."""
    key = ((pages.topic * EXTRAS + pages.extras) * MODIFIERS + pages.modifier) * 2 + pages.misspelt
    different, at = np.unique(key, return_inverse=True)
    parts = np.unravel_index(different, (int(key.max(initial=0)) // (2 * MODIFIERS * EXTRAS) + 1, EXTRAS, MODIFIERS, 2))
    written = [text(*one) for one in zip(*(part.tolist() for part in parts), strict=True)]
    return pa.array(written, pa.string()).take(pa.array(at))


def query_columns(drawn: Drawn, names: Names, written: Written, *, packed: bool = False) -> dict[str, Any]:
    """Give the columns of the rows of queries: those of RAW_QUERY, by name.

    With `packed`, texts that repeat are dictionary arrays: large logs are written from them.
    """
    pages, crowd, plan = drawn.pages, drawn.crowd, drawn.plan
    at, number = written.queries, len(written.queries)
    user = pages.user[at]
    facets = written.query_flags == damage.FACETS
    arms, variants, rankers = crowd.arm[user], [one.name for one in plan.arms], [one.ranker for one in plan.arms]
    chances = np.array([one.probability for one in plan.arms])[arms]
    if plan.interleaving is not None:
        arms, variants, rankers, chances = 0 * arms, ["interleaved"], ["interleaved"], np.ones(number)
    return {
        "query_id": names.query.take(pa.array(at)),
        "session_id": _taken(names.session, packed, names.session_of[at]),
        "user_id": _taken(names.user, packed, user),
        "time_ms": pa.array(plan.start + pages.time[at] + _FACETS_LATER * facets),
        "application": _taken(pa.array(list(plan.applications)), packed, pages.application[at]),
        "query": names.text.take(pa.array(at)),
        "language": _taken(pa.array(list(plan.users.languages)), packed, crowd.language[user]),
        "device": _taken(pa.array(list(plan.users.devices)), packed, crowd.device[user]),
        "filtered": pa.array(pages.filtered[at]),
        "page": pa.array(pages.page[at].astype(np.int32)),
        "size": pa.array(np.where(facets, 0, plan.page.size)),
        "n_total": pa.array(pages.total[at]),
        "hit_ids": _hits(pages, at, facets, names.document),
        "rescued": pa.array(pages.rescued[at]),
        "latency_ms": pa.array(pages.latency[at].astype(np.float64)),
        "experiment": _taken(pa.array([plan.experiment]), packed, np.zeros(number, dtype=np.int64)),
        "variant": _taken(pa.array(variants), packed, arms),
        "assign_p": pa.array(chances),
        "ranker": _taken(pa.array(rankers), packed, arms),
        "user_agent": _taken(pa.array(_AGENTS), packed, _agents(drawn)[user]),
        **({} if plan.interleaving is None else _interleaved(drawn, at)),
    }


def _interleaved(drawn: Drawn, at: Ints) -> dict[str, Any]:
    """Give what is logged of mixed lists."""
    pages, plan, world = drawn.pages.taken(at), drawn.plan, drawn.world
    version = versions(plan, world, pages.extras, pages.modifier, pages.time)
    made = [one.attributes() for one in mixed_lists(plan, world, pages.topic, version, pages.shown, pages.coin)]
    return {name: pa.array([one[name] for one in made]) for name in (made[0] if made else ())}


def event_columns(drawn: Drawn, names: Names, written: Written, *, packed: bool = False) -> dict[str, Any]:
    """Give the columns of the rows of events: those of RAW_EVENT, by name, and ``unreadable``, which marks the times.

    See `query_columns`.
    """
    pages, happenings, plan = drawn.pages, drawn.happenings, drawn.plan
    at = written.events
    page, place = happenings.page[at], happenings.place[at].astype(np.int64)
    user = pages.user[page]
    time = plan.start + happenings.time[at]
    time = time - written.behind[user] * round(1000 * plan.broken.skew)
    time = time + (written.event_flags == damage.FUTURE) * _TEN_YEARS
    nowhere = place < 0
    rank = (pages.page[page] - 1) * plan.page.size + place + 1 - written.zero_based
    document = pages.docs[page, np.maximum(place, 0)]
    value = happenings.value[at]
    return {
        "event_id": _ids(drawn.key, 3, len(happenings)).take(pa.array(at)),
        "query_id": _taken(names.query, packed, page),
        "session_id": _taken(names.session, packed, names.session_of[page]),
        "user_id": _taken(names.user, packed, user),
        "time_ms": pa.array(time),
        "application": _taken(pa.array(list(plan.applications)), packed, pages.application[page]),
        "action": _taken(pa.array(NAMES), packed, happenings.action[at]),
        "object_id": names.document.take(pa.array(document, mask=nowhere)),
        "position": pa.array(rank, mask=nowhere),
        "value": pa.array(value, mask=np.isnan(value)),
        "unreadable": pa.array(written.event_flags == damage.UNREADABLE),
    }


def _hits(pages: Pages, at: Ints, facets: Any, documents: Any) -> Any:
    """Give the ids that were sent, as lists."""
    sent = pages.docs[at]
    there = (sent >= 0) & ~facets[:, None]
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), documents.take(pa.array(sent[there])))


def _agents(drawn: Drawn) -> Ints:
    """Give every user an agent, as an index; the first of the bots say what they are."""
    bots = np.flatnonzero(drawn.crowd.bot)
    which = np.minimum(drawn.crowd.device, 1)
    which[bots[: round(drawn.plan.bots.declared * len(bots))]] = 2
    return which


def _taken(values: Any, packed: bool, at: Any) -> Any:
    """Give the values at places; packed: as a dictionary and its indexes."""
    places = pa.array(at)
    return pa.DictionaryArray.from_arrays(places.cast(pa.int32()), values) if packed else values.take(places)


def _ids(key: tuple[int, ...], kind: int, number: int) -> Any:
    """Give ids that look drawn: 16 hexadecimal digits, all different."""
    return _strings(_hexadecimal(_mixed(key, kind, number)))


def _long_ids(key: tuple[int, ...], number: int) -> Any:
    """Give ids of the length of a UUID, all different."""
    digits = np.concatenate([_hexadecimal(_mixed(key, kind, number)) for kind in (4, 5)], axis=1)
    dash = np.full((number, 1), ord("-"), dtype=np.uint8)
    cuts = (0, 8, 12, 16, 20, 32)
    parts = [part for begin, end in pairwise(cuts) for part in (digits[:, begin:end], dash)]
    return _strings(np.concatenate(parts[:-1], axis=1))


def _mixed(key: tuple[int, ...], kind: int, number: int) -> Any:
    """Mix the numbers from 0 on: one to one, by the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    begin = np.random.SeedSequence([*key, kind]).generate_state(1, np.uint64)[0]
    mixed = (np.arange(number, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + begin
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _hexadecimal(numbers: Any) -> Any:
    """Write numbers in hexadecimal: bytes by number and digit."""
    digits = np.frombuffer(b"".join(b"%02x" % one for one in range(256)), dtype=np.uint8).reshape(256, 2)
    return digits[numbers.astype(">u8").view(np.uint8).reshape(-1, 8)].reshape(-1, 16)


def _strings(letters: Any) -> Any:
    """Make an Arrow array of texts of one length."""
    number, length = letters.shape
    offsets = pa.py_buffer(np.arange(0, (number + 1) * length, length, dtype=np.int32)[: number + 1])
    return pa.Array.from_buffers(pa.string(), number, [None, offsets, pa.py_buffer(np.ascontiguousarray(letters))])
