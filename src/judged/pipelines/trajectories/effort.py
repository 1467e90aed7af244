"""Accuracy of agents compared with their effort, and effects of their parts, such as the retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.diagnosis.tradeoff.tradeoff import tradeoff_of_scores
from judged.errors import InputError
from judged.pipelines.trajectories.evaluation import mean_difference
from judged.results import COUNT, TEXT, Answer, Sentences, Table, columns_of
from judged.results.decimals import decimal, p_text
from judged.results.table import CHANGE, p_value
from judged.stats.correction import adjust

if TYPE_CHECKING:
    from judged.diagnosis.tradeoff import Tradeoff
    from judged.results import Block
    from judged.scoring.evaluation.scores import Scores


def compare_effort(scores: Scores, **options: Any) -> Tradeoff:
    """Compare the first measure of agents with the others as efforts: systems that no other one dominates.

    Parameters
    ----------
    scores
        Result of `judged.pipelines.trajectories.evaluate` with two or more measures: accuracy, then efforts.
    options
        As for `Scores.tradeoff`.

    Examples
    --------
    >>> from judged.pipelines.trajectories import evaluate
    >>> trials = [{"query_id": q, "run_id": run, "answer": "7", "correct": run == "b",
    ...            "steps": [{"kind": "search", "documents": []}] * count}
    ...           for q in ("q1", "q2") for run, count in (("a", 1), ("b", 4))]
    >>> tradeoff = compare_effort(evaluate(trials, ["AnswerAccuracy", "NumSearches"]))
    >>> [(point.run, point.costs["NumSearches"]) for point in tradeoff.rows]
    [('a', 1.0), ('b', 4.0)]
    """
    measure, *efforts = scores.measures
    costs = {
        run: {str(effort): scores.value(effort, run) for effort in efforts if not np.isnan(scores.value(effort, run))}
        for run in scores.run_names
    }
    intervals: dict[str, dict[str, tuple[float, float]]] = {run: {} for run in scores.run_names}
    for estimate in scores.estimates():
        if estimate.ci is not None and estimate.measure != str(measure):
            intervals[estimate.run][estimate.measure] = estimate.ci
    return tradeoff_of_scores(scores, costs, measure=measure, cost_intervals=intervals, **options)


class AgentEffect(NamedTuple):
    """Mean change of a measure if one part of the system is replaced and all other parts stay the same."""

    measure: str
    factor: str
    level: str
    other: str
    pairs: int  # pairs of systems that differ in this factor only
    questions: int
    change: float
    change_ci: tuple[float, float] | None
    p: float  # Holm-corrected over all effects of the measure; NaN if not tested


@dataclass(frozen=True, eq=False, repr=False)
class AgentEffects(Answer):
    """Effects of the parts of systems, such as the agent, the model, and the retriever."""

    kind: ClassVar[str] = "agent-effects"

    effects: tuple[AgentEffect, ...]
    alpha: float

    def facts(self) -> Mapping[str, Any]:
        """Return the significance level."""
        return {"alpha": self.alpha}

    def blocks(self) -> tuple[Block, ...]:
        """Return the effects."""
        sentences = [
            f"{effect.factor}: {effect.other} instead of {effect.level} changes {effect.measure} by"
            f" {decimal(effect.change, 4, '+')} (p {p_text(effect.p, self.alpha)})."
            for effect in self.effects
            if effect.p <= self.alpha
        ]
        fields = (
            ("measure", TEXT), ("factor", TEXT), ("level", TEXT, "instead of"), ("other", TEXT, "level"),
            ("pairs", COUNT, "pairs of systems"), ("questions", COUNT), ("change", CHANGE), ("p", p_value(self.alpha)),
        )  # fmt: skip
        note = (
            "Change: mean over questions of the mean difference over all pairs of systems that differ in this factor"
            " only. p: paired randomization test over questions, Holm-corrected over the effects of a measure."
        )
        table = Table("effects", columns_of(self.effects, *fields, intervals=True), "Effects of parts", note, labels=4)
        return (Sentences(tuple(sentences) or ("No effect is significant.",)), table)


def factor_effects(
    scores: Scores, factors: Mapping[str, Mapping[str, str]], *, alpha: float = 0.05, seed: int = 0
) -> AgentEffects:
    """Estimate the effect of replacing one part of a system, such as the retriever under the same agents.

    Parameters
    ----------
    scores
        Result of `judged.pipelines.trajectories.evaluate`.
    factors
        Level of each factor, by system: ``{"a": {"agent": "small", "retriever": "bm25"}, ...}``.
    alpha
        Significance level.
    seed
        Seed of the randomization tests.

    Raises
    ------
    InputError
        If a system has no levels, or no two systems differ in one factor only.

    Examples
    --------
    >>> from judged.pipelines.trajectories import evaluate
    >>> trials = [{"query_id": f"q{i}", "run_id": run, "answer": "7", "correct": run[-1] == "2" or i > 5}
    ...           for i in range(12) for run in ("a1", "a2", "b1", "b2")]
    >>> factors = {run: {"agent": run[0], "retriever": run[1]} for run in ("a1", "a2", "b1", "b2")}
    >>> effects = factor_effects(evaluate(trials, "AnswerAccuracy"), factors).effects
    >>> [(effect.factor, effect.pairs, effect.change) for effect in effects]
    [('agent', 2, 0.0), ('retriever', 2, 0.5)]
    """
    if missing := [run for run in scores.run_names if run not in factors]:
        raise InputError(f"system {missing[0]!r} has no levels of factors", fix="add it to the table of factors")
    names = list(factors[scores.run_names[0]])
    changes: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for i, j in combinations(range(len(scores.run_names)), 2):
        first, second = (factors[scores.run_names[row]] for row in (i, j))
        differing = [name for name in names if first.get(name) != second.get(name)]
        if len(differing) == 1:
            levels = [(str(first[differing[0]]), i), (str(second[differing[0]]), j)]
            (level, low), (other, high) = sorted(levels)
            changes.setdefault((differing[0], level, other), []).append((low, high))
    if not changes:
        fix = "compare systems that share all other parts"
        raise InputError("no two systems differ in one factor only", fix=fix)
    effects = list[AgentEffect]()
    for row, measure in enumerate(scores.measures):
        of_measure = [
            _effect(scores.values[:, row], pairs, (str(measure), *key), seed) for key, pairs in sorted(changes.items())
        ]
        adjusted = adjust([effect.p for effect in of_measure], "holm")
        effects += [effect._replace(p=float(p)) for effect, p in zip(of_measure, adjusted, strict=True)]
    return AgentEffects(tuple(effects), alpha)


def _effect(values: Any, pairs: list[tuple[int, int]], key: tuple[str, str, str, str], seed: int) -> AgentEffect:
    changes = np.mean([values[high] - values[low] for low, high in pairs], axis=0)
    tested, ci, p = mean_difference(np.zeros(len(changes)), changes, seed=seed)
    return AgentEffect(*key, len(pairs), tested.n, tested.difference, ci, p)
