"""The collection that users search: words, objects, needs, and what is relevant."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from judged.data.compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from judged.online.simulation.plan import Broken, SimulationPlan
    from judged.online.simulation.rows import Happenings
    from judged.online.simulation.sessions import Crowd, Pages
    from judged.results.types import Bools, Floats, Ints, Table


MODIFIERS = 4
EXTRAS = 4
"""At most so many extra words, less one: a text has three to six words."""

_DEPARTMENTS: tuple[tuple[str, str, str], ...] = (
    (
        "sofa table wardrobe bookcase bench cabinet",
        "wooden leather velvet rattan marble walnut",
        "assembled bedroom narrow corner storage hallway",
    ),
    (
        "laptop monitor keyboard headphones router printer",
        "wireless bluetooth ergonomic portable gaming refurbished",
        "charger warranty backlit compact quiet office",
    ),
    (
        "trousers jacket sweater dress sneakers raincoat",
        "cotton woollen striped waterproof denim quilted",
        "ladies children hooded summer oversize petite",
    ),
    (
        "saucepan kettle toaster blender casserole grater",
        "stainless ceramic copper electric enamel induction",
        "dishwasher family lidded measuring breakfast camping",
    ),
    (
        "tent bicycle canoe backpack lantern hammock",
        "folding ultralight inflatable insulated alpine mountaineering",
        "expedition weekend repair beginners rental autumn",
    ),
    (
        "novel atlas dictionary cookbook biography encyclopedia",
        "illustrated annotated translated hardcover abridged historical",
        "edition signed pocket audio review collected",
    ),
)
DEPARTMENTS = len(_DEPARTMENTS)
_VOCABULARY = tuple(tuple(tuple(words.split()) for words in one) for one in _DEPARTMENTS)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def brand(number: int) -> str:
    """Give a name of three or more syllables, another for every number.

    >>> brand(0), brand(7)
    ('bababa', 'babadi')
    """
    syllables: list[str] = []
    while number or len(syllables) < 3:
        number, vowel = divmod(number, len(_VOWELS))
        number, consonant = divmod(number, len(_CONSONANTS))
        syllables.append(_CONSONANTS[consonant] + _VOWELS[vowel])
    return "".join(reversed(syllables))


@lru_cache(maxsize=1 << 18)
def text(topic: int, extras: int, modifier: int, misspelt: int) -> str:
    """Write a query; `misspelt` is 1 or 0.

    >>> text(0, 0, 0, 0), text(0, 2, 1, 0), text(0, 0, 0, 1)
    ('matopo wooden sofa', 'matopo leather sofa assembled bedroom', 'mattopo wooden sofa')
    """
    department, number = topic % DEPARTMENTS, topic // DEPARTMENTS
    nouns, modifiers, more = _VOCABULARY[department]
    name = brand(_spread(topic))
    if misspelt:
        name = f"{name[:3]}{name[2]}{name[3:]}"
    first = modifiers[(number + modifier) % len(modifiers)]
    added = (more[(number + at) % len(more)] for at in range(extras))
    return " ".join((name, first, nouns[number % len(nouns)], *added))


def _spread(topic: int) -> int:
    """Give neighboring topics brands that are far apart: one to one below 70^3, the number of three syllables."""
    many = (len(_VOWELS) * len(_CONSONANTS)) ** 3
    return (topic * 190_027 + 151_103) % many if topic < many else topic


_BLOCK = 4096  # topics that are drawn together: 50,000 topics need no more memory than these


@dataclass(frozen=True, eq=False)
class World:
    """The collection in numbers. Documents are numbered ``topic * documents + number``.

    Parameters
    ----------
    popularity
        Share of tasks, by topic; it adds up to 1.
    grades
        By topic and document.
    prices
        By topic and document.
    lists
        Documents of the topic, best first, by topic, arm, version and rank.
    found
        How many results a topic has.
    zero
        By topic and version: the text, written well, finds nothing.
    zero_misspelt
        By topic: so do its misspelt texts.
    """

    popularity: Floats
    grades: NDArray[np.int8]
    prices: NDArray[np.float32]
    lists: NDArray[np.int16]
    found: Ints
    zero: Bools
    zero_misspelt: Bools

    def version(self, extras: Ints, modifier: Ints, epoch: Ints) -> Ints:
        """Give the version of the lists that a text gets."""
        return (extras * MODIFIERS + modifier + epoch) % self.zero.shape[1]

    def nothing(self, topic: Ints, version: Ints, misspelt: Bools) -> Bools:
        """Tell whether texts find nothing."""
        return np.where(misspelt, self.zero_misspelt[topic], self.zero[topic, version])


def make_world(plan: SimulationPlan) -> World:
    """Draw the collection."""
    asked = plan.collection
    rng = np.random.default_rng([asked.seed, 0x0C011EC7])
    popularity = np.arange(1, asked.topics + 1) ** -asked.zipf
    shape = (asked.topics, asked.documents)
    grades = rng.choice(len(asked.grades), size=shape, p=asked.grades).astype(np.int8)
    prices = np.round(np.exp(rng.normal(np.log(plan.page.price[0]), plan.page.price[1], shape)), 2)
    found = rng.integers(asked.documents, 20 * asked.documents, asked.topics)
    short = rng.random(asked.topics) < asked.short
    found[short] = rng.integers(1, max(plan.page.size, 2), asked.topics)[short]
    zero = rng.random((asked.topics, asked.versions)) < asked.zero
    return World(
        popularity=popularity / popularity.sum(),
        grades=grades,
        prices=prices.astype(np.float32),
        lists=_lists(plan, grades, rng),
        found=found,
        zero=zero,
        zero_misspelt=rng.random(asked.topics) < asked.zero_misspelt,
    )


def _lists(plan: SimulationPlan, grades: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int16]:
    """Order each topic's documents by grade and noise, for every arm and version."""
    topics, documents = grades.shape
    lists = np.empty((topics, len(plan.arms), plan.collection.versions, plan.depth), dtype=np.int16)
    spread = np.array([arm.noise for arm in plan.arms])[:, None, None]
    for begin in range(0, topics, _BLOCK):
        some = grades[begin : begin + _BLOCK, None, None, :]
        noise = rng.standard_normal((len(some), len(plan.arms), plan.collection.versions, documents))
        order = np.argsort(-(some + spread * noise), axis=-1, kind="stable")
        lists[begin : begin + _BLOCK] = order[..., : plan.depth]
    return lists


