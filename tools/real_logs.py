"""Write docs/real-logs.md, about metrics and problems of four published logs: ``real_logs.py DATA``.

DATA is a folder with ``logs``: ``ubi_esci``, ``ubi_chorus``, ``trec_session``, and ``session2014_graphcm``. If the data
is available, the tests compare the page with the output.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import sys
import textwrap
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from judged.online import InteractionLog, OnlineEstimate, OnlineScores, check_log, online_metrics, read_log
from judged.online.findings import unfit_reasons
from judged.online.layout import format_amount as amount
from judged.online.layout import format_estimate as value
from judged.online.layout import format_interval as interval
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-logs.md"
NOW = 1_767_225_600_000  # 2026-01-01, after all rows of these logs; a fixed time keeps the page reproducible
SHARED_NAMES = ("PageCTR", "SatisfiedClicks", "Abandonment", "ZeroResults")
NAMES = (
    SHARED_NAMES,
    (*SHARED_NAMES, "TimeToFirstClick", "DwellOver"),
    (*SHARED_NAMES, "SessionSuccess"),
    SHARED_NAMES,
)
MIN_SHARE = 0.05  # of the rows that a rule applies to, for the table of problems
Rows = list[dict[str, Any]]


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Return the page."""
    logs = data / "logs"
    esci = read_log(logs / "ubi_esci" / "ubi_queries_events.ndjson.gz", name="UBI sample", now_ms=NOW)
    chorus = read_log(logs / "ubi_chorus" / "log_events.zip", name="Chorus", now_ms=NOW)
    trec = read_log(logs / "trec_session" / "sessiontrack2012.xml.gz", name="TREC Session 2012", now_ms=NOW)
    graphcm = read_log(
        logs / "session2014_graphcm" / "normalized_with_labels.jsonl.gz", mapping="graphcm", name="TREC Session 2014"
    )
    all_logs = (esci, chorus, trec, graphcm)
    scores = [online_metrics(log, list(names)) for log, names in zip(all_logs, NAMES, strict=True)]
    parts = [
        HEAD,
        overview_table(all_logs),
        "## Problems",
        wrapped("Rules that apply to at least 5% of the rows ([log checks](log-checks.md) describes them):"),
        problem_table(all_logs),
        "## Metrics",
        wrapped(
            "Intervals are over users, or over sessions for logs without user IDs"
            " ([definitions](online-metrics.md)). `-`: the log does not support the metric."
        ),
        metric_table(all_logs, scores),
        *esci_section(esci, scores[0], read_records(logs / "ubi_esci" / "ubi_queries_events.ndjson.gz")),
        *chorus_section(chorus, scores[1], read_records(logs / "ubi_chorus" / "log_events.zip")),
        *trec_section(trec, scores[2]),
        *graphcm_section(scores[3]),
        TAIL,
    ]
    return "\n\n".join(parts) + "\n"


def overview_table(logs: tuple[InteractionLog, ...]) -> str:
    """Return the table of log sizes, and whether each log passes the check."""
    rows: list[tuple[str, ...]] = []
    for log in logs:
        units = len(log.serp.to_arrow("user")["user"].unique())
        sizes = tuple(dict(check_log(log).counts)[name] for name in ("pages", "events"))
        verdict = "not fit" if unfit_reasons(log.accounts, log.findings) else "fit"
        over = f"{units:,} {'users' if 'users' in log.has else 'sessions'}"
        rows.append((log.name, log.layout, *(f"{size:,}" for size in sizes), over, verdict))
    return TextTable(("log", "layout", "pages", "events", "intervals over", "check"), tuple(rows), labels=2).markdown()


def problem_table(logs: tuple[InteractionLog, ...]) -> str:
    """Return the table of the rules that apply to many rows."""
    rows = tuple(
        (log.name, finding.rule, finding.action, f"{finding.rows:,}", f"{finding.share:.1%}")
        for log in logs
        for finding in log.findings
        if finding.share >= MIN_SHARE
    )
    return TextTable(("log", "rule", "action", "rows", "share"), rows, labels=3).markdown()


def metric_table(logs: tuple[InteractionLog, ...], scores: list[OnlineScores]) -> str:
    """Return the table of metrics that at least three logs support."""
    rows = tuple(
        (
            name,
            *(
                format_with_interval(log_scores.of(name)) if name in supported_metrics(log_scores) else "-"
                for log_scores in scores
            ),
        )
        for name in SHARED_NAMES
    )
    return TextTable(("metric", *(log.name for log in logs)), rows).markdown()


def supported_metrics(scores: OnlineScores) -> set[str]:
    """Return the names of the metrics that have an estimate."""
    return {str(estimate.metric) for estimate in scores.estimates}


