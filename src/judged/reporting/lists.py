"""The section of judged lists side by side: the largest losses, the largest gain, and the worst topics."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.answer import Lists, Section, Sentences
from judged.decimals import counted
from judged.diagnosis.diff import diff
from judged.errors import JudgedError
from judged.reporting.material import Found, listed, shortened

if TYPE_CHECKING:
    from judged.diagnosis.stages import Stages
    from judged.reporting.material import Material

_LOSSES, _GAINS, _WORST = 4, 1, 3
_DEPTH = 10
_MISSED = 4  # of the relevant documents that are not shown, named


def lists(material: Material) -> Found | None:
    """Put the rankings of both runs next to each other, on the topics where that tells most."""
    qrels, runs, policies = material.rankings(*material.two)
    chosen = _chosen(material)
    if not chosen:
        return None
    topics = [material.scores.query_ids[at] for at in chosen]
    answer = diff(
        qrels,
        runs[0],
        runs[-1],
        topic=topics,
        measure=material.lead,
        depth=_DEPTH,
        docs=material.docs,
        queries=material.topics,
        **policies,
    )
    split: Stages | None = None
    with suppress(JudgedError):  # the section about stages names why there is none
        split = material.stages
    alone = len(runs) == 1
    sides = [block for block in answer.blocks() if isinstance(block, Lists)]
    parts = [
        _part(block, at, what, split and _missed(split, topic), alone=alone)
        for at, (topic, what, block) in enumerate(zip(topics, chosen.values(), sides, strict=True), 1)
    ]
    said = (
        f"The first {_DEPTH} documents of {listed(material.two)}"
        + (" on the topics with the worst scores." if alone else ", with where each document stands in the other list.")
        + " These are extremes, chosen by their scores: they show what can go wrong, not how often it does."
    )
    section = Section("lists", "Judged lists", (Sentences((said,)), *parts))
    return Found(section, {} if alone else {"diff": answer})


def _part(block: Lists, at: int, what: str, lost: str | None, *, alone: bool) -> Lists:
    """Say why a topic is shown, and what is missing; of the only run, which is beside itself, show one list."""
    rankings, said = block.rankings, block.sentences
    if alone:
        items = tuple(replace(item, change="", sign="") for item in rankings[1].items)
        rankings, said = (replace(rankings[1], items=items),), ()
    title, said = f"{what}, {shortened(block.title, 100)}", (*said, lost) if lost else said
    return replace(block, name=f"lists{at}", title=title, sentences=said, rankings=rankings, only="")


def _chosen(material: Material) -> dict[int, str]:
    """Choose topics, and say why: positions in the order in which they are shown."""
    gains = material.gains
    order = [at for at in np.argsort(gains, kind="stable").tolist() if np.isfinite(gains[at])]
    chosen = dict.fromkeys([at for at in order if gains[at] < 0][:_LOSSES], "Loss")
    for at in material.worst_topics(_WORST):
        chosen.setdefault(at, "Low score")
    for at in [at for at in reversed(order) if gains[at] > 0][:_GAINS]:
        chosen.setdefault(at, "Gain")
    return chosen


def _missed(split: Stages, query_id: str) -> str:
    """Name the relevant documents of a topic that the candidate does not show, best grade first."""
    if query_id not in split.query_ids:
        return ""
    known = split.trace.documents
    away = (known.topic == split.query_ids.index(query_id)) & ((known.candidate == 0) | (known.candidate > _DEPTH))
    named = [
        f"{known.doc[at]} (grade {known.grade[at]:g}, {f'rank {rank}' if rank else 'not returned'})"
        for at, rank in zip(np.flatnonzero(away).tolist(), known.candidate[away].tolist(), strict=True)
    ]
    what = counted(len(named), "relevant document is", "relevant documents are")
    return f"{what} not among the first {_DEPTH} of {split.trace.name}: {listed(named, _MISSED)}." if named else ""
