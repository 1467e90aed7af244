"""Who judges what: pairs of topic and document shared out among judges, evenly, as a pure function."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING

from judged.errors import InputError
from judged.labels.store import NewTask

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Pair = tuple[str, str]


def assigned(
    pairs: Iterable[Pair],
    judges: Sequence[str] = (),
    *,
    each: int = 1,
    overlap: float = 0.0,
    repeats: float = 0.0,
    gold: Mapping[Pair, float] | None = None,
    seed: int = 0,
) -> tuple[NewTask, ...]:
    """Share out pairs among judges.

    Numbers of tasks differ by at most 1 between judges, and every two judges share about as many pairs as every other
    two. Pairs of one topic are dealt one after the other, so that its judges share it evenly as well.

    Parameters
    ----------
    pairs
        Of topic and document; each counts once.
    judges
        By name; none: all tasks are everybody's.
    each
        How many judges see a pair.
    overlap
        The share of pairs, chosen at random, that all judges see, from 0 to 1.
    repeats
        The share of a judge's pairs, chosen at random, that come a second time, from 0 to 1: how far judges agree with
        themselves.
    gold
        Pairs whose grade is known; all judges see them, among the others.
    seed
        Of everything random.

    Raises
    ------
    InputError
        If there is no pair, a share is not one, or a pair is to have more judges than there are.

    Examples
    --------
    >>> pairs = [("q", f"d{at}") for at in range(6)]
    >>> tasks = assigned(pairs, ["ann", "bob", "cy"], each=2)
    >>> sorted(Counter(task.judge for task in tasks).items()), len({task[:2] for task in tasks})
    ([('ann', 4), ('bob', 4), ('cy', 4)], 6)
    """
    known, every = dict(gold or {}), tuple(judges) or ("",)
    rest = [pair for pair in dict.fromkeys(pairs) if pair not in known]
    if not rest and not known:
        raise InputError("there is nothing to judge", fix="give pairs of topic and document")
    if not (0 <= overlap <= 1 and 0 <= repeats <= 1):
        raise InputError("overlap and repeats are shares", fix="give numbers from 0 to 1")
    if len(set(every)) < len(every):
        raise InputError("a judge is named twice", fix="name each judge once")
    if not 1 <= each <= len(every):
        problem = f"{each} judges are to see each pair, and there {'is' if len(every) == 1 else 'are'} {len(every)}"
        raise InputError(problem, fix="name as many judges")
    random = Random(seed)  # noqa: S311 - it deals, it hides nothing
    random.shuffle(rest)
    everybodys = {*rest[: round(overlap * len(rest))], *known}
    order = {topic: at for at, (topic, _) in enumerate(reversed(rest))}  # topics in a random order, each in one piece
    load, together, tasks = Counter[str](), Counter[frozenset[str]](), list[NewTask]()
    for pair in [*known, *sorted(rest, key=lambda pair: order[pair[0]])]:
        chosen: list[str] = []
        for _ in range(len(every) if pair in everybodys else each):

            def burden(judge: str, chosen: list[str] = chosen) -> tuple[int, int, float]:
                shared = sum(together[frozenset((judge, other))] for other in chosen)
                return load[judge], shared, random.random()

            chosen.append(min((judge for judge in every if judge not in chosen), key=burden))
        load.update(chosen)
        together.update(map(frozenset, combinations(chosen, 2)))
        tasks += (NewTask(*pair, judge, gold=known.get(pair)) for judge in chosen)
    again: list[NewTask] = []
    for judge in every:
        own = [task for task in tasks if task.judge == judge and task.gold is None]
        wanted = min(max(round(repeats * len(own)), 1), len(own)) if repeats else 0
        again += (task._replace(repeat=1) for task in random.sample(own, wanted))
    return (*tasks, *again)