def first_forms() -> tuple[tuple[int, int], ...]:
    """Give the extras and the modifiers that a task can begin with: all are as likely."""
    return tuple((extras, modifier) for extras in range(1, EXTRAS - 1) for modifier in range(MODIFIERS))


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


_OF_QUERIES = {"duplicated_queries": COPY, "facet_requests": FACETS, "lost_queries": _LOST}
_OF_EVENTS = {"duplicated_events": COPY, "lost_events": _LOST, "future_events": FUTURE, "unreadable_times": UNREADABLE}


def break_rows(
    plan: SimulationPlan, crowd: Crowd, pages: Pages, happenings: Happenings, rng: np.random.Generator
) -> Written:
    """Draw what goes wrong."""
    asked = plan.broken
    page_fate, event_fate = _fates(rng, len(pages), asked, _OF_QUERIES), _fates(rng, len(happenings), asked, _OF_EVENTS)
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
    hit = {name: page_fate == fate for name, fate in _OF_QUERIES.items()}
    hit |= {name: event_fate == fate for name, fate in _OF_EVENTS.items()}
    hit |= {"orphaned_events": page_fate[of_event] == _LOST, "zero_based_ranks": zero_based, "skewed_events": skewed}
    hit["events_before_their_query"] = early & (event_flags <= COPY)
    counts = {name: int(rows.sum()) for name, rows in hit.items()} | {"truncated_lines": int(asked.truncated)}
    return Written(in_order[queries], query_flags, events, event_flags, behind, zero_based, counts)


def _fates(rng: np.random.Generator, rows: int, asked: Broken, fates: Mapping[str, int]) -> NDArray[np.int8]:
    """Draw one fate a row, so that no row suffers two."""
    at = np.searchsorted(np.cumsum([getattr(asked, name) for name in fates]), rng.random(rows), side="right")
    return np.array([*fates.values(), SOUND], dtype=np.int8)[at]


def _rows(fates: NDArray[np.int8]) -> tuple[Ints, NDArray[np.int8]]:
    """Give the rows that are written, in order: nothing of what is lost, two of what has a copy or facets."""
    double = (fates == COPY) | (fates == FACETS)
    rows = np.repeat(np.arange(len(fates)), np.where(fates == _LOST, 0, np.where(double, 2, 1)))
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    return rows, np.where(double[rows] & first, SOUND, fates[rows]).astype(np.int8)


Form: TypeAlias = Literal["parquet", "ndjson", "bulk", "csv"]
_UNREADABLE = ("yesterday", "31/02/2026 25:61", "")
_STAMP = pa.timestamp("ms", "UTC")


