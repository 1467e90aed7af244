"""Position bias without a model of clicks: how often each rank is looked at, from documents that stood at several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.data import files
from judged.data.json_rows import load_json
from judged.data.records import records_of
from judged.errors import InputError
from judged.online.clicks.cells import patterns_of
from judged.online.engine import identifier, literal
from judged.online.log import FieldAnswer, need, need_column
from judged.results import COUNT, TEXT, Chart, Sentences, Table, columns_of, counted, listed, number
from judged.results.blocks import Note
from judged.stats.student import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.online.clicks.cells import Patterns
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints

GROUPS = 50  # of users, left out one after the other
_LEAST = 10  # groups of users: of fewer there is no interval


class Harvest(NamedTuple):
    """What pairs of ranks say of one another."""

    log: Floats  # (K,): of how often each rank is looked at, against the first one that is known; NaN: not known
    clicks: Floats  # (K, K): those at the first rank that documents shown at both take part with


def harvest(shown: Floats, clicked: Floats) -> Harvest:
    """Estimate how often ranks are looked at: by all pairs of ranks, from documents that were shown at both.

    Parameters
    ----------
    shown, clicked
        (P, K): impressions and clicks of each pair of query and document at each rank.

    Returns
    -------
    Harvest
        NaN for ranks that no chain of pairs joins with the first one that was shown.

    Notes
    -----
    Of two ranks the click-through rates of the same documents are compared, each weighted by ``n m / (n + m)`` for n
    and m impressions; the logarithms of all these ratios are fitted by weighted least squares. It rests on the position
    being the only thing that differs between impressions of one document for one query (Agarwal et al., WSDM 2019).

    Examples
    --------
    >>> harvest(np.array([[100, 100], [50, 0.0]]), np.array([[40, 20], [25, 0.0]])).log.round(3).tolist()
    [0.0, -0.693]
    """
    ranks = shown.shape[1]
    clicks, spread = np.zeros((ranks, ranks)), np.full((ranks, ranks), np.inf)
    for one in range(ranks):
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(shown / (shown + shown[:, [one]]))  # the other rank's part of the impressions
        clicks[one] = clicked[:, one] @ share
        own = clicked[:, one] @ share**2
        spread[one] = np.divide(own, clicks[one] ** 2, out=np.full(ranks, np.inf), where=clicks[one] > 0)
    weight = 1 / (spread + spread.T)
    np.fill_diagonal(weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(weight > 0, np.log(clicks) - np.log(clicks.T), 0.0)
    known = _joined(weight > 0, int(np.argmax(shown.sum(axis=0) > 0)))
    fitted = np.full(ranks, np.nan)
    rest = np.flatnonzero(known)[1:]
    fitted[known] = 0.0
    laplacian = np.diag(weight.sum(axis=1)) - weight
    fitted[rest] = np.linalg.solve(laplacian[np.ix_(rest, rest)], (weight * ratio).sum(axis=1)[rest])
    return Harvest(fitted, clicks)


def _joined(edges: np.ndarray[Any, Any], start: int) -> np.ndarray[Any, Any]:
    """Mark what can be reached."""
    known = np.arange(len(edges)) == start
    while (more := known | edges[known].any(axis=0)).sum() > known.sum():
        known = more
    return known


class Propensity(NamedTuple):
    """How often users look at a rank."""

    stratum: str
    rank: int
    value: float  # against rank 1
    ci: tuple[float, float] | None
    shown: int
    naive: float  # clicks an impression, against rank 1: what ranks hold mixed with what they do


class RankLink(NamedTuple):
    """Two ranks that documents were shown at both, and how much these say of them."""

    stratum: str
    upper: int
    lower: int
    documents: int
    clicks: float  # at both, weighted as they are compared


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(FieldAnswer):
    """What `propensities` returns; as CSV or JSON it is a file that `read_propensities` takes."""

    kind: ClassVar[str] = "propensities"
    answers: ClassVar[str] = "{log}: how often each rank is looked at"
    asked: ClassVar[tuple[str, ...]] = ("log", "randomized", "stratum", "level")

    log: str
    randomized: bool  # whether only results that were put where they were by chance count
    stratum: str | None
    level: float
    ranks: tuple[Propensity, ...]
    links: tuple[RankLink, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the last rank gets, and on what that rests."""
        last = self.ranks[-1]
        within = "" if last.ci is None else f" [{last.ci[0]:.3f}, {last.ci[1]:.3f}]"
        means = "put where they were by chance" if self.randomized else "that stood at several ranks"
        where = f" ({last.stratum})" if self.stratum else ""
        return (
            f"Rank {last.rank} is looked at {last.value:.3f}{within} times as often as rank 1{where}.",
            f"The rates of clicks alone, which hold what stands there as well, would say {last.naive:.3f}.",
            f"This rests on documents {means}.",
        )

    def of(self, stratum: str = "") -> Floats:
        """Give the values of one stratum from rank 1 on: (K,)."""
        return np.array([row.value for row in self.ranks if row.stratum == stratum])

    def blocks(self) -> tuple[Block, ...]:
        """Give the ranks, their curve, and which ranks were compared."""
        which = ("stratum", TEXT) if self.stratum else "stratum"
        labels = 2 if self.stratum else 1
        three = number(3)
        shown = ("rank", COUNT), ("value", three, "looked at"), ("shown", COUNT), ("naive", three, "by clicks alone")
        ranks = Table("ranks", columns_of(self.ranks, which, *shown), "Ranks", labels=labels)
        counts = ("upper", COUNT), ("lower", COUNT), ("documents", COUNT), ("clicks", number(1))
        links = Table("links", columns_of(self.links, which, *counts), "Ranks compared", labels=labels + 1, folded=True)
        chart = Chart(
            "examination", "How often each rank is looked at", ranks, self.sentences[0], "lines", x="rank", y="value",
            color="stratum" if self.stratum else "", spread="cutoff",
        )  # fmt: skip
        return Sentences(self.sentences), ranks, chart, links


