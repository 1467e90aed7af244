"""`conclude`: which configuration is best, what it costs, what its factors do, and how much of it is luck."""

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
from judged.pipelines.experiments.results import Results as Ran
from judged.pipelines.experiments.results import load
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
_MORE_IS_BETTER = ("queries_per_second",)


class Results(Protocol):
    """What `conclude` needs of an experiment."""

    @property
    def scores(self) -> Scores:
        """A run for each configuration."""
        ...

    @property
    def levels(self) -> Mapping[str, Mapping[str, Any]]:
        """Of each configuration, the level of each factor."""
        ...

    @property
    def costs(self) -> Costs:
        """Of each configuration, what it costs."""
        ...

    @property
    def control(self) -> str:
        """The configuration that the others are compared with."""
        ...


def conclude(
    results: Results | str | Path,
    *,
    measure: str | Measure | None = None,
    attributes: Any = None,
    by: str | Iterable[str] | None = None,
    cost: str | Iterable[str] | None = None,
    queries: Mapping[str, str] | None = None,
    level: float = 0.95,
    test: str | None = None,
    correction: str = "holm",
    folds: int = 10,
    resamples: int | None = None,
    seed: int = 0,
) -> Conclusions:
    """Conclude from an experiment: which configuration is best, what it costs, what its factors do, what is luck.

    Parameters
    ----------
    results
        The folder of an experiment, or what it left behind: `scores` with a run for each configuration, `levels` of
        its factors as ``{configuration: {factor: level}}``, `costs` as
        ``{configuration: {"p50_ms": 1.5, "p50_ms_ci": (1.4, 1.6)}}``, and `control`, the configuration that the others
        are compared with.
    measure
        One that was evaluated, and a mean over topics; None: the first.
    attributes, by
        Facts about topics, and those by which effects are looked at slice by slice, as for `slice_topics`. Of an
        experiment that was run, also those of its file of queries, and what follows from its judgments.
    cost
        Which costs the front is made of, beside the measure; None: the median latency.
    queries
        Texts of the topics, shown with those that show an effect most.
    level
        Of all intervals; tests have alpha = 1 - level.
    test
        ``randomization``, ``t``, ``bootstrap``, ``bca`` or ``studentized``: over topics. None: as in `compare`, the
        first, with more than 2,000 topics the second.
    correction
        For the number of comparisons: of configurations with the baseline, of main effects, of interactions, and of
        main effects on slices, each a family of its own.
    folds
        Of the cross-validation of the choice.
    resamples, seed
        Of tests, intervals and folds. None: as many resamples as in `compare`.

    Returns
    -------
    Conclusions

    Raises
    ------
    InputError
        If a name is unknown, no factor varies, no cost is known, or an option makes no sense.
    MeasureError
        If the measure is not a mean over topics, or neither better high nor low.

    Notes
    -----
    An effect is a contrast of configurations, the least-squares estimate of score ~ topic + factors + interactions of
    two factors; as every topic sees every configuration it has a value topic by topic. Intervals and tests are over
    topics, for it is topics that were drawn: residuals would take one topic's scores for independent of one another.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from judged import evaluate
    >>> qrels = {f"q{n}": {"d": 1} for n in range(12)}
    >>> runs = {"none": dict.fromkeys(qrels, ["x", "d"]), "porter": dict.fromkeys(qrels, ["d", "x"])}
    >>> done = SimpleNamespace(
    ...     scores=evaluate(qrels, runs, "RR"), levels={name: {"stemmer": name} for name in runs},
    ...     costs={"none": {"p50_ms": 2.0}, "porter": {"p50_ms": 2.5}}, control="none")
    >>> found = conclude(done)
    >>> found.best, found.may_be_best, found.tradeoff.front
    ('porter', ('porter',), ('none', 'porter'))
    >>> (effect,) = found.effects.main
    >>> effect.factor, effect.change, effect.found.difference
    ('stemmer', 'none to porter', 0.5)
    """
    if isinstance(results, (str, Path)):
        results = load(results, measure or ())
    if by is not None and isinstance(results, Ran) and not isinstance(attributes, Attributes):
        by = [by] if isinstance(by, str) else list(by)
        attributes = read_topic_attributes(results.qrels, attributes=attributes, queries=results.queries, needed=by)
    scores, levels, costs, baseline = results.scores, results.levels, results.costs, results.control
    if attributes is None and by is not None:
        raise InputError("nothing is known of the topics to cut them by", fix="give attributes, or leave out by")
    slicing = None if attributes is None else slice_topics(attributes, by)
    table = select_measures(scores, scores.measure_names[0] if measure is None else measure)
    names = table.run_names
    if lacking := [run for run in names if run not in levels]:
        raise InputError(f"no levels are given of {first_few(lacking)}", fix="say what each configuration is")
    topics = len(table.query_ids)
    test = one_of("paired test", test or default_test(topics), _TESTS)
    resamples = resamples or default_resamples(topics)
    choices = Choices(test, correction, "measure", round(1 - level, 12), resamples, seed, baseline=baseline)
    compared = table.compare(
        baseline=baseline, test=test, correction=correction, alpha=choices.alpha, resamples=resamples, seed=seed
    )
    known = cost_names(costs)
    usual = [name for name in known if name == _LATENCY] or known[:1]
    chosen = usual if cost is None else [cost] if isinstance(cost, str) else list(cost)
    plain = {run: {name: value for name, value in of.items() if name in known} for run, of in costs.items()}
    how: dict[str, Any] = {"level": level, "test": test, "seed": seed}
    more = [name for name in chosen if name in _MORE_IS_BETTER]
    how |= {"cost_intervals": _cost_intervals(costs, chosen), "empty_score": _empty_score(results, table)}
    weighed = table.tradeoff(plain, baseline=baseline, cost=chosen, higher_is_better=more, **how)
    values = table.values[:, 0]
    signed = values if weighed.higher_is_better else -values
    complete = signed[:, ~np.isnan(signed).any(axis=0)]
    choice = choose(complete, folds=folds, level=level, seed=seed)
    possible = may_be_best(signed, choices.alpha, test, seed=seed)
    cut = slicing and slicing.over(table.query_ids)
    each, reach = [levels[run] for run in names], table.measures[0].properties.score_range
    effects = factor_effects(values, each, names.index(baseline), choices, cut, reach)
    notes = [
        *dict.fromkeys((*compared.notes, *weighed.notes, *(() if cut is None else cut.notes()))),
        *_notes(table, signed, levels, effects, possible, choices),
    ]
    order = np.argsort(-np.nanmean(signed, axis=1), kind="stable")
    return Conclusions(
        comparison=compared,
        tradeoff=weighed,
        effects=effects,
        choice=choice,
        may_be_best=tuple(names[at] for at in order.tolist() if possible[at]),
        costs=costs,
        slicing=cut,
        queries=queries or {},
        level=level,
        notes=tuple(notes),
    )


