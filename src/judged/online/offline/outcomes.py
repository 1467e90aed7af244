"""What users did on a page, as one number: the outcomes that measures are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from judged.errors import InputError
from judged.online.arguments import names_of
from judged.online.facts.columns import SCALES
from judged.online.facts.pages import page_facts
from judged.online.facts.settings import FactSettings
from judged.online.metrics import written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.online.engine import Relation
    from judged.online.log import InteractionLog


@dataclass(frozen=True)
class Outcome:
    """An outcome of a page.

    Parameters
    ----------
    name, title
        Its name, and what it is.
    column
        Of the facts of a page (`judged.online.facts.columns.COLUMNS`); ``{t}`` stands for seconds of dwell.
    better
        1: more is better, -1: less is.
    clock
        It needs a log with a clock.
    share
        It lies between 0 and 1 on every page.
    """

    name: str
    title: str
    column: str
    better: Literal[-1, 1]
    clock: bool = False
    share: bool = True


_ALL = (
    Outcome("satisfied", "a result was opened for {t} s or longer, or last in its session",
            "satisfied_page_{t}", 1, clock=True),
    Outcome("clicked", "a result was opened", "clicked", 1),
    Outcome("first click RR", "1 / rank of the first click, 0 without one", "first_rr", 1),
    Outcome("best click RR", "1 / rank of the highest result opened, 0 without one", "topmost_rr", 1),
    Outcome("opened", "how many results were opened", "opened", 1, share=False),
    Outcome("abandoned", "nothing was opened", "abandoned", -1),
    Outcome("reformulated", "the next query of the session says it otherwise", "reformulated", -1, clock=True),
)  # fmt: skip

OUTCOMES = {one.name: one for one in _ALL}
"""The outcomes by name."""

DEFAULT_OUTCOMES = ("satisfied", "clicked", "first click RR")
"""Where nothing is said; those that the log can tell."""


def outcomes_of(names: Sequence[str] | str | None, log: InteractionLog) -> tuple[Outcome, ...]:
    """Give outcomes by name.

    Raises
    ------
    InputError
        If there is no such outcome, or the log cannot tell it.
    """
    if names is None:
        return tuple(OUTCOMES[name] for name in DEFAULT_OUTCOMES if log.has_time or not OUTCOMES[name].clock)
    found: list[Outcome] = []
    for name in names_of(outcomes=names):
        if name not in OUTCOMES:
            raise InputError(f"no outcome {name!r}", fix=f"one of {', '.join(OUTCOMES)}")
        if OUTCOMES[name].clock and not log.has_time:
            raise InputError(f"{log.name} has no clock, and {name} needs one", fix="take clicked or first click RR")
        found.append(OUTCOMES[name])
    if not found:
        raise InputError("no outcome is given", fix=f"some of {', '.join(OUTCOMES)}")
    return tuple(found)


def page_outcomes(log: InteractionLog, outcomes: Sequence[Outcome], seconds: float) -> Relation:
    """Give one row a page: ``serp``, and an outcome a column, ``outcome_0`` and so on."""
    columns = [one.column.format(t=written(seconds)) for one in outcomes]
    pages = page_facts(log, columns, FactSettings())
    made = [
        f"CAST({pages.columns[column]} AS DOUBLE) / {SCALES.get(column, 1)} AS outcome_{at}"
        for at, column in enumerate(columns)
    ]
    return log.engine.query(f"SELECT serp, {', '.join(made)} FROM {pages.joined}")
