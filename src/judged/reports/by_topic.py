"""Sections about single topics: differences between two runs, slices, stages, lowest scores, and ranked lists."""

from __future__ import annotations

import math
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
from judged.reports.report_data import DEPTH, ReportPart, embed_block, join_names, shorten_line
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
    from judged.reports.report_data import ReportData
    from judged.results.types import Ints


CANDIDATES = "R@100"
_MAX_TABLE_TOPICS = 40  # rows of a table of topics


def matrix(data: ReportData) -> ReportPart:
    """Build the performance matrix: both runs and their slices by recall and the first measure."""
    names = data.compared_names
    result = matrix_of_runs(
        data.qrels,
        [data.runs[name] for name in names],
        x=CANDIDATES,
        y=str(data.main_measure),
        slicing=data.slicing,
        baseline=names[0],
        seed=data.seed,
        resamples=data.resamples,
        **data.policies,
    )
    run = data.candidate
    caption = (
        f"Each dot is a topic of {run}: with {result.x} on the horizontal axis and {result.y} on the vertical axis."
        f" The lines show the two means of {result.baseline}: {decimal(result.cuts[0], 3)} and"
        f" {decimal(result.cuts[1], 3)}."
    )
    title = f"{run} by {result.x} and {result.y}"
    points = embed_block(result.table("points"), "matrix_points")
    chart = Chart("matrix", title, points, caption, draw=partial(result.chart, run))
    rows = result.topics_table(run)
    note = f"the first {_MAX_TABLE_TOPICS} of {len(rows):,} topics" if len(rows) > _MAX_TABLE_TOPICS else ""
    first_rows = rows.take(range(min(_MAX_TABLE_TOPICS, len(rows))))
    topics = embed_block(first_rows, "matrix_topics", title=f"Topics of {run}", note=note)
    of_baseline = () if data.baseline is None else tuple(result.describe_run(data.baseline))
    of_candidate = tuple(sentence for sentence in result.sentences if sentence not in of_baseline)
    folded = Sentences(of_baseline, "matrix_baseline", f"Performance matrix of {data.baseline}", folded=True)
    blocks = (Sentences(of_candidate), chart, topics, *((folded,) if of_baseline else ()))
    section = Section("matrix", "Performance matrix", blocks)
    return ReportPart(section, {"matrix": result}, _failure_sentence(data, result))


def _failure_sentence(data: ReportData, result: Matrix) -> str:
    counts = result.counts(data.candidate)
    ranking, coverage, both = (counts[name] for name in (RANKING, COVERAGE, BOTH))
    failed = ranking + coverage + both
    if not failed:
        return ""
    mean = "its own mean" if result.baseline == data.candidate else f"the mean of {result.baseline}"
    return (
        f"On {failed:,} of {counted(len(data.scores.query_ids), 'topic')}, {data.candidate} is below {mean} over all"
        f" topics in {result.y}, in {result.x}, or in both measures. Only {result.y} is below the mean on"
        f" {counted(ranking, 'topic')}: relevant documents are retrieved but ranked low. Only {result.x} is below the"
        f" mean on {counted(coverage, 'topic')}: relevant documents are not retrieved. Both measures are below the mean"
        f" on {counted(both, 'topic')}."
    )


def by_stage(data: ReportData) -> ReportPart:
    """Show the losses of both runs by stage: missing candidates, and their ranking."""
    result, slicing = data.stages, data.slicing
    bar_subject = "each slice and run" if slicing is not None else join_names(data.compared_names[::-1])
    caption = (
        f"For {bar_subject}, the bar shows the mean {result.measure}, then the loss due to ranking, then the loss due"
        f" to relevant documents that are missing in the top {DEPTH}. The end of the bar is the best possible score."
    )
    chart = embed_block(
        result.charts()["slices"], "stages", title=f"Loss of {result.measure} by stage", sentence=caption
    )
    blocks: list[Block] = [Sentences(result.sentences), chart]
    if result.baseline is not None:
        changes, folded = result.table("changes"), slicing is not None
        blocks.append(embed_block(changes, "stage_changes", title="Changes by stage", folded=folded))
    largest_losses = result.topics_table().take(range(min(_MAX_TABLE_TOPICS, len(result.query_ids))))
    blocks.append(embed_block(largest_losses, "stage_topics", title="Topics with the largest loss", folded=True))
    section = Section("stages", "Losses by stage", tuple(blocks))
    # The warnings of the evaluation are in the report already.
    new = tuple(warning for warning in result.warnings if warning not in result.provenance.warnings)
    return ReportPart(section, {"stages": result}, result.summary, new)


