"""`conclude`: the best configuration, its costs, the effects of factors, and the uncertainty of the choice."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from judged.comparison import Choices
from judged.comparison.choices import default_resamples, default_test
from judged.comparison.slicing import slice_topics
from judged.comparison.slicing.derived import read_topic_attributes
from judged.data.attributes import Attributes
from judged.errors import InputError, JudgedWarning
from judged.pipelines.experiments.answer import Conclusions, cost_names
from judged.pipelines.experiments.effects import factor_effects
from judged.pipelines.experiments.neighbors import MARGIN, neighbor_rows
from judged.pipelines.experiments.results import Results, load
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted, decimal
from judged.results.spelling import one_of
from judged.scoring.evaluation import evaluate
from judged.scoring.evaluation.evaluate import select_measures
from judged.scoring.measures.base import AnswerMeasure
from judged.stats.inputs import paired_differences
from judged.stats.sample_size import detectable
from judged.stats.selection import choose, may_be_best
from judged.stats.sensitivity import sensitivity
from judged.stats.sufficiency import insufficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from judged.pipelines.experiments.answer import Costs
    from judged.pipelines.experiments.effects import FactorEffects
    from judged.results.types import Bools, Floats
    from judged.scoring.evaluation import Scores
    from judged.scoring.measures.base import Measure

_TESTS = ("randomization", "t", "bootstrap", "bca", "studentized")
_LATENCY = "p50_ms"
_HIGHER_IS_BETTER = ("queries_per_second",)


class ResultsLike(Protocol):
    """Results of an experiment, as `conclude` reads them."""

    @property
    def scores(self) -> Scores:
        """Scores with one run per configuration."""
        ...

    @property
    def levels(self) -> Mapping[str, Mapping[str, Any]]:
        """Level of each factor, by configuration."""
        ...

    @property
    def costs(self) -> Costs:
        """Costs by configuration."""
        ...

    @property
    def control(self) -> str:
        """Configuration that the others are compared with."""
        ...


def conclude(
    results: ResultsLike | str | Path,
    *,
    measure: str | Measure | None = None,
    attributes: Any = None,
    by: str | Iterable[str] | None = None,
    cost: str | Iterable[str] | None = None,
    queries: Mapping[str, str] | None = None,
    margin: float = MARGIN,
    level: float = 0.95,
    test: str | None = None,
    correction: str = "holm",
    folds: int = 10,
    resamples: int | None = None,
    seed: int = 0,
) -> Conclusions:
    """Find the best configuration of an experiment, with its costs, the effects of factors, and the uncertainty.

    Parameters
    ----------
    results
        Folder of an experiment, or an object with `scores` (one run per configuration), `levels`
        (``{configuration: {factor: level}}``), `costs` (``{configuration: {"p50_ms": 1.5, "p50_ms_ci": (1.4, 1.6)}}``),
        and `control`, the configuration that the others are compared with.
    measure
        A scored measure that is a mean over topics; None for the first.
    attributes, by
        Topic attributes, and those to slice effects by, as for `slice_topics`. For the folder of an experiment,
        attributes from its queries and those derived from its judgments are available too.
    cost
        Costs for the front of measure and costs; None for the median latency.
    queries
        Texts of the topics, shown with the topics that have the largest effects.
    margin
        Largest difference from exact vector search that does not matter, for the equivalence tests of approximate
        search.
    level
        Confidence level of all intervals; tests have alpha = 1 - level.
    test
        ``randomization``, ``t``, ``bootstrap``, ``bca``, or ``studentized``, over topics. None: as in `compare`, the
        randomization test, or the t-test with more than 2,000 topics.
    correction
        Correction for multiple comparisons. Four families: configurations against the baseline, main effects,
        interactions, and main effects on slices.
    folds
        Folds of the cross-validation of the choice.
    resamples, seed
        Of tests, intervals, and folds. None: the default of `compare`.

    Returns
    -------
    Conclusions

    Raises
    ------
    InputError
        If a name is unknown, no factor varies, no cost is known, or an option is invalid.
    MeasureError
        If the measure is not a mean over topics, or has no direction.

    Notes
    -----
    An effect is a contrast of configurations: the least-squares estimate of score ~ topic + factors + two-factor
    interactions. Every topic has a score of every configuration, so an effect has a value per topic. Intervals and
    tests are over topics, because topics are the sample; residuals would treat the scores of one topic as independent.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from judged import evaluate
    >>> qrels = {f"q{n}": {"d": 1} for n in range(12)}
    >>> runs = {"none": dict.fromkeys(qrels, ["x", "d"]), "porter": dict.fromkeys(qrels, ["d", "x"])}
    >>> results = SimpleNamespace(
    ...     scores=evaluate(qrels, runs, "RR"), levels={name: {"stemmer": name} for name in runs},
    ...     costs={"none": {"p50_ms": 2.0}, "porter": {"p50_ms": 2.5}}, control="none")
    >>> conclusions = conclude(results)
    >>> conclusions.best, conclusions.may_be_best, conclusions.tradeoff.front
    ('porter', ('porter',), ('none', 'porter'))
    >>> (effect,) = conclusions.effects.main
    >>> effect.factor, effect.change, effect.estimate.difference
    ('stemmer', 'none to porter', 0.5)
    """
    if isinstance(results, (str, Path)):
        results = load(results, measure or ())
    if by is not None and isinstance(results, Results) and not isinstance(attributes, Attributes):
        by = [by] if isinstance(by, str) else list(by)
        attributes = read_topic_attributes(results.qrels, attributes=attributes, queries=results.queries, needed=by)
    scores, levels, costs, baseline = results.scores, results.levels, results.costs, results.control
    if attributes is None and by is not None:
        raise InputError("`by` requires topic attributes", fix="pass `attributes`, or omit `by`")
    slicing = None if attributes is None else slice_topics(attributes, by)
    measure_scores = select_measures(scores, scores.measure_names[0] if measure is None else measure)
    run_names = measure_scores.run_names
    if missing_levels := [run for run in run_names if run not in levels]:
        raise InputError(f"`levels` lacks {first_few(missing_levels)}", fix="add the settings of each configuration")
    topic_count = len(measure_scores.query_ids)
    test = one_of("paired test", test or default_test(topic_count), _TESTS)
    resamples = resamples or default_resamples(topic_count)
    choices = Choices(test, correction, "measure", round(1 - level, 12), resamples, seed, baseline=baseline)
    comparison = measure_scores.compare(
        baseline=baseline, test=test, correction=correction, alpha=choices.alpha, resamples=resamples, seed=seed
    )
    known_costs = cost_names(costs)
    default_costs = [name for name in known_costs if name == _LATENCY] or known_costs[:1]
    selected_costs = default_costs if cost is None else [cost] if isinstance(cost, str) else list(cost)
    cost_values = {
        run: {name: value for name, value in run_costs.items() if name in known_costs}
        for run, run_costs in costs.items()
    }
    options: dict[str, Any] = {"level": level, "test": test, "seed": seed}
    higher_is_better = [name for name in selected_costs if name in _HIGHER_IS_BETTER]
    options |= {
        "cost_intervals": _cost_intervals(costs, selected_costs),
        "empty_score": _mean_without_results(results, measure_scores),
    }
    tradeoff = measure_scores.tradeoff(
        cost_values, baseline=baseline, cost=selected_costs, higher_is_better=higher_is_better, **options
    )
    values = measure_scores.values[:, 0]
    oriented = values if tradeoff.higher_is_better else -values
    complete = oriented[:, ~np.isnan(oriented).any(axis=0)]
    choice = choose(complete, folds=folds, level=level, seed=seed)
    is_candidate = may_be_best(oriented, choices.alpha, test, seed=seed)
    topic_slicing = slicing and slicing.over(measure_scores.query_ids)
    run_levels, score_range = [levels[run] for run in run_names], measure_scores.measures[0].properties.score_range
    effects = factor_effects(values, run_levels, run_names.index(baseline), choices, topic_slicing, score_range)
    notes = [
        *dict.fromkeys((*comparison.notes, *tradeoff.notes, *(() if topic_slicing is None else topic_slicing.notes()))),
        *_notes(measure_scores, oriented, levels, effects, is_candidate, choices),
    ]
    order = np.argsort(-np.nanmean(oriented, axis=1), kind="stable")
    searches = results.neighbors if isinstance(results, Results) else {}
    return Conclusions(
        comparison=comparison,
        tradeoff=tradeoff,
        effects=effects,
        choice=choice,
        may_be_best=tuple(run_names[i] for i in order.tolist() if is_candidate[i]),
        costs=costs,
        slicing=topic_slicing,
        queries=queries or {},
        neighbors=neighbor_rows(searches, levels, measure_scores, margin, level),
        margin=margin,
        level=level,
        notes=tuple(notes),
    )


def _cost_intervals(costs: Costs, names: Iterable[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the range of costs over repeated measurements; unlimited with too few rounds."""
    return {
        run: {
            name: run_costs[f"{name}_noise"] or (-math.inf, math.inf) for name in names if f"{name}_noise" in run_costs
        }
        for run, run_costs in costs.items()
    }


