"""`gate`: from two runs and a configuration to a decision."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.data import Qrels, Run
from judged.errors import InputError, JudgedWarning, MeasureError
from judged.evaluation import Scores, dialect_of, evaluate, runs_of
from judged.gating import guarding
from judged.gating.config import ALL, MINIMUM, nearest
from judged.gating.deciding import Paired, decide
from judged.gating.reading import config_of
from judged.gating.result import GateResult
from judged.stats.pairing import topics_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.gating.config import Check, GateConfig, Guardrail
    from judged.gating.result import GuardrailResult
    from judged.measures import Measure
    from judged.slicing.slices import Slicing

_SHOWN = 5


def gate(
    qrels: Any,
    baseline: Any,
    candidate: Any,
    config: Any,
    *,
    attributes: Any = None,
    progress: Callable[[str, int], None] | None = None,
) -> GateResult:
    """Decide whether a candidate may take the baseline's place.

    Parameters
    ----------
    qrels, baseline, candidate
        As `evaluate` takes qrels and runs; one run each.
    config
        A `GateConfig`, the path of its TOML file, or a dict laid out as that file.
    attributes
        What is known of the topics, for the slices, in place of the configuration's file: `Attributes`, a dict of
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
    >>> from judged.gating import gate
    >>> qrels = {f"q{at}": {"d": 1} for at in range(12)}
    >>> good, bad = ({topic: docs for topic in qrels} for docs in (["d"], ["x", "d"]))
    >>> found = gate(qrels, good, bad, {"check": [{"measure": "RR", "margin": 0.05}]})
    >>> found.exit_code, found.checks[0].difference
    (1, -0.5)
    """
    asked = config_of(config)
    judgments = Qrels.of(qrels)
    runs = [_one_run(given, role) for given, role in ((baseline, "baseline"), (candidate, "candidate"))]
    wanted = [one.measure for one in asked.checks] + [one.measure for one in asked.guardrails if one.measure]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the result
        scores = evaluate(
            judgments,
            runs,
            wanted or ["Judged@10"],
            dialect=asked.dialect,
            topics=asked.topics,
            ties=asked.ties,
            depth=asked.depth,
            progress=progress,
        )
    slicing = None
    if asked.slices or attributes is not None or any(check.slice != ALL for check in asked.checks):
        slicing = _sliced(asked, attributes, judgments, runs[0])
    return gate_scores(scores, scores.run_names[0], scores.run_names[1], asked, slicing=slicing)


def gate_scores(
    scores: Any, baseline: str, candidate: str, config: Any, *, slicing: Slicing | None = None
) -> GateResult:
    """Decide from scores that were already made.

    Parameters
    ----------
    scores
        What `evaluate` returned, or a file that `Scores.save` wrote.
    baseline, candidate
        The names of two runs in it.
    config
        As for `gate`; its policies were settled when the scores were made.
    slicing
        The slices that checks name, in place of those of the configuration.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        If there is no such run, measure or slice, or a check cannot be made of these scores.
    """
    asked = config_of(config)
    table = Scores.load(scores) if isinstance(scores, (str, Path)) else scores
    at = [_position(table, name, role) for name, role in ((baseline, "baseline"), (candidate, "candidate"))]
    if slicing is None and (asked.slices or any(check.slice != ALL for check in asked.checks)):
        slicing = _sliced(asked, None)
    slicing = None if slicing is None else _over(slicing, table, asked)
    _refuse_lost(table, at, asked)
    pairs = [_paired(table, at, check, slicing, asked, place) for place, check in enumerate(asked.checks, 1)]
    checks = decide(pairs, asked)
    guardrails = tuple(_guarded(table, at, one, asked) for one in asked.guardrails)
    return GateResult(asked, baseline, candidate, checks, guardrails, table, _notes(table, at, asked))


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


def _sliced(config: GateConfig, attributes: Any, qrels: Qrels | None = None, baseline: Run | None = None) -> Slicing:
    """Cut the topics into the slices of the configuration."""
    from judged.data.attributes import Attributes
    from judged.slicing.expression import Expression
    from judged.slicing.known import known_topics
    from judged.slicing.slices import slice_topics

    given = _path(config, config.attributes) if attributes is None else attributes
    if given is None and (qrels is None or not config.slices):
        raise InputError(
            "slices are named, and nothing is known of the topics",
            fix='give attributes = "topics.csv", a table with a column query_id, and [[slice]] tables',
            path=config.path,
        )
    try:
        if qrels is None:
            known = Attributes.of(given)
        else:
            needed = [name for one in config.slices for name in Expression(one.expression).names]
            texts = _path(config, config.queries)
            known = known_topics(qrels, attributes=given, queries=texts, needed=needed, run=baseline)
        return slice_topics(known, slices=config.slices)
    except InputError as error:
        if error.path:
            raise
        raise InputError(error.problem, fix=error.fix, path=config.path) from None


def _path(config: GateConfig, name: str | None) -> Path | None:
    """Give a file of the configuration, seen from its own folder."""
    return None if name is None else _folder(config) / name


def _over(slicing: Slicing, scores: Scores, config: GateConfig) -> Slicing:
    """Give the slices of these topics; refuse attributes of other topics."""
    found = slicing.over(scores.query_ids)
    if found.slices and not found.members.any():
        ours, theirs = scores.query_ids[0], next(iter(slicing.query_ids), "none")
        raise InputError(
            f"no topic is in any slice; the first topic is {ours!r}, that of the attributes {theirs!r}",
            fix="check that both use the same query ids, and what the expressions ask for",
            path=config.path,
        )
    return found


def _folder(config: GateConfig) -> Path:
    return Path(config.path).parent if config.path else Path()


def _refuse_lost(scores: Scores, at: list[int], config: GateConfig) -> None:
    """Refuse a candidate whose missing topics would go unseen: left out of the comparison, and not guarded."""
    if scores.policies.topics == "qrels" or any(one.missing_topics is not None for one in config.guardrails):
        return
    if lost := guarding.lost_topics(scores, *at):
        raise InputError(
            f"the candidate has no result for {topics_text(len(lost))} that the baseline has results for"
            f" ({', '.join(lost[:_SHOWN])}), and topics = {scores.policies.topics!r} leaves them out",
            fix='give topics = "qrels", by which they score 0, or a [[guardrail]] with missing_topics = 0',
            path=config.path,
        )


def _paired(
    scores: Scores, at: list[int], check: Check, slicing: Slicing | None, config: GateConfig, place: int
) -> Paired:
    """Take the scores that a check looks at, and refuse what cannot be tested."""
    wrong = _Wrong(f"[[check]] {place}", config.path, check.line)
    row = _row(scores, check.measure, wrong)
    measure = scores.measures[row]
    _refuse_untestable(measure, check, wrong)
    owner, minimum = "", MINIMUM
    mask = np.ones(len(scores.query_ids), dtype=np.bool_)
    if check.slice != ALL:
        names = () if slicing is None else slicing.names
        if slicing is None or check.slice not in names:
            raise wrong(
                f"no slice {check.slice!r}", nearest(check.slice, names) if names else "add a [[slice]] of this name"
            )
        which = slicing.slices[names.index(check.slice)]
        mask, owner, minimum = slicing.mask(check.slice), which.owner, which.minimum
    first, second = (scores.values[run, row][mask] for run in at)
    query_ids = tuple(np.array(scores.query_ids, dtype=object)[mask].tolist())
    return Paired(check, measure, query_ids, first, second, minimum if check.minimum is None else check.minimum, owner)


def _refuse_untestable(measure: Measure, check: Check, wrong: _Wrong) -> None:
    kind = measure.entry.aggregate
    if kind in {"sum", "count"}:
        raise wrong(
            f"{measure} is a {kind} over the topics, and grows with their number",
            "take a measure that is a mean, such as R@100",
        )
    if measure.properties.higher_is_better is None:
        how = "limit it by a [[guardrail]]" if measure.entry.name == "Judged" else "take a measure of quality"
        raise wrong(f"{measure} is neither better nor worse when it is higher", how)
    if kind == "geometric mean" and check.margin is not None:
        raise wrong(f"{measure} is a geometric mean, compared by ratios", "give margin_relative in place of margin")


def _row(scores: Scores, name: str, wrong: _Wrong) -> int:
    try:
        found = dialect_of(_known_dialect(scores)).measures(name, scores.qrels.grades)
    except MeasureError as error:
        raise wrong(str(error).rstrip("."), "") from None
    if len(found) != 1:
        raise wrong(f"{name} names {len(found)} measures", "write one [[check]] for each")
    if str(found[0]) not in scores.measure_names:
        raise wrong(f"{name} was not evaluated", f"one of {', '.join(scores.measure_names)}")
    return scores.measure_names.index(str(found[0]))


def _known_dialect(scores: Scores) -> str | None:
    """Give the dialect by which names are read; one of the caller's own is not known by name."""
    try:
        dialect_of(scores.policies.dialect)
    except InputError:
        return None
    return scores.policies.dialect


