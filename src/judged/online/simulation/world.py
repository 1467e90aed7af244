"""Simulated collection: query texts, documents, grades, and rankings; damage and the formats of written logs."""

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

    from judged.online.simulation.plan import LogDamage, SimulationPlan
    from judged.online.simulation.rows import EventTable
    from judged.online.simulation.sessions import Pages, UserTable
    from judged.results.types import Bools, Floats, Ints, Table


MODIFIERS = 4
EXTRAS = 4
"""Number of possible counts of extra words, 0 to 3: a query has three to six words."""

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
_VOCABULARY = tuple(tuple(tuple(words.split()) for words in department) for department in _DEPARTMENTS)
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def brand(number: int) -> str:
    """Return a unique name of at least three syllables for a number.

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
def query_text(topic: int, extras: int, modifier: int, misspelt: int) -> str:
    """Return the text of a query; `misspelt` is 1 or 0.

    >>> query_text(0, 0, 0, 0), query_text(0, 2, 1, 0), query_text(0, 0, 0, 1)
    ('matopo wooden sofa', 'matopo leather sofa assembled bedroom', 'mattopo wooden sofa')
    """
    department, number = topic % DEPARTMENTS, topic // DEPARTMENTS
    nouns, modifiers, extra_words = _VOCABULARY[department]
    name = brand(_scatter(topic))
    if misspelt:
        name = f"{name[:3]}{name[2]}{name[3:]}"
    first = modifiers[(number + modifier) % len(modifiers)]
    added = (extra_words[(number + i) % len(extra_words)] for i in range(extras))
    return " ".join((name, first, nouns[number % len(nouns)], *added))


def _scatter(topic: int) -> int:
    """Map topics to distant numbers, so that brands of neighboring topics differ; one-to-one below 70^3."""
    count = (len(_VOWELS) * len(_CONSONANTS)) ** 3
    # A linear congruential map; its multiplier is coprime to 70^3, so brands are unique.
    return (topic * 190_027 + 151_103) % count if topic < count else topic


_BATCH_SIZE = 4096  # topics per batch, which limits the memory for large collections


@dataclass(frozen=True, eq=False)
class World:
    """Simulated collection. The index of a document is ``topic * documents + number``.

    Parameters
    ----------
    popularity
        Share of tasks by topic; the sum is 1.
    grades
        Grades by topic and document.
    prices
        Prices by topic and document.
    lists
        Documents of the topic, best first, by topic, arm, version, and rank.
    result_counts
        Number of results by topic.
    zero
        Whether a correctly spelled query has zero results, by topic and version.
    zero_misspelt
        Whether misspelled queries have zero results, by topic.
    """

    popularity: Floats
    grades: NDArray[np.int8]
    prices: NDArray[np.float32]
    lists: NDArray[np.int16]
    result_counts: Ints
    zero: Bools
    zero_misspelt: Bools

    def version(self, extras: Ints, modifier: Ints, epoch: Ints) -> Ints:
        """Return the version of the result list for queries."""
        return (extras * MODIFIERS + modifier + epoch) % self.zero.shape[1]

    def has_no_results(self, topic: Ints, version: Ints, misspelt: Bools) -> Bools:
        """Return whether queries have zero results."""
        return np.where(misspelt, self.zero_misspelt[topic], self.zero[topic, version])


def make_world(plan: SimulationPlan) -> World:
    """Sample the collection."""
    collection = plan.collection
    # The constant separates this stream from that of the users.
    rng = np.random.default_rng([collection.seed, 0x0C011EC7])
    # Zipf's law.
    popularity = np.arange(1, collection.topics + 1) ** -collection.zipf
    shape = (collection.topics, collection.documents)
    grades = rng.choice(len(collection.grades), size=shape, p=collection.grades).astype(np.int8)
    prices = np.round(np.exp(rng.normal(np.log(plan.page.price[0]), plan.page.price[1], shape)), 2)
    result_counts = rng.integers(collection.documents, 20 * collection.documents, collection.topics)
    short = rng.random(collection.topics) < collection.short
    result_counts[short] = rng.integers(1, max(plan.page.size, 2), collection.topics)[short]
    zero = rng.random((collection.topics, collection.versions)) < collection.zero
    return World(
        popularity=popularity / popularity.sum(),
        grades=grades,
        prices=prices.astype(np.float32),
        lists=_lists(plan, grades, rng),
        result_counts=result_counts,
        zero=zero,
        zero_misspelt=rng.random(collection.topics) < collection.zero_misspelt,
    )


def _lists(plan: SimulationPlan, grades: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int16]:
    """Rank the documents of each topic by grade plus noise, for each arm and version."""
    topics, documents = grades.shape
    lists = np.empty((topics, len(plan.arms), plan.collection.versions, plan.depth), dtype=np.int16)
    noise_sd = np.array([arm.noise for arm in plan.arms])[:, None, None]
    for begin in range(0, topics, _BATCH_SIZE):
        batch = grades[begin : begin + _BATCH_SIZE, None, None, :]
        noise = rng.standard_normal((len(batch), len(plan.arms), plan.collection.versions, documents))
        order = np.argsort(-(batch + noise_sd * noise), axis=-1, kind="stable")
        lists[begin : begin + _BATCH_SIZE] = order[..., : plan.depth]
    return lists


def first_queries() -> tuple[tuple[int, int], ...]:
    """Return the extras and modifiers of the first query of a task, which are equally likely."""
    return tuple((extras, modifier) for extras in range(1, EXTRAS - 1) for modifier in range(MODIFIERS))


UNDAMAGED, COPY, FACETS, FUTURE, UNREADABLE = range(5)
_LOST = -1


@dataclass(frozen=True, eq=False)
class WrittenRows:
    """Rows to write, with their damage.

    Parameters
    ----------
    queries, query_flags
        Page of each row, and its damage: UNDAMAGED, COPY, or FACETS.
    events, event_flags
        Event of each row, and its damage: UNDAMAGED, COPY, FUTURE, or UNREADABLE.
    behind
        Whether the clock of the browser is slow, by user.
    zero_based
        Whether the rank counts from 0, by event row.
    counts
        Number of damaged rows by kind of damage.
    """

    queries: Ints
    query_flags: NDArray[np.int8]
    events: Ints
    event_flags: NDArray[np.int8]
    behind: Bools
    zero_based: Bools
    counts: dict[str, int]


_QUERY_DAMAGE = {"duplicated_queries": COPY, "facet_requests": FACETS, "lost_queries": _LOST}
_EVENT_DAMAGE = {
    "duplicated_events": COPY,
    "lost_events": _LOST,
    "future_events": FUTURE,
    "unreadable_times": UNREADABLE,
}


def sample_damage(
    plan: SimulationPlan, users: UserTable, pages: Pages, events: EventTable, rng: np.random.Generator
) -> WrittenRows:
    """Sample the damage."""
    damage = plan.damage
    page_damage = _sample_kinds(rng, len(pages), damage, _QUERY_DAMAGE)
    event_damage = _sample_kinds(rng, len(events), damage, _EVENT_DAMAGE)
    # A log is written in the order of time, not of users.
    by_time = np.argsort(pages.time, kind="stable")
    query_rows, query_flags = _written_rows(page_damage[by_time])
    event_rows, event_flags = _written_rows(event_damage)
    behind = rng.random(len(users.quota)) < damage.skewed_users
    names = list(plan.applications)
    zero = names.index(damage.zero_based) if damage.zero_based in names else -1
    page = events.page[event_rows]
    zero_based = (pages.application[page] == zero) & (events.place[event_rows] >= 0)
    skewed = behind[pages.user[page]]
    early = skewed & (events.time[event_rows] - round(1000 * damage.skew) < pages.time[page])
    masks = {name: page_damage == kind for name, kind in _QUERY_DAMAGE.items()}
    masks |= {name: event_damage == kind for name, kind in _EVENT_DAMAGE.items()}
    masks |= {"orphaned_events": page_damage[page] == _LOST, "zero_based_ranks": zero_based, "skewed_events": skewed}
    masks["events_before_their_query"] = early & (event_flags <= COPY)
    counts = {name: int(mask.sum()) for name, mask in masks.items()} | {"truncated_lines": int(damage.truncated)}
    return WrittenRows(by_time[query_rows], query_flags, event_rows, event_flags, behind, zero_based, counts)


def _sample_kinds(rng: np.random.Generator, rows: int, damage: LogDamage, kinds: Mapping[str, int]) -> NDArray[np.int8]:
    """Sample at most one kind of damage per row."""
    # One uniform number per row, compared with cumulated shares.
    limits = np.cumsum([getattr(damage, name) for name in kinds])
    index = np.searchsorted(limits, rng.random(rows), side="right")
    return np.array([*kinds.values(), UNDAMAGED], dtype=np.int8)[index]


def _written_rows(kinds: NDArray[np.int8]) -> tuple[Ints, NDArray[np.int8]]:
    """Return the written rows in order and their damage: lost rows are omitted, rows with a copy or facets doubled."""
    is_doubled = (kinds == COPY) | (kinds == FACETS)
    rows = np.repeat(np.arange(len(kinds)), np.where(kinds == _LOST, 0, np.where(is_doubled, 2, 1)))
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = rows[1:] != rows[:-1]
    return rows, np.where(is_doubled[rows] & is_first, UNDAMAGED, kinds[rows]).astype(np.int8)


FileFormat: TypeAlias = Literal["parquet", "ndjson", "bulk", "csv"]
_INVALID_TIMES = ("yesterday", "31/02/2026 25:61", "")
_TIMESTAMP = pa.timestamp("ms", "UTC")


def query_table(columns: Mapping[str, Any]) -> Table:
    """Convert columns of RAW_QUERY to the queries table of UBI."""
    attributes = {
        **_named(columns, "page page_size=size result_count=n_total rescued filtered language device latency_ms"),
        "experiment": _struct(_named(columns, "name=experiment variant probability=assign_p")),
        **_named(columns, "ranker user_agent"),
        **{name: column for name, column in columns.items() if name.startswith(("interleaving", "propensit"))},
    }
    ids = _named(columns, "query_id client_id=user_id session_id application user_query=query")
    hits = {"query_response_hit_ids": columns["hit_ids"], "query_attributes": _struct(attributes)}
    return pa.table({**ids, "timestamp": columns["time_ms"].cast(_TIMESTAMP), **hits})


def event_table(columns: Mapping[str, Any]) -> Table:
    """Convert columns of RAW_EVENT to the events table of UBI; times are strings if some are invalid."""
    position, product = (_struct(_named(columns, names)) for names in ("ordinal=position", "object_id"))
    parts = {"position": position, "object": product, "value": columns["value"]}
    # Events without a position have no attributes in UBI.
    attributes = _struct(parts, mask=pc.is_null(columns["position"]))
    ids = _named(columns, "event_id action_name=action query_id session_id client_id=user_id application")
    return pa.table({**ids, "timestamp": _times(columns), "event_attributes": attributes})


def _named(columns: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Select columns under the names of UBI, such as ``client_id=user_id``, or under the same name."""
    pairs = (name.partition("=") for name in names.split())
    return {name: columns[raw_name or name] for name, _, raw_name in pairs}