def slices(data: ReportData) -> ReportPart | None:
    """Show both runs by slice, and test their differences."""
    if data.slicing is None:
        return None
    scores = select_measures(data.scores, data.scores.measures[:1])
    rows = [scores.run_names.index(name) for name in data.compared_names]
    runs = tuple(scores.runs[row] for row in rows)
    scores = replace(scores, runs=runs, values=scores.values[rows], counted=scores.counted[rows])
    by_slice, measure = scores.by_slice(data.slicing, seed=data.seed), str(data.main_measure)
    caption = (
        f"{measure} of {join_names(scores.run_names)} by slice, with 95% CIs over topics. Slices with too few topics"
        f" are marked and not tested.{_extreme_slices_sentence(by_slice, data.candidate)}"
    )
    table = replace(by_slice.overview(), name="slice_scores", only="")
    blocks: list[Block] = [Chart("slices", f"{measure} by slice", table, caption, draw=by_slice.chart)]
    results: dict[str, Any] = {"slices": by_slice}
    sentences, warnings = list(by_slice.sentences), list(by_slice.warnings)
    headline = next((text for row, text in by_slice.describe_differences() if row and row.better is False), "")
    if data.baseline is not None and data.tested_measure is not None:
        comparison = scores.compare_slices(data.slicing, data.baseline, seed=data.seed)
        results["slice comparison"] = comparison
        sentences = [*comparison.sentences, *sentences, data.caution]
        warnings = [*comparison.warnings, *warnings]
        title = f"{data.candidate} against {data.baseline}"
        differences = {"name": "slice_differences", "title": title, "note": comparison.caption, "only": ""}
        blocks.append(replace(comparison.overview(), **differences))
        headline = comparison.sentences[0] if comparison.sentences else headline
    # Slices by the outcome of a run on the same topics are selected by the dependent variable.
    if OUTCOME in data.by:
        run = data.compared_names[0]
        bias = "all other runs tend to score higher by chance (regression to the mean)"
        warnings.append(
            f"The values of {OUTCOME} are computed from the results of {run}. On topics where {run} scored low, {bias}"
        )
    new = tuple(text for text in dict.fromkeys(warnings) if text not in scores.warnings)
    unique_sentences = tuple(dict.fromkeys(filter(None, sentences)))
    section = Section("slices", "Slices", (Sentences(unique_sentences), *blocks))
    return ReportPart(section, results, headline, new)


def _extreme_slices_sentence(by_slice: SlicedScores, run: str) -> str:
    rows = [row for row in by_slice.estimates if row.run == run and row.part != ALL and not row.small]
    ranked = sorted((row.value, row.part) for row in rows if not math.isnan(row.value))
    if len(ranked) < 2:
        return ""
    (low_value, low), (high_value, high) = ranked[0], ranked[-1]
    return f" {run} scores lowest on {low} ({decimal(low_value)}) and highest on {high} ({decimal(high_value)})."


_MAX_BARS = 60  # more bars are not readable
_MAX_TIES = 10  # more topics without a difference would leave the chart mostly empty
_BARS_PER_SIDE = 20  # losses, and gains, if there are more than _MAX_BARS
_LOWEST = 10
_NAMED_TOPICS = 3
_LABEL_LENGTH = 44  # characters of a query in the label of a bar


def differences(data: ReportData) -> ReportPart | None:
    """Plot the difference of candidate and baseline on each topic."""
    gains, candidate, baseline = data.gains, data.candidate, data.baseline
    scored = np.flatnonzero(np.isfinite(gains))
    if baseline is None or not len(scored):
        return None
    order = scored[np.argsort(-gains[scored], kind="stable")]
    different = order[gains[order] != 0]
    if not len(different):
        topics = "the only topic" if len(scored) == 1 else f"all {counted(len(scored), 'topic')}"
        equal = f"{candidate} and {baseline} have the same {data.main_measure} on {topics}."
        return ReportPart(Section("topics", "Differences by topic", (Sentences((equal,)),)))
    losses = different[gains[different] < 0][::-1]
    largest = _topics_with_gains(data, losses[:_NAMED_TOPICS])
    suffix = (
        f". The largest {'loss is' if len(largest) == 1 else 'losses are'} on {join_names(largest)}" if largest else ""
    )
    sentence = (
        f"{candidate} is better than {baseline} on {counted(len(different) - len(losses), 'topic')}, worse on"
        f" {len(losses):,}, and equal on {len(scored) - len(different):,}, by {data.main_measure}{suffix}."
    )
    hint = (
        " Lower scores are better, so a bar to the right shows that {candidate} has a lower score."
        if data.direction < 0
        else ""
    )
    chart = Chart(
        "topics",
        f"{data.main_measure} by topic: {candidate} against {baseline}",
        *_gain_table(data, order, different),
        kind="bars",
        x="gain",
        y="label",
        color="side",
        lines=(ReferenceLine("x", 0.0, dashed=False),),
        x_title=f"{data.main_measure}: {candidate} against {baseline}",
        colors={"gain": PALETTE[0], "loss": PALETTE[1]},
        legend=False,
    )
    section = Section("topics", "Differences by topic", (Sentences((sentence + hint,)), chart))
    return ReportPart(section, headline=sentence)


