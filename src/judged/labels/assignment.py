"""Assignment of pairs of topic and document to judges, and status of the judging."""

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


def assign_tasks(
    pairs: Iterable[Pair],
    judges: Sequence[str] = (),
    *,
    each: int = 1,
    overlap: float = 0.0,
    repeats: float = 0.0,
    gold: Mapping[Pair, float] | None = None,
    seed: int = 0,
) -> tuple[NewTask, ...]:
    """Assign pairs to judges evenly.

    The numbers of tasks of judges differ by at most 1, and each two judges share about equally many pairs. Pairs of a
    topic are assigned consecutively, so that its pairs are also distributed evenly.

    Parameters
    ----------
    pairs
        Pairs of topic and document, without duplicates.
    judges
        Names; empty: all judges can do all tasks.
    each
        Number of judges per pair.
    overlap
        Share of pairs, selected at random, to assign to all judges, from 0 to 1.
    repeats
        Share of a judge's pairs, selected at random, to assign a second time, from 0 to 1, to measure the consistency
        of judges.
    gold
        Pairs with a known correct grade, assigned to all judges.
    seed
        Seed of all random selections.

    Raises
    ------
    InputError
        If there are no pairs, a share is not from 0 to 1, or there are fewer judges than `each`.

    Examples
    --------
    >>> pairs = [("q", f"d{i}") for i in range(6)]
    >>> tasks = assign_tasks(pairs, ["ann", "bob", "cy"], each=2)
    >>> sorted(Counter(task.judge for task in tasks).items()), len({task[:2] for task in tasks})
    ([('ann', 4), ('bob', 4), ('cy', 4)], 6)
    """
    gold_grades, judge_names = dict(gold or {}), tuple(judges) or ("",)
    open_pairs = [pair for pair in dict.fromkeys(pairs) if pair not in gold_grades]
    if not open_pairs and not gold_grades:
        raise InputError("there must be at least one pair to judge", fix="add pairs of a topic and a document")
    if not (0 <= overlap <= 1 and 0 <= repeats <= 1):
        raise InputError("`overlap` and `repeats` must be shares from 0 to 1", fix="use 0.1, for example")
    if len(set(judge_names)) < len(judge_names):
        raise InputError("names of judges must be unique", fix="name each judge once")
    if not 1 <= each <= len(judge_names):
        problem = f"`each` must be from 1 to {len(judge_names)}, the number of judges, got {each}"
        raise InputError(problem, fix="name more judges")
    random = Random(seed)  # noqa: S311 - no cryptography
    random.shuffle(open_pairs)
    # Gold pairs are always shared: they compare judges with the same reference.
    shared_pairs = {*open_pairs[: round(overlap * len(open_pairs))], *gold_grades}
    # Topics in random order, with the pairs of a topic together.
    order = {topic: i for i, (topic, _) in enumerate(reversed(open_pairs))}
    load, joint_counts, tasks = Counter[str](), Counter[frozenset[str]](), list[NewTask]()
    for pair in [*gold_grades, *sorted(open_pairs, key=lambda pair: order[pair[0]])]:
        assigned: list[str] = []
        for _ in range(len(judge_names) if pair in shared_pairs else each):
            # The judge with the fewest tasks, then with the fewest pairs shared with those already assigned.
            def burden(judge: str, assigned: list[str] = assigned) -> tuple[int, int, float]:
                shared = sum(joint_counts[frozenset((judge, other_judge))] for other_judge in assigned)
                return load[judge], shared, random.random()

            assigned.append(min((judge for judge in judge_names if judge not in assigned), key=burden))
        load.update(assigned)
        joint_counts.update(map(frozenset, combinations(assigned, 2)))
        tasks += (NewTask(*pair, judge, gold=gold_grades.get(pair)) for judge in assigned)
    repeated: list[NewTask] = []
    for judge in judge_names:
        judge_tasks = [task for task in tasks if task.judge == judge and task.gold is None]
        # At least one repeat, if any are requested.
        repeat_count = min(max(round(repeats * len(judge_tasks)), 1), len(judge_tasks)) if repeats else 0
        repeated += (task._replace(repeat=1) for task in random.sample(judge_tasks, repeat_count))
    return (*tasks, *repeated)


