"""Posterior distribution of each pair's parameter on a grid, with a prior that is fitted to all pairs.

Given all other parameters, the probability of a page is linear in each parameter that it uses. The score of the page
therefore determines its relative likelihood at any value of the parameter: ``1 + score * (value - fitted)``. The
product over pages is exact, even for few pages and for values near 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaln, expit, logit, logsumexp

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Parameters: TypeAlias = "dict[str, Floats]"
"""Probabilities by parameter name: ``attractiveness`` (by pair), and so on."""

Sums: TypeAlias = "dict[str, tuple[Floats, Floats]]"
"""Expected successes and trials of each parameter."""


def totals(index: Any, column: Any, size: int) -> Floats:
    """Return the sums of a column by index, (size,)."""
    return np.asarray(np.bincount(index, column, size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Information:
    """Empirical information of pages: sums of squares and products of scores (Meilijson, JRSS B 1989).

    The score of a page follows from the E-step: (expected successes - parameter * expected trials) / variance.
    Pair parameters are treated as independent given the shared parameters. For a parameter that a page uses once, the
    squared score is the exact observed information.

    Parameters
    ----------
    pair
        (P,) by name, information of pair parameters.
    free
        Indices of the identified shared parameters by name, in the order of `shared`.
    shared
        (G, G), information of shared parameters.
    cross
        (P, G) by name, dense or sparse.
    """

    pair: dict[str, Floats]
    free: dict[str, Ints]
    shared: Floats
    cross: dict[str, Any] = field(default_factory=dict[str, Any])

    def standard_errors(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return standard errors of shared parameters; NaN without information, and at 0 and 1."""
        errors = {name: np.full(len(parameters[name]), np.nan) for name in self.free}
        _, covariance = self._variances(parameters, priors)
        begin = 0
        for name, indices in self.free.items():
            # `pinv` gives variance 0 to directions without information: report NaN instead.
            variance = np.diag(covariance)[begin : begin + len(indices)]
            errors[name][indices] = np.sqrt(np.where(variance > 0, variance, np.nan))
            begin += len(indices)
        return errors

    def inflation_factors(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return factors by which estimated shared parameters inflate the standard errors of pairs, (P,) by name."""
        variances, covariance = self._variances(parameters, priors)
        factors: Parameters = {}
        for name, variance in variances.items():
            added: Any = 0.0
            if (cross := self.cross.get(name)) is not None:
                added = np.asarray((cross * (cross @ covariance)).sum(axis=1)).ravel()
            factors[name] = np.sqrt(1 + np.maximum(np.nan_to_num(added * variance), 0))
        return factors

    def _variances(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> tuple[Parameters, Floats]:
        """Return conditional variances of pair parameters, and the covariance matrix of shared parameters."""
        variances: Parameters = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, total in self.pair.items():
                information = total + _prior_information(parameters[name], priors.get(name))
                variances[name] = np.where(np.isfinite(information) & (information > 0), 1 / information, np.nan)
            free = [(parameters[name][indices], priors.get(name)) for name, indices in self.free.items()]
            total = self.shared + np.diag(np.concatenate([np.zeros(0), *(_prior_information(*row) for row in free)]))
        # Schur complement: information of shared parameters after the pair parameters, whose block is treated as
        # diagonal, are eliminated.
        schur = sum(
            (cross.T @ (cross * np.nan_to_num(variances[name])[:, None]) for name, cross in self.cross.items()), 0.0
        )
        covariance: Any = np.linalg.pinv(total - schur, hermitian=True) if total.size else total
        return variances, covariance


def _prior_information(value: Floats, prior: tuple[float, float] | None) -> Floats:
    # Minus the second derivative of the log density of Beta(a + 1, b + 1).
    a, b = prior or (0.0, 0.0)
    zeros = np.zeros_like(value)
    return (a / value**2 if a else zeros) + (b / (1 - value) ** 2 if b else zeros)


_POINTS = 64  # grid points of a posterior
_SCORE_BINS = 256  # scores of a pair in the same bin are averaged
_MIN_PROBABILITY = 1e-9
_MAX_PRIOR_PAIRS = 4_000  # a larger sample would not change the fitted prior
_MEAN_LOGITS, _LOG_STRENGTHS = (-5.0, 5.0), (-1.0, 5.0)  # grid of priors: logit of the mean, and log strength
_GRID_STEPS = 7  # grid steps of either
JEFFREYS = (0.5, 0.5)


class ParameterScores(NamedTuple):
    """Derivatives of the log-likelihood by a pair's parameter, binned over pages: (U,) each."""

    pair: Ints
    score: Floats
    weight: Floats


class Prior(NamedTuple):
    """Mixture of beta priors of pair parameters, with weights: (H,) each."""

    a: Floats
    b: Floats
    weight: Floats

    @property
    def mean(self) -> tuple[float, float]:
        """Beta distribution with the geometric mean strength and the mean of the mixture."""
        strength = float(np.exp(self.weight @ np.log(self.a + self.b)))
        mean = float(self.weight @ (self.a / (self.a + self.b)))
        return mean * strength, (1 - mean) * strength


class PairPosterior(NamedTuple):
    """Posterior mean, standard deviation, and interval of pairs: (P,) each."""

    mean: Floats
    sd: Floats
    low: Floats
    high: Floats


def bin_scores(pair: Ints, successes: Floats, trials: Floats, weight: Floats, values: Floats) -> ParameterScores:
    """Convert expected successes and trials to binned scores of pairs.

    Parameters
    ----------
    pair, successes, trials, weight
        (U,) each, one row for each use of a pair's parameter on a page.
    values
        (P,), the parameter values of the E-step.
    """
    p = np.clip(values, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)[pair]
    # Derivative of the complete-data log-likelihood; score * p * (1 - p) is between -1 and 1.
    score = successes / p - (trials - successes) / (1 - p)
    bins = ((score * p * (1 - p) + 1) / 2 * (_SCORE_BINS - 1)).round().astype(np.int64)
    n_bins = len(values) * _SCORE_BINS
    counts = totals(pair * _SCORE_BINS + bins, weight, n_bins)
    (filled,) = np.nonzero(counts)
    score = totals(pair * _SCORE_BINS + bins, weight * score, n_bins)[filled] / counts[filled]
    return ParameterScores(filled // _SCORE_BINS, score, counts[filled])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Likelihood of the parameter of each pair on a grid.

    Parameters
    ----------
    log_odds
        (P, J), equidistant logits of parameter values. On this scale, beta densities have no poles.
    log_likelihood
        (P, J), relative to the maximum of the pair.
    """

    log_odds: Floats
    log_likelihood: Floats

    @classmethod
    def of(cls, scores: ParameterScores, values: Floats, prior: tuple[float, float]) -> Likelihood:
        """Compute the likelihood around fitted values, over the range that matters with a beta prior."""
        p = np.clip(values, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)
        center, variance = logit(p), p * (1 - p)
        gradient = totals(scores.pair, scores.weight * scores.score, len(p)) * variance
        curvature = totals(scores.pair, scores.weight * scores.score**2, len(p)) * variance**2
        # Bernoulli trials with the same second derivative on the logit scale, which determines the grid width.
        trials = np.maximum(curvature - (1 - 2 * p) * gradient, 0.0) / variance
        a, b = p * trials + prior[0], (1 - p) * trials + prior[1]  # beta distribution near the posterior
        # 5 standard deviations, or the exponential tail of a logit with small a or b.
        half_width = 5 * np.sqrt(1 / a + 1 / b)
        low, high = center - np.maximum(half_width, 6 / a), center + np.maximum(half_width, 6 / b)
        log_odds = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _POINTS)
        log_likelihood = np.zeros_like(log_odds)
        for j in range(_POINTS):
            step = expit(log_odds[:, j]) - p
            factor = np.log(np.maximum(1 + scores.score * step[scores.pair], 1e-300))
            log_likelihood[:, j] = totals(scores.pair, scores.weight * factor, len(p))
        return cls(log_odds, log_likelihood - log_likelihood.max(axis=1, keepdims=True))

    def prior(self, has_data: Bools) -> Prior:
        """Fit the beta priors of pairs, weighted by their marginal likelihood.

        Parameters
        ----------
        has_data
            (P,), whether the pair has any pages.

        Notes
        -----
        The mean and the strength are on a grid. The prior of the strength makes the intraclass correlation
        ``1 / (1 + strength)`` uniform. Intervals allow for the uncertainty of the strength.
        """
        rows = np.flatnonzero(has_data)
        rows = rows[:: 1 + len(rows) // _MAX_PRIOR_PAIRS]
        width = (self.log_odds[rows, 1] - self.log_odds[rows, 0])[:, None]
        likelihood, log_p, log_1_p = np.exp(self.log_likelihood[rows]) * width, *_log_probabilities(self.log_odds[rows])

        # Beta-mixture marginal likelihood of all pairs for a prior with this mean and strength a + b.
        def log_marginal(mean: float, strength: float) -> float:
            a, b = mean * strength, (1 - mean) * strength
            likelihoods = (likelihood * np.exp(a * log_p + b * log_1_p - betaln(a, b))).sum(axis=1)
            # Prior on the log scale: strength / (1 + strength)**2, for a uniform intraclass correlation.
            return float(np.log(np.maximum(likelihoods, 1e-300)).sum() + np.log(strength) - 2 * np.log1p(strength))

        def posterior_weights(mean_logits: Floats, log_strengths: Floats) -> Floats:
            means, strengths = expit(mean_logits), np.exp(log_strengths)
            log_weights = np.array([[log_marginal(mean, strength) for strength in strengths] for mean in means])
            return np.exp(log_weights - logsumexp(log_weights))

        mean_logits, log_strengths = np.linspace(-1.5, 1.5, _GRID_STEPS), np.linspace(*_LOG_STRENGTHS, _GRID_STEPS)
        for _ in range(2):  # refine the grid around the mass of the posterior
            grid_weights = posterior_weights(mean_logits, log_strengths)
            mean_logits = _refine_grid(mean_logits, grid_weights.sum(axis=1), *_MEAN_LOGITS)
            log_strengths = _refine_grid(log_strengths, grid_weights.sum(axis=0), *_LOG_STRENGTHS)
        grid_weights = posterior_weights(mean_logits, log_strengths)
        mean, strength = np.repeat(expit(mean_logits), _GRID_STEPS), np.tile(np.exp(log_strengths), _GRID_STEPS)
        # Grid points with negligible weight would only slow down the posteriors.
        is_likely = grid_weights.ravel() > 1e-3 * grid_weights.max()
        probabilities = grid_weights.ravel()[is_likely] / grid_weights.ravel()[is_likely].sum()
        return Prior(mean[is_likely] * strength[is_likely], (1 - mean[is_likely]) * strength[is_likely], probabilities)

    def posterior(self, prior: Prior, level: float, inflation: Floats | float = 1.0) -> PairPosterior:
        """Compute the posterior of each pair.

        Parameters
        ----------
        prior
            Mixture of beta priors.
        level
            Confidence level of the intervals.
        inflation
            (P,), factor of the standard errors for the uncertainty of other parameters.
        """
        density = np.zeros_like(self.log_odds)
        log_p, log_1_p = _log_probabilities(self.log_odds)
        for a, b, weight in zip(*prior, strict=True):
            joint = self.log_likelihood + a * log_p + b * log_1_p
            joint = np.exp(joint - joint.max(axis=1, keepdims=True))
            density += weight * joint / joint.sum(axis=1, keepdims=True)
        p = expit(self.log_odds)
        mean = (density * p).sum(axis=1)
        sd = np.sqrt((density * (p - mean[:, None]) ** 2).sum(axis=1)) * inflation
        center = (density * self.log_odds).sum(axis=1)
        # Midpoint rule: half of the mass of a grid point is below it.
        cumulative = np.cumsum(density, axis=1) - density / 2
        limits: list[Floats] = []
        for sign in (-1, 1):
            quantile = _interpolate_quantile(cumulative, self.log_odds, (1 + sign * level) / 2)
            # The interval is inflated around the posterior mean on the logit scale, so that it stays within (0, 1).
            limits.append(expit(center + (quantile - center) * inflation))
        return PairPosterior(mean, sd, limits[0], limits[1])


def _refine_grid(grid: Floats, weights: Floats, lower: float, upper: float) -> Floats:
    """Return a grid of mean ± 3 standard deviations of a distribution on a coarser grid."""
    mean = float(weights @ grid)
    half_width = 3 * max(float(np.sqrt(weights @ (grid - mean) ** 2)), float(grid[1] - grid[0]) / 3)
    return np.linspace(max(mean - half_width, lower), min(mean + half_width, upper), len(grid))


def _log_probabilities(log_odds: Floats) -> tuple[Floats, Floats]:
    """Return log(p) and log(1 - p)."""
    return -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)


def _interpolate_quantile(cumulative: Floats, log_odds: Floats, probability: float) -> Floats:
    """Return the quantile of each row by linear interpolation between grid points."""
    right = np.clip((cumulative < probability).sum(axis=1), 1, cumulative.shape[1] - 1)[:, None]
    x0, x1 = (np.take_along_axis(cumulative, index, 1)[:, 0] for index in (right - 1, right))
    y0, y1 = (np.take_along_axis(log_odds, index, 1)[:, 0] for index in (right - 1, right))
    fraction = np.clip((probability - x0) / np.maximum(x1 - x0, 1e-300), 0, 1)
    return y0 + fraction * (y1 - y0)
