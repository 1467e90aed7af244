"""Compare two runs by the checks and guardrails of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.compare import check_bounds
from judged.comparison.slicing.topic_slices import Slice
from judged.data.qrels import Qrels
from judged.data.toml_files import suggest_name
from judged.diagnosis.gates.answer import GateResult
from judged.diagnosis.gates.check_result import format_loss
from judged.diagnosis.gates.config import ALL
from judged.diagnosis.gates.config_file import config_of
from judged.diagnosis.gates.decision import CheckScores, decide_checks
from judged.diagnosis.gates.guardrails import (
    align_slicing,
    check_guardrail,
    check_slice,
    config_folder,
    config_slicing,
    find_lost_topics,
    measure_row,
)
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.spelling import with_parameter_hints
from judged.scoring.evaluation.evaluate import evaluate_without_warnings
from judged.scoring.evaluation.inputs import run_pair
from judged.stats.inputs import topics_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.toml_files import SourceLines
    from judged.diagnosis.gates.check_result import CheckResult
    from judged.diagnosis.gates.config import Check, GateConfig, GateTest
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

_MAX_LISTED = 5
_CHECK_IDS = "check that the run and the qrels are of the same collection and use the same ids ('judged check')"


@with_parameter_hints
def gate(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    config: Any = None,
    *,
    measures: Any = None,
    margin: float | None = None,
    margin_relative: float | None = None,
    attributes: Any = None,
    progress: Callable[[str, int], None] | None = None,
) -> GateResult:
    """Decide whether a candidate may replace the baseline.

    Parameters
    ----------
    qrels, baseline, candidate
        As for `evaluate`, with one run each.
    config
        A `GateConfig`, the path of its TOML file, or a dict laid out as that file. None: `measures` and a margin are
        checked over all topics, with the default settings of `GateConfig`.
    measures
        Measures to check, instead of a configuration. None: nDCG@10.
    margin, margin_relative
        Largest acceptable loss of each measure, instead of a configuration: in the unit of the measure, or as a share
        of the baseline's mean.
    attributes
        Attributes of the topics, for the slices, instead of the configuration's file: `Attributes`, a dict of dicts, a
        data frame, or a path.
    progress
        As for `evaluate`.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        If the input cannot be read, the configuration is invalid, or these runs do not support a check.
    MeasureError
        If a measure cannot be computed.

    Examples
    --------
    >>> from judged.diagnosis.gates import gate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> result = gate(qrels, good, bad, {"check": [{"measure": "RR", "margin": 0.05}]})
    >>> result.exit_code, result.checks[0].difference
    (1, -0.5)
    >>> gate(qrels, good, bad, measures="RR", margin=0.6).exit_code
    0
    """
    parsed = config_of(config, measures, margin, margin_relative)
    judgments = Qrels.of(qrels)
    runs = run_pair(baseline, candidate)
    checked = [part.measure for part in (*parsed.checks, *parsed.guardrails) if part.measure]
    slicing = config_slicing(parsed, attributes, judgments)
    _check_slice_names(parsed, slicing)
    policies = {name: getattr(parsed, name) for name in ("dialect", "topics", "ties", "depth", "exclude_self")}
    scores = evaluate_without_warnings(judgments, runs, checked or ["Judged@10"], progress=progress, **policies)
    return _decide(scores, [0, 1], parsed, slicing)


def gate_of_scores(
    scores: Scores,
    baseline: str,
    candidate: str,
    config: Any = None,
    *,
    measures: Any = None,
    margin: float | None = None,
    margin_relative: float | None = None,
    slicing: Slicing | None = None,
) -> GateResult:
    """Decide from existing scores whether a candidate may replace the baseline.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    baseline, candidate
        Names of two of its runs.
    config
        As for `gate`. Its policies, such as `depth`, are ignored, as they are those of the scores.
    measures, margin, margin_relative
        As for `gate`.
    slicing
        Slices that checks refer to, instead of those of the configuration.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        If a run, measure or slice does not exist, or these scores do not support a check.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{i}": {"d": 1} for i in range(12)}
    >>> runs = {name: {topic: docs for topic in qrels} for name, docs in (("old", ["d"]), ("new", ["x", "d"]))}
    >>> scores = evaluate(qrels, runs, ["RR", "R@10"])
    >>> checks = [{"measure": "RR", "margin": 0.6}, {"measure": "R@10", "margin": 0.01}]
    >>> scores.gate("old", "new", {"check": checks}).sentences[0]
    'PASS: new against old: all checks passed.'
    """
    parsed = config_of(config, measures, margin, margin_relative)
    pair = [_position(scores, name, role) for name, role in ((baseline, "baseline"), (candidate, "candidate"))]
    topic_slices = config_slicing(parsed) if slicing is None else slicing
    _check_slice_names(parsed, topic_slices)
    return _decide(scores, pair, parsed, topic_slices)


def _check_slice_names(config: GateConfig, slicing: Slicing | None) -> None:
    names = () if slicing is None else slicing.names

    def check_slice_name(check: Check) -> None:
        if check.slice not in (ALL, *names):
            fix = suggest_name(check.slice, names) if names else "add a [[slice]] with this name"
            among = f" among {', '.join(names)}" if config.by else ""
            raise InputError(f"no slice {check.slice!r}{among}", fix=fix)

    config.source_lines.map_tables("check", config.checks, check_slice_name)


def _decide(scores: Scores, pair: list[int], config: GateConfig, slicing: Slicing | None) -> GateResult:
    """Decide between two runs, given by their positions in `scores`."""
    slices = None if slicing is None else align_slicing(slicing, scores.query_ids, config)
    _check_missing_topics(scores, pair, config)
    source_lines = config.source_lines
    all_scores = source_lines.map_tables(
        "check", config.checks, lambda check: _select_scores(scores, pair, check, slices, config)
    )
    _check_measured(all_scores, scores, pair, source_lines)
    checks = decide_checks(all_scores, config)
    folder = config_folder(config)
    guardrails = source_lines.map_tables(
        "guardrail", config.guardrails, lambda rail: check_guardrail(rail, scores, pair, folder)
    )
    baseline, candidate = (scores.run_names[run] for run in pair)
    notes = _notes(scores, pair, config, checks)
    return GateResult(config, baseline, candidate, checks, tuple(guardrails), scores, notes)


def _check_measured(
    all_scores: Sequence[CheckScores], scores: Scores, pair: Sequence[int], source_lines: SourceLines
) -> None:
    """Raise InputError if a check measures nothing, for example because the ids do not match."""
    # Otherwise such runs would pass, as a baseline of 0 cannot lose. In a hard slice, scores of 0 are legitimate: they
    # are an error only if the baseline scores 0 in all other checks, too. A candidate that scores 0 because its ids do
    # not match fails by itself, unless 0 is the best score.
    baseline, candidate = (scores.runs[run] for run in pair)
    if not baseline.returned_judged:
        problem = f"no document of the baseline {baseline.name} is judged, so no loss is possible"
        raise InputError(problem, fix=_CHECK_IDS, path=baseline.path)
    all_zero = all(check_scores.is_zero_baseline for check_scores in all_scores)

    def check_is_measured(check_scores: CheckScores) -> None:
        name, is_all_topics = check_scores.check.name, check_scores.check.slice == ALL
        if not candidate.returned_judged and check_scores.sign < 0:
            problem = f"no document of the candidate {candidate.name} is judged, so {name} cannot be computed"
            raise InputError(problem, fix=_CHECK_IDS)
        if check_scores.is_zero_baseline and (all_zero or is_all_topics):
            raise InputError(
                f"{name} of the baseline {baseline.name} is 0 or undefined on every topic, so no loss is possible",
                fix=f"{_CHECK_IDS}; also check that at least one document has a grade that {name} counts as relevant",
            )
        if is_all_topics and not check_scores.is_paired.any():
            raise InputError(
                f"no topic has a score in {name} for both runs", fix=f"{_CHECK_IDS}; query ids must match, too"
            )

    source_lines.map_tables("check", all_scores, check_is_measured)


def _position(scores: Scores, name: str, role: str) -> int:
    if name not in scores.run_names:
        raise InputError(f"the {role} {name!r} is not a run of these scores", fix=suggest_name(name, scores.run_names))
    return scores.run_names.index(name)


def _check_missing_topics(scores: Scores, pair: list[int], config: GateConfig) -> None:
    """Raise InputError if topics without results of the candidate are neither scored 0 nor limited by a guardrail."""
    is_limited = any(guardrail.missing_topics is not None for guardrail in config.guardrails)
    if is_limited or scores.policies.topics == "qrels":
        return
    if lost_topics := find_lost_topics(scores, pair):
        raise InputError(
            f"the candidate has no results for {topics_text(len(lost_topics))} for which the baseline has results"
            f" ({', '.join(lost_topics[:_MAX_LISTED])}), and topics = {scores.policies.topics!r} excludes these topics",
            fix='set topics = "qrels", so that the candidate scores 0 on these topics,'
            " or add a [[guardrail]] with missing_topics = 0",
            path=config.path,
        )


def _select_scores(
    scores: Scores, pair: list[int], check: Check, slicing: Slicing | None, config: GateConfig
) -> CheckScores:
    """Select the scores that a check compares. Raise InputError if they cannot be tested."""
    row = measure_row(scores, check.measure)
    measure = scores.measures[row]
    _check_is_testable(measure, check, config.test)
    checked_slice, mask = Slice(ALL, ""), np.ones(len(scores.query_ids), dtype=np.bool_)
    if check.slice != ALL and slicing is not None:
        checked_slice, mask = slicing.slices[slicing.names.index(check.slice)], slicing.mask(check.slice)
        check_slice(checked_slice)
        if not mask.any():
            raise InputError(
                f"no topic is in the slice {checked_slice.name!r}: none satisfies {checked_slice.expression.strip()}",
                fix="check the values in its expression",
            )
    first, second = (scores.values[run, row][mask] for run in pair)
    query_ids = tuple(np.array(scores.query_ids, dtype=object)[mask].tolist())
    min_topics = checked_slice.min_topics if check.min_topics is None else check.min_topics
    return CheckScores(check, measure, query_ids, first, second, min_topics, checked_slice.owner)


def _check_is_testable(measure: Measure, check: Check, test: GateTest) -> None:
    aggregate_name = measure.entry.aggregate
    if aggregate_name in {"sum", "count"}:
        problem = f"{measure} is a {aggregate_name} over the topics, and grows with the number of topics"
        raise InputError(problem, fix="use a measure that is averaged over topics, such as R@100")
    if measure.properties.higher_is_better is None:
        fix = "limit the measure by a [[guardrail]]" if measure.entry.name == "Judged" else "use a measure of quality"
        raise InputError(f"{measure} has no better direction: neither higher nor lower is better", fix=fix)
    if aggregate_name == "geometric mean" and check.margin is not None:
        problem = f"{measure} is a geometric mean, compared by ratios"
        raise InputError(problem, fix="set margin_relative instead of margin")
    if test == "bounded":
        check_bounds(measure)


def _notes(scores: Scores, pair: list[int], config: GateConfig, checks: Sequence[CheckResult]) -> tuple[Note, ...]:
    subjects = {"", *(scores.run_names[run] for run in pair)}
    lost_count = len(find_lost_topics(scores, pair))
    missing = f"the candidate has no results for {topics_text(lost_count)} for which the baseline has results"
    notes = [Note("candidate-lost-topics", missing)] if lost_count else []
    baseline, candidate = (scores.runs[run] for run in pair)
    if candidate.sha256 is not None and candidate.sha256 == baseline.sha256:
        notes.append(
            Note(
                "same-run",
                "the files of candidate and baseline have the same content: create the candidate's run again",
            )
        )
    notes += [note for note in scores.notes if note.subject in subjects]
    notes += [
        Note(
            "margin-above-baseline",
            f"the margin of {format_loss(check.margin)} is not smaller than the baseline's mean"
            f" {format_loss(check.baseline)}: a candidate without any relevant results would not fail",
            check.name,
        )
        for check in checks
        if check.kind == "difference" and not check.lower_is_better and 0 < check.baseline <= check.margin
    ]
    checked_slices = {check.slice for check in config.checks}
    notes += [
        Note("slice-unused", f"no check uses the slice {topic_slice.name!r}")
        for topic_slice in config.slices
        if topic_slice.name not in checked_slices
    ]
    return tuple(dict.fromkeys(notes))
