"""What logged clicks say of rankings that nobody was shown: each click counts by how rarely its rank is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from judged.answer import CHANGE, NUMBER, TEXT, Answer, Column, Sentences, Table, columns_of, counted
from judged.clicks.cells import patterns_of
from judged.clicks.examination import by_value, read_propensities
from judged.clicks.pairs import column_and_texts, with_topics
from judged.data.compute import pc
from judged.data.qrels import Qrels
from judged.errors import InputError, MeasureError
from judged.evaluation.inputs import measures_of, runs_of
from judged.judging import judge, judge_list
from judged.notes import Note
from judged.online.arguments import need
from judged.online.offline.concordance import ratio_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged._types import Floats
    from judged.answer import Block
    from judged.clicks.cells import Patterns
    from judged.data.run import Run
    from judged.measures.base import Measure
    from judged.online.log import InteractionLog
    from judged.online.offline.concordance import Estimate

_FEW = 0.1  # of the clicks: so few that count as many make an interval of little worth
_Limits = tuple[float, float] | None


class Ips(NamedTuple):
    """What clicks say of a run."""

    run: str
    measure: str
    value: float  # a page: of the measure with clicks that every looked-at rank would give, as grades of 1
    ci: _Limits
    normalised: float  # of what one click is worth at rank 1, the share that the run gives the clicks
    normalised_ci: _Limits
    difference: float  # of values: from the first run
    difference_ci: _Limits


@dataclass(frozen=True, eq=False, repr=False)
class IpsScores(Answer):
    """What `ips` returns."""

    kind: ClassVar[str] = "ips"

    log: str
    level: float
    clip: float | None
    pages: int
    other: int  # pages whose topic no run has
    clicks: int
    clipped: int
    effective: float  # so many clicks of equal weight tell as much (Kish)
    units: int
    rows: tuple[Ips, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return f"{self.log}: what its clicks say of rankings"

    @property
    def sentences(self) -> tuple[str, ...]:
        """On what the numbers rest."""
        cut = "" if self.clip is None else f", {self.clipped} of them with a weight cut to {self.clip:g}"
        what = f"{counted(self.clicks, 'click')} of {counted(self.units, 'user')} on {counted(self.pages, 'page')}{cut}"
        return (f"{what}: as much as {self.effective:.0f} of equal weight.",)

    def blocks(self) -> tuple[Block, ...]:
        """Give every run by every measure."""

        def with_ci(name: str, show: Any, title: str) -> Column:
            ci = [getattr(row, "ci" if name == "value" else f"{name}_ci") for row in self.rows]
            return Column(name, [getattr(row, name) for row in self.rows], show, title, ci)

        table = (
            *columns_of(self.rows, ("run", TEXT), ("measure", TEXT)),
            with_ci("value", NUMBER, "IPS"),
            with_ci("normalised", NUMBER, "self-normalised"),
            with_ci("difference", CHANGE, f"IPS less {self.rows[0].run}"),
        )
        return Sentences(self.sentences), Table("runs", table, labels=2)

    def facts(self) -> dict[str, Any]:
        """Give what was asked, and what it rests on."""
        names = ("log", "level", "clip", "pages", "other", "clicks", "clipped", "effective", "units")
        return {name: getattr(self, name) for name in names}


def ips(
    log: InteractionLog,
    runs: Any,
    propensities: Any,
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
        As `read_propensities` takes them: of the ranks down to `depth`.
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
        If a rank has no propensity, or no page has a topic of the runs.
    MeasureError
        If a measure needs more than the rank of each clicked document.

    Notes
    -----
    A value is the mean over pages of ``sum over clicks of worth(rank in the run) / propensity(logged rank)``: what the
    measure would be with grades of 1 for what attracts the user of that page (Joachims, Swaminathan and Schnabel, WSDM
    2017). What was never shown was never clicked: a run is worth at least so much. Self-normalised, the same sum is
    divided by the weight of all clicks: less variance, and a bias that vanishes with more clicks. Intervals take the
    propensities for known.
    """
    need(log=log, level=level)
    curves, given = read_propensities(propensities), runs_of(runs)
    column, texts = column_and_texts(log, topics)
    logs = {"": log} if stratum is None else by_value(log, stratum)
    if lacking := [name for name in logs if name not in curves]:
        fix = "say of which column they are (stratum)" if "" in lacking else f"estimate them with stratum={stratum!r}"
        raise InputError(f"there are no propensities of {lacking[0] or 'all pages'}", fix=fix)
    parts = [
        (replace(made, pairs=with_topics(made.pairs, texts)), curves[name])
        for name, own in logs.items()
        for made in [patterns_of(own, by=column, where=where, depth=depth)]
    ]
    return ips_of(parts, given, measures_of(measures), clip=clip, log=log.name, level=level)


