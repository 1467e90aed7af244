"""Who judges what: pairs of topic and document shared out among judges, evenly, as a pure function."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.labels.labels import KINDS
from judged.labels.store import NewTask
from judged.results import COUNT, TEXT, Answer, Column, Sentences, Table, columns_of, number
from judged.results.decimals import counted
from judged.results.table import truncated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from judged.labels.labels import Labels
    from judged.labels.store import LabelStore
    from judged.results import Block

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


@dataclass(frozen=True, eq=False, repr=False)
class LabelStatus(Answer):
    """How far the judging is."""

    kind: ClassVar[str] = "label-status"
    main: ClassVar[str] = "judges"

    store: str
    judges: tuple[dict[str, Any], ...]
    topics: tuple[dict[str, Any], ...]
    kinds: tuple[dict[str, Any], ...]
    title: ClassVar[str] = "Labels so far"  # pyright: ignore[reportIncompatibleMethodOverride]

    def facts(self) -> Mapping[str, Any]:
        """Give where the labels are."""
        return {"store": self.store}

    def blocks(self) -> tuple[Block, ...]:
        """Give judges, topics, kinds, and what is left in a sentence."""
        counts = tuple((name, COUNT) for name in ("tasks", "done", "left", "labels", "skipped"))
        seconds = ("seconds", number(1), "median s")
        judges = columns_of(self.judges, ("judge", TEXT), ("kind", TEXT), *counts, seconds, ("last", TEXT))
        texts = Column("query", [row["query"] for row in self.topics], truncated(60))
        columns = [*columns_of(self.topics, ("query_id", TEXT, "topic")), *([texts] if any(texts.values) else [])]
        columns += columns_of(self.topics, ("pairs", COUNT), ("graded", COUNT), ("labels", COUNT))
        kinds = columns_of(self.kinds, ("kind", TEXT), ("judges", COUNT), ("labels", COUNT), seconds)
        return (
            Table("judges", judges, labels=2),
            Table("topics", tuple(columns), "By topic", labels=len(columns) - 3),
            *((Table("kinds", kinds, "By kind"),) if self.kinds else ()),
            Sentences(self.sentences),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what is left, and how long it will take at the pace so far."""
        pairs, graded = (sum(row[name] for row in self.topics) for name in ("pairs", "graded"))
        left = sum(row["left"] for row in self.judges)
        pace = [row["left"] * row["seconds"] for row in self.judges if row["left"] and not np.isnan(row["seconds"])]
        known = len(pace) == sum(row["left"] > 0 for row in self.judges)
        hours = f", some {sum(pace) / 3600:.1f} hours at the pace so far" if pace and known else ""
        said = (
            f"{graded:,} of {counted(pairs, 'pair')} of topic and document {'has' if graded == 1 else 'have'} a grade"
        )
        if not self.judges and pairs:
            return (f"{said}; nobody has begun, and the tasks are everybody's.",)
        return (f"{said}; {counted(left, 'task is', 'tasks are')} left{hours}.",)


def status(store: LabelStore) -> LabelStatus:
    """Tell how far the judging in a store is.

    Examples
    --------
    >>> from judged.labels import LabelStore, NewTask
    >>> store = LabelStore.open("sqlite://")
    >>> _ = store.add_judge("ann"), store.add_tasks([NewTask("q", "a"), NewTask("q", "b")])
    >>> store.add("ann", "q", "a", 2.0, seconds=4.0)
    >>> print(status(store).text().splitlines()[-1])
    1 of 2 pairs of topic and document has a grade; 1 task is left, some 0.0 hours at the pace so far.
    """
    labels, tasks = store.labels() if len(store) else None, store.every_task()
    texts = {row["query_id"]: row["text"] for row in store.topics()}
    rows: list[dict[str, Any]] = [] if labels is None else labels.last.to_pylist()
    named = dict.fromkeys(sorted({task.judge for task in tasks} - {""}), "human")  # with tasks, and not yet here
    kinds = named | store.judges() | {row["judge"]: row["kind"] for row in rows}
    return LabelStatus(
        store.where,
        tuple(_of_judge(judge, kind, rows, tasks) for judge, kind in kinds.items()),
        tuple(_of_topics(texts, rows, tasks)),
        tuple(_of_kind(kind, labels) for kind in KINDS if labels is not None and kind in kinds.values()),
    )


def _of_judge(judge: str, kind: str, rows: Sequence[dict[str, Any]], tasks: Sequence[NewTask]) -> dict[str, Any]:
    own = [row for row in rows if row["judge"] == judge]
    wanted = {(task.query_id, task.doc_id, task.repeat) for task in tasks if task.judge in {"", judge}}
    done = {(row["query_id"], row["doc_id"], row["repeat"]) for row in own if row["valid"]} & wanted
    return {
        "judge": judge, "kind": kind, "tasks": len(wanted), "done": len(done), "left": len(wanted) - len(done),
        "labels": sum(row["valid"] and row["grade"] is not None for row in own),
        "skipped": sum(row["valid"] and row["grade"] is None for row in own),
        "seconds": _median([row["seconds"] for row in own]), "last": max((row["at"] for row in own), default=""),
    }  # fmt: skip


def _of_topics(
    texts: Mapping[str, str], rows: Sequence[dict[str, Any]], tasks: Sequence[NewTask]
) -> list[dict[str, Any]]:
    pairs: defaultdict[str, set[str]] = defaultdict(set)
    graded: defaultdict[str, set[str]] = defaultdict(set)
    counts = Counter[str]()
    for task in tasks:
        pairs[task.query_id].add(task.doc_id)
    for row in rows:
        if row["valid"] and row["grade"] is not None:
            graded[row["query_id"]].add(row["doc_id"])
            counts[row["query_id"]] += 1
    every = sorted(pairs.keys() | graded.keys())  # of other topics there is nothing to tell
    return [
        {"query_id": topic, "query": texts.get(topic, ""), "pairs": len(pairs[topic] | graded[topic]),
         "graded": len(graded[topic]), "labels": counts[topic]}
        for topic in every
    ]  # fmt: skip


def _of_kind(kind: str, labels: Labels) -> dict[str, Any]:
    table = labels.graded
    rows = [row for row in table.select(["judge", "kind", "seconds"]).to_pylist() if row["kind"] == kind]
    seconds = _median([row["seconds"] for row in rows])
    return {"kind": kind, "judges": len({row["judge"] for row in rows}), "labels": len(rows), "seconds": seconds}


def _median(seconds: Sequence[float | None]) -> float:
    known = [one for one in seconds if one is not None]
    return statistics.median(known) if known else float("nan")
