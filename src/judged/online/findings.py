"""Findings about a log: rules, counts, actions taken, and their wording."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Literal, TypeAlias

from judged.online.layout import UNITS, clip, clip_location, clip_words, percent
from judged.results import TEXT, Show, Table, columns_of, counted, listed
from judged.results.blocks import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from judged.online.layout import OnlineEstimate
    from judged.online.log import InteractionLog
    from judged.online.metrics import OnlineMetric
    from judged.online.scores import OnlineScores


FindingAction: TypeAlias = Literal["excluded", "repaired", "kept", "lost"]
"""Action taken on the rows: excluded from all metrics, repaired, kept unchanged, or lost (never readable)."""

RULES: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
    (resources.files("judged.online") / "rules.toml").read_text(encoding="utf-8")
)
"""Text and fix of each rule, by source: queries, events, or a reader."""


def rule_texts(where: str, rule: str, **words: str) -> tuple[str, str]:
    """Return the problem and fix of a rule, with placeholders replaced by `words`.

    >>> rule_texts("clickmodels", "broken-line")[0]
    'the line does not have the format of this layout'
    """
    texts = RULES[where][rule]
    problem, fix = (Template(texts[name]).substitute({"more": "", **words}) for name in ("problem", "fix"))
    return problem, fix


@dataclass(frozen=True)
class LogFinding:
    """A rule and the rows of the log that matched it.

    Parameters
    ----------
    rule
        Stable short name, such as ``facet-request``.
    table
        ``query``, ``event``, ``file`` (records of unknown type), or ``folder`` (entire files).
    rows, of
        Number of matching rows, and number of rows that the rule applies to.
    action
        Action taken on them.
    problem, fix
        The problem, and how to fix it in the logging system.
    places
        The first few rows, as ``file:line`` or IDs.

    Examples
    --------
    >>> facets = LogFinding("facet-request", "query", 6, 84, "excluded", "requests for facets alone", "do not log them")
    >>> round(facets.share, 4)
    0.0714
    """

    rule: str
    table: str
    rows: int
    of: int
    action: FindingAction
    problem: str
    fix: str
    places: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Matching rows as a share of the rows that the rule applies to; 0 if there are none."""
        return self.rows / self.of if self.of else 0.0


@dataclass(frozen=True)
class Account:
    """Numbers of rows of a raw table that were read, kept, and excluded by rule.

    Invariant: ``read == kept + sum(excluded)``. A row counts for the first rule that excludes it.
    """

    table: str
    read: int
    kept: int
    excluded: tuple[tuple[str, int], ...]


# Lost rows cannot be recovered, repaired rows need no action.
_SEVERITY_ORDER: dict[FindingAction, int] = {"lost": 0, "excluded": 1, "kept": 2, "repaired": 3}


def by_harm(findings: Iterable[LogFinding]) -> tuple[LogFinding, ...]:
    """Sort findings by severity: lost, excluded, kept, repaired; within each by decreasing share.

    Examples
    --------
    >>> late = LogFinding("clock-skew", "event", 5, 10, "kept", "events before their page", "use one clock")
    >>> bots = LogFinding("bot", "query", 1, 10, "excluded", "pages of programs", "")
    >>> [finding.rule for finding in by_harm([late, bots])]
    ['bot', 'clock-skew']
    """
    return tuple(sorted(findings, key=lambda row: (_SEVERITY_ORDER[row.action], -row.share, row.table, row.rule)))


def has_no_user_ids(findings: Iterable[LogFinding]) -> bool:
    """Return whether no page of a log has a user ID, so that sessions or pages are used as users.

    Examples
    --------
    >>> has_no_user_ids([LogFinding("no-user", "query", 2, 2, "kept", "pages without a user", "log a client_id")])
    True
    """
    return any((row.rule, row.table) == ("no-user", "query") and row.rows == row.of for row in findings)


EXCLUDED_LIMIT = 0.05
"""A log is not fit if more than this share of a table is excluded or lost."""

JOINED_LIMIT = 0.95
"""A log is not fit if less than this share of the events with a query ID are joined to a page."""


REPAIRED_LIMIT = 0.05
"""A log is not fit if one rule repaired more than this share of the rows it applies to."""

CONVENTION_RULES = ("zero-based-ranks", "mixed-rank-base", "dwell-on-every-event")
"""Rules reported as "repaired" that only translate a convention of an application: no row is wrong."""

NON_PAGE_RULES = ("current-query", "withheld-clicks")
"""Rules that exclude records which are not pages by design of the layout. They do not make a log unfit."""


