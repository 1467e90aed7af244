"""Write docs/offline-online.md, about predicting user behavior from judgments: ``offline_online.py DATA``.

DATA is a folder with ``logs/trec_session`` (the log of the TREC 2012 Session track with its judgments) and
``logs/session2014_graphcm`` (pages of the 2014 track with a label for each result). If the data is available, the tests
compare the page with the output.
"""

from __future__ import annotations

import gzip
import json
import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from judged.data import Qrels
from judged.errors import JudgedWarning
from judged.online.engine import Database
from judged.online.log import EVENT, SERP, SESSION, SHOWN, InteractionLog
from judged.online.offline import OfflineOnline, PreferenceAgreement, against_qrels, preference_agreement
from judged.online.storage import read_log
from judged.results import Table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "offline-online.md"
OUTCOMES = ("satisfied", "clicked")
MEASURES = ("nDCG@10", "P@10", "RR", "ERR(max=4)@10")
TYPES = {"int64": pa.int64(), "int32": pa.int32(), "array<int32>": pa.list_(pa.int32()),
          "float64": pa.float64(), "string": pa.string(),
         "boolean": pa.bool_()}  # fmt: skip


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Return the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        logs = data / "logs"
        parts = [HEAD, *session_2012(logs / "trec_session"), *session_2014(logs / "session2014_graphcm")]
    return "\n\n".join([*parts, TAIL]) + "\n"


def session_2012(folder: Path) -> list[str]:
    """Return the section on searchers with a topic each, full judgments, and times."""
    log = read_log(folder / "sessiontrack2012.xml.gz", name="TREC 2012 Session", bots="keep")
    qrels = Qrels.read(folder / "qrels" / "session2012.qrels", name="its judgments")
    pages = against_qrels(log, qrels, outcomes=OUTCOMES, measures=MEASURES, unit="session")
    preferences = preference_agreement(log, qrels, rules=["above", "last-above", "earlier", "next"], unit="session")
    introduction = (
        f"People got a topic, queried a web search engine, and read the results. The log has {pages.units} sessions"
        f" with times. {pages.pages_used} of {pages.pages} pages have results and a judged topic, and"
        f" {pages.judged:.1%} of"
        " their first 10 results are judged. A page is *satisfied* if the user viewed an opened result for 30 seconds:"
        f" {pages.of('nDCG@10', 'satisfied').mean:.0%} of the pages."
    )
    return [
        "## TREC 2012 Session: searchers with a topic",
        wrapped(introduction),
        relation_table(pages).markdown(),
        wrapped(describe_relations(pages)),
        wrapped(describe_topic_means(pages)),
        "Preferences between results:",
        agreement_table(preferences).markdown(),
    ]


def session_2014(folder: Path) -> list[str]:
    """Return the section on a larger log, with judgments of displayed results only, and without times."""
    log, qrels = read_labeled_log(folder / "normalized_with_labels.jsonl.gz")
    measures = ("P@10", "DCG@10", "ERR(max=4)@10", "nDCG@10")
    pages = against_qrels(log, qrels, measures=measures, outcomes=["clicked"], unit="session")
    preferences = preference_agreement(log, qrels, rules=["above", "previous", "next"], unit="session")
    introduction = (
        f"These {pages.pages_used} pages of {pages.units} sessions have a label from -2 to 4 for each of the ten"
        " results,"
        f" and no times. {pages.of('P@10', 'clicked').mean:.0%} of them have a click. The ideal ranking of nDCG"
        " contains only results that were shown for the query. It therefore measures the order of a page, not its"
        " quality; use P, DCG, or ERR instead. Topics are single queries with almost identical pages, so the column"
        " *within topics* cannot show an effect."
    )
    return [
        "## TREC 2014 Session: labels of displayed results",
        wrapped(introduction),
        relation_table(pages).markdown(),
        wrapped(describe_relations(pages)),
        "Preferences between results:",
        agreement_table(preferences).markdown(),
    ]