def _gain_table(data: ReportData, order: Ints, different: Ints) -> tuple[Table, str]:
    """Return the table of the topics in the chart, and its caption."""
    ties = len(order) - len(different)
    # Many ties leave the differences unreadable, so they are omitted from the chart.
    plotted = different if ties > _MAX_TIES or len(order) > _MAX_BARS else order
    omitted = " The chart omits topics without a difference." if len(plotted) < len(order) else ""
    if len(plotted) > _MAX_BARS:
        plotted = np.concatenate([plotted[:_BARS_PER_SIDE], plotted[-_BARS_PER_SIDE:]])
        omitted = f" The chart shows only the largest gains and losses among {counted(len(order), 'topic')}."
    best, worst = _topics_with_gains(data, order[[0, -1]])
    caption = f"Improvement of {data.candidate} over {data.baseline} on each topic, sorted from {best} to {worst}."
    gains = data.gains[plotted]
    labels = [f"{name} {data.query_text(name, _LABEL_LENGTH)}".rstrip() for name in _ids(data, plotted)]
    columns = (
        *_topic_columns(data, plotted, ("baseline", "candidate")),
        Column("gain", gains.tolist(), CHANGE),
        Column("label", labels, only="data"),
        Column("side", ["gain" if gain > 0 else "loss" for gain in gains.tolist()], only="data"),
    )
    return Table("topic_gains", columns, labels=_label_count(data)), f"{caption}{omitted}"


def _ids(data: ReportData, topic_indices: Ints) -> list[str]:
    return [data.scores.query_ids[i] for i in topic_indices.tolist()]


def _topics_with_gains(data: ReportData, topic_indices: Ints) -> list[str]:
    gains = data.gains[topic_indices].tolist()
    return [f"{name} ({decimal(gain, 3, '+')})" for name, gain in zip(_ids(data, topic_indices), gains, strict=True)]


def _topic_columns(data: ReportData, topic_indices: Ints, roles: Sequence[str]) -> list[Column]:
    """Return columns of topic ids, queries, and the scores of the runs with these roles."""
    ids = _ids(data, topic_indices)
    queries = [data.query_text(query_id) for query_id in ids]
    runs = ((role, getattr(data, role)) for role in roles)
    return [
        Column("query_id", ids, TEXT, "topic"),
        *([] if data.topics is None else [Column("query", queries, TEXT)]),
        *(Column(role, data.run_scores(run)[topic_indices].tolist(), NUMBER, run) for role, run in runs if run),
    ]


def _label_count(data: ReportData) -> int:
    return 1 if data.topics is None else 2


def lowest(data: ReportData) -> ReportPart | None:
    """List the topics with the lowest scores of the candidate, with the scores of other runs."""
    worst = np.array(data.worst_topics(_LOWEST), dtype=np.int64)
    if not len(worst):
        return None
    columns = _topic_columns(data, worst, ("candidate", "baseline"))
    sentence = (
        f"The table lists the {counted(len(worst), 'topic')} on which {data.candidate} has the worst"
        f" {data.main_measure}."
    )
    if len(data.scores.runs) > 2:
        by_run = data.scores.values[:, 0, worst]
        best = (np.nanmax if data.direction > 0 else np.nanmin)(by_run, axis=0)
        columns.append(Column("median", np.nanmedian(by_run, axis=0).tolist(), NUMBER, "median run"))
        columns.append(Column("best", best.tolist(), NUMBER, "best run"))
        sentence += (
            " If the best run also scores low on a topic, the topic is hard for all runs, or its judgments are"
            f" incomplete. If the best run scores high, {data.candidate} ranks relevant documents lower than the"
            " best run, or does not return these documents."
        )
    zeros = _ids(data, np.flatnonzero(data.run_scores(data.candidate) == 0)) if data.direction > 0 else []
    zero_topics = f"{counted(len(zeros), 'topic')} ({join_names(zeros, _NAMED_TOPICS)})"
    headline = f"{data.candidate} scores 0 in {data.main_measure} on {zero_topics}." if zeros else ""
    table = Table("lowest_topics", tuple(columns), "Lowest scores", labels=_label_count(data))
    return ReportPart(Section("lowest", "Worst topics", (Sentences((sentence,)), table)), headline=headline)