def _mean_without_results(results: ResultsLike, measure_scores: Scores) -> float | None:
    """Return the mean of the measure for a run without relevant documents; None without judgments, or for answers."""
    if not isinstance(results, Results) or isinstance(measure_scores.measures[0], AnswerMeasure):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # empty lists are intended here
        empty_run = {query_id: ["\x00"] for query_id in measure_scores.query_ids}
        empty_scores = evaluate(results.qrels, {"empty": empty_run}, measure_scores.measures)
    mean = float(np.nanmean(empty_scores.values[0, 0]))
    return None if math.isnan(mean) else mean


def _notes(
    scores: Scores,
    oriented: Floats,
    levels: Mapping[str, Any],
    effects: FactorEffects,
    is_candidate: Bools,
    choices: Choices,
) -> Iterator[Note]:
    """Yield notes on missing scores, on effects that cannot be estimated, and on an undecided choice."""
    missing = [run for run in levels if run not in scores.run_names]
    if missing:
        yield Note("not-scored", f"configurations without scores: {first_few(missing)}")
    if incomplete := int(np.isnan(oriented).any(axis=0).sum()):
        text = (
            f"{counted(incomplete, 'topic lacks', 'topics lack')} a score for at least one configuration; the"
            " selection of the best configuration ignores these topics"
        )
        yield Note("topics-left-out", text)
    aliased = [f"{effect.factor} ({effect.change})" for effect in effects.main if effect.estimate is None]
    if aliased:
        yield Note("aliased", f"effects that cannot be estimated from these configurations: {first_few(aliased)}")
    if effects.omitted_interactions:
        text = "some combinations of levels were not run, so the main effects assume that some interactions are 0"
        yield Note("omitted-interactions", f"{text}: {first_few(effects.not_estimated)}")
    if sensitive_exclusions := _sensitive_exclusions(scores, oriented, is_candidate, choices):
        text = "configurations that are significantly worse than the best configuration only because of a few topics"
        yield Note("sensitive", f"{text}: {first_few(sensitive_exclusions)}")
    if is_candidate.sum() > 1:
        order = np.argsort(-np.nanmean(oriented, axis=1), kind="stable")
        best, runner_up = (oriented[i] for i in [i for i in order.tolist() if is_candidate[i]][:2])
        differences, _ = paired_differences(runner_up, best)
        is_small = insufficiency(len(differences), "verdict") is not None
        alpha = choices.alpha / (len(oriented) - 1)
        smallest = math.nan if is_small else detectable(differences, alpha, flips=choices.test == "randomization")
        power_note = (
            "" if math.isnan(smallest) else f" (the test would often miss a difference below {decimal(smallest, 3)})"
        )
        text = (
            f"{counted(int(is_candidate.sum()), 'configuration')} may be the best; the first two differ by"
            f" {decimal(float(differences.mean()))}{power_note}. To find out which configuration is best,"
            " use more topics or another collection"
        )
        yield Note("another-collection", text)


def _sensitive_exclusions(scores: Scores, oriented: Floats, is_candidate: Bools, choices: Choices) -> list[str]:
    """Return the configurations that are excluded by a difference that depends on a few topics."""
    best = int(np.argmax(np.nanmean(oriented, axis=1)))
    score_range = scores.measures[0].properties.score_range
    return [
        scores.run_names[i]
        for i in np.flatnonzero(~is_candidate).tolist()
        if sensitivity(
            oriented[i], oriented[best], alpha=choices.alpha, max_difference=score_range, seed=choices.seed
        ).sensitive
    ]
