"""Write docs/real-logs.md, what four published logs can tell and what is wrong with them: ``real_logs.py DATA``.

DATA is a folder with ``logs``: ``ubi_esci``, ``ubi_chorus``, ``trec_session`` and ``session2014_graphcm``. The tests
compare the page with what this makes where the data is at hand.
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
from judged.online.findings import doubts
from judged.online.layout import format_amount as amount
from judged.online.layout import format_estimate as value_of
from judged.online.layout import format_interval as span_of
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-logs.md"
NOW = 1_767_225_600_000  # 2026-01-01: nothing in these logs is later, whenever this runs
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
    parts = [
        HEAD,
        overview((esci, chorus, trec, graphcm)),
        *of_esci(esci, records(logs / "ubi_esci" / "ubi_queries_events.ndjson.gz")),
        *of_chorus(chorus, records(logs / "ubi_chorus" / "log_events.zip")),
        *of_trec(trec),
        *of_graphcm(graphcm),
        TAIL,
    ]
    return "\n\n".join(parts) + "\n"


def overview(logs: tuple[InteractionLog, ...]) -> str:
    """Return the table of sizes of each log and whether it passes the check."""
    rows: list[tuple[str, ...]] = []
    for log in logs:
        units = len(log.serp.to_arrow("user")["user"].unique())
        sizes = tuple(dict(check_log(log).counts)[name] for name in ("pages", "events"))
        verdict = "not fit" if doubts(log.accounts, log.findings) else "fit"
        over = f"{units:,} {'users' if 'users' in log.has else 'sessions'}"
        rows.append((log.name, log.layout, *(f"{size:,}" for size in sizes), over, verdict))
    return TextTable(("log", "layout", "pages", "events", "intervals over", "check"), tuple(rows), labels=2).markdown()


def of_esci(log: InteractionLog, raw: Rows) -> list[str]:
    """UBI's sample: three front ends in one file."""
    queries = [row for row in raw if "action_name" not in row]
    listed = [row["query_response_hit_ids"] for row in queries if row.get("query_response_hit_ids") is not None]
    clicks = Counter(row.get("client_id") for row in raw if row.get("action_name") == "click")
    max_clicks = clicks.most_common(1)[0][1]
    names = ("PageCTR", "ImpressionCTR@10", "ZeroResults", "SatisfiedClicks", "Abandonment", "AddToCart")
    scores = online_metrics(log, list(names))
    scores_by_application = online_metrics(
        log, ["PageCTR", "ZeroResults", "SatisfiedClicks", "ObservedVisits"], by="application"
    )
    zero, naive = scores.of("ZeroResults"), sum(not hit_ids for hit_ids in listed)
    satisfied = scores.of("SatisfiedClicks")
    num_unknown_ids, application = finding(log, "unknown-query-id"), "esci_ubi_sample"
    observed_visits = scores_by_application.of("ObservedVisits", application)
    return [
        "## UBI sample: three front ends in one file",
        wrapped(
            "The sample log of OpenSearch's search-relevance plug-in: products and queries are those of Amazon's ESCI,"
            " the behavior is of demonstrations. Three applications wrote it, each in a dialect of its own: ranks from"
            " 0 and from 1, times as ISO 8601 and as milliseconds, lists with every query and with none."
        ),
        found_in(log),
        measured(scores),
        wrapped(
            f"**Zero results.** Of the {len(listed)} query records that bring a list, {naive} bring an empty one:"
            f" {naive / len(listed):.1%}, and that is what a count of empty lists gives. But"
            f" {finding(log, 'facet-request')} of the {len(queries)} query records are the front end's requests for"
            " facets: of size 0, or with an empty list under a query_id that has a full one too. Of the pages with a"
            f" list {amount(zero.numerator)} of {amount(zero.denominator)} were empty: {value_of(zero)}"
            f" {span_of(zero)}. The interval is wide, as these pages are those of {zero.units} users."
        ),
        wrapped(
            f"**Clicks.** One user made {max_clicks} of the {clicks.total()} events named `click`"
            f" ({max_clicks / clicks.total():.0%}). {value_of(satisfied)} of the clicks satisfied, with an interval"
            f" over users of {span_of(satisfied)}: one over clicks would be narrow, and about one person. By"
            " application it is another number each time:"
        ),
        sliced(scores_by_application),
        wrapped(
            f"Only {value_of(observed_visits)} of the visits of `{application}` were seen to end, which is why nearly"
            " all of its clicks satisfied: its sessions end with a click, and a click that nothing follows counts as"
            " one that satisfied."
        ),
        wrapped(
            "**What to conclude.** Nothing about a mean over this file: it mixes front ends, and the check fails it, as"
            f" {num_unknown_ids} events are on pages that nobody logged. What it is good for is testing a reader;"
            " ours was tried on it."
        ),
    ]


