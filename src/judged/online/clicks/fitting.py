"""Expectation maximization (EM) of click models, with empirical Bayes shrinkage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import digamma

from judged.online.clicks.cascade_models import CascadePages, predict_batch, transpose_pages
from judged.online.clicks.posteriors import JEFFREYS, Likelihood, PairPosterior, Prior
from judged.online.clicks.rank_models import RankModelCounts, predict_rank_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.online.clicks.rank_models import ClickModel
    from judged.results.types import Floats

    PageData: TypeAlias = RankModelCounts | CascadePages

Shrink: TypeAlias = Literal["empirical", "none"]
"""Shrinkage of pairs: toward a fitted beta prior, or none."""

Beta: TypeAlias = tuple[float, float]

TOLERANCE = 1e-5
"""Largest change of a probability in the last step of a fit that has converged."""

_MIN_TRIALS, _PRIOR_TOLERANCE = 1e-9, 0.05  # expected trials of a used pair; relative change of a stable prior

_MIN_INTERVAL_TRIALS = 5  # for the interval of a pair without shrinkage: with fewer trials the Jeffreys prior dominates

# Upper limit of a + b: without apparent differences between pairs, the moment estimate is infinite.
_MAX_STRENGTH = 30.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted parameters of a click model.

    Parameters
    ----------
    model
        Click model.
    parameters
        Values by name: ``attractiveness`` (P,), ``examination``, ``satisfaction``, ``continuation``.
    expected_counts
        Expected successes and trials in the last step.
    priors
        Pseudo-successes and pseudo-failures by name.
    iterations, converged
        Number of EM steps, and whether the last one changed nothing.
    last_change
        Largest change of a probability in the last step.
    pair_priors
        Fitted mixtures of beta priors of pairs by name.
    """

    model: ClickModel
    parameters: Parameters
    expected_counts: Sums
    priors: dict[str, Beta]
    iterations: int
    converged: bool
    last_change: float
    pair_priors: dict[str, Prior] = field(default_factory=dict[str, Prior])


def build_data(model: ClickModel, patterns: PagePatterns, counts: Floats) -> PageData:
    """Build the data that a model is fitted to from N distinct pages with these counts, (N,)."""
    build = CascadePages if model.continuation_probabilities else RankModelCounts.of_patterns
    return build(model, patterns, counts)


