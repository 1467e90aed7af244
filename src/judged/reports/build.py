"""`report`: from qrels, runs and what else is known to a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.comparison.answer import MeasureComparison
from judged.comparison.choices import Choices, default_resamples, default_test
from judged.comparison.compare import compare_scores
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
from judged.reports.material import Material, ReportPart
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

MANY = 15
"""Runs: every pair of more is tested by the first measure alone; with a baseline, all measures are."""


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
    title: str | None = None,
    seed: int = 0,
    command: str = "",
    log: Any = None,
    traces: Any = None,
    responses: Any = None,
    **policies: Any,
) -> Report:
    """Write a report: what was evaluated, which run is best, where it fails, and how that was computed.

    Parameters
    ----------
    qrels, runs
        As `evaluate` takes them.
    queries
        Topics with their text: a `Topics`, a path, or ``{query_id: text}``.
    attributes
        Attributes of topics, for slices: an `Attributes`, a path, or ``{query_id: {name: value}}``. Attributes
        of the topics' own file are used as well.
    where
        Use these topics only, by their attributes, given or derived: ``kind == 'law' and words < 5``.
    texts
        Titles or texts of documents, shown in lists: a path, or ``{doc_id: text}``.
    baseline
        The name of the run that all others are compared with; None: every pair is compared, of more than 15 runs by
        the first measure alone.
    measures
        nDCG@10, AP and R@100, or the dialect's own, if they are left out. The first one orders the runs, and topics
        are looked at by it.
    by
        The attributes to slice by; None: those that have few values.
    title
        Of the report.
    seed
        Of everything that draws at random. Tests are those that `compare` uses by default.
    command
        How to make the report again: it is shown at its end.
    log
        What users did, for a section of its own: an `OnlineScores`, an `InteractionLog`, or files of a log.
    traces
        What the stages of a system did, for a section of its own: a `judged.pipelines.traces.Traces`, or files of them.
    responses
        What systems answered, for a section of its own: as `judged.pipelines.rag.Responses.of` takes it.
    policies
        Of `evaluate`: dialect, topics, ties, depth, precision, documents, progress.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If there is no such baseline or attribute, or something cannot be read.
    MeasureError
        If a measure does not exist.

    Examples
    --------
    >>> from judged.reports import report
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> made = report(qrels, {"bad": bad, "good": good}, measures="RR")
    >>> print(made.sentences[1])
    good has the best RR, 1.0000 (95% interval 0.752 to 1.000).
    """
    judgments, given = Qrels.of(qrels), {run.name: run for run in runs_of(runs)}
    wanted = REPORTED_MEASURES if measures is None and not policies.get("dialect") else measures
    if baseline is not None:
        baseline = find_run_name(baseline, given, "to use as the baseline")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the report
        asked = [*attributes_of(wanted or ()), *(Expression(where).names if where else ())]
        first = given.get(baseline or "", next(iter(given.values())))
        files = {"attributes": attributes, "queries": queries, "documents": policies.get("documents")}
        known = read_topic_attributes(judgments, needed=asked, run=first, **files) if asked else None
        judgments, lacking = filter_topics(judgments, where, known)
        scores = evaluate_without_warnings(
            judgments, list(given.values()), wanted, seed=seed, attributes=known, **policies
        )
        test, resamples = default_test(len(scores.query_ids)), default_resamples(len(scores.query_ids))
        material = Material(
            qrels=judgments,
            runs=given,
            scores=replace(scores, notes=(*lacking, *scores.notes)),
            comparison=_compared(scores, Choices(test, seed=seed, baseline=baseline, resamples=resamples)),
            topics=None if queries is None else Topics.of(queries),
            attributes=None if attributes is None else Attributes.of(attributes),
            texts=texts,
            by=(by,) if isinstance(by, str) else tuple(by or ()),
            seed=seed,
            resamples=resamples,
            policies={name: value for name, value in policies.items() if name != "progress"},
        )
        usual = f"Evaluation on {judgments.name}" + (f" where {where}" if where else "")
        return _written(material, title or usual, command, log, traces, responses)


def _compared(scores: Scores, choices: Choices) -> Comparison | None:
    """Test every pair or all against the baseline; every pair of many runs by the first measure alone."""
    if len(scores.runs) == 1:
        return None
    if choices.baseline is not None or len(scores.runs) <= MANY or len(scores.measures) == 1:
        return compare_scores(scores, choices)
    whole = compare_scores(select_measures(scores, scores.measures[:1]), choices)
    estimates = scores.estimates(level=choices.level, seed=choices.seed)
    reason = f"is shown, and not tested: every pair of more than {MANY} runs is tested by the first measure alone"
    others = tuple(
        MeasureComparison(one, tuple(row for row in estimates if row.measure == str(one)), (), 0, f"{one} {reason}")
        for one in scores.measures[1:]
    )
    return replace(whole, scores=scores, measures=(*whole.measures, *others))


_SECTIONS: dict[str, Callable[[Material], ReportPart | None]] = {
    "leaderboard": overview.leaderboard,
    "topic by topic": by_topic.differences,
    "slices": by_topic.slices,
    "matrix": by_topic.matrix,
    "where it is lost": by_topic.by_stage,
    "worst topics": by_topic.lowest,
    "judged lists": by_topic.lists,
    "by cutoff": overview.cutoffs,
}


def _written(material: Material, title: str, command: str, log: Any, traces: Any, responses: Any) -> Report:
    """Write section by section; what cannot be done with this measure or these policies is named."""
    scores, comparison = material.scores, material.comparison
    sections, left_out = dict(_SECTIONS), list[str]()
    if traces:
        sections["pipeline"] = lambda material: overview.pipeline(material, traces)
    if responses is not None:
        sections["answers"] = lambda material: overview.answers(material, responses, traces)
    if log is not None:
        from judged.reports.online import measured, users  # only where there is a log

        online = users(*measured(log))
        sections["users"] = lambda _: online
    found: list[ReportPart] = []
    _ = material.slicing  # of slices that are asked for and cannot be made the report says no more
    for name, write in sections.items():
        try:
            part = write(material)
        except JudgedError as error:
            left_out.append(f"{name}: {error}")
        else:
            found += [part] if part is not None else []
    warned = list(comparison.warnings if comparison else scores.warnings)
    warned = list(dict.fromkeys([*warned, *(text for part in found for text in part.warnings)]))
    said = [*overview.summary(material), *(part.headline for part in found)]
    if warned:
        noted = counted(len(warned), "warning stands", "warnings stand")
        said.append(f"{noted} under 'How this was computed', to be read before the numbers are used.")
    results: dict[str, Any] = {"evaluation": scores, **({"comparison": comparison} if comparison else {})}
    for part in found:
        results |= part.results
    short = Section("summary", "In short", (Sentences(tuple(filter(None, said))),))
    parts = (short, *(part.section for part in found), overview.method(material, warned, left_out, command))
    about = (
        counted(len(scores.runs), "run"),
        counted(len(scores.query_ids), "topic"),
        counted(scores.qrels.judgments, "judgment"),
        f"judged {scores.versions.get('judged', '')}",
    )
    notes = tuple(Note("report", text) for text in warned)
    return Report(title, about, parts, results, scores, comparison, notes, command, material.seed)
