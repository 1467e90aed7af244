"""Cascade-type click models (CM, DCM, CCM, DBN, SDBN): exact expectations for all pages at once.

Users examine results from top to bottom. Given the clicks of a page, the only hidden event is the rank at which the
user stopped: the last click or a rank below. A backward recursion over ranks sums over these ranks exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.online.clicks.posteriors import Information, ParameterScores, bin_scores, totals
from judged.results.types import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.online.clicks.impression_counts import PagePatterns
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.online.clicks.rank_models import ClickModel
    from judged.results.types import Bools, Floats, Ints

_BATCH_SIZE = 16_384  # pages whose arrays fit into the cache of a core
_TINY = 1e-300


class _ParameterUse(NamedTuple):
    """Expected successes and trials of a parameter, (K, N); `index` is (K, N) or one index for all."""

    name: str
    index: Any
    successes: Any
    trials: Any


class _PageBatch(NamedTuple):
    """Pages with ranks as rows, (K, N), and the count of each page, (N,)."""

    pair: Ints
    clicked: Bools
    counts: Floats
    has_result: Bools
    click_below: Bools  # then the user certainly continued
    result_below: Bools


@dataclass(frozen=True, eq=False)
class CascadePages:
    """Pages that a cascade-type model is fitted to.

    Parameters
    ----------
    model
        Click model with continuation probabilities.
    patterns
        Results and clicks of N distinct pages.
    weights
        (N,), count of each page.
    """

    model: ClickModel
    patterns: PagePatterns
    weights: Floats

    @cached_property
    def batches(self) -> list[_PageBatch]:
        """Pages with positive weight, in batches."""
        rows = np.flatnonzero(self.weights)
        batches = [rows[begin : begin + _BATCH_SIZE] for begin in range(0, len(rows), _BATCH_SIZE)]
        patterns, weights = self.patterns, self.weights
        return [transpose_pages(patterns.pair[batch], patterns.clicked[batch], weights[batch]) for batch in batches]

    def initial_parameters(self) -> Parameters:
        """Return the starting values of the fit."""
        pairs, depth = len(self.patterns.pairs), self.patterns.pair.shape[1]
        values: Parameters = {"attractiveness": np.full(pairs, 0.5)}
        if self.model.satisfied in {"pair", "rank"}:
            values["satisfaction"] = np.full(pairs if self.model.satisfied == "pair" else depth, 0.5)
        if self.model.continuation_names:
            values["continuation"] = np.full(len(self.model.continuation_names), 0.5)
        return values

    def fixed_indices(self) -> dict[str, int]:
        """Return no fixed parameters: all of these models assume that the first result is examined."""
        return {}

    def check_connected(self) -> None:
        """Check nothing: parameters are identified without results at several ranks."""

    def expected_counts(self, success: Parameters, failure: Parameters) -> Sums:
        """Return expected successes and trials of each parameter, given its values for success and failure."""
        counts_by_name: Sums = {name: (np.zeros_like(p), np.zeros_like(p)) for name, p in success.items()}
        for batch in self.batches:
            weight = np.broadcast_to(batch.counts, batch.pair.shape)
            for use in expected_uses(self.model, batch, success, failure):
                counts = counts_by_name[use.name]
                if np.ndim(use.index) == 0:
                    counts[0][use.index] += float((use.successes @ batch.counts).sum())
                    counts[1][use.index] += float((use.trials @ batch.counts).sum())
                    continue
                has_result = batch.has_result
                # Sum only over the range of indices in the batch: arrays over all pairs would dominate the run time.
                index = use.index[has_result]
                begin, end = int(index.min()), int(index.max()) + 1
                for total, column in zip(counts, (use.successes, use.trials), strict=True):
                    total[begin:end] += totals(index - begin, (column * weight)[has_result], end - begin)
        return counts_by_name

    def log_likelihood(self, parameters: Parameters) -> float:
        """Return the log-likelihood of all clicks."""
        total = 0.0
        for batch in self.batches:
            conditional, _, _ = predict_batch(self.model, batch, parameters)
            # An impossible page has log-likelihood minus infinity.
            with np.errstate(divide="ignore"):
                total += float(np.log(np.where(batch.clicked, conditional, 1 - conditional)).sum(axis=0) @ batch.counts)
        return total

    def parameter_scores(self, parameters: Parameters) -> dict[str, ParameterScores]:
        """Return the scores of pair parameters by page."""
        failure = {name: 1 - values for name, values in parameters.items()}
        columns_by_name: dict[str, list[tuple[Ints, Floats, Floats, Floats]]] = {}
        for batch in self.batches:
            weight = np.broadcast_to(batch.counts, batch.pair.shape)
            for use in expected_uses(self.model, batch, parameters, failure):
                if self.model.is_of_pairs(use.name):
                    is_used = batch.has_result & (use.trials > 0)
                    columns = use.index[is_used], use.successes[is_used], use.trials[is_used], weight[is_used]
                    columns_by_name.setdefault(use.name, []).append(columns)
        scores: dict[str, ParameterScores] = {}
        for name, batches in columns_by_name.items():
            pair, successes, trials, weight = (np.concatenate(parts) for parts in zip(*batches, strict=True))
            scores[name] = bin_scores(pair, successes, trials, weight, parameters[name])
        return scores

    def information(self, parameters: Parameters) -> Information:
        """Return the outer products of the scores of pages."""
        shared_names = [name for name in parameters if not self.model.is_of_pairs(name)]
        sizes = np.cumsum([0, *(len(parameters[name]) for name in shared_names)])
        offsets = dict(zip(shared_names, sizes.tolist(), strict=False))
        n_shared, n_pairs = int(sizes[-1]), len(self.patterns.pairs)
        pair = {name: np.zeros(n_pairs) for name in parameters if self.model.is_of_pairs(name)}
        cross = {name: np.zeros((n_pairs, n_shared)) for name in pair} if n_shared else {}
        shared, failure = np.zeros((n_shared, n_shared)), {name: 1 - values for name, values in parameters.items()}
        for batch in self.batches:
            scores = np.zeros((n_shared, len(batch.counts)))
            pair_scores = {name: np.zeros(batch.pair.shape) for name in pair}
            for use in expected_uses(self.model, batch, parameters, failure):
                p = parameters[use.name][use.index]
                with np.errstate(divide="ignore", invalid="ignore"):
                    score = (use.successes - p * use.trials) / (p * (1 - p))
                # Parameters at 0 or 1 have no finite score, and no standard error.
                score = np.where((use.trials > 0) & np.isfinite(score), score, 0.0)
                if use.name in pair:
                    pair_scores[use.name] += score
                elif np.ndim(use.index) == 0:
                    scores[offsets[use.name] + use.index] += score.sum(axis=0)
                else:
                    scores[offsets[use.name] : offsets[use.name] + len(score)] += score
            shared += (scores * batch.counts) @ scores.T
            has_result, pairs = batch.has_result, batch.pair[batch.has_result]
            for name, score in pair_scores.items():
                weighted_scores = score * batch.counts
                pair[name] += totals(pairs, (weighted_scores * score)[has_result], n_pairs)
                for j in range(n_shared):
                    cross[name][:, j] += totals(pairs, (weighted_scores * scores[j])[has_result], n_pairs)
        # Shared parameters that no page uses would make the matrix singular.
        is_identified = np.diag(shared) > 0
        free = {name: np.flatnonzero(is_identified[offsets[name] :][: len(parameters[name])]) for name in shared_names}
        identified_cross = {name: values[:, is_identified] for name, values in cross.items()}
        return Information(pair, free, shared[np.ix_(is_identified, is_identified)], identified_cross)

    def examination_counts(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Return expected examinations (given the clicks above) and impressions by rank."""
        sums = np.zeros((2, self.patterns.pair.shape[1]))
        for batch in self.batches:
            _, _, examined = predict_batch(self.model, batch, parameters)
            sums += [(column * batch.has_result) @ batch.counts for column in (examined, np.ones_like(examined))]
        return sums[0], sums[1]


