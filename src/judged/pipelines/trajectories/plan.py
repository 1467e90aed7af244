"""`plan`: how scores vary between questions and between trials, and how many of each detect a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, groupby, product
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.pipelines.trajectories.judging import judge_system
from judged.pipelines.trajectories.trajectories import Trajectories
from judged.results import COUNT, NUMBER, SHARE, TEXT, Answer, Headline, Sentences, Table, columns_of
from judged.results.decimals import counted, decimal
from judged.scoring.measures.base import TrajectoryMeasure
from judged.scoring.measures.grammar import parse
from judged.stats.sample_size import minimum_detectable

if TYPE_CHECKING:
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.scoring.measures.base import AnswerMeasure

_MAX_TRIALS = 10


class Components(NamedTuple):
    """Variance of the scores of one system, or of the difference of two.

    Parameters
    ----------
    name
        System, or pair of systems.
    questions, trials
        Number of questions with a score, and of trials.
    between
        Variance between questions of the expected score of a question; at least 0.
    within
        Variance between trials of a question; of a difference: the sum of those of both systems; NaN without repeated
        trials.
    """

    name: str
    questions: int
    trials: int
    between: float
    within: float

    @property
    def share(self) -> float:
        """Share of the variance of single trials that is between trials of a question."""
        total = self.between + self.within
        return self.within / total if total else math.nan


class TrialDesign(NamedTuple):
    """Number of questions and trials, and the smallest difference of a pair that they detect."""

    pair: str
    questions: int
    trials: int
    cost: float
    detectable: float


def components(values: Floats, question: Ints, name: str = "") -> Components:
    """Estimate the variance between questions and between trials of a question, by an analysis of variance.

    The estimates are unbiased for any numbers of trials, except that a negative variance is replaced by 0.

    Parameters
    ----------
    values
        Score of each trial; NaN is left out.
    question
        Integer code of the question of each trial.
    name
        Name of the result.

    Examples
    --------
    >>> part = components(np.array([0.0, 1.0, 4.0, 5.0]), np.array([0, 0, 1, 1]))
    >>> part.between, part.within
    (7.75, 0.5)
    """
    has_value = ~np.isnan(values)
    values, (_, code) = values[has_value], np.unique(question[has_value], return_inverse=True)
    n, counts = len(values), np.bincount(code).astype(np.float64)
    questions = len(counts)
    if questions < 2:
        return Components(name, questions, n, math.nan, math.nan)
    means = np.bincount(code, values) / counts
    degrees_of_freedom = n - questions
    within = float(((values - means[code]) ** 2).sum() / degrees_of_freedom) if degrees_of_freedom else math.nan
    square = float((counts * (means - values.mean()) ** 2).sum() / (questions - 1))
    size = (n - float((counts**2).sum()) / n) / (questions - 1)
    between = max((square - (within if degrees_of_freedom else 0.0)) / size, 0.0)
    return Components(name, questions, n, between, within)


def difference_components(first: tuple[Floats, Ints], second: tuple[Floats, Ints], name: str = "") -> Components:
    """Estimate the variance between questions of the true difference of two systems, and that between trials.

    Each argument has scores and questions of trials. Only questions that both systems answered count.
    """
    answered = [question[~np.isnan(values)] for values, question in (first, second)]
    shared = np.intersect1d(answered[0], answered[1])
    n_trials, within, noise = 0, 0.0, 0.0
    means: list[Floats] = []
    for values, question in (first, second):
        is_shared = ~np.isnan(values) & np.isin(question, shared)
        shared_values, code = values[is_shared], np.searchsorted(shared, question[is_shared])
        part, counts = components(shared_values, code), np.bincount(code)
        means.append(np.bincount(code, shared_values) / counts)
        n_trials, within = n_trials + part.trials, within + part.within
        noise += part.within * float((1 / counts).sum()) / max(len(shared), 1)
    if math.isnan(within):
        return Components(name, len(shared), n_trials, math.nan, math.nan)
    between = max(float((means[1] - means[0]).var(ddof=1)) - noise, 0.0)
    return Components(name, len(shared), n_trials, between, within)


@dataclass(frozen=True, eq=False, repr=False)
class TrialPlan(Answer):
    """Variance of a measure between questions and trials, and designs of a comparison."""

    kind: ClassVar[str] = "trial-plan"
    main: ClassVar[str] = "designs"

    measure: str
    systems: tuple[Components, ...]
    pairs: tuple[Components, ...]
    designs: tuple[TrialDesign, ...]
    alpha: float
    power: float

    @property
    def title(self) -> str:
        """Title of a page."""
        return "Questions and trials"

    @property
    def best(self) -> dict[str, TrialDesign]:
        """Design that detects the smallest difference, by pair."""
        by_pair = groupby(self.designs, key=lambda design: design.pair)
        return {pair: min(designs, key=lambda design: design.detectable) for pair, designs in by_pair}

    @property
    def headline(self) -> Headline | None:
        """Return the best design of the first pair; None for one system."""
        if not self.best:
            return None
        design = next(iter(self.best.values()))
        sentence = f"Best for this budget: {design.questions} questions with {counted(design.trials, 'trial')} each."
        label = f"{self.measure}, difference that is detected with power {self.power:g}"
        return Headline("info", "plan", sentence, label, design.detectable)

    def facts(self) -> Mapping[str, Any]:
        """Return the measure and the settings."""
        return {"measure": self.measure, "alpha": self.alpha, "power": self.power}

    def blocks(self) -> tuple[Block, ...]:
        """Return the components and the designs."""
        best = self.best
        sentences = [
            f"{pair}: {design.questions} questions with {counted(design.trials, 'trial')} each detect a difference of"
            f" {decimal(design.detectable)} in {self.measure} with power {self.power:g} (alpha {self.alpha:g})."
            for pair, design in best.items()
        ]
        note = "Trials: share of the variance of a single trial that is between trials of the same question."
        fields = (
            ("questions", COUNT), ("trials", COUNT), ("between", NUMBER, "variance between questions"),
            ("within", NUMBER, "variance between trials"), ("share", SHARE, "trials"),
        )  # fmt: skip
        tables = [
            Table("systems", columns_of(self.systems, ("name", TEXT, "system"), *fields), "Variance of scores", note),
            Table("pairs", columns_of(self.pairs, ("name", TEXT, "pair"), *fields), "Variance of differences", note),
        ]
        if not self.designs:
            return tuple(tables[: 1 + bool(self.pairs)])
        columns = columns_of(
            self.designs, ("pair", TEXT), ("questions", COUNT), ("trials", COUNT, "trials each"), ("cost", NUMBER),
            ("detectable", NUMBER, "detectable difference"),
        )  # fmt: skip
        settings = f"Paired t-test over questions, alpha {self.alpha:g}, power {self.power:g}."
        designs = Table("designs", columns, "Designs of the same cost", f"{settings} Variances are estimates.")
        is_best = [best[design.pair] == design for design in self.designs]
        return (Sentences(tuple(sentences)), designs.changed("detectable", best=is_best), *tables)


def plan(
    trajectories: Any,
    measure: str | TrajectoryMeasure = "AnswerAccuracy",
    *,
    qrels: Any = None,
    accuracy: str | AnswerMeasure | None = None,
    budget: float | None = None,
    question_cost: float = 0.0,
    trial_cost: float = 1.0,
    alpha: float = 0.05,
    power: float = 0.8,
) -> TrialPlan:
    """Estimate the variance between questions and trials, and plan a comparison of agents.

    Parameters
    ----------
    trajectories
        `Trajectories` of a pilot study with repeated trials, or any input of `Trajectories.of`.
    measure
        Measure of trajectories with a score for each trial.
    qrels, accuracy
        As for `judged.pipelines.trajectories.evaluate`.
    budget
        Cost of all questions and trials of one system. Default: that of the trials in the data.
    question_cost, trial_cost
        Cost of one question, such as writing it and judging its evidence, and of one trial.
    alpha, power
        Significance level; probability of detecting a difference.

    Raises
    ------
    InputError
        If an input is invalid, or the budget is below two questions.

    Examples
    --------
    >>> trials = [{"query_id": f"q{i}", "run_id": run, "correct": (i + t) % 3 > 0, "answer": "7"}
    ...           for run in "ab" for i in range(12) for t in range(2)]
    >>> plan(trials).best["b - a"].trials
    1
    """
    selected = Trajectories.of(trajectories)
    parsed = parse(measure) if isinstance(measure, str) else measure
    if not isinstance(parsed, TrajectoryMeasure) or type(parsed).trial_scores is TrajectoryMeasure.trial_scores:
        raise MeasureError(f"{parsed} has no score of a single trial. Fix: use AnswerAccuracy or SeenR, for example")
    judgments = None if qrels is None else Qrels.of(qrels)
    scores: dict[str, tuple[Floats, Ints]] = {}
    for run in selected.run_names:
        judged = judge_system(selected, run, judgments, accuracy=accuracy).trajectories
        scores[run] = parsed.trial_scores(judged), judged.question
    systems = tuple(components(*scores[run], name=run) for run in scores)
    pairs = tuple(
        difference_components(scores[first], scores[second], f"{second} - {first}")
        for first, second in combinations(scores, 2)
    )
    n_trials, n_questions = (max(getattr(part, name) for part in systems) for name in ("trials", "questions"))
    total = question_cost * n_questions + trial_cost * n_trials if budget is None else budget
    if trial_cost <= 0 or question_cost < 0 or total < 2 * (question_cost + trial_cost):
        fix = "use a budget for at least two questions with one trial each, and costs that are not negative"
        raise InputError(f"the budget {total:g} is too small", fix=fix)
    designs = list[TrialDesign]()
    for part, trials in product(pairs, range(1, _MAX_TRIALS + 1)):
        cost = question_cost + trials * trial_cost
        n = int(total / cost)
        if n >= 2 and not math.isnan(part.within):
            difference = minimum_detectable(math.sqrt(part.between + part.within / trials), n, alpha, power)
            designs.append(TrialDesign(part.name, n, trials, n * cost, difference))
    return TrialPlan(str(parsed), systems, pairs, tuple(designs), alpha, power)
