"""Clicks over expected clicks: what a document is clicked beyond what the ranks that it was shown at would have it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from judged.errors import InputError
from judged.online.clicks.cells import cells_of
from judged.online.clicks.examination import estimated_here, single_curve
from judged.online.log import FieldAnswer, need
from judged.results import COUNT, TEXT, Column, Sentences, Table, columns_of, counted, number
from judged.results.blocks import Note
from judged.results.decimals import decimal
from judged.stats.inputs import check_share

if TYPE_CHECKING:
    from judged.online.clicks.cells import Cells
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats
    from judged.results.types import Table as ArrowTable

_NARROW, _WIDE = 1e-3, 1e6  # between which the shape of the prior is looked for
_TWO = number(2)


class Shrunk(NamedTuple):
    """Ratios that were drawn towards 1: each true ratio is distributed as Gamma(clicks + a, expected + a). (P,)."""

    value: Floats
    sd: Floats
    prior: float  # a: in expected clicks, what the prior is worth; `inf` where no differences are shown


class Ratios(NamedTuple):
    """Clicks over expected clicks of each pair by its own clicks alone: (P,) each."""

    value: Floats
    se: Floats  # never 0
    low: Floats
    high: Floats


def expected_clicks(
    cells: Cells, propensities: Floats | None = None, replicates: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Return the clicks of each pair, the clicks expected of its impressions, and the error of these: (P,) each.

    An impression is worth the click-through rate of its rank in its stratum, whatever is shown there; or, with
    propensities by rank, its share of all clicks by these.

    Parameters
    ----------
    cells
        Counts.
    propensities
        (K,): how often each rank is looked at.
    replicates
        (G, K): the same, each without one of G groups of users, where propensities are estimated from these cells.

    Returns
    -------
    clicks, expected, error : arrays
        ``error`` is the relative variance that expected clicks add to that of a pair's own clicks, which are among
        those that the expectation is estimated from: it may be below 0.

    Raises
    ------
    InputError
        If there are propensities of too few ranks.
    """
    size, deepest = cells.pairs.num_rows, int(cells.rank.max(initial=0))
    counts = np.bincount(cells.pair, cells.clicked, size).astype(np.float64)
    if propensities is not None:
        if len(propensities) < deepest:
            problem = f"there are propensities of {counted(len(propensities), 'rank')}, and {deepest} were shown"
            raise InputError(problem, fix="look at fewer ranks (depth), or estimate them deeper")

        def shares(curve: Floats) -> Floats:
            looks = cells.shown * curve[cells.rank - 1]
            return np.bincount(cells.pair, looks, size) / looks.sum()

        total, share = float(counts.sum()), shares(propensities)
        error = np.full(size, -1 / max(total, 1.0))
        if replicates is not None:
            again = np.log([shares(curve) for curve in replicates])
            error += (len(again) - 1) * again.var(axis=0)
        return counts, share * total, error
    place = cells.stratum * (deepest + 1) + cells.rank
    clicks, shown = (np.bincount(place, column) for column in (cells.clicked, cells.shown))
    part, rate = cells.shown / shown[place], clicks[place] / shown[place]  # of what the rank shows
    expected = np.bincount(cells.pair, part * clicks[place], size).astype(np.float64)
    missed = (cells.shown - cells.clicked + 0.5) / (cells.shown + 1)
    common = np.bincount(cells.pair, part * part * clicks[place] * (1 - rate), size)
    own = np.bincount(cells.pair, part * cells.clicked * missed, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = common / expected**2 - 2 * own / (np.maximum(counts, 0.5) * expected)
    return counts, expected, np.where(expected > 0, error, 0.0)


def ratios_of(clicks: Floats, expected: Floats, shown: Floats, error: Floats, level: float = 0.95) -> Ratios:
    """Divide clicks by expected clicks, with intervals that hold for few clicks and none.

    Parameters
    ----------
    clicks, expected, shown, error
        (P,) each: of `expected_clicks`, and impressions.
    level
        Of the intervals.

    Notes
    -----
    The rate of clicks is Beta(clicks + 1/2, shown - clicks + 1/2) by the prior of Jeffreys, and its interval is divided
    by expected clicks per impression. The error of these widens it on the logarithmic scale: squares of distances from
    the mean add up, for either end (Zou and Donner, Statistics in Medicine 2008). Without clicks the standard error is
    that of half a click, and where no ranks have clicks half a click is expected.

    Examples
    --------
    >>> none, some = (ratios_of(*(np.array([x]) for x in (c, 2.0, 20.0, 0.0))) for c in (0.0, 4.0))
    >>> [round(float(x[0]), 2) for x in none], [round(float(x[0]), 2) for x in some]
    ([0.0, 0.35, 0.0, 1.17], [2.0, 0.9, 0.72, 4.08])
    """
    from scipy.special import betaincinv

    known = np.where(expected > 0, expected, 0.5)
    a, b = clicks + 0.5, np.maximum(shown - clicks, 0) + 0.5
    mean, most = a / (a + b), NormalDist().inv_cdf((1 + level) / 2)
    ends: list[Floats] = []
    for side in (-1, 1):
        distance = np.log(betaincinv(a, b, (1 + side * level) / 2) / mean)
        squares = np.maximum(distance**2 + most**2 * error, 1e-4 * distance**2)
        ends.append(mean * np.exp(side * np.sqrt(squares)) * shown / known)
    ends[0] = np.where(clicks > 0, ends[0], 0.0)  # the estimate is in its interval (Brown, Cai and DasGupta, 2001)
    count = np.maximum(clicks, 0.5)
    variance = (1 - count / (shown + 1)) / count + error
    return Ratios(clicks / known, count / known * np.sqrt(np.maximum(variance, 1e-3 / count)), *ends)


def shrunk(clicks: Floats, expected: Floats) -> Shrunk:
    """Shrink ratios of counts to expectations by gamma and Poisson, the prior's shape by maximum likelihood.

    Parameters
    ----------
    clicks, expected
        (P,) each.

    Notes
    -----
    The clicks of a pair with ratio t are Poisson(t * expected), and t is Gamma(a, a) over pairs, with mean 1
    (DuMouchel, The American Statistician 1999, with one component). Clicks of one impression are 0 or 1, which vary
    less than Poisson's. Where better documents are shown more often or higher up, true ratios go with expected clicks,
    which the prior does not know of: there is a standard deviation, and no interval. `ratios_of` has intervals.

    Examples
    --------
    >>> made = shrunk(np.array([0.0, 30.0, 5.0, 2.0]), np.array([10.0, 10.0, 10.0, 1.0]))
    >>> made.value.round(2).tolist(), round(made.prior, 2)
    ([0.05, 2.9, 0.53, 1.65], 0.54)
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    known = expected > 0
    count, rate = clicks[known], expected[known]

    def loss(log_a: float) -> float:
        a = math.exp(log_a)
        each = gammaln(count + a) - gammaln(a) - (count + a) * np.log1p(rate / a) - count * log_a
        return -float(each.sum())

    ends = (math.log(_NARROW), math.log(_WIDE))
    found: Any = minimize_scalar(loss, bounds=ends, method="bounded")
    a = math.exp(found.x)
    if a > 0.9 * _WIDE:
        ones = np.ones(len(clicks))
        return Shrunk(ones, np.zeros(len(clicks)), math.inf)
    shape, scale = clicks + a, expected + a
    return Shrunk(shape / scale, np.sqrt(shape) / scale, a)


class RankRate(NamedTuple):
    """What an impression at a rank is worth, whatever is shown there."""

    stratum: str
    rank: int
    shown: int
    clicks: int
    ctr: float


@dataclass(frozen=True, eq=False, repr=False)
class Coec(FieldAnswer):
    """What `coec` returns: pairs by value, and what an impression is worth at each rank."""

    kind: ClassVar[str] = "coec"
    answers: ClassVar[str] = "{log}: clicks over expected clicks"
    asked: ClassVar[tuple[str, ...]] = ("log", "counting", "level", "prior")

    log: str
    counting: str
    level: float
    prior: float
    pairs: ArrowTable  # query, doc_id
    shown: Floats
    clicks: Floats
    expected: Floats
    ratios: Ratios
    shrunk: Shrunk
    ranks: tuple[RankRate, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """How far pairs differ, and how much is known of them."""
        beyond, below = int((self.ratios.low > 1).sum()), int((self.ratios.high < 1).sum())
        pairs = counted(self.pairs.num_rows, "pair")
        if math.isinf(self.prior):
            drawn = "No differences between true ratios are shown: each is taken for 1."
        else:
            drawn = (
                f"True ratios have a mean of 1 and a standard deviation of {self.prior**-0.5:.2f};"
                f" each is drawn towards 1 as if it had {decimal(self.prior, 2)} expected clicks more."
            )
        return f"Of {pairs} {beyond} are clicked more than their ranks would have it, and {below} less.", drawn

    def blocks(self) -> tuple[Block, ...]:
        """Give the rates of ranks, and the pairs, the surest to be better first."""
        made, many = self.shrunk, len({row[0] for row in self.ranks}) > 1
        ranks = columns_of(
            self.ranks, ("stratum", TEXT) if many else "stratum", ("rank", COUNT), ("shown", COUNT), ("clicks", COUNT),
            ("ctr", number(4), "clicks an impression"),
        )  # fmt: skip
        raw = self.ratios
        order = np.lexsort((np.arange(len(raw.low)), -raw.low)).tolist()
        ci = [
            (low, high) if expected else None
            for low, high, expected in zip(raw.low.tolist(), raw.high.tolist(), self.expected.tolist(), strict=True)
        ]
        value = np.where(self.expected > 0, raw.value, np.nan).tolist()
        pairs = Table(
            "pairs",
            (
                Column("query", self.pairs["query"].to_pylist(), TEXT),
                Column("doc_id", self.pairs["doc_id"].to_pylist(), TEXT, "document"),
                Column("shown", self.shown.tolist(), COUNT),
                Column("clicks", self.clicks.tolist(), COUNT),
                Column("expected", self.expected.tolist(), _TWO),
                Column("raw", value, _TWO, "COEC", ci=ci),
                Column("value", made.value.tolist(), _TWO, "shrunk"),
                Column("sd", made.sd.tolist(), only="data"),
            ),
            "Pairs",
            labels=2,
        ).take(order)
        return Sentences(self.sentences), Table("ranks", ranks, "Ranks", labels=2 if many else 1), pairs


Counting: TypeAlias = Literal["clicks", "satisfied", "purchases"]
"""What counts as a click: any; one whose visit was long enough, or the last of its session; a purchase on the page."""


def coec(
    log: InteractionLog,
    *,
    counting: Counting = "clicks",
    dwell: float = 30.0,
    level: float = 0.95,
    propensities: Any = None,
    **choice: Any,
) -> Coec:
    """Count clicks of each query and document against what the ranks that it was shown at would have it.

    Parameters
    ----------
    log
        What users did.
    counting
        ``clicks``; ``satisfied``: those whose visit took `dwell` seconds, or was the last of its session;
        ``purchases``.
    dwell
        Seconds.
    level
        Of the intervals.
    propensities
        How often each rank is looked at, as `read_propensities` takes it: expected clicks are then shared out by these,
        and not by the rates of ranks.
    choice
        ``by``, ``stratum``, ``pages``, ``where``, ``depth``: as for `cells_of`.

    Raises
    ------
    InputError
        If the log has no ranks or cannot tell what is counted, or an option makes no sense.

    Notes
    -----
    Expected clicks are summed over impressions, each at its own rank, so that they are right for documents that were
    shown at several ranks; over all pairs they are as many as there are clicks. What is usually shown high up for good
    reason is expected to be clicked for that reason too: the measure is fair between documents of one rank, and leans
    towards those that were shown low (Zhang and Jones, WWW 2007; Cheng and Cantu-Paz, WSDM 2010).

    Intervals are of a pair's own clicks (`ratios_of`), and allow for the error of expected clicks: of the rates of
    ranks, and of propensities that the same log gives. Other propensities are taken as known.
    """
    need(log=log, level=level, dwell=dwell)
    cells = cells_of(counted_as(log, counting, dwell), **choice)
    curve, replicates = looks_of(log, propensities, choice.get("where"))
    return coec_of(cells, log.name, counting, level, propensities=curve, replicates=replicates)


def looks_of(log: InteractionLog, propensities: Any, where: str | None) -> tuple[Floats | None, Floats | None]:
    """Read propensities, and estimate them without each group of users if the log itself gives them."""
    if propensities is None:
        return None, None
    curve = single_curve(propensities)
    again = estimated_here(log, curve, where=where)
    return curve, None if again is None or not len(again[0].left) else np.exp(again[0].left)


def coec_of(
    cells: Cells,
    log: str = "log",
    counting: str = "clicks",
    level: float = 0.95,
    *,
    propensities: Floats | None = None,
    replicates: Floats | None = None,
) -> Coec:
    """Do what `coec` does, of cells; `replicates` as for `expected_clicks`.

    >>> import pyarrow as pa
    >>> from judged.online.clicks import Cells
    >>> ids = pa.table({"query": ["q", "q"], "doc_id": ["a", "b"]})
    >>> codes = {"pair": [0, 0, 1, 1], "rank": [1, 2, 1, 2], "last": [0] * 4, "stratum": [0] * 4}
    >>> counts = {"shown": [90, 10, 10, 90], "clicked": [45, 2, 4, 9]}
    >>> arrays = {name: np.array(values) for name, values in {**codes, **counts}.items()}
    >>> made = coec_of(Cells(pairs=ids, strata=("",), by="query_norm", **arrays))
    >>> made.expected.round(2).tolist(), float(made.expected.sum())
    ([45.2, 14.8], 60.0)
    """
    check_share("level", level)
    clicks, expected, error = expected_clicks(cells, propensities, replicates)
    shown = np.bincount(cells.pair, cells.shown, cells.pairs.num_rows).astype(np.float64)
    made = shrunk(clicks, expected)
    codes, cell = np.unique(np.stack([cells.stratum, cells.rank]), axis=1, return_inverse=True)
    seen, clicked = (np.bincount(cell.ravel(), column).astype(int).tolist() for column in (cells.shown, cells.clicked))
    ranks = tuple(
        RankRate(cells.strata[stratum], rank, n, c, c / n)
        for stratum, rank, n, c in zip(*codes.tolist(), seen, clicked, strict=True)
    )
    notes: list[Note] = []
    if math.isinf(made.prior):
        notes.append(Note("no-differences", "clicks differ no more than chance would have them: every ratio is 1"))
    fixed = _of_one_rank(cells)
    if fixed > 0.5:
        text = f"{fixed:.0%} of impressions are of pairs that stood at one rank only: there, rank and document are one"
        notes.append(Note("one-rank", text))
    ratios = ratios_of(clicks, expected, shown, error, level)
    return Coec(
        log, counting, level, made.prior, cells.pairs, shown, clicks, expected, ratios, made, ranks,
        tuple(notes),
    )  # fmt: skip


def _of_one_rank(cells: Cells) -> float:
    """Give the share of impressions of pairs that were shown at one rank."""
    size = cells.pairs.num_rows
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.zeros(size, dtype=np.int64)
    np.minimum.at(lowest, cells.pair, cells.rank)
    np.maximum.at(highest, cells.pair, cells.rank)
    return float(cells.shown[(lowest == highest)[cells.pair]].sum() / cells.shown.sum())


def counted_as(log: InteractionLog, counting: str, dwell: float) -> InteractionLog:
    """Give the log with those clicks alone that count.

    Raises
    ------
    InputError
        If it cannot tell them.
    """
    from judged.online.facts.reformulation import click_facts

    if counting == "clicks":
        return log
    if counting == "satisfied":
        if not log.has_time:
            raise InputError(f"{log.name} has no clock, and satisfied clicks need one", fix="count clicks")
        rows = f"SELECT * FROM {click_facts(log)} WHERE ended = 0 OR dwell_ms >= {1000 * dwell:.0f}"
    elif counting == "purchases":
        rows = f"SELECT * FROM {log.event} WHERE action = 'purchase' AND serp IS NOT NULL"
    else:
        raise InputError(f"nothing is counted as {counting!r}", fix="count clicks, satisfied or purchases")
    columns = "serp, session, \"user\", time_ms, 'click' AS action, object_id, rank, dwell_ms"
    nulls = "row_number() OVER () AS event, CAST(NULL AS DOUBLE) AS value"
    return replace(log, event=log.engine.keep(f"SELECT {nulls}, {columns} FROM ({rows})", "counting"))