def esci_section(log: InteractionLog, scores: OnlineScores, raw: Rows) -> list[str]:
    """Return the section on the UBI sample, in which three front ends are mixed."""
    queries = [row for row in raw if "action_name" not in row]
    num_facet_requests = count_rows(log, "facet-request")
    hit_lists = [row["query_response_hit_ids"] for row in queries if row.get("query_response_hit_ids") is not None]
    clicks = Counter(row.get("client_id") for row in raw if row.get("action_name") == "click")
    max_clicks = clicks.most_common(1)[0][1]
    scores_by_application = online_metrics(log, ["PageCTR", "SatisfiedClicks", "ObservedVisits"], by="application")
    zero, num_empty = scores.of("ZeroResults"), sum(not hit_ids for hit_ids in hit_lists)
    satisfied = scores.of("SatisfiedClicks")
    num_unknown_ids, application = count_rows(log, "unknown-query-id"), "esci_ubi_sample"
    observed_visits = scores_by_application.of("ObservedVisits", application)
    return [
        "## UBI sample: three front ends in one file",
        wrapped(
            "The sample log of OpenSearch's search-relevance plug-in has products and queries of Amazon's ESCI, and"
            " actions from demonstrations. Three applications wrote it with different conventions for ranks, times, and"
            " lists."
        ),
        wrapped(
            f"**Zero results.** {num_empty} of the {len(hit_lists)} query records with a list have an empty one:"
            f" {num_empty / len(hit_lists):.1%}. But {num_facet_requests} of the {len(queries)} query records are"
            f" facet requests. Of the pages with a list, {amount(zero.numerator)} of {amount(zero.denominator)} were"
            f" empty: {value(zero)} {interval(zero)}. The interval is wide, because these pages are from"
            f" {zero.units} users."
        ),
        wrapped(
            f"**Clicks.** One user made {max_clicks} of the {clicks.total()} `click` events"
            f" ({max_clicks / clicks.total():.0%}). Therefore the interval of SatisfiedClicks, {value(satisfied)}"
            f" {interval(satisfied)}, is wide. An interval over clicks would be narrow and describe one person. The"
            " applications differ:"
        ),
        slice_table(scores_by_application),
        wrapped(
            f"Only {value(observed_visits)} of the visits of `{application}` have an observed end. The others are"
            " the last of their session, and count as satisfied."
        ),
        wrapped(
            f"**Conclusion.** Use this log to test a reader, not for means: {num_unknown_ids} events are on pages that"
            " were not logged."
        ),
    ]


def chorus_section(log: InteractionLog, scores: OnlineScores, raw: Rows) -> list[str]:
    """Return the section on Chorus, a generated log."""
    queries = [row for row in raw if "action_name" not in row]
    events = [row for row in raw if "action_name" in row]
    is_empty = {row["query_id"]: not row["query_response_object_ids"] for row in queries}
    emptiness_by_query: dict[str, set[bool]] = {}
    for row in queries:
        emptiness_by_query.setdefault(row["user_query"], set()).add(is_empty[row["query_id"]])
    sizes = Counter(json.loads(row["query"])["size"] for row in queries)
    search_events = [row for row in events if row["action_name"] == "on_search"]
    agree = sum((row["event_attributes"]["result_count"] == 0) == is_empty[row["query_id"]] for row in search_events)
    times = sorted(row["timestamp"] for row in raw)
    minutes, users = (times[-1] - times[0]) / 60_000, len({row["client_id"] for row in raw})
    sessions = log.session.to_arrow("session").num_rows
    num_always_empty, num_varying = (
        sum(emptiness == {True} for emptiness in emptiness_by_query.values()),
        sum(len(emptiness) == 2 for emptiness in emptiness_by_query.values()),
    )
    mixed = f", except for {num_varying}" if num_varying else ""
    num_queries = len(emptiness_by_query)
    zero, first_click = scores.of("ZeroResults"), scores.of("TimeToFirstClick")
    satisfied, over = scores.of("SatisfiedClicks"), scores.of("DwellOver")
    num_beyond_list = count_rows(log, "rank-beyond-list")
    return [
        "## Chorus: a generated log",
        wrapped(
            f"The log of the Chorus demonstration shop has {sessions:,} sessions of {users} users within"
            f" {minutes:.1f} minutes. The check passes, because a check cannot detect generated rows."
        ),
        wrapped(
            f"**Zero results.** {value(zero)} of the pages are empty. Facet requests are not the reason: all"
            f" {len(queries):,} requests ask for {' or '.join(str(size) for size in sizes)} results, and"
            f" {agree:,} of {len(search_events):,} search events agree. Of {num_queries:,} different queries,"
            f" {num_always_empty:,} never found anything, and {num_queries - num_always_empty - num_varying} always"
            f" did{mixed}. The former are generated phrases such as “syndicate visionary niches”, in a catalog of"
            " electronics."
        ),
        wrapped(
            f"**Clicks.** The mean time to the first click is {value(first_click)} {interval(first_click)}, too fast"
            f" for a person. {num_beyond_list:,} positions are after the end of the page's list."
            f" {amount(satisfied.numerator)} of {amount(satisfied.denominator)} clicks count as satisfied because they"
            f" are the last of their session, although {value(over)} of the visits last 30 seconds."
        ),
        wrapped(
            "**Conclusion.** Use it to test that a pipeline runs. A narrow interval does not show that the rows are"
            " from people; times usually reveal generated rows."
        ),
    ]


