"""The section of judged lists side by side: the largest losses, the largest gain, and the worst topics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.answer import Lists, Section, Sentences
from judged.decimals import counted
from judged.diagnosis.diff import diff
from judged.reporting.material import Found, listed, shortened, worst_topics
from judged.reporting.where import prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.diff import Diff, TopicDiff
    from judged.diagnosis.stages import Stages
    from judged.reporting.material import Material

_LOSSES, _GAINS, _WORST = 4, 1, 3
_DEPTH = 10
_MISSED = 4  # of the relevant documents that are not shown, named


def lists(material: Material, split: Stages | None) -> Found | None:
    """Put the rankings of both runs next to each other, on the topics where that tells most."""
    chosen = _chosen(material)
    if not chosen:
        return None
    names = material.two
    qrels, runs = prepared(material, names)
    policies = material.scores.policies
    alone = len(runs) == 1
    found = diff(
        qrels,
        runs[0],
        runs[-1],
        topic=[material.scores.query_ids[at] for at in chosen],
        measure=material.lead,
        depth=_DEPTH,
        docs=material.docs,
        queries=material.topics,
        ties=policies.ties if policies.ties not in {"expected", "bounds"} else "docid",  # type: ignore[arg-type]
        precision=policies.precision,
    )
    baseline = material.comparison.choices.baseline if material.comparison else None
    shown = [f"{name} (baseline)" if name == baseline else name for name in names]
    parts = tuple(
        _side_by_side(f"lists{at}", found, topic, reason, shown, missed(split, topic.query_id), alone=alone)
        for at, (topic, reason) in enumerate(zip(found.topics, chosen.values(), strict=True), 1)
    )
    said = (
        f"The first {_DEPTH} documents of {listed(names)}"
        + (" on the topics with the worst scores." if alone else ", with where each document stands in the other list.")
        + " These are extremes, chosen by their scores: they show what can go wrong, not how often it does."
    )
    return Found(Section("lists", "Judged lists", (Sentences((said,)), *parts)), {} if alone else {"diff": found})


def _chosen(material: Material) -> dict[int, str]:
    """Choose topics, and say why: positions in the order in which they are shown."""
    gains = material.gains()
    order = [at for at in np.argsort(gains, kind="stable").tolist() if np.isfinite(gains[at])]
    found: dict[int, str] = {}
    for at in [at for at in order if gains[at] < 0][:_LOSSES]:
        found.setdefault(at, "loss")
    for at in worst_topics(material, _WORST):
        found.setdefault(at, "low score")
    for at in [at for at in reversed(order) if gains[at] > 0][:_GAINS]:
        found.setdefault(at, "gain")
    return found


def missed(split: Stages | None, query_id: str) -> str:
    """Name the relevant documents of a topic that the candidate does not show, best grade first."""
    if split is None or query_id not in split.query_ids:
        return ""
    known = split.trace.documents
    away = (known.topic == split.query_ids.index(query_id)) & ((known.candidate == 0) | (known.candidate > _DEPTH))
    places = np.flatnonzero(away).tolist()
    if not places:
        return ""
    ranks = [f"rank {rank}" if rank else "not returned" for rank in known.candidate[places].tolist()]
    named = [f"{known.doc[at]} (grade {known.grade[at]:g}, {rank})" for at, rank in zip(places, ranks, strict=True)]
    what = counted(len(places), "relevant document is", "relevant documents are")
    return f"{what} not among the first {_DEPTH} of {split.trace.name}: {listed(named, _MISSED)}."


def _side_by_side(
    name: str, found: Diff, topic: TopicDiff, reason: str, names: Sequence[str], lost: str, *, alone: bool
) -> Lists:
    kinds = {"loss": "Loss", "gain": "Gain", "low score": "Low score"}
    query = f": {shortened(topic.query, 90)}" if topic.query else ""
    title = f"{kinds[reason]}, topic {topic.query_id}{query}"
    rankings = topic.rankings(found.level, found.highest)
    if alone:
        items = tuple(replace(item, change="", sign="") for item in rankings[1].items)
        return Lists(name, title, (lost,) if lost else (), (replace(rankings[1], name=names[0], items=items),))
    both = (replace(ranking, name=run) for ranking, run in zip(rankings, names, strict=True))
    return Lists(name, title, (topic.sentence, lost) if lost else (topic.sentence,), tuple(both))
