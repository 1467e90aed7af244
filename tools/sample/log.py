# Requirements: Python 3.11 or later only, no packages.
"""Write the sample's logs of simulated users: simulated_log.ndjson.gz, simulated_interleaved.ndjson.gz.

All data is simulated. Users search for the sample's topics, see the result lists of two of its runs, and click by a
dynamic Bayesian network (Chapelle and Zhang, WWW 2009), with probabilities by the grades of the qrels. The log contains
planted errors. The tool prints their numbers, and the sample's README lists them.

Usage: python tools/sample/log.py [--data DIR] [--check]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "src"))
from judged.online.mixed_lists import interleave  # noqa: E402 it needs no packages either

DEFAULT_DATA = REPO / "src" / "judged" / "data" / "sample" / "pydocs"
NAME, INTERLEAVED = "simulated_log.ndjson.gz", "simulated_interleaved.ndjson.gz"

SEED = 22
USERS, DAYS = 300, 14
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
FALL = 9  # first day, counted from 0, on which visits satisfy less often: Wednesday, 11 March
FALL_FACTOR = 0.5  # of the satisfaction probability
ARMS = ("tfidf", "bm25")  # runs: arm A and arm B of the experiment
DEVICES = {"desktop": 0.62, "mobile": 0.30, "tablet": 0.08}
LANGUAGES = {"en": 0.70, "de": 0.16, "es": 0.14}

ATTRACTIVE = (0.06, 0.20, 0.45, 0.75)  # probability of a click on an examined result, by grade
SATISFYING = (0.10, 0.35, 0.70, 0.90)  # probability that a visit satisfies, by grade
CONTINUATION = 0.85  # probability of examining the next result
MISSPELT, RESCUE = 0.07, 0.4  # share of queries with a spelling error, and of these with corrected results
REWORD, NEXT_PAGE, ANOTHER = 0.35, 0.12, 0.35  # after failure; without a click; another task in the session
COPY, HOVER = 0.15, 0.10

BOT_PAGES = 24
FACETS, DUPLICATES, SKEWS, LOST = 30, 60, 8, 4
"""Planted errors: facet requests, duplicate events, events before their page, and pages that are not in the log."""


@dataclass
class Sample:
    """Contents of the sample: topics, grades, and the lists of the arms."""

    topics: list[dict[str, Any]]
    grades: dict[tuple[str, str], int]
    lists: dict[tuple[str, str], list[str]]


@dataclass
class User:
    """A simulated user."""

    name: str
    arm: int
    device: str
    language: str
    keen: float
    sessions: int = 0


@dataclass
class LogRows:
    """Rows of the log with their times in milliseconds, and counts of planted events."""

    queries: list[tuple[int, dict[str, Any]]] = field(default_factory=list[tuple[int, dict[str, Any]]])
    events: list[tuple[int, dict[str, Any]]] = field(default_factory=list[tuple[int, dict[str, Any]]])
    truth: Counter[str] = field(default_factory=Counter[str])


def read(data: Path) -> Sample:
    """Read topics, qrels and the runs of the two arms."""
    topics = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = (line.split() for line in (data / "qrels.txt").read_text(encoding="utf-8").splitlines())
    grades = {(topic, document): int(grade) for topic, _, document, grade in rows}
    lists: dict[tuple[str, str], list[str]] = defaultdict(list)
    for arm in ARMS:
        with gzip.open(data / "runs" / f"{arm}.run.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                topic, _, document, *_ = line.split()
                lists[topic, arm].append(document)
    return Sample(topics, grades, lists)


class World:
    """Simulation of all users with one random number generator."""

    def __init__(self, sample: Sample, *, mixed: bool = False) -> None:
        self.sample = sample
        # With `mixed`, pages interleave the lists of both arms, users see only first pages, and events are only clicks.
        self.mixed = mixed
        self.chance = random.Random(SEED + 2 * mixed)  # noqa: S311 nothing is secret here
        self.topics = sample.topics[:]
        self.chance.shuffle(self.topics)
        self.popularity = [1 / (rank + 3) for rank in range(len(self.topics))]
        self.out = LogRows()

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.chance.random() < probability

    def seconds(self, median: float, sigma: float) -> int:
        """Sample milliseconds from a log-normal distribution of seconds."""
        return round(1000 * median * self.chance.lognormvariate(0, sigma))

    def sample_name(self, shares: dict[str, float]) -> str:
        """Sample a name by its share."""
        return self.chance.choices(list(shares), list(shares.values()))[0]

    def run(self) -> LogRows:
        """Simulate the two weeks of every user."""
        for number in range(USERS):
            keen = self.chance.betavariate(8, 2)
            user = User(f"u{number:03}", number % 2, self.sample_name(DEVICES), self.sample_name(LANGUAGES), keen)
            for time in self.visits():
                user.sessions += 1
                self.session(user, time)
        if not self.mixed:
            self.bot()
        return self.out

    def visits(self) -> list[int]:
        """Sample start times of a user's sessions: fewer at night and at weekends, at least two hours apart."""
        starts: list[int] = []
        num_left = 1 + min(int(self.chance.expovariate(1 / (0.4 if self.mixed else 2.6))), 12)
        while num_left or not starts:
            num_left -= num_left > 0
            day, hour = self.chance.randrange(DAYS), self.chance.uniform(0.0, 23.8)
            probability = (0.5 if day % 7 > 4 else 1.0) * (0.5 if hour < 7 else 1.0)
            time = round((24 * day + hour) * 3_600_000)
            if self.happens(probability) and all(abs(time - other) > 7_200_000 for other in starts):
                starts.append(time)
        return sorted(starts)

    def session(self, user: User, time: int) -> None:
        """Simulate up to three tasks of a user in sequence."""
        for _ in range(3):
            topic = self.chance.choices(self.topics, self.popularity)[0]
            time = self.task(user, topic, time)
            if not self.happens(ANOTHER):
                return
            time += self.seconds(40, 0.8)

    def task(self, user: User, topic: dict[str, Any], time: int) -> int:
        """Simulate queries until the user is satisfied or gives up; return the end time."""
        text, correct_text, page = topic["text"], topic["text"], 1
        if self.happens(MISSPELT):
            text = self.misspelt(text)
        for _ in range(4):
            is_misspelt = text != correct_text
            rescued = is_misspelt and self.happens(RESCUE)
            happy, clicked, time = self.page(
                user, topic, time, text=text, page=page, empty=is_misspelt, rescued=rescued
            )
            time += self.seconds(6, 0.5)
            if happy:
                break
            if is_misspelt and not rescued:
                text, page = correct_text, 1
                if self.happens(0.8):
                    continue
                break
            if not self.mixed and not clicked and page == 1 and self.happens(NEXT_PAGE):
                page = 2
            elif self.happens(REWORD):
                text = correct_text = self.reworded(correct_text)
                page = 1
            else:
                break
        return time

    def misspelt(self, text: str) -> str:
        """Swap two neighboring letters of the longest word."""
        word = max(text.split(), key=len)
        index = self.chance.randrange(1, len(word) - 2)
        return text.replace(word, word[:index] + word[index + 1] + word[index] + word[index + 2 :], 1)

    def reworded(self, text: str) -> str:
        """Add a word, or delete the last one."""
        words = text.split()
        if len(words) > 3 and self.happens(0.4):
            return " ".join(words[:-1])
        return f"{text} {self.chance.choice(('python', 'example', 'function', 'module'))}"

    def page(
        self, user: User, topic: dict[str, Any], time: int, *, text: str, page: int, empty: bool, rescued: bool
    ) -> tuple[bool, bool, int]:
        """Write a page; return whether the user is satisfied, whether the user clicked, and the time."""
        ranking = self.sample.lists[topic["query_id"], ARMS[user.arm]]
        page_documents = [] if empty and not rescued else ranking[10 * (page - 1) : 10 * page]
        latency = min(self.seconds(0.03, 0.4), 400)
        row: dict[str, Any] = {
            "query_id": f"q{len(self.out.queries):04}",
            "client_id": user.name,
            "session_id": f"{user.name}-{user.sessions}",
            "application": "docs-search",
            "user_query": text,
            "timestamp": time,
            "query_response_hit_ids": page_documents,
            "query_attributes": {
                "page": page,
                "page_size": 10,
                "result_count": len(ranking) if page_documents else 0,
                "language": user.language,
                "device": user.device,
                "experiment": {"name": "ranker", "variant": ARMS[user.arm], "probability": 0.5},
                "latency_ms": latency,
                "topic": topic["query_id"],
                "query_class": topic["query_class"],
            },
        }
        if self.mixed:
            lists = (self.sample.lists[topic["query_id"], arm][:10] if page_documents else [] for arm in ARMS)
            mixed_list = interleave(*lists, key=("mixed", user.name, text), names=ARMS)
            row["query_response_hit_ids"] = page_documents = list(mixed_list.documents)
            del row["query_attributes"]["latency_ms"]
            row["query_attributes"] |= mixed_list.attributes() | {"experiment": {"name": "mixed"}}
        if empty:
            row["query_attributes"]["rescued"] = rescued
            self.out.truth["rescued" if rescued else "zero"] += page == 1
        self.out.queries.append((time, row))
        return self.examine(user, row, page_documents, time + latency, page)

    def examine(
        self, user: User, row: dict[str, Any], page_documents: list[str], time: int, page: int
    ) -> tuple[bool, bool, int]:
        """Simulate the examination of a page by a dynamic Bayesian network."""
        clicked, last_click = False, ("", 0)
        for rank, document in enumerate(page_documents, 10 * (page - 1) + 1):
            grade = self.sample.grades.get((row["query_attributes"]["topic"], document), 0)
            time += self.seconds(1.4, 0.5)
            if not self.mixed and self.happens(HOVER):
                self.event(row, "hover", time, document, rank)
            if self.happens(ATTRACTIVE[grade] * user.keen):
                clicked, last_click = True, (document, rank)
                self.event(row, "click", time, document, rank)
                is_after_fall = not self.mixed and row["timestamp"] >= FALL * 86_400_000
                satisfied = self.happens(SATISFYING[grade] * (FALL_FACTOR if is_after_fall else 1.0))
                time += min(self.seconds(75, 0.5) if satisfied else self.seconds(8, 0.5), 900_000)
                self.out.truth["clicks " + ("after" if is_after_fall else "before")] += 1
                self.out.truth["satisfied clicks " + ("after" if is_after_fall else "before")] += satisfied
                if satisfied:
                    if self.happens(0.5):  # otherwise the tab stays open, and the log has no end of the visit
                        self.event(row, "page_exit", time, *last_click)
                    return True, True, time
            elif grade >= 2 and self.happens(COPY):
                self.event(row, "copy", time, document, rank)
                return True, clicked, time
            if not self.happens(CONTINUATION):
                break
        self.event(row, "page_exit", time, *last_click)
        return False, clicked, time

    def event(self, row: dict[str, Any], action: str, time: int, document: str = "", rank: int = 0) -> None:
        """Write an event of a page."""
        if self.mixed and action == "page_exit":
            return
        attributes: dict[str, Any] = {"event_id": ""}
        if document:
            attributes |= {"object": {"object_id": document}, "position": {"ordinal": rank}}
        names = {name: row[name] for name in ("query_id", "client_id", "session_id")}
        self.out.events.append(
            (time, {"action_name": action, **names, "timestamp": time, "event_attributes": attributes})
        )

    def bot(self) -> None:
        """Simulate a bot that searches for a topic every two seconds, without events."""
        user = User("u900", 0, "desktop", "en", 0.0, 1)
        start_ms = 5 * 86_400_000 + 11_000_000
        for number in range(BOT_PAGES):
            topic = self.topics[number]
            row = {"page": 1, "page_size": 10, "language": "en", "device": "desktop", "topic": topic["query_id"]}
            row |= {"query_class": topic["query_class"], "user_agent": "ExampleBot/1.0"}
            ranking = self.sample.lists[topic["query_id"], ARMS[0]]
            record = {
                "query_id": f"q{len(self.out.queries):04}",
                "client_id": user.name,
                "session_id": f"{user.name}-1",
                "application": "docs-search",
                "user_query": topic["text"],
                "timestamp": start_ms + 2000 * number,
                "query_response_hit_ids": ranking[:10],
                "query_attributes": row | {"result_count": len(ranking), "latency_ms": 30},
            }
            self.out.queries.append((start_ms + 2000 * number, record))


