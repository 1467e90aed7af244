"""Assignment of tasks, systems, and positions to participants by balanced squares."""

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
"""Columns of `assignments`: one row per participant and task, with the position from 1."""

_CANDIDATE_ORDERS = 50  # random orders of topics, of which the most even is used


class Trial(NamedTuple):
    """Task of a participant."""

    position: int
    query_id: str
    system: str
    variant: str
    practice: bool


class SideBySide(NamedTuple):
    """Systems whose lists for a topic are displayed side by side."""

    query_id: str
    left: str
    right: str


@lru_cache(maxsize=64)
def williams(n: int) -> tuple[tuple[int, ...], ...]:
    """Return the rows of a Williams square: each of n conditions has each position, and each successor, equally often.

    Balanced for first-order carryover; an odd n needs 2n rows (Williams, Australian J. of Scientific Research 1949).

    >>> williams(4)
    ((0, 1, 3, 2), (1, 2, 0, 3), (2, 3, 1, 0), (3, 0, 2, 1))
    >>> len(williams(3))
    6
    """
    # 0, 1, n-1, 2, n-2, ...: differences of neighbors are unique modulo n, so successors are balanced over shifts.
    first = [i // 2 + 1 if i % 2 else (n - i // 2) % n for i in range(n)]
    rows = [tuple((value + shift) % n for value in first) for shift in range(n)]
    return tuple(rows if n % 2 == 0 else [*rows, *(row[::-1] for row in rows)]) if n > 1 else ((0,),)


def block_sizes(design: Design) -> tuple[int, int]:
    """Return the participants per group that balance systems, and those that balance topics and positions as well.

    >>> from judged.studies.design import Design, StudySystem, Task
    >>> tasks = tuple(Task(f"t{i}", "", "", 5, 0) for i in range(6))
    >>> block_sizes(Design("", (StudySystem("a", "docs", "a.run"), StudySystem("b", "docs", "b.run")), tasks))
    (2, 12)
    """
    between = len(design.interfaces) if design.variants == "between" else 1
    systems = between * len(williams(len(design.conditions)))
    return systems, systems * len(design.tasks)


def trials(design: Design, number: int) -> tuple[Trial, ...]:
    """Return the tasks of a participant by the index within the group; they do not depend on other participants.

    Participants of a block have one order of topics; together they do each task with each condition. From block to
    block topics shift, until each topic had each position; then a new order begins.
    """
    between = design.variants == "between"
    conditions = _shuffled(design.conditions, f"{design.seed} systems")
    square = williams(len(conditions))
    block, row = divmod(number // len(design.interfaces) if between else number, len(square))
    cycle, block_in_cycle = divmod(block, len(design.tasks))
    square_row = _shuffled(square, f"{design.seed} {block}")[row]
    rows, length, blocked = (square_row, square[0]), len(design.tasks), design.order == "blocked"
    codes, reference_codes = (_condition_sequence(codes, length, blocked=blocked) for codes in rows)
    # All participants of a block need the same order of topics, so it depends on the first row of the square only.
    order = _topic_order(tuple(reference_codes), f"{design.seed} {cycle}")
    shift = _shuffled(range(len(order)), f"{design.seed} {cycle} blocks")[block_in_cycle]
    topics = [task.topic for task in design.practice]
    topics += [design.tasks[(task_index + shift) % len(order)].topic for task_index in order]
    # Practice uses the systems in the order in which the participant meets them.
    codes = [square_row[i % len(square_row)] for i in range(len(design.practice))] + codes
    # Participants alternate between variants, so that each variant gets complete squares.
    variant = design.interfaces[number % len(design.interfaces)].name if between else ""
    assigned: list[Trial] = []
    for position, (topic, code) in enumerate(zip(topics, codes, strict=True), 1):
        condition, practice = conditions[code], position <= len(design.practice)
        assigned.append(Trial(position, topic, condition.system, condition.variant or variant, practice))
    return tuple(assigned)


@lru_cache(maxsize=256)
def _topic_order(codes: tuple[int, ...], seed: str) -> tuple[int, ...]:
    """Return an order of topics in which, as they shift, any two share a condition about equally often.

    If a condition always had the same topics, effects of these topics would be confounded with effects of people.
    """

    def unevenness(order: list[int]) -> int:
        pairs = permutations(zip(order, codes, strict=True), 2)
        distances = Counter((a - b) % len(codes) for (a, code), (b, other_code) in pairs if code == other_code)
        return sum(count**2 for count in distances.values())

    orders = (_shuffled(range(len(codes)), f"{seed} topics {i}") for i in range(_CANDIDATE_ORDERS))
    return tuple(min(orders, key=unevenness))


def _condition_sequence(row: tuple[int, ...], length: int, *, blocked: bool) -> list[int]:
    """Extend the row of a square to `length` tasks, in blocks or by repetition."""
    n = len(row)
    if blocked:
        return [code for i, code in enumerate(row) for _ in range(length // n + (i < length % n))]
    # Each repetition starts with the last condition of the previous one (ABBA), which keeps successors balanced.
    return [(row[i % n] + i // n * (row[-1] - row[0])) % n for i in range(length)]


def side_by_side(design: Design, number: int) -> tuple[SideBySide, ...]:
    """Return the side-by-side comparisons of a participant: two systems per topic, balanced over topics and sides.

    Over 2 participants per pair of systems, each topic has each pair twice, with each system on the left once.
    """
    pairs = list(combinations([system.name for system in design.systems], 2))
    comparisons: list[SideBySide] = []
    for i, task in enumerate(_shuffled(design.preference, f"{design.seed} preference")):
        cycle, pair_index = divmod(number + i, len(pairs))
        first, second = pairs[pair_index]
        comparisons.append(SideBySide(task.topic, *((second, first) if (cycle + i) % 2 else (first, second))))
    return tuple(comparisons)


def assignments(design: Design, participants: Mapping[str, str] | None = None) -> Table:
    """Assign tasks and systems to participants: a table with the columns of `ASSIGNMENTS`.

    Parameters
    ----------
    design
        Design of the study.
    participants
        Group by participant, in the order of enrollment; a new participant never changes earlier assignments. Default:
        the planned number, named ``p1``, ``p2``...

    Raises
    ------
    InputError
        If a group is not in the design.
    """
    if participants is None:
        planned = [group.name for group in design.groups for _ in range(group.participants)]
        participants = {f"p{i}": name for i, name in enumerate(planned, 1)}
    groups, counts, rows = [group.name for group in design.groups], Counter[str](), list[dict[str, Any]]()
    for participant, group in participants.items():
        if group not in groups:
            problem = f"the group of {participant} must be in the design, got {group!r}"
            raise InputError(problem, fix=suggest_name(group, groups))
        for trial in trials(design, counts[group]):
            rows.append({"participant": participant, "group": group, **trial._asdict()})
        counts[group] += 1
    return pa.Table.from_pylist(rows, schema=ASSIGNMENTS)


class Balance(NamedTuple):
    """Frequencies of the combinations of one kind: of the least and the most frequent one."""

    kind: str
    min_count: int
    max_count: int


def balance(design: Design, table: Table) -> tuple[Balance, ...]:
    """Count the combinations that assignments should balance, practice excluded.

    ``systems``: each condition at each position; ``topics``: each topic with each condition; ``positions``: each topic
    at each position; ``followers``: each condition directly after each other; ``persons``: each condition with each
    person.
    """
    rows = [row for row in table.to_pylist() if not row["practice"]]
    row_conditions = [Condition(row["system"], row["variant"]) for row in rows]
    # With variants = "between", a person has one variant, so only the systems can be balanced within persons.
    is_crossed = design.variants == "crossed"
    within_person = row_conditions if is_crossed else [Condition(row["system"]) for row in rows]
    topics, positions = [row["query_id"] for row in rows], [row["position"] for row in rows]
    people = [row["participant"] for row in rows]
    followers = [
        (row_conditions[i], row_conditions[i + 1])
        for i in range(len(rows) - 1)
        if people[i] == people[i + 1] and row_conditions[i] != row_conditions[i + 1]
    ]
    pairs = product(design.systems, design.interfaces)
    conditions = [Condition(system.name, variant.name) for system, variant in pairs]
    possible_followers = [
        (first, second)
        for first, second in permutations(conditions, 2)
        if is_crossed or first.variant == second.variant
    ]
    observed_and_possible = {
        "systems": (zip(positions, row_conditions, strict=True), product(set(positions), conditions)),
        "topics": (zip(topics, row_conditions, strict=True), product(set(topics), conditions)),
        "positions": (zip(topics, positions, strict=True), product(set(topics), set(positions))),
        "followers": (followers, possible_followers),
        "persons": (zip(people, within_person, strict=True), product(set(people), design.conditions)),
    }
    balances: list[Balance] = []
    for kind, (observed, possible) in observed_and_possible.items():
        counts = Counter[Any](observed)
        if frequencies := [counts[combination] for combination in possible]:
            balances.append(Balance(kind, min(frequencies), max(frequencies)))
    return tuple(balances)


def _shuffled(values: Iterable[Any], seed: str) -> list[Any]:
    order = list(values)
    random.Random(seed).shuffle(order)  # noqa: S311  order of tasks, not cryptography
    return order