_RANK_CHANGES = ", with the rank of each document in the other list."
_LOSSES, _GAINS, _LOWEST_SCORES = 4, 1, 3
_DEPTH = 10
_NAMED_DOCUMENTS = 4  # of the relevant documents beyond _DEPTH


def lists(data: ReportData) -> ReportPart | None:
    """Show the rankings of both runs side by side, for the topics with the largest differences and lowest scores."""
    qrels, runs, policies = data.rankings(*data.compared_names)
    reasons = _select_topics(data)
    if not reasons:
        return None
    topics = [data.scores.query_ids[i] for i in reasons]
    answer = diff(
        qrels,
        runs[0],
        runs[-1],
        topic=topics,
        measure=data.main_measure,
        cutoff=_DEPTH,
        texts=data.texts,
        queries=data.topics,
        **policies,
    )
    stages: Stages | None = None
    with suppress(JudgedError):  # the section about stages reports this error
        stages = data.stages
    is_single_run = len(runs) == 1
    blocks = [block for block in answer.blocks() if isinstance(block, RankedLists)]
    parts = [
        _list_block(block, i, reason, _missing_documents_sentence(stages, topic), is_single_run=is_single_run)
        for i, (topic, reason, block) in enumerate(zip(topics, reasons.values(), blocks, strict=True), 1)
    ]
    sentence = (
        f"The lists show the top {_DEPTH} documents of {'run' if is_single_run else 'the runs'}"
        f" {join_names(data.compared_names)}"
        + (" on the topics with the worst scores." if is_single_run else _RANK_CHANGES)
        + " The topics in the lists were selected because of extreme scores, so the lists show what can go wrong, but"
        " not how often."
    )
    section = Section("lists", "Ranked lists", (Sentences((sentence,)), *parts))
    return ReportPart(section, {} if is_single_run else {"diff": answer})


def _list_block(block: RankedLists, number: int, reason: str, missing: str, *, is_single_run: bool) -> RankedLists:
    rankings, sentences = block.rankings, block.sentences
    if is_single_run:  # the run was compared with itself: keep one list, without changes of ranks
        items = tuple(replace(item, change="", sign="") for item in rankings[1].items)
        rankings, sentences = (replace(rankings[1], items=items),), ()
    title, sentences = f"{reason}, {shorten_line(block.title, 100)}", (*sentences, missing) if missing else sentences
    return replace(block, name=f"lists{number}", title=title, sentences=sentences, rankings=rankings, only="")


def _select_topics(data: ReportData) -> dict[int, str]:
    """Return the reason for showing each selected topic, by topic index, in the order of presentation."""
    gains = data.gains
    order = [i for i in np.argsort(gains, kind="stable").tolist() if np.isfinite(gains[i])]
    # setdefault keeps the first reason: a topic with a loss and a low score is shown as a loss.
    reasons = dict.fromkeys([i for i in order if gains[i] < 0][:_LOSSES], "Loss")
    for i in data.worst_topics(_LOWEST_SCORES):
        reasons.setdefault(i, "Low score")
    for i in [i for i in reversed(order) if gains[i] > 0][:_GAINS]:
        reasons.setdefault(i, "Gain")
    return reasons


def _missing_documents_sentence(stages: Stages | None, query_id: str) -> str:
    if stages is None or query_id not in stages.query_ids:
        return ""
    documents = stages.trace.documents
    is_missing = (documents.candidate == 0) | (documents.candidate > _DEPTH)
    rows = np.flatnonzero((documents.topic == stages.query_ids.index(query_id)) & is_missing).tolist()
    if not rows:
        return ""
    ranks = [f"rank {documents.candidate[row]}" if documents.candidate[row] else "not returned" for row in rows]
    grades = [f"grade {documents.grade[row]:g}" for row in rows]
    names = [f"{documents.doc[row]} ({grade}, {rank})" for row, grade, rank in zip(rows, grades, ranks, strict=True)]
    subject = counted(len(names), "relevant document is", "relevant documents are")
    return f"{subject} not in the top {_DEPTH} of {stages.trace.name}: {join_names(names, _NAMED_DOCUMENTS)}."