def transpose_pages(pair: Ints, clicked: Bools, counts: Floats) -> _PageBatch:
    """Transpose pages, (N, K), so that a pass over ranks reads contiguous memory."""
    pair_by_rank, clicked_by_rank = np.ascontiguousarray(pair.T), np.ascontiguousarray(clicked.T)
    has_result = pair_by_rank >= 0
    clicks_below = np.cumsum(clicked_by_rank[::-1], axis=0)[::-1] - clicked_by_rank
    result_below = (np.cumsum(has_result[::-1], axis=0)[::-1] - has_result) > 0
    return _PageBatch(pair_by_rank, clicked_by_rank, counts, has_result, clicks_below > 0, result_below)


def _satisfaction_probabilities(model: ClickModel, batch: _PageBatch, parameters: Parameters) -> Any:
    match model.satisfied:
        case "pair":
            return parameters["satisfaction"][batch.pair]
        case "rank":
            return parameters["satisfaction"][: len(batch.pair), None]
        case "attractiveness":
            return parameters["attractiveness"][batch.pair]
        case _:
            return 1.0


def _continuation_probabilities(model: ClickModel, parameters: Parameters) -> tuple[float, float, float]:
    fitted = dict(zip(model.continuation_names, parameters.get("continuation", ()), strict=True))
    tau_1, tau_2, tau_3 = (fitted[tau] if isinstance(tau, str) else tau for tau in model.continuation_probabilities)
    return tau_1, tau_2, tau_3


