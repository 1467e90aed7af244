"""The funnel of a log: how many searches come to a click, to the cart, to a purchase, and where they stop."""

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
from judged.online.layout import UNITS, percent, values
from judged.online.log import LogAnswer, about, need
from judged.online.metrics import OnlineMetric, online_metric
from judged.online.slicing import pages_where, slice_pages
from judged.results import TEXT, Chart, Column, Sentences, Table

if TYPE_CHECKING:
    from judged.online.layout import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.results import Block

Row: TypeAlias = Literal["page", "session"]

_STEPS = {"search": "", "click": "clicks", "cart": "carts", "purchase": "purchases"}
"""The steps, and what a log must hold for each."""

_REACHED = {"search": "1", "click": "clicked", "cart": "cart", "purchase": "purchased"}


@dataclass(frozen=True)
class FunnelStep:
    """One step of one slice.

    Parameters
    ----------
    step
        ``search``, ``click``, ``cart`` or ``purchase``.
    slice
        The slice; None: all rows.
    reached
        How many rows came to it, or to a later step.
    of_all, of_last
        Those as shares of all rows, and of those that came to the step before it.
    """

    step: str
    slice: str | None
    reached: int
    of_all: OnlineEstimate
    of_last: OnlineEstimate


@dataclass(frozen=True, eq=False, repr=False)
class Funnel(LogAnswer):
    """How far searches come.

    Parameters
    ----------
    row
        What is followed: ``session`` or ``page``.
    by
        What it is sliced by; None: nothing.
    steps
        By slice, all rows first, then step.
    missing
        Steps of which the log holds nothing.
    """

    kind: ClassVar[str] = "funnel"
    asked: ClassVar[tuple[str, ...]] = ("row", "by", "missing")

    row: Row
    by: str | None
    steps: tuple[FunnelStep, ...]
    missing: tuple[str, ...]

    @property
    def title(self) -> str:
        """What is followed."""
        return f"From {self.row} to {self.steps[-1].step}: {self.log}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Where most is lost."""
        own = [step for step in self.steps if step.slice is None]
        lost = [(before.reached - step.reached, before, step) for before, step in itertools.pairwise(own)]
        if not lost:
            return ()
        most, before, step = max(lost, key=lambda one: one[0])
        where = f" Most are lost between {before.step} and {step.step}: {most:,}." if len(lost) > 1 else ""
        return (f"Of {own[0].reached:,} {self.row}s, {own[-1].reached:,} came to a {own[-1].step}.{where}",)

    def blocks(self) -> tuple[Block, ...]:
        """Give the steps, and the picture."""
        steps = self.steps
        table = Table(
            "funnel",
            (
                *([Column("slice", [one.slice or "all" for one in steps], TEXT, self.by)] if self.by else []),
                Column("step", [one.step for one in steps], TEXT),
                Column("reached", [one.reached for one in steps], UNITS, f"{self.row}s"),
                values([None if one.step == "search" else one.of_all for one in steps], "of_all", "of all"),
                values(
                    [None if one.step == "search" else one.of_last for one in steps], "of_last", "of the step before"
                ),
            ),
            labels=2 if self.by else 1,
            note=f"a {self.row} that came to a later step counts in the earlier ones too; {percent(self.level)}"
            f" intervals over {self.unit}s",
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
        missing = f"The log holds no {' and no '.join(self.missing)}." if self.missing else ""
        return (Sentences((*self.sentences, *([missing] if missing else []))), table, chart)


def funnel(
    log: InteractionLog,
    *,
    row: Row = "session",
    by: str | None = None,
    where: str | None = None,
    objects: Any = None,
    unit: Unit = "user",
    level: float = 0.95,
    settings: FactSettings | None = None,
) -> Funnel:
    """Follow searches to a click, to the cart, and to a purchase.

    Parameters
    ----------
    log
        The log.
    row
        What is followed: a ``session``, or a result ``page``. Carts and purchases belong to the page that they name, or
        to the last one of the session.
    by
        What to slice by: see `judged.online.slicing.slice_pages`. A session is in each slice in which it has a page.
    where
        Only pages that meet this condition count: see `judged.online.online_metrics`.
    objects
        When results were made, to slice by ``freshness``.
    unit
        What intervals are made over.
    level
        Of the intervals.
    settings
        What counts as belonging together.

    Raises
    ------
    InputError
        If the log holds no step behind the search, there is no such slice, or an option makes no sense.
    """
    need(log=log, row=row, by=by, where=where, unit=unit, level=level)
    names = [name for name, need in _STEPS.items() if not need or need in log.has]
    missing = tuple(need for need in _STEPS.values() if need and need not in log.has)
    if len(names) < 2:
        raise InputError("the log holds nothing behind the search", fix="log clicks, carts or purchases", path=log.name)
    with log.engine.scratch():
        cut = slice_pages(log, by, objects=objects) if by is not None else None
        chosen, said = (None, "") if where is None else pages_where(log, where)
        of = ["clicked", "cart", "purchased"]
        pages = page_facts(log, of, settings or FactSettings(), slices=cut and cut.table, chosen=chosen)
        reached = [f"({pages.columns[_REACHED[name]] if name != 'search' else 1})" for name in names]
        later = {name: f"greatest({', '.join(reached[at:])}, 0)" for at, name in enumerate(names)}
        common = pages.joined, names, later, row, unit, level
        found = [step for sliced in ((False, True) if cut else (False,)) for step in _steps(*common, sliced=sliced)]
    order = {name: at for at, name in enumerate((None, *(cut.values if cut else ())))}
    steps = sorted(found, key=lambda step: order[step.slice])
    first = {"where": said, "slices": cut.note if cut else ""}
    return Funnel(row=row, by=by, steps=tuple(steps), missing=missing, **about(log, unit, level, first))


def _steps(
    joined: Any, names: list[str], later: Mapping[str, str], row: Row, unit: Unit, level: float, *, sliced: bool
) -> list[FunnelStep]:
    """Count rows by step, and estimate shares over units."""
    slice_key = ["slice"] if sliced else []
    rows = ", ".join(["serp" if row == "page" else "session", *slice_key])
    flags = ", ".join(f"max({sql}) AS {name}" for name, sql in later.items())
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in names)
    keys = ", ".join([identifier(unit), *slice_key])
    unit_of = f"min({identifier(unit)}) AS {identifier(unit)}, " if unit != row else ""
    kept = joined.engine.keep(
        f"SELECT {keys}, {sums} FROM (SELECT {rows}, {unit_of}{flags} FROM {joined} GROUP BY {rows}) GROUP BY {keys}",
        "funnel",
    )
    metrics = [_share(name, before) for at, name in enumerate(names) for before in {names[0], names[max(at - 1, 0)]}]
    found = ratios(UnitSums(kept, sliced), metrics, level)
    of = {(one.slice, one.metric.numerator, one.metric.denominator): one for one in found}
    return [
        FunnelStep(name, part, round(of_all.numerator), of_all, of[part, name, names[max(at - 1, 0)]])
        for part in dict.fromkeys(one.slice for one in found)
        for at, name in enumerate(names)
        for of_all in [of[part, name, names[0]]]
    ]


def _share(step: str, before: str) -> OnlineMetric:
    """Give the share of what came to one step that came to another."""
    return replace(online_metric("PageCTR"), name=f"{step} of {before}", numerator=step, denominator=before)
