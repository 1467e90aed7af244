"""What logged clicks say of rankings that nobody was shown: each click counts by how rarely its rank is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.online.clicks.cells import column_and_texts, patterns_of, with_topics
from judged.online.clicks.examination import GROUPS, by_value, estimated_here, read_propensities
from judged.online.clicks.examination import propensities as estimate_propensities
from judged.online.log import FieldAnswer, need
from judged.online.offline.concordance import Estimate, influenced, ratio_estimate
from judged.results import CHANGE, NUMBER, TEXT, Column, Sentences, Table, columns_of, counted
from judged.results.blocks import Note
from judged.scoring.evaluation.inputs import measures_of, runs_of
from judged.scoring.judging import judge, judge_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.data.run import Run
    from judged.online.clicks.cells import Patterns
    from judged.online.clicks.examination import Replicates
    from judged.online.log import InteractionLog
    from judged.results import Block
    from judged.results.types import Floats, Ints
    from judged.scoring.measures.base import Measure

_FEW = 0.1  # of the clicks: so few that count as many make an interval of little worth
_Limits = tuple[float, float] | None


class Ips(NamedTuple):
    """What clicks say of a run."""

    run: str
    measure: str
    value: float  # a page: of the measure with clicks that every looked-at rank would give, as grades of 1
    ci: _Limits
    normalized: float  # of what one click is worth at rank 1, the share that the run gives the clicks
    normalized_ci: _Limits
    difference: float  # of values: from the first run
    difference_ci: _Limits


@dataclass(frozen=True, eq=False, repr=False)
class IpsScores(FieldAnswer):
    """What `ips` returns."""

    kind: ClassVar[str] = "ips"
    answers: ClassVar[str] = "{log}: what its clicks say of rankings"
    asked: ClassVar[tuple[str, ...]] = (
        "log", "level", "clip", "pages", "other", "clicks", "clipped", "effective", "units", "estimated",
    )  # fmt: skip

    log: str
    level: float
    clip: float | None
    pages: int
    other: int  # pages whose topic no run has
    clicks: int
    clipped: int
    effective: float  # so many clicks of equal weight tell as much (Kish)
    units: int
    estimated: bool  # whether propensities are from the same log, and intervals allow for their error
    rows: tuple[Ips, ...]
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """On what the numbers rest."""
        cut = "" if self.clip is None else f", {self.clipped} of them with a weight cut to {self.clip:g}"
        what = f"{counted(self.clicks, 'click')} of {counted(self.units, 'user')} on {counted(self.pages, 'page')}{cut}"
        if self.estimated:
            how = "estimated from the same log: intervals allow for their error"
        else:
            how = "not from this log, and taken as known: intervals do not allow for their error"
        return f"{what}: as much as {self.effective:.0f} of equal weight.", f"Propensities are {how}."

    def blocks(self) -> tuple[Block, ...]:
        """Give every run by every measure."""
        rows, less = self.rows, f"IPS less {self.rows[0].run}"
        normalized, differences = [row.normalized_ci for row in rows], [row.difference_ci for row in rows]
        table = (
            *columns_of(rows, ("run", TEXT), ("measure", TEXT), ("value", NUMBER, "IPS")),
            Column("normalized", [row.normalized for row in rows], NUMBER, "self-normalized", normalized),
            Column("difference", [row.difference for row in rows], CHANGE, less, differences),
        )
        return Sentences(self.sentences), Table("runs", table, labels=2)


def ips(
    log: InteractionLog,
    runs: Any,
    propensities: Any = None,
    measures: Any = ("DCG@10", "P@10"),
    *,
    clip: float | None = None,
    topics: Any = None,
    stratum: str | None = None,
    where: str | None = None,
    depth: int = 10,
    level: float = 0.95,
) -> IpsScores:
    """Score runs by logged clicks, each weighted by the inverse of how often its rank is looked at.

    Parameters
    ----------
    log
        What users did.
    runs
        Rankings, as `evaluate` takes them.
    propensities
        As `read_propensities` takes them: of the ranks down to `depth`. None: those that `propensities` estimates from
        this log.
    measures
        Measures that add up what each document is worth at its rank, and need nothing else: DCG, P, RBP.
    clip
        The largest weight that a click may have; None: none is cut, and values are unbiased if the propensities are.
    topics
        How a page finds its topic, as for `judged.online.against_qrels`.
    stratum
        The column whose values the propensities are of; a user in two of them counts as two.
    where, depth
        As for `cells_of`.
    level
        Of the intervals, over users.

    Raises
    ------
    InputError
        If a rank has no propensity, no page has a topic of the runs, or the log cannot tell propensities.
    MeasureError
        If a measure needs more than the rank of each clicked document.

    Notes
    -----
    A value is the mean over pages of ``sum over clicks of worth(rank in the run) / propensity(logged rank)``: what the
    measure would be with grades of 1 for what attracts the user of that page (Joachims, Swaminathan and Schnabel, WSDM
    2017). What was never shown was never clicked: a run is worth at least so much. Self-normalized, the same sum is
    divided by the weight of all clicks: less variance, and a bias that vanishes with more clicks.

    Propensities that the log itself gives, which are recognized by their values, rest on the same clicks: users are
    left out in up to fifty groups, and propensities and values are estimated anew (jackknife). With fewer than ten
    users there is then no interval. Other propensities are taken as known.
    """
    need(log=log, level=level)
    if propensities is None:
        propensities = estimate_propensities(log, stratum=stratum, where=where, depth=depth)
    curves, given = read_propensities(propensities), runs_of(runs)
    column, texts = column_and_texts(log, topics)
    logs = {"": log} if stratum is None else by_value(log, stratum)
    if lacking := [name for name in logs if name not in curves]:
        fix = "say of which column they are (stratum)" if "" in lacking else f"estimate them with stratum={stratum!r}"
        raise InputError(f"there are no propensities of {lacking[0] or 'all pages'}", fix=fix)
    pages = {name: patterns_of(own, by=column, where=where, depth=depth) for name, own in logs.items()}
    groups = min(GROUPS, *(patterns.units for patterns in pages.values()))
    parts: list[IpsPart] = []
    for name, patterns in pages.items():
        again = estimated_here(logs[name], curves[name], where=where, groups=groups)
        named = replace(patterns, pairs=with_topics(patterns.pairs, texts))
        replicates, group = (None, None) if again is None else _without_groups(patterns, *again)
        parts.append(IpsPart(named, curves[name], replicates, group))
    return ips_of(parts, given, measures_of(measures), clip=clip, log=log.name, level=level)


class IpsPart(NamedTuple):
    """Pages, how often their ranks are looked at, and the same without each group of users, if that is estimated."""

    patterns: Patterns
    curve: Floats
    replicates: Floats | None = None  # (G, K)
    group: Ints | None = None  # (U,): of each unit of the pages


def _without_groups(patterns: Patterns, replicates: Replicates, source: Patterns) -> tuple[Floats, Ints]:
    """Return propensities without each group of users, and the group of each unit of the pages."""
    place = pc.fill_null(pc.index_in(patterns.keys, value_set=source.keys), -1).to_numpy(zero_copy_only=False)
    other = np.arange(patterns.units) % max(len(replicates.left), 1)  # has no part in the estimation
    return np.exp(replicates.left), np.where(place >= 0, replicates.group[place], other)


def ips_of(
    parts: Sequence[IpsPart],
    runs: Sequence[Run],
    measures: Sequence[Measure],
    *,
    clip: float | None = None,
    log: str = "log",
    level: float = 0.95,
) -> IpsScores:
    """Do what `ips` does, of patterns with the propensities of their ranks."""
    if clip is not None and clip < 1:
        raise InputError(f"clip is {clip:g}", fix="give a weight of 1 or more: that of a rank that is always looked at")
    numbers = {len(part.replicates) for part in parts if part.replicates is not None}
    groups = None if not numbers else min(numbers) if len(numbers) == 1 else 0
    sums = [_sums(part, runs, measures, clip, groups or 0) for part in parts]
    above = np.concatenate([part.above for part in sums], axis=2)  # (R, M, U)
    weight, pages, weights = (
        np.concatenate([getattr(part, name) for part in sums]) for name in ("weight", "pages", "weights")
    )
    if not pages.any():
        raise InputError("no page has a topic of the runs", fix="say how pages find topics: topics=", path=log)
    left, left_weight, left_pages = (
        np.sum([getattr(part, name) for part in sums], axis=0) for name in ("left", "left_weight", "left_pages")
    )

    def estimate(over: Floats, under: Floats, left_over: Floats, left_under: Floats, **kind: bool) -> Estimate:
        known = ratio_estimate(over, under, level, **kind)
        if groups is None:
            return known
        value = left_over / left_under
        influence = (groups - 1) / max(groups, 1) * (value.mean() - value) if groups else value
        made = influenced(known.value, influence, pages.sum() - left_pages, level, **{"signed": not kind} | kind)
        if kind or not made.known or not made.value > 0:
            return made
        # On the logarithmic scale. `ratio_interval` would allow for the skewness of as few users as there are groups.
        times = math.exp((made.high - made.value) / made.value)
        return Estimate(made.value, made.value / times, made.value * times)

    rows: list[Ips] = []
    for m, measure in enumerate(measures):
        single = float(sums[0].single[m])
        for r, run in enumerate(runs):
            value = estimate(above[r, m], pages, left[r, m], left_pages)
            normalized = estimate(above[r, m] / single, weight, left[r, m] / single, left_weight, share=True)
            gap, left_gap = above[r, m] - above[0, m], left[r, m] - left[0, m]
            difference = estimate(gap, pages, left_gap, left_pages, signed=True)
            rows.append(Ips(run.name, str(measure), *_two(value), *_two(normalized), *_two(difference)))
    rows.sort(key=lambda row: [run.name for run in runs].index(row.run))
    clicks, effective = len(weights), float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
    notes: list[Note] = []
    if clicks and effective < _FEW * clicks:
        text = (
            f"{counted(clicks, 'click')} tell as much as {effective:.0f} of equal weight: intervals may be too narrow"
        )
        notes.append(Note("few-effective", text))
    return IpsScores(
        log, level, clip, int(pages.sum()), sum(part.other for part in sums), clicks,
        sum(part.clipped for part in sums), effective, int((pages > 0).sum()), groups is not None,
        tuple(rows), tuple(notes),
    )  # fmt: skip


class _Sums(NamedTuple):
    single: Floats  # (M,): what a click on the first document of a run is worth
    above: Floats  # (R, M, U): what the clicks of each unit are worth
    weight: Floats  # (U,): of its clicks
    pages: Floats  # (U,)
    weights: Floats  # of each click
    clipped: int
    other: int
    left: Floats  # (R, M, G): what all clicks are worth without each group of users, whose propensities differ
    left_weight: Floats  # (G,)
    left_pages: Floats  # (G,)


def _sums(part: IpsPart, runs: Sequence[Run], measures: Sequence[Measure], clip: float | None, groups: int) -> _Sums:
    """Add up what clicks are worth in each run: over units, and over all users but each group."""
    patterns, curve = part.patterns, part.curve
    ranks = patterns.pair.shape[1]
    if ranks > len(curve):
        problem = f"there are propensities of {counted(len(curve), 'rank')}, and clicks at {ranks}"
        raise InputError(problem, fix="look at fewer ranks (depth), or estimate them deeper")
    size = patterns.pairs.num_rows
    columns = {"query_id": patterns.pairs["query"], "doc_id": patterns.pairs["doc_id"]}
    # Every pair is judged with its own number as its grade: hits then tell which pair stands at which rank.
    pairs = Qrels(pa.table({**columns, "relevance": pa.array(np.arange(size), pa.float64())}))
    rank_of, asked = np.zeros((len(runs), size), dtype=np.int64), np.zeros(size, dtype=np.bool_)
    for r, run in enumerate(runs):
        hits = judge(pairs, run)
        rank_of[r, hits.grade.astype(np.int64)] = hits.rank
        present = pa.array(
            [topic for topic, there in zip(hits.query_ids, hits.present, strict=True) if there], pa.string()
        )
        asked |= np.asarray(pc.is_in(columns["query_id"], value_set=present))
    first = patterns.pair.max(axis=1)
    counts = asked[first][patterns.pattern]  # of all results of a page the topic is the same
    clicked = patterns.clicked & (patterns.pair >= 0) & asked[first][:, None]
    page, rank = np.nonzero(clicked[patterns.pattern])
    pair, unit = patterns.pair[patterns.pattern[page], rank], patterns.unit[page]
    deepest = max(int(rank_of.max()), 1)
    worth = np.stack([np.concatenate([[0.0], _worth(measure, deepest)]) for measure in measures])
    gained = worth[:, rank_of[:, pair]].swapaxes(0, 1)  # (R, M, clicks)

    def weights_of(curves: Floats) -> Floats:
        return np.minimum(1 / curves[..., :ranks], np.inf if clip is None else clip)

    def sums_by(place: Ints, number: int, column: Floats) -> Floats:
        rows = column.reshape(math.prod(column.shape[:-1]), column.shape[-1])
        made = np.stack([np.bincount(place, row, number) for row in rows]).astype(np.float64)
        return made.reshape(*column.shape[:-1], number)

    own = weights_of(curve)[rank]
    group = np.arange(patterns.units) % max(groups, 1) if part.group is None else part.group
    curves = np.broadcast_to(curve, (groups, len(curve))) if part.replicates is None else part.replicates[:groups]
    again, place, number = weights_of(curves), group[unit] * ranks + rank, groups * ranks

    def left_out(column: Floats) -> Floats:
        if not groups:
            return np.zeros((*column.shape[:-1], 0))
        cells = sums_by(place, number, column).reshape(*column.shape[:-1], groups, ranks)
        return ((cells.sum(axis=-2, keepdims=True) - cells) * again).sum(axis=-1)

    pages = np.bincount(patterns.unit, counts, patterns.units).astype(np.float64)
    return _Sums(
        worth[:, 1],
        sums_by(unit, patterns.units, gained * own),
        sums_by(unit, patterns.units, own),
        pages,
        own,
        int((1 / curve[rank] > own).sum()),
        int((~counts).sum()),
        left_out(gained),
        left_out(np.ones(len(rank))),
        pages.sum() - np.bincount(group, pages, groups)[:groups],
    )


def _worth(measure: Measure, deepest: int) -> Floats:
    """Give what a document of grade 1 is worth at each rank: the score of a list with that document alone.

    Raises
    ------
    MeasureError
        If that is not all that the measure looks at.
    """
    lists = ([1], []), ([None, 1], []), ([1, 1], []), ([1], [1])
    first, second, both, other = (float(measure(judge_list(grades, missing=rest))[0]) for grades, rest in lists)
    if not measure.properties.additive or first != other or abs(first + second - both) > 1e-12:
        raise MeasureError(f"{measure} is more than a sum over clicked documents. Fix: take DCG@10, P@10 or RBP")
    looked_at = min(deepest, getattr(measure, "cutoff", None) or deepest)
    names = [f"{at:07}" for at in range(looked_at)]
    qrels = Qrels(pa.table({"query_id": names, "doc_id": names, "relevance": np.ones(looked_at)}))
    run = {name: [*(f"x{rank}" for rank in range(at)), name] for at, name in enumerate(names)}
    return np.concatenate([measure(judge(qrels, run)), np.zeros(deepest - looked_at)])


def _two(estimate: Estimate) -> tuple[float, _Limits]:
    return estimate.value, (estimate.low, estimate.high) if estimate.known else None
