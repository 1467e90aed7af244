"""The sections about single topics: differences between two runs, the lowest scores, and lists of both runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.slicing.derived import OUTCOME
from judged.comparison.slicing.parts import ALL
from judged.diagnosis.diff import diff
from judged.diagnosis.matrix import matrix as matrix_of_runs
from judged.diagnosis.matrix.points import BOTH, COVERAGE, RANKING
from judged.errors import JudgedError
from judged.reports.material import DEPTH, ReportPart, listed, quoted, shortened
from judged.results import (
    CHANGE,
    NUMBER,
    TEXT,
    Block,
    Chart,
    Column,
    RankedLists,
    ReferenceLine,
    Section,
    Sentences,
    Table,
)
from judged.results.charts import PALETTE
from judged.results.decimals import counted, decimal
from judged.scoring.evaluation.evaluate import select_measures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.comparison.slicing.scores import SlicedScores
    from judged.diagnosis.matrix import Matrix
    from judged.diagnosis.stages import Stages
    from judged.reports.material import Material
    from judged.results.types import Ints


CANDIDATES = "R@100"
_TOPICS = 40  # rows of a table of topics


def matrix(material: Material) -> ReportPart:
    """Set both runs and their slices against recall and the first measure, to tell what was not found."""
    names = material.two
    found = matrix_of_runs(
        material.qrels,
        [material.runs[name] for name in names],
        x=CANDIDATES,
        y=str(material.lead),
        slicing=material.slicing,
        baseline=names[0],
        seed=material.seed,
        resamples=material.resamples,
        **material.policies,
    )
    run = material.candidate
    said = (
        f"One dot a topic of {run}: {found.x} across, {found.y} upwards. The lines are the means of {found.baseline}:"
        f" {decimal(found.cuts[0], 3)} and {decimal(found.cuts[1], 3)}."
    )
    title = f"{run} by {found.x} and {found.y}"
    drawn = quoted(found.table("points"), "matrix_points")
    chart = Chart("matrix", title, drawn, said, draw=partial(found.chart, run))
    rows = found.topics_table(run)
    some = rows.take(range(min(_TOPICS, len(rows))))
    note = f"the first {_TOPICS} of {len(rows):,} topics" if len(rows) > _TOPICS else ""
    topics = quoted(some, "matrix_topics", title=f"Every topic of {run}", note=note)
    aside = () if material.baseline is None else tuple(found.describe_run(material.baseline))
    first = tuple(sentence for sentence in found.sentences if sentence not in aside)
    about = Sentences(aside, "matrix_aside", f"What the matrix shows of {material.baseline}", folded=True)
    section = Section("matrix", "Performance matrix", (Sentences(first), chart, topics, *((about,) if aside else ())))
    return ReportPart(section, {"matrix": found}, _failing(material, found))


def _failing(material: Material, found: Matrix) -> str:
    """Say on how many topics the candidate falls short, and of what."""
    counts = found.counts(material.candidate)
    ranking, coverage, both = (counts[name] for name in (RANKING, COVERAGE, BOTH))
    short = ranking + coverage + both
    if not short:
        return ""
    whose = "its own mean" if found.baseline == material.candidate else f"the mean of {found.baseline}"
    return (
        f"On {short:,} of {counted(len(material.scores.query_ids), 'topic')}, {material.candidate} is below {whose} in"
        f" {found.y}, in {found.x}, or in both: on {ranking:,} only in {found.y} (found, and ranked badly), on"
        f" {coverage:,} only in {found.x} (not found), on {both:,} in both."
    )


def by_stage(material: Material) -> ReportPart:
    """Say where the loss of both runs arises: what was not found, and what was ranked badly."""
    found, slicing = material.stages, material.slicing
    each = "each slice and run" if slicing is not None else listed(material.two[::-1])
    said = (
        f"A bar for {each}: the mean {found.measure}, then"
        f" what is lost of the best that could be attained, by ranking and by candidates (the first {DEPTH})."
    )
    chart = quoted(found.charts()["slices"], "stages", title=f"Where {found.measure} is lost", sentence=said)
    parts: list[Block] = [Sentences(found.sentences), chart]
    if found.baseline is not None:
        folded = slicing is not None
        parts.append(quoted(found.table("changes"), "stage_changes", title="What changed, by stage", folded=folded))
    worst = found.topics_table().take(range(min(_TOPICS, len(found.query_ids))))
    parts.append(quoted(worst, "stage_topics", title="Topics with the largest loss", folded=True))
    section = Section("stages", "Two stages: found, then ranked", tuple(parts))
    rests = found.provenance.warnings  # those of the evaluation, for two of its runs
    return ReportPart(
        section, {"stages": found}, found.headline, tuple(one for one in found.warnings if one not in rests)
    )


def slices(material: Material) -> ReportPart | None:
    """Show both runs by slice, and test where they differ."""
    if material.slicing is None:
        return None
    scores = select_measures(material.scores, material.scores.measures[:1])
    at = [scores.run_names.index(name) for name in material.two]
    runs = tuple(scores.runs[run] for run in at)
    scores = replace(scores, runs=runs, values=scores.values[at], counted=scores.counted[at])
    shown, measure = scores.by_slice(material.slicing, seed=material.seed), str(material.lead)
    said = (
        f"{measure} of {listed(scores.run_names)} by slice, with 95% intervals over topics. A slice with fewer topics"
        f" than it is judged by is marked, and not tested.{_ends(shown, material.candidate)}"
    )
    drawn = replace(shown.overview(), name="slice_scores", only="")
    parts: list[Block] = [Chart("slices", f"{measure} by slice", drawn, said, draw=shown.chart)]
    results: dict[str, Any] = {"slices": shown}
    sentences, warned = list(shown.sentences), list(shown.warnings)
    headline = next((text for row, text in shown.describe_differences() if row and row.better is False), "")
    if material.baseline is not None and material.tested is not None:
        tested = scores.compare_slices(material.slicing, material.baseline, seed=material.seed)
        results["slice comparison"] = tested
        sentences = [*tested.sentences, *sentences, material.caution]
        warned = [*tested.warnings, *warned]
        title = f"{material.candidate} against {material.baseline}"
        differences = {"name": "slice_differences", "title": title, "note": tested.caption, "only": ""}
        parts.append(replace(tested.overview(), **differences))
        headline = tested.sentences[0] if tested.sentences else headline
    if OUTCOME in material.by:
        bad = "on topics where it did badly, any other run does better by luck alone (regression to the mean)"
        warned.append(f"{OUTCOME} is that of {material.two[0]}: {bad}")
    new = tuple(text for text in dict.fromkeys(warned) if text not in scores.warnings)
    section = Section("slices", "By slice", (Sentences(tuple(dict.fromkeys(filter(None, sentences)))), *parts))
    return ReportPart(section, results, headline, new)


def _ends(shown: SlicedScores, run: str) -> str:
    """Name the slices with the lowest and the highest number of a run."""
    rows = [row for row in shown.estimates if row.run == run and row.part != ALL and not row.small]
    known = sorted((row.value, row.part) for row in rows if row.value == row.value)
    if len(known) < 2:
        return ""
    (least, low), (most, high) = known[0], known[-1]
    return f" Of {run}, {low} is lowest with {decimal(least)}, and {high} highest with {decimal(most)}."


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
        color="side",
        lines=(ReferenceLine("x", 0.0, dashed=False),),
        x_title=f"{material.lead}: {candidate} against {baseline}",
        colors={"gain": PALETTE[0], "loss": PALETTE[1]},
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
    sides = [block for block in answer.blocks() if isinstance(block, RankedLists)]
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


def _part(block: RankedLists, at: int, what: str, lost: str | None, *, alone: bool) -> RankedLists:
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
