"""Write docs/offline-online.md, whether judgments predict user behavior, on real logs: ``offline_online.py DATA``.

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
from judged.results.escaping import TextTable

PAGE = Path(__file__).resolve().parents[1] / "docs" / "offline-online.md"
MEASURES = ("nDCG@10", "P@10", "RR", "ERR(max=4)@10")
TYPES = {"int64": pa.int64(), "int32": pa.int32(), "array<int32>": pa.list_(pa.int32()),
          "float64": pa.float64(), "string": pa.string(),
         "boolean": pa.bool_()}  # fmt: skip


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path(sys.argv[1])), encoding="utf-8")
    return 0


def page(data: Path) -> str:
    """Build the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)
        logs = data / "logs"
        parts = [HEAD, *session_2012(logs / "trec_session"), *session_2014(logs / "session2014_graphcm")]
    return "\n\n".join([*parts, TAIL]) + "\n"


def session_2012(folder: Path) -> list[str]:
    """Return the section on searchers with a topic each, full judgments, and times."""
    log = read_log(folder / "sessiontrack2012.xml.gz", name="TREC 2012 Session", bots="keep")
    qrels = Qrels.read(folder / "qrels" / "session2012.qrels", name="its judgments")
    pages = against_qrels(log, qrels, measures=MEASURES, by="goal", unit="session")
    preferences = preference_agreement(log, qrels, rules=["above", "last-above", "earlier", "next"], unit="session")
    introduction = (
        "The TREC 2012 Session track recorded people who were given a topic, queried a web search engine and read what"
        f" they opened: small ({pages.units} sessions), but with times. {pages.sentences[0]} A page satisfied where a"
        f" result was opened for 30 seconds or longer: {pages.of('nDCG@10', 'satisfied').mean:.0%} of the pages. In the"
        " first column of results 0.5 is chance: the probability that of two pages with different outcomes the one with"
        " the better outcome has the better score. The second compares pages of one topic alone."
    )
    slices = "By the goal of the topic, with intervals about 1.4 times as wide for half as many sessions (nDCG@10):"
    return [
        "## TREC 2012 Session: searchers with a topic",
        wrapped(introduction),
        relations(pages).markdown(),
        wrapped(verdict(pages)),
        wrapped(slices),
        sliced(pages).markdown(),
        wrapped("How often something was opened, and how often it satisfied, by nDCG@10 of the page:"),
        calibrated(pages).markdown(),
        wrapped(means(pages)),
        "### What clicks prefer",
        wrapped(PREFERENCES),
        preferences.table().markdown(),
        wrapped(told(preferences)),
    ]


def session_2014(folder: Path) -> list[str]:
    """Return the section on a larger log, with judgments of displayed results only, and without times."""
    log, qrels = labeled(folder / "normalized_with_labels.jsonl.gz")
    measures = ("P@10", "DCG@10", "ERR(max=4)@10", "nDCG@10")
    pages = against_qrels(log, qrels, measures=measures, unit="session")
    preferences = preference_agreement(log, qrels, rules=["above", "previous", "next"], unit="session")
    introduction = (
        "Of the 2014 track a set of pages is available with a label from -2 to 4 for each of the ten results, and no"
        f" times: {pages.joined} pages of {pages.units} sessions, {pages.of('P@10', 'clicked').mean:.0%} of them with a"
        " click. Nothing is known about results that were not shown. The ideal of nDCG is then made of what was shown"
        " for the query: a page with one fair result has nDCG 1 if that comes first. It tells the order of a page, not"
        " how good it is, and is here as a warning; P, DCG and ERR need no ideal. What is judged is a query: pages"
        " within topics are of one query, and their lists hardly differ, so that this column can show nothing here."
    )
    parts = [
        "## TREC 2014 Session: labels of what was shown",
        wrapped(introduction),
        relations(pages).markdown(),
    ]
    return [*parts, wrapped(verdict(pages)), preferences.table().markdown(), wrapped(told(preferences))]