def expected_uses(
    model: ClickModel, batch: _PageBatch, success: Parameters, failure: Parameters
) -> Iterator[_ParameterUse]:
    """Yield the expected successes and trials of each parameter given the clicks of each page (E-step).

    A user with a click below continued. Without one, the user continued and clicked nothing, or stopped. A backward
    pass computes the probability of the former, and a forward pass the probability of examination.

    Parameters
    ----------
    success, failure
        Parameters and their complements, or the values that replace both in variational Bayes.
    """
    clicked, has_result = batch.clicked, batch.has_result
    # Notation of CCM in Chuklin, Markov and de Rijke (2015), Chapter 3: continuation tau_1 after no click, tau_2 after
    # an unsatisfying click, tau_3 after a satisfying click. The other models are special cases.
    tau_1, tau_2, tau_3 = _continuation_probabilities(model, success)
    not_alpha = np.where(has_result, failure["attractiveness"][batch.pair], 1.0)
    sigma = _satisfaction_probabilities(model, batch, success)
    not_sigma = 0.0 if model.satisfied == "always" else _satisfaction_probabilities(model, batch, failure)
    # Probability to continue and to stop after each rank, given examination. Empty ranks are passed.
    p_continue = np.where(clicked, sigma * tau_3 + not_sigma * tau_2, np.where(has_result, tau_1, 1.0))
    p_stop = np.where(clicked, sigma * (1 - tau_3) + not_sigma * (1 - tau_2), np.where(has_result, 1 - tau_1, 0.0))
    no_clicks = np.ones((len(clicked) + 1, clicked.shape[1]))  # probability of no click from a rank on, if examined
    for rank in range(len(clicked) - 1, -1, -1):
        no_clicks[rank] = not_alpha[rank] * (p_stop[rank] + p_continue[rank] * no_clicks[rank + 1])
    # Likelihood of the clicks below, if the user stops and if the user continues.
    stop_likelihood = np.where(batch.click_below, 0.0, 1.0)
    continue_likelihood = np.where(batch.click_below, 1.0, no_clicks[1:])
    # Bayes: posterior probability that the user continued, given the clicks of the whole page.
    p_observed = np.maximum(p_stop * stop_likelihood + p_continue * continue_likelihood, _TINY)
    q_continue = p_continue * continue_likelihood / p_observed
    # A result is examined if the user continued at each rank above.
    examined = np.ones_like(not_alpha)
    np.cumprod(q_continue[:-1], axis=0, out=examined[1:])
    examined = np.where(has_result, examined, 0.0)
    # `clicked * examined`, not `clicked`: CM gives a second click on a page examination 0.
    yield _ParameterUse("attractiveness", batch.pair, clicked * examined, examined)
    informative = clicked & batch.result_below  # a click on the last result says nothing about satisfaction
    q_satisfied = sigma * ((1 - tau_3) * stop_likelihood + tau_3 * continue_likelihood) / p_observed
    satisfied_clicks = np.where(informative, q_satisfied, 0.0)
    if model.satisfied != "always":
        name = "attractiveness" if model.satisfied == "attractiveness" else "satisfaction"
        index = np.arange(len(clicked))[:, None] + 0 * batch.pair if model.satisfied == "rank" else batch.pair
        yield _ParameterUse(name, index, satisfied_clicks, informative * 1.0)
    # Each type of continuation: expected continuations of expected opportunities.
    skips = np.where(~clicked & has_result & batch.result_below, examined, 0.0)
    unsatisfied = np.where(informative, not_sigma * tau_2 * continue_likelihood / p_observed, 0.0)
    satisfied = np.where(informative, sigma * tau_3 * continue_likelihood / p_observed, 0.0)
    trials_2 = informative - satisfied_clicks
    continuations = (skips * q_continue, skips), (unsatisfied, trials_2), (satisfied, satisfied_clicks)
    for name, (successes, trials) in zip(model.continuation_probabilities, continuations, strict=True):
        if isinstance(name, str):
            yield _ParameterUse("continuation", model.continuation_names.index(name), successes, trials)


def predict_batch(model: ClickModel, batch: _PageBatch, parameters: Parameters) -> tuple[Floats, Floats, Floats]:
    """Return conditional and marginal click probabilities, and conditional examination probabilities, (K, N) each."""
    tau_1, tau_2, tau_3 = _continuation_probabilities(model, parameters)
    alpha = np.where(batch.has_result, parameters["attractiveness"][batch.pair], 0.0)
    sigma = _satisfaction_probabilities(model, batch, parameters)
    click_continuation = np.broadcast_to(sigma * tau_3 + (1 - sigma) * tau_2, alpha.shape)
    skip_continuation = np.where(batch.has_result, tau_1, 1.0)
    conditional, marginal, examined = (np.zeros_like(alpha) for _ in range(3))
    p_examined = p_reached = np.ones(alpha.shape[1])
    for rank in range(len(alpha)):
        examined[rank], conditional[rank] = p_examined, p_examined * alpha[rank]
        marginal[rank] = p_reached * alpha[rank]
        # Bayes: P(examined | not clicked) = (1 - alpha) P(examined) / (1 - alpha P(examined)).
        p_examined_if_skipped = p_examined * (1 - alpha[rank]) / np.maximum(1 - p_examined * alpha[rank], _TINY)
        if_skipped = p_examined_if_skipped * skip_continuation[rank]
        p_examined = np.where(batch.clicked[rank], click_continuation[rank], if_skipped)
        # Marginal recursion: average over click and no click at this rank.
        p_reached = p_reached * ((1 - alpha[rank]) * skip_continuation[rank] + alpha[rank] * click_continuation[rank])
    return conditional, marginal, examined
