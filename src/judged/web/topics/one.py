"""One topic of one run, made small, so that whatever is asked of it is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from judged.errors import InputError, MeasureError
from judged.judging import judge
from judged.web.topics.listing import near_ids

if TYPE_CHECKING:
    from judged.data import Qrels
    from judged.judging import Judged
    from judged.measures import Measure
    from judged.web.workspace import Workspace


def number(value: float) -> float | None:
    """Give None for a score that does not exist."""
    return None if np.isnan(value) else value


def check_topic(workspace: Workspace, query_id: str) -> None:
    """Refuse a topic that does not exist, and name some that are like it."""
    if query_id not in workspace.qrels.index.codes:
        near = ", ".join(_shortened(one) for one in near_ids(workspace.query_ids, query_id))
        raise InputError(f"no topic {_shortened(query_id)!r} is in the judgments", fix=f"near it are {near}")


def _shortened(query_id: str) -> str:
    return query_id if len(query_id) <= 80 else f"{query_id[:77]}..."


def check_apart(measure: Measure) -> None:
    """Refuse a measure whose score of one topic depends on the others: of one topic alone it says something else."""
    if not measure.properties.topics_apart:
        problem = f"{measure} of one topic depends on the other topics: it cannot be told from this one alone"
        raise MeasureError(f"{problem}. Fix: take another measure, such as nDCG@10 or AP")


def scale_of(workspace: Workspace, query_id: str) -> Qrels:
    """Give the judgments of a topic, and of some more, so that every grade of the qrels is among them."""
    # The grades an unjudged document could have, and what other tools take for the highest grade, follow from all
    # judgments and not from those of one topic.

    def _witnesses() -> frozenset[str]:
        index = workspace.qrels.index
        _, first = np.unique(index.grade, return_index=True)
        return frozenset(index.topics[code] for code in index.topic[first].tolist())

    def _make() -> Qrels:
        return workspace.qrels.over({query_id} | workspace.remember(("grade witnesses",), _witnesses))

    return workspace.remember(("scale", query_id), _make)


def judged_topic(workspace: Workspace, query_id: str, run: str) -> Judged:
    """Judge one topic of a run by itself."""
    check_topic(workspace, query_id)
    workspace.judged(run)

    _, (one,) = workspace.one_topic(query_id, [run])
    return judge(scale_of(workspace, query_id), one).only(query_id)
