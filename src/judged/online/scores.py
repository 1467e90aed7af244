"""Metrics of a log: results of `online_metrics`, and CTR by rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from judged import __version__
from judged.errors import InputError
from judged.online import findings, layout
from judged.online.findings import has_no_user_ids
from judged.online.layout import (
    MARK,
    RANK_CAVEAT,
    RANK_NOTE,
    UNITS,
    OnlineEstimate,
    by_slice,
    clip,
    definitions,
    describe_decline,
    estimates_table,
    ranks_by_slice,
    ranks_table,
    slice_labels,
)
from judged.online.metrics import resolved_synonyms
from judged.results import TEXT, Answer, Column, Sentences, Table

if TYPE_CHECKING:
    from judged.online.findings import LogFinding
    from judged.online.metrics import OnlineMetric
    from judged.results import Block
    from judged.results.blocks import Note


@dataclass(frozen=True, eq=False, repr=False)
class OnlineScores(Answer):
    """Metrics of a log: result of `online_metrics`.

    The main table, ``estimates``, has one row per metric and slice; ``ranks`` has CTR by rank.

    Attributes
    ----------
    log, layout : str
        Name, and layout it was read as.
    estimates : tuple of OnlineEstimate
        Estimates by metric, then slice; the one over all rows (slice None) is first for each metric.
    by : str or None
        Slicing attribute; None: not sliced.
    slices : tuple of (str, int)
        Slices in order, and number of pages in each.
    unit : str
        Independent unit of the confidence intervals: ``user`` or ``session``.
    level : float
        Confidence level.
    interval : str
        Interval method: ``delta`` or ``bootstrap``.
    counts : tuple of (str, int)
        Number of ``pages``, ``events``, ``sessions``, ``users``.
    ranks : tuple of OnlineEstimate
        CTR by rank, which shows position bias. It is part of every result with click metrics.
    refused : tuple of (OnlineMetric, str)
        Requested metrics that the log does not support, with the reason.
    policies : tuple of (str, str)
        Options of the log and of the call, name to value.
    findings : tuple of LogFinding
        Problems of the log.
    notes : tuple of Note
        Reasons why metrics are not reliable, and the caveat about position bias.
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
        """Title of the result."""
        return f"Online metrics: {clip(self.log, 80)}"

    @property
    def over(self) -> str:
        """Independent unit of the intervals: `unit`, or ``session`` if no page has a user ID."""
        return "session" if has_no_user_ids(self.findings) else self.unit

    @property
    def metrics(self) -> tuple[OnlineMetric, ...]:
        """Computed metrics, in order."""
        return tuple(dict.fromkeys(estimate.metric for estimate in self.estimates))

    @property
    def biased(self) -> bool:
        """Whether a metric depends on rank."""
        return any(metric.biased for metric in self.metrics)

    @property
    def labels(self) -> dict[str | None, str]:
        """Display labels of the slices; None is the key of all rows."""
        return slice_labels(name for name, _ in self.slices)

    def of(self, metric: str | OnlineMetric, slice: str | None = None) -> OnlineEstimate:
        """Return the estimate of a metric, by its name or a synonym.

        Raises
        ------
        KeyError
            If there is no such estimate.
        """
        # A synonym resolves to the name with its parameters, before the note in parentheses after a blank.
        names = {str(metric), *(resolved.split(" (")[0] for _, resolved in resolved_synonyms([metric]))}
        for estimate in self.estimates:
            if str(estimate.metric) in names and estimate.slice == slice:
                return estimate
        raise KeyError(f"{metric} on {slice or 'all'}")

    def value(self, metric: str | OnlineMetric, slice: str | None = None) -> float:
        """Return the value of a metric: see `of`."""
        return self.of(metric, slice).value

    def unsliced(self) -> OnlineScores:
        """Return the estimates over all rows only."""
        estimates = tuple(estimate for estimate in self.estimates if estimate.slice is None)
        ranks = tuple(estimate for estimate in self.ranks if estimate.slice is None)
        policies = tuple((name, value) for name, value in self.policies if name != "slices")
        return replace(self, estimates=estimates, ranks=ranks, by=None, slices=(), policies=policies)

    def by_rank(self) -> ClicksByRank:
        """Return CTR by rank as a separate result.

        Raises
        ------
        InputError
            If the log does not support it.
        """
        if not self.ranks:
            reason = self.refused[0][1] if self.refused else "the log has no shown results"
            raise InputError(f"no CTR by rank: {reason}", fix="see 'judged online list CTRAtRank'", path=self.log)
        return ClicksByRank(self, self.notes)

    def blocks(self) -> tuple[Block, ...]:
        """Return the description of the log, metrics, CTR by rank, missing values, and background."""
        mark = f"{MARK} {RANK_NOTE}; " if self.biased else ""
        note = f"{mark}{findings.describe_method(self)}"
        estimates = estimates_table(self, note)
        return (
            Sentences(findings.describe_log(self)),
            *layout.metric_charts(self, estimates),
            estimates,
            *([by_slice(self, note)] if self.by is not None else []),
            *(self.ranks_blocks() if self.biased and self.ranks else [replace(ranks_table(self), only="data")]),
            Sentences(findings.describe_missing(self), "missing"),
            *self.background(),
        )

    def ranks_blocks(self) -> tuple[Block, ...]:
        """Return CTR by rank as a chart and tables."""
        table = ranks_table(self)
        slice_table = [ranks_by_slice(self)] if self.by is not None else []
        return layout.ranks_chart(self, table), table, *slice_table

    def facts(self) -> dict[str, Any]:
        """Return the log and the options."""
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
        """Return slices, unsupported metrics, definitions, and findings."""
        slices = [Column("slice", [name for name, _ in self.slices], TEXT)]
        slices.append(Column("pages", [pages for _, pages in self.slices], UNITS))
        refused = [Column("metric", [str(metric) for metric, _ in self.refused], TEXT)]
        refused.append(Column("reason", [reason for _, reason in self.refused], TEXT))
        texts = tuple(map(" ".join, findings.describe_findings(self.findings)))
        return (
            Table("slices", tuple(slices), only="data"),
            Table("refused", tuple(refused), only="data", labels=2),
            definitions([*self.metrics, *(metric for metric, _ in self.refused)]),
            findings.findings_table(self.findings, folded=True),
            *([Sentences(texts, "finding_descriptions", "Findings in the log", folded=True)] if texts else []),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ClicksByRank(Answer):
    """CTR by rank of a log, which shows position bias."""

    kind: ClassVar[str] = "clicks-by-rank"

    scores: OnlineScores
    notes: tuple[Note, ...] = ()

    @property
    def title(self) -> str:
        """Title of the result."""
        return f"CTR by rank: {clip(self.scores.log, 80)}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Decline of CTR with rank, and its caveat."""
        return tuple(filter(None, (describe_decline(self.scores.ranks), RANK_CAVEAT)))

    def blocks(self) -> tuple[Block, ...]:
        """Return the description of the log, and CTR by rank."""
        sentences = Sentences((*self.sentences, f"{findings.describe_method(self.scores)}."), "decline")
        summary = Sentences(findings.describe_log(self.scores))
        return summary, *self.scores.ranks_blocks(), sentences, *self.scores.background()

    def facts(self) -> dict[str, Any]:
        """Return the log and the options."""
        return self.scores.facts()


def check_has_estimates(scores: OnlineScores) -> OnlineScores:
    """Return the scores if they have at least one estimate.

    Raises
    ------
    InputError
        If they have none, with the first reason.
    """
    if not scores.estimates:
        reason = f": {scores.refused[0][1]}" if scores.refused else ""
        raise InputError(f"no metric can be computed{reason}", fix="see 'judged logs check'", path=scores.log)
    return scores