def _guarded(scores: Scores, at: list[int], one: Guardrail, config: GateConfig) -> GuardrailResult:
    if one.kind == "table":
        return guarding.table_numbers(one, [scores.run_names[run] for run in at], _folder(config))
    if one.kind == "missing topics":
        return guarding.missing_topics(one, scores, *at)
    wrong = _Wrong(f"[[guardrail]] {config.guardrails.index(one) + 1}", config.path, one.line)
    row = _row(scores, str(one.measure), wrong)
    if scores.measures[row].entry.name != "Judged":
        raise wrong(
            f"{one.measure} is an estimate over topics, and a guardrail compares numbers as they stand",
            "write it as a [[check]] with a margin; guardrails take Judged@10",
        )
    return guarding.judged_share(one, scores.values[at, row])


class _Wrong:
    """Makes errors that say where in the configuration something stands."""

    def __init__(self, part: str, path: str, line: int | None) -> None:
        self._part, self._path, self._line = part, path, line

    def __call__(self, problem: str, fix: str) -> InputError:
        return InputError(f"{self._part}: {problem}", fix=fix, path=self._path, line=self._line if self._path else None)


def _notes(scores: Scores, at: list[int], config: GateConfig) -> tuple[str, ...]:
    """Say what should be known before the decision is used."""
    notes = list(scores.notes)
    for run in at:
        notes += [f"{scores.run_names[run]}: {text}" for text in scores.runs[run].warnings]
    if lost := guarding.lost_topics(scores, *at):
        notes.insert(
            0, f"the candidate returned nothing for {topics_text(len(lost))} that the baseline has results for"
        )
    used = {check.slice for check in config.checks}
    notes += [f"no check looks at the slice {one.name!r}" for one in config.slices if one.name not in used]
    return tuple(dict.fromkeys(notes))
