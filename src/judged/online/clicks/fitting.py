"""Models fitted by expectation maximization to counts, with shrinkage and standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import digamma

from judged.online.clicks.chains import Chain, part_of, predicted
from judged.online.clicks.looked_at import LookedAt, predictions
from judged.online.clicks.posteriors import JEFFREYS, Likelihood, Posterior, Prior

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from judged.online.clicks.cells import Patterns
    from judged.online.clicks.looked_at import ClickModel
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.results.types import Floats

    Data: TypeAlias = LookedAt | Chain

Shrink: TypeAlias = Literal["empirical", "none"]
"""How pairs that are seldom shown are estimated: towards the others, or each by itself."""

Beta: TypeAlias = tuple[float, float]

TOLERANCE = 1e-5
"""A fit has converged where no probability moves by more in a step."""

_TRIED, _SETTLED = 1e-9, 0.05  # least trials of a pair that counts; relative changes of priors that are none

_FEWEST = 5  # trials of a pair with an interval, without shrinkage

# Trials: where pairs seem not to differ, moments cannot tell by how little, and errors must not vanish.
_STRONGEST = 30.0


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters of a model, and how they were found.

    Parameters
    ----------
    model
        The model.
    parameters
        By name: ``attractiveness`` (P,), ``examination``, ``satisfaction``, ``continuation``.
    sums
        Expected successes and trials, of the last step.
    priors
        What values were drawn towards, by name: pseudo-successes and pseudo-failures.
    iterations, converged
        Steps, and whether nothing moved any more after them.
    moved
        By how much at most in the last one.
    drawn
        Beta distributions that values of pairs may be drawn from, by name, where they are fitted.
    """

    model: ClickModel
    parameters: Parameters
    sums: Sums
    priors: dict[str, Beta]
    iterations: int
    converged: bool
    moved: float
    drawn: dict[str, Prior] = field(default_factory=dict[str, Prior])


def data_of(model: ClickModel, patterns: Patterns, counts: Floats) -> Data:
    """Give pages that count so often each, (N,), as a model is fitted to them."""
    return Chain(model, patterns, counts) if model.go_on else LookedAt.of_patterns(model, patterns, counts)