def of_chorus(log: InteractionLog, raw: Rows) -> list[str]:
    """Chorus: made by a program, and it shows."""
    queries = [row for row in raw if "action_name" not in row]
    events = [row for row in raw if "action_name" in row]
    empty = {row["query_id"]: not row["query_response_object_ids"] for row in queries}
    texts: dict[str, set[bool]] = {}
    for row in queries:
        texts.setdefault(row["user_query"], set()).add(empty[row["query_id"]])
    sizes = Counter(json.loads(row["query"])["size"] for row in queries)
    search_events = [row for row in events if row["action_name"] == "on_search"]
    agree = sum((row["event_attributes"]["result_count"] == 0) == empty[row["query_id"]] for row in search_events)
    times = sorted(row["timestamp"] for row in raw)
    minutes, users = (times[-1] - times[0]) / 60_000, len({row["client_id"] for row in raw})
    sessions = log.session.to_arrow("session").num_rows
    num_always_empty, num_varying = (
        sum(emptiness == {True} for emptiness in texts.values()),
        sum(len(emptiness) == 2 for emptiness in texts.values()),
    )
    mixed = f", but for {num_varying}" if num_varying else ""
    names = ("PageCTR", "ClicksPerPage", "TimeToFirstClick", "SatisfiedClicks", "DwellOver", "ObservedVisits",
             "ZeroResults", "Abandonment", "AddToCart", "Conversion")  # fmt: skip
    scores = online_metrics(log, list(names))
    zero, first_click, page_ctr = scores.of("ZeroResults"), scores.of("TimeToFirstClick"), scores.of("PageCTR")
    clicks_per_page, satisfied, over = (scores.of(name) for name in ("ClicksPerPage", "SatisfiedClicks", "DwellOver"))
    num_beyond_list = finding(log, "rank-beyond-list")
    return [
        "## Chorus: a log that a program made",
        wrapped(
            f"The log of the Chorus demonstration shop, in a layout of UBI before 1.3. {sessions:,} sessions of {users}"
            f" users lie in {minutes:.1f} minutes. The check finds little wrong, and so it should: a check sees whether"
            " rows can be counted, not whether anybody did what they say."
        ),
        found_in(log),
        measured(scores),
        wrapped(
            f"**Zero results.** {value_of(zero)} of the pages are empty. That is no artifact of facets: every one of"
            f" the {len(queries):,} requests asks for {' or '.join(str(size) for size in sizes)} results, and in"
            f" {agree:,} of {len(search_events):,} search events the number of results that the front end saw says the"
            f" same. The log does say so. What it asked says why: of {len(texts):,} different texts"
            f" {num_always_empty:,} never found anything, the other {len(texts) - num_always_empty - num_varying}"
            f" always did{mixed}. The former are mostly phrases such as “syndicate visionary niches” or “iterate"
            " granular supply-chains”, asked of a catalog of electronics by a generator of texts. The rate is true of"
            " the log, and says nothing of any shop."
        ),
        wrapped(
            f"**Clicks.** The first click comes {value_of(first_click)} after the page, {span_of(first_click)}. No"
            f" person is that fast. Of the pages that were not empty {value_of(page_ctr)} have a click; a page with one"
            f" has {clicks_per_page.numerator / page_ctr.numerator:.2f} opened results in the mean. Positions are no"
            f" better: {num_beyond_list:,} of them lie behind the end of the page's list, and name objects that are not"
            f" in it. {amount(satisfied.numerator)} of {amount(satisfied.denominator)} clicks count as satisfied,"
            f" though {value_of(over)} of the visits last 30 seconds: they are the last of their session, and nobody"
            " saw their end."
        ),
        wrapped(
            "**What to conclude.** Use it to test that a pipeline runs. Its intervals are narrow because it is large,"
            " and they are intervals for what the generator does. That an interval is narrow says nothing about where"
            " the rows came from: the time to the first click, and the span of the times, say that within a minute of"
            " looking."
        ),
    ]


def of_trec(log: InteractionLog) -> list[str]:
    """TREC Session 2012: people, few of them."""
    names = ("PageCTR", "CTRAtRank(r=1)", "SatisfiedClicks", "TimeToFirstClick(q=0.5)", "Abandonment", "Reformulation",
             "ZeroResults", "SessionSuccess")  # fmt: skip
    scores = online_metrics(log, list(names))
    zero, session = scores.of("ZeroResults"), scores.of("SessionSuccess")
    asked = finding(log, "current-query")
    return [
        "## TREC Session 2012: people with a task",
        wrapped(
            "People were recruited, given a topic, and recorded while they searched the web and read. Small, clean, and"
            " the only one of the four with real reading times: every visit has a beginning and an end."
        ),
        found_in(log),
        measured(scores),
        wrapped(
            f"**What it can tell.** {asked} queries are no pages, as the track ends each session with a query that"
            " participants were to answer. That is by design: the check lists them, and does not hold them against the"
            " log, which is fit. The track of 2012 does not say who was who: each session is a user of its own, and"
            " intervals are too narrow where one person had several. There is no number of results found, so that a"
            f" page counts as empty where its list is: {amount(zero.numerator)} of {amount(zero.denominator)} pages."
        ),
        wrapped(
            f"**What to conclude.** About {session.units} sessions tell rates to within ten points: {value_of(session)}"
            f" {span_of(session)} of the sessions came to a visit of 30 seconds. A change of five points would not be"
            " seen. Whether judgments predict what these people did is on [another page](offline-online.md)."
        ),
    ]


