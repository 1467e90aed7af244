"""Metrics of a log as an answer: what `online_metrics` returns; and CTR by rank alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged import __version__
from judged.errors import InputError
from judged.online import findings, layout
from judged.online import findings as words
from judged.online.findings import are_of_nobody
from judged.online.layout import (
    MARK,
    UNITS,
    WHAT_FALLS,
    OnlineEstimate,
    by_slice,
    definitions,
    estimates_table,
    labels,
    ranks_by_slice,
    ranks_table,
    shown,
    steepness,
)
from judged.online.metrics import understood
from judged.results import TEXT, Answer, Column, Sentences, Table

if TYPE_CHECKING:
    from judged.online.findings import LogFinding
    from judged.online.metrics import OnlineMetric
    from judged.results import Block
    from judged.results.blocks import Note


@dataclass(frozen=True, eq=False, repr=False)
class OnlineScores(Answer):
    """Metrics of one log: what `online_metrics` returns.

    Its main table, ``estimates``, has one row a metric and slice; ``ranks`` has CTR by rank.

    Attributes
    ----------
    log, layout : str
        Its name, and what it was read as.
    estimates : tuple of OnlineEstimate
        By metric, then slice; those over all rows (slice None) come first for each metric.
    by : str or None
        What it was sliced by; None: nothing.
    slices : tuple of (str, int)
        The values of the slice in order, and pages in each.
    unit : str
        ``user`` or ``session``: what intervals are made over.
    level : float
        Of the intervals.
    interval : str
        ``delta`` or ``bootstrap``, as asked.
    counts : tuple of (str, int)
        ``pages``, ``events``, ``sessions``, ``users`` that were counted.
    ranks : tuple of OnlineEstimate
        CTR by rank, shown wherever a click metric is: position bias is visible there.
    refused : tuple of (OnlineMetric, str)
        Metrics asked for that this log cannot tell, with the reason.
    policies : tuple of (str, str)
        What was chosen: of the log and of the call, name to value.
    findings : tuple of LogFinding
        What is wrong with the log.
    notes : tuple of Note
        Why its numbers should not be trusted as they are, and how those of clicks must not be read.
    """

    kind: ClassVar[str] = "online"
    main: ClassVar[str] = "estimates"
    stacked: ClassVar[bool] = True

    log: str
    layout: str
    estimates: tuple[OnlineEstimate, ...]
    by: str | None
    slices: tuple[tuple[str, int], ...]
    unit: str
    level: float
    interval: str
    counts: tuple[tuple[str, int], ...]
    ranks: tuple[OnlineEstimate, ...]
    refused: tuple[tuple[OnlineMetric, str], ...]
    policies: tuple[tuple[str, str], ...]
    findings: tuple[LogFinding, ...]
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return f"What users did: {shown(self.log, 80)}"

    @property
    def over(self) -> str:
        """What intervals are made over: `unit`, and ``session`` where no page names a user."""
        return "session" if are_of_nobody(self.findings) else self.unit

    @property
    def metrics(self) -> tuple[OnlineMetric, ...]:
        """The metrics that were computed, in order."""
        return tuple(dict.fromkeys(one.metric for one in self.estimates))

    @property
    def biased(self) -> bool:
        """Whether a metric is among them that depends on rank."""
        return any(metric.biased for metric in self.metrics)

    @property
    def labels(self) -> dict[str | None, str]:
        """The slices as they are shown; None stands for all rows."""
        return labels(name for name, _ in self.slices)

    def of(self, metric: str | OnlineMetric, slice: str | None = None) -> OnlineEstimate:
        """Give one estimate, by the name of its metric or what it is called elsewhere.

        Raises
        ------
        KeyError
            If there is none.
        """
        names = {str(metric), *(meant.split(";")[0] for _, meant in understood([metric]))}
        for estimate in self.estimates:
            if str(estimate.metric) in names and estimate.slice == slice:
                return estimate
        raise KeyError(f"{metric} on {slice or 'all'}")

    def value(self, metric: str | OnlineMetric, slice: str | None = None) -> float:
        """Give one value: see `of`."""
        return self.of(metric, slice).value

    def unsliced(self) -> OnlineScores:
        """Give what is known over all rows."""
        whole, ranks = (tuple(one for one in many if one.slice is None) for many in (self.estimates, self.ranks))
        policies = tuple(chosen for chosen in self.policies if chosen[0] != "slices")
        return replace(self, estimates=whole, ranks=ranks, by=None, slices=(), policies=policies)

    def by_rank(self) -> ClicksByRank:
        """Give CTR by rank as an answer of its own.

        Raises
        ------
        InputError
            If the log cannot tell it.
        """
        if not self.ranks:
            why = self.refused[0][1] if self.refused else "nothing was shown"
            raise InputError(f"there is no CTR by rank: {why}", fix="see 'judged online list CTRAtRank'", path=self.log)
        return ClicksByRank(self, self.notes)

    def blocks(self) -> tuple[Block, ...]:
        """Give what the log is, every metric with its interval, CTR by rank beside clicks, and what is missing."""
        mark = f"{MARK} depends on rank: read it beside CTR by rank; " if self.biased else ""
        note = f"{mark}{words.made(self)}"
        estimates, (chart, *ranks) = estimates_table(self, note), self.ranks_blocks()
        return (
            Sentences(words.about(self)),
            *layout.metric_charts(self, estimates),
            estimates,
            *([by_slice(self, note)] if self.by is not None else []),
            *([chart, *ranks] if self.biased and self.ranks else [replace(ranks_table(self), only="data")]),
            Sentences(words.missing(self), "missing"),
            *self.background(),
        )

    def ranks_blocks(self) -> tuple[Block, ...]:
        """Give CTR by rank: drawn, and as tables."""
        table = ranks_table(self)
        by = [ranks_by_slice(self)] if self.by is not None else []
        return layout.ranks_chart(self, table), table, *by

    def facts(self) -> dict[str, Any]:
        """Give what the log is, and what was chosen."""
        return {
            "judged": __version__,
            "log": {"name": self.log, "layout": self.layout, **dict(self.counts)},
            "unit": self.over,
            "level": self.level,
            "interval": self.interval,
            "policies": dict(self.policies),
            "by": self.by,
        }

    def background(self) -> tuple[Block, ...]:
        """Give what metrics are, what this log cannot tell, and what is wrong with it."""
        slices = [Column("slice", [name for name, _ in self.slices], TEXT)]
        slices.append(Column("pages", [pages for _, pages in self.slices], UNITS))
        refused = [Column("metric", [str(metric) for metric, _ in self.refused], TEXT)]
        refused.append(Column("reason", [why for _, why in self.refused], TEXT))
        meant = tuple(map(" ".join, findings.meanings(self.findings)))
        return (
            Table("slices", tuple(slices), only="data"),
            Table("refused", tuple(refused), only="data", labels=2),
            definitions([*self.metrics, *(metric for metric, _ in self.refused)]),
            findings.findings_table(self.findings, folded=True),
            *([Sentences(meant, "meaning", "What was found in the log", folded=True)] if meant else []),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ClicksByRank(Answer):
    """CTR by rank of one log: position bias."""

    kind: ClassVar[str] = "clicks-by-rank"

    scores: OnlineScores
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """What it answers."""
        return f"CTR by rank: {shown(self.scores.log, 80)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """How steep it is, and what that does not say."""
        return tuple(filter(None, (steepness(self.scores.ranks), WHAT_FALLS)))

    def blocks(self) -> tuple[Block, ...]:
        """Give what the log is, and CTR by rank."""
        said = Sentences((*self.sentences, f"{words.made(self.scores)}."), "steepness")
        about = Sentences(words.about(self.scores))
        return about, *self.scores.ranks_blocks(), said, *self.scores.background()

    def facts(self) -> dict[str, Any]:
        """Give what the log is, and what was chosen."""
        return self.scores.facts()


def need_metrics(scores: OnlineScores) -> OnlineScores:
    """Refuse a result without a single metric: a table or a page of it would say nothing.

    Raises
    ------
    InputError
        If there is none, with the first reason.
    """
    if not scores.estimates:
        why = f": {scores.refused[0][1]}" if scores.refused else ""
        raise InputError(f"no metric can be told{why}", fix="see 'judged logs check'", path=scores.log)
    return scores