def ips_of(
    parts: Sequence[tuple[Patterns, Floats]],
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
    sums = [_sums(patterns, curve, runs, measures, clip) for patterns, curve in parts]
    above = np.concatenate([part.above for part in sums], axis=2)  # (R, M, U)
    weight, pages = (np.concatenate([getattr(part, name) for part in sums]) for name in ("weight", "pages"))
    if not pages.any():
        raise InputError("no page has a topic of the runs", fix="say how pages find topics: topics=", path=log)
    weights = np.concatenate([part.weights for part in sums])
    worth = [float(_worth(measure, 1)[0]) for measure in measures]
    rows: list[Ips] = []
    for r, run in enumerate(runs):
        for m, measure in enumerate(measures):
            value = ratio_estimate(above[r, m], pages, level)
            normalised = ratio_estimate(above[r, m] / worth[m], weight, level, share=True)
            difference = ratio_estimate(above[r, m] - above[0, m], pages, level, signed=True)
            rows.append(Ips(run.name, str(measure), *_two(value), *_two(normalised), *_two(difference)))
    clicks, effective = len(weights), float(weights.sum() ** 2 / max((weights**2).sum(), 1e-300))
    notes: list[Note] = []
    if clicks and effective < _FEW * clicks:
        text = (
            f"{counted(clicks, 'click')} tell as much as {effective:.0f} of equal weight: intervals may be too narrow"
        )
        notes.append(Note("few-effective", text))
    return IpsScores(
        log, level, clip, int(pages.sum()), sum(part.other for part in sums), clicks,
        sum(part.clipped for part in sums), effective, int((pages > 0).sum()), tuple(rows), tuple(notes),
    )  # fmt: skip


class _Sums(NamedTuple):
    above: Floats  # (R, M, U): what the clicks of each unit are worth
    weight: Floats  # (U,): of its clicks
    pages: Floats  # (U,)
    weights: Floats  # of each click
    clipped: int
    other: int


def _sums(
    patterns: Patterns, curve: Floats, runs: Sequence[Run], measures: Sequence[Measure], clip: float | None
) -> _Sums:
    """Add up over units what clicks are worth in each run."""
    if patterns.pair.shape[1] > len(curve):
        problem = f"there are propensities of {counted(len(curve), 'rank')}, and clicks at {patterns.pair.shape[1]}"
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
    inverse = 1 / curve[: patterns.pair.shape[1]]
    weight = np.minimum(inverse, np.inf if clip is None else clip)
    pattern, rank = np.nonzero(patterns.clicked & (patterns.pair >= 0) & asked[first][:, None])
    pair, times = patterns.pair[pattern, rank], np.bincount(patterns.pattern, minlength=len(patterns.pair))[pattern]

    def by_unit(of_clicks: Floats) -> Floats:
        of_pages = np.bincount(pattern, of_clicks, len(patterns.pair))[patterns.pattern]
        return np.bincount(patterns.unit, of_pages, patterns.units).astype(np.float64)

    worth = [np.concatenate([[0.0], _worth(m, max(int(rank_of.max()), 1))]) for m in measures]
    own = weight[rank]
    above = [[by_unit(own * worth[m][rank_of[r, pair]]) for m in range(len(measures))] for r in range(len(runs))]
    return _Sums(
        np.array(above).reshape(len(runs), len(measures), patterns.units),
        by_unit(own),
        np.bincount(patterns.unit, counts, patterns.units).astype(np.float64),
        np.repeat(own, times),
        int(times[inverse[rank] > weight[rank]].sum()),
        int((~counts).sum()),
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
