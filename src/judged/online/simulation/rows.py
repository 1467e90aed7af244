"""Sampled events of sessions, and the columns of the raw tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.online.simulation import sessions
from judged.online.simulation import world as written_log
from judged.online.simulation.clicks import ArrayTable
from judged.online.simulation.plan import SimulationPlan
from judged.online.simulation.sessions import Pages, UserTable
from judged.online.simulation.world import EXTRAS, MODIFIERS, World, query_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from judged.online.simulation.plan import PageBehavior
    from judged.online.simulation.world import WrittenRows
    from judged.results.types import Bools, Floats, Ints

ACTION_NAMES = ("impression", "hover", "click", "heartbeat", "add_to_cart", "purchase", "copy", "page_exit")
_MAX_HEARTBEATS = 6


@dataclass(frozen=True, eq=False)
class EventTable(ArrayTable):
    """Table of events.

    Parameters
    ----------
    page
        Row of the page.
    action
        Index in ACTION_NAMES.
    time
        Milliseconds from the start of the log.
    place
        Index of the result on the page, from 0; -1: none.
    value
        Amount of money; NaN if not applicable.
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
    """Whether a result was added to the cart, bought, and has an unlogged end of visit, by page and place."""

    carts: Bools
    purchases: Bools
    censored: Bools


def last_visits(pages: Pages) -> Bools:
    """Return by page and place whether the end of a visit is not observed: the last action of a session."""
    places = pages.clicked.shape[1]
    # Row of the lowest click, -1 without a click.
    lowest = np.where(pages.clicked.any(axis=1), places - 1 - np.argmax(pages.clicked[:, ::-1], axis=1), -1)
    is_end = pages.step == len(sessions.STEPS) - 1
    ends = is_end & (lowest >= 0) & (lowest + 1 == pages.last_seen) & pages.examined.any(axis=1)
    return ends[:, None] & (np.arange(places) == lowest[:, None])