def number_rows(log: LogRows) -> LogRows:
    """Number pages and events in the order of time, as in real logs."""
    queries, events = (sorted(rows, key=lambda row: row[0]) for rows in (log.queries, log.events))
    names = {row["query_id"]: f"q{number:04}" for number, (_, row) in enumerate(queries, 1)}
    queries = [(time, row | {"query_id": names[row["query_id"]]}) for time, row in queries]
    for number, (_, row) in enumerate(events, 1):
        row["query_id"] = names[row["query_id"]]
        row["event_attributes"]["event_id"] = f"e{number:04}"
    return LogRows(queries, events, log.truth)


def plant_errors(log: LogRows) -> list[tuple[int, dict[str, Any]]]:
    """Add the errors of real logs, at most one per row; return all rows in the order of time."""
    rng = random.Random(SEED + 1)  # noqa: S311 nothing is secret here
    people = [row for row in log.queries if row[1]["client_id"] != "u900"]
    with_events = {event["query_id"] for _, event in log.events}
    pages = [row for row in people if row[1]["query_id"] in with_events]
    rng.shuffle(pages)
    lost, faceted = pages[:LOST], pages[LOST : LOST + FACETS]
    lost_ids = {row["query_id"] for _, row in lost}
    rows = [row for row in log.queries if row[1]["query_id"] not in lost_ids]
    for time, row in faceted:
        attributes = row["query_attributes"] | {"page_size": 0}
        rows.append(
            (time + 1, row | {"timestamp": time + 1, "query_response_hit_ids": [], "query_attributes": attributes})
        )
    log.truth["events of lost pages"] = sum(event["query_id"] in lost_ids for _, event in log.events)
    page_times = {row["query_id"]: time for time, row in log.queries}
    events = log.events[:]
    intact_events = [index for index, (_, event) in enumerate(events) if event["query_id"] not in lost_ids]
    rng.shuffle(intact_events)
    for index in intact_events[:DUPLICATES]:
        events.append((events[index][0] + 250, events[index][1]))
    for index in intact_events[DUPLICATES : DUPLICATES + SKEWS]:
        event_time = page_times[events[index][1]["query_id"]] - rng.randrange(2000, 9000)
        events[index] = (event_time, events[index][1] | {"timestamp": event_time})
    log.truth |= {"queries": len(rows), "events": len(events), "people": len({row["client_id"] for _, row in people})}
    return sorted([*rows, *events], key=lambda row: row[0])


