"""The section of judged lists side by side: the largest losses, the largest gain, and the worst topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from judged.answer import Item, Lists, Ranking, Section, Sentences
from judged.decimals import counted, decimal
from judged.diagnosis.diff import diff
from judged.reporting.material import Found, listed, shortened, worst_topics
from judged.reporting.where import prepared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.diagnosis.diff import DiffRow, TopicDiff
    from judged.diagnosis.stages import Stages
    from judged.reporting.material import Material

_LOSSES, _GAINS, _WORST = 4, 1, 3
_DEPTH = 10
_MISSED = 4  # of the relevant documents that are not shown, named
_TEXT = 160  # characters of a document


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
    level = float(getattr(material.lead, "rel", 0) or np.nextafter(0, 1))
    baseline = material.comparison.choices.baseline if material.comparison else None
    shown = [f"{name} (baseline)" if name == baseline else name for name in names]
    parts = tuple(
        _side_by_side(f"lists{at}", one, reason, shown, level, missed(split, one.query_id), alone=alone)
        for at, (one, reason) in enumerate(zip(found.topics, chosen.values(), strict=True), 1)
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
    name: str, one: TopicDiff, reason: str, names: Sequence[str], level: float, lost: str, *, alone: bool
) -> Lists:
    kinds = {"loss": "Loss", "gain": "Gain", "low score": "Low score"}
    query = f": {shortened(one.query, 90)}" if one.query else ""
    title = f"{kinds[reason]}, topic {one.query_id}{query}"
    if alone:
        said: tuple[str, ...] = (lost,) if lost else ()
        rankings = (_ranking(one, 1, names[0], level, other=False),)
    else:
        said = (one.sentence, lost) if lost else (one.sentence,)
        rankings = (_ranking(one, 0, names[0], level, other=True), _ranking(one, 1, names[1], level, other=True))
    return Lists(name, title, said, rankings)


def _ranking(one: TopicDiff, which: Literal[0, 1], name: str, level: float, *, other: bool) -> Ranking:
    pair = one.scores[0]
    score = pair.second if which else pair.first
    said = f"{pair.measure} {decimal(score)}" if score == score else ""  # noqa: PLR0124  NaN is not equal to itself
    rows = one.side(which)
    if not rows:
        said = f"{said}; nothing was returned" if said else "Nothing was returned"
    return Ranking(name, said, tuple(_item(row, which, level, other=other) for row in rows))


def _item(row: DiffRow, which: int, level: float, *, other: bool) -> Item:
    here, there = (row.second_rank, row.first_rank) if which else (row.first_rank, row.second_rank)
    change = _change(row, which, there) if other else ""
    return Item(
        rank=str(here),
        doc_id=row.doc_id,
        grade="" if row.grade is None else f"grade {row.grade:g}",
        relevant=None if row.grade is None else row.grade >= level,
        change=change,
        text="" if row.text == row.doc_id else shortened(row.text, _TEXT),
    )


def _change(row: DiffRow, which: int, there: int | None) -> str:
    """Say where a document stands in the other list, and in the second one what that is worth."""
    if there is None:
        place = "new" if which else "gone"
    elif row.places == 0:
        place = "same rank"
    else:
        place = f"from {there}" if which else f"to {there}"
    worth: Any = row.changes[0] if row.changes else None
    if worth is None or abs(worth) < 0.00005 or (which == 0 and row.second_rank is not None):
        return place
    return f"{place}, {decimal(worth, 4, '+')}"