def fit(
    data: Data,
    *,
    shrink: Shrink = "empirical",
    iterations: int = 1000,
    start: Parameters | None = None,
    priors: Mapping[str, Beta] | None = None,
    fixed: Mapping[str, int] | None = None,
    rounds: int = 4,
    tell: Callable[[float], None] | None = None,
) -> Fit:
    """Fit a model.

    Parameters
    ----------
    data
        `LookedAt` or `Chain`.
    shrink
        ``empirical``: values of pairs are drawn towards a beta distribution that is fitted to them beside, and those
        that all pages share towards their mean, as by one trial more.
    iterations
        At most so many steps, and a quarter of them each time that the prior changes.
    start
        Where to begin.
    priors, fixed
        Pseudo-counts, and places whose value is 1: in the place of what `shrink` and the model say.
    rounds
        How often the prior of pairs is fitted anew, at most.
    tell
        Called with the share of the steps that are done.
    """
    if priors is not None or shrink == "none":
        return _em(data, dict(start or data.start()), iterations, priors or {}, fixed, tell, variational=False)
    found = _em(data, dict(start or data.start()), iterations, None, fixed, tell)
    steps, drawn = found.iterations, dict[str, Prior]()
    for _ in range(rounds):
        drawn = {
            name: Likelihood.of(evidence, found.parameters[name], (0.5, 0.5)).prior(found.sums[name][1] > _TRIED)
            for name, evidence in data.evidence(found.parameters).items()
        }
        if not drawn:
            break
        betas = found.priors | {name: prior.mean for name, prior in drawn.items()}
        settled = all(np.allclose(betas[name], found.priors[name], rtol=_SETTLED) for name in drawn)
        found = _em(data, found.parameters, max(iterations // 4, 10), betas, fixed, tell)
        steps += found.iterations
        if settled:
            break
    return replace(found, iterations=steps, drawn=drawn)


def _em(
    data: Data,
    values: Parameters,
    iterations: int,
    priors: Mapping[str, Beta] | None,
    fixed: Mapping[str, int] | None,
    tell: Callable[[float], None] | None,
    *,
    variational: bool = True,
) -> Fit:
    """Fit a model with given priors; None: beta distributions by moments, fitted beside."""
    model = data.model
    ones = data.fixed() if fixed is None else fixed
    for name, place in ones.items():
        values[name] = _with(values[name], place)
    yes, no = values, {name: 1 - one for name, one in values.items()}
    betas: dict[str, Beta] = dict(priors or {})
    sums: Sums = data.sums(yes, no)
    step, moved = 0, np.inf
    while step < iterations:
        step += 1
        if priors is None:
            betas = {name: (beta_of if model.is_of_pairs(name) else _one_more)(*sums[name]) for name in values}
        new = {name: _means(*sums[name], betas.get(name)) for name in values}
        for name, place in ones.items():
            new[name] = _with(new[name], place)
        moved = max(float(np.abs(new[name] - values[name]).max()) for name in values)
        values = new
        if moved < TOLERANCE:
            break
        if tell is not None and not step % 10:
            tell(step / iterations)
        yes, no = dict(values), {name: 1 - one for name, one in values.items()}
        if variational:
            for name in filter(model.is_of_pairs, betas):
                yes[name], no[name] = _typical(*sums[name], *betas[name])
        sums = data.sums(yes, no)
    return Fit(model, values, sums, betas, step, moved < TOLERANCE, moved)


def _typical(successes: Floats, trials: Floats, a: float, b: float) -> tuple[Floats, Floats]:
    """Give what stands for a probability that is only known up to a beta distribution, and for its complement.

    These are the exponentials of the means of the logarithms (variational Bayes; Beal, 2003, 2.4): with the mean itself
    all that is not clicked would count as seen too often, and what all pages share would come out too high.
    """
    above, below = a + successes, b + trials - successes
    both = digamma(above + below)
    return np.exp(digamma(above) - both), np.exp(digamma(below) - both)


def beta_of(successes: Floats, trials: Floats) -> Beta:
    """Give the beta distribution that shares vary by, of counts: by moments (Kleinman, JASA 1973).

    Expected successes of what is hidden, as satisfaction is, differ less than the successes would: pairs seem more
    alike than they are. No prior counts for more than 30 trials.

    Returns
    -------
    a, b : float
        Pseudo-counts: the mean is a / (a + b).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> shown = np.full(20_000, 50)
    >>> a, b = beta_of(rng.binomial(shown, rng.beta(2.0, 6.0, 20_000)), shown)
    >>> abs(a - 2) < 0.1, abs(b - 6) < 0.3
    (True, True)
    """
    there = trials > 1e-9
    x, n = successes[there], trials[there]
    total = float(n.sum())
    mean = min(max(float(x.sum()) / total, 1e-6), 1 - 1e-6) if total else 0.5
    spread = float((n * (x / n - mean) ** 2).sum()) / (mean * (1 - mean))
    chance = len(n) - 1
    more = total - float((n * n).sum()) / total - chance if total else 0.0
    share = (spread - chance) / more if more > 0 else 0.5
    strength = min(max(1 / max(share, 1e-9) - 1, 0.01), _STRONGEST)
    return mean * strength, (1 - mean) * strength


def _one_more(successes: Floats, trials: Floats) -> Beta:
    """Give one more trial, with the share of all: what is seldom tried on any page is neither 0 nor 1 for it."""
    mean = _share_of_all(successes, trials)
    return mean, 1 - mean


def _share_of_all(successes: Floats, trials: Floats) -> float:
    return float(successes.sum() / trials.sum()) if trials.any() else 0.5


def _means(successes: Floats, trials: Floats, beta: Beta | None) -> Floats:
    """Give shares; where nothing was tried, that of all together."""
    a, b = beta or (0.0, 0.0)
    below = trials + a + b
    overall = np.full(len(below), _share_of_all(successes, trials))
    shares = np.divide(successes + a, below, out=overall, where=below > 0)
    return np.minimum(shares, 1.0)  # sums of rounded probabilities may be a bit more than their number


def _with(values: Floats, place: int) -> Floats:
    changed = values.copy()
    changed[place] = 1.0
    return changed


def predict(model: ClickModel, patterns: Patterns, parameters: Parameters) -> tuple[Floats, Floats]:
    """Give the probability of every click given those above it, and before any is known: (N, K), 0 at no result."""
    if not model.go_on:
        return predictions(model, patterns, parameters)
    found: Any = np.empty((2, *patterns.pair.shape))
    for at in range(0, len(patterns.pair), 16_384):
        rows = slice(at, at + 16_384)
        part = part_of(patterns.pair[rows], patterns.clicked[rows], np.ones(0))
        given, before, _ = predicted(model, part, parameters)
        found[0, rows], found[1, rows] = given.T, before.T
    return found[0], found[1]


def pair_posteriors(data: Data, found: Fit, level: float) -> dict[str, Posterior]:
    """Return what is known of the parameters of pairs, with the fitted prior; without shrinkage, with that of Jeffreys.

    The posterior of a pair takes the other parameters as known; it is widened by as much as parameters that all pages
    share add to its standard error. Without shrinkage there is none (NaN) of pairs tried less than five times: the
    prior of Jeffreys would decide, which says that a share is near 0 or near 1.
    """
    base, drawn = found, found.drawn
    if not drawn:
        names = list(filter(found.model.is_of_pairs, found.parameters))
        priors = dict.fromkeys(names, JEFFREYS)
        base = fit(data, priors=priors, start=found.parameters, iterations=max(found.iterations // 4, 10))
        drawn = {name: Prior(*(np.array([x]) for x in (*JEFFREYS, 1.0))) for name in names}
    wider = data.information(base.parameters).widening(base.parameters, base.priors)
    made: dict[str, Posterior] = {}
    for name, evidence in data.evidence(base.parameters).items():
        likelihood = Likelihood.of(evidence, base.parameters[name], drawn[name].mean)
        known = likelihood.posterior(drawn[name], level, wider[name])
        if not found.drawn:
            told, value = found.sums[name][1] >= _FEWEST, found.parameters[name]
            known = Posterior(*(np.where(told, column, np.nan) for column in known))
            # The maximum is at 0 or 1 where the interval of the posterior, which has equal tails, does not reach it.
            known = known._replace(low=np.minimum(known.low, value), high=np.maximum(known.high, value))
        made[name] = known
    return made
