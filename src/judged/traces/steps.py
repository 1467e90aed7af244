"""What a pipeline still holds behind each of its steps, and which relevant documents it has lost by then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from judged.data.run import Run
from judged.diagnosis.stages.split import ORDER
from judged.judging import judge

if TYPE_CHECKING:
    from judged.data.qrels import Qrels
    from judged.judging import Judged
    from judged.traces.traces import Stage, Traces

CORPUS = "corpus"
"""The part of the loss by what the corpus does not hold."""


def stages_to(traces: Traces, last: Stage) -> tuple[Stage, ...]:
    """Give the stages whose documents may come to the last one, and that one, those nearer to the query first."""
    wanted = {last.name}
    for stage in reversed(traces.stages):
        wanted |= set(stage.parents) if stage.name in wanted else set()
    return tuple(stage for stage in traces.stages if stage.name in wanted)


def held_behind(
    traces: Traces, path: Sequence[Stage], judgments: Qrels, lists: Mapping[str, Judged]
) -> Iterator[tuple[str, Judged]]:
    """Give, behind each step, the documents that all branches still hold; a step is named after its stages."""
    for step in range(1, path[-1].step + 1):
        here = [stage.name for stage in path if stage.step == step]
        passed = {stage.name for stage in path if stage.step <= step}
        needed = {parent for stage in path if stage.step > step for parent in stage.parents}
        held = [stage.name for stage in path if stage.name in passed & (needed | {path[-1].name})]
        name = " + ".join(here)
        documents = lists[held[0]] if len(held) == 1 else judge(judgments, traces.union(held))
        yield f"{name} (stage)" if name in (CORPUS, ORDER) else name, documents


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


def lost_of(shown: Judged, sets: Sequence[tuple[str, Judged]], rel: float) -> Iterator[tuple[str, str, str, float]]:
    """Give the relevant documents that the last set does not hold, with the step behind which none holds them."""
    labels = np.flatnonzero(shown.relevant_labels(rel))
    rows = shown.label_row[labels]
    inside = np.stack([np.isin(rows, documents.row) for _, documents in sets])
    names = shown.qrels.index.row_names
    for at in np.flatnonzero(~inside[-1]).tolist():
        held = np.flatnonzero(inside[:, at])
        step = sets[int(held[-1]) + 1 if len(held) else 0][0]
        label = labels[at]
        yield shown.query_ids[shown.label_topic[label]], names[rows[at]], step, float(shown.label_grade[label])
