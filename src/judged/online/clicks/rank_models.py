"""Click models, and the counts for models whose examination depends on the rank (RCTR, DCTR, PBM, UBM)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.special import xlogy

from judged.errors import InputError
from judged.online.clicks.posteriors import Information, ParameterScores, bin_scores, totals
from judged.results.spelling import one_of
from judged.results.types import cached_property

if TYPE_CHECKING:
    from judged.online.clicks.impression_counts import ImpressionCounts, PagePatterns
    from judged.online.clicks.posteriors import Parameters, Sums
    from judged.results.types import Floats, Ints


@dataclass(frozen=True)
class ClickModel:
    """A click model: a result is clicked if it is examined and attractive (examination hypothesis).

    Examination depends on the rank (`examined`), or users examine results in order until they stop
    (`continuation_probabilities`).

    Parameters
    ----------
    name, title, source
        Abbreviation, full name, and publication.
    assumption
        Assumption, as a clause.
    attractive
        Whether results differ in attractiveness; otherwise each examined result is clicked.
    examined
        Variables of the examination probability; empty: all results are examined.
    satisfied
        Satisfaction after a click in cascade-type models: a parameter of the pair or the rank, ``always`` (1), or
        ``attractiveness`` (that of the result).
    continuation_probabilities
        Probabilities to examine the next result after no click, an unsatisfying click, and a satisfying click: numbers
        or parameter names. Empty for the other models.
    """

    name: str
    title: str
    source: str
    assumption: str
    attractive: bool = True
    examined: Literal["", "rank", "rank and last click"] = ""
    satisfied: Literal["", "always", "pair", "rank", "attractiveness"] = ""
    continuation_probabilities: tuple[float | str, ...] = ()

    @property
    def continuation_names(self) -> tuple[str, ...]:
        """Unique names of the continuation parameters."""
        return tuple(dict.fromkeys(name for name in self.continuation_probabilities if isinstance(name, str)))

    def is_of_pairs(self, name: str) -> bool:
        """Return whether each pair of query and document has a value of the parameter."""
        return name == "attractiveness" or (name == "satisfaction" and self.satisfied == "pair")


_BOOK = "Chuklin, Markov and de Rijke, Click Models for Web Search, 2015, Chapter 3"
_MODELS = (
    ClickModel(
        "RCTR", "click-through rate by rank", _BOOK,
        "the click probability depends only on the rank", attractive=False, examined="rank",
    ),
    ClickModel(
        "DCTR", "click-through rate by document", _BOOK,
        "users examine all results, so that the click probability depends only on the document",
    ),
    ClickModel(
        "PBM", "position-based model", "Craswell et al., WSDM 2008",
        "examination depends only on the rank", examined="rank",
    ),
    ClickModel(
        "CM", "cascade model", "Craswell et al., WSDM 2008",
        "users examine results from the top down to their first click, and stop there",
        satisfied="always", continuation_probabilities=(1.0, 0.0, 0.0),
    ),
    ClickModel(
        "DCM", "dependent click model", "Guo, Liu and Wang, WSDM 2009",
        "users examine results from the top down, and the probability to continue after a click depends on the rank",
        satisfied="rank", continuation_probabilities=(1.0, 1.0, 0.0),
    ),
    ClickModel(
        "CCM", "click chain model", "Guo et al., WWW 2009",
        "users examine results from the top down, and the probability to continue depends on whether the last"
        " result had no click, an unsatisfying click, or a satisfying click",
        satisfied="attractiveness",
        continuation_probabilities=("after no click", "after an unsatisfying click", "after a satisfying click"),
    ),
    ClickModel(
        "UBM", "user browsing model", "Dupret and Piwowarski, SIGIR 2008",
        "examination depends on the rank of the result and on the rank of the last click above it",
        examined="rank and last click",
    ),
    ClickModel(
        "DBN", "dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users examine results from the top down, stop after a satisfying click, and otherwise continue with a constant"
        " probability",
        satisfied="pair", continuation_probabilities=("if not satisfied", "if not satisfied", 0.0),
    ),
    ClickModel(
        "SDBN", "simplified dynamic Bayesian network", "Chapelle and Zhang, WWW 2009",
        "users examine results from the top down until a click satisfies"
        " them", satisfied="pair", continuation_probabilities=(1.0, 1.0, 0.0),
    ),
)  # fmt: skip

MODELS: dict[str, ClickModel] = {model.name: model for model in _MODELS}
"""Models by name, simplest first."""


def model_of(name: str) -> ClickModel:
    """Return the model with this name.

    Examples
    --------
    >>> model_of("PBM").title
    'position-based model'

    Raises
    ------
    InputError
        If the name is unknown.
    """
    return MODELS[one_of("model", name, MODELS)]


_TINY = 1e-100  # its square is still above 0


def examination_nodes(rank: Ints, last_click: Ints, model: ClickModel, depth: int) -> Ints:
    """Return the index of the examination parameter: by rank, or by rank and last click."""
    if model.examined == "rank and last click":
        return (rank - 1) * (depth + 1) + last_click
    return rank - 1 if model.examined else np.zeros_like(rank)


@dataclass(frozen=True, eq=False)
class RankModelCounts:
    """Counts that a rank-based model is fitted to: C cells.

    Parameters
    ----------
    model
        Click model without continuation probabilities.
    n_pairs, depth
        Numbers of pairs of query and document, and of ranks.
    pair, node
        (C,), sorted index of the pair, and index of the examination parameter.
    impressions, clicks
        (C,), counts of pages.
    """

    model: ClickModel
    n_pairs: int
    depth: int
    pair: Ints
    node: Ints
    impressions: Floats
    clicks: Floats

    @classmethod
    def of_patterns(cls, model: ClickModel, patterns: PagePatterns, counts: Floats) -> RankModelCounts:
        """Build the counts from N distinct pages with these counts, (N,)."""
        rows = np.flatnonzero(counts)
        pair, clicked = patterns.pair[rows], patterns.clicked[rows]
        depth = pair.shape[1]
        has_result = pair >= 0
        rank = np.broadcast_to(np.arange(1, depth + 1), pair.shape)
        node = examination_nodes(rank, last_click_above(clicked), model, depth)
        n_nodes = depth * (depth + 1)
        cell, cell_index = np.unique(pair[has_result] * n_nodes + node[has_result], return_inverse=True)
        weights = np.broadcast_to(counts[rows, None], pair.shape)[has_result]
        impressions = totals(cell_index, weights, len(cell))
        clicks = totals(cell_index, weights * clicked[has_result], len(cell))
        return cls(model, len(patterns.pairs), depth, cell // n_nodes, cell % n_nodes, impressions, clicks)

    @classmethod
    def of_cells(cls, model: ClickModel, cells: ImpressionCounts) -> RankModelCounts:
        """Build the counts from cells. UBM needs cells by last click."""
        depth = int(cells.rank.max())
        node = examination_nodes(cells.rank, cells.last_click, model, depth)
        impressions, clicks = cells.impressions.astype(np.float64), cells.clicks.astype(np.float64)
        return cls(model, len(cells.pairs), depth, cells.pair, node, impressions, clicks)

    @property
    def n_nodes(self) -> int:
        """Number of possible values of `node`."""
        return {"": 1, "rank": self.depth}.get(self.model.examined, self.depth * (self.depth + 1))

    def initial_parameters(self) -> Parameters:
        """Return the starting values of the fit, for the parameters that the model has."""
        values: Parameters = {"attractiveness": np.full(self.n_pairs, 0.5)} if self.model.attractive else {}
        return values | ({"examination": np.full(self.n_nodes, 0.5)} if self.model.examined else {})

    def fixed_indices(self) -> dict[str, int]:
        """Return the index of the examination that is fixed at 1."""
        # Clicks identify only the product of attractiveness and examination; the first rank sets the scale.
        is_product = self.model.attractive and self.model.examined
        return {"examination": int(self.node.min())} if is_product else {}

    def expected_counts(self, success: Parameters, failure: Parameters) -> Sums:
        """Return expected successes and trials: clicks per examination, and examinations per impression."""
        not_alpha = failure["attractiveness"][self.pair] if self.model.attractive else 0.0
        gamma = success["examination"][self.node] if self.model.examined else 1.0
        p_skip_examined = gamma * not_alpha
        # Notation of Chuklin et al. (2015): P(click) = alpha gamma, with attractiveness alpha and examination gamma.
        # E-step: P(examined | not clicked) = gamma (1 - alpha) / (1 - alpha gamma), and 1 - alpha gamma = 1 - gamma +
        # gamma (1 - alpha). The last form is also valid for the values of variational Bayes, which do not sum to 1.
        p_skip = np.maximum(1 - gamma + p_skip_examined, _TINY)
        examinations = self.clicks + (self.impressions - self.clicks) * p_skip_examined / p_skip
        counts: Sums = {}
        if self.model.attractive:
            counts["attractiveness"] = (self._pair_clicks, self._pair_sums(examinations))
        if self.model.examined:
            counts["examination"] = (self._node_sums(examinations), self._node_impressions)
        return counts

    def log_likelihood(self, parameters: Parameters) -> float:
        """Return the log-likelihood of all clicks; minus infinity if the model rules out a page."""
        _, _, p = self._probabilities(parameters)
        return float(xlogy(self.clicks, p).sum() + xlogy(self.impressions - self.clicks, 1 - p).sum())

    def parameter_scores(self, parameters: Parameters) -> dict[str, ParameterScores]:
        """Return the scores of pair parameters by impression."""
        if not self.model.attractive:
            return {}
        alpha, gamma, p = self._probabilities(parameters)
        # A click has score 1 / alpha. A skip counts as a trial with its posterior examination probability.
        p_examined_if_skipped = gamma * (1 - alpha) / np.maximum(1 - p, _TINY)
        ones, skips = np.ones_like(p), self.impressions - self.clicks
        pair, weight = np.tile(self.pair, 2), np.concatenate([self.clicks, skips])
        columns = np.concatenate([ones, np.zeros_like(p)]), np.concatenate([ones, np.clip(p_examined_if_skipped, 0, 1)])
        return {"attractiveness": bin_scores(pair, *columns, weight, parameters["attractiveness"])}

    def information(self, parameters: Parameters) -> Information:
        """Return the outer products of the scores of impressions."""
        alpha, gamma, p = self._probabilities(parameters)
        # Squared scores of clicks and of skips (outer products), with p = alpha gamma.
        skips, not_p = self.impressions - self.clicks, np.maximum(1 - p, _TINY)
        with np.errstate(divide="ignore", invalid="ignore"):
            pair = self._pair_sums(self.clicks / alpha**2 + skips * (gamma / not_p) ** 2)
            shared = self._node_sums(self.clicks / gamma**2 + skips * (alpha / not_p) ** 2)
            terms = self.clicks / np.maximum(p, _TINY) + skips * p / not_p**2
        free = np.flatnonzero(np.isfinite(shared) & (shared > 0))
        if not self.model.attractive:
            return Information({}, {"examination": free}, np.diag(shared[free]))
        if not self.model.examined:
            return Information({"attractiveness": pair}, {}, np.zeros((0, 0)))
        # The fixed first rank has no standard error.
        free = free[free != self.fixed_indices()["examination"]]
        index = np.full(self.n_nodes, -1)
        index[free] = np.arange(len(free))
        is_free = index[self.node] >= 0
        positions = self.pair[is_free], index[self.node[is_free]]
        cross = coo_array((terms[is_free], positions), (self.n_pairs, len(free))).tocsr()
        indices = {"examination": free}
        return Information({"attractiveness": pair}, indices, np.diag(shared[free]), {"attractiveness": cross})

    def examination_counts(self, parameters: Parameters) -> tuple[Floats, Floats]:
        """Return expected examinations (given the clicks above) and impressions by rank."""
        rank = self.node // (self.depth + 1) if self.model.examined == "rank and last click" else self.node
        _, gamma, _ = self._probabilities(parameters)
        return totals(rank, self.impressions * gamma, self.depth), totals(rank, self.impressions, self.depth)

    def _probabilities(self, parameters: Parameters) -> tuple[Any, Any, Floats]:
        alpha = parameters["attractiveness"][self.pair] if self.model.attractive else np.ones(len(self.pair))
        gamma = parameters["examination"][self.node] if self.model.examined else np.ones(len(self.pair))
        return alpha, gamma, alpha * gamma

    @cached_property
    def _pair_clicks(self) -> Floats:
        return self._pair_sums(self.clicks)

    @cached_property
    def _node_impressions(self) -> Floats:
        return self._node_sums(self.impressions)

    @cached_property
    def _pair_starts(self) -> Ints:
        return np.flatnonzero(np.diff(self.pair, prepend=-1))

    def _pair_sums(self, column: Floats) -> Floats:
        sums = np.zeros(self.n_pairs)
        sums[self.pair[self._pair_starts]] = np.add.reduceat(column, self._pair_starts)
        return sums

    def _node_sums(self, column: Floats) -> Floats:
        return totals(self.node, column, self.n_nodes)

    def check_connected(self) -> None:
        """Raise InputError if examination parameters are not identified.

        Two ranks can be compared only by results that were shown at both and clicked.
        """
        if not (self.model.attractive and self.model.examined):
            return
        from scipy.sparse.csgraph import connected_components

        # Bipartite graph of pairs with clicks and examination parameters; each component has its own scale.
        has_clicks = self._pair_sums(self.clicks)[self.pair] > 0
        pair, node = self.pair[has_clicks], self.node[has_clicks]
        graph = coo_array((np.ones(len(pair)), (pair, node + self.n_pairs)), [self.n_pairs + self.n_nodes] * 2)
        _, component = connected_components(graph, directed=False)
        used_nodes = np.flatnonzero(self._node_sums(self.impressions))
        disconnected = used_nodes[component[self.n_pairs + used_nodes] != component[self.n_pairs + self.node.min()]]
        if not len(disconnected):
            return
        first, other = (self._describe_node(int(node)) for node in (self.node.min(), disconnected[0]))
        raise InputError(
            f"{self.model.name} cannot compare the examination of {other} and {first}: no clicked results were shown at"
            " both positions, and clicked results at other positions do not connect the two positions"
            f" ({len(disconnected)} of {len(used_nodes)} positions are not connected to {first})",
            fix="use a smaller depth, merge queries with by, or collect pages that show results in different orders",
        )

    def _describe_node(self, node: int) -> str:
        if self.model.examined == "rank":
            return f"rank {node + 1}"
        rank, last_click = divmod(node, self.depth + 1)
        clicked = f"the last click above at rank {last_click}" if last_click else "no click above"
        return f"rank {rank + 1} with {clicked}"


def last_click_above(clicked: Any) -> Ints:
    """Return the rank of the last click above each result, (N, K); 0 without a click above."""
    click_rank = np.where(clicked, np.arange(1, clicked.shape[1] + 1), 0)
    last_click = np.zeros_like(click_rank)
    np.maximum.accumulate(click_rank[:, :-1], axis=1, out=last_click[:, 1:])
    return last_click


def predict_rank_model(model: ClickModel, patterns: PagePatterns, parameters: Parameters) -> tuple[Floats, Floats]:
    """Return conditional (given the clicks above) and marginal click probabilities, (N, K) each."""
    pair = patterns.pair
    depth = pair.shape[1]
    has_result = pair >= 0
    alpha = np.where(has_result, parameters["attractiveness"][pair] if model.attractive else 1.0, 0.0)
    if model.examined != "rank and last click":
        gamma = parameters["examination"] if model.examined else np.ones(depth)
        return alpha * gamma, alpha * gamma
    # UBM: marginalize over the last click, of which the state is a distribution over ranks.
    gammas = parameters["examination"].reshape(depth, depth + 1)
    conditional = alpha * gammas[np.arange(depth), last_click_above(patterns.clicked)]
    marginal = np.zeros_like(alpha)
    p_last_click = np.zeros((len(pair), depth + 1))
    p_last_click[:, 0] = 1
    for row in range(depth):
        p_click = p_last_click[:, : row + 1] * (gammas[row, : row + 1] * alpha[:, row, None])
        marginal[:, row] = p_click.sum(axis=1)
        p_last_click[:, : row + 1] -= p_click
        p_last_click[:, row + 1] = marginal[:, row]
    return conditional, marginal
