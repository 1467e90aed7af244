"""One topic of one run, made small, so that whatever is asked of it is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.answer import beginning
from judged.errors import InputError, MeasureError
from judged.judging import judge
from judged.web.topics.listing import near_ids

if TYPE_CHECKING:
    from judged.data import Qrels
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace


def check_topic(workspace: Workspace, query_id: str) -> None:
    """Refuse a topic that does not exist, and name some that are like it."""
    if query_id not in workspace.qrels.index.codes:
        written = beginning(80).write
        near = ", ".join(map(written, near_ids(workspace.query_ids, query_id)))
        raise InputError(f"no topic {written(query_id)!r} is in the judgments", fix=f"near it are {near}")


def check_apart(measure: Measure) -> None:
    """Refuse a measure whose score of one topic depends on the others: of one topic alone it says something else."""
    if not measure.properties.topics_apart:
        problem = f"{measure} of one topic depends on the other topics: it cannot be told from this one alone"
        raise MeasureError(f"{problem}. Fix: take another measure, such as nDCG@10 or AP")


def scale_of(workspace: Workspace, query_id: str) -> Qrels:
    """Give the judgments of a topic, and of some more, so that every grade of the qrels is among them."""
    # The grades an unjudged document could have, and what other tools take for the highest grade, follow from all
    # judgments and not from those of one topic.
    index = workspace.qrels.index

    def _witnesses() -> frozenset[str]:
        _, first = np.unique(index.grade, return_index=True)
        return frozenset(index.topics[code] for code in index.topic[first].tolist())

    def _make() -> Qrels:
        return workspace.qrels.over({query_id} | workspace.remember(("grade witnesses",), _witnesses))

    return workspace.remember(("scale", query_id), _make)


def judged_topic(workspace: Workspace, query_id: str, run: str) -> Judged:
    """Judge one topic of a run by itself."""
    check_topic(workspace, query_id)
    workspace.judged(run)
    _, (alone,) = workspace.one_topic(query_id, [run])
    return judge(scale_of(workspace, query_id), alone).only(query_id)


def grades_of(workspace: Workspace, query_id: str) -> dict[str, float]:
    """Give the grade of each judged document, the highest where there are several."""
    index, code = workspace.qrels.index, workspace.qrels.index.codes[query_id]
    first, last = np.searchsorted(index.topic, [code, code + 1]).tolist()
    return {index.row_names[row]: float(index.grade[row]) for row in range(first, last)}


def state_of(grade: float | None, level: float) -> str:
    """Say in a word what a grade means.

    >>> state_of(2.0, 1.0), state_of(0.0, 1.0), state_of(None, 1.0), state_of(-2.0, -5.0)
    ('relevant', 'not relevant', 'unjudged', 'not relevant')
    """
    if grade is None:
        return "unjudged"
    return "relevant" if grade >= level and grade >= 0 else "not relevant"
