"""Sections about all runs (leaderboard, cutoffs, method), about pipelines, answers, agents, and the summary."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from judged.errors import InputError, JudgedError
from judged.pipelines.rag import Responses, waterfall
from judged.pipelines.traces import Traces, failures, read_traces
from judged.pipelines.trajectories import Trajectories, evaluate, where
from judged.reports.answer import CHART_LIBRARIES
from judged.reports.report_data import ReportPart, embed_blocks, join_names
from judged.results import COUNT, TEXT, Block, Code, Column, Section, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.scoring.curves import curve
from judged.scoring.evaluation.summary import describe_rules, leaderboard_chart
from judged.scoring.measures.grammar import parse
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.reports.report_data import ReportData
    from judged.scoring.curves import Curves
    from judged.scoring.evaluation import Estimate


def waterfall_section(data: ReportData, responses: Any, traces: Any) -> ReportPart:
    """Build the waterfall of evidence behind answers, from the runs named like systems, or else from traces."""
    responses = Responses.of(responses)
    runs = {name: run for name, run in data.runs.items() if name in responses.run_names} or None
    if traces and not isinstance(traces, Traces):
        traces = read_traces(traces, topics=data.topics)
    answer = waterfall(responses, data.qrels, runs=runs, traces=None if runs else traces or None, slicing=data.slicing)
    blocks = (block for block in answer.blocks() if not (isinstance(block, Table) and block.folded))
    contents = (Sentences(answer.sentences), *embed_blocks("answers", blocks))
    section = Section("answers", "Evidence for answers, by pipeline stage", contents)
    return ReportPart(section, {"waterfall": answer}, answer.sentences[0], answer.warnings)


def agents_section(data: ReportData, trajectories: Any) -> ReportPart:
    """Show where agents lose evidence, and their scores, over the topics of the report."""
    trajectories = Trajectories.of(trajectories)
    if not (questions := {*data.scores.query_ids} & {*trajectories.query_ids}):
        fix = "use the same query ids"
        raise InputError("no question of the trajectories is a topic", fix=fix, path=trajectories.where)
    trajectories = trajectories.of_topics(questions)
    answer, scores = where(trajectories, data.qrels, slicing=data.slicing), evaluate(trajectories, qrels=data.qrels)
    blocks = [block for block in answer.blocks() if not (isinstance(block, Table) and block.folded)]
    contents = (Sentences(answer.sentences), *embed_blocks("agents", [*blocks, scores.summary().runs()]))
    section = Section("agents", "Evidence that agents lose", contents)
    warnings = tuple(dict.fromkeys([*answer.warnings, *scores.warnings]))
    return ReportPart(section, {"evidence_loss": answer, "agents": scores}, answer.sentences[0], warnings)


_MAX_CURVES = 5  # runs of a curve
_DEPTH = 100


def leaderboard(data: ReportData) -> ReportPart:
    """Build the table of all runs and measures, the chart of the first measure, and the tests of the compared pair."""
    comparison, title = data.comparison, "All runs and measures"
    if comparison is None:
        note = data.scores.interval_caption(IntervalMethod())
        board = replace(data.scores.summary().runs(), name="board", title=title, note=note, only="")
        return ReportPart(Section("leaderboard", "Leaderboard", (board,)))
    note = "; ".join([comparison.caption, *(measure.untested for measure in comparison.measures if measure.untested)])
    board = replace(comparison.leaderboard(), name="board", title=title, note=note, only="")
    blocks: list[Block] = [leaderboard_chart(data.main_measure, data.estimates, data.compared_names[::-1]), board]
    pairs = map(data.find_pair, comparison.measures)
    if sentences := tuple(pair.sentence for pair in pairs if pair):
        blocks.insert(0, Sentences(sentences))
    if data.tested_measure and len(data.tested_measure.pairs) > 1 and data.requested_baseline is not None:
        title = f"All runs against the baseline: {data.main_measure}"
        blocks.append(replace(comparison.pair_table(), name="against_baseline", title=title, folded=True, only=""))
    return ReportPart(Section("leaderboard", "Leaderboard", tuple(blocks)))


def cutoffs(data: ReportData) -> ReportPart | None:
    """Plot the first measure and recall by cutoff, for the best runs and the compared pair."""
    names = list(data.compared_names[::-1])
    # The compared pair is always included, then the best other runs.
    names += [name for name in data.ranked if name not in names][: _MAX_CURVES - len(names)]
    measures = dict.fromkeys([_measure_without_cutoff(data), "R"])
    curves = [curve for measure in measures if (curve := _curve(data, names, measure))]
    if not curves:
        return None
    sentences = ["If the lines of two runs cross, which run is better depends on the cutoff."]
    if omitted := len(data.ranked) - len(names):
        drawn_runs = join_names(names, _MAX_CURVES)
        sentences.insert(0, f"The chart shows only {drawn_runs}, and omits {counted(omitted, 'other run')}.")
    text = [Sentences(tuple(sentences))] if len(names) > 1 else []
    charts = (replace(curve.charts()["curves"], name=f"cutoffs{i}") for i, curve in enumerate(curves, 1))
    results = {f"curve {curve.name}": curve for curve in curves}
    return ReportPart(Section("cutoffs", "Measures by cutoff", (*text, *charts)), results)


def _measure_without_cutoff(data: ReportData) -> str:
    """Return the name of the first measure without its cutoff; nDCG if it has none."""
    measure = data.main_measure
    if measure.entry.cutoff is None or measure.entry.cutoff_name != "cutoff":
        return "nDCG"
    return str(measure.replace(cutoff=1)).removesuffix("@1")


def _curve(data: ReportData, names: list[str], measure: str) -> Curves | None:
    """Compute a measure by cutoff; None if there is no such curve for these runs."""
    series: Any = measure
    policies: dict[str, Any] = {**data.policies, "seed": data.seed}
    try:
        if policies.get("dialect"):  # parse the name here, so that it is not read as a name of the dialect's tool
            series, policies["cutoffs"] = parse(f"{measure}@{_DEPTH}"), _DEPTH
        return curve(data.qrels, [data.runs[name] for name in names], series, **policies)
    except JudgedError:
        return None


_MIN_TESTED_TOPICS = 2


def summary(data: ReportData) -> tuple[str, ...]:
    """Return the sentences of the summary; empty sentences for missing results."""
    return _input_sentence(data), _best_run_sentence(data), _tests_sentence(data), _power_sentence(data)


def _input_sentence(data: ReportData) -> str:
    scores = data.scores
    runs, topics = counted(len(scores.runs), "run was", "runs were"), counted(len(scores.query_ids), "topic")
    judgments, names = counted(scores.qrels.judgments, "judgment"), join_names(scores.measure_names, 6)
    return f"{runs} evaluated on {topics} with {judgments} ({scores.qrels.name}), by {names}."


def _best_run_sentence(data: ReportData) -> str:
    by_run = {estimate.run: estimate for estimate in data.estimates}
    best, *others = (by_run[name] for name in data.ranked)
    if math.isnan(best.value) or data.main_measure.properties.higher_is_better is None:
        return ""
    if not others:
        return f"{best.run} has {best.measure} = {_format_estimate(best)}."
    if all(data.has_equal_scores(best.run, other.run) for other in others):
        return f"{join_names(data.ranked)} have the same {best.measure} on every topic: {_format_estimate(best)}."
    # Equal means can hide different scores by topic; copies were handled above.
    equal = [other.run for other in others if other.value == best.value]
    suffix = f", the same value as {join_names(equal)}" if equal else ""
    return f"{best.run} has the best {best.measure}, {_format_estimate(best)}{suffix}."


def _format_estimate(estimate: Estimate) -> str:
    value = f"{estimate.value:.0f}" if estimate.aggregate in {"sum", "count"} else decimal(estimate.value)
    if estimate.ci is None:
        return value
    return f"{value} (95% CI [{decimal(estimate.ci[0], 3)}, {decimal(estimate.ci[1], 3)}])"


def _tests_sentence(data: ReportData) -> str:
    """Describe which runs differ significantly from the baseline, or from the best run."""
    comparison = data.tested_measure
    if data.comparison is None:
        return ""
    if comparison is None:
        reason = data.comparison.measures[0].untested
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""
    if all(pair.result.n < _MIN_TESTED_TOPICS for pair in comparison.pairs):
        return "No difference was tested, because a test requires at least two topics on which both runs have a score."
    reference = data.requested_baseline or data.ranked[0]
    others = [name for name in data.ranked if name != reference]
    better = [name for name in others if reference in comparison.better_than.get(name, ())]
    worse = [name for name in others if name in comparison.better_than.get(reference, ())]
    equal = [name for name in others if data.has_equal_scores(reference, name)]
    if len(equal) == len(others):
        return ""
    groups = {
        "significantly better": better,
        "significantly worse": worse,
        "equal scores on every topic": equal,
        "no significant difference": [name for name in others if name not in {*better, *worse, *equal}],
    }
    parts = [f"{description}: {join_names(names)}" for description, names in groups.items() if names]
    return f"Compared with {'the baseline ' if data.requested_baseline else ''}{reference}, {'; '.join(parts)}."


def _power_sentence(data: ReportData) -> str:
    """Describe the minimum detectable difference."""
    comparison = data.tested_measure
    pair = comparison and data.find_pair(comparison)
    if not comparison or not pair or math.isnan(pair.detectable):
        return ""
    correction = f", after correction for {comparison.family} comparisons" if comparison.family > 1 else ""
    return (
        f"With {counted(pair.result.n, 'topic')}, a true difference of {decimal(pair.detectable, 3)} in {pair.measure}"
        f" between {pair.second} and {pair.first} would be detected with 80% power{correction}. Tests often"
        f" miss true differences below {decimal(pair.detectable, 3)}."
    )


_MAX_GRADES = 12  # in the list of grades


def method(data: ReportData, warnings: Sequence[str], left_out: Sequence[str], command: str) -> Section:
    """Build the section with warnings, rules, files with hashes, versions, and the command."""
    scores = data.scores
    blocks: list[Block] = [Sentences(("The same files, seed, and versions produce an identical report.",))]
    if warnings:
        blocks.append(Sentences(tuple(warnings), "warnings", "Warnings"))
    if left_out:
        blocks.append(Sentences(tuple(left_out), "omitted", "Omitted sections"))
    blocks += [Sentences(_rules(data), "rules", "Rules"), _files(data)]
    chart_libraries = {name: version(name) for module, name in CHART_LIBRARIES.items() if find_spec(module) is not None}
    versions = tuple(f"{name} {number}" for name, number in (scores.versions | chart_libraries).items())
    blocks.append(Sentences(versions, "versions", "Versions"))
    if command:
        blocks.append(Code((command,), "command", "Command that reproduces this report"))
    return Section("method", "How this was computed", tuple(blocks))


def _rules(data: ReportData) -> tuple[str, ...]:
    scores, comparison = data.scores, data.comparison
    grades = ", ".join(f"{grade:g}" for grade in scores.qrels.grades[:_MAX_GRADES])
    measures = ", ".join(f"{measure} ({measure.entry.aggregate} over topics)" for measure in scores.measures)
    rules = [describe_rules(scores), f"grades that occur in the judgments: {grades}", f"measures: {measures}"]
    rules += [comparison.caption] if comparison is not None else []
    rules += [data.caution.rstrip(".")] if data.caution else []
    return (*rules, f"seed of all random resampling: {data.seed}")


def _files(data: ReportData) -> Table:
    scores = data.scores
    qrels, runs = scores.qrels, scores.runs
    columns = (
        Column("type", ["qrels", *("run" for _ in runs)], TEXT),
        Column("name", [qrels.name, *(run.name for run in runs)], TEXT),
        Column("file", [qrels.path, *(run.path for run in runs)], TEXT),
        Column("n", [qrels.n, *(run.returned_topics for run in runs)], COUNT, "topics"),
        Column("sha256", [qrels.sha256, *(run.sha256 for run in runs)], TEXT, "SHA-256"),
    )
    return Table("files", columns, "Files", labels=3, folded=len(runs) > 12)


_TABLES_IN_RESULTS = ("topics", "documents")  # long tables, which are only in the results


def pipeline_section(data: ReportData, traces: Any) -> ReportPart:
    """Show the loss by the first measure at each stage of a pipeline, and the kinds of failure."""
    traces = traces if isinstance(traces, Traces) else read_traces(traces, topics=data.topics)
    answer = failures(data.qrels, traces, data.main_measure, attributes=data.attributes)
    blocks = (*answer.funnel.blocks(), *answer.blocks())
    short = (block for block in blocks if not (isinstance(block, Table) and block.name in _TABLES_IN_RESULTS))
    sentences = (*answer.funnel.sentences, *answer.sentences)
    section = Section("pipeline", "Losses by pipeline stage", (Sentences(sentences), *embed_blocks("pipeline", short)))
    warnings = tuple(map(str, traces.notes))
    return ReportPart(section, {"funnel": answer.funnel, "failures": answer}, sentences[0], warnings)
