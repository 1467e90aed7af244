"""Gain against cost as text: a table, sentences, CSV and a document."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judged.decimals import decimal
from judged.evaluation.document import number
from judged.stats.pairing import plain
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.diagnosis.tradeoff.rows import TradeoffRow, TradeoffTable

_NAMED = 6  # runs: the others are in the table
_WIDTH = 100  # of sentences, where no width is given


def table(found: TradeoffTable) -> Table:
    """Lay out one row a run: measure, gain, and of each cost its amount with its change, and the gain for one unit."""
    header = ["run", found.measure, "gain"]
    for name in found.costs:
        header += [name, f"per {name}"]
    return Table((*header, "front"), tuple(_row(found, one) for one in found.rows))


def _row(found: TradeoffTable, one: TradeoffRow) -> tuple[str, ...]:
    cells: list[str] = [one.run, _interval(decimal(one.value), one.interval)]
    cells.append("-" if one.gain is None else _interval(decimal(one.gain, 4, "+"), one.gain_interval, sign="+"))
    for name in found.costs:
        change, ratio = one.cost_change[name], one.per_unit[name]
        cells.append(Cell(_amount(one.costs[name]), rest="" if change is None else f"({_amount(change, '+')})"))
        cells.append("-" if ratio is None else _amount(math.copysign(ratio, one.gain or 0.0), "+", 3))
    return (*cells, _front(one))


def _interval(shown: str, limits: tuple[float, float] | None, sign: str = "") -> str:
    rest = "" if limits is None else f"[{decimal(limits[0], 3, sign)}, {decimal(limits[1], 3, sign)}]"
    return Cell(shown, rest=rest)


def _amount(value: float | None, sign: str = "", digits: int = 6) -> str:
    return "-" if value is None else f"{value:{sign}.{digits}g}"


def _front(one: TradeoffRow) -> str:
    if one.front is None:
        return "-"
    return ("yes" if one.front else "no") + ("" if one.sure else ", not sure")


def text(found: TradeoffTable, width: int | None) -> str:
    """Write the table, and sentences below it."""
    said = [*_left_out(found, width), *sentences(found)]
    wrapped = "\n".join(
        textwrap.fill(one, min(width or _WIDTH, _WIDTH), break_long_words=False, break_on_hyphens=False) for one in said
    )
    return f"{_fitting(found, width)[0]}\n\n{wrapped}"


def _fitting(found: TradeoffTable, width: int | None) -> tuple[str, str]:
    """Draw the table, in one piece if it can be: without some intervals, and say which, where there is no room."""
    ways = (((), ""), ((1,), f"the intervals of {found.measure}"), ((1, 2), "the intervals"))
    drawn = [(_without(table(found), columns).text(width=width), left_out) for columns, left_out in ways]
    return next((one for one in drawn if "\n\n" not in one[0]), drawn[-1])


def _without(whole: Table, columns: tuple[int, ...]) -> Table:
    """Leave the intervals out of some columns."""
    rows = tuple(
        tuple(cell.number if at in columns and isinstance(cell, Cell) else cell for at, cell in enumerate(row))
        for row in whole.rows
    )
    return replace(whole, rows=rows)


def _left_out(found: TradeoffTable, width: int | None) -> list[str]:
    left_out = _fitting(found, width)[1]
    return [f"There is no room for {left_out}: the other forms have them."] if left_out else []


def sentences(found: TradeoffTable) -> tuple[str, ...]:
    """Say which runs are worth their cost, how sure that is, and what may not be concluded."""
    said = [_front_sentence(found)]
    said += [_doubt(one, found) for one in found.rows if one.front and not one.sure]
    said += _dominated(found)
    said += _missing(found)
    said += [_paid(one, found) for one in found.rows if one.front and one.run != found.baseline]
    said.append(
        f"Gains are mean differences over topics with their {found.level:.0%} intervals, each for itself; costs are"
        " taken as they were given, without an interval. To stand on the front is not to be worth the cost: how much a"
        " gain may cost is for whoever pays to say."
    )
    return tuple(said)


def _front_sentence(found: TradeoffTable) -> str:
    less = [name for name in found.costs if name not in found.more_is_better]
    ways = [f"{found.measure} ({'more' if found.higher_is_better else 'less'} is better)"]
    ways += [f"{name} (less is better)" for name in less]
    ways += [f"{name} (more is better)" for name in found.more_is_better]
    names = ", ".join(found.front)
    return f"On the front, by {_listed(ways)}: {names}. No other run is at least as good on all and better on one."


def _listed(parts: list[str] | tuple[str, ...]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _doubt(one: TradeoffRow, found: TradeoffTable) -> str:
    some = _listed([*one.rivals[:_NAMED], *_more(len(one.rivals))])
    costs = "costs" if len(one.rivals) == 1 else "cost"
    return (
        f"{one.run} is there by its mean alone: {some} {costs} no more, and the interval of the difference in"
        f" {found.measure} leaves open which is better."
    )


def _dominated(found: TradeoffTable) -> list[str]:
    """Name the dominated runs, each with the best of those that dominate it: first where that is sure."""
    said: list[str] = []
    for sure, why in ((True, "the interval of the difference leaves no doubt"), (False, "that interval includes 0")):
        some = [one for one in found.rows if one.front is False and one.sure == sure]
        if some:
            named = [f"{one.run} (by {one.rivals[0]})" for one in some[:_NAMED]]
            way = "Dominated" if sure else "Dominated by the means, which is not sure"
            said.append(f"{way}, no better in {found.measure} and no cheaper: {_listed([*named, *_more(len(some))])};"
                        f" {why}.")  # fmt: skip
    return said


def _more(count: int) -> list[str]:
    return [f"{count - _NAMED} more"] if count > _NAMED else []


def _missing(found: TradeoffTable) -> list[str]:
    """Name the runs that are not placed, together where they lack the same."""
    lacking: dict[str, list[str]] = {}
    for one in found.rows:
        if one.front is None:
            unknown = [name for name in found.costs if one.costs[name] is None]
            lacking.setdefault(_listed(unknown) if unknown else found.measure, []).append(one.run)
    return [f"Not placed, as {what} is not known: {', '.join(runs)}." for what, runs in lacking.items()]


def _paid(one: TradeoffRow, found: TradeoffTable) -> str:
    """Say what a run on the front gains over the baseline, and for how much."""
    gain = one.gain or 0.0
    limits = (
        ""
        if one.gain_interval is None
        else f" ({decimal(one.gain_interval[0], 3, '+')} to {decimal(one.gain_interval[1], 3, '+')})"
    )
    parts: list[str] = []
    for name in found.costs:
        change, ratio = one.cost_change[name], one.per_unit[name]
        if change is not None:
            each = "" if ratio is None else f" ({_exchange(name, ratio, change, found)})"
            parts.append(f"{name} {change:+.6g}{each}")
    costs = "; ".join(parts) or "no costs"
    return f"{one.run} against {found.baseline}: {found.measure} {decimal(gain, 4, '+')}{limits}; {costs}."


def _exchange(name: str, ratio: float, change: float, found: TradeoffTable) -> str:
    """Say what one unit of a cost is exchanged for: gained where it is paid, lost where it is saved."""
    if name in found.more_is_better:
        verb, way = ("lost", "gained") if change > 0 else ("gained", "given up")
    else:
        verb, way = ("gained", "added") if change > 0 else ("lost", "saved")
    return f"{ratio:.3g} {verb} per unit of {name} {way}"


def csv_table(found: TradeoffTable) -> Table:
    """Lay out one row a run, in full precision; nothing where something is not known."""
    header = ["run", "measure", "value", "low", "high", "topics", "gain", "gain_low", "gain_high"]
    header += [f"{part}{name}" for name in found.costs for part in ("", "change_", "per_unit_")]
    rows: list[tuple[str, ...]] = []
    for one in found.rows:
        low, high = one.interval or (None, None)
        gain_low, gain_high = one.gain_interval or (None, None)
        numbers = [one.value, low, high, one.topics, one.gain, gain_low, gain_high]
        for name in found.costs:
            numbers += [one.costs[name], one.cost_change[name], one.per_unit[name]]
        place = ["" if one.front is None else str(one.front).lower(), str(one.sure).lower(), "; ".join(one.rivals)]
        rows.append((one.run, found.measure, *("" if value is None else repr(value) for value in numbers), *place))
    return Table((*header, "front", "sure", "rivals"), tuple(rows))


def document(found: TradeoffTable) -> dict[str, Any]:
    """Lay out everything as plain Python values."""
    return {
        **found.provenance.to_dict(),
        "measure": found.measure,
        "higher_is_better": found.higher_is_better,
        "costs": list(found.costs),
        "more_is_better": list(found.more_is_better),
        "baseline": found.baseline,
        "level": found.level,
        "front": list(found.front),
        "results": [_plain(one) for one in found.rows],
        "sentences": list(sentences(found)),
        "warnings": list(found.warnings),
    }


def _plain(one: TradeoffRow) -> dict[str, Any]:
    return {
        **vars(one),
        "value": number(one.value),
        "interval": _limits(one.interval),
        "gain": None if one.gain is None else number(one.gain),
        "gain_interval": _limits(one.gain_interval),
        "costs": dict(one.costs),
        "cost_change": dict(one.cost_change),
        "per_unit": dict(one.per_unit),
        "rivals": list(one.rivals),
    }


def _limits(limits: tuple[float, float] | None) -> list[float | None] | None:
    return None if limits is None else [plain(limit) for limit in limits]