def trec_section(log: InteractionLog, scores: OnlineScores) -> list[str]:
    """Return the section on TREC Session 2012, a log of few people."""
    zero, session = scores.of("ZeroResults"), scores.of("SessionSuccess")
    num_current = count_rows(log, "current-query")
    return [
        "## TREC Session 2012: people with a task",
        wrapped(
            "Recruited people got a topic, searched the web, and read. It is the only one of the four logs with real"
            " reading times: every visit has a beginning and an end."
        ),
        wrapped(
            f"**Details.** {num_current} queries are not pages, because each session ends with a query for the"
            " participants of the track. Sessions have no user IDs, so intervals are too narrow if one person had"
            " several. A page counts as empty if its list is empty:"
            f" {amount(zero.numerator)} of {amount(zero.denominator)} pages."
        ),
        wrapped(
            f"**Conclusion.** {session.units} sessions estimate rates to within ten points: {value(session)}"
            f" {interval(session)} of the sessions had a visit of 30 seconds. A change of five points is not"
            " detectable. [Another study](offline-online.md) compares these people's clicks with judgments."
        ),
    ]


def graphcm_section(scores: OnlineScores) -> list[str]:
    """Return the section on TREC Session 2014: pages with labels, without times."""
    zero = scores.of("ZeroResults")
    return [
        "## TREC Session 2014: labeled pages without a clock",
        wrapped(
            "These are the pages of the 2014 track with a label for each result, as GraphCM published them. Sessions"
            " are in order, without times and users."
        ),
        wrapped(
            "**Conclusion.** The log shows clicks and reformulations, but not dwell times, so SatisfiedClicks is"
            f" unknown. {amount(zero.numerator)} of {amount(zero.denominator)} pages are empty, because pages without"
            " results have no labels and were not published. Half as many pages have a click as in 2012, but pages,"
            " topics, and engine differ."
        ),
    ]


def read_records(path: Path) -> Rows:
    """Read the JSON record of each line, without the index lines of bulk files."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            text = archive.read(archive.namelist()[0]).decode()
    else:
        text = gzip.decompress(path.read_bytes()).decode()
    rows = (json.loads(line[line.index("{") :]) for line in io.StringIO(text) if "{" in line)
    return [row for row in rows if "index" not in row]


def count_rows(log: InteractionLog, rule: str) -> int:
    """Return the number of rows to which a rule applies."""
    return sum(finding.rows for finding in log.findings if finding.rule == rule)


def slice_table(scores: OnlineScores) -> str:
    """Return the table of metrics by slice."""
    slices = [name for name, _ in scores.slices]
    rows = tuple(
        (str(metric), *(format_with_interval(scores.of(metric, name)) for name in slices)) for metric in scores.metrics
    )
    return TextTable((f"metric, by {scores.by}", *slices), rows).markdown()


def format_with_interval(estimate: OnlineEstimate) -> str:
    """Format an estimate with its interval; '-' if there is no value."""
    return "-" if math.isnan(estimate.value) else f"{value(estimate)} {interval(estimate)}"


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


HEAD = """# Four published logs: a case study

Which numbers of a published interaction log can you trust? This study checks four logs and computes their metrics. Each
section has the problems of one log and a conclusion."""

TAIL = """## Conclusions

- Check the denominator of a rate. The share of empty lists in the raw records was ten times the correct value in one
  log, and correct but meaningless in another.
- Use intervals over users. If one user has most of the clicks, an interval over users is wide; an interval over clicks
  does not show it.
- A check finds rows that cannot be counted, but not rows that a program generated.
- For a metric that a log does not support, judged shows the reason, not 0.

## Repeat

`python tools/real_logs.py DATA` writes this page. `DATA` holds the logs, which are not in this repository."""


if __name__ == "__main__":
    sys.exit(main())
