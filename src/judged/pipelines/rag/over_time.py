"""How much of what is said is supported, period by period: series that a watch over a running system reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from judged.errors import InputError
from judged.pipelines.rag.responses import CONTRADICTS, FAILED, SUPPORT, Responses
from judged.pipelines.rag.steps import Share
from judged.pipelines.rag.verdicts import middle_verdicts
from judged.results import COUNT, SHARE, TEXT, Answer, Chart, Column, Table, columns_of

if TYPE_CHECKING:
    from judged.results import Block

_MS = 86_400_000


@dataclass(frozen=True)
class Period:
    """What one system said in one period."""

    run: str
    begin: date
    n: int  # answers with a sentence
    sentences: int
    unjudged: int  # sentences without any verdict: they are in neither share
    supported: Share  # sentences that a citation or the context supports
    contradicted: Share  # sentences that one contradicts, and none supports


@dataclass(frozen=True, eq=False, repr=False)
class SupportOverTime(Answer):
    """The share of sentences that are supported, and that are contradicted, by period.

    Attributes
    ----------
    periods : tuple of Period
        System by system, in the order of time; those without a sentence are left out.
    days : int
        How long each is.
    """

    kind: ClassVar[str] = "support-over-time"

    periods: tuple[Period, ...]
    days: int
    level: float

    @property
    def title(self) -> str:
        """What changes."""
        return "Support over time"

    def blocks(self) -> tuple[Block, ...]:
        """Give one row a system and period, and draw the share that is supported."""
        rows = self.periods
        made = {name: [getattr(row, name) for row in rows] for name in ("supported", "contradicted")}
        table = Table(
            "periods",
            (
                Column("begin", [row.begin.isoformat() for row in rows], TEXT),
                Column("run", [row.run for row in rows], TEXT, "system"),
                Column("begin_ms", [(row.begin - date(1970, 1, 1)).days * _MS for row in rows], COUNT, only="data"),
                *columns_of(rows, ("n", COUNT, "answers"), ("sentences", COUNT), ("unjudged", COUNT)),
                *(Column(name, [share.value for share in shares], SHARE, ci=[share.ci for share in shares])
                  for name, shares in made.items()),
            ),
            self.title,
            f"periods of {self.days} days; {100 * self.level:g}% intervals over answers, from 3 of them",
            labels=2,
        )  # fmt: skip
        said = (
            f"From {min(row.begin for row in rows)} to {max(row.begin for row in rows)}, of sentences with a verdict."
        )
        chart = Chart("supported", "Supported sentences", table, said, "lines", "begin_ms", "supported", colour="run",
                      spread="time", percent="y", x_title="period")  # fmt: skip
        return (table, chart)


def support_over_time(
    responses: Any, times: Mapping[str, date | datetime | str], *, days: int = 1, level: float = 0.95
) -> SupportOverTime:
    """Give the shares of supported and of contradicted sentences by period.

    Parameters
    ----------
    responses
        What `Responses.of` takes. What no verdict is known of is counted beside.
    times
        When each topic was answered: dates, or texts that begin with one, such as ``2026-03-01T10:00``. Traces say how
        long a stage took, not when.
    days
        How long a period is; the first one begins on the first day.
    level
        Of the intervals, over answers.

    Raises
    ------
    InputError
        If a time is no date, or no sentence has both a time and a verdict.

    Examples
    --------
    >>> given = {"answers": [{"query_id": name} for name in "ab"],
    ...          "support": [{"query_id": name, "sentence": 1, "doc_id": "d", "verdict": verdict}
    ...                      for name, verdict in (("a", "support"), ("b", "contradicts"))]}
    >>> made = support_over_time(given, {"a": "2026-03-01", "b": "2026-03-02"})
    >>> [(str(period.begin), period.supported.value, period.contradicted.value) for period in made.periods]
    [('2026-03-01', 1.0, 0.0), ('2026-03-02', 0.0, 1.0)]
    """
    given = Responses.of(responses)
    if days < 1:
        raise InputError(f"periods of {days} days", fix="one day or more")
    day_of = {topic: _day(topic, time) for topic, time in times.items()}
    verdicts: dict[tuple[Any, ...], set[str]] = {}
    key = ("run_id", "query_id", "sentence")
    for place, verdict in middle_verdicts(given["support"], *key, "doc_id").items():
        verdicts.setdefault(place[:-1], set()).update({verdict} - {FAILED})
    said: dict[tuple[int, date], dict[str, list[set[str]]]] = {}
    for place in given.keys("sentences", *key):
        if (day := day_of.get(place[1])) is not None:
            begin = day - timedelta(days=(day - min(day_of.values())).days % days)
            answers = said.setdefault((given.run_names.index(place[0]), begin), {})
            answers.setdefault(place[1], []).append(verdicts.get(place, set()))
    if not any(known for answers in said.values() for one in answers.values() for known in one):
        raise InputError("no sentence has a time and a verdict", fix="give times by topic, and a table support",
                         path=given.where)  # fmt: skip
    made: list[Period] = []
    for (run, begin), answers in sorted(said.items(), key=lambda item: item[0]):
        counts = np.array([
            (len(answer), sum(map(bool, answer)), sum(SUPPORT in one for one in answer),
             sum(CONTRADICTS in one and SUPPORT not in one for one in answer))
            for answer in answers.values()
        ], dtype=np.float64)  # fmt: skip
        sentences, judged, *shares = counts.T
        total, unjudged = int(sentences.sum()), int((sentences - judged).sum())
        passed = (Share(some, judged, level) for some in shares)
        made.append(Period(given.run_names[run], begin, len(answers), total, unjudged, *passed))
    return SupportOverTime(tuple(made), days, level)


def _day(topic: str, time: date | datetime | str) -> date:
    if isinstance(time, date):
        return time.date() if isinstance(time, datetime) else time
    try:
        return date.fromisoformat(time[:10])
    except ValueError:
        raise InputError(f"the time of {topic} is {time!r}", fix="write a date, such as 2026-03-01") from None
