"""Search funnel: how many sessions or pages reach a click, the cart, and a purchase."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from judged.errors import InputError
from judged.online.engine import identifier
from judged.online.estimation.online_metrics import Unit, ratios
from judged.online.estimation.sums import UnitSums
from judged.online.facts.pages import FactSettings, page_facts
from judged.online.layout import UNITS, estimate_column, format_estimate, format_interval, percent
from judged.online.log import LogAnswer, answer_fields, validate
from judged.online.metrics import OnlineMetric, online_metric
from judged.online.slicing import pages_where, slice_pages
from judged.results import TEXT, Chart, Column, Sentences, Table, counted

if TYPE_CHECKING:
    from judged.online.layout import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.results import Block

Row: TypeAlias = Literal["page", "session"]

_STEPS = {"search": "", "click": "clicks", "cart": "carts", "purchase": "purchases"}
"""Steps, and the required data of each."""

_REACHED = {"search": "1", "click": "clicked", "cart": "cart", "purchase": "purchased"}


@dataclass(frozen=True)
class FunnelStep:
    """Step of the funnel on one slice.

    Parameters
    ----------
    step
        ``search``, ``click``, ``cart`` or ``purchase``.
    slice
        Slice; None: all rows.
    reached
        Number of rows that reached this or a later step.
    of_all, of_last
        Share of all rows, and of the rows that reached the previous step.
    """

    step: str
    slice: str | None
    reached: int
    of_all: OnlineEstimate
    of_last: OnlineEstimate


@dataclass(frozen=True, eq=False, repr=False)
class Funnel(LogAnswer):
    """Search funnel of a log.

    Parameters
    ----------
    row
        Unit of the funnel: ``session`` or ``page``.
    by
        Slicing attribute; None: not sliced.
    steps
        Steps by slice (all rows first), then in order.
    missing
        Steps that the log has no data for.
    """

    kind: ClassVar[str] = "funnel"
    fact_fields: ClassVar[tuple[str, ...]] = ("row", "by", "missing")

    row: Row
    by: str | None
    steps: tuple[FunnelStep, ...]
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"Funnel from {self.row} to {self.steps[-1].step}: {self.log}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Rows that reach the last step, and the largest loss."""
        steps = [step for step in self.steps if step.slice is None]
        losses = [(previous.reached - step.reached, previous, step) for previous, step in itertools.pairwise(steps)]
        if not losses:
            return ()
        loss, previous, step = max(losses, key=lambda row: row[0])
        largest = (
            f" The largest loss is from {previous.step} to {step.step}: {counted(loss, self.row)}."
            if len(losses) > 1
            else ""
        )
        last = steps[-1]
        share = f"{format_estimate(last.of_all)}, {percent(self.level)} CI {format_interval(last.of_all)}"
        return (f"{last.reached:,} of {counted(steps[0].reached, self.row)} reached a {last.step}: {share}.{largest}",)

    def blocks(self) -> tuple[Block, ...]:
        """Return the table and chart of the steps."""
        steps = self.steps
        table = Table(
            "funnel",
            (
                *([Column("slice", [step.slice or "all" for step in steps], TEXT, self.by)] if self.by else []),
                Column("step", [step.step for step in steps], TEXT),
                Column("reached", [step.reached for step in steps], UNITS, f"{self.row}s"),
                estimate_column(
                    [None if step.step == "search" else step.of_all for step in steps], "of_all", "share of all"
                ),
                estimate_column(
                    [None if step.step == "search" else step.of_last for step in steps],
                    "of_last",
                    "share of previous step",
                ),
            ),
            labels=2 if self.by else 1,
            note=f"a {self.row} that reaches a later step also counts in the earlier steps; {percent(self.level)}"
            f" confidence intervals over {self.unit}s",
        )
        chart = Chart(
            "funnel",
            self.title,
            table,
            " ".join(self.sentences),
            kind="dots" if self.by else "bars",
            x="of_all" if self.by else "reached",
            y="step",
            color="slice" if self.by else "",
            from_zero=True,
        )
        missing = f"The log has no {' and no '.join(self.missing)}." if self.missing else ""
        return (Sentences((*self.sentences, *([missing] if missing else []))), table, chart)


