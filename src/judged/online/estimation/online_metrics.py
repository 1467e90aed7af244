"""Metrics of a log, with intervals over users: the path from typed tables to numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from judged.errors import InputError
from judged.online.arguments import need_log, need_numbers, need_several, need_texts
from judged.online.engine import Relation, identifier
from judged.online.estimates import OnlineEstimate
from judged.online.estimation.moments import ratios
from judged.online.estimation.quantiles import quantiles
from judged.online.estimation.sums import (
    UnitSums,
    counted_sessions,
    is_of_sessions,
    over_slices,
    page_sums,
    session_sums,
)
from judged.online.estimation.withheld import not_measured, not_there, taken_as_users, tellable
from judged.online.facts.clicks import click_facts
from judged.online.facts.columns import need_the_next_query
from judged.online.facts.next_query import begin_next_queries
from judged.online.facts.pages import PageFacts, page_facts
from judged.online.facts.sessions import of_pages
from judged.online.facts.settings import FactSettings
from judged.online.findings import doubts
from judged.online.metrics.metric import OnlineMetric
from judged.online.metrics.registry import online_metric, online_metrics_named, understood, usual_metrics
from judged.online.scores import OnlineScores
from judged.online.slicing import SlicedPages, pages_where, slice_pages
from judged.online.trouble import unfit
from judged.online.words import bias

if TYPE_CHECKING:
    from judged.online.log import InteractionLog

Unit: TypeAlias = Literal["user", "session"]
Progress: TypeAlias = Callable[[str, float | None], None]
RANKS = tuple(range(1, 11))
"""The ranks of CTR by rank."""


_RANKED = tuple(online_metric(f"CTRAtRank(r={rank})") for rank in RANKS)
_SIZES = ""  # pages by slice: the name of no metric


@dataclass(frozen=True)
class _Interval:
    """What intervals are made over, how wide, and by how many draws of which seed, if by draws."""

    unit: Unit
    level: float
    resampling: tuple[int, int] | None


@dataclass(frozen=True)
class _Facts:
    """What facts are made of: the log, what belongs together, the next queries as they are told apart, and slices.

    Texts are told apart beside all that the database does until it asks for them.
    """

    log: InteractionLog
    settings: FactSettings
    followed: Callable[[], Relation] | None
    slices: SlicedPages | None
    chosen: Relation | None

    @property
    def cut(self) -> Relation | None:
        """The slice of each page, where there are slices."""
        return self.slices.table if self.slices is not None else None


@dataclass(frozen=True)
class _Asked:
    """What a call asks for, and the tables that it is made of."""

    metrics: tuple[OnlineMetric, ...]
    clicks: Relation
    pages: PageFacts
    most: int
    counts: tuple[tuple[str, int], ...]
    thresholds: tuple[float, ...]
    sliced: bool
    interval: _Interval

    def of(self, *kinds: str, sessions: bool = False) -> list[OnlineMetric]:
        return [one for one in self.metrics if one.kind in kinds and is_of_sessions(one) == sessions]


def online_metrics(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric | None = None,
    *,
    by: str | None = None,
    objects: Any = None,
    where: str | None = None,
    unit: Unit = "user",
    level: float = 0.95,
    interval: Literal["delta", "bootstrap"] = "delta",
    resamples: int = 2000,
    seed: int = 0,
    settings: FactSettings | None = None,
    progress: Progress | None = None,
) -> OnlineScores:
    """Compute metrics of user behaviour, with intervals that respect users.

    Parameters
    ----------
    log
        The log.
    metrics
        Names such as ``PageCTR`` or ``SatisfiedClicks(t=20)``, or what they are called elsewhere (``CTR``; the policies
        of the result say which metric was meant); None: every metric that the log can tell.
    by
        What to slice by: see `slice_pages`.
    objects
        When results were made, to slice by ``freshness``: see `slice_pages`.
    where
        A condition on what is logged of pages, such as ``device == 'mobile' and page == 1``: only pages that meet it
        count, and sessions and users by these. How long a visit lasts, and what is asked next, is that of the whole
        log.
    unit
        What intervals are made over. Clicks of one user resemble one another; a plain binomial interval of clicks
        is too short, and is not offered.
    level
        Of the intervals, above 0 and below 1.
    interval
        ``delta``: the delta method over sums by unit (Deng, Knoblich and Lu, KDD 2018). ``bootstrap``: units are drawn
        anew, `resamples` times; where so few have any event that the draws bound nothing, the interval of the delta
        method stays. Quantiles and survival have their own either way.
    resamples, seed
        Of the bootstrap.
    settings
        What counts as belonging together.
    progress
        Called with what is being done and the share that is done.

    Returns
    -------
    OnlineScores
        Estimates by metric and slice, CTR by rank beside them, and what was refused.

    Raises
    ------
    MeasureError
        If there is no metric of that name.
    InputError
        If an option makes no sense, or there is no such slice.
    """
    names = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    need_log(log)
    need_several(metrics=names)
    need_texts(by=by, where=where, unit=unit, interval=interval)
    need_numbers(level=level)
    need_numbers(whole=True, resamples=resamples, seed=seed)
    _check(unit, level, interval, resamples, settings)
    settings = settings or FactSettings()
    resampling = (resamples, seed) if interval == "bootstrap" else None
    names = None if names is None else list(names)
    wanted = usual_metrics() if names is None else online_metrics_named(names)
    told, refused = tellable(wanted, log, unit)
    with log.engine.scratch():
        soon_ms = round(settings.reformulation_gap * 1000)
        followed = begin_next_queries(log.serp, within_ms=soon_ms) if hang_on_the_next_query(told) else None
        slices = None if by is None else slice_pages(log, by, objects=objects)
        chosen, said = (None, "") if where is None else pages_where(log, where)
        facts = _Facts(log, settings, followed, slices, chosen)
        asked = _prepared(facts, told, _Interval(unit, level, resampling), progress or _silent)
        found = _estimates(asked, facts)
    withheld = not_measured(told, found) | (not_there(told, found) if names is None else {})
    told, refused = tuple(one for one in told if one not in withheld), (*refused, *withheld.items())
    order = [None, *(slices.values if slices is not None else ())]
    sizes = {one.slice: int(one.denominator) for one in found[_SIZES]}
    return OnlineScores(
        log=log.name,
        layout=log.layout,
        estimates=tuple(one for metric in told for one in _ordered(found.get(str(metric), []), order)),
        by=by,
        slices=tuple((value, sizes[value]) for value in order if value is not None and value in sizes),
        unit=unit,
        level=level,
        interval=interval,
        counts=asked.counts,
        ranks=_by_rank(found, order),
        refused=refused,
        policies=(
            *understood(names or ()),
            *([("where", said)] if said else ()),
            *log.policies,
            *settings.policies(),
            *taken_as_users(log),
            *_drawn(resampling),
            *_notes(slices),
        ),
        findings=log.findings,
        notes=(*unfit(log.name, doubts(log.accounts, log.findings)), *bias(told)),
    )


def _prepared(facts: _Facts, told: Sequence[OnlineMetric], interval: _Interval, progress: Progress) -> _Asked:
    """Make the facts that the metrics are added up of."""
    log = facts.log
    by_rank = _RANKED if {"shown", "clicks", "ranks"} <= log.has else ()
    metrics = tuple({str(one): one for one in (*told, *by_rank)}.values())
    progress("clicks", 0.05)
    clicks = click_facts(log)
    progress("pages", 0.2)
    successes, columns = successes_of(metrics), facts_of_pages(metrics)
    only: Any = {"slices": facts.cut, "chosen": facts.chosen}
    pages = page_facts(log, clicks, columns, facts.settings, successes=successes, followed=facts.followed, **only)
    most, counts = most_pages(log, interval.unit), _counts(log, facts.chosen)
    progress("users", 0.6)
    return _Asked(metrics, clicks, pages, most, counts, successes, facts.slices is not None, interval)


def hang_on_the_next_query(metrics: Sequence[OnlineMetric]) -> bool:
    """Tell whether some of the metrics ask what was asked next."""
    return need_the_next_query(facts_of_pages(metrics))


def successes_of(metrics: Sequence[OnlineMetric]) -> tuple[float, ...]:
    """Give the seconds of dwell that make a success for metrics of sessions."""
    given = {float(one.parameters["t"] or 0) for one in metrics if is_of_sessions(one) and "t" in one.parameters}
    return tuple(sorted(given))


def facts_of_pages(metrics: Sequence[OnlineMetric]) -> list[str]:
    """Name the facts of pages that metrics are made of."""
    ratios_of = {True: set[str](), False: {"page"}}
    for one in metrics:
        if one.kind in {"ratio", "total", "quantile"}:
            ratios_of[is_of_sessions(one)].update(one.columns())
    return sorted({*ratios_of[False], *of_pages(ratios_of[True])})


def _silent(_text: str, _share: float | None) -> None:
    pass


def _check(unit: str, level: float, interval: str, resamples: int, settings: object) -> None:
    if unit not in {"user", "session"}:
        raise InputError(f"there is no unit {unit!r}", fix="take user or session")
    if not 0 < level < 1:
        raise InputError(f"the level is {level!r}", fix="give a share between 0 and 1, such as 0.95")
    if interval not in {"delta", "bootstrap"}:
        raise InputError(f"there is no interval {interval!r}", fix="take delta or bootstrap")
    if resamples < 100:
        raise InputError(f"{resamples} resamples tell nothing of an interval", fix="draw 100 or more")
    if not isinstance(settings, FactSettings | None):
        raise InputError(f"settings is {settings!r:.60}", fix="give FactSettings(...)")


def _estimates(asked: _Asked, facts: _Facts) -> dict[str, list[OnlineEstimate]]:
    """Estimate everything, by the name of the metric; pages by slice stand under `_SIZES`."""
    page_metrics = asked.of("ratio")
    columns = sorted({name for one in page_metrics for name in one.columns()} | {"page"})
    unit, level = asked.interval.unit, asked.interval.level
    sums = page_sums(asked.pages, columns, unit, sliced=asked.sliced, most=asked.most)
    whole = over_slices(sums, unit) if asked.sliced else sums
    found = [*_ratios(whole, page_metrics, asked), *(_ratios(sums, page_metrics, asked) if asked.sliced else ())]
    found += _of_sessions(asked)
    of_quantiles = asked.of("quantile")
    timed = asked.pages.select({name for one in of_quantiles for name in one.columns()})
    found += quantiles(timed, of_quantiles, unit, level, sliced=asked.sliced)
    found += _lifetimes(asked, facts)
    grouped: dict[str, list[OnlineEstimate]] = {_SIZES: _sizes(sums, asked)}
    for one in found:
        grouped.setdefault(str(one.metric), []).append(one)
    return grouped


def _of_sessions(asked: _Asked) -> list[OnlineEstimate]:
    """Estimate ratios of facts of sessions, over all of them, and by slice."""
    metrics, unit = asked.of("ratio", "total", sessions=True), asked.interval.unit
    if not metrics:
        return []
    pages = asked.pages.select(of_pages({name for one in metrics for name in one.columns()}))
    sums = session_sums(pages, metrics, asked.thresholds, unit, sliced=asked.sliced)
    if not asked.sliced:
        return _ratios(sums, metrics, asked)
    if dict(asked.counts)["sessions"] == counted_sessions(sums):  # none has pages in two slices
        whole = over_slices(sums, unit)
    else:
        whole = session_sums(pages, metrics, asked.thresholds, unit, sliced=False)
    return [*_ratios(whole, metrics, asked), *_ratios(sums, metrics, asked)]


def _ratios(sums: UnitSums, metrics: Sequence[OnlineMetric], asked: _Asked) -> list[OnlineEstimate]:
    """Estimate ratios and totals by the delta method, or draw units anew."""
    found = ratios(sums, metrics, asked.interval.level)
    if asked.interval.resampling is not None:
        from judged.online.estimation.resampled import with_bootstrap

        resamples, seed = asked.interval.resampling
        found = with_bootstrap(found, sums, asked.interval.level, resamples=resamples, seed=seed)
    return [_total(one) if one.metric.kind == "total" else one for one in found]


def _total(one: OnlineEstimate) -> OnlineEstimate:
    """Make the sum of what is a ratio to the units: as many of them taken for granted."""
    n = one.denominator
    return replace(one, value=one.numerator, low=one.low * n, high=one.high * n, error=one.error * n)


def _lifetimes(asked: _Asked, facts: _Facts) -> list[OnlineEstimate]:
    """Read metrics off the Kaplan-Meier curves of visits, and of how long users stay away."""
    of_visits = asked.of("survival", "survival mean", "survival quantile")
    of_users = asked.of("survival", sessions=True)
    if not of_visits and not of_users:
        return []
    from judged.online.estimation.lifetimes import absences, read_off, visits

    level, only = asked.interval.level, (facts.cut, facts.chosen)
    found = list[OnlineEstimate]()
    if of_visits:
        found += read_off(
            visits(asked.clicks, *only), of_visits, unit=asked.interval.unit, level=level, sliced=asked.sliced
        )
    if of_users:
        found += read_off(absences(facts.log, *only), of_users, unit="user", level=level, sliced=asked.sliced)
    return found


def _sizes(sums: UnitSums, asked: _Asked) -> list[OnlineEstimate]:
    """Count pages by slice."""
    pages = replace(online_metric("Abandonment"), numerator="page", denominator="page")
    return ratios(sums, [pages], asked.interval.level) if asked.sliced else []


def most_pages(log: InteractionLog, unit: str) -> int:
    """Count the pages of the unit that has most."""
    counts = f"SELECT count(*) AS pages FROM {log.serp} GROUP BY {identifier(unit)}"
    return int(log.engine.rows(f"SELECT max(pages) AS most FROM ({counts})")[0]["most"] or 0)


def _ordered(estimates: Sequence[OnlineEstimate], order: Sequence[str | None]) -> list[OnlineEstimate]:
    places = {value: at for at, value in enumerate(order)}
    return sorted(estimates, key=lambda one: places.get(one.slice, len(places)))


def _by_rank(found: Mapping[str, Sequence[OnlineEstimate]], order: Sequence[str | None]) -> tuple[OnlineEstimate, ...]:
    """Give CTR by rank as far down as results were shown."""
    return tuple(
        replace(one, rank=int(metric.parameters["r"] or 0))
        for metric in _RANKED
        for one in _ordered(found.get(str(metric), []), order)
        if one.denominator > 0
    )


def _counts(log: InteractionLog, chosen: Relation | None) -> tuple[tuple[str, int], ...]:
    among = "" if chosen is None else f"WHERE serp IN (SELECT serp FROM {chosen})"
    found = log.engine.rows(f"""
        SELECT count(*) AS pages, (SELECT count(*) FROM {log.event} {among}) AS events,
            count(DISTINCT session) AS sessions, count(DISTINCT "user") AS users
        FROM {log.serp} {among}""")[0]
    return tuple(found.items())


def _drawn(resampling: tuple[int, int] | None) -> tuple[tuple[str, str], ...]:
    return () if resampling is None else (("bootstrap", f"{resampling[0]:,} resamples, seed {resampling[1]}"),)


def _notes(slices: Any) -> tuple[tuple[str, str], ...]:
    return (("slices", slices.note),) if slices is not None and slices.note else ()
