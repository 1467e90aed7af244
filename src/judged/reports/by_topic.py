"""The sections about single topics: differences between two runs, the lowest scores, and lists of both runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from judged.diagnosis.diff import diff
from judged.errors import JudgedError
from judged.reports.material import ReportPart, listed, shortened
from judged.results import CHANGE, NUMBER, TEXT, Chart, Column, Line, Lists, Section, Sentences, Table
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Ints
    from judged.diagnosis.stages import Stages
    from judged.reports.material import Material

_ALL = 60  # topics: as many bars can be read
_SAME = 10  # topics without a difference: more of them are no more than white space
_ENDS = 20  # where there are more: this many losses, and as many gains
_LOWEST = 10
_NAMED = 3
_LABEL = 44  # characters of a query beside a bar


def differences(material: Material) -> ReportPart | None:
    """Draw and list by how much the candidate is better or worse on each topic."""
    gains, candidate, baseline = material.gains, material.candidate, material.baseline
    known = np.flatnonzero(np.isfinite(gains))
    if baseline is None or not len(known):
        return None
    order = known[np.argsort(-gains[known], kind="stable")]
    apart = order[gains[order] != 0]
    if not len(apart):
        every = "the only topic" if len(known) == 1 else f"every one of {counted(len(known), 'topic')}"
        same = f"{candidate} and {baseline} have the same {material.lead} on {every}."
        return ReportPart(Section("topics", "Topic by topic", (Sentences((same,)),)))
    lost = apart[gains[apart] < 0][::-1]
    won = len(apart) - len(lost)
    most = f"; it loses most on {listed(_named(material, lost[:_NAMED]))}" if len(lost) else ""
    said = (
        f"{candidate} is better than {baseline} on {counted(won, 'topic')}, worse on {len(lost):,}, and equal on"
        f" {len(known) - len(apart):,}, by {material.lead}{most}."
    )
    lower = " Lower is better here, so a bar to the right is a lower score." if material.better < 0 else ""
    chart = Chart(
        "topics",
        f"{material.lead} by topic: {candidate} against {baseline}",
        *_drawn(material, order, apart),
        kind="bars",
        x="gain",
        y="label",
        colour="side",
        lines=(Line("x", 0.0, dashed=False),),
        x_title=f"{material.lead}: {candidate} against {baseline}",
        colours={"gain": PALETTE[0], "loss": PALETTE[1]},
        legend=False,
    )
    section = Section("topics", "Topic by topic", (Sentences((said + lower,)), chart))
    return ReportPart(section, headline=said)


def _drawn(material: Material, order: Ints, apart: Ints) -> tuple[Table, str]:
    """Choose the topics that are drawn, and say which they are."""
    same = len(order) - len(apart)
    shown = apart if same > _SAME or len(order) > _ALL else order
    cut = " Those without a difference are not drawn." if len(shown) < len(order) else ""
    if len(shown) > _ALL:
        shown = np.concatenate([shown[:_ENDS], shown[-_ENDS:]])
        cut = f" Of {counted(len(order), 'topic')} the largest gains and losses are shown."
    best, last = _named(material, order[[0, -1]])
    how = f"By how much {material.candidate} is better than {material.baseline} on each topic"
    gains = material.gains[shown]
    columns = (
        *_topics(material, shown, ("baseline", "candidate")),
        Column("gain", gains.tolist(), CHANGE),
        Column("label", [f"{at} {material.query(at, _LABEL)}".rstrip() for at in _ids(material, shown)], only="data"),
        Column("side", ["gain" if gain > 0 else "loss" for gain in gains.tolist()], only="data"),
    )
    return Table("topic_gains", columns, labels=_labels(material)), f"{how}, from {best} to {last}.{cut}"


def _ids(material: Material, at: Ints) -> list[str]:
    return [material.scores.query_ids[place] for place in at.tolist()]


def _named(material: Material, at: Ints) -> list[str]:
    gains = material.gains[at].tolist()
    return [f"{name} ({decimal(gain, 3, '+')})" for name, gain in zip(_ids(material, at), gains, strict=True)]


def _topics(material: Material, at: Ints, roles: Sequence[str]) -> list[Column]:
    """Give the columns that name topics, and the scores of the runs that are looked at."""
    ids = _ids(material, at)
    queries = [material.query(query_id) for query_id in ids]
    runs = ((role, getattr(material, role)) for role in roles)
    return [
        Column("query_id", ids, TEXT, "topic"),
        *([] if material.topics is None else [Column("query", queries, TEXT)]),
        *(Column(role, material.of(run)[at].tolist(), NUMBER, run) for role, run in runs if run is not None),
    ]


def _labels(material: Material) -> int:
    return 1 if material.topics is None else 2


def lowest(material: Material) -> ReportPart | None:
    """List the topics with the lowest scores of the candidate, beside what the other runs have there."""
    worst = np.array(material.worst_topics(_LOWEST), dtype=np.int64)
    if not len(worst):
        return None
    columns = _topics(material, worst, ("candidate", "baseline"))
    said = f"The {counted(len(worst), 'topic')} with the worst {material.lead} of {material.candidate}."
    if len(material.scores.runs) > 2:
        by_run = material.scores.values[:, 0, worst]
        best = (np.nanmax if material.better > 0 else np.nanmin)(by_run, axis=0)
        columns.append(Column("median", np.nanmedian(by_run, axis=0).tolist(), NUMBER, "median run"))
        columns.append(Column("best", best.tolist(), NUMBER, "best run"))
        said += (
            " Where the best run is low too, the topic is hard for all of them, or its judgments are the reason;"
            " where the best run is high, this run misses what others find."
        )
    zeros = _ids(material, np.flatnonzero(material.of(material.candidate) == 0)) if material.better > 0 else []
    on = f"{counted(len(zeros), 'topic')} ({listed(zeros, _NAMED)})"
    headline = f"{material.candidate} scores 0 in {material.lead} on {on}." if zeros else ""
    table = Table("lowest_topics", tuple(columns), "Lowest scores", labels=_labels(material))
    return ReportPart(Section("lowest", "Worst topics", (Sentences((said,)), table)), headline=headline)


_LOSSES, _GAINS, _WORST = 4, 1, 3
_DEPTH = 10
_MISSED = 4  # of the relevant documents that are not shown, named


def lists(material: Material) -> ReportPart | None:
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
        cutoff=_DEPTH,
        texts=material.texts,
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
    return ReportPart(section, {} if alone else {"diff": answer})


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