def propensities(
    log: InteractionLog,
    *,
    stratum: str | None = None,
    randomized: bool | None = None,
    by: str | None = None,
    where: str | None = None,
    depth: int = 10,
    level: float = 0.95,
) -> Propensities:
    """Estimate how often users look at each rank, against rank 1, without a model of their clicks.

    Parameters
    ----------
    log
        What users did.
    stratum
        A column of `log.serp` whose values are looked at apart: a device, a layout.
    randomized
        Count only results with a logged propensity between 0 and 1, each by its inverse; None: where there are any.
    by, where, depth
        As for `cells_of`.
    level
        Of the intervals, by a jackknife over groups of users.

    Raises
    ------
    InputError
        If ranks are not joined: no document was shown, and clicked, at a rank of each side.

    Notes
    -----
    Documents that different rankers, or one over time, put at different ranks say how much the rank alone does: see
    `harvest`. Where the place of a document goes with what it is worth at that moment (a ranker that is fed with
    clicks), only randomized results are free of bias.
    """
    need(log=log, level=level)
    counted, randomized = _by_chance(log, randomized)
    strata = {"": counted} if stratum is None else by_value(counted, stratum)
    ranks: list[Propensity] = []
    links: list[RankLink] = []
    notes: list[Note] = []
    for name, own in strata.items():
        found, joined, few = propensities_of(patterns_of(own, by=by, where=where, depth=depth), name, level)
        ranks += found
        links += joined
        notes += few
    return Propensities(log.name, randomized, stratum, level, tuple(ranks), tuple(links), tuple(notes))


def _by_chance(log: InteractionLog, randomized: bool | None = None) -> tuple[InteractionLog, bool]:
    """Return the log with those results alone that chance put where they are, if `randomized`; None: if it has any."""
    chance = log.shown.where("propensity > 0 AND propensity < 1")
    if randomized is None:
        randomized = bool(log.engine.rows(f"SELECT count(*) AS n FROM {chance}")[0]["n"])
    return (replace(log, shown=chance) if randomized else log), randomized


def by_value(log: InteractionLog, column: str) -> dict[str, InteractionLog]:
    """Cut a log by a column of its pages; empty for pages without a value."""
    need_column(log, column)
    value = f"coalesce(CAST({identifier(column)} AS VARCHAR), '')"
    rows = log.engine.rows(f"SELECT DISTINCT {value} AS value FROM {log.serp} ORDER BY value")
    return {row["value"]: replace(log, serp=log.serp.where(f"{value} = {literal(row['value'])}")) for row in rows}


class Replicates(NamedTuple):
    """How often ranks are looked at, estimated once without each group of users."""

    whole: Harvest
    left: Floats  # (G, K): logarithms; of fewer than 10 users there are none
    group: Ints  # (U,): of each unit of the patterns

    def error(self) -> Floats:
        """Return standard errors of the logarithms, (K,): NaN where there are none."""
        groups = len(self.left)
        if not groups:
            return np.full(len(self.whole.log), np.nan)
        return np.sqrt((groups - 1) / groups * ((self.left - self.left.mean(axis=0)) ** 2).sum(axis=0))