def query_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_QUERY as UBI's queries."""
    attributes = {
        **_named(columns, "page page_size=size result_count=n_total rescued filtered language device latency_ms"),
        "experiment": _struct(_named(columns, "name=experiment variant probability=assign_p")),
        **_named(columns, "ranker user_agent"),
        **{name: column for name, column in columns.items() if name.startswith(("interleaving", "propensit"))},
    }
    known = _named(columns, "query_id client_id=user_id session_id application user_query=query")
    hits = {"query_response_hit_ids": columns["hit_ids"], "query_attributes": _struct(attributes)}
    return pa.table({**known, "timestamp": columns["time_ms"].cast(_STAMP), **hits})


def event_table(columns: Mapping[str, Any]) -> Table:
    """Shape columns of RAW_EVENT as UBI's events; times are texts where some are none."""
    position, product = (_struct(_named(columns, one)) for one in ("ordinal=position", "object_id"))
    parts = {"position": position, "object": product, "value": columns["value"]}
    attributes = _struct(parts, mask=pc.is_null(columns["position"]))
    known = _named(columns, "event_id action_name=action query_id session_id client_id=user_id application")
    return pa.table({**known, "timestamp": _times(columns), "event_attributes": attributes})


def _named(columns: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Give columns by UBI's names, each with ours behind it where it is another: ``client_id=user_id``."""
    pairs = (name.partition("=") for name in names.split())
    return {name: columns[ours or name] for name, _, ours in pairs}


def write(folder: Path, queries: Table, events: Table, form: Form, *, truncated: bool) -> tuple[Path, ...]:
    """Write both tables into files of a form; see `SimulatedLog.write`."""
    folder.mkdir(parents=True, exist_ok=True)
    given = {"ubi_queries": queries, "ubi_events": events}
    if form == "parquet":
        return tuple(_parquet(folder / f"{name}.parquet", table) for name, table in given.items())
    if form == "csv":
        return tuple(_csv(folder / f"{name}.csv", table) for name, table in given.items())
    if form == "ndjson":
        lines = {folder / f"{name}.ndjson": list(_lines(table)) for name, table in given.items()}
    else:
        lines = {folder / "ubi.ndjson": [line for name, table in given.items() for line in _bulk(name, table)]}
    for path, every in lines.items():
        cut = truncated and path.name != "ubi_queries.ndjson"
        path.write_text("\n".join(every)[: -len(every[-1]) // 2] if cut and every else "\n".join([*every, ""]))
    return tuple(lines)


def _parquet(path: Path, table: Table) -> Path:
    pq.write_table(table, path)
    return path


def _csv(path: Path, table: Table) -> Path:
    """Write structs as columns with dots in their names, and lists as JSON."""
    while any(pa.types.is_struct(one.type) for one in table.schema):
        table = table.flatten()
    for at, one in enumerate(table.schema):
        if pa.types.is_list(one.type):
            table = table.set_column(at, one.name, pa.array([json.dumps(each) for each in table[at].to_pylist()]))
        if pa.types.is_timestamp(one.type):
            table = table.set_column(at, one.name, _written(table[at]))
    pyarrow.csv.write_csv(table, path)
    return path


def _bulk(name: str, table: Table) -> Iterator[str]:
    head = json.dumps({"index": {"_index": name}})
    for line in _lines(table):
        yield head
        yield line


def _lines(table: Table) -> Iterator[str]:
    """Give rows as JSON, without what is null: UBI's schema has no nulls."""
    if pa.types.is_timestamp(table.schema.field("timestamp").type):
        table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", _written(table["timestamp"]))
    for row in table.to_pylist():
        yield json.dumps(_known(row))


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(one) for key, one in value.items() if one is not None}  # pyright: ignore[reportUnknownVariableType]
    return value


def _times(columns: Mapping[str, Any]) -> Any:
    times = columns["time_ms"].cast(_STAMP)
    damaged = np.flatnonzero(columns["unreadable"].to_numpy(zero_copy_only=False))
    if not len(damaged):
        return times
    replaced = pa.array([_UNREADABLE[at % len(_UNREADABLE)] for at in range(len(damaged))])
    return pc.replace_with_mask(_written(times), columns["unreadable"], replaced)


def _written(times: Any) -> Any:
    """Write times as ISO 8601 with a Z."""
    return pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ")


def _struct(parts: Mapping[str, Any], mask: Any = None) -> Any:
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=mask)