def sample_events(
    plan: PageBehavior, world: World, pages: Pages, bot: Bools, rng: np.random.Generator
) -> tuple[EventTable, Sales]:
    """Sample the events of pages; `bot` marks the pages of bots."""
    shape = pages.clicked.shape
    cart_probability = np.where(pages.satisfied, plan.cart_satisfied, plan.cart_not)
    carts = pages.clicked & (_people_uniform(bot, shape, rng) < cart_probability)
    bought = carts & (_people_uniform(bot, shape, rng) < plan.purchase)
    hovered = pages.examined & (_people_uniform(bot, shape, rng) < plan.hover)
    copied = ~pages.clicked.any(axis=1) & (pages.shown > 0) & (_people_uniform(bot, shape[:1], rng) < plan.copy)
    censored = last_visits(pages)
    exits = ~censored.any(axis=1) & (_people_uniform(bot, shape[:1], rng) < plan.exits)

    # A user examines results from the top, each for `look` ms, and visits clicked ones for `dwell` ms.
    begin = (pages.time + pages.latency)[:, None] + np.cumsum(pages.look + pages.dwell, axis=1)
    end = begin[:, -1]
    begin = begin - pages.look - pages.dwell
    click = begin + pages.look
    last_click = pages.clicked & (np.cumsum(pages.clicked[:, ::-1], axis=1)[:, ::-1] == 1)
    in_view = np.arange(shape[1]) < np.where(bot, 0, pages.last_seen)[:, None]
    prices = world.prices.ravel()
    parts = [
        _result_events(in_view, begin, "impression"),
        _result_events(hovered, begin + pages.look // 2, "hover"),
        _result_events(pages.clicked, click, "click"),
        *_heartbeats(plan, pages, click),
        _result_events(carts, click + pages.dwell // 2, "add_to_cart", prices[pages.docs]),
        _result_events(bought, click + (4 * pages.dwell) // 5, "purchase", prices[pages.docs]),
        _page_events(copied, end, "copy"),
        _result_events(last_click & exits[:, None], click + pages.dwell, "page_exit"),  # return from the opened result
        _page_events(exits & ~pages.clicked.any(axis=1), end, "page_exit"),
    ]
    events = EventTable.concatenate(parts)
    order = np.argsort(events.time, kind="stable")
    return events.take(order), Sales(carts, bought, censored)


def _people_uniform(bot: Bools, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Sample uniform numbers for the pages of people, which come first; pages of bots get 2, so no event occurs."""
    # The draws of people must not depend on the number of bots.
    numbers = np.full(shape, 2.0)
    people = int((~bot).sum())
    numbers[:people] = rng.random((people, *shape[1:]))
    return numbers


def _result_events(mask: Bools, time: Ints, name: str, value: Any = None) -> EventTable:
    page, place = np.nonzero(mask)
    return _event_table(page, time[page, place], place, name, None if value is None else value[page, place])


def _page_events(mask: Bools, time: Ints, name: str) -> EventTable:
    page = np.flatnonzero(mask)
    return _event_table(page, time[page], np.full(len(page), -1), name)


def _heartbeats(plan: PageBehavior, pages: Pages, click: Ints) -> list[EventTable]:
    if plan.heartbeat is None:
        return []
    interval_ms = round(plan.heartbeat * 1000)
    page, place = np.nonzero(pages.clicked & pages.examined)
    counts = np.minimum((pages.dwell[page, place] - 1) // interval_ms, _MAX_HEARTBEATS)
    visit = np.repeat(np.arange(len(page)), counts)
    number = np.arange(len(visit)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    page, place = page[visit], place[visit]
    return [_event_table(page, click[page, place] + number * interval_ms, place, "heartbeat")]


def _event_table(page: Ints, time: Ints, place: Ints, name: str, value: Any = None) -> EventTable:
    return EventTable(
        page=page,
        action=np.full(len(page), ACTION_NAMES.index(name), dtype=np.int8),
        time=time,
        place=place.astype(np.int16),
        value=np.full(len(page), np.nan) if value is None else value.astype(np.float64),
    )


_TEN_YEARS = 3653 * 86_400_000
_FACET_DELAY = 15  # milliseconds between a page and its facet request
_USERS, _PAGES, _EVENTS, _DAMAGE = range(4)  # Each stage has its own random stream, so changes do not affect others.
_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile",
    "examplebot/1.0 (+https://example.org/bot)",
)


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled users, pages, and events."""

    plan: SimulationPlan
    world: World
    users: UserTable
    pages: Pages
    events: EventTable
    sales: Sales
    key: tuple[int, ...]

    def written_rows(self) -> WrittenRows:
        """Sample the damage of the written log, from a separate random stream."""
        return written_log.sample_damage(self.plan, self.users, self.pages, self.events, _generator(self.key, _DAMAGE))


def sample_log(plan: SimulationPlan, world: World, people: int, key: tuple[int, ...]) -> Sample:
    """Sample users, their pages, and events; `key` is the seed."""
    users = sessions.sample_users(plan, people, _generator(key, _USERS))
    pages = sessions.sample_pages(plan, world, users, _generator(key, _PAGES))
    events, sales = sample_events(plan.page, world, pages, users.bot[pages.user], _generator(key, _EVENTS))
    return Sample(plan, world, users, pages, events, sales, key)


def _generator(key: tuple[int, ...], stage: int) -> np.random.Generator:
    return np.random.default_rng([*key, stage])


@dataclass(frozen=True, eq=False)
class LogIds:
    """IDs of users, sessions, pages, and documents, and query texts by page, as Arrow arrays."""

    user: Any
    session: Any
    session_of: Ints
    query: Any
    document: Any
    text: Any


def assign_ids(sample: Sample) -> LogIds:
    """Assign IDs."""
    session = sessions.session_numbers(sample.pages)
    count = int(session[-1]) + 1 if len(session) else 0
    documents = pc.utf8_lpad(pa.array(np.arange(sample.world.grades.size)).cast(pa.string()), 7, "0")
    return LogIds(
        user=_ids(sample.key, 1, len(sample.users.quota)),
        session=_ids(sample.key, 2, count),
        session_of=session,
        query=_long_ids(sample.key, len(sample.pages)),
        document=pc.binary_join_element_wise("P", documents, ""),
        text=query_texts(sample.pages),
    )


def query_texts(pages: Pages) -> Any:
    """Return the query text of each page."""
    key = ((pages.topic * EXTRAS + pages.extras) * MODIFIERS + pages.modifier) * 2 + pages.misspelt
    unique_keys, index = np.unique(key, return_inverse=True)
    topics = int(key.max(initial=0)) // (2 * MODIFIERS * EXTRAS) + 1
    parts = np.unravel_index(unique_keys, (topics, EXTRAS, MODIFIERS, 2))
    unique_texts = [query_text(*key) for key in zip(*(part.tolist() for part in parts), strict=True)]
    return pa.array(unique_texts, pa.string()).take(pa.array(index))


def query_columns(sample: Sample, ids: LogIds, written: WrittenRows, *, packed: bool = False) -> dict[str, Any]:
    """Return the columns of RAW_QUERY by name.

    With `packed`, repeated texts are dictionary arrays, as needed for large logs.
    """
    pages, users, plan = sample.pages, sample.users, sample.plan
    rows, count = written.queries, len(written.queries)
    user = pages.user[rows]
    facets = written.query_flags == written_log.FACETS
    arms, variants, rankers = users.arm[user], [arm.name for arm in plan.arms], [arm.ranker for arm in plan.arms]
    probabilities = np.array([arm.probability for arm in plan.arms])[arms]
    if plan.interleaving is not None:
        arms, variants, rankers, probabilities = 0 * arms, ["interleaved"], ["interleaved"], np.ones(count)
    return {
        "query_id": ids.query.take(pa.array(rows)),
        "session_id": _select(ids.session, packed, ids.session_of[rows]),
        "user_id": _select(ids.user, packed, user),
        "time_ms": pa.array(plan.start + pages.time[rows] + _FACET_DELAY * facets),
        "application": _select(pa.array(list(plan.applications)), packed, pages.application[rows]),
        "query": ids.text.take(pa.array(rows)),
        "language": _select(pa.array(list(plan.users.languages)), packed, users.language[user]),
        "device": _select(pa.array(list(plan.users.devices)), packed, users.device[user]),
        "filtered": pa.array(pages.filtered[rows]),
        "page": pa.array(pages.page[rows].astype(np.int32)),
        "size": pa.array(np.where(facets, 0, plan.page.size)),
        "n_total": pa.array(pages.total[rows]),
        "hit_ids": _hit_ids(pages, rows, facets, ids.document),
        "rescued": pa.array(pages.rescued[rows]),
        "latency_ms": pa.array(pages.latency[rows].astype(np.float64)),
        "experiment": _select(pa.array([plan.experiment]), packed, np.zeros(count, dtype=np.int64)),
        "variant": _select(pa.array(variants), packed, arms),
        "assign_p": pa.array(probabilities),
        "ranker": _select(pa.array(rankers), packed, arms),
        "user_agent": _select(pa.array(_AGENTS), packed, _user_agents(sample)[user]),
        **({} if plan.interleaving is None else _interleaving_columns(sample, rows)),
    }


def _interleaving_columns(sample: Sample, rows: Ints) -> dict[str, Any]:
    """Return the logged attributes of interleaved lists."""
    pages, plan, world = sample.pages.take(rows), sample.plan, sample.world
    version = sessions.versions(plan, world, pages.extras, pages.modifier, pages.time)
    lists = sessions.interleaved_lists(plan, world, pages.topic, version, pages.shown, pages.coin)
    attributes = [interleaved.attributes() for interleaved in lists]
    return {name: pa.array([row[name] for row in attributes]) for name in (attributes[0] if attributes else ())}


def event_columns(sample: Sample, ids: LogIds, written: WrittenRows, *, packed: bool = False) -> dict[str, Any]:
    """Return the columns of RAW_EVENT by name, and ``unreadable``, which marks invalid times.

    See `query_columns`.
    """
    pages, events, plan = sample.pages, sample.events, sample.plan
    rows = written.events
    page, place = events.page[rows], events.place[rows].astype(np.int64)
    user = pages.user[page]
    time = plan.start + events.time[rows]
    time = time - written.behind[user] * round(1000 * plan.damage.skew)
    time = time + (written.event_flags == written_log.FUTURE) * _TEN_YEARS
    no_place = place < 0
    rank = (pages.page[page] - 1) * plan.page.size + place + 1 - written.zero_based
    document = pages.docs[page, np.maximum(place, 0)]
    value = events.value[rows]
    return {
        "event_id": _ids(sample.key, 3, len(events)).take(pa.array(rows)),
        "query_id": _select(ids.query, packed, page),
        "session_id": _select(ids.session, packed, ids.session_of[page]),
        "user_id": _select(ids.user, packed, user),
        "time_ms": pa.array(time),
        "application": _select(pa.array(list(plan.applications)), packed, pages.application[page]),
        "action": _select(pa.array(ACTION_NAMES), packed, events.action[rows]),
        "object_id": ids.document.take(pa.array(document, mask=no_place)),
        "position": pa.array(rank, mask=no_place),
        "value": pa.array(value, mask=np.isnan(value)),
        "unreadable": pa.array(written.event_flags == written_log.UNREADABLE),
    }


def _hit_ids(pages: Pages, rows: Ints, facets: Any, document_ids: Any) -> Any:
    """Return the lists of returned document IDs."""
    documents = pages.docs[rows]
    is_returned = (documents >= 0) & ~facets[:, None]
    offsets = np.concatenate([[0], np.cumsum(is_returned.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), document_ids.take(pa.array(documents[is_returned])))


def _user_agents(sample: Sample) -> Ints:
    """Return the index of the user agent of each user; declared bots come first among the bots."""
    bots = np.flatnonzero(sample.users.bot)
    agent = np.minimum(sample.users.device, 1)
    agent[bots[: round(sample.plan.bots.declared * len(bots))]] = 2
    return agent


def _select(values: Any, packed: bool, rows: Any) -> Any:
    """Select values by row; packed: as a dictionary array."""
    indices = pa.array(rows)
    return pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), values) if packed else values.take(indices)


def _ids(key: tuple[int, ...], kind: int, number: int) -> Any:
    """Return unique IDs of 16 hexadecimal digits that look random."""
    return _strings(_hexadecimal(_random_numbers(key, kind, number)))


def _long_ids(key: tuple[int, ...], number: int) -> Any:
    """Return unique IDs in the format of UUIDs."""
    digits = np.concatenate([_hexadecimal(_random_numbers(key, kind, number)) for kind in (4, 5)], axis=1)
    dash = np.full((number, 1), ord("-"), dtype=np.uint8)
    cuts = (0, 8, 12, 16, 20, 32)
    parts = [part for begin, end in pairwise(cuts) for part in (digits[:, begin:end], dash)]
    return _strings(np.concatenate(parts[:-1], axis=1))


def _random_numbers(key: tuple[int, ...], kind: int, number: int) -> Any:
    """Map the numbers from 0 to unique 64-bit numbers by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    # The three constants are those of the SplitMix64 reference implementation.
    begin = np.random.SeedSequence([*key, kind]).generate_state(1, np.uint64)[0]
    numbers = (np.arange(number, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + begin
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _hexadecimal(numbers: Any) -> Any:
    """Return the hexadecimal digits of numbers, as bytes by number and digit."""
    digits = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint8).reshape(256, 2)
    return digits[numbers.astype(">u8").view(np.uint8).reshape(-1, 8)].reshape(-1, 16)


def _strings(letters: Any) -> Any:
    """Convert an array of characters to an Arrow array of strings of equal length."""
    number, length = letters.shape
    offsets = pa.py_buffer(np.arange(0, (number + 1) * length, length, dtype=np.int32)[: number + 1])
    return pa.Array.from_buffers(pa.string(), number, [None, offsets, pa.py_buffer(np.ascontiguousarray(letters))])