def read_labeled_log(path: Path) -> tuple[InteractionLog, Qrels]:
    """Read a log with labels; return it with the highest label of each result by query."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    serps: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    grades: dict[str, dict[str, float]] = {}
    for i, row in enumerate(rows):
        session, query_grades = int(row["session_id"]), grades.setdefault(row["query_id"], {})
        serps.append({"serp": i, "query_id": f"{i:05}", "session": session, "user": session, "time_ms": i * 1000,
                      "query": row["query"], "query_norm": row["query"], "filtered": False, "page": 1, "first_rank": 1,
                      "n_shown": len(row["results"]), "topic": row["query_id"]})  # fmt: skip
        for rank, (doc, grade) in enumerate(zip(row["results"], row["relevance"], strict=True), 1):
            results.append({"serp": i, "rank": rank, "object_id": doc})
            query_grades[doc] = max(grade, query_grades.get(doc, grade))
        events += [{"event": 100 * i + rank, "serp": i, "session": session, "user": session, "time_ms": i * 1000,
                    "action": "click", "object_id": row["results"][rank - 1], "rank": rank}
                   for rank in row["clicks"]]  # fmt: skip
    sessions = [{"session": session_id, "user": session_id, "start_ms": 0, "end_ms": 0, "n_serps": 0, "n_events": 0}
                for session_id in sorted({row["session"] for row in serps})]  # fmt: skip
    engine = Database()
    tables = [
        engine.register(build_table(rows_of_table, columns), name)
        for name, rows_of_table, columns in (("serp", serps, SERP), ("shown", results, SHOWN), ("event", events, EVENT),
                                    ("session", sessions, SESSION))
    ]  # fmt: skip
    log = InteractionLog(*tables, name="TREC 2014 Session", has_time=False, attributes=("topic",))
    return log, Qrels.of(grades, name="its labels")


def build_table(rows: list[dict[str, Any]], columns: Any) -> Any:
    """Create an Arrow table of rows."""
    fields = [pa.field(column.name, TYPES[column.type]) for column in columns]
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, *([pa.field("topic", pa.string())]
                                                                    if "topic" in rows[0] else [])]))  # fmt: skip


def relation_table(result: OfflineOnline) -> Table:
    """Return the table of relations over all pages."""
    rows = [row for row, relation in enumerate(result.relations) if relation.slice is None]
    return replace(result.table("relations").take(rows), labels=2).showing(
        "measure", "outcome", "probability", "within_topics"
    )


def agreement_table(result: PreferenceAgreement) -> Table:
    """Return the table of agreement by rule."""
    return result.table().showing("rule", "decided", "units", "agreement", "expected", "gain")


def describe_relations(result: OfflineOnline) -> str:
    """Describe which measures predict which outcomes."""
    sentences: list[str] = []
    for outcome in result.outcomes:
        overall, within = (
            sum(getattr(result.of(measure, outcome), column).excludes(0.5) for measure in result.measures)
            for column in ("probability", "within_topics")
        )
        sentences.append(
            f"For *{outcome}*, {overall} of {len(result.measures)} intervals exclude chance, within topics {within}."
        )
    tests = 2 * len(result.measures) * len(result.outcomes)
    return " ".join([*sentences, f"The {tests} intervals of {result.level:.0%} are not corrected for their number."])


def describe_topic_means(result: OfflineOnline) -> str:
    """Describe the correlation of topic means."""
    rho_texts = [
        f"{topic_row.rho} for *{topic_row.outcome}*" for topic_row in result.topics if topic_row.measure == "nDCG@10"
    ]
    topics = result.topics[0]
    return (
        f"Spearman's rho of the means of {topics.n} topics with at least {result.min_pages} pages is, for nDCG@10,"
        f" {' and '.join(rho_texts)}."
    )


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


HEAD = """# Do judgments predict clicks? A case study

Do pages with better scores get more clicks and more satisfied users? This study scores the pages of two TREC logs with
their judgments, and compares the scores with the outcomes of the pages. It also tests whether preferences from clicks
agree with the grades.

- **concordance**: of two pages with different outcomes, the probability that the page with the better outcome has the
  better score. Chance is 0.5.
- **within topics**: the same for pages of one topic. Easy topics have no effect on it.
- **agreement**: share of preferences between two results with different grades that agree with the grades. A click
  prefers a result to others that the user passed over (Joachims et al. 2005).
- **expected by rank**: agreement of pairs at the same ranks on all pages, regardless of clicks. Agreement without it is
  misleading: with `above` and `last-above` the preferred result is always lower, with `next` always directly above.
- **gain**: agreement minus expected agreement, the information in clicks beyond ranks.

All 95% intervals are over sessions, because pages of a session are correlated. Only those of Spearman's rho are over
topics."""

TAIL = """## Conclusions

- Over all pages, scores predict clicks on both logs. Within topics, and for satisfied pages, no relation is shown.
- Clicks contain information beyond ranks: the gains of all rules except `earlier` and `next` in 2012 are above 0.

## Limits

- An interval that includes chance does not show that judgments are useless. One that excludes chance does not show that
  a better system satisfies users more: one engine made the pages, and the searchers had assigned topics.
- A page without a click may have answered the question. People with the task to find everything click more than others.
- Clicks are more frequent at top ranks, so measures that emphasize top ranks predict clicks more easily.
- Pages are scored only if most of their first ten results are judged.

## Repeat

`python tools/offline_online.py DATA` writes this page. For your own log:

```sh
judged online offline LOG my.qrels --topics my-topics.tsv
judged online offline LOG my.qrels --topics my-topics.tsv --preferences
```

In Python, use `judged.online.offline.against_qrels` and `preference_agreement`."""


if __name__ == "__main__":
    sys.exit(main())
