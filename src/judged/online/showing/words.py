"""What is said around the numbers of a log: what the log is, how intervals were made, and how not to read clicks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from judged.online.showing.layout import MARK, percent, refused
from judged.online.showing.numbers import NOTHING, counted, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.estimates import OnlineEstimate, ScoresTable
    from judged.online.findings import LogFinding

_WORDS = {"pages": "page", "events": "event", "sessions": "session", "users": "user"}
_DONE = {"excluded": "left out", "lost": "not readable", "repaired": "put right", "kept": "odd and kept"}
_INTERVAL = {"delta": "by the delta method", "bootstrap": "by bootstrap"}
_LONG = 60  # characters of the name of a log
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


def counts(scores: ScoresTable) -> tuple[str, ...]:
    """Say how much of the log counted, in the order of the log."""
    return tuple(counted(count, _WORDS.get(name, name.removesuffix("s"))) for name, count in scores.counts)


def about(scores: ScoresTable) -> str:
    """Say in one line what this log is: how much of it counted, and what it was read as."""
    return f"{shown(scores.log, _LONG)} ({scores.layout}): {', '.join(counts(scores))}"


def rules(scores: ScoresTable) -> tuple[str, ...]:
    """Say which rows met a rule, by what was done with them: one sentence each."""
    made: list[str] = []
    for done, word in _DONE.items():
        found = [one for one in scores.findings if one.done == done and one.rows]
        if found:
            made.append(f"{word}: {', '.join(_share(one) for one in found)}")
    return tuple(made)


def _share(one: LogFinding) -> str:
    return f"{one.rule} {one.rows:,} of {counted(one.of, f'{one.table} row')}"


def intervals(scores: ScoresTable) -> str:
    """Say over what intervals are made, and how."""
    how = _INTERVAL.get(scores.interval, scores.interval)
    return f"{percent(scores.level)} intervals over {scores.unit}s, {how}"


def policies(scores: ScoresTable) -> tuple[str, ...]:
    """Say what was chosen, of the log and of the call: one text a choice."""
    return tuple(f"{name.replace('_', ' ')}: {shown(value, 2 * _LONG)}" for name, value in scores.policies)


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
    made = [f"{NOTHING} {_named(one)}: {_why_no_value(one)}" for one in several]
    made += [f"{NOTHING} {_named(one)}: no interval, {_why_no_interval(one, scores.unit)}" for one in alone]
    return tuple(made)


def _named(one: OnlineEstimate) -> str:
    return str(one.metric) if one.slice is None else f"{one.metric} on {shown(one.slice)}"


def _why_no_value(one: OnlineEstimate) -> str:
    if one.denominator > 0:
        what = {"survival": "the curve does not come down so far", "quantile": "no value at this quantile"}
        return what.get(one.metric.kind, "no value")
    return "nothing to divide by, its denominator is 0"


def _why_no_interval(one: OnlineEstimate, unit: str) -> str:
    return f"it takes two {unit}s and there is {one.units}" if one.units < 2 else "none is known for this value"


def refusals(scores: ScoresTable) -> tuple[str, ...]:
    """Say which metrics this log cannot tell: one sentence a reason."""
    return tuple(f"not shown, since {why}: {', '.join(names)}" for why, names in refused(scores))