def replicates_of(patterns: Patterns, groups: int = GROUPS) -> Replicates:
    """Estimate how often ranks are looked at, by all users and without each of so many groups of them, or fewer."""
    count = _counter(patterns)
    shown, clicked = count(None)
    several = (shown > 0).sum(axis=1) > 1  # pairs that say something of ranks
    ranks = shown.shape[1]
    whole = harvest(shown[several], clicked[several]) if several.any() else Harvest(np.full(ranks, np.nan), clicked)
    groups = min(groups, patterns.units)
    group = np.arange(patterns.units) % groups
    left = np.zeros((0, ranks))
    if groups >= _LEAST and several.any():
        parts = (count((group == at).astype(np.float64)) for at in range(groups))
        left = np.stack([harvest((shown - s)[several], (clicked - k)[several]).log for s, k in parts])
    return Replicates(whole, left, group)


def _counter(patterns: Patterns) -> Callable[[Floats | None], tuple[Floats, Floats]]:
    """Return a function that counts impressions and clicks of each pair at each rank, (P, K), with weights of units."""
    there = patterns.pair >= 0
    size, ranks = patterns.pairs.num_rows, patterns.pair.shape[1]
    pattern, rank = np.nonzero(there)
    place, clicks = patterns.pair[there] * ranks + rank, patterns.clicked[there]

    def count(weights: Floats | None) -> tuple[Floats, Floats]:
        times = patterns.counts(weights)[pattern]
        shown, clicked = (np.bincount(place, column, size * ranks) for column in (times, times * clicks))
        return shown.astype(np.float64).reshape(size, ranks), clicked.astype(np.float64).reshape(size, ranks)

    return count


def estimated_here(
    log: InteractionLog, curve: Floats, *, where: str | None = None, groups: int = GROUPS
) -> tuple[Replicates, Patterns] | None:
    """Find out whether propensities are what the log itself gives, and estimate them without each group of users.

    Intervals that take such propensities for known are too narrow: they rest on the same clicks.

    Returns
    -------
    tuple or None
        Replicates, and the pages that they were estimated from; None if the propensities are not from this log.
    """
    for condition in dict.fromkeys([where, None]):
        with suppress(InputError):
            patterns = patterns_of(_by_chance(log)[0], where=condition, depth=len(curve))
            shown, clicked = _counter(patterns)(None)
            own = np.exp(harvest(shown, clicked).log)
            if np.allclose(own, curve[: len(own)], rtol=1e-6, atol=0):
                return replicates_of(patterns, groups), patterns
    return None


def propensities_of(
    patterns: Patterns, stratum: str = "", level: float = 0.95
) -> tuple[list[Propensity], list[RankLink], list[Note]]:
    """Estimate the ranks of one stratum, with intervals, what was compared, and what should be known of it.

    Raises
    ------
    InputError
        If ranks are not joined.
    """
    shown, clicked = _counter(patterns)(None)
    several = (shown > 0).sum(axis=1) > 1
    n, c = shown.sum(axis=0), clicked.sum(axis=0)
    replicates = replicates_of(patterns)
    whole, error, groups = replicates.whole, replicates.error(), len(replicates.left)
    _refuse_unjoined(whole, shown, several, stratum)
    notes: list[Note] = []
    if not groups:
        text = f"{counted(patterns.units, 'user')} are too few for intervals of propensities"
        notes.append(Note("few-users", text, stratum))
    half = error * student_quantile((1 + level) / 2, max(groups - 1, 1))
    ends = np.exp(np.stack([whole.log - half, whole.log + half], axis=1)).tolist()
    rate = np.divide(c, n, out=np.full(len(n), np.nan), where=n > 0)
    found = [
        Propensity(
            stratum,
            at + 1,
            math.exp(whole.log[at]),
            None if at == 0 or math.isnan(half[at]) else (ends[at][0], ends[at][1]),
            int(n[at]),
            float(rate[at] / rate[0]) if rate[0] else math.nan,
        )
        for at in np.flatnonzero(n > 0).tolist()
    ]
    both = (shown > 0).astype(np.float64)
    documents, least = both.T @ both, np.minimum(whole.clicks, whole.clicks.T)
    links = [
        RankLink(stratum, one + 1, other + 1, int(documents[one, other]), float(least[one, other]))
        for one, other in np.argwhere(np.triu(documents > 0, 1)).tolist()
    ]
    return found, links, notes