def funnel(
    log: InteractionLog,
    *,
    row: Row = "session",
    by: str | None = None,
    where: str | None = None,
    documents: Any = None,
    unit: Unit = "user",
    level: float = 0.95,
    settings: FactSettings | None = None,
) -> Funnel:
    """Count sessions or pages that reach a click, the cart, and a purchase.

    Parameters
    ----------
    log
        The log.
    row
        Unit of the funnel: ``session``, or result ``page``. Carts and purchases without a page are attributed to the
        last page of the session.
    by
        Slicing attribute: see `judged.online.slicing.slice_pages`. A session is in each slice of its pages.
    where
        Condition for pages: see `judged.online.online_metrics`.
    documents
        Documents with dates, to slice by ``freshness``; see `judged.online.slicing.slice_pages`.
    unit
        Independent unit of the confidence intervals.
    level
        Confidence level.
    settings
        Gaps and windows that define sessions, visits, and reformulations.

    Raises
    ------
    InputError
        If the log has no step after the search, the attribute is unknown, or an option is invalid.
    """
    validate(log=log, row=row, by=by, where=where, unit=unit, level=level)
    names = [name for name, need in _STEPS.items() if not need or need in log.has]
    missing = tuple(need for need in _STEPS.values() if need and need not in log.has)
    if len(names) < 2:
        raise InputError("the log has only searches", fix="log clicks, carts or purchases", path=log.name)
    with log.engine.scratch():
        slicing = slice_pages(log, by, documents=documents) if by is not None else None
        selection, condition = (None, "") if where is None else pages_where(log, where)
        facts = ["clicked", "cart", "purchased"]
        pages = page_facts(log, facts, settings or FactSettings(), slices=slicing and slicing.table, chosen=selection)
        reached = [f"({pages.columns[_REACHED[name]] if name != 'search' else 1})" for name in names]
        # A row that reaches a later step counts in the earlier steps too.
        reached_or_later = {name: f"greatest({', '.join(reached[i:])}, 0)" for i, name in enumerate(names)}
        arguments = pages.joined, names, reached_or_later, row, unit, level
        steps = _steps(*arguments, sliced=False) + (_steps(*arguments, sliced=True) if slicing else [])
    order = {name: i for i, name in enumerate((None, *(slicing.values if slicing else ())))}
    steps.sort(key=lambda step: order[step.slice])
    options = {"where": condition, "slices": slicing.note if slicing else ""}
    fields = answer_fields(log, unit, level, options, warnings=slicing.warnings if slicing else ())
    return Funnel(row=row, by=by, steps=tuple(steps), missing=missing, **fields)


def _steps(
    joined: Any, names: list[str], flags_sql: Mapping[str, str], row: Row, unit: Unit, level: float, *, sliced: bool
) -> list[FunnelStep]:
    """Count rows by step and estimate the shares."""
    slice_key = ["slice"] if sliced else []
    rows = ", ".join(["serp" if row == "page" else "session", *slice_key])
    flags = ", ".join(f"max({sql}) AS {name}" for name, sql in flags_sql.items())
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in names)
    keys = ", ".join([identifier(unit), *slice_key])
    unit_of = f"min({identifier(unit)}) AS {identifier(unit)}, " if unit != row else ""
    by_unit = joined.engine.keep(
        f"SELECT {keys}, {sums} FROM (SELECT {rows}, {unit_of}{flags} FROM {joined} GROUP BY {rows}) GROUP BY {keys}",
        "funnel",
    )
    previous = {name: names[max(i - 1, 0)] for i, name in enumerate(names)}
    # A set, since the first and the previous step may be the same.
    metrics = [_share(name, denominator) for name in names for denominator in {names[0], previous[name]}]
    estimates = ratios(UnitSums(by_unit, sliced), metrics, level)
    shares = {(row.slice, row.metric.numerator, row.metric.denominator): row for row in estimates}
    return [
        FunnelStep(name, value, round(of_all.numerator), of_all, shares[value, name, previous[name]])
        for value in dict.fromkeys(row.slice for row in estimates)
        for name in names
        for of_all in [shares[value, name, names[0]]]
    ]


def _share(step: str, previous: str) -> OnlineMetric:
    return replace(online_metric("PageCTR"), name=f"{step} of {previous}", numerator=step, denominator=previous)
