"""What is said around the numbers of a log: what the log is, how intervals were made, and how not to read clicks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.online import findings
from judged.online.findings import are_of_nobody
from judged.online.numbers import percent, sentence, shown
from judged.results import counted, listed
from judged.results.notes import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.findings import LogFinding
    from judged.online.metrics import OnlineMetric
    from judged.online.numbers import OnlineEstimate
    from judged.online.scores import OnlineScores

_WORDS = {"pages": "page", "events": "event", "sessions": "session", "users": "user"}
_DONE = {"excluded": "left out", "lost": "not readable", "repaired": "put right", "kept": "odd and kept"}
_MONEY = {"attribution": {"carts", "purchases", "values"}, "money": {"values"}}
"""Choices that only metrics with one of these needs depend on."""
_INTERVAL = {"delta": "by the delta method", "bootstrap": "by bootstrap"}
_LONG = 60  # characters of the name of a log
_NAMED = 8  # metrics that are refused for one reason
_REASONS = 6  # lines of why numbers are missing
_BIAS = (
    "Position bias: users look at the top whatever stands there, so clicks say where a result stood as much as how good"
    " it was. Read metrics of clicks beside CTR by rank."
)
WHAT_FALLS = (
    "What falls with rank is both how good results are and how often users look there: the log alone does not part the"
    " two."
)
"""Said below CTR by rank."""


def bias(metrics: Iterable[OnlineMetric]) -> tuple[Note, ...]:
    """Note how clicks must not be read, wherever a metric depends on rank."""
    return (Note("position-bias", _BIAS),) if any(metric.biased for metric in metrics) else ()


_EQUAL, _MANY = 0.75, 1000.0  # share of the users, and number, from which on effective users are enough


def unequal_users(estimates: Iterable[OnlineEstimate], unit: str) -> tuple[Note, ...]:
    """Warn of intervals of counts whose users are unequally active: they hold only if values do not depend on activity.

    The rates are those of the simulation in docs/calibration.md, "Intervals over users".
    """
    rows = [
        row
        for row in estimates
        if row.metric.unit == "count" and row.low < row.high and row.slice is None
        if row.effective_units < min(_EQUAL * row.units, _MANY)
    ]
    if not rows:
        return ()
    worst = min(rows, key=lambda row: row.effective_units)
    names = listed(list(dict.fromkeys(str(row.metric) for row in rows)))
    text = (
        f"Intervals of {names} are too narrow if more active {unit}s have higher values: {worst.units:,} {unit}s have"
        f" the weight of {worst.effective_units:,.0f} equally active ones. With clicks per page proportional to"
        " activity^0.3 and ^0.6, intervals of 95% over 20 to 200 simulated users covered 80-87% and 55-65%."
    )
    return (Note("unequal-users", text, weight=worst.units / worst.effective_units, of="metrics"),)


def counts(known: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Say how much there is of each, in their order.

    >>> counts([("pages", 1), ("events on pages", 1), ("users", 2000)])
    ('1 page', '1 event on pages', '2,000 users')
    """
    parts = [(*name.partition(" "), count) for name, count in known]
    return tuple(f"{counted(count, _WORDS.get(word, word.removesuffix('s')))}{gap}{rest}"
                 for word, gap, rest, count in parts)  # fmt: skip


def about(scores: OnlineScores) -> tuple[str, ...]:
    """Say what this log is: how much of it counted, what it was read as, and which rows met a rule."""
    known = [(name, count) for name, count in scores.counts if name != "users" or not are_of_nobody(scores.findings)]
    return (f"{shown(scores.log, _LONG)} ({scores.layout}): {', '.join(counts(known))}", *rules(scores.findings))


def rules(findings: Sequence[LogFinding]) -> tuple[str, ...]:
    """Say which rows met a rule, by what was done with them: one sentence each."""
    met = {word: [one for one in findings if one.done == done and one.rows] for done, word in _DONE.items()}
    return tuple(f"{word}: {', '.join(map(_share, found))}" for word, found in met.items() if found)


def _share(found: LogFinding) -> str:
    what = "file" if found.table == "folder" else f"{found.table} row"
    return f"{found.rule} {found.rows:,} of {counted(found.of, what)}"


def made(scores: OnlineScores) -> str:
    """Say over what intervals are made and how, and what was chosen, where that makes a difference here."""
    how = _INTERVAL.get(scores.interval, scores.interval)
    needs = {need for metric in scores.metrics for need in metric.needs}
    chosen = (
        f"{name.replace('_', ' ')}: {shown(value, 2 * _LONG)}"
        for name, value in findings.told(scores.policies, scores.findings)
        if not (name in _MONEY and needs.isdisjoint(_MONEY[name]))
    )
    return "; ".join([f"{percent(scores.level)} intervals over {scores.over}s, {how}", *chosen])


def steepness(ranks: Sequence[OnlineEstimate]) -> str:
    """Say how much less the last of the ranks is clicked than the first.

    What of this is attention and what is quality, the log alone does not tell.
    """
    known = [one for one in ranks if one.rank is not None and one.slice is None and not math.isnan(one.value)]
    if len(known) < 2 or known[0].value <= 0:
        return ""
    first, last = known[0], known[-1]
    if not last.value:
        return f"What stood at rank {first.rank} was clicked, and nothing was at rank {last.rank}."
    more, less = (first, last) if first.value >= last.value else (last, first)
    times = f"{more.value / less.value:.1f} times as often"
    return f"What stood at rank {more.rank} was clicked {times} as what stood at rank {less.rank}."


def missing(scores: OnlineScores) -> tuple[str, ...]:
    """Say why numbers are missing, of the first few, and which metrics this log cannot tell."""
    none = [f"{_named(scores, one)}: {_why_no_value(one)}" for one in scores.estimates if math.isnan(one.value)]
    none += [
        f"{_named(scores, one)}: no interval, "
        + (f"it takes two {scores.over}s and there is {one.units}" if one.units < 2 else "none is known for this value")
        for one in scores.estimates
        if not math.isnan(one.value) and math.isnan(one.low)
    ]
    left = len(none) - _REASONS
    return (*none[:_REASONS], *([f"and {left:,} more"] if left > 0 else []), *refusals(scores))


def _named(scores: OnlineScores, one: OnlineEstimate) -> str:
    return str(one.metric) if one.slice is None else f"{one.metric} on {scores.labels[one.slice]}"


def _why_no_value(one: OnlineEstimate) -> str:
    if one.denominator > 0:
        what = {"survival": "the curve does not come down so far", "quantile": "no value at this quantile"}
        return what.get(one.metric.kind, "no value")
    return "nothing to divide by, its denominator is 0"


def refusals(scores: OnlineScores) -> tuple[str, ...]:
    """Say which metrics this log cannot tell: one sentence a reason."""
    by_reason: dict[str, list[str]] = {}
    for metric, why in scores.refused:
        by_reason.setdefault(why, []).append(str(metric))
    return tuple(f"not shown, since {sentence(why)}: {_first(names)}" for why, names in by_reason.items())


def _first(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:_NAMED])} and {left:,} more"  # one more is no shorter
