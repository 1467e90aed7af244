"""Another policy's rewards, from pages of a logged policy whose propensities are known.

A page has K ranks. The weight of a rank is the probability that the other policy shows the logged document there, over
the probability that the logged policy did (its propensity). A propensity is *marginal* if it is the probability of the
document at its rank over all pages, and *conditional* if it is the probability given the documents at higher ranks. The
product of conditional propensities is the probability of the list. The product of marginal ones is not, unless each
rank is filled independently: of uniform permutations of 4 documents on 3 ranks, every list has the probability 1/24,
and every document 1/4 at every rank.

A rank that a page lacks has the weight 1 and the reward 0. Every function returns one value a page, whose mean
estimates the other policy's rewards a page; the other policy shows nothing that the logged one never shows.
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
from judged.online.clicks.cells import column_and_texts
from judged.online.engine import identifier
from judged.results import counted
from judged.scoring.judging.align import align

if TYPE_CHECKING:
    from judged.online.log import InteractionLog
    from judged.results.types import Bools, Floats, Ints


class Estimator(NamedTuple):
    """What an estimator needs and assumes.

    ``conventions``: the declared propensities under which it is right; empty: it needs no propensities.
    ``list_probability``: it needs the other policy's probability of a list, not only that of each rank.
    """

    conventions: tuple[str, ...]
    list_probability: bool
    assumes: str
    blind: str


_MARGINAL = ("marginal", "independent")
_CONDITIONAL = ("conditional", "independent")
ESTIMATORS = {
    "item-position": Estimator(
        _MARGINAL, False, "a result's clicks depend on its document and rank alone", "the other results of the page"
    ),
    "self-normalized": Estimator(
        _MARGINAL, False, "the same; biased if pages are few", "the other results of the page"
    ),
    "clipped": Estimator(_MARGINAL, False, "the same; too low by at most what is cut", "results that are seldom shown"),
    "direct": Estimator((), False, "the same, and users see documents at random", "what else differs between pages"),
    "doubly robust": Estimator(
        _MARGINAL, False, "what item-position assumes, or what direct assumes", "the other results of the page"
    ),
    "pseudo-inverse": Estimator(
        ("independent",), False, "a page's clicks are a sum over its ranks", "how results affect one another"
    ),
    "cascade": Estimator(_CONDITIONAL, True, "clicks depend on nothing at lower ranks", "lower ranks"),
    "whole list": Estimator(_CONDITIONAL, True, "nothing", "nothing, and few logged lists are those of the run"),
}
"""By what they assume, from the most to the least."""


def item_position(weights: Floats, rewards: Floats) -> Floats:
    """Weight each rank by itself (Li, Abbasi-Yadkori, Kveton et al., KDD 2018). Marginal propensities.

    >>> item_position(np.array([[2.0, 0.0]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    return (weights * rewards).sum(axis=1)


def cascade(weights: Floats, rewards: Floats) -> Floats:
    """Weight each rank by the product of weights down to it (McInerney et al., KDD 2020). Conditional propensities.

    >>> cascade(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (np.cumprod(weights, axis=1) * rewards).sum(axis=1)


def whole_list(weights: Floats, rewards: Floats) -> Floats:
    """Weight the list as one action: right whatever rewards depend on. Conditional propensities.

    >>> whole_list(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [2.0]
    """
    return np.prod(weights, axis=1) * rewards.sum(axis=1)


def pseudo_inverse(weights: Floats, rewards: Floats) -> Floats:
    """Weight the page's sum of rewards, if it is not known which rank earned them. Independent ranks.

    The closed form for a logged policy that fills ranks independently (Swaminathan et al., NeurIPS 2017). For other
    policies the matrix of pairs of documents and ranks is needed, which propensities of results do not determine.

    >>> pseudo_inverse(np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """
    return (1.0 + (weights - 1.0).sum(axis=1)) * rewards.sum(axis=1)


def effective(weights: Floats) -> float:
    """Return the number of equal weights that are as informative (Kish); 0 if all weights are 0.

    >>> effective(np.array([1.0, 1.0, 0.0, 2.0]))
    2.6666666666666665
    """
    squares = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def equally_skewed(residuals: Floats) -> float:
    """Return the number of users, each clicking once or not at all, whose sum would be as skewed.

    The skewness of a sum is estimated by ``sum(r**3) / sum(r**2)**1.5``: of n equal rare events it is ``n**-0.5``.
    Infinite if residuals are symmetric, 0 if all are 0.

    >>> equally_skewed(np.array([2.0, 2.0, 0.0, 2.0]))
    3.0
    >>> round(equally_skewed(np.array([1.0] * 20 + [10.0])), 2)
    1.66
    """
    squares, cubes = float((residuals**2).sum()), float((residuals**3).sum())
    if not squares > 0:
        return 0.0
    return squares**3 / cubes**2 if abs(cubes) > 1e-12 * squares**1.5 else np.inf


def self_normalized(weights: Floats, rewards: Floats, expected: Floats) -> tuple[float, Floats]:
    """Divide each rank's rewards by its mean weight: less variance, a bias that vanishes with more pages.

    Parameters
    ----------
    weights, rewards
        (N, K), with marginal propensities.
    expected
        (K,) the mean that weights should have: 1 minus the probability of what was never shown.

    Returns
    -------
    value, influence
        The sum over ranks, and (N,) the influence of each page on it, times N.
    """
    means = weights.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(means > 0, (weights * rewards).mean(axis=0) / means, 0.0)
        influence = np.where(means > 0, expected * weights * (rewards - ratios) / means, 0.0)
    return float((expected * ratios).sum()), influence.sum(axis=1)


def mean_and_error(values: Floats, unit: Ints) -> tuple[float, float]:
    """Return the mean of pages, and its standard error over units.

    >>> mean, error = mean_and_error(np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1]))
    >>> round(mean, 4), round(error, 4)
    (0.6667, 0.2222)
    """
    mean, units = float(values.mean()), int(unit.max()) + 1
    if units < 2:
        return mean, float("nan")
    residuals = np.bincount(unit, values - mean, units)
    return mean, float(np.sqrt((residuals * residuals).sum() * units / (units - 1.0)) / len(values))


class Rates:
    """Mean rewards by cell, such as document and rank, shrunk towards the mean of the rank.

    Parameters
    ----------
    cells, ranks, rewards
        (R,) codes of cells below `number` and of ranks below `depth`, and rewards.
    prior
        Number of observations that the mean of the rank counts for.
    """

    def __init__(self, cells: Ints, ranks: Ints, rewards: Floats, number: int, depth: int, prior: float = 10.0) -> None:
        of_rank = np.bincount(ranks, minlength=depth)
        self.ranks = np.bincount(ranks, rewards, depth) / np.maximum(of_rank, 1)
        # The last cell is empty: that of -1.
        self._sums, self._counts = np.bincount(cells, rewards, number + 1), np.bincount(cells, minlength=number + 1)
        self._prior = prior

    def of(self, cells: Ints, ranks: Ints) -> Floats:
        """Return the expected reward of each cell; a cell of -1, or one without rewards, has the mean of its rank."""
        sums, total = self._sums[cells] + self._prior * self.ranks[ranks], self._counts[cells] + self._prior
        return np.divide(sums, total, out=np.zeros(len(total)), where=total > 0)


def direct_residuals(cells: Ints, rewards: Floats, units: Ints, weights: Floats, center: Floats) -> Floats:
    """Return by how much each row moves a sum of fitted mean rewards by cell: the delta method, for rows of clusters.

    Rows of a cell are off its mean less than off its true rate, the more so the fewer users they come from; of one
    user they do not vary at all. Residuals are therefore multiplied by k / (k - 1) for k users of the cell, and those
    of a cell with one user are taken from `center`.

    Parameters
    ----------
    cells, rewards, units
        (R,) codes, rewards, and codes of users.
    weights
        (R,) how often the other policy shows the cell, for each time that it was logged.
    center
        (R,) the mean reward of what resembles the cell, such as its rank.

    Returns
    -------
    Floats
        (R,) residuals times weights.
    """
    number, users = int(cells.max()) + 1, int(units.max()) + 1
    pairs = np.unique(cells * users + units)
    k = np.bincount(pairs // users, minlength=number).astype(np.float64)[cells]
    means = (np.bincount(cells, rewards, number) / np.maximum(np.bincount(cells, minlength=number), 1))[cells]
    several = k > 1
    residuals = np.where(several, (rewards - means) * k / np.maximum(k - 1.0, 1.0), rewards - center)
    return weights * residuals


_ROUNDING = 1e-3  # by which the probabilities of a rank may miss 1


@dataclass(frozen=True, eq=False)
class LoggedPages:
    """Pages whose results have propensities: an element each result, ordered by page and rank.

    ``topic``: of the other ranker, from 0. ``page``, ``unit``, ``rank``, ``doc``: codes from 0; ``unit`` is the page's.
    ``bare``: pages without propensities; ``other``: pages without a topic of the ranker. Neither is among the results.
    """

    topic: Ints
    page: Ints
    unit: Ints
    rank: Ints
    doc: Ints
    clicked: Floats
    propensity: Floats
    bare: int
    other: int


class Target(NamedTuple):
    """What the other ranker shows: codes of topic, rank and document in ascending order, and their probabilities.

    ``number``: documents of the log, and one that stands for all others. ``is_run``: one list for each topic.
    """

    name: str
    cells: Ints
    chance: Floats
    number: int
    is_run: bool


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights by page and rank, (N, K); a rank that a page lacks has the weight 1 and the reward 0.

    ``known``: ranks that pages have. ``mass``: probability that the other ranker shows anything at the rank; ``never``:
    that it shows what was never logged there. ``prefix_mass`` and ``missing``: the same for the list down to the rank.
    """

    ratio: Floats
    rewards: Floats
    known: Bools
    mass: Floats
    never: Floats
    prefix_mass: Floats
    missing: Floats

    @property
    def prefix(self) -> Floats:
        """Products of weights down to each rank."""
        return np.cumprod(self.ratio, axis=1).astype(np.float64)


def read_pages(log: InteractionLog, run: Any, topics: Any, unit: str, depth: int) -> tuple[LoggedPages, Target]:
    """Read pages with propensities, and what the other ranker shows for them.

    Raises
    ------
    InputError
        If no page, or only a part of the results of pages, has propensities, or no page has a topic of the run.
    """
    column, texts = column_and_texts(log, topics)
    rows = _rows(log, column, unit, depth)
    propensity = rows["propensity"].to_numpy(zero_copy_only=False).astype(np.float64)
    _, page = np.unique(rows["serp"].to_numpy(), return_inverse=True)
    has = ~np.isnan(propensity)
    some = np.bincount(page, has) > 0
    if not some.any():
        fix = "log with each result how likely it was shown at its rank: propensity"
        raise InputError("the log has no propensities", fix=fix, path=log.name)
    if lacking := int((some[page] & ~has).sum()):
        problem = f"{counted(lacking, 'result')} in the first {depth} ranks have no propensity, though others on their"
        fix = "log it for all results of a page (1 for what was sure to be there), or look at fewer ranks: depth"
        raise InputError(f"{problem} pages do", fix=fix, path=log.name)
    if not ((propensity[has] > 0) & (propensity[has] <= 1)).all():
        odd = propensity[has][~((propensity[has] > 0) & (propensity[has] <= 1))][0]
        problem = f"a propensity must be above 0 and at most 1, got {odd:g}"
        raise InputError(problem, fix="log the probability of what was shown", path=log.name)
    if ambiguous := int(rows["ambiguous"].to_numpy(zero_copy_only=False).sum()):
        problem = f"{counted(ambiguous, 'result')} that a page shows twice were clicked, and the click has no rank"
        raise InputError(problem, fix="log the position of each click", path=log.name)
    docs, doc = np.unique(rows["object_id"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    rank = rows["rank"].to_numpy().astype(np.int64) - 1
    if _is_policy(run):
        topic, target = np.zeros(len(rank), dtype=np.int64), _policy(run, docs, depth, int(rank[has].max()) + 1)
    else:
        names = [(texts or {}).get(name, "" if texts else name) for name in map(str, rows["topic"].to_pylist())]
        topic, target = _ranked(Run.of(run), names, docs, depth)
    kept = has & (topic >= 0)
    if not kept.any():
        raise InputError("no page has a topic of the run", fix="say how pages find topics: topics=", path=log.name)
    _, own = np.unique(page[kept], return_inverse=True)
    _, unit_of = np.unique(rows["unit"].to_numpy(zero_copy_only=False)[kept], return_inverse=True)
    units = np.zeros(own.max() + 1, dtype=np.int64)
    units[own] = unit_of
    clicked = rows["clicked"].to_numpy(zero_copy_only=False).astype(np.float64)
    pages = LoggedPages(
        topic[kept], own, units, rank[kept], doc[kept], clicked[kept], propensity[kept],
        bare=int((~some).sum()), other=int(some.sum()) - len(units),
    )  # fmt: skip
    return pages, target


def _rows(log: InteractionLog, column: str | None, unit: str, depth: int) -> Any:
    """Return a row for each result: page, unit, topic, rank, document, propensity, and whether it was clicked.

    If a page shows a document twice, the rank of the click tells which of both was clicked.
    """
    topic = "''" if column is None else f"p.{identifier(column)}"
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


def _is_policy(run: Any) -> bool:
    """Whether a table of ranks and probabilities was given, and no run."""
    if isinstance(run, (str, Path)):
        return b"probability" in files.head(files.local(run)).split(b"\n", 1)[0]
    if isinstance(run, list):
        return bool(run) and isinstance(run[0], Mapping) and "probability" in run[0]
    names: Any = getattr(run, "column_names", getattr(run, "columns", ()))
    return "probability" in list(names)


def _policy(run: Any, docs: Any, depth: int, deepest: int) -> Target:
    """Read how likely a ranker that does not depend on the query shows each document at each rank."""
    code, number = {name: at for at, name in enumerate(docs.tolist())}, len(docs) + 1
    cells, chance = list[int](), list[float]()
    fix = "give rank, doc_id and probability"
    for line, row in records_of(run, "policy", "a policy", fix):
        try:
            rank, doc, probability = int(row["rank"]), str(row["doc_id"]), float(row["probability"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError("a row cannot be read", fix=fix, path="policy", line=line) from None
        if not 0 <= probability <= 1:
            problem = f"a probability must be between 0 and 1, got {probability:g}"
            raise InputError(problem, fix=fix, path="policy", line=line)
        if 1 <= rank <= depth:
            cells.append((rank - 1) * number + code.get(doc, len(docs)))
            chance.append(probability)
    name = str(run) if isinstance(run, str) else "policy"
    target = _target(name, np.array(cells, dtype=np.int64), np.array(chance), number, is_run=False)
    sums = np.bincount(target.cells // number, target.chance, deepest)
    for rank in np.flatnonzero(np.abs(sums[:deepest] - 1.0) > _ROUNDING)[:1].tolist():
        problem = f"the probabilities of rank {rank + 1} must add up to 1, got {sums[rank]:.4g}"
        fix = f"give all documents of the rank, or look at {counted(rank, 'rank')}: depth" if rank else fix
        raise InputError(problem, fix=fix, path="policy")
    return target


def _ranked(run: Run, names: list[str], docs: Any, depth: int) -> tuple[Ints, Target]:
    """Return the topic of each row, -1 if the run has none, and what the run shows."""
    both = align(run, run, depth=depth)
    place = {query: at for at, query in enumerate(both.query_ids)}
    topic = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    code, number = {name: at for at, name in enumerate(docs.tolist())}, len(docs) + 1
    doc = np.array([code.get(name, len(docs)) for name in both.doc.to_pylist()], dtype=np.int64)
    cells = (both.topic * depth + both.first - 1) * number + doc
    return topic, _target(run.name, cells, np.ones(len(cells)), number, is_run=True)


def _target(name: str, cells: Ints, chance: Floats, number: int, *, is_run: bool) -> Target:
    """Sort cells, and add up what is given twice."""
    unique, place = np.unique(cells, return_inverse=True)
    return Target(name, unique, np.bincount(place, chance, len(unique)).astype(np.float64), number, is_run)


def places(cells: Ints, wanted: Ints) -> Ints:
    """Return where codes are among one or more others in ascending order; -1 if they are not.

    >>> places(np.array([2, 5]), np.array([5, 3])).tolist()
    [1, -1]
    """
    at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(cells[at] == wanted, at, -1)


def weigh(pages: LoggedPages, target: Target, depth: int) -> Weights:
    """Compute weights, and what the log never shows of the other ranker."""
    shape = (len(pages.unit), depth)
    ratio, rewards, known = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    slot = pages.topic * depth + pages.rank
    at = places(target.cells, slot * target.number + pages.doc)
    where = (pages.page, pages.rank)
    ratio[where] = np.where(at >= 0, target.chance[at], 0.0) / pages.propensity
    rewards[where], known[where] = pages.clicked, True
    topics = max(int(pages.topic.max()), int(target.cells[-1] // target.number // depth)) + 1
    sums = [
        np.bincount(target.cells // target.number, chance, topics * depth).reshape(topics, depth)
        for chance in (target.chance, target.chance * never_logged(pages, target, depth))
    ]
    topic = np.zeros(len(pages.unit), dtype=np.int64)
    topic[pages.page] = pages.topic
    mass, never = np.where(known, sums[0][topic], 1.0), np.where(known, sums[1][topic], 0.0)
    prefix_mass = np.cumprod(mass, axis=1).astype(np.float64)
    if target.is_run:
        # A run shows one list: the log shows its beginning, or it does not.
        fits = np.cumprod(np.where(known, ratio > 0, True), axis=1).astype(np.bool_)
        shown = np.zeros((topics, depth), dtype=np.bool_)
        np.logical_or.at(shown, topic, fits & known)
        missing = np.where(known & ~shown[topic], prefix_mass, 0.0)
        for k in range(1, depth):
            missing[:, k] = np.where(known[:, k], missing[:, k], missing[:, k - 1])
    else:
        missing = prefix_mass - np.cumprod(mass - never, axis=1).astype(np.float64)
    return Weights(ratio, rewards, known, mass, never, prefix_mass, missing)


def never_logged(pages: LoggedPages, target: Target, depth: int) -> Bools:
    """Mark cells of the other ranker that the log never shows."""
    logged = np.unique((pages.topic * depth + pages.rank) * target.number + pages.doc)
    return places(logged, target.cells) < 0
