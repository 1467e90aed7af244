"""What another ranker would have got: a log in which it is known how likely each result was shown where it was."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from judged.answer import CHANGE, COUNT, NUMBER, TEXT, Column, Sentences, Table, columns_of, counted, listed
from judged.clicks.pairs import column_and_texts
from judged.data import files
from judged.data.records import records_of
from judged.data.run import Run
from judged.errors import InputError
from judged.judging.align import align
from judged.online.arguments import need
from judged.online.engine import identifier
from judged.online.log import LogAnswer, about
from judged.online.numbers import percent
from judged.stats.off_policy import ESTIMATORS, Rates, effective, mean_and_error, self_normalised

if TYPE_CHECKING:
    from judged._types import Bools, Floats, Ints
    from judged.answer import Block
    from judged.online.log import InteractionLog

_FEWEST = 30  # pages of equal weight, without which an estimate is not given
_ASSUMES = {
    "independent": ("a result's clicks hang on its own rank alone", "what stands above or below it"),
    "self-normalised": ("the same; biased where pages are few", "the same"),
    "clipped": ("the same; too low by what is cut at most", "results that are seldom shown"),
    "direct": ("a document is clicked at a rank as often for everyone", "documents that were never shown there"),
    "doubly robust": ("the first, or the one before", "less than each"),
    "cascade": ("clicks hang on nothing below", "ranks below"),
    "pseudo-inverse": ("a page's clicks are a sum over ranks, which were filled independently", "how results interact"),
    "whole list": ("nothing", "nothing, and few logged lists are those of the run"),
}
"""What each estimator assumes, and what it cannot see."""


class OffPolicy(NamedTuple):
    """One estimator's clicks a page of the other ranker, and by how much they differ from those that were logged.

    ``refused``: why it says nothing; then both are NaN. ``effective``: pages of equal weight that tell as much.
    """

    estimator: str
    value: float
    ci: tuple[float, float] | None
    difference: float
    difference_ci: tuple[float, float] | None
    effective: float
    refused: str


class RankWeights(NamedTuple):
    """The weights of a rank: their mean, which is 1 where the log shows what the other ranker does, and its error."""

    rank: int
    pages: int
    mean: float
    error: float
    most: float
    effective: float
    never: float  # share of pages at whose rank the other ranker shows what the log never did there


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyEstimates(LogAnswer):
    """What `off_policy` returns.

    Attributes
    ----------
    run : str
        The other ranker's name.
    pages, users, logged : int, int, float
        On what it rests, and clicks a page as logged.
    depth, clip : int, float
        Ranks that count, and the largest weight of the clipped estimate.
    rows : tuple of OffPolicy
    weights : tuple of RankWeights
    """

    kind: ClassVar[str] = "off-policy"
    answers: ClassVar[str] = "{run}: what users of {log} would have clicked"
    asked: ClassVar[tuple[str, ...]] = ("run", "pages", "users", "logged", "depth", "clip")
    main: ClassVar[str] = "estimates"

    run: str
    pages: int
    users: int
    logged: float
    depth: int
    clip: float
    rows: tuple[OffPolicy, ...]
    weights: tuple[RankWeights, ...]

    @property
    def overlaps(self) -> bool:
        """Whether the log shows what the other ranker does often enough to say anything."""
        return any(not one.refused for one in self.rows if one.estimator != "direct")

    def blocks(self) -> tuple[Block, ...]:
        """Give the estimates, what each assumes, and the weights by rank."""
        rows = self.rows
        size = f"{counted(self.pages, 'page')} of {counted(self.users, 'user')}"
        said = (
            f"{size}, with {self.logged:.4g} clicks a page in the first {self.depth} ranks as logged.",
            *(
                f"Nothing is said by {listed([one.estimator for one in rows if one.refused == why])}: {why}."
                for why in dict.fromkeys(one.refused for one in rows if one.refused)
            ),
        )
        return (
            Sentences(said),
            Table(
                "estimates",
                (
                    *columns_of(rows, ("estimator", TEXT)),
                    Column("value", [one.value for one in rows], NUMBER, "clicks a page", [one.ci for one in rows]),
                    Column(
                        "difference", [one.difference for one in rows], CHANGE, "less logged",
                        [one.difference_ci for one in rows],
                    ),
                    Column("effective", [one.effective for one in rows], COUNT, "equal pages"),
                    Column("refused", [one.refused for one in rows], TEXT, only="data"),
                ),
                "What it would have got",
                note=f"{percent(self.level)} intervals over {self.unit}s; equal pages: that many tell as much",
            ),
            Table(
                "assumptions",
                (
                    Column("estimator", list(_ASSUMES), TEXT),
                    Column("assumes", [one for one, _ in _ASSUMES.values()], TEXT),
                    Column("blind", [one for _, one in _ASSUMES.values()], TEXT, "is blind to"),
                ),
                "What each assumes",
                folded=True,
            ),
            Table(
                "weights",
                columns_of(
                    self.weights, ("rank", COUNT), ("pages", COUNT), ("mean", NUMBER), ("error", NUMBER),
                    ("most", NUMBER, "largest"), ("effective", COUNT, "equal pages"), ("never", NUMBER, "never shown"),
                ),
                "Weights",
                note="their mean is 1 where the log shows what the run does; never shown: share of pages",
            ),
            self.made(),
        )  # fmt: skip


def off_policy(
    log: InteractionLog,
    run: Any,
    *,
    topics: Any = None,
    depth: int = 10,
    clip: float = 10.0,
    unit: str = "user",
    level: float = 0.95,
) -> OffPolicyEstimates:
    """Estimate the clicks that another ranker would have got, from logged pages and the propensities of their results.

    Parameters
    ----------
    log
        With the probability that each result was shown at its rank (``propensity``).
    run
        The other ranker: a run, as `evaluate` takes it; or, where it does not hang on the query, a table with ``rank``,
        ``doc_id`` and ``probability``, as a list of dicts, a frame or a path.
    topics
        How a page finds its topic in the run, as for `judged.online.against_qrels`.
    depth
        Ranks that count.
    clip
        The largest weight of the clipped estimate.
    unit, level
        What intervals are made over, and how wide they are.

    Raises
    ------
    InputError
        If the log has no propensities, no page has a topic of the run, or an option makes no sense.

    Notes
    -----
    An estimate is withheld where the weights say that the log does not show what the run does: where their mean is not
    1, or fewer than 30 pages of equal weight tell as much. See `judged.stats.off_policy` for what each assumes.
    """
    need(log=log, unit=unit, level=level)
    if not clip >= 1:
        raise InputError(f"clip is {clip:g}", fix="give a weight of 1 or more")
    column, texts = column_and_texts(log, topics)
    rows = _rows(log, column, unit, depth)
    docs, doc = np.unique(rows["object_id"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)
    rank = rows["rank"].to_numpy().astype(np.int64) - 1
    asked = [(texts or {}).get(one, "" if texts else one) for one in map(str, rows["topic"].to_pylist())]
    if _is_policy(run):
        topic, shows, name = np.zeros(len(rank), dtype=np.int64), _policy(run, docs, depth), _name(run)
    else:
        topic, shows, name = _ranked(Run.of(run), asked, docs, depth)
    kept = topic >= 0
    if not kept.any():
        raise InputError("no page has a topic of the run", fix="say how pages find topics: topics=", path=log.name)
    _, page = np.unique(rows["serp"].to_numpy()[kept], return_inverse=True)
    topic, rank, doc = topic[kept], rank[kept], doc[kept]
    reward, propensity = (rows[one].to_numpy().astype(np.float64)[kept] for one in ("clicked", "propensity"))
    if not (propensity > 0).all():
        raise InputError("a result was shown with a propensity of 0", fix="log how likely it was shown", path=log.name)
    _, unit_of = np.unique(rows["unit"].to_numpy()[kept], return_inverse=True)
    units = np.zeros(page.max() + 1, dtype=np.int64)
    units[page] = unit_of
    cell = (topic * depth + rank) * shows.many + doc
    at = _places(shows.cells, cell)
    weight = np.where(at >= 0, shows.chance[at], 0.0) / propensity
    shape = (len(units), depth)
    weights, rewards, known = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    weights[page, rank], rewards[page, rank], known[page, rank] = weight, reward, True
    direct, residual = _modelled(page, cell, reward, weight, unit_of, shows, depth)
    made = {name_: weigh(weights, rewards) for name_, weigh in ESTIMATORS.items()}
    made |= {
        "clipped": (np.minimum(weights, clip) * rewards).sum(axis=1),
        "direct": direct,
        "doubly robust": direct + residual,
    }
    by_rank = tuple(_by_rank(weights, known, shows, cell, rank, units))
    why = _why_not(by_rank)
    rows_ = [
        _row(one, made.get(one), weights, rewards, units, level, why if one != "direct" else "") for one in _ASSUMES
    ]
    logged, _ = mean_and_error(rewards.sum(axis=1), units)
    how = {"other ranker": name, "weights cut at": f"{clip:g}, for the clipped estimate alone"}
    return OffPolicyEstimates(
        run=name, pages=len(units), users=int(units.max()) + 1, logged=logged, depth=depth, clip=clip,
        rows=tuple(rows_), weights=by_rank, **about(log, unit, level, how),
    )  # fmt: skip


def _rows(log: InteractionLog, column: str | None, unit: str, depth: int) -> Any:
    """Give one row a result with its propensity: page, unit, topic, rank, document, and whether it was clicked."""
    topic = "''" if column is None else f"p.{identifier(column)}"
    rows = log.engine.arrow(
        f"""
        SELECT p.serp, p.{identifier(unit)} AS unit, {topic} AS topic, s.rank, s.object_id, s.propensity,
            c.object_id IS NOT NULL AS clicked
        FROM {log.serp} AS p JOIN {log.shown} AS s ON s.serp = p.serp
        LEFT JOIN (SELECT DISTINCT serp, object_id FROM {log.event} WHERE action = 'click') AS c
            ON c.serp = s.serp AND c.object_id = s.object_id
        WHERE s.propensity IS NOT NULL AND s.rank <= {depth} ORDER BY p.serp, s.rank"""
    )
    if not len(rows):
        fix = "log with each result how likely it was shown at its rank: propensity"
        raise InputError("the log has no propensities", fix=fix, path=log.name)
    return rows


class _Shows(NamedTuple):
    """What the other ranker shows: cells of topic, rank and document, rising, and how likely each is shown.

    ``many``: documents of the log, and one that stands for all others.
    """

    cells: Ints
    chance: Floats
    many: int


def _shows(cells: Ints, chance: Floats, many: int) -> _Shows:
    """Add up what stands there twice."""
    found, place = np.unique(cells, return_inverse=True)
    return _Shows(found, np.bincount(place, chance, len(found)).astype(np.float64), many)


def _places(cells: Ints, wanted: Ints) -> Ints:
    """Find cells among others that rise; -1 is one that is not there."""
    if not len(cells):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(cells[at] == wanted, at, -1)


def _is_policy(run: Any) -> bool:
    """Whether a table of ranks and probabilities was given, and no run."""
    if isinstance(run, (str, Path)):
        return b"probability" in files.head(files.local(run)).split(b"\n", 1)[0]
    if isinstance(run, list):
        return bool(run) and isinstance(run[0], Mapping) and "probability" in run[0]
    names: Any = getattr(run, "column_names", getattr(run, "columns", ()))
    return "probability" in list(names)


def _name(run: Any) -> str:
    return str(run) if isinstance(run, str) else "policy"


def _policy(run: Any, docs: Any, depth: int) -> _Shows:
    """Read how likely a ranker that does not hang on the query shows each document at each rank."""
    code, many = {one: at for at, one in enumerate(docs.tolist())}, len(docs) + 1
    cells, chance = list[int](), list[float]()
    fix = "give rank, doc_id and probability"
    for line, row in records_of(run, "policy", "a policy", fix):
        try:
            rank, doc, probability = int(row["rank"]), str(row["doc_id"]), float(row["probability"])
        except (KeyError, ValueError):
            raise InputError("a row cannot be read", fix=fix, path="policy", line=line) from None
        if 1 <= rank <= depth:
            cells.append((rank - 1) * many + code.get(doc, len(docs)))
            chance.append(probability)
    return _shows(np.array(cells, dtype=np.int64), np.array(chance), many)


def _ranked(run: Run, asked: list[str], docs: Any, depth: int) -> tuple[Ints, _Shows, str]:
    """Give the topic of each row, -1 where the run has none, and what the run shows."""
    both = align(run, run, depth=depth)
    place = {query: at for at, query in enumerate(both.query_ids)}
    topic = np.array([place.get(one, -1) for one in asked], dtype=np.int64)
    code, many = {one: at for at, one in enumerate(docs.tolist())}, len(docs) + 1
    of = np.array([code.get(one, len(docs)) for one in both.doc.to_pylist()], dtype=np.int64)
    cells = (both.topic * depth + both.first - 1) * many + of
    return topic, _shows(cells, np.ones(len(cells)), many), run.name


def _modelled(
    page: Ints, cell: Ints, reward: Floats, weight: Floats, unit: Ints, shows: _Shows, depth: int
) -> tuple[Floats, Floats]:
    """Predict clicks by document and rank, each half of the units by the other: direct, and what that misses."""
    known, code = np.unique(cell, return_inverse=True)
    rank, shown = cell // shows.many % depth, shows.cells // shows.many
    lists, of_list = np.unique(shown, return_inverse=True)
    place = _places(lists, cell // shows.many)  # the topic and rank of each result among those that are filled
    pages = int(page.max()) + 1
    direct, missed = np.zeros(pages), np.zeros(pages)
    for half in (0, 1):
        other, own = unit % 2 != half, unit % 2 == half
        rates = Rates(code[other], rank[other], reward[other], len(known), depth)
        each = shows.chance * rates.of(_places(known, shows.cells), shown % depth)
        expected = np.append(np.bincount(of_list, each, len(lists)), 0.0)
        direct += np.bincount(page[own], expected[place[own]], pages)
        off = weight[own] * (reward[own] - rates.of(code[own], rank[own]))
        missed += np.bincount(page[own], off, pages)
    return direct, missed


def _by_rank(
    weights: Floats, known: Bools, shows: _Shows, cell: Ints, rank: Ints, units: Ints
) -> Iterator[RankWeights]:
    """Look at the weights of each rank that pages have."""
    lists, of_list = np.unique(shows.cells // shows.many, return_inverse=True)
    never_shown = shows.chance * (_places(np.unique(cell), shows.cells) < 0)
    unseen = np.append(np.bincount(of_list, never_shown, len(lists)), 0.0)
    place = _places(lists, cell // shows.many)
    for at in np.flatnonzero(known.any(axis=0)):
        own, rows = known[:, at], rank == at
        mean, error = mean_and_error(weights[own, at], np.unique(units[own], return_inverse=True)[1])
        never = float(unseen[place[rows]].mean())
        largest = float(weights[own, at].max())
        yield RankWeights(int(at) + 1, int(own.sum()), mean, error, largest, effective(weights[own, at]), never)


def _why_not(by_rank: Sequence[RankWeights]) -> str:
    """Say why weights allow no estimate."""
    for one in by_rank:
        if one.effective < _FEWEST:
            return f"at rank {one.rank} {one.pages} pages tell as much as {one.effective:.0f} of equal weight"
        if abs(one.mean - 1.0) > 4.0 * one.error + 0.02:
            off = f"at rank {one.rank} weights are {one.mean:.2f} in the mean, and not 1"
            return f"{off}: propensities are wrong, or the log never shows what it would"
    return ""


def _row(
    name: str, values: Floats | None, weights: Floats, rewards: Floats, units: Ints, level: float, why: str
) -> OffPolicy:
    """Give an estimate with its interval, and its difference from what was logged on the same pages."""
    factors = {"whole list": np.prod(weights, axis=1).astype(np.float64)}
    factors["cascade"] = np.cumprod(weights, axis=1)[:, -1].astype(np.float64)
    factors["pseudo-inverse"] = 1.0 + (weights - 1.0).sum(axis=1)
    telling = effective(factors[name]) if name in factors else min(effective(one) for one in weights.T)
    if not why and name in factors and telling < _FEWEST:
        why = f"{len(weights)} lists tell as much as {telling:.0f} of equal weight"
    if why:
        return OffPolicy(name, math.nan, None, math.nan, None, telling, why)
    if values is None:  # self-normalised
        value, influence = self_normalised(weights, rewards)
        values = value + influence
    z, own = NormalDist().inv_cdf(0.5 + level / 2.0), rewards.sum(axis=1)
    (value, error), (gap, off) = (mean_and_error(one, units) for one in (values, values - own))
    limits = [None if math.isnan(half) else (at - z * half, at + z * half) for at, half in ((value, error), (gap, off))]
    return OffPolicy(name, value, limits[0], gap, limits[1], telling, "")