def _cost_intervals(costs: Costs, names: Iterable[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return how far costs vary when they are measured again; unlimited where too few rounds can tell."""
    return {
        run: {name: of[f"{name}_noise"] or (-math.inf, math.inf) for name in names if f"{name}_noise" in of}
        for run, of in costs.items()
    }


def _empty_score(results: Results, table: Scores) -> float | None:
    """Return the mean of the measure for a run without judged documents; None without judgments, or for answers."""
    if not isinstance(results, Ran) or isinstance(table.measures[0], AnswerMeasure):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # that nothing was found is the point
        nothing = {query_id: ["\x00"] for query_id in table.query_ids}
        found = evaluate(results.qrels, {"empty": nothing}, table.measures)
    mean = float(np.nanmean(found.values[0, 0]))
    return None if math.isnan(mean) else mean


def _notes(
    scores: Scores,
    signed: Floats,
    levels: Mapping[str, Any],
    effects: FactorEffects,
    possible: Bools,
    choices: Choices,
) -> Iterator[Note]:
    """Warn of what was planned and not scored, of effects that nobody can see, and of a choice that is open."""
    missing = [run for run in levels if run not in scores.run_names]
    if missing:
        yield Note("not-scored", f"configurations without scores: {first_few(missing)}")
    if left := int(np.isnan(signed).any(axis=0).sum()):
        text = f"{counted(left, 'topic')} without a score of every configuration: left out where the best is chosen"
        yield Note("topics-left-out", text)
    aliased = [f"{effect.factor} ({effect.change})" for effect in effects.main if effect.found is None]
    if aliased:
        yield Note("aliased", f"effects that these configurations cannot show: {first_few(aliased)}")
    if effects.assumed:
        text = "interactions that the main effects assume to be absent, as some combinations were not run"
        yield Note("no-interaction-assumed", f"{text}: {first_few(effects.unseen)}")
    if ruled_out := _ruled_out_by_few(scores, signed, possible, choices):
        text = "configurations that may not be the best by a difference that is sensitive to a few topics"
        yield Note("sensitive", f"{text}: {first_few(ruled_out)}")
    if possible.sum() > 1:
        order = np.argsort(-np.nanmean(signed, axis=1), kind="stable")
        best, second = (signed[at] for at in [at for at in order.tolist() if possible[at]][:2])
        gaps, _ = paired_differences(second, best)
        few = insufficiency(len(gaps), "verdict") is not None
        alpha = choices.alpha / (len(signed) - 1)
        seen = math.nan if few else detectable(gaps, alpha, flips=choices.test == "randomization")
        missed = "" if math.isnan(seen) else f", where one below {decimal(seen, 3)} would often be missed"
        text = (
            f"{counted(int(possible.sum()), 'configuration')} may be the best; the first two differ by"
            f" {decimal(float(gaps.mean()))}{missed}: another collection or more topics would be needed to say more"
        )
        yield Note("another-collection", text)


def _ruled_out_by_few(scores: Scores, signed: Floats, possible: Bools, choices: Choices) -> list[str]:
    """Name the configurations whose difference from the best, by which they are ruled out, rests on a few topics."""
    best = int(np.argmax(np.nanmean(signed, axis=1)))
    reach = scores.measures[0].properties.score_range
    return [
        scores.run_names[at]
        for at in np.flatnonzero(~possible).tolist()
        if sensitivity(signed[at], signed[best], alpha=choices.alpha, max_difference=reach, seed=choices.seed).sensitive
    ]
