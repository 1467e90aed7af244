"""Which participant does which task with which system, and when: squares in which what could mislead is balanced."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from judged.data.toml_files import suggest_name
from judged.errors import InputError
from judged.studies.columns import columns
from judged.studies.design import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from judged.results.types import Table
    from judged.studies.design import Design

ASSIGNMENTS = columns("participant", "group", "position", "query_id", "system", "variant", "practice")
"""Columns of `assignments`: one row a participant and task, by its position from 1."""

_TRIED = 50  # orders of topics, of which the best is taken


class Trial(NamedTuple):
    """One task of one participant."""

    position: int
    query_id: str
    system: str
    variant: str
    practice: bool


class SideBySide(NamedTuple):
    """Two systems whose lists for one topic are shown side by side."""

    query_id: str
    left: str
    right: str


@lru_cache(maxsize=64)
def williams(n: int) -> tuple[tuple[int, ...], ...]:
    """Give the rows of a Williams square: each of n at each place, and next after each other one, equally often.

    For an odd n it takes 2n rows (Williams, Australian Journal of Scientific Research 1949).

    >>> williams(4)
    ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))
    >>> len(williams(3))
    6
    """
    first = [at // 2 + 1 if at % 2 else (n - at // 2) % n for at in range(n)]
    rows = [tuple((value + shift) % n for value in first) for shift in range(n)]
    return tuple(rows if n % 2 == 0 else [*rows, *(row[::-1] for row in rows)]) if n > 1 else ((0,),)


def blocks(design: Design) -> tuple[int, int]:
    """Give how many participants of a group it takes until systems are balanced, and until all is.

    >>> from judged.studies.design import Design, System, Task
    >>> tasks = tuple(Task(f"t{at}", "", "", 5, 0) for at in range(6))
    >>> blocks(Design("", (System("a", "docs", "a.run"), System("b", "docs", "b.run")), tasks))
    (2, 12)
    """
    between = len(design.interfaces) if design.variants == "between" else 1
    systems = between * len(williams(len(design.conditions)))
    return systems, systems * len(design.tasks)


def trials(design: Design, number: int) -> tuple[Trial, ...]:
    """Give the tasks of a participant, by the number within the group, from 0: it depends on nothing else.

    Participants of one block do the topics in one order, and together each task with each condition. From block to
    block topics move on, until each was at each position; then another order begins.
    """
    between = design.variants == "between"
    conditions = _shuffled(design.conditions, f"{design.seed} systems")
    square = williams(len(conditions))
    block, row = divmod(number // len(design.interfaces) if between else number, len(square))
    turn, at = divmod(block, len(design.tasks))
    used = _shuffled(square, f"{design.seed} {block}")[row]
    codes, usual = (_sequence(one, len(design.tasks), blocked=design.order == "blocked") for one in (used, square[0]))
    places = _places(tuple(usual), f"{design.seed} {turn}")
    shift = _shuffled(range(len(places)), f"{design.seed} {turn} blocks")[at]
    topics = [task.topic for task in design.practice]
    topics += [design.tasks[(place + shift) % len(places)].topic for place in places]
    codes = [used[place % len(used)] for place in range(len(design.practice))] + codes
    variant = design.interfaces[number % len(design.interfaces)].name if between else ""
    found: list[Trial] = []
    for position, (topic, code) in enumerate(zip(topics, codes, strict=True), 1):
        condition, practice = conditions[code], position <= len(design.practice)
        found.append(Trial(position, topic, condition.system, condition.variant or variant, practice))
    return tuple(found)


@lru_cache(maxsize=256)
def _places(codes: tuple[int, ...], seed: str) -> tuple[int, ...]:
    """Choose an order of topics by which, as they move on, any two share a condition about equally often.

    Were always the same topics done with one condition, what is special of these would be taken for what is special of
    people.
    """

    def unevenness(order: list[int]) -> int:
        pairs = permutations(zip(order, codes, strict=True), 2)
        apart = Counter((one - other) % len(codes) for (one, code), (other, its) in pairs if code == its)
        return sum(times**2 for times in apart.values())

    return tuple(min((_shuffled(range(len(codes)), f"{seed} topics {at}") for at in range(_TRIED)), key=unevenness))


def _sequence(row: tuple[int, ...], length: int, *, blocked: bool) -> list[int]:
    """Lead the row of a square over so many tasks: in blocks, or again and again.

    Each time again it starts with what it ended with, ABBA: so no system follows another more often than the rest do.
    """
    n = len(row)
    if blocked:
        return [code for at, code in enumerate(row) for _ in range(length // n + (at < length % n))]
    return [(row[at % n] + at // n * (row[-1] - row[0])) % n for at in range(length)]


def side_by_side(design: Design, number: int) -> tuple[SideBySide, ...]:
    """Give what a participant compares at the end: for each topic two systems, which change sides and topics.

    Over two participants for each pair of systems, each topic comes with each pair, once with either on the left.
    """
    pairs = list(combinations([system.name for system in design.systems], 2))
    found: list[SideBySide] = []
    for at, task in enumerate(_shuffled(design.preference, f"{design.seed} preference")):
        turned, pair = divmod(number + at, len(pairs))
        first, second = pairs[pair]
        found.append(SideBySide(task.topic, *((second, first) if (turned + at) % 2 else (first, second))))
    return tuple(found)


def assignments(design: Design, participants: Mapping[str, str] | None = None) -> Table:
    """Say who does which task with which system, as a table with the columns of `ASSIGNMENTS`.

    Parameters
    ----------
    design
        Of the study.
    participants
        The group of each by id, in the order in which they came: one more changes nothing for those before. None: as
        many as are planned, named ``p1``, ``p2``...

    Raises
    ------
    InputError
        If the design has no such group.
    """
    if participants is None:
        planned = [group.name for group in design.groups for _ in range(group.participants)]
        participants = {f"p{at}": name for at, name in enumerate(planned, 1)}
    known, counts, rows = [group.name for group in design.groups], Counter[str](), list[dict[str, Any]]()
    for participant, group in participants.items():
        if group not in known:
            raise InputError(f"{participant} is of no group of the design: {group!r}", fix=suggest_name(group, known))
        for trial in trials(design, counts[group]):
            rows.append({"participant": participant, "group": group, **trial._asdict()})
        counts[group] += 1
    return pa.Table.from_pylist(rows, schema=ASSIGNMENTS)


class Balance(NamedTuple):
    """How often the combinations of one kind come: least and most often, of all that there are."""

    what: str
    least: int
    most: int


def balance(design: Design, table: Table) -> tuple[Balance, ...]:
    """Count what is to come equally often in some assignments: practice is left out.

    ``systems``: each condition at each position; ``topics``: each topic with each condition; ``positions``: each topic
    at each position; ``followers``: each condition next after each other; ``persons``: each condition with each person.
    """
    rows = [row for row in table.to_pylist() if not row["practice"]]
    used = [Condition(row["system"], row["variant"]) for row in rows]
    met = [one if design.variants == "crossed" else Condition(one.system) for one in used]
    topics, positions = [row["query_id"] for row in rows], [row["position"] for row in rows]
    people = [row["participant"] for row in rows]
    followers = [
        (used[at], used[at + 1])
        for at in range(len(rows) - 1)
        if people[at] == people[at + 1] and used[at] != used[at + 1]
    ]
    everything = list(product(design.systems, design.interfaces))
    conditions = [Condition(system.name, variant.name) for system, variant in everything]
    together = [
        (one, other)
        for one, other in permutations(conditions, 2)
        if design.variants == "crossed" or one.variant == other.variant
    ]
    counted = {
        "systems": (zip(positions, used, strict=True), product(set(positions), conditions)),
        "topics": (zip(topics, used, strict=True), product(set(topics), conditions)),
        "positions": (zip(topics, positions, strict=True), product(set(topics), set(positions))),
        "followers": (followers, together),
        "persons": (zip(people, met, strict=True), product(set(people), design.conditions)),
    }
    found: list[Balance] = []
    for what, (pairs, possible) in counted.items():
        times, keys = Counter[Any](pairs), list(possible)
        if keys:
            found.append(Balance(what, min(times[key] for key in keys), max(times[key] for key in keys)))
    return tuple(found)


def _shuffled(things: Iterable[Any], seed: str) -> list[Any]:
    """Give things in an order that depends on the seed alone."""
    order = list(things)
    random.Random(seed).shuffle(order)  # noqa: S311  nothing is kept secret by it
    return order
