"""From what is asked to scores and tests: each wrong parameter is noted, and the rest goes on without it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from judged.comparison import Comparison, compare
from judged.comparison.choices import Choices
from judged.curves import at_cutoffs
from judged.errors import InputError, JudgedError, MeasureError
from judged.measures import parse, parse_many
from judged.web.leaderboard.asked import Asked, names_in
from judged.web.workspace import LEVEL, RESAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged._types import Bools
    from judged.evaluation import Estimate, Scores
    from judged.measures import Measure
    from judged.web.workspace import Workspace

MEASURES = ("nDCG@10", "AP", "RR@10", "R@100")
"""Those of a page that was asked for none."""
MOST = 24
"""Measures of a table."""
MANY = 2000
"""Topics: over more, Student's t says what resampling says, and is there at once."""
FEWER = 2000
"""Resamples over that many topics, where a test by resampling is asked for."""
CUTOFFS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
"""Of a curve: it looks the same as with all of them."""
SHARE = "Judged@10"


@dataclass(frozen=True)
class Board:
    """What the table, the charts and the exports are made of."""

    workspace: Workspace
    asked: Asked
    measures: tuple[Measure, ...]  # those that could be read and scored
    baseline: str  # the name of a run; empty where there is none
    mask: Bools | None  # (T,): the topics that count; None where it could not be told
    test: str
    correction: str
    series: tuple[Measure, ...]  # the points of the curve; empty where there is none
    sort: str  # by what the rows are ordered: a name, with `-` before it where the greatest comes first
    problems: dict[str, JudgedError] = field(default_factory=dict[str, JudgedError])  # what could not be read
    refused: tuple[str, ...] = ()  # the names of measures that could not be read or scored
    testable: bool = True  # whether the test can be made of these runs and topics

    @property
    def typed(self) -> str:
        """The names of measures that could not be read, as they were typed."""
        return ", ".join(self.refused)

    @property
    def topics(self) -> int:
        """How many topics count."""
        return 0 if self.mask is None else int(self.mask.sum())

    @property
    def names(self) -> tuple[str, ...]:
        """The canonical names of the measures."""
        return tuple(map(str, self.measures))

    @property
    def lead(self) -> Measure:
        """The measure by which the rows are ordered; the first, where they are ordered by something else."""
        named = self.sort.removeprefix("-")
        return next((one for one in self.measures if str(one) == named), self.measures[0])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The address of what is shown; what is as it is without being asked is left out."""
        return self.asked.pairs(self.names if self.names != MEASURES else ())

    def scores(self, measures: tuple[Measure, ...]) -> Scores:
        """Score all runs by measures over the topics that count."""
        made = self.workspace.scores(measures)
        return made if self.mask is None or self.mask.all() else made.over_topics(self.mask)

    def kept(self, what: str, *more: Any, make: Callable[[], Any]) -> Any:
        """Remember what depends on runs, baseline and topics."""
        return self.workspace.remember(("leaderboard", what, self.baseline, self.asked.where.strip(), *more), make)

    def comparison(self) -> Comparison | None:
        """Test all runs against the baseline; None where there are not two runs, or the test cannot be made."""
        if len(self.workspace.lists) < 2 or self.mask is None or not self.testable:
            return None
        how: dict[str, Any] = {
            "test": self.test,
            "correction": self.correction,
            "resamples": FEWER if self.topics > MANY else RESAMPLES,
        }
        return self.kept(
            "comparison",
            self.measures,
            *how.values(),
            make=lambda: compare(self.scores(self.measures), baseline=self.baseline, **how),
        )

    def estimates(self) -> tuple[Estimate, ...]:
        """Give every number with its interval, where nothing was tested."""
        return self.kept(
            "estimates",
            self.measures,
            make=lambda: self.scores(self.measures).estimates(level=LEVEL),
        )

    def raise_problems(self) -> None:
        """Refuse what could not be read: for programs, which ask for exactly what they want."""
        for error in self.problems.values():
            raise error


def board_of(workspace: Workspace, asked: Asked) -> Board:
    """Read what is asked; nothing is raised, and what could not be read is among the problems."""
    problems: dict[str, JudgedError] = {}

    def tried(name: str, make: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return make()
        except JudgedError as error:
            problems[name] = error
            return otherwise

    first = next(iter(workspace.lists), "")
    refused: list[str] = []
    measures = _measures(workspace, asked, problems, refused)
    baseline = tried("baseline", lambda: _baseline(workspace, asked.baseline) or first, first)
    mask = tried("where", lambda: workspace.mask(asked.where, baseline or None), None)
    usual = "t" if mask is not None and mask.sum() > MANY else Choices.test
    test = tried("test", lambda: Choices(test=asked.test.strip() or usual, baseline=baseline).test, usual)
    correction = tried(
        "correction",
        lambda: Choices(correction=asked.correction.strip() or Choices.correction).correction,
        Choices.correction,
    )
    series = tried("curve", lambda: _series(workspace, asked.curve.strip()), ())
    best_first = _falling(measures[0]) + str(measures[0])
    sort = tried("sort", lambda: _sort(asked.sort.strip(), measures), "") or best_first
    made = Board(workspace, asked, measures, baseline, mask, test, correction, series, sort, problems, tuple(refused))
    try:
        made.comparison()
    except JudgedError as error:
        problems["test"] = error
        return replace(made, testable=False)
    return made


def _measures(
    workspace: Workspace, asked: Asked, problems: dict[str, JudgedError], refused: list[str]
) -> tuple[Measure, ...]:
    """Read the measures one by one, and keep those that can be scored here."""
    found: dict[Measure, None] = {}
    for name in names_in(asked.measures):
        try:
            read = parse_many(name)
            if len(found) + len(read) > MOST:
                raise MeasureError(f"{name}: a table has at most {MOST} measures. Fix: leave some out")
            found |= dict.fromkeys(read)
        except JudgedError as error:
            problems.setdefault("measures", error)
            refused.append(name)
    measures = tuple(found) or tuple(map(parse, MEASURES))
    if not workspace.lists:
        return measures
    try:
        workspace.scores(measures)
    except JudgedError as error:
        problems.setdefault("measures", error)
        refused += [str(one) for one in measures if not _scored(workspace, one)]
        measures = tuple(one for one in measures if str(one) not in refused) or (parse("NumRet"),)
    return measures


def _scored(workspace: Workspace, measure: Measure) -> bool:
    try:
        workspace.scores((measure,))
    except JudgedError:
        return False
    return True


def _baseline(workspace: Workspace, name: str) -> str:
    if name and workspace.lists:
        workspace.judged(name)
    return name


def _series(workspace: Workspace, name: str) -> tuple[Measure, ...]:
    """Give the points of a curve, to the end of the longest ranking."""
    if not name or not workspace.lists:
        return ()
    longest = max((int(np.max(one.returned, initial=1)) for one in workspace.lists.values()), default=1)
    series = at_cutoffs(name, [k for k in CUTOFFS if k <= max(longest, 1)])
    workspace.scores(series, workspace.run_names[:1])  # whether they can be scored here
    return series


def _sort(given: str, measures: tuple[Measure, ...]) -> str:
    """Read by what the rows are ordered; nothing, where that is a measure that is not in the table."""
    sign, name = ("-", given[1:]) if given.startswith("-") else ("", given)
    if not name or name in {"run", "judged"}:
        return given
    try:
        measure = parse(name)
    except MeasureError:
        known = ", ".join(["run", "judged", *map(str, measures)])
        raise InputError(f"no column {name!r} to sort by", fix=f"one of {known}; - before it: falling") from None
    return f"{sign}{measure}" if measure in measures else ""


def _falling(measure: Measure) -> str:
    return "" if measure.properties.higher_is_better is False else "-"
