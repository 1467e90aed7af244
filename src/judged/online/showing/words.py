"""What is said around the numbers of a log: what the log is, how intervals were made, and how not to read clicks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.online.findings import are_of_nobody
from judged.online.showing import trouble
from judged.online.showing.layout import MARK, percent, refused
from judged.online.showing.numbers import NOTHING, counted, sentence, shown, slice_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.findings import LogFinding

_WORDS = {"pages": "page", "events": "event", "sessions": "session", "users": "user"}
_DONE = {"excluded": "left out", "lost": "not readable", "repaired": "put right", "kept": "odd and kept"}
_MONEY = {"attribution": {"carts", "purchases", "values"}, "money": {"values"}}
"""Choices that only metrics with one of these needs depend on."""
_INTERVAL = {"delta": "by the delta method", "bootstrap": "by bootstrap"}
_LONG = 60  # characters of the name of a log
_NAMED = 8  # metrics that are refused for one reason
BIAS = (
    "Position bias: users look at the top whatever stands there, so clicks say where a result stood as much as how good"
    " it was. Read the metrics marked * beside CTR by rank; between rankings they compare attention as well as quality."
)
"""Said wherever a metric of clicks is shown."""
WHAT_FALLS = (
    "What falls with rank is both how good results are and how often users look there: the log alone does not part the"
    " two."
)
"""Said below CTR by rank."""


def counts(known: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Say how much there is of each, in their order.

    >>> counts([("pages", 1), ("events on pages", 1), ("users", 2000)])
    ('1 page', '1 event on pages', '2,000 users')
    """
    return tuple(_counted(name, count) for name, count in known)


def _counted(name: str, count: int) -> str:
    word, *rest = name.split(" ", 1)
    return " ".join([counted(count, _WORDS.get(word, word.removesuffix("s"))), *rest])


def about(scores: ScoresTable) -> str:
    """Say in one line what this log is: how much of it counted, and what it was read as."""
    known = [(name, count) for name, count in scores.counts if name != "users" or not are_of_nobody(scores.findings)]
    return f"{shown(scores.log, _LONG)} ({scores.layout}): {', '.join(counts(known))}"


def rules(scores: ScoresTable) -> tuple[str, ...]:
    """Say which rows met a rule, by what was done with them: one sentence each."""
    made: list[str] = []
    for done, word in _DONE.items():
        found = [one for one in scores.findings if one.done == done and one.rows]
        if found:
            made.append(f"{word}: {', '.join(_share(one) for one in found)}")
    return tuple(made)


def _share(one: LogFinding) -> str:
    what = "file" if one.table == "folder" else f"{one.table} row"
    return f"{one.rule} {one.rows:,} of {counted(one.of, what)}"


def intervals(scores: ScoresTable) -> str:
    """Say over what intervals are made, and how."""
    how = _INTERVAL.get(scores.interval, scores.interval)
    return f"{percent(scores.level)} intervals over {scores.over}s, {how}"


def policies(scores: ScoresTable) -> tuple[str, ...]:
    """Say what was chosen, of the log and of the call: one text a choice that makes a difference here."""
    needs = {need for metric in scores.metrics for need in metric.needs}
    return tuple(
        f"{name.replace('_', ' ')}: {shown(value, 2 * _LONG)}"
        for name, value in trouble.told(scores.policies, scores.findings)
        if not (name in _MONEY and needs.isdisjoint(_MONEY[name]))
    )


def is_biased(scores: ScoresTable) -> bool:
    """Whether a metric that depends on rank is shown."""
    return any(metric.biased for metric in scores.metrics)


def bias(scores: ScoresTable) -> str:
    """Say how clicks depend on rank in this log; nothing where no such metric is shown."""
    return f"{MARK} {BIAS}" if is_biased(scores) else ""


def steepness(ranks: Sequence[OnlineEstimate]) -> str:
    """Say how much less the last of the ranks is clicked than the first.

    What of this is attention and what is quality, the log alone does not tell.
    """
    known = [one for one in ranks if one.rank is not None and one.slice is None and not math.isnan(one.value)]
    if len(known) < 2 or known[0].value <= 0:
        return ""
    first, last = known[0], known[-1]
    times = first.value / last.value if last.value > 0 else math.inf
    if math.isinf(times):
        return f"What stood at rank {first.rank} was clicked, and nothing was at rank {last.rank}."
    if times >= 1:
        return (
            f"What stood at rank {first.rank} was clicked {times:.1f} times as often as what stood at rank {last.rank}."
        )
    return (
        f"What stood at rank {last.rank} was clicked {1 / times:.1f} times as often as what stood at rank {first.rank}."
    )


def reasons(scores: ScoresTable) -> tuple[str, ...]:
    """Say why numbers are missing: an en dash in a table is never left alone."""
    several = [one for one in scores.estimates if math.isnan(one.value)]
    alone = [one for one in scores.estimates if not math.isnan(one.value) and math.isnan(one.low)]
    made = [f"{NOTHING} {_named(scores, one)}: {_why_no_value(one)}" for one in several]
    made += [f"{NOTHING} {_named(scores, one)}: no interval, {_why_no_interval(one, scores.unit)}" for one in alone]
    return tuple(made)


def _named(scores: ScoresTable, one: OnlineEstimate) -> str:
    return str(one.metric) if one.slice is None else f"{one.metric} on {slice_of(scores, one.slice)}"


def _why_no_value(one: OnlineEstimate) -> str:
    if one.denominator > 0:
        what = {"survival": "the curve does not come down so far", "quantile": "no value at this quantile"}
        return what.get(one.metric.kind, "no value")
    return "nothing to divide by, its denominator is 0"


def _why_no_interval(one: OnlineEstimate, unit: str) -> str:
    return f"it takes two {unit}s and there is {one.units}" if one.units < 2 else "none is known for this value"


def refusals(scores: ScoresTable) -> tuple[str, ...]:
    """Say which metrics this log cannot tell: one sentence a reason."""
    return tuple(f"not shown, since {sentence(why)}: {named(names)}" for why, names in refused(scores))


def named(names: Sequence[str], most: int = _NAMED) -> str:
    """Write names, the first few of many.

    >>> named(["a", "b"]), named(["a", "b", "c"], 2), named(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b, c', 'a, b and 2 more')
    """
    left = len(names) - most
    return ", ".join(names) if left < 2 else f"{', '.join(names[:most])} and {left:,} more"  # one more is no shorter


def first(texts: Sequence[str], most: int) -> list[str]:
    """Give the first few of many texts, and say how many more there are.

    >>> first(["a", "b", "c"], 2)
    ['a', 'b', 'and 1 more']
    """
    return [*texts[:most], *([f"and {len(texts) - most:,} more"] if len(texts) > most else [])]