def unfit_reasons(accounts: Iterable[Account], findings: Iterable[LogFinding]) -> tuple[str, ...]:
    """Return the reasons why metrics of a log are not reliable; empty if the log is fit.

    Examples
    --------
    >>> unfit_reasons([Account("query", 100, 94, (("bot", 6),))], [])
    ('6 of 100 query rows (6.0%) are excluded or lost, more than 5%: bot 6',)
    >>> unjoined = LogFinding("unknown-query-id", "event", 30, 100, "kept", "events on pages that were not logged", "")
    >>> print(*unfit_reasons([], [unjoined]))
    only 70.0% of the events with a query_id belong to a valid page, but at least 95% are required (unknown-query-id 30)
    """
    reasons: list[str] = []
    findings = tuple(findings)
    for account in accounts:
        lost = [row for row in findings if row.action == "lost" and row.table == account.table]
        # Rows that the reader lost are not part of `account.read`.
        lost_rows = [(row.rule, row.rows) for row in lost if row.rule not in NON_PAGE_RULES]
        dropped = [*account.excluded, *lost_rows]
        rows, total = sum(count for _, count in dropped), account.read + sum(count for _, count in lost_rows)
        if account.table == "query" and not total:
            reasons.append("the log has no queries, so it has no pages")
        if rows > EXCLUDED_LIMIT * total:
            counts = ", ".join(f"{rule} {count:,}" for rule, count in dropped)
            reasons.append(
                f"{rows:,} of {total:,} {account.table} rows ({100 * rows / total:.1f}%) are excluded or lost,"
                f" more than 5%: {counts}"
            )
    reasons += [
        f"{row.rows:,} of {row.of:,} records of a {row.table} could not be read, more than 5%: {row.rule}"
        for row in findings
        if row.action == "lost" and row.table not in {"query", "event"} and row.share > EXCLUDED_LIMIT
    ]
    reasons += [
        f"{row.rows:,} of {row.of:,} {row.table} rows ({100 * row.share:.1f}%) are repaired, more than 5%: {row.rule}"
        for row in findings
        if row.action == "repaired" and row.rule not in CONVENTION_RULES and row.share > REPAIRED_LIMIT
    ]
    unjoined = [row for row in findings if row.rule in {"unknown-query-id", "excluded-page"} and row.table == "event"]
    # Both rules have the events with a query ID as denominator, so their shares can be added.
    joined = 1 - sum(row.share for row in unjoined)
    if joined < JOINED_LIMIT:
        counts = ", ".join(f"{row.rule} {row.rows:,}" for row in unjoined)
        reasons.append(
            f"only {100 * joined:.1f}% of the events with a query_id belong to a valid page, but at least 95% are"
            f" required ({counts})"
        )
    return tuple(reasons)


_MAX_NAME = 60  # maximum characters of a log's name
_COUNTED_PREFIXES = ("row: ", "rows: ", "file: ", "files: ", "column: ", "columns: ")
"""Prefixes of problems that already contain the counted noun."""
_BOT_POLICIES = ("bots", "bot_rate")


def unfit_log_notes(log: str, reasons: Iterable[str]) -> tuple[Note, ...]:
    """Return one note per reason why metrics of a log are not reliable.

    >>> str(unfit_log_notes("a.csv", ["6 of 100 query rows (6.0%) are excluded, more than 5%: bot 6"])[0])
    'a.csv is not fit for metrics: 6 of 100 query rows (6.0%) are excluded, more than 5%: bot 6.'
    """
    return tuple(
        Note("unfit-log", f"{clip(log, _MAX_NAME)} is not fit for metrics: {clip_words(reason)}.") for reason in reasons
    )


def relevant_policies(policies: Iterable[tuple[str, str]], findings: Iterable[LogFinding]) -> list[tuple[str, str]]:
    """Return the policies that affect the metrics: without the bot policies if the log has no bots."""
    bots = any(finding.rule == "bot" and finding.rows for finding in findings)
    return [(name, value) for name, value in policies if bots or name not in _BOT_POLICIES]


def format_finding(finding: LogFinding) -> str:
    """Format a finding as one sentence.

    >>> format_finding(LogFinding("bot", "query", 1, 9, "excluded", "pages of programs", "nothing, if that is right"))
    'bot (query): 1 row: pages of programs.'
    """
    has_noun = finding.problem.startswith(_COUNTED_PREFIXES)
    count = f"{finding.rows:,} " if has_noun else f"{counted(finding.rows, 'row')}: "
    return f"{finding.rule} ({finding.table}): {count}{clip_words(finding.problem)}."


