"""Metrics of a log over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from judged.errors import InputError
from judged.online.arguments import need
from judged.online.curves.series import OverTime
from judged.online.estimation.online_metrics import online_metrics
from judged.online.estimation.over_time import Series, series_of
from judged.online.metrics import OnlineMetric
from judged.online.slicing import bucket_starts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.online.log import InteractionLog


def over_time(
    log: InteractionLog,
    metrics: Iterable[str | OnlineMetric] | str | OnlineMetric,
    *,
    every: Literal["hour", "day", "week"] = "day",
    warm_up: int | None = None,
    alpha: float = 0.01,
    seed: int = 0,
    **options: Any,
) -> OverTime:
    """Follow metrics over time: what is usual for each, what is not, and where its level changed.

    Parameters
    ----------
    log
        The log.
    metrics
        One or several, or their names.
    every
        Length of a period, in UTC; weeks begin on Mondays.
    warm_up
        So many complete periods at the beginning say what is usual; None: those before the first change of level, or
        all where there is none or it comes too soon.
    alpha
        The chance of finding a change of level in a series that has none.
    seed
        Of the random orders that changes are tested with.
    **options
        Of `online_metrics`: ``where``, ``unit``, ``level``, ``settings``, ``progress``.

    Returns
    -------
    OverTime

    Raises
    ------
    InputError
        If the log has no clock, or cannot tell any of the metrics, or an option makes no sense.
    MeasureError
        If there is no such metric.
    """
    given = [metrics] if isinstance(metrics, (str, OnlineMetric)) else metrics
    need(log=log, metrics=given, every=every, warm_up=warm_up, alpha=alpha, seed=seed)
    if wrong := {"by", "objects"} & set(options):
        raise InputError(f"{min(wrong)} makes no series", fix="follow metrics over all pages")
    if not log.has_time:
        raise InputError("the log has no clock", fix="take a log with times", path=", ".join(log.files))
    if not log.dated:
        problem = "the log has times of a day and no dates: nothing can be followed over days"
        raise InputError(problem, fix="take a log with dates", path=", ".join(log.files))
    if not (names := list(given or ())):
        raise InputError("no metric is named", fix="give a name, such as PageCTR")
    scores = online_metrics(log, names, by=every, **options)
    if not scores.estimates:
        metric, why = scores.refused[0]
        raise InputError(f"{metric}: {why}", fix="see what the log can tell: judged logs check")
    span = log.engine.rows(f"SELECT min(time_ms) AS first, max(time_ms) AS last FROM {log.serp}")[0]
    series: list[Series] = []
    for metric in scores.metrics:
        periods = [one for one in scores.estimates if one.metric == metric and one.slice is not None]
        starts = bucket_starts([one.slice or "" for one in periods])
        how: Any = {"every": every, "warm_up": warm_up, "alpha": alpha, "seed": seed}
        series.append(series_of(list(zip(starts, periods, strict=True)), covered=(span["first"], span["last"]), **how))
    return OverTime(scores.unsliced(), tuple(series), scores.notes)