@dataclass(frozen=True, eq=False, repr=False)
class LabelStatus(Answer):
    """Progress of the judging."""

    kind: ClassVar[str] = "label-status"
    main: ClassVar[str] = "judges"

    store: str
    judges: tuple[dict[str, Any], ...]
    topics: tuple[dict[str, Any], ...]
    kinds: tuple[dict[str, Any], ...]
    title: ClassVar[str] = "Progress of judging"  # pyright: ignore[reportIncompatibleMethodOverride]

    def facts(self) -> Mapping[str, Any]:
        """Return the address of the store."""
        return {"store": self.store}

    def blocks(self) -> tuple[Block, ...]:
        """Return judges, topics, kinds, and the remaining work in a sentence."""
        counts = tuple((name, COUNT) for name in ("tasks", "done", "remaining", "labels", "skipped"))
        seconds = ("seconds", number(1), "median seconds")
        judges = columns_of(
            self.judges, ("judge", TEXT), ("kind", TEXT), *counts, seconds, ("last", TEXT, "last label")
        )
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
        """Number of graded pairs and remaining tasks, and the time that they will take."""
        pairs, graded = (sum(row[name] for row in self.topics) for name in ("pairs", "graded"))
        remaining = sum(row["remaining"] for row in self.judges)
        # An estimate needs a pace for each judge with remaining tasks.
        seconds = [row["remaining"] * row["seconds"] for row in self.judges if row["remaining"]]
        is_known = bool(seconds) and not np.isnan(sum(seconds))
        hours = f", about {sum(seconds) / 3600:.1f} hours at the current pace" if is_known else ""
        sentence = f"{graded:,} of {counted(pairs, 'pair')} {'has' if graded == 1 else 'have'} a grade"
        if not self.judges and pairs:
            return (f"{sentence}. No judge has started, and all judges can do all tasks.",)
        return (f"{sentence}. {counted(remaining, 'task remains', 'tasks remain')}{hours}.",)


def status(store: LabelStore) -> LabelStatus:
    """Summarize the progress of the judging in a store.

    Examples
    --------
    >>> from judged.labels import LabelStore, NewTask
    >>> store = LabelStore.open("sqlite://")
    >>> _ = store.add_judge("ann"), store.add_tasks([NewTask("q", "a"), NewTask("q", "b")])
    >>> store.add("ann", "q", "a", 2.0, seconds=4.0)
    >>> print(status(store).text().splitlines()[-1])
    1 of 2 pairs has a grade. 1 task remains, about 0.0 hours at the current pace.
    """
    labels, tasks = store.labels() if len(store) else None, store.all_tasks()
    texts = {row["query_id"]: row["text"] for row in store.topics()}
    rows: list[dict[str, Any]] = [] if labels is None else labels.last.to_pylist()
    # Judges with tasks are listed even before their first label.
    task_judges = dict.fromkeys(sorted({task.judge for task in tasks} - {""}), "human")
    kinds = task_judges | store.judges() | {row["judge"]: row["kind"] for row in rows}
    return LabelStatus(
        store.where,
        tuple(_judge_status(judge, kind, rows, tasks) for judge, kind in kinds.items()),
        tuple(_topic_status(texts, rows, tasks)),
        tuple(_kind_status(kind, labels) for kind in KINDS if labels is not None and kind in kinds.values()),
    )


def _judge_status(judge: str, kind: str, rows: Sequence[dict[str, Any]], tasks: Sequence[NewTask]) -> dict[str, Any]:
    judge_labels = [row for row in rows if row["judge"] == judge]
    targets = {(task.query_id, task.doc_id, task.repeat) for task in tasks if task.judge in {"", judge}}
    done = {(row["query_id"], row["doc_id"], row["repeat"]) for row in judge_labels if row["valid"]} & targets
    return {
        "judge": judge, "kind": kind, "tasks": len(targets), "done": len(done), "remaining": len(targets) - len(done),
        "labels": sum(row["valid"] and row["grade"] is not None for row in judge_labels),
        "skipped": sum(row["valid"] and row["grade"] is None for row in judge_labels),
        "seconds": _median([row["seconds"] for row in judge_labels]),
        "last": max((row["time"] for row in judge_labels), default=""),
    }  # fmt: skip


def _topic_status(
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
    topics = sorted(pairs.keys() | graded.keys())
    return [
        {"query_id": topic, "query": texts.get(topic, ""), "pairs": len(pairs[topic] | graded[topic]),
         "graded": len(graded[topic]), "labels": counts[topic]}
        for topic in topics
    ]  # fmt: skip


def _kind_status(kind: str, labels: Labels) -> dict[str, Any]:
    table = labels.graded
    rows = [row for row in table.select(["judge", "kind", "seconds"]).to_pylist() if row["kind"] == kind]
    seconds = _median([row["seconds"] for row in rows])
    return {"kind": kind, "judges": len({row["judge"] for row in rows}), "labels": len(rows), "seconds": seconds}


def _median(seconds: Sequence[float | None]) -> float:
    known_seconds = [value for value in seconds if value is not None]
    return statistics.median(known_seconds) if known_seconds else float("nan")
