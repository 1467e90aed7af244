"""`report`: evaluation, comparison, and diagnosis of runs in one report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.comparison.answer import MeasureComparison
from judged.comparison.choices import Choices, default_resamples, default_test
from judged.comparison.compare import compare_scores
from judged.comparison.slicing.class_measures import read_class_measures
from judged.comparison.slicing.derived import read_topic_attributes
from judged.data.attributes import Attributes
from judged.data.expression import Expression
from judged.data.qrels import Qrels
from judged.data.run import find_run_name
from judged.data.topics import Topics
from judged.errors import JudgedError, JudgedWarning
from judged.reports import by_topic
from judged.reports import sections as overview
from judged.reports.answer import Report
from judged.reports.report_data import ReportData, ReportPart
from judged.results import Section, Sentences
from judged.results.blocks import Note
from judged.results.decimals import counted
from judged.scoring.default_measures import REPORTED_MEASURES
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.evaluate import evaluate_without_warnings, select_measures
from judged.scoring.evaluation.inputs import attributes_of, filter_topics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.comparison import Comparison
    from judged.scoring.evaluation import Scores

MAX_FULLY_TESTED_RUNS = 15
"""Maximum number of runs for tests of all pairs by all measures. For more, all pairs are tested by the first measure,
and comparisons with a baseline by all measures."""


def report(
    qrels: Any,
    runs: Any,
    measures: Any = None,
    *,
    queries: Any = None,
    attributes: Any = None,
    where: str | None = None,
    texts: Any = None,
    baseline: str | None = None,
    by: str | Iterable[str] | None = None,
    class_measures: Any = None,
    title: str | None = None,
    seed: int = 0,
    command: str = "",
    log: Any = None,
    traces: Any = None,
    responses: Any = None,
    trajectories: Any = None,
    **policies: Any,
) -> Report:
    """Build a report: what was evaluated, which run is best, where it fails, and how the numbers were computed.

    Parameters
    ----------
    qrels, runs
        As for `evaluate`.
    queries
        Topics with their text: a `Topics`, a path, or ``{query_id: text}``.
    attributes
        Attributes of topics, for slices: an `Attributes`, a path, or ``{query_id: {name: value}}``. Attributes in the
        file of the topics are used as well.
    where
        Expression that selects topics by their attributes, in files or derived: ``kind == 'law' and words < 5``.
    texts
        Titles or texts of documents, for ranked lists: a path, or ``{doc_id: text}``.
    baseline
        Name of the run that all others are compared with. Default: all pairs are compared; of more than 15 runs only by
        the first measure.
    measures
        Measures. The first one ranks the runs and selects topics. Default: nDCG@10, AP, and R@100, or those of the
        dialect.
    by
        Attributes to slice by. Default: those with few values.
    class_measures
        Measures of single slices, for a section about them: as for `Slicing.with_measures`.
    title
        Title of the report.
    seed
        Seed of all random numbers. The tests are the default tests of `compare`.
    command
        Command that reproduces the report; it is shown at the end.
    log
        User behavior, for a section about it: an `OnlineScores`, an `InteractionLog`, or files of a log.
    traces
        Traces, for a section about pipeline stages: a `judged.pipelines.traces.Traces`, or their files.
    responses
        Answers of systems, for a section about their evidence: as for `judged.pipelines.rag.Responses.of`.
    trajectories
        Searches and answers of agents, for a section about their evidence: as for
        `judged.pipelines.trajectories.Trajectories.of`.
    policies
        Policies of `evaluate`: dialect, topics, ties, depth, precision, documents, progress.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If the baseline or an attribute does not exist, or a file cannot be read.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> from judged.reports import report
    >>> qrels = {f"q{i}": {"d": 1} for i in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> print(report(qrels, {"bad": bad, "good": good}, measures="RR").sentences[1])
    good has the best RR, 1.0000 (95% CI [0.752, 1.000]).
    """
    judgments, runs_by_name = Qrels.of(qrels), {run.name: run for run in runs_of(runs)}
    measures = REPORTED_MEASURES if measures is None and not policies.get("dialect") else measures
    if baseline is not None:
        baseline = find_run_name(baseline, runs_by_name, "to use as the baseline")
    by = by or read_class_measures(class_measures or {}).by or None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the report
        names = [*attributes_of(measures or ()), *(Expression(where).names if where else ())]
        # Derived attributes such as the outcome need one run: the baseline, or the first.
        first_run = runs_by_name.get(baseline or "", next(iter(runs_by_name.values())))
        files = {"attributes": attributes, "queries": queries, "documents": policies.get("documents")}
        values = read_topic_attributes(judgments, needed=names, run=first_run, **files) if names else None
        judgments, notes = filter_topics(judgments, where, values)
        scores = evaluate_without_warnings(
            judgments, list(runs_by_name.values()), measures, seed=seed, attributes=values, **policies
        )
        test, resamples = default_test(len(scores.query_ids)), default_resamples(len(scores.query_ids))
        data = ReportData(
            qrels=judgments,
            runs=runs_by_name,
            scores=replace(scores, notes=(*notes, *scores.notes)),
            comparison=_compare(scores, Choices(test, seed=seed, baseline=baseline, resamples=resamples)),
            topics=None if queries is None else Topics.of(queries),
            attributes=None if attributes is None else Attributes.of(attributes),
            texts=texts,
            by=(by,) if isinstance(by, str) else tuple(by or ()),
            seed=seed,
            resamples=resamples,
            policies={name: value for name, value in policies.items() if name != "progress"},
            class_measures=class_measures,
        )
        default_title = f"Evaluation on {judgments.name}" + (f" where {where}" if where else "")
        inputs = {"log": log, "traces": traces, "responses": responses, "trajectories": trajectories}
        return _build_sections(data, title or default_title, command, **inputs)


def _compare(scores: Scores, choices: Choices) -> Comparison | None:
    """Test all pairs, or all runs against the baseline; all pairs of many runs only by the first measure."""
    if len(scores.runs) == 1:
        return None
    if choices.baseline is not None or len(scores.runs) <= MAX_FULLY_TESTED_RUNS or len(scores.measures) == 1:
        return compare_scores(scores, choices)
    comparison = compare_scores(select_measures(scores, scores.measures[:1]), choices)
    estimates = scores.estimates(level=choices.level, seed=choices.seed)
    reason = (
        f"was not tested: with more than {MAX_FULLY_TESTED_RUNS} runs, the pairs of runs are tested only by the first"
        " measure"
    )
    others = tuple(
        MeasureComparison(
            measure, tuple(row for row in estimates if row.measure == str(measure)), (), 0, f"{measure} {reason}"
        )
        for measure in scores.measures[1:]
    )
    return replace(comparison, scores=scores, measures=(*comparison.measures, *others))


_SECTIONS: dict[str, Callable[[ReportData], ReportPart | None]] = {
    "leaderboard": overview.leaderboard,
    "differences by topic": by_topic.differences,
    "slices": by_topic.slices,
    "classes": by_topic.classes,
    "matrix": by_topic.matrix,
    "losses by stage": by_topic.by_stage,
    "worst topics": by_topic.lowest,
    "ranked lists": by_topic.lists,
    "measures by cutoff": overview.cutoffs,
}


def _build_sections(
    data: ReportData, title: str, command: str, *, log: Any, traces: Any, responses: Any, trajectories: Any
) -> Report:
    """Build all sections; list those that are not possible with this measure or these policies."""
    scores, comparison = data.scores, data.comparison
    sections, left_out = dict(_SECTIONS), list[str]()
    if traces:
        sections["pipeline"] = lambda data: overview.pipeline_section(data, traces)
    if responses is not None:
        sections["answers"] = lambda data: overview.waterfall_section(data, responses, traces)
    if trajectories is not None:
        sections["agents"] = lambda data: overview.agents_section(data, trajectories)
    if log is not None:
        from judged.reports.online import online_metrics_of, online_section  # only with a log

        online = online_section(*online_metrics_of(log))
        sections["users"] = lambda _: online
    parts: list[ReportPart] = []
    _ = data.slicing, data.classes  # raises here if the requested slices are invalid: an error, not an omitted section
    # Some sections are impossible for some measures or policies; the report lists them with the reason.
    for name, build in sections.items():
        try:
            part = build(data)
        except JudgedError as error:
            left_out.append(f"{name}: {error}")
        else:
            parts += [part] if part is not None else []
    all_warnings = list(comparison.warnings if comparison else scores.warnings)
    all_warnings = list(dict.fromkeys([*all_warnings, *(text for part in parts for text in part.warnings)]))
    sentences = [*overview.summary(data), *(part.headline for part in parts)]
    if all_warnings:
        count = counted(len(all_warnings), "warning")
        sentences.append(f"Before you use these numbers, read {count} in the section 'How this was computed'.")
    results: dict[str, Any] = {"evaluation": scores, **({"comparison": comparison} if comparison else {})}
    for part in parts:
        results |= part.results
    summary = Section("summary", "Summary", (Sentences(tuple(filter(None, sentences))),))
    method = overview.method(data, all_warnings, left_out, command)
    blocks = (summary, *(part.section for part in parts), method)
    summary_lines = (
        counted(len(scores.runs), "run"),
        counted(len(scores.query_ids), "topic"),
        counted(scores.qrels.judgments, "judgment"),
        f"judged {scores.versions.get('judged', '')}",
    )
    notes = tuple(Note("report", text) for text in all_warnings)
    return Report(title, summary_lines, blocks, results, scores, comparison, notes, command, data.seed)
