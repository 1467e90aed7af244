"""Estimators of the rewards of a target policy from pages of a logging policy with known propensities.

A page has K ranks. The importance weight of a rank is the probability that the target policy shows the logged document
there, divided by the probability that the logging policy did (its propensity). A *marginal* propensity is the
probability of the document at its rank over all pages. A *conditional* propensity is its probability given the
documents at higher ranks. The product of conditional propensities is the probability of the list. The product of
marginal propensities is not, unless ranks are filled independently: with uniform permutations of 4 documents on 3
ranks, each list has probability 1/24, and each document has probability 1/4 at each rank.

A rank that a page lacks has weight 1 and reward 0. Each estimator returns one value per page. Their mean estimates the
target policy's rewards per page if the logging policy has full support.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.data import files
from judged.data.records import records_of
from judged.data.run import Run
from judged.errors import InputError
from judged.online.clicks.impression_counts import topic_column_and_texts
from judged.online.engine import identifier
from judged.results import counted
from judged.scoring.judging.align import align

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Bools, Floats, Ints


class Estimator(NamedTuple):
    """Requirements and assumptions of an estimator.

    ``conventions``: kinds of propensities for which it is unbiased; empty if it uses no propensities.
    ``list_probability``: whether it needs the target policy's probability of a list, not only of each rank.
    """

    conventions: tuple[str, ...]
    list_probability: bool
    assumption: str
    limitation: str


_MARGINAL = ("marginal", "independent")
_CONDITIONAL = ("conditional", "independent")
ESTIMATORS = {
    "item-position": Estimator(
        _MARGINAL,
        False,
        "clicks on a result depend only on the document and the rank",
        "ignores the other results of the page",
    ),
    "self-normalized": Estimator(
        _MARGINAL,
        False,
        "clicks on a result depend only on the document and the rank; the estimate is biased if there are few pages",
        "ignores the other results of the page",
    ),
    "clipped": Estimator(
        _MARGINAL,
        False,
        "clicks on a result depend only on the document and the rank; clipping the weights makes the estimate too low",
        "underestimates rarely shown results",
    ),
    "direct": Estimator(
        (),
        False,
        "clicks on a result depend only on the document and the rank, and the log shows documents at random",
        "ignores other differences between pages",
    ),
    "doubly robust": Estimator(
        _MARGINAL,
        False,
        "the assumption of the item-position estimator or the assumption of the direct estimator",
        "ignores the other results of the page",
    ),
    "pseudo-inverse": Estimator(
        ("independent",),
        False,
        "the expected clicks of a page are a sum of one term for each document at its rank",
        "ignores interactions between results",
    ),
    "cascade": Estimator(
        _CONDITIONAL,
        True,
        "a click does not depend on results at lower ranks",
        "ignores effects of results at lower ranks",
    ),
    "whole list": Estimator(_CONDITIONAL, True, "none", "has a large variance, because few logged lists match the run"),
}
"""Estimators in order of their assumptions, strongest first."""


def item_position(weights: Floats, rewards: Floats) -> Floats:
    """Compute IPS with one weight per rank (Li, Abbasi-Yadkori, Kveton et al., KDD 2018). Marginal propensities.

    >>> item_position(np.array([[2.0, 0.0]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    # V = mean over pages of sum_k w_k r_k, with w_k = P(document at rank k | target) / propensity.
    return (weights * rewards).sum(axis=1)


def cascade(weights: Floats, rewards: Floats) -> Floats:
    """Compute IPS with the product of weights down to each rank (McInerney et al., KDD 2020). Conditional propensities.

    >>> cascade(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    # Reward of rank k times w_1 ... w_k: the documents down to rank k are the action (RIPS).
    return (np.cumprod(weights, axis=1) * rewards).sum(axis=1)


def whole_list(weights: Floats, rewards: Floats) -> Floats:
    """Compute IPS with the list as the action. Unbiased for any rewards. Conditional propensities.

    >>> whole_list(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    # w_1 ... w_K = P(list | target) / P(list | logging).
    return np.prod(weights, axis=1) * rewards.sum(axis=1)


def pseudo_inverse(weights: Floats, rewards: Floats) -> Floats:
    """Compute the pseudo-inverse estimator from the page's total reward. Independent ranks.

    Closed form for a logging policy that fills ranks independently (Swaminathan et al., NeurIPS 2017). Other policies
    need the second-moment matrix of documents and ranks, which the propensities do not determine.

    >>> pseudo_inverse(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    # For a product distribution, the pseudo-inverse of the second-moment matrix gives 1 - K + sum_k w_k.
    return (1.0 + (weights - 1.0).sum(axis=1)) * rewards.sum(axis=1)


def effective_sample_size(weights: Floats) -> float:
    """Return the effective sample size of weights (Kish); 0 if all weights are 0.

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0, 2.0]))
    2.6666666666666665
    """
    sum_of_squares = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / sum_of_squares if sum_of_squares > 0 else 0.0


def skewness_sample_size(residuals: Floats) -> float:
    """Return the number of equal, rare events whose sum has the skewness of these residuals.

    The skewness of a sum is estimated by ``sum(r**3) / sum(r**2)**1.5``. For n equal rare events it is ``n**-0.5``.
    The result is infinite if the residuals are symmetric, and 0 if all are 0.

    >>> skewness_sample_size(np.array([2.0, 2.0, 0.0, 2.0]))
    3.0
    >>> round(skewness_sample_size(np.array([1.0] * 20 + [10.0])), 2)
    1.66
    """
    sum_of_squares, sum_of_cubes = float((residuals**2).sum()), float((residuals**3).sum())
    if not sum_of_squares > 0:
        return 0.0
    return sum_of_squares**3 / sum_of_cubes**2 if abs(sum_of_cubes) > 1e-12 * sum_of_squares**1.5 else np.inf


def self_normalized(weights: Floats, rewards: Floats, expected: Floats) -> tuple[float, Floats]:
    """Compute SNIPS per rank (Swaminathan and Joachims, NIPS 2015): less variance than IPS, and a vanishing bias.

    Parameters
    ----------
    weights, rewards
        (N, K), with marginal propensities.
    expected
        (K,), expected mean weights: 1 minus the target probability of documents that were never logged at the rank.

    Returns
    -------
    value, influence
        The sum over ranks, and N times the influence of each page on it, (N,).
    """
    # SNIPS of rank k: sum(w r) / sum(w), times the target probability that has support.
    # Influence of a ratio of means (delta method): w (r - ratio) / mean(w).
    mean_weights = weights.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        snips_values = np.where(mean_weights > 0, (weights * rewards).mean(axis=0) / mean_weights, 0.0)
        influence = np.where(mean_weights > 0, expected * weights * (rewards - snips_values) / mean_weights, 0.0)
    return float((expected * snips_values).sum()), influence.sum(axis=1)


def mean_and_error(values: Floats, unit: Ints) -> tuple[float, float]:
    """Return the mean over pages, and its standard error clustered by unit.

    >>> mean, error = mean_and_error(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1]))
    >>> round(mean, 4), round(error, 4)
    (0.6667, 0.2222)
    """
    mean, n_units = float(values.mean()), int(unit.max()) + 1
    if n_units < 2:
        return mean, float("nan")
    # Cluster-robust standard error (Liang and Zeger, Biometrika 1986) with the small-sample factor U / (U - 1).
    residuals = np.bincount(unit, values - mean, n_units)
    return mean, float(np.sqrt((residuals * residuals).sum() * n_units / (n_units - 1.0)) / len(values))


class ShrunkRates:
    """Mean rewards by cell (such as document and rank), shrunk toward the mean of the rank.

    Parameters
    ----------
    cells, ranks, rewards
        (R,), codes of cells below `n_cells`, codes of ranks below `depth`, and rewards.
    prior
        Weight of the mean of the rank, in observations.
    """

    def __init__(
        self, cells: Ints, ranks: Ints, rewards: Floats, n_cells: int, depth: int, prior: float = 10.0
    ) -> None:
        rank_counts = np.bincount(ranks, minlength=depth)
        self.rank_means = np.bincount(ranks, rewards, depth) / np.maximum(rank_counts, 1)
        # One extra, empty cell: index -1 (not logged) reads it.
        self._sums, self._counts = np.bincount(cells, rewards, n_cells + 1), np.bincount(cells, minlength=n_cells + 1)
        self._prior = prior

    def expected_reward(self, cells: Ints, ranks: Ints) -> Floats:
        """Return the expected reward of each cell. Unlogged cells (-1) get the mean of their rank."""
        sums, counts = self._sums[cells] + self._prior * self.rank_means[ranks], self._counts[cells] + self._prior
        return np.divide(sums, counts, out=np.zeros(len(counts)), where=counts > 0)


def direct_method_residuals(cells: Ints, rewards: Floats, units: Ints, weights: Floats, center: Floats) -> Floats:
    """Return weighted residuals of the direct method, for clustered delta-method standard errors.

    Residuals from the fitted mean of a cell are too small, the more so the fewer users it has. They are multiplied by
    k / (k - 1) for the k users of the cell. Cells with one user use residuals from `center`.

    Parameters
    ----------
    cells, rewards, units
        (R,), codes of cells, rewards, and codes of users.
    weights
        (R,), expected impressions of the cell under the target policy, divided by its logged impressions.
    center
        (R,), mean reward of similar cells, such as all cells of the rank.

    Returns
    -------
    Floats
        (R,), residuals times weights.
    """
    n_cells, n_units = int(cells.max()) + 1, int(units.max()) + 1
    cell_units = np.unique(cells * n_units + units)
    k = np.bincount(cell_units // n_units, minlength=n_cells).astype(np.float64)[cells]
    # Number of users and mean reward of the cell of each row.
    means = (np.bincount(cells, rewards, n_cells) / np.maximum(np.bincount(cells, minlength=n_cells), 1))[cells]
    several = k > 1
    residuals = np.where(several, (rewards - means) * k / np.maximum(k - 1.0, 1.0), rewards - center)
    return weights * residuals


_ROUNDING = 1e-3  # tolerance of the sum of the probabilities of a rank: files have rounded values


@dataclass(frozen=True, eq=False)
class LoggedPages:
    """Results that have propensities, ordered by page and rank.

    ``topic``, ``page``, ``rank``, ``doc``: (R,), codes from 0; topics are those of the target policy. ``unit``: (N,),
    user of each page. ``n_without_propensity``, ``n_without_topic``: numbers of pages that are excluded.
    """

    topic: Ints
    page: Ints
    unit: Ints
    rank: Ints
    doc: Ints
    clicked: Floats
    propensity: Floats
    n_without_propensity: int
    n_without_topic: int


class TargetPolicy(NamedTuple):
    """Target policy: sorted codes of (topic, rank, document), and their probabilities.

    ``n_docs``: documents of the log, plus one code for all others. ``is_run``: whether each topic has a fixed list.
    """

    name: str
    cells: Ints
    probability: Floats
    n_docs: int
    is_run: bool


@dataclass(frozen=True, eq=False)
class ImportanceWeights:
    """Importance weights by page and rank, (N, K). A rank that a page lacks has weight 1 and reward 0.

    ``has_result``: whether the page has the rank. ``mass``: probability that the target policy shows any document at
    the rank. ``unsupported``: probability of documents that were never logged there. ``prefix_mass`` and
    ``unsupported_prefix``: the same for the list down to the rank.
    """

    rank_weight: Floats
    rewards: Floats
    has_result: Bools
    mass: Floats
    unsupported: Floats
    prefix_mass: Floats
    unsupported_prefix: Floats

    @property
    def prefix_weight(self) -> Floats:
        """Products of the weights down to each rank."""
        return np.cumprod(self.rank_weight, axis=1).astype(np.float64)


def read_pages(log: InteractionLog, run: Any, topics: Any, unit: str, depth: int) -> tuple[LoggedPages, TargetPolicy]:
    """Read pages with propensities, and the target policy on their topics.

    Raises
    ------
    InputError
        If there are no propensities, a page has them for some results only, or no page has a topic of the run.
    """
    topic_column, topic_by_text = topic_column_and_texts(log, topics)
    rows = _read_results(log, topic_column, unit, depth)
    propensity = rows["propensity"].to_numpy(zero_copy_only=False).astype(np.float64)
    _, page = np.unique(rows["serp"].to_numpy(), return_inverse=True)
    has_propensity = ~np.isnan(propensity)
    page_has_propensity = np.bincount(page, has_propensity) > 0
    if not page_has_propensity.any():
        fix = "log the probability that each result is shown at its rank, in the column propensity"
        raise InputError("the log has no propensities", fix=fix, path=log.name)
    # A page with a propensity for some ranks only would have wrong products of weights.
    if n_missing := int((page_has_propensity[page] & ~has_propensity).sum()):
        results = f"{counted(n_missing, 'result')} in the top {depth}"
        fix = "log propensities for all results of a page (1 for fixed results), or use a smaller depth (--depth)"
        raise InputError(
            f"all results of a page must have a propensity, but {results} have none", fix=fix, path=log.name
        )
    if len(invalid := propensity[has_propensity & ~((propensity > 0) & (propensity <= 1))]):
        problem = f"a propensity must be above 0 and at most 1, got {invalid[0]:g}"
        raise InputError(problem, fix="log the probability that the result is shown at its rank", path=log.name)
    # Without a rank, a click on a repeated document would count at both ranks.
    if n_ambiguous := int(rows["ambiguous"].to_numpy(zero_copy_only=False).sum()):
        results = counted(n_ambiguous, "result")
        problem = (
            "a click on a document that the page shows more than once must have a rank, but the rank is missing for"
            f" {results}"
        )
        raise InputError(problem, fix="log the position of each click", path=log.name)
    doc_ids, doc = np.unique(rows["object_id"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    rank = rows["rank"].to_numpy().astype(np.int64) - 1
    if _is_policy_table(run):
        topic = np.zeros(len(rank), dtype=np.int64)
        target = _read_policy(run, doc_ids, depth, int(rank[has_propensity].max()) + 1)
    else:
        topic_ids = list(map(str, rows["topic"].to_pylist()))
        if topic_by_text:
            topic_ids = [topic_by_text.get(text, "") for text in topic_ids]
        topic, target = _run_as_policy(Run.of(run), topic_ids, doc_ids, depth)
    is_usable = has_propensity & (topic >= 0)
    if not is_usable.any():
        raise InputError(
            "no page has a topic that is in the run", fix="map pages to topics with topics= (--topics)", path=log.name
        )
    # Codes of pages and users without gaps, because later sums use `bincount`.
    _, page_codes = np.unique(page[is_usable], return_inverse=True)
    _, result_units = np.unique(rows["unit"].to_numpy(zero_copy_only=False)[is_usable], return_inverse=True)
    page_units = np.zeros(page_codes.max() + 1, dtype=np.int64)
    page_units[page_codes] = result_units
    clicked = rows["clicked"].to_numpy(zero_copy_only=False).astype(np.float64)
    pages = LoggedPages(
        topic[is_usable], page_codes, page_units, rank[is_usable], doc[is_usable], clicked[is_usable],
        propensity[is_usable], n_without_propensity=int((~page_has_propensity).sum()),
        n_without_topic=int(page_has_propensity.sum()) - len(page_units),
    )  # fmt: skip
    return pages, target


def _read_results(log: InteractionLog, topic_column: str | None, unit: str, depth: int) -> Any:
    # If a page shows a document twice, only the rank of the click identifies the clicked result.
    topic = "''" if topic_column is None else f"p.{identifier(topic_column)}"
    return log.engine.arrow(
        f"""
        WITH shown AS (SELECT serp, rank, object_id, propensity, count(*) OVER (PARTITION BY serp, object_id) AS times
            FROM {log.shown}),
        clicks AS (SELECT DISTINCT serp, object_id, rank FROM {log.event} WHERE action = 'click')
        SELECT p.serp, p.{identifier(unit)} AS unit, {topic} AS topic, s.rank, s.object_id, s.propensity,
            bool_or(c.object_id IS NOT NULL AND (s.times = 1 OR c.rank = s.rank)) IS TRUE AS clicked,
            bool_or(c.object_id IS NOT NULL AND s.times > 1 AND c.rank IS NULL) IS TRUE AS ambiguous
        FROM {log.serp} AS p JOIN shown AS s ON s.serp = p.serp
        LEFT JOIN clicks AS c ON c.serp = s.serp AND c.object_id = s.object_id
        WHERE s.rank <= {depth} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 4"""
    )


def _is_policy_table(run: Any) -> bool:
    if isinstance(run, (str, Path)):
        return Path(run).is_file() and b"probability" in files.head(Path(run)).split(b"\n", 1)[0]
    if isinstance(run, list):
        return bool(run) and isinstance(run[0], Mapping) and "probability" in run[0]
    column_names: Any = getattr(run, "column_names", getattr(run, "columns", ()))
    return "probability" in list(column_names)


def _read_policy(run: Any, doc_ids: Any, depth: int, deepest: int) -> TargetPolicy:
    """Read the probabilities of a policy that does not depend on the query."""
    code_by_doc, n_docs = {name: i for i, name in enumerate(doc_ids.tolist())}, len(doc_ids) + 1
    # A cell is (rank, document) as one integer. The last document code stands for all documents outside the log.
    cells, probabilities = list[int](), list[float]()
    fix = "each row needs rank, doc_id, and probability"
    for line, row in records_of(run, "policy", "a policy", fix):
        try:
            rank, doc_id, probability = int(row["rank"]), str(row["doc_id"]), float(row["probability"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError("rank and probability must be numbers", fix=fix, path="policy", line=line) from None
        if not 0 <= probability <= 1:
            problem = f"a probability must be between 0 and 1, got {probability:g}"
            raise InputError(problem, fix=fix, path="policy", line=line)
        if 1 <= rank <= depth:
            cells.append((rank - 1) * n_docs + code_by_doc.get(doc_id, len(doc_ids)))
            probabilities.append(probability)
    name = str(run) if isinstance(run, str) else "policy"
    target = _build_target(name, np.array(cells, dtype=np.int64), np.array(probabilities), n_docs, is_run=False)
    rank_sums = np.bincount(target.cells // n_docs, target.probability, deepest)
    for rank in np.flatnonzero(np.abs(rank_sums[:deepest] - 1.0) > _ROUNDING)[:1].tolist():
        problem = f"the probabilities of rank {rank + 1} must add up to 1, got {rank_sums[rank]:.4g}"
        fix = (
            f"write a row for every document that can be shown at rank {rank + 1}, or use depth={rank}" if rank else fix
        )
        raise InputError(problem, fix=fix, path="policy")
    return target


def _run_as_policy(run: Run, topic_ids: list[str], doc_ids: Any, depth: int) -> tuple[Ints, TargetPolicy]:
    """Return the topic of each row (-1 if the run has none), and the run as a target policy."""
    aligned = align(run, run, depth=depth)
    topic_positions = {topic_id: i for i, topic_id in enumerate(aligned.query_ids)}
    topic = np.array([topic_positions.get(topic_id, -1) for topic_id in topic_ids], dtype=np.int64)
    code_by_doc, n_docs = {doc_id: i for i, doc_id in enumerate(doc_ids.tolist())}, len(doc_ids) + 1
    docs = np.array([code_by_doc.get(doc_id, len(doc_ids)) for doc_id in aligned.doc.to_pylist()], dtype=np.int64)
    cells = (aligned.topic * depth + aligned.first - 1) * n_docs + docs
    return topic, _build_target(run.name, cells, np.ones(len(cells)), n_docs, is_run=True)


def _build_target(name: str, cells: Ints, probability: Floats, n_docs: int, *, is_run: bool) -> TargetPolicy:
    # Unlogged documents share a code, and rows of a policy table may repeat: add their probabilities.
    unique, cell_index = np.unique(cells, return_inverse=True)
    total = np.bincount(cell_index, probability, len(unique)).astype(np.float64)
    return TargetPolicy(name, unique, total, n_docs, is_run)


def find_codes(sorted_codes: Ints, codes: Ints) -> Ints:
    """Return the index of each of `codes` in the non-empty `sorted_codes`; -1 if absent.

    >>> find_codes(np.array([2, 5]), np.array([5, 3])).tolist()
    [1, -1]
    """
    # `searchsorted` returns the length for codes above the maximum: clip it before the comparison.
    index = np.minimum(np.searchsorted(sorted_codes, codes), len(sorted_codes) - 1)
    return np.where(sorted_codes[index] == codes, index, -1)


def importance_weights(pages: LoggedPages, target: TargetPolicy, depth: int) -> ImportanceWeights:
    """Compute importance weights, and the target probability that the log does not support."""
    shape = (len(pages.unit), depth)
    rank_weight, rewards, has_result = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    topic_rank = pages.topic * depth + pages.rank
    cell_index = find_codes(target.cells, topic_rank * target.n_docs + pages.doc)
    page_rank = (pages.page, pages.rank)
    rank_weight[page_rank] = np.where(cell_index >= 0, target.probability[cell_index], 0.0) / pages.propensity
    rewards[page_rank], has_result[page_rank] = pages.clicked, True
    n_topics = max(int(pages.topic.max()), int(target.cells[-1] // target.n_docs // depth)) + 1
    # Target probability by topic and rank: in total, and without support in the log.
    topic_sums = [
        np.bincount(target.cells // target.n_docs, probability, n_topics * depth).reshape(n_topics, depth)
        for probability in (target.probability, target.probability * unsupported_cells(pages, target, depth))
    ]
    topic = np.zeros(len(pages.unit), dtype=np.int64)
    topic[pages.page] = pages.topic
    # Missing ranks of a page get mass 1, so that products over ranks ignore them.
    mass, unsupported = np.where(has_result, topic_sums[0][topic], 1.0), np.where(has_result, topic_sums[1][topic], 0.0)
    prefix_mass = np.cumprod(mass, axis=1).astype(np.float64)
    if target.is_run:
        # A run shows one list per topic: the log has its first ranks, or it has not.
        matches_run = np.cumprod(np.where(has_result, rank_weight > 0, True), axis=1).astype(np.bool_)
        is_logged = np.zeros((n_topics, depth), dtype=np.bool_)
        np.logical_or.at(is_logged, topic, matches_run & has_result)
        unsupported_prefix = np.where(has_result & ~is_logged[topic], prefix_mass, 0.0)
        for k in range(1, depth):  # a missing rank adds no result: the list is still that of rank k - 1
            rank_above = unsupported_prefix[:, k - 1]
            unsupported_prefix[:, k] = np.where(has_result[:, k], unsupported_prefix[:, k], rank_above)
    else:
        unsupported_prefix = prefix_mass - np.cumprod(mass - unsupported, axis=1).astype(np.float64)
    return ImportanceWeights(rank_weight, rewards, has_result, mass, unsupported, prefix_mass, unsupported_prefix)


def unsupported_cells(pages: LoggedPages, target: TargetPolicy, depth: int) -> Bools:
    """Return which cells of the target policy were never logged."""
    logged_cells = np.unique((pages.topic * depth + pages.rank) * target.n_docs + pages.doc)
    return find_codes(logged_cells, target.cells) < 0
