"""Verdicts for few users, participants, or days; see `test_few_units`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from judged.online import interleaving, overview
from judged.online.ab_tests.abtest import abtest
from judged.online.clicks import compare_models
from judged.online.offline import against_qrels, preference_agreement
from judged.online.watch.config import Event
from judged.online.watch.watched import rollbacks
from judged.studies.preference import side_bias
from judged.studies.records import StudyRecords
from judged.studies.study_report import report
from online.interleaving_analysis.test_credit import draft, logged
from online.offline.page_logs import log_of
from online.watch.simulated_days import FIRST, config, days, look
from studies_made import records
from typed_logs import typed_log

DAY = 86_400_000
Verdicts = list[Any]  # each is falsy if there is none


def click_log(
    n: int, side: Callable[[int, int], dict[str, Any]], is_clicked: Callable[[dict[str, Any], int], bool]
) -> Any:
    """Return a log in which each user has twelve pages, half of them a week later, and clicks on some."""
    pages: list[dict[str, Any]] = [
        {"serp": 12 * user + page, "session": user, "user": user,
         "time_ms": (page // 6) * 7 * DAY + 1000 * (page + user), "query": f"q{page % 2}",
         "n_shown": 10, "zero_results": False, **side(user, page)}
        for user in range(n) for page in range(12)
    ]  # fmt: skip
    # The log must cover two whole weeks: the last page is at their end.
    pages += [{"serp": 12 * n, "time_ms": 14 * DAY - 1, "session": 0, "user": 0, "query": "q0", "n_shown": 10,
               "zero_results": False, **side(0, 0)}]  # fmt: skip
    events = [
        {"serp": page["serp"], "session": page["session"], "user": page["user"], "time_ms": page["time_ms"] + 1000,
         "rank": 1, "action": "click", "object_id": "d", "dwell_ms": 60_000}
        for page in pages[:-1] if is_clicked(page, (page["serp"] % 12 + page["user"] % 3) % 6)
    ]  # fmt: skip
    return typed_log(pages, events)


def ab_test(n: int) -> Verdicts:
    log = click_log(2 * n, lambda user, _: {"variant": "ab"[user % 2]},
                    lambda page, step: step < (5 if page["variant"] == "b" else 1) - page["user"] // 2 % 2)  # fmt: skip
    result = abtest(log, primary="SatisfiedPageCTR", metrics=(), min_users=2)
    return [verdict.decision != "keep running" for verdict in result.verdicts]


def periods(n: int) -> Verdicts:
    log = click_log(
        n, lambda *_: {}, lambda page, step: step < (5 if page["time_ms"] >= 7 * DAY else 1) - page["user"] % 2
    )
    result = overview(log, "PageCTR")
    return [" is higher" in sentence for sentence in result.sentences]


def mixed_lists(n: int) -> Verdicts:
    pages = [(f"u{user}", draft(["a", "b", "a", "b"] if page_index % 2 else ["b", "a", "b", "a"]),
              [1 + page_index % 2 if page_index < 3 or user % 3 else 2 - page_index % 2])
             for user in range(n) for page_index in range(4)]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        result = interleaving(logged(Path(folder), pages), baseline="a", min_users=2)
        return [result.decision != "keep running"]


def outcomes(n: int) -> Verdicts:
    clicks = {
        "ab": lambda position: ["a"] if position % 5 else [],  # what is relevant stands first, and is mostly clicked
        "ba": lambda position: [] if position % 3 else ["b", "a"],
    }
    pages = [{"topic": "t", "shown": [*order], "user": user, "clicks": clicks[order](user + page_index)}
             for user in range(n) for page_index in range(4) for order in clicks]  # fmt: skip
    result = against_qrels(log_of(pages), {"t": {"a": 2, "b": 0}}, measures="RR", outcomes=["clicked"])
    return [": significantly above chance" in " ".join(result.sentences)]


def clicks_preferred(n: int) -> Verdicts:
    pages = [
        {"topic": "t", "shown": [*order], "user": user, "clicks": ["b" if user % 3 == 0 and page_index == 0 else "a"]}
        for user in range(n) for page_index in range(4) for order in ("ab", "ba")
    ]  # fmt: skip
    sentences = preference_agreement(log_of(pages), {"t": {"a": 2, "b": 0}}, rules=["above"]).sentences
    return ["Clicks agree significantly better" in " ".join(sentences)]


def models(n: int) -> Verdicts:
    rng = np.random.default_rng(0)
    docs = [f"d{doc}" for doc in range(6)]
    pages = [{"query": "q", "shown": [docs[doc_index] for doc_index in order], "user": user,
              "clicks": [docs[doc_index] for doc_index in order if doc_index < 3 and (user + page + doc_index) % 9]}
             for user in range(n) for page in range(12) for order in [rng.permutation(6).tolist()]]  # fmt: skip
    rows = compare_models(log_of(pages, has=frozenset({"shown", "clicks", "ranks", "unclicked"})), ["RCTR", "DCTR"],
                          folds=2).rows  # fmt: skip
    return [not min(rows, key=lambda row: row.parameters).selected]


def watched_days(n: int) -> Verdicts:
    series = days(np.random.default_rng(1), 42, np.repeat([0.4, 0.1], [28, 14]))
    values = np.where((np.arange(42) >= 28 - n), series.values, np.nan)
    outcome = look(replace(series, values=values))
    settings = replace(config(), event=(Event(FIRST + timedelta(28), "deployment", deploy=True),))
    return [
        outcome.state == "alarm",
        *(rollback.decision in {"keep", "roll back"} for rollback in rollbacks([outcome], settings)),
    ]


def study(people: int, topics: int) -> Verdicts:
    result = report(records(people=people, topics=topics, effect=9.0), outcome="satisfaction")
    return [row["verdict"] not in {"no verdict", "undecided"} for row in result.table("effects").records()
            if row["outcome"] == "satisfaction"]  # fmt: skip


def preferred_side(n: int) -> Verdicts:
    participants = [{"participant": f"p{index}"} for index in range(n)]
    preferences = [{**participant, "query_id": f"t{index}", "left": "ab"[index % 2], "right": "ba"[index % 2],
                    "preferred": "ab"[index % 2]}
                   for participant in participants for index in range(4)]  # fmt: skip
    side = side_bias(StudyRecords.of({"participants": participants, "trials": [], "preferences": preferences}))
    return [side is not None and side.preferred]