def fit(
    data: PageData,
    *,
    shrink: Shrink = "empirical",
    iterations: int = 1000,
    start: Parameters | None = None,
    priors: Mapping[str, Beta] | None = None,
    fixed_indices: Mapping[str, int] | None = None,
    prior_rounds: int = 4,
    report: Callable[[float], None] | None = None,
) -> Fit:
    """Fit a click model by EM.

    Parameters
    ----------
    data
        `RankModelCounts` or `CascadePages`.
    shrink
        ``empirical``: pairs are shrunk toward a fitted beta prior, and shared parameters toward their mean with the
        weight of one trial. ``none``: maximum likelihood.
    iterations
        Maximum number of steps, and a quarter of it after each change of the prior.
    start
        Starting values.
    priors, fixed_indices
        Pseudo-counts by name, and indices of parameters that are 1, instead of those of `shrink` and the model.
    prior_rounds
        Maximum number of fits of the prior of pairs.
    report
        Called with the completed fraction of the steps.
    """
    values = dict(start or data.initial_parameters())
    # Maximum likelihood, or MAP with given priors: no variational step and no prior fit.
    if priors is not None or shrink == "none":
        return _fit_em(data, values, iterations, priors or {}, fixed_indices, report, variational=False)
    fitted = _fit_em(data, values, iterations, None, fixed_indices, report)
    iterations_done, pair_priors = fitted.iterations, dict[str, Prior]()
    for _ in range(prior_rounds):
        # Moment priors of the first EM run are biased by hidden events: refit them by marginal likelihood.
        pair_priors = dict[str, Prior]()
        for name, scores in data.parameter_scores(fitted.parameters).items():
            is_used = fitted.expected_counts[name][1] > _MIN_TRIALS
            pair_priors[name] = Likelihood.of(scores, fitted.parameters[name], JEFFREYS).prior(is_used)
        if not pair_priors:
            break
        betas = fitted.priors | {name: prior.mean for name, prior in pair_priors.items()}
        is_settled = all(np.allclose(betas[name], fitted.priors[name], rtol=_PRIOR_TOLERANCE) for name in pair_priors)
        fitted = _fit_em(data, fitted.parameters, max(iterations // 4, 10), betas, fixed_indices, report)
        iterations_done += fitted.iterations
        if is_settled:
            break
    return replace(fitted, iterations=iterations_done, pair_priors=pair_priors)


def _fit_em(
    data: PageData,
    values: Parameters,
    iterations: int,
    priors: Mapping[str, Beta] | None,
    indices: Mapping[str, int] | None,
    report: Callable[[float], None] | None,
    *,
    variational: bool = True,
) -> Fit:
    """Run EM with these priors; None: beta priors that are fitted by moments in each step."""
    model = data.model
    fixed_indices = data.fixed_indices() if indices is None else indices
    for name, index in fixed_indices.items():
        values[name] = _with_one(values[name], index)
    success, failure = values, {name: 1 - value for name, value in values.items()}
    betas: dict[str, Beta] = dict(priors or {})
    expected_counts: Sums = data.expected_counts(success, failure)
    step, change = 0, np.inf
    while step < iterations:
        step += 1
        if priors is None:
            fits = {name: fit_beta if model.is_of_pairs(name) else _one_trial_prior for name in values}
            betas = {name: fit_prior(*expected_counts[name]) for name, fit_prior in fits.items()}
        # M-step: posterior means under the beta priors.
        updated = {name: _posterior_means(*expected_counts[name], betas.get(name)) for name in values}
        for name, index in fixed_indices.items():
            updated[name] = _with_one(updated[name], index)
        change = max(float(np.abs(updated[name] - values[name]).max()) for name in values)
        values = updated
        if change < TOLERANCE:
            break
        if report is not None and not step % 10:
            report(step / iterations)
        success, failure = dict(values), {name: 1 - value for name, value in values.items()}
        # E-step of variational Bayes for pairs; shared parameters have enough data for point estimates.
        if variational:
            for name in filter(model.is_of_pairs, betas):
                success[name], failure[name] = _geometric_means(*expected_counts[name], *betas[name])
        expected_counts = data.expected_counts(success, failure)
    return Fit(model, values, expected_counts, betas, step, change < TOLERANCE, change)


def _geometric_means(successes: Floats, trials: Floats, a: float, b: float) -> tuple[Floats, Floats]:
    """Return exp(E[log p]) and exp(E[log(1 - p)]) under the beta posterior of p (Beal, 2003, 2.4).

    Variational Bayes uses these in the E-step. With the posterior mean instead, too many skipped results count as
    examined, and the shared parameters are too high.
    """
    a_posterior, b_posterior = a + successes, b + trials - successes
    digamma_total = digamma(a_posterior + b_posterior)
    return np.exp(digamma(a_posterior) - digamma_total), np.exp(digamma(b_posterior) - digamma_total)


def fit_beta(successes: Floats, trials: Floats) -> Beta:
    """Fit a beta distribution to proportions by moments (Kleinman, JASA 1973).

    Expected successes of hidden events (satisfaction) vary less than the successes, so that the strength a + b is too
    high. It is limited to 30 trials.

    Returns
    -------
    a, b : float
        Pseudo-counts: the mean is a / (a + b).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> trials = np.full(20_000, 50)
    >>> a, b = fit_beta(rng.binomial(trials, rng.beta(2.0, 6.0, 20_000)), trials)
    >>> abs(a - 2) < 0.1, abs(b - 6) < 0.3
    (True, True)
    """
    has_trials = trials > 1e-9
    x, n = successes[has_trials], trials[has_trials]
    total = float(n.sum())
    mean = min(max(float(x.sum()) / total, 1e-6), 1 - 1e-6) if total else 0.5
    variation = float((n * (x / n - mean) ** 2).sum()) / (mean * (1 - mean))
    df = len(n) - 1
    scale = total - float((n * n).sum()) / total - df if total else 0.0
    # Moment estimate of the intraclass correlation 1 / (1 + a + b) for P pairs with N trials in total, with
    # S = sum n (x / n - mean)**2: (S / (mean (1 - mean)) - (P - 1)) / (N - sum n**2 / N - (P - 1)).
    correlation = (variation - df) / scale if scale > 0 else 0.5
    strength = min(max(1 / max(correlation, 1e-9) - 1, 0.01), _MAX_STRENGTH)
    return mean * strength, (1 - mean) * strength


def _one_trial_prior(successes: Floats, trials: Floats) -> Beta:
    # Keeps shared parameters with few trials away from 0 and 1.
    mean = _overall_share(successes, trials)
    return mean, 1 - mean


def _overall_share(successes: Floats, trials: Floats) -> float:
    return float(successes.sum() / trials.sum()) if trials.any() else 0.5


def _posterior_means(successes: Floats, trials: Floats, beta: Beta | None) -> Floats:
    a, b = beta or (0.0, 0.0)
    totals = trials + a + b
    defaults = np.full(len(totals), _overall_share(successes, trials))
    means = np.divide(successes + a, totals, out=defaults, where=totals > 0)
    return np.minimum(means, 1.0)  # expected successes can exceed trials by rounding errors


def _with_one(values: Floats, index: int) -> Floats:
    result = values.copy()
    result[index] = 1.0
    return result


def predict(model: ClickModel, patterns: PagePatterns, parameters: Parameters) -> tuple[Floats, Floats]:
    """Return conditional (given the clicks above) and marginal click probabilities, (N, K); 0 at empty ranks."""
    if not model.continuation_probabilities:
        return predict_rank_model(model, patterns, parameters)
    probabilities: Any = np.empty((2, *patterns.pair.shape))
    for begin in range(0, len(patterns.pair), 16_384):
        rows = slice(begin, begin + 16_384)
        batch = transpose_pages(patterns.pair[rows], patterns.clicked[rows], np.ones(0))
        conditional, marginal, _ = predict_batch(model, batch, parameters)
        probabilities[0, rows], probabilities[1, rows] = conditional.T, marginal.T
    return probabilities[0], probabilities[1]


def pair_posteriors(data: PageData, fitted: Fit, level: float) -> dict[str, PairPosterior]:
    """Return posteriors of pair parameters with the fitted prior, or without shrinkage with the Jeffreys prior.

    The posterior of a pair is conditional on the other parameters. Its spread is inflated by the uncertainty of shared
    parameters. Without shrinkage, pairs with fewer than five trials have NaN.
    """
    base, pair_priors = fitted, fitted.pair_priors
    if not pair_priors:
        names = list(filter(fitted.model.is_of_pairs, fitted.parameters))
        priors = dict.fromkeys(names, JEFFREYS)
        # The Jeffreys prior keeps estimates off 0 and 1, where the likelihood grid would be undefined.
        base = fit(data, priors=priors, start=fitted.parameters, iterations=max(fitted.iterations // 4, 10))
        pair_priors = {name: Prior(*(np.array([x]) for x in (*JEFFREYS, 1.0))) for name in names}
    inflation = data.information(base.parameters).inflation_factors(base.parameters, base.priors)
    posteriors: dict[str, PairPosterior] = {}
    for name, scores in data.parameter_scores(base.parameters).items():
        likelihood = Likelihood.of(scores, base.parameters[name], pair_priors[name].mean)
        posterior = likelihood.posterior(pair_priors[name], level, inflation[name])
        if not fitted.pair_priors:
            has_trials, value = fitted.expected_counts[name][1] >= _MIN_INTERVAL_TRIALS, fitted.parameters[name]
            posterior = PairPosterior(*(np.where(has_trials, column, np.nan) for column in posterior))
            # An equal-tailed interval does not reach a maximum likelihood estimate of 0 or 1.
            posterior = posterior._replace(low=np.minimum(posterior.low, value), high=np.maximum(posterior.high, value))
        posteriors[name] = posterior
    return posteriors
