"""What a log says of each pair's parameter: its posterior distribution on a grid, and the prior that pairs share.

Once all other parameters are known, the probability of a page is linear in a parameter that it uses, so that the score
of the page alone gives its likelihood at every other value of the parameter: ``1 + score * (value - fitted)``. The
product over pages is exact, however little is known of the parameter and however near it is to 0 or 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import betaln, expit, logit, logsumexp

if TYPE_CHECKING:
    from judged.results.types import Bools, Floats, Ints


Parameters: TypeAlias = "dict[str, Floats]"
"""Probabilities by the name of what they are of: ``attractiveness`` by pair, and so on."""

Sums: TypeAlias = "dict[str, tuple[Floats, Floats]]"
"""Expected successes and trials of each parameter."""


def totals(place: Any, column: Any, size: int) -> Floats:
    """Add up a column by place: (size,)."""
    return np.asarray(np.bincount(place, column, size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Information:
    """The information in pages: sums of squares and products of scores (Meilijson, JRSS B 1989).

    A page's score is expected successes less expected trials times the parameter, over its variance: what the E-step
    gives already. Parameters of pairs are taken as independent of one another, given those that all pages share: for a
    parameter that a page uses once, the square of its score is its observed information exactly.

    Parameters
    ----------
    own
        (P,) by name: of the parameters that every pair has its own of.
    free
        By name, the places of those that all share, in the order of `shared`.
    shared
        (G, G).
    cross
        (P, G) by name, dense or sparse.
    """

    own: dict[str, Floats]
    free: dict[str, Ints]
    shared: Floats
    cross: dict[str, Any] = field(default_factory=dict[str, Any])

    def errors(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return standard errors of the parameters that all pages share; NaN where nothing is known, and at 0 and 1."""
        found = {name: np.full(len(parameters[name]), np.nan) for name in self.free}
        _, inside = self._variances(parameters, priors)
        begin = 0
        for name, places in self.free.items():
            variance = np.diag(inside)[begin : begin + len(places)]
            found[name][places] = np.sqrt(np.where(variance > 0, variance, np.nan))
            begin += len(places)
        return found

    def widening(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> Parameters:
        """Return how much wider standard errors of pairs are because parameters that all share are estimated: (P,)."""
        own, inside = self._variances(parameters, priors)
        shared = {
            name: np.asarray((cross * (cross @ inside)).sum(axis=1)).ravel() for name, cross in self.cross.items()
        }
        more = {name: np.nan_to_num(shared.get(name, 0.0) * variance) for name, variance in own.items()}
        return {name: np.sqrt(1 + np.maximum(part, 0)) for name, part in more.items()}

    def _variances(self, parameters: Parameters, priors: dict[str, tuple[float, float]]) -> tuple[Parameters, Floats]:
        """Return variances of parameters of pairs, were all others known, and covariances of those that all share."""
        own: Parameters = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, told in self.own.items():
                known = told + _curvature(parameters[name], priors.get(name))
                own[name] = np.where(np.isfinite(known) & (known > 0), 1 / known, np.nan)
            drawn = [_curvature(parameters[name][places], priors.get(name)) for name, places in self.free.items()]
            told = self.shared + np.diag(np.concatenate([np.zeros(0), *drawn]))
        less = sum((cross.T @ (cross * np.nan_to_num(own[name])[:, None]) for name, cross in self.cross.items()), 0.0)
        inside: Any = np.linalg.pinv(told - less, hermitian=True) if told.size else told
        return own, inside


def _curvature(value: Floats, prior: tuple[float, float] | None) -> Floats:
    """Give what a prior tells of a parameter beside the pages."""
    a, b = prior or (0.0, 0.0)
    none = np.zeros_like(value)
    return (a / value**2 if a else none) + (b / (1 - value) ** 2 if b else none)


_POINTS = 64  # of a grid
_BINS = 256  # of scores: those of one pair that are alike are joined
_LEAST = 1e-9
_PAIRS = 4_000  # that a prior is fitted to, at most
_SHARES, _STRENGTHS = (-5.0, 5.0), (-1.0, 5.0)  # of priors: log odds of the mean, and logarithms of trials
_STEPS = 7  # of either, on a grid
JEFFREYS = (0.5, 0.5)


class Evidence(NamedTuple):
    """Scores of the pages that use the parameter of a pair: (U,) each, or what stands for several alike."""

    pair: Ints
    score: Floats
    weight: Floats


class Prior(NamedTuple):
    """Beta distributions that values of pairs may vary by, with the probability of each: (H,) each."""

    a: Floats
    b: Floats
    weight: Floats

    @property
    def mean(self) -> tuple[float, float]:
        """The beta distribution of the mean strength, on the logarithmic scale, and the mean share."""
        strength = float(np.exp(self.weight @ np.log(self.a + self.b)))
        share = float(self.weight @ (self.a / (self.a + self.b)))
        return share * strength, (1 - share) * strength


class Posterior(NamedTuple):
    """What is known of the values of pairs: (P,) each."""

    mean: Floats
    sd: Floats
    low: Floats
    high: Floats


def evidence_of(pair: Ints, successes: Floats, trials: Floats, weight: Floats, values: Floats) -> Evidence:
    """Join expected successes and trials of pages to scores of pairs.

    Parameters
    ----------
    pair, successes, trials, weight
        (U,) each: of every use of a pair's parameter on a page; how often it counts.
    values
        (P,): the parameter that expectations were made with.
    """
    value = np.clip(values, _LEAST, 1 - _LEAST)[pair]
    score = successes / value - (trials - successes) / (1 - value)
    bins = ((score * value * (1 - value) + 1) / 2 * (_BINS - 1)).round().astype(np.int64)
    size = len(values) * _BINS
    counts = totals(pair * _BINS + bins, weight, size)
    (cell,) = np.nonzero(counts)
    score = totals(pair * _BINS + bins, weight * score, size)[cell] / counts[cell]
    return Evidence(cell // _BINS, score, counts[cell])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Likelihood of the parameter of each pair, at points of a grid of its own.

    Parameters
    ----------
    odds
        (P, J): logarithms of the odds of values, at equal distances. On this scale beta densities have no poles.
    log
        (P, J): logarithms of the likelihood.
    """

    odds: Floats
    log: Floats

    @classmethod
    def of(cls, evidence: Evidence, values: Floats, prior: tuple[float, float]) -> Likelihood:
        """Compute the likelihood around fitted values, as far out as a beta prior leaves anything to know."""
        value = np.clip(values, _LEAST, 1 - _LEAST)
        middle, spread = logit(value), value * (1 - value)
        first = totals(evidence.pair, evidence.weight * evidence.score, len(value)) * spread
        second = totals(evidence.pair, evidence.weight * evidence.score**2, len(value)) * spread**2
        trials = np.maximum(second - (1 - 2 * value) * first, 0.0) / spread
        ends = [share * trials + more for share, more in zip((value, 1 - value), prior, strict=True)]
        half = 5 * np.sqrt(1 / ends[0] + 1 / ends[1])
        low, high = middle - np.maximum(half, 6 / ends[0]), middle + np.maximum(half, 6 / ends[1])
        odds = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _POINTS)
        log = np.zeros_like(odds)
        for at in range(_POINTS):
            change = expit(odds[:, at]) - value
            factor = np.log(np.maximum(1 + evidence.score * change[evidence.pair], 1e-300))
            log[:, at] = totals(evidence.pair, evidence.weight * factor, len(value))
        return cls(odds, log - log.max(axis=1, keepdims=True))

    def prior(self, known: Bools) -> Prior:
        """Return the beta distributions that values of pairs may be drawn from, by their marginal likelihood.

        Parameters
        ----------
        known
            (P,): whether there is any evidence of a pair.

        Notes
        -----
        The mean and the strength are on a grid. The strength has the prior that makes the intraclass correlation
        ``1 / (1 + strength)`` uniform, and is not taken as known: where hidden values differ by an amount that the log
        hardly tells, intervals allow for that.
        """
        rows = np.flatnonzero(known)
        rows = rows[:: 1 + len(rows) // _PAIRS]
        width = (self.odds[rows, 1] - self.odds[rows, 0])[:, None]
        likelihood, yes, no = np.exp(self.log[rows]) * width, *_logs(self.odds[rows])

        def marginal(share: float, strength: float) -> float:
            a, b = share * strength, (1 - share) * strength
            each = (likelihood * np.exp(a * yes + b * no - betaln(a, b))).sum(axis=1)
            return float(np.log(np.maximum(each, 1e-300)).sum() + np.log(strength) - 2 * np.log1p(strength))

        def weights(logits: Floats, strengths: Floats) -> Floats:
            each = np.array([[marginal(share, strength) for strength in np.exp(strengths)] for share in expit(logits)])
            return np.exp(each - logsumexp(each))

        logits, strengths = np.linspace(-1.5, 1.5, _STEPS), np.linspace(*_STRENGTHS, _STEPS)
        for _ in range(2):  # find where the likelihood is, and lay the grid there
            weight = weights(logits, strengths)
            logits = _around(logits, weight.sum(axis=1), *_SHARES)
            strengths = _around(strengths, weight.sum(axis=0), *_STRENGTHS)
        weight = weights(logits, strengths)
        share, strength = np.repeat(expit(logits), _STEPS), np.tile(np.exp(strengths), _STEPS)
        likely = weight.ravel() > 1e-3 * weight.max()
        chance = weight.ravel()[likely] / weight.ravel()[likely].sum()
        return Prior(share[likely] * strength[likely], (1 - share[likely]) * strength[likely], chance)

    def posterior(self, prior: Prior, level: float, widen: Floats | float = 1.0) -> Posterior:
        """Return what is known of each pair.

        Parameters
        ----------
        prior
            What values may be drawn from; it is mixed by its weights.
        level
            Of the intervals.
        widen
            (P,): how much wider standard errors are for what else is uncertain than for the pair's own parameter.
        """
        density = np.zeros_like(self.odds)
        yes, no = _logs(self.odds)
        for a, b, weight in zip(*prior, strict=True):
            joint = self.log + a * yes + b * no
            joint = np.exp(joint - joint.max(axis=1, keepdims=True))
            density += weight * joint / joint.sum(axis=1, keepdims=True)
        value = expit(self.odds)
        mean = (density * value).sum(axis=1)
        sd = np.sqrt((density * (value - mean[:, None]) ** 2).sum(axis=1)) * widen
        middle = (density * self.odds).sum(axis=1)
        below = np.cumsum(density, axis=1) - density / 2
        ends: list[Floats] = []
        for side in (-1, 1):
            end = _interpolated(below, self.odds, (1 + side * level) / 2)
            ends.append(expit(middle + (end - middle) * widen))
        return Posterior(mean, sd, ends[0], ends[1])


def _around(axis: Floats, weight: Floats, least: float, most: float) -> Floats:
    """Lay a grid around the mean of a distribution on a coarser one."""
    mean = float(weight @ axis)
    half = 3 * max(float(np.sqrt(weight @ (axis - mean) ** 2)), float(axis[1] - axis[0]) / 3)
    return np.linspace(max(mean - half, least), min(mean + half, most), len(axis))


def _logs(odds: Floats) -> tuple[Floats, Floats]:
    """Return logarithms of probabilities and of their complements."""
    return -np.logaddexp(0, -odds), -np.logaddexp(0, odds)


def _interpolated(below: Floats, odds: Floats, share: float) -> Floats:
    """Return the points at which rising functions reach a share, between the points of their grids by lines."""
    right = np.clip((below < share).sum(axis=1), 1, below.shape[1] - 1)[:, None]
    x0, x1 = (np.take_along_axis(below, at, 1)[:, 0] for at in (right - 1, right))
    y0, y1 = (np.take_along_axis(odds, at, 1)[:, 0] for at in (right - 1, right))
    part = np.clip((share - x0) / np.maximum(x1 - x0, 1e-300), 0, 1)
    return y0 + part * (y1 - y0)