def labeled(path: Path) -> tuple[InteractionLog, Qrels]:
    """Create a log, and the highest label of each result by query."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    serps: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    grades: dict[str, dict[str, float]] = {}
    for i, row in enumerate(rows):
        session, query_grades = int(row["session_id"]), grades.setdefault(row["query_id"], {})
        serps.append({"serp": i, "query_id": f"{i:05}", "session": session, "user": session, "time_ms": i * 1000,
                      "query": row["query"], "query_norm": row["query"], "filtered": False, "page": 1, "first_rank": 1,
                      "n_shown": len(row["results"]), "topic": row["query_id"]})  # fmt: skip
        for rank, (doc, grade) in enumerate(zip(row["results"], row["relevance"], strict=True), 1):
            shown.append({"serp": i, "rank": rank, "object_id": doc})
            query_grades[doc] = max(grade, query_grades.get(doc, grade))
        events += [{"event": 100 * i + rank, "serp": i, "session": session, "user": session, "time_ms": i * 1000,
                    "action": "click", "object_id": row["results"][rank - 1], "rank": rank}
                   for rank in row["clicks"]]  # fmt: skip
    sessions = [{"session": session_id, "user": session_id, "start_ms": 0, "end_ms": 0, "n_serps": 0, "n_events": 0}
                for session_id in sorted({row["session"] for row in serps})]  # fmt: skip
    engine = Database()
    tables = [
        engine.register(typed(rows_of_table, columns), name)
        for name, rows_of_table, columns in (("serp", serps, SERP), ("shown", shown, SHOWN), ("event", events, EVENT),
                                    ("session", sessions, SESSION))
    ]  # fmt: skip
    log = InteractionLog(*tables, name="TREC 2014 Session", has_time=False, attributes=("topic",))
    return log, Qrels.of(grades, name="its labels")


def typed(rows: list[dict[str, Any]], columns: Any) -> Any:
    """Create an Arrow table of rows."""
    fields = [pa.field(column.name, TYPES[column.type]) for column in columns]
    return pa.Table.from_pylist(rows, schema=pa.schema([*fields, *([pa.field("topic", pa.string())]
                                                                    if "topic" in rows[0] else [])]))  # fmt: skip


def relations(result: OfflineOnline) -> Table:
    """Return the table of relations over all pages."""
    rows = [row for row, relation in enumerate(result.relations) if relation.slice is None]
    return replace(result.table("relations").take(rows), labels=2).showing(
        "measure", "outcome", "probability", "within", "tau"
    )


def sliced(result: OfflineOnline) -> Table:
    """Return the table of one measure by slice."""
    rows = [
        row
        for row, relation in enumerate(result.relations)
        if relation.slice is not None and relation.measure == "nDCG@10"
    ]
    return replace(result.table("relations").take(rows), labels=2).showing(
        "sliced", "outcome", "pages", "units", "mean", "probability"
    )


def calibrated(result: OfflineOnline) -> TextTable:
    """Return the table of two outcomes by nDCG@10."""
    rows = tuple(
        (f"{clicked.low:.3f} to {clicked.high:.3f}", str(clicked.pages), str(clicked.mean), str(satisfied.mean))
        for clicked, satisfied in zip(
            result.bins("nDCG@10", "clicked"), result.bins("nDCG@10", "satisfied"), strict=True
        )
    )
    return TextTable(("nDCG@10", "pages", "clicked", "satisfied"), rows)


def verdict(result: OfflineOnline) -> str:
    """Describe which measures predict which outcomes."""
    sentences: list[str] = []
    for outcome in result.outcomes:
        predictive = [measure for measure in result.measures if result.of(measure, outcome).probability.excludes(0.5)]
        predictive_within_topics = [
            measure for measure in result.measures if result.of(measure, outcome).within.excludes(0.5)
        ]
        count, total = len(predictive), len(result.measures)
        names = f" ({', '.join(predictive)})" if 0 < count < total else ""
        over_all_text = f"Of {total} measures the intervals of {count} exclude chance for {outcome}{names}"
        sentences.append(f"{over_all_text}, within topics those of {len(predictive_within_topics)}.")
    tests = 2 * len(result.measures) * len(result.outcomes)
    return " ".join(
        [*sentences, f"These are {tests} intervals of {result.level:.0%}, none corrected for their number."]
    )


def means(result: OfflineOnline) -> str:
    """Describe the correlation of topic means."""
    rho_texts = [
        f"{topic_row.rho} for {topic_row.outcome}" for topic_row in result.topics if topic_row.measure == "nDCG@10"
    ]
    topics = result.topics[0]
    return (
        f"Over means of {topics.n} topics with at least {result.least_pages} pages, Spearman's rho of nDCG@10 is"
        f" {', '.join(rho_texts)}."
    )


def told(result: PreferenceAgreement) -> str:
    """Describe what preferences agree with."""
    return " ".join(sentence for sentence in result.sentences if sentence.split(":")[0] in result.rules)


def wrapped(text: str) -> str:
    """Wrap a paragraph."""
    return textwrap.fill(text, 120, break_on_hyphens=False)


HEAD = """# Do judgments predict what users do?

Made by `tools/offline_online.py` from two logs of TREC with judgments. What users saw is scored by the judgments, page
by page, with the same measures that score runs; then the scores are held against what was done on the pages. Intervals
are 95 % and over whole sessions, since pages of one session are not independent. They are about these topics; only that
of Spearman's rho takes the topics for a sample. With your own log:

```python
from judged.online.offline import against_qrels, preference_agreement

found = against_qrels(log, "my.qrels", topics="my-topics.tsv", measures=["nDCG@10", "P@10"], by="device")
print(found.text())
print(preference_agreement(log, "my.qrels", topics="my-topics.tsv").text())
```

or `judged online offline LOG my.qrels --topics my-topics.tsv`."""

PREFERENCES = (
    "A click says that a result is better than others that were passed over (Joachims et al. 2005). Of the preferences"
    " between two judged results of different grades, how many agree with the grades? Under `above` and `last-above`"
    " the preferred one always stands lower, under `next` always right above: where the click is right, the order on"
    " the page is always wrong, or always right. The last two columns therefore tell whether clicks say more"
    " than ranks: what pairs at the same ranks agree in whatever was clicked, and the gain of the clicks over that."
)

TAIL = """## Reading it

- That an interval contains chance does not show that judgments are useless, nor does one that excludes it show that a
  better system makes users happier: the pages were made by one engine, and the searchers were given their topics.
- A page without a click may have answered already, and people who were told to find all there is click more than
  others.
- Clicks lean towards the top whatever is there. A measure that looks at the top more than others follows clicks
  more easily; the rank of the first click most of all.
- Pages are scored only where most of their first ten results are judged; the rest is counted, not scored as bad."""


if __name__ == "__main__":
    sys.exit(main())