def write_tables(folder: Path, queries: Table, events: Table, form: FileFormat, *, truncated: bool) -> tuple[Path, ...]:
    """Write both tables in a format; see `SimulatedLog.write`."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"ubi_queries": queries, "ubi_events": events}
    if form == "parquet":
        return tuple(_parquet(folder / f"{name}.parquet", table) for name, table in tables.items())
    if form == "csv":
        return tuple(_csv(folder / f"{name}.csv", table) for name, table in tables.items())
    if form == "ndjson":
        lines = {folder / f"{name}.ndjson": list(_lines(table)) for name, table in tables.items()}
    else:
        lines = {folder / "ubi.ndjson": [line for name, table in tables.items() for line in _bulk(name, table)]}
    for path, file_lines in lines.items():
        # The last line of the events is cut in half, as by a process that was killed.
        is_truncated = truncated and file_lines and path.name != "ubi_queries.ndjson"
        end = -len(file_lines[-1]) // 2 if is_truncated else None
        path.write_text("\n".join(file_lines)[:end] if is_truncated else "\n".join([*file_lines, ""]))
    return tuple(lines)


def _parquet(path: Path, table: Table) -> Path:
    pq.write_table(table, path)
    return path


def _csv(path: Path, table: Table) -> Path:
    """Write a table with nested fields as columns with dots in their names, and lists as JSON."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for i, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            table = table.set_column(i, field.name, pa.array([json.dumps(value) for value in table[i].to_pylist()]))
        if pa.types.is_timestamp(field.type):
            table = table.set_column(i, field.name, _format_times(table[i]))
    pyarrow.csv.write_csv(table, path)
    return path


def _bulk(name: str, table: Table) -> Iterator[str]:
    action = json.dumps({"index": {"_index": name}})
    for line in _lines(table):
        yield action
        yield line


def _lines(table: Table) -> Iterator[str]:
    """Yield rows as JSON without nulls, which the schema of UBI does not allow."""
    if pa.types.is_timestamp(table.schema.field("timestamp").type):
        i = table.schema.get_field_index("timestamp")
        table = table.set_column(i, "timestamp", _format_times(table["timestamp"]))
    for row in table.to_pylist():
        yield json.dumps(_without_nulls(row))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType]
    return value


def _times(columns: Mapping[str, Any]) -> Any:
    times = columns["time_ms"].cast(_TIMESTAMP)
    damaged = np.flatnonzero(columns["unreadable"].to_numpy(zero_copy_only=False))
    if not len(damaged):
        return times
    replaced = pa.array([_INVALID_TIMES[i % len(_INVALID_TIMES)] for i in range(len(damaged))])
    return pc.replace_with_mask(_format_times(times), columns["unreadable"], replaced)


def _format_times(times: Any) -> Any:
    """Format times as ISO 8601 in UTC."""
    return pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ")


def _struct(parts: Mapping[str, Any], mask: Any = None) -> Any:
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=mask)