def of_graphcm(log: InteractionLog) -> list[str]:
    """TREC Session 2014: pages with labels, without a clock."""
    names = ("PageCTR", "CTRAtRank(r=1)", "FirstClickRR", "Abandonment", "Reformulation", "SatisfiedClicks",
             "ZeroResults")  # fmt: skip
    scores = online_metrics(log, list(names))
    empty = scores.of("ZeroResults")
    why = next(reason for metric, reason in scores.refused if metric.name == "SatisfiedClicks")
    return [
        "## TREC Session 2014: labeled pages without a clock",
        wrapped(
            "The pages of the 2014 track for which a label is known for each result, as GraphCM published them."
            " Sessions are in order; there are no times and no users."
        ),
        found_in(log),
        measured(scores),
        wrapped(
            "**What it can tell.** Where clicks are, and what was asked next. Not how long anything was looked at:"
            f" SatisfiedClicks is refused ({why}), it is not 0. And that {amount(empty.numerator)} of"
            f" {amount(empty.denominator)} pages are empty is a property of the selection: a page without results has"
            " no labels, and is not in the file."
        ),
        wrapped(
            "**What to conclude.** Half as many of its pages have a click as in 2012. That is no finding about people:"
            " the pages were chosen because they are labeled, and topics and engine are others."
        ),
    ]


def records(path: Path) -> Rows:
    """Read the JSON of each line as it stands, without the lines of indexes."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            text = packed.read(packed.namelist()[0]).decode()
    else:
        text = gzip.decompress(path.read_bytes()).decode()
    rows = (json.loads(line[line.index("{") :]) for line in io.StringIO(text) if "{" in line)
    return [row for row in rows if "index" not in row]


def finding(log: InteractionLog, rule: str) -> int:
    """Give the rows that met a rule."""
    return sum(one.rows for one in log.findings if one.rule == rule)


def found_in(log: InteractionLog) -> str:
    """Lay out what is wrong with a log."""
    if not log.findings:
        return "The check finds nothing wrong."
    rows = tuple(
        (one.rule, one.table, one.done, f"{one.rows:,}", f"{one.of:,}", f"{one.share:.1%}") for one in log.findings
    )
    return TextTable(("rule", "of", "done", "rows", "of rows", "share"), rows, labels=3).markdown()


def measured(scores: OnlineScores) -> str:
    """Lay out metrics with their intervals."""
    rows = tuple(
        (str(one.metric), value_of(one), span_of(one), amount(one.numerator), amount(one.denominator), f"{one.units:,}")
        for one in scores.estimates
    )
    header = ("metric", "value", "95 % interval", "numerator", "denominator", f"{scores.over}s")
    return TextTable(header, rows).markdown()


def sliced(scores: OnlineScores) -> str:
    """Lay out metrics by slice."""
    slices = [name for name, _ in scores.slices]
    rows = tuple(
        (str(metric), *(valued(one) for one in (scores.of(metric, name) for name in slices)))
        for metric in scores.metrics
    )
    return TextTable((f"metric, by {scores.by}", *slices), rows).markdown()


def valued(one: OnlineEstimate) -> str:
    """Write an estimate with its interval, or that there is none."""
    return "-" if math.isnan(one.value) else f"{value_of(one)} {span_of(one)}"


def wrapped(text: str) -> str:
    """Break a paragraph into lines."""
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


HEAD = """# Four published logs: what is wrong with them, and what they can tell

Made by `tools/real_logs.py` from logs that others published. None of them is in this repository; what each rule means
stands under [log checks](log-checks.md), what each metric means under [online metrics](online-metrics.md). Intervals
are 95 %, over users, or over sessions where a log names no users."""

TAIL = """## Reading it

- A rate is as good as what it divides by. The first number that a log gives, empty lists by records, was ten times the
  true one in one of these logs, and true but meaningless in another.
- Users, not clicks, are what there is many of. Where one user brings most of the clicks the interval over users says
  so, and no interval over clicks can.
- A check finds rows that cannot be counted. That rows were made up it cannot find; times usually give it away.
- What a log does not hold is not 0. It is refused, with the reason."""


if __name__ == "__main__":
    sys.exit(main())
