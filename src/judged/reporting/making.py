"""`report`: from qrels, runs and what else is known to a report."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.answer import Section
from judged.comparison.choices import Choices
from judged.comparison.comparison import MeasureComparison
from judged.comparison.testing import compared
from judged.data import Qrels
from judged.data.topics import Topics
from judged.decimals import counted
from judged.errors import InputError, JudgedError, JudgedWarning
from judged.evaluation import runs_of
from judged.evaluation.facts import order_of
from judged.evaluation.given import chosen_measures, scores_of
from judged.notes import Note
from judged.reporting import by_topic, overview, slices, where
from judged.reporting.lists import lists
from judged.reporting.material import Material
from judged.reporting.method import method
from judged.reporting.result import Report
from judged.reporting.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from judged.comparison import Comparison
    from judged.diagnosis.stages import Stages
    from judged.evaluation import Scores
    from judged.reporting.material import Found

_MOST_TOPICS = 2000
_UNLIKE = 0.25  # of the topics: two runs that differ on fewer are variants of one
MANY = 15
"""Runs: every pair of more is tested by the first measure alone; with a baseline, all measures are."""
DEFAULT_MEASURES = ("nDCG@10", "AP", "R@100")
"""The final ranking, all of it, and what the first stage found."""


def report(
    qrels: Any,
    runs: Any,
    *,
    queries: Any = None,
    attributes: Any = None,
    docs: Any = None,
    baseline: str | None = None,
    measures: Any = None,
    by: str | Iterable[str] | None = None,
    title: str | None = None,
    seed: int = 0,
    command: str = "",
    log: Any = None,
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
        What is known of topics, for slices: an `Attributes`, a path, or ``{query_id: {name: value}}``. Attributes
        of the topics' own file are used besides.
    docs
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
        Of everything that draws at random. Tests draw 100,000 times, and 10,000 times for more than 2,000 topics.
    command
        How to make the report again: it is shown at its end.
    log
        What users did, for a section of its own: an `OnlineScores`, an `InteractionLog`, or files of a log.
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
    >>> from judged.reporting import report
    >>> qrels = {f"q{at}": {"d": 1} for at in range(8)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> made = report(qrels, {"bad": bad, "good": good}, measures="RR")
    >>> print(made.sentences[1])
    good has the best RR, 1.0000 (95% interval 0.752 to 1.000).
    """
    judgments, given = Qrels.of(qrels), {run.name: run for run in runs_of(runs)}
    wanted = DEFAULT_MEASURES if measures is None and not policies.get("dialect") else measures
    if baseline is not None and baseline not in given:
        raise InputError(f"no run {baseline!r} to be the baseline", fix=f"one of {', '.join(given)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the report
        scores = scores_of(judgments, list(given.values()), wanted, {**policies, "seed": seed})
        comparison = (
            _compared(scores, Choices(seed=seed, baseline=baseline, resamples=_resamples(scores)))
            if len(given) > 1
            else None
        )
        quiet = {name: value for name, value in policies.items() if name != "progress"}
        made = _material(judgments, given, scores, comparison, quiet, seed)
        material = Material(
            **made,
            topics=None if queries is None else Topics.of(queries),
            attributes=_attributes(attributes),
            docs=docs,
            by=(by,) if isinstance(by, str) else tuple(by or ()),
        )
        return _written(material, title, command, log)


def _resamples(scores: Scores) -> int:
    """Give how many times a test draws: as `compare` does, and of very many topics less often."""
    return 100_000 if len(scores.query_ids) <= _MOST_TOPICS else 10_000


def _compared(scores: Scores, choices: Choices) -> Comparison:
    """Test every pair or all against the baseline; every pair of many runs by the first measure alone."""
    if choices.baseline is not None or len(scores.runs) <= MANY or len(scores.measures) == 1:
        return compared(scores, choices)
    whole = compared(chosen_measures(scores, scores.measures[:1]), choices)
    estimates = scores.estimates(level=choices.level, seed=choices.seed)
    reason = f"is shown, and not tested: every pair of more than {MANY} runs is tested by the first measure alone"
    others = tuple(
        MeasureComparison(
            one, tuple(found for found in estimates if found.measure == str(one)), (), 0, f"{one} {reason}"
        )
        for one in scores.measures[1:]
    )
    return replace(whole, scores=scores, measures=(*whole.measures, *others))


def _attributes(given: Any) -> Any:
    if given is None:
        return None
    from judged.data.attributes import Attributes

    return Attributes.of(given)


def _material(
    qrels: Qrels,
    runs: dict[str, Any],
    scores: Scores,
    comparison: Comparison | None,
    policies: dict[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Order the runs, and choose the two that are looked at closely."""
    lead = scores.measures[0]
    estimates = (
        comparison.measures[0].estimates
        if comparison
        else tuple(one for one in scores.estimates(seed=seed) if one.measure == str(lead))
    )
    less = lead.properties.higher_is_better is False
    order = tuple(order_of([one.value for one in estimates], lower_is_better=less))
    ranked = [scores.run_names[at] for at in order]
    baseline = comparison.choices.baseline if comparison else None
    if len(ranked) == 1:
        candidate, reference = ranked[0], None
    elif baseline is not None:
        candidate, reference = _best_unlike(scores, ranked, baseline), baseline
    else:
        candidate, reference = ranked[0], _next_best(scores, ranked)
    return {
        "qrels": qrels, "runs": runs, "scores": scores, "comparison": comparison, "estimates": estimates,
        "order": order, "candidate": candidate, "reference": reference, "seed": seed,
        "resamples": _resamples(scores), "policies": policies,
    }  # fmt: skip


def _best_unlike(scores: Scores, ranked: list[str], baseline: str) -> str:
    """Choose the run that is held against the baseline: the best one that is no copy of it, where there is one."""
    own = scores.values[scores.run_names.index(baseline), 0]
    others = [name for name in ranked if name != baseline]
    rows = [scores.values[scores.run_names.index(name), 0] for name in others]
    copies = [np.array_equal(row, own, equal_nan=True) for row in rows]
    return next((name for name, copy in zip(others, copies, strict=True) if not copy), others[0])


def _next_best(scores: Scores, ranked: list[str]) -> str:
    """Choose the run that the best is held against: the next one that is more than a variant of it."""
    rows = [scores.values[scores.run_names.index(name), 0] for name in ranked]
    unlike = (name for name, row in zip(ranked[1:], rows[1:], strict=True) if np.mean(row != rows[0]) >= _UNLIKE)
    return next(unlike, ranked[1])


def _written(material: Material, title: str | None, command: str, log: Any) -> Report:
    scores, comparison = material.scores, material.comparison
    curves, drawn = overview.cutoffs(material)
    deep, left_out = _deeper(material)
    deep += [] if log is None else [_users(log)]
    places = {one.section.name: one for one in deep}
    warned = list(comparison.warnings if comparison else scores.warnings)
    warned += [text for one in deep for text in one.warnings]
    results: dict[str, Any] = {"evaluation": scores}
    if comparison is not None:
        results["comparison"] = comparison
    results |= drawn
    for one in deep:
        results |= one.results
    warned = list(dict.fromkeys(warned))
    found: Sequence[Section | None] = (
        overview.leaderboard(material),
        by_topic.differences(material),
        *(places[name].section for name in ("slices", "matrix", "stages") if name in places),
        by_topic.lowest(material),
        *(one.section for one in deep if one.section.name == "lists"),
        curves,
        *(places[name].section for name in ("users",) if name in places),
        method(material, warned, left_out, command),
    )
    headlines = [places[name].headline for name in ("slices", "stages", "matrix", "users") if name in places]
    if warned:
        noted = counted(len(warned), "warning stands", "warnings stand")
        headlines.append(f"{noted} under 'How this was computed', to be read before the numbers are used.")
    sections = (summary(material, headlines), *(one for one in found if one is not None))
    facts = (
        counted(len(scores.runs), "run"),
        counted(len(scores.query_ids), "topic"),
        counted(scores.qrels.judgments, "judgment"),
        f"judged {scores.versions.get('judged', '')}",
    )
    shown = title or f"Evaluation on {scores.qrels.name}"
    notes = tuple(Note("report", text) for text in warned)
    return Report(shown, facts, sections, results, scores, comparison, notes, command, material.seed)


def _users(log: Any) -> Found:
    """Say what users did; its module is imported only where there is a log."""
    from judged.reporting.online import measured, users

    return users(*measured(log))


def _deeper(material: Material) -> tuple[list[Found], tuple[str, ...]]:
    """Look into slices, stages and lists; what cannot be done with this measure or these policies is named."""
    slicing = slices.sliced(material)
    found: list[Found] = []
    tasks: dict[str, Callable[[], Found | None]] = {"matrix": lambda: where.matrix(material, slicing)}
    if slicing is not None:
        tasks["slices"] = lambda: slices.slices(material, slicing)
    left_out: list[str] = []
    if reason := where.why_not(material):
        left_out.append(f"where it is lost, and judged lists: {reason}")
    else:
        tasks["where it is lost"] = lambda: where.by_stage(material, slicing)
        tasks["judged lists"] = lambda: lists(material, _split(found))
    for name, task in tasks.items():
        try:
            made = task()
        except JudgedError as error:
            left_out.append(f"{name}: {error}")
        else:
            found += [made] if made is not None else []
    return found, tuple(left_out)


def _split(found: Sequence[Found]) -> Stages | None:
    """Give the loss by stages, where it was looked into."""
    return next((one.results["stages"] for one in found if "stages" in one.results), None)