def _refuse_unjoined(whole: Harvest, shown: Floats, several: np.ndarray[Any, Any], stratum: str) -> None:
    there = shown.sum(axis=0) > 0
    where = f" of {stratum}" if stratum else ""
    if there.sum() == 1:
        only = f"all results{where} were shown at rank {int(np.argmax(there)) + 1}: no ranks can be compared"
        raise InputError(only, fix="take pages of more results")
    alone = there & np.isnan(whole.log)
    if not alone.any():
        return
    joined = [str(at + 1) for at in np.flatnonzero(there & ~alone).tolist()] or ["1"]
    rest = [str(at + 1) for at in np.flatnonzero(alone).tolist() if str(at + 1) not in joined]
    few = f"{counted(int(several.sum()), 'document')} stood at more than one rank"
    deepest = next((at for at in range(len(there)) if alone[at]), 0)
    fix = "randomize some lists: swap two results on a share of pages"
    raise InputError(
        f"rank {listed(rest)}{where} cannot be compared with rank {listed(joined)}: no chain of documents was shown and"
        f" clicked at both ({few})",
        fix=f"{fix}; or look at {deepest} ranks only (depth)" if deepest > 1 else fix,
    )


def read_propensities(given: Any) -> dict[str, Floats]:
    """Read how often ranks are looked at, by stratum, from rank 1 on.

    Parameters
    ----------
    given
        `Propensities`; numbers from rank 1 on; ``{stratum: numbers}``; or a table with ``rank`` and ``value`` and, if
        there are several, ``stratum``: a list of dicts, a frame, or a file, such as `Propensities.save` writes as CSV
        or JSON.

    Raises
    ------
    InputError
        If a rank is missing, or a value is not a number above 0.

    >>> read_propensities([1, 0.5])
    {'': array([1. , 0.5])}
    >>> read_propensities([{"rank": 2, "value": 0.5}, {"rank": 1, "value": 1}])
    {'': array([1. , 0.5])}
    """
    where = str(given) if isinstance(given, (str, Path)) else "<propensities>"
    fix = "give rank and value from rank 1 on, each value above 0"
    if isinstance(given, Propensities):
        curves = {row.stratum: list[float]() for row in given.ranks}
        made = {stratum: given.of(stratum) for stratum in curves}
    elif isinstance(given, (str, Path)) or _is_table(given):
        rows: dict[str, dict[int, float]] = {}
        for line, row in _rows(given, where, fix):
            try:
                rows.setdefault(str(row.get("stratum") or ""), {})[int(row["rank"])] = float(row["value"])
            except (KeyError, TypeError, ValueError, OverflowError):
                raise InputError("a row without rank or value", fix=fix, path=where, line=line) from None
        made = {
            name: np.array([curve.get(at + 1, math.nan) for at in range(min(max(curve), len(curve)))])
            for name, curve in rows.items()
        }
    else:
        curves = given if isinstance(given, Mapping) else {"": given}
        try:
            made = {str(name): np.asarray(values, dtype=np.float64) for name, values in curves.items()}
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"propensities are numbers by rank, got {given!r:.60}", fix=fix, path=where) from None
    if not made or not all(curve.ndim == 1 and len(curve) and (curve > 0).all() for curve in made.values()):
        raise InputError("propensities are missing, or not above 0", fix=fix, path=where)
    return made


def single_curve(given: Any) -> Floats:
    """Read how often ranks are looked at where that is the same on all pages: (K,).

    Raises
    ------
    InputError
        As `read_propensities`, or if there are several strata.
    """
    curves = read_propensities(given)
    if len(curves) > 1:
        raise InputError("there are propensities of several strata", fix="take one at a time: where, and its curve")
    return next(iter(curves.values()))


def _is_table(given: Any) -> bool:
    """Whether rows were given, as dicts or as a frame."""
    rows = isinstance(given, list) and bool(given) and isinstance(given[0], Mapping)
    return rows or hasattr(given, "column_names") or hasattr(given, "columns")


def _rows(given: Any, where: str, fix: str) -> Iterable[tuple[int | None, dict[str, Any]]]:
    if not isinstance(given, (str, Path)) or Path(given).suffix != ".json":
        return records_of(given, where, "propensities", fix)
    document = load_json(files.local(given), where)
    ranks: Any = document.get("ranks") if isinstance(document, dict) else document
    if not isinstance(ranks, list):
        raise InputError("there is no list of ranks", fix=fix, path=where)
    return records_of(ranks, where, "propensities", fix)
