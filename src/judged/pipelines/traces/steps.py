"""What a pipeline still holds behind each of its steps, and which relevant documents it has lost by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.run import Run
from judged.diagnosis.stages.split import ORDER
from judged.scoring.judging import judge

if TYPE_CHECKING:
    from judged._types import Bools
    from judged.data.qrels import Qrels
    from judged.pipelines.traces.traces import Stage, Traces
    from judged.scoring.judging import Judged

CORPUS = "corpus"
"""The part of the loss by what the corpus does not hold."""
UNRECORDED = "unrecorded"
"""The step of documents that were lost where the trace does not tell."""


def stages_to(traces: Traces, last: Stage) -> tuple[Stage, ...]:
    """Give the stages whose documents may come to the last one, and that one, those nearer to the query first."""
    wanted = {last.name}
    for stage in reversed(traces.stages):
        wanted |= set(stage.parents) if stage.name in wanted else set()
    return tuple(stage for stage in traces.stages if stage.name in wanted)


class StepSet(NamedTuple):
    """What all branches of a pipeline together still hold behind a step."""

    name: str
    documents: Judged  # as far as they are recorded
    known: Bools  # (T,): whether they are all recorded


def held_behind(
    traces: Traces, path: Sequence[Stage], judgments: Qrels, lists: Mapping[str, Judged], *, join: bool
) -> Iterator[StepSet]:
    """Yield the documents that all branches still hold behind each step; a step is named after its stages.

    With `join`, a step behind which nothing is known of any topic is joined with the next one: what both lose together
    is known, though not which of them.
    """
    topics = lists[path[-1].name].query_ids
    waiting: list[str] = []
    for step in range(1, path[-1].step + 1):
        waiting += [stage.name for stage in path if stage.step == step]
        passed = {stage.name for stage in path if stage.step <= step}
        needed = {parent for stage in path if stage.step > step for parent in stage.parents}
        held = [stage.name for stage in path if stage.name in passed & (needed | {path[-1].name})]
        known = recorded(traces, held, topics)
        if join and step < path[-1].step and not known.any():
            continue
        name, waiting = " + ".join(waiting), []
        documents = lists[held[0]] if len(held) == 1 else judge(judgments, traces.union(held))
        yield StepSet(f"{name} (stage)" if name in (CORPUS, ORDER, UNRECORDED) else name, documents, known)


def recorded(traces: Traces, stages: Iterable[str], query_ids: Sequence[str]) -> Bools:
    """Return for which queries the documents of all these stages are recorded: (T,)."""
    names = list(stages)
    return np.array([all(traces.documents(query, name) is not None for name in names) for query in query_ids], np.bool_)


def inside(judgments: Qrels, corpus: Iterable[str]) -> Run:
    """Give the judged documents that the corpus holds as a run."""
    known = set(corpus)
    pairs = zip(*(judgments.table[name].to_pylist() for name in ("query_id", "doc_id")), strict=True)
    kept = list(dict.fromkeys(pair for pair in pairs if pair[1] in known))
    columns = {"query_id": [query for query, _ in kept], "doc_id": [doc for _, doc in kept]}
    return Run.of(pa.table({**columns, "score": [-float(at) for at in range(len(kept))]}), name=CORPUS)


def relevant_in(shown: Judged, rel: float) -> Iterator[tuple[str, str, int, float]]:
    """Give topic, document, rank and grade of the relevant documents of a list."""
    names = shown.qrels.index.row_names
    for hit in np.flatnonzero(shown.relevant(rel)).tolist():
        yield shown.query_ids[shown.topic[hit]], names[shown.row[hit]], int(shown.rank[hit]), float(shown.grade[hit])


def lost_of(shown: Judged, sets: Sequence[StepSet], rel: float) -> Iterator[tuple[str, str, str, float]]:
    """Yield the relevant documents that the last set is not known to hold, with the step that lost each.

    That is the step behind the last set that holds it. If a set between it and the next one that is known to lack the
    document is not recorded, or there is no such set, the step is `UNRECORDED`.
    """
    labels = np.flatnonzero(shown.relevant_labels(rel))
    rows, topics = shown.label_row[labels], shown.label_topic[labels]
    holds = np.stack([np.isin(rows, one.documents.row) for one in sets])
    lacks = ~holds & np.stack([one.known[topics] for one in sets])
    names = shown.qrels.index.row_names
    for at in np.flatnonzero(~holds[-1]).tolist():
        held = np.flatnonzero(holds[:, at])
        behind = int(held[-1]) + 1 if len(held) else 0
        told = lacks[behind:, at].all() or sets[behind].name == CORPUS  # what is not in the corpus cannot come later
        step = sets[behind].name if told else UNRECORDED
        label = labels[at]
        yield shown.query_ids[topics[at]], names[rows[at]], step, float(shown.label_grade[label])
