"""`gate`: from two runs and a configuration to a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison.compare import check_bounds
from judged.comparison.slicing.topic_slices import Slice
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.toml_files import nearest
from judged.diagnosis.gates.answer import GateResult
from judged.diagnosis.gates.check_result import digits
from judged.diagnosis.gates.config import ALL, config_of
from judged.diagnosis.gates.decision import Paired, decide
from judged.diagnosis.gates.guardrails import folder, guarded, lost_topics, over_these, refuse_outcome, row_of, sliced
from judged.errors import InputError
from judged.results.blocks import Note
from judged.results.spelling import hinting
from judged.scoring.evaluation import runs_of
from judged.scoring.evaluation.evaluate import scored
from judged.stats.inputs import topics_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.toml_files import Places
    from judged.diagnosis.gates.check_result import CheckResult
    from judged.diagnosis.gates.config import Check, GateConfig, GateTest
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

_SHOWN = 5
_SAME_IDS = "check that it is a run of the same collection as the qrels: that both use the same ids ('judged check')"


@hinting
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
    """Decide whether a candidate may take the baseline's place.

    Parameters
    ----------
    qrels, baseline, candidate
        As `evaluate` takes qrels and runs; one run each.
    config
        A `GateConfig`, the path of its TOML file, or a dict laid out as that file. None: `measures` and a margin say
        what is checked, over all topics, by the rules of `GateConfig`.
    measures
        In place of a configuration: what must not be lost; None: nDCG@10.
    margin, margin_relative
        In place of a configuration: the largest loss of each measure that nobody would care about, in its unit or as
        a share of the baseline's mean.
    attributes
        Attributes of the topics, for the slices, in place of the configuration's file: `Attributes`, a dict of
        dicts, a data frame or a path.
    progress
        As for `evaluate`.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        If something cannot be read, the configuration makes no sense, or a check cannot be made of these runs.
    MeasureError
        If a measure cannot be computed.

    Examples
    --------
    >>> from judged.diagnosis.gates import gate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> found = gate(qrels, good, bad, {"check": [{"measure": "RR", "margin": 0.05}]})
    >>> found.exit_code, found.checks[0].difference
    (1, -0.5)
    >>> gate(qrels, good, bad, measures="RR", margin=0.6).exit_code
    0
    """
    asked = config_of(config, measures, margin, margin_relative)
    judgments = Qrels.of(qrels)
    runs = [_one_run(given, role) for given, role in ((baseline, "baseline"), (candidate, "candidate"))]
    wanted = [part.measure for part in (*asked.checks, *asked.guardrails) if part.measure]
    slicing = sliced(asked, attributes, judgments)
    _refuse_unknown(asked, slicing)
    policies = {name: getattr(asked, name) for name in ("dialect", "topics", "ties", "depth", "exclude_self")}
    scores = scored(judgments, runs, wanted or ["Judged@10"], progress=progress, **policies)
    return _decided(scores, [0, 1], asked, slicing)


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
    """Decide from scores that were already made.

    Parameters
    ----------
    scores
        What `evaluate` returned.
    baseline, candidate
        The names of two runs in it.
    config
        As for `gate`; its policies were settled when the scores were made.
    measures, margin, margin_relative
        As for `gate`.
    slicing
        The slices that checks name, in place of those of the configuration.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        If there is no such run, measure or slice, or a check cannot be made of these scores.

    Examples
    --------
    >>> from judged import evaluate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> runs = {name: {topic: docs for topic in qrels} for name, docs in (("old", ["d"]), ("new", ["x", "d"]))}
    >>> scores = evaluate(qrels, runs, ["RR", "R@10"])
    >>> checks = [{"measure": "RR", "margin": 0.6}, {"measure": "R@10", "margin": 0.01}]
    >>> scores.gate("old", "new", {"check": checks}).sentences[0]
    'PASS: new against old: all checks passed.'
    """
    asked = config_of(config, measures, margin, margin_relative)
    at = [_position(scores, name, role) for name, role in ((baseline, "baseline"), (candidate, "candidate"))]
    cut = sliced(asked) if slicing is None else slicing
    _refuse_unknown(asked, cut)
    return _decided(scores, at, asked, cut)


def _refuse_unknown(config: GateConfig, slicing: Slicing | None) -> None:
    """Refuse checks of slices that there are none of."""
    names = () if slicing is None else slicing.names

    def known(check: Check) -> None:
        if check.slice not in (ALL, *names):
            fix = nearest(check.slice, names) if names else "add a [[slice]] of this name"
            raise InputError(f"no slice {check.slice!r}", fix=fix)

    config.places.each("check", config.checks, known)


def _decided(scores: Scores, at: list[int], config: GateConfig, slicing: Slicing | None) -> GateResult:
    """Decide between two runs of the table, by their places."""
    cut = None if slicing is None else over_these(slicing, scores.query_ids, config)
    _refuse_lost(scores, at, config)
    places = config.places
    pairs = places.each("check", config.checks, lambda check: _paired(scores, at, check, cut, config))
    _refuse_unmeasured(pairs, scores, at, places)
    checks = decide(pairs, config)
    guardrails = places.each(
        "guardrail", config.guardrails, lambda guardrail: guarded(guardrail, scores, at, folder(config))
    )
    baseline, candidate = (scores.run_names[run] for run in at)
    notes = _notes(scores, at, config, checks)
    return GateResult(config, baseline, candidate, checks, tuple(guardrails), scores, notes)


def _refuse_unmeasured(pairs: Sequence[Paired], scores: Scores, at: Sequence[int], places: Places) -> None:
    """Refuse runs of which nothing was measured: ids that do not match would pass, as a baseline of 0 loses nothing."""
    # A slice may be so hard that no run finds anything: there it is refused only if nothing is measured elsewhere. A
    # candidate that is not measured fails, except by measures of which 0 is the best score.
    baseline, candidate = (scores.runs[run] for run in at)
    if not baseline.returned_judged:
        problem = f"no document of the baseline {baseline.name} is judged, so that nothing can be lost"
        raise InputError(problem, fix=_SAME_IDS, path=baseline.path)
    blank = all(pair.blank for pair in pairs)

    def measured(pair: Paired) -> None:
        name, whole = pair.check.name, pair.check.slice == ALL
        if not candidate.returned_judged and pair.side < 0:
            problem = f"no document of the candidate {candidate.name} is judged, so {name} measures nothing"
            raise InputError(problem, fix=_SAME_IDS)
        if pair.blank and (blank or whole):
            raise InputError(
                f"{name} of the baseline {baseline.name} is 0 or undefined on every topic, so that nothing can be lost",
                fix=f"{_SAME_IDS}, and that some document has the grade that the measure asks for",
            )
        if whole and not pair.kept.any():
            raise InputError(f"no topic has a score in {name} for both runs", fix=f"{_SAME_IDS}, and of topics")

    places.each("check", pairs, measured)


def _one_run(given: Any, role: str) -> Run:
    runs = runs_of(given)
    if len(runs) != 1:
        names = ", ".join(run.name for run in runs[:_SHOWN])
        raise InputError(f"the {role} holds {len(runs)} runs: {names}", fix="give one run")
    return Run(runs[0].rows, role) if runs[0].name == "run" else runs[0]


def _position(scores: Scores, name: str, role: str) -> int:
    if name not in scores.run_names:
        raise InputError(f"no run {name!r} to be the {role}", fix=nearest(name, scores.run_names))
    return scores.run_names.index(name)


def _refuse_lost(scores: Scores, at: list[int], config: GateConfig) -> None:
    """Refuse a candidate whose missing topics would go unseen: left out of the comparison, and not guarded."""
    if scores.policies.topics == "qrels" or any(
        guardrail.missing_topics is not None for guardrail in config.guardrails
    ):
        return
    if lost := lost_topics(scores, at):
        raise InputError(
            f"the candidate has no result for {topics_text(len(lost))} that the baseline has results for"
            f" ({', '.join(lost[:_SHOWN])}), and topics = {scores.policies.topics!r} leaves them out",
            fix='give topics = "qrels", by which they score 0, or a [[guardrail]] with missing_topics = 0',
            path=config.path,
        )


def _paired(scores: Scores, at: list[int], check: Check, slicing: Slicing | None, config: GateConfig) -> Paired:
    """Take the scores that a check looks at, and refuse what cannot be tested."""
    row = row_of(scores, check.measure)
    measure = scores.measures[row]
    _refuse_untestable(measure, check, config.test)
    which, mask = Slice(ALL, ""), np.ones(len(scores.query_ids), dtype=np.bool_)
    if check.slice != ALL and slicing is not None:
        which, mask = slicing.slices[slicing.names.index(check.slice)], slicing.mask(check.slice)
        refuse_outcome(which)
        if not mask.any():
            raise InputError(
                f"no topic is in the slice {which.name!r}: none satisfies {which.expression.strip()}",
                fix="check the values that it asks for",
            )
    first, second = (scores.values[run, row][mask] for run in at)
    query_ids = tuple(np.array(scores.query_ids, dtype=object)[mask].tolist())
    min_topics = which.min_topics if check.min_topics is None else check.min_topics
    return Paired(check, measure, query_ids, first, second, min_topics, which.owner)


def _refuse_untestable(measure: Measure, check: Check, test: GateTest) -> None:
    kind = measure.entry.aggregate
    if kind in {"sum", "count"}:
        problem = f"{measure} is a {kind} over the topics, and grows with their number"
        raise InputError(problem, fix="take a measure that is a mean, such as R@100")
    if measure.properties.higher_is_better is None:
        how = "limit it by a [[guardrail]]" if measure.entry.name == "Judged" else "take a measure of quality"
        raise InputError(f"{measure} is neither better nor worse when it is higher", fix=how)
    if kind == "geometric mean" and check.margin is not None:
        problem = f"{measure} is a geometric mean, compared by ratios"
        raise InputError(problem, fix="give margin_relative in place of margin")
    if test == "bounded":
        check_bounds(measure)


def _notes(scores: Scores, at: list[int], config: GateConfig, checks: Sequence[CheckResult]) -> tuple[Note, ...]:
    """Say what should be known before the decision is used."""
    subjects = {"", *(scores.run_names[run] for run in at)}
    lost = len(lost_topics(scores, at))
    missing = f"the candidate returned nothing for {topics_text(lost)} that the baseline has results for"
    notes = [Note("candidate-lost-topics", missing)] if lost else []
    notes += [note for note in scores.notes if note.subject in subjects]
    notes += [
        Note(
            "margin-above-baseline",
            f"the margin of {digits(check.margin)} is no less than the baseline's mean {digits(check.baseline)}: a"
            " candidate that finds nothing would not fail",
            check.name,
        )
        for check in checks
        if check.kind == "difference" and not check.lower_is_better and 0 < check.baseline <= check.margin
    ]
    used = {check.slice for check in config.checks}
    notes += [
        Note("slice-unused", f"no check looks at the slice {named.name!r}")
        for named in config.slices
        if named.name not in used
    ]
    return tuple(dict.fromkeys(notes))