def lines(rows: list[tuple[int, dict[str, Any]]]) -> list[str]:
    """Format rows as JSON lines."""
    start_ms = round(BEGIN.timestamp() * 1000)
    json_lines: list[str] = []
    for _, row in rows:
        time = datetime.fromtimestamp((start_ms + row["timestamp"]) / 1000, UTC)
        stamp = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        json_lines.append(json.dumps(row | {"timestamp": stamp}, separators=(",", ":")))
    return json_lines


def make(data: Path = DEFAULT_DATA) -> tuple[str, dict[str, int]]:
    """Return the log with a truncated last line, as after a full disk, and the counts of planted errors."""
    log = number_rows(World(read(data)).run())
    json_lines = lines(plant_errors(log))
    half = len(json_lines[-1]) // 2
    return "\n".join([*json_lines, json_lines[-1][:half]]), dict(sorted(log.truth.items()))


def make_mixed(data: Path = DEFAULT_DATA) -> str:
    """Return the log of mixed lists, which has no planted errors."""
    log = number_rows(World(read(data), mixed=True).run())
    return "\n".join([*lines(sorted([*log.queries, *log.events], key=lambda row: row[0])), ""])


def main() -> int:
    """Write the logs, or compare them with the stored files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--check", action="store_true", help="compare with the stored files, and write nothing")
    options = parser.parse_args()
    text, truth = make(options.data)
    texts = {options.data / NAME: text, options.data / INTERLEAVED: make_mixed(options.data)}
    if options.check:
        return int(any(gzip.decompress(path.read_bytes()).decode() != text for path, text in texts.items()))
    print(json.dumps(truth, indent=1))
    for path, text in texts.items():
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