def findings_table(findings: Sequence[LogFinding], *, folded: bool = False) -> Table:
    """Build the table of findings, one row per rule."""
    counts = ("rule", TEXT), ("table", TEXT), ("action", TEXT), ("rows", UNITS), ("of", UNITS, "total")
    columns = columns_of(findings, *counts, ("share", Show(_format_share, "float64")), "problem", "fix", "places")
    only: Literal["", "data"] = "" if findings else "data"
    return Table("findings", columns, "Findings, most severe first", labels=3, folded=folded, only=only)


def describe_findings(findings: Sequence[LogFinding]) -> tuple[tuple[str, ...], ...]:
    """Return for each finding its description, places, and fix."""
    texts = ((format_finding(row), _places(row.places), row.fix and f"Fix: {clip_words(row.fix)}.") for row in findings)
    return tuple(tuple(filter(None, text)) for text in texts)


def _places(places: tuple[str, ...]) -> str:
    """Format the locations of rows; repeated file names are omitted.

    >>> _places(("a.ndjson:1", "a.ndjson:7", "b.ndjson:2"))
    'At a.ndjson:1, 7, b.ndjson:2.'
    """
    files = ["", *(location.rpartition(":")[0] for location in places)]
    locations = [
        clip(location.rpartition(":")[2]) if file and file == previous_file else clip_location(location)
        for previous_file, file, location in zip(files, files[1:], places, strict=False)
    ]
    return f"At {', '.join(locations)}." if locations else ""


def _format_share(share: float) -> str:
    return f"{100 * share:.1f}%" if share >= 0.0005 or share == 0 else "<0.1%"


_SINGULAR = {"pages": "page", "events": "event", "sessions": "session", "users": "user"}
_ACTION_WORDS = {"excluded": "excluded", "lost": "unreadable", "repaired": "repaired", "kept": "kept unchanged"}
_POLICY_NEEDS = {"attribution": {"carts", "purchases", "values"}, "winsorization": {"values"}}
"""Policies that only affect metrics which need one of these data."""
_INTERVAL_WORDS = {"delta": "delta method", "bootstrap": "bootstrap"}
_MAX_METRICS = 8  # maximum number of metrics listed for one reason
_MAX_REASONS = 6  # maximum number of lines about missing values
_BIAS_TEXT = (
    "Position bias: users see results at the top more often, so clicks depend on the rank of a result as well as on its"
    " relevance. Read click metrics together with CTR by rank."
)


def position_bias_notes(metrics: Iterable[OnlineMetric]) -> tuple[Note, ...]:
    """Return the note on position bias if a metric depends on rank."""
    return (Note("position-bias", _BIAS_TEXT),) if any(metric.biased for metric in metrics) else ()


_ESTIMATED_DWELL = "dwell is estimated from the time of the next action, as the log has no dwell column"


def estimated_dwell_notes(log: InteractionLog, metrics: Iterable[OnlineMetric]) -> tuple[Note, ...]:
    """Return a note if metrics use dwell times, and no event of the log has one."""
    names = list(dict.fromkeys(str(metric).partition("(")[0] for metric in metrics if "dwell" in metric.needs))
    if not names or log.engine.rows(f"SELECT 1 AS n FROM {log.event} WHERE dwell_ms IS NOT NULL LIMIT 1"):
        return ()
    return (Note("estimated-dwell", f"{listed(names)}: {_ESTIMATED_DWELL}."),)


# Effective users are sufficient from this share of the users, or from this number.
_SUFFICIENT_SHARE, _SUFFICIENT_USERS = 0.75, 1000.0


def unequal_activity_notes(estimates: Iterable[OnlineEstimate], unit: str) -> tuple[Note, ...]:
    """Return a warning if unequal user activity may make confidence intervals of counts too narrow.

    Source of the coverage rates: simulation in docs/calibration.md, "Intervals over users".
    """
    rows = [
        row
        for row in estimates
        if row.metric.unit == "count" and row.low < row.high and row.slice is None
        if row.effective_units < min(_SUFFICIENT_SHARE * row.units, _SUFFICIENT_USERS)
    ]
    if not rows:
        return ()
    worst = min(rows, key=lambda row: row.effective_units)
    names = listed(list(dict.fromkeys(str(row.metric) for row in rows)))
    text = (
        f"Confidence intervals of {names} are too narrow if more active {unit}s have higher values. The effective"
        f" number of {unit}s is {worst.effective_units:,.0f} of {worst.units:,}. In simulations with 20 to 200"
        " users, 95% intervals contained the true value in 80-87% of cases if clicks per page increased slowly with"
        " activity (power 0.3). With a faster increase (power 0.6), the intervals contained the true value in 55-65% of"
        " cases."
    )
    return (Note("unequal-users", text, weight=worst.units / worst.effective_units, of="metrics"),)


