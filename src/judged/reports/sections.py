"""The section of a report that says where the evidence of answers went."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from judged.errors import JudgedError
from judged.pipelines.rag import Responses, waterfall
from judged.pipelines.traces import Traces, failures, read_traces
from judged.reports.answer import DRAWN_BY
from judged.reports.material import ReportPart, listed, quoted_by
from judged.results import COUNT, TEXT, Block, Code, Column, Section, Sentences, Table
from judged.results.decimals import counted, decimal
from judged.scoring.curves import curve
from judged.scoring.evaluation.summary import describe_rules, leaderboard_chart
from judged.scoring.measures.grammar import parse
from judged.stats.interval import IntervalMethod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.reports.material import Material
    from judged.scoring.curves import Curves
    from judged.scoring.evaluation import Estimate


def answers(material: Material, given: Any, traces: Any) -> ReportPart:
    """Write the section: the waterfall, behind the runs that are called as systems, or else behind traces."""
    responses = Responses.of(given)
    runs = {name: run for name, run in material.runs.items() if name in responses.run_names} or None
    if traces and not isinstance(traces, Traces):
        traces = read_traces(traces, topics=material.topics)
    answer = waterfall(
        responses, material.qrels, runs=runs, traces=None if runs else traces or None, slicing=material.slicing
    )
    kept = (block for block in answer.blocks() if not (isinstance(block, Table) and block.folded))
    section = Section(
        "answers", "Where the evidence of answers went", (Sentences(answer.sentences), *quoted_by("answers", kept))
    )
    return ReportPart(section, {"waterfall": answer}, answer.sentences[0], answer.warnings)


_LINES = 5  # runs of a curve
_DEPTH = 100


def leaderboard(material: Material) -> ReportPart:
    """Write the table of all runs and measures, the chart of the first, and the tests of the pair looked at."""
    comparison, title = material.comparison, "Every run and measure"
    if comparison is None:
        note = material.scores.interval_caption(IntervalMethod())
        board = replace(material.scores.summary().runs(), name="board", title=title, note=note, only="")
        return ReportPart(Section("leaderboard", "Leaderboard", (board,)))
    note = "; ".join([comparison.caption, *(one.untested for one in comparison.measures if one.untested)])
    board = replace(comparison.leaderboard(), name="board", title=title, note=note, only="")
    parts: list[Block] = [leaderboard_chart(material.lead, material.estimates, material.two[::-1]), board]
    if sentences := tuple(pair.sentence for one in comparison.measures if (pair := material.pair(one))):
        parts.insert(0, Sentences(sentences))
    if material.tested and len(material.tested.pairs) > 1 and material.given_baseline is not None:
        title = f"Every run against the baseline: {material.lead}"
        parts.append(replace(comparison.pair_table(), name="against_baseline", title=title, folded=True, only=""))
    return ReportPart(Section("leaderboard", "Leaderboard", tuple(parts)))


def cutoffs(material: Material) -> ReportPart | None:
    """Draw the first measure and recall by cutoff, for the best runs and the two that are looked at."""
    names = list(material.two[::-1])
    names += [name for name in material.ranked if name not in names][: _LINES - len(names)]
    wanted = dict.fromkeys([_series(material), "R"])
    curves = [made for one in wanted if (made := _curve(material, names, one))]
    if not curves:
        return None
    sentences = ["Where lines cross, the answer to which run is better depends on the cutoff."]
    if rest := len(material.ranked) - len(names):
        drawn = f"{listed(names, _LINES)} {'is' if len(names) == 1 else 'are'} drawn"
        sentences.insert(0, f"{drawn}; {counted(rest, 'other')} {'is' if rest == 1 else 'are'} not.")
    said = [Sentences(tuple(sentences))] if len(names) > 1 else []
    parts = (replace(one.charts()["curves"], name=f"cutoffs{at}") for at, one in enumerate(curves, 1))
    return ReportPart(Section("cutoffs", "By cutoff", (*said, *parts)), {f"curve {one.name}": one for one in curves})


def _series(material: Material) -> str:
    """Name the first measure without its cutoff; nDCG, where it has none."""
    lead = material.lead
    if lead.entry.cutoff is None or lead.entry.cutoff_name != "cutoff":
        return "nDCG"
    return str(lead.replace(cutoff=1)).removesuffix("@1")


def _curve(material: Material, names: list[str], measure: str) -> Curves | None:
    """Draw a measure by cutoff; the report does without, where there is no curve of it over these runs."""
    series: Any = measure
    policies: dict[str, Any] = {**material.policies, "seed": material.seed}
    try:
        if policies.get("dialect"):  # our own names must not be read as the tool's
            series, policies["cutoffs"] = parse(f"{measure}@{_DEPTH}"), _DEPTH
        return curve(material.qrels, [material.runs[name] for name in names], series, **policies)
    except JudgedError:
        return None


_LEAST = 2  # topics that a test needs


def summary(material: Material) -> tuple[str, ...]:
    """Write the answer in sentences; those about which nothing can be said are empty."""
    return _evaluated(material), _best(material), _told_apart(material), _detectable(material)


def _evaluated(material: Material) -> str:
    scores = material.scores
    runs, topics = counted(len(scores.runs), "run was", "runs were"), counted(len(scores.query_ids), "topic")
    judgments, names = counted(scores.qrels.judgments, "judgment"), listed(scores.measure_names, 6)
    return f"{runs} evaluated on {topics} with {judgments} ({scores.qrels.name}), by {names}."


def _best(material: Material) -> str:
    known = {one.run: one for one in material.estimates}
    best, *others = (known[name] for name in material.ranked)
    if math.isnan(best.value) or material.lead.properties.higher_is_better is None:
        return ""
    if not others:
        return f"{best.run} has {best.measure} {_value(best)}."
    if all(material.alike(best.run, other.run) for other in others):
        return f"{listed(material.ranked)} have the same {best.measure} on every topic: {_value(best)}."
    equal = [other.run for other in others if other.value == best.value]
    also = f", as {listed(equal)} {'has' if len(equal) == 1 else 'have'}" if equal else ""
    return f"{best.run} has the best {best.measure}, {_value(best)}{also}."


def _value(one: Estimate) -> str:
    shown = f"{one.value:.0f}" if one.aggregate in {"sum", "count"} else decimal(one.value)
    return shown if one.ci is None else f"{shown} (95% interval {decimal(one.ci[0], 3)} to {decimal(one.ci[1], 3)})"


def _told_apart(material: Material) -> str:
    """Say which runs are distinguishable from the baseline, or from the best run."""
    tested = material.tested
    if material.comparison is None:
        return ""
    if tested is None:
        reason = material.comparison.measures[0].untested
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""
    if all(pair.result.n < _LEAST for pair in tested.pairs):
        return "With fewer than two topics to compare on, nothing was tested: what holds on others is not known."
    against = material.given_baseline or material.ranked[0]
    others = [name for name in material.ranked if name != against]
    better = [name for name in others if against in tested.better_than.get(name, ())]
    worse = [name for name in others if name in tested.better_than.get(against, ())]
    same = [name for name in others if material.alike(against, name)]
    if len(same) == len(others):
        return ""
    groups = {
        "significantly better": better,
        "significantly worse": worse,
        "the same on every topic": same,
        "not distinguishable, as the differences may be chance": [
            name for name in others if name not in {*better, *worse, *same}
        ],
    }
    parts = [f"{what}: {listed(names)}" for what, names in groups.items() if names]
    return f"Against {'the baseline ' if material.given_baseline else ''}{against}, {'; '.join(parts)}."


def _detectable(material: Material) -> str:
    """Say what these topics can show at all."""
    tested = material.tested
    pair = tested and material.pair(tested)
    if not tested or not pair or math.isnan(pair.detectable):
        return ""
    of = f", with {tested.family} comparisons allowed for" if tested.family > 1 else ""
    return (
        f"What {counted(pair.result.n, 'topic')} can show: a true difference in {pair.measure} of"
        f" {decimal(pair.detectable, 3)} between {pair.second} and {pair.first} would be found four times out of"
        f" five{of}; a smaller one would often be missed."
    )


_GRADES = 12  # that are named


def method(material: Material, warned: Sequence[str], left_out: Sequence[str], command: str) -> Section:
    """Write the rules, the files with their hashes, the versions, what to beware of, and the command."""
    scores = material.scores
    said = "The same files, seed and versions give the same report, byte for byte."
    parts: list[Block] = [Sentences((said,))]
    if warned:
        parts.append(Sentences(tuple(warned), "warnings", "What to know before the numbers are used"))
    if left_out:
        parts.append(Sentences(tuple(left_out), "left_out", "Left out"))
    parts += [Sentences(_rules(material), "rules", "Rules"), _files(material)]
    drawn_by = {name: version(name) for module, name in DRAWN_BY.items() if find_spec(module) is not None}
    versions = tuple(f"{name} {number}" for name, number in (scores.versions | drawn_by).items())
    parts.append(Sentences(versions, "drawn_with", "Versions"))
    if command:
        parts.append(Code((command,), "command", "To make this report again"))
    return Section("method", "How this was computed", tuple(parts))


def _rules(material: Material) -> tuple[str, ...]:
    scores, comparison = material.scores, material.comparison
    grades = ", ".join(f"{grade:g}" for grade in scores.qrels.grades[:_GRADES])
    measures = ", ".join(f"{one} ({one.entry.aggregate} over topics)" for one in scores.measures)
    rules = [describe_rules(scores), f"grades in the judgments: {grades}", f"measures: {measures}"]
    rules += [comparison.caption] if comparison is not None else []
    rules += [material.caution.rstrip(".")] if material.caution else []
    return (*rules, f"seed {material.seed} for every resampling")


def _files(material: Material) -> Table:
    scores = material.scores
    qrels, runs = scores.qrels, scores.runs
    columns = (
        Column("what", ["qrels", *("run" for _ in runs)], TEXT),
        Column("name", [qrels.name, *(run.name for run in runs)], TEXT),
        Column("file", [qrels.path, *(run.path for run in runs)], TEXT),
        Column("n", [qrels.n, *(run.returned_topics for run in runs)], COUNT, "topics"),
        Column("sha256", [qrels.sha256, *(run.sha256 for run in runs)], TEXT, "SHA-256"),
    )
    return Table("files", columns, "Files", labels=3, folded=len(runs) > 12)


_ELSEWHERE = ("topics", "documents")  # they are in the results


def pipeline(material: Material, given: Any) -> ReportPart:
    """Write the section: stages, the parts of the loss by the first measure, and the kinds of failure."""
    traces = given if isinstance(given, Traces) else read_traces(given, topics=material.topics)
    answer = failures(material.qrels, traces, material.lead, attributes=material.attributes)
    blocks = (*answer.funnel.blocks(), *answer.blocks())
    kept = (block for block in blocks if not (isinstance(block, Table) and block.name in _ELSEWHERE))
    said = (*answer.funnel.sentences, *answer.sentences)
    section = Section("pipeline", "At which stage it is lost", (Sentences(said), *quoted_by("pipeline", kept)))
    warnings = tuple(map(str, traces.notes))
    return ReportPart(section, {"funnel": answer.funnel, "failures": answer}, said[0], warnings)