def format_counts(counts: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Format counts with their nouns, in order.

    >>> format_counts([("pages", 1), ("events on pages", 1), ("users", 2000)])
    ('1 page', '1 event on pages', '2,000 users')
    """
    parts = [(*name.partition(" "), count) for name, count in counts]
    return tuple(f"{counted(count, _SINGULAR.get(word, word.removesuffix('s')))}{space}{suffix}"
                 for word, space, suffix, count in parts)  # fmt: skip


def describe_log(scores: OnlineScores) -> tuple[str, ...]:
    """Describe the log: counts, layout, and findings."""
    no_user_ids = has_no_user_ids(scores.findings)
    counts = format_counts((name, count) for name, count in scores.counts if name != "users" or not no_user_ids)
    return f"{clip(scores.log, _MAX_NAME)} ({scores.layout}): {', '.join(counts)}", *summarize_findings(scores.findings)


def summarize_findings(findings: Sequence[LogFinding]) -> tuple[str, ...]:
    """Summarize the findings, one sentence per action taken."""
    by_action = {
        word: [finding for finding in findings if finding.action == action and finding.rows]
        for action, word in _ACTION_WORDS.items()
    }
    return tuple(f"{word}: {', '.join(map(_row_count, matches))}" for word, matches in by_action.items() if matches)


def _row_count(finding: LogFinding) -> str:
    unit = {"folder": "file", "column": "column"}.get(finding.table, f"{finding.table} row")
    return f"{finding.rule} {finding.rows:,} of {counted(finding.of, unit)}"


def describe_method(scores: OnlineScores) -> str:
    """Describe how the confidence intervals were computed, and the policies that affect these metrics."""
    method = _INTERVAL_WORDS.get(scores.interval, scores.interval)
    needs = {name for metric in scores.metrics for name in metric.needs}
    policies = (
        f"{name.replace('_', ' ')}: {clip(value, 2 * _MAX_NAME)}"
        for name, value in relevant_policies(scores.policies, scores.findings)
        if not (name in _POLICY_NEEDS and needs.isdisjoint(_POLICY_NEEDS[name]))
    )
    limits = (
        f"{metric} counts at most {metric.parameters['t']:g} s of a visit"
        for metric in scores.metrics
        if metric.kind == "survival mean" and metric.parameters.get("q") is None
    )
    intervals = f"{percent(scores.level)} confidence intervals over {scores.over}s ({method})"
    return "; ".join([intervals, *policies, *limits])


def describe_missing(scores: OnlineScores) -> tuple[str, ...]:
    """Describe missing values and intervals (the first few), and unsupported metrics."""
    estimates = scores.estimates
    reasons = [f"{_metric_label(scores, row)}: {_no_value_reason(row)}" for row in estimates if math.isnan(row.value)]
    reasons += [
        f"{_metric_label(scores, row)}: no confidence interval "
        + (f"(requires 2 {scores.over}s, got {row.units})" if row.units < 2 else "(not available for this value)")
        for row in estimates
        if not math.isnan(row.value) and math.isnan(row.low)
    ]
    omitted = len(reasons) - _MAX_REASONS
    more = [f"and {omitted:,} more"] if omitted > 0 else []
    return *reasons[:_MAX_REASONS], *more, *_unsupported_metrics(scores)


def _metric_label(scores: OnlineScores, estimate: OnlineEstimate) -> str:
    return str(estimate.metric) if estimate.slice is None else f"{estimate.metric} on {scores.labels[estimate.slice]}"


def _no_value_reason(estimate: OnlineEstimate) -> str:
    if estimate.denominator > 0:
        reasons = {"survival": "the Kaplan-Meier curve ends before this time", "quantile": "no value at this quantile"}
        return reasons.get(estimate.metric.kind, "no value")
    return "the denominator is 0"


def _unsupported_metrics(scores: OnlineScores) -> tuple[str, ...]:
    by_reason: dict[str, list[str]] = {}
    for metric, reason in scores.refused:
        by_reason.setdefault(reason, []).append(str(metric))
    return tuple(
        f"{_first_names(names)}: not available, because {clip_words(text)}" for text, names in by_reason.items()
    )


def _first_names(names: Sequence[str]) -> str:
    omitted = len(names) - _MAX_METRICS
    if omitted < 2:  # "and 1 more" is not shorter than the name
        return ", ".join(names)
    return f"{', '.join(names[:_MAX_METRICS])} and {omitted:,} more"
