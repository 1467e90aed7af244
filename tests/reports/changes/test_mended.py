"""Whether a change mended a kind of failure: tested on the same topics, and never answered without the data."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from command_line import process
from judged.comparison.slicing.topic_slices import slice_topics
from judged.pipelines.traces import Document, Failures, Span, Traces, failures, write_traces
from judged.pipelines.traces.failure_tests import SLICE_TEST
from judged.reports.changes import review
from judged.reports.changes.failure_changes import FailureChange, answer_fixed, failure_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TOPICS = [f"q{i:02}" for i in range(12)]
DATES = [{"doc_id": "o", "date": "2024-01-01"}, {"doc_id": "n", "date": "2025-01-01"}]
QRELS = {topic: {"o": 1, "n": 1} for topic in TOPICS}


def traces(listed: Callable[[int], str], topics: list[str] = TOPICS) -> Traces:
    spans = [
        Span(topic, topic, "list", "shown", (), tuple(Document(doc, rank) for rank, doc in enumerate(listed(i), 1)))
        for i, topic in enumerate(topics)
    ]
    return Traces(tuple(spans))


STALE, FRESH = traces(lambda _: "on"), traces(lambda _: "no")


def fixed(before: Failures, after: Failures, target: str) -> tuple[str, list[FailureChange]]:
    """Return the state of the answer, and the changes of the target."""
    changes = failure_changes(before, after)
    kinds = {target, SLICE_TEST} if target == "intent" else {target}
    return answer_fixed(changes, before, after, target).state, [row for row in changes if row.failure in kinds]


def fresh(system_traces: Traces) -> Failures:
    return failures(QRELS, system_traces, "R@2", documents=DATES)


def reasons(result: Failures) -> dict[tuple[str, str], str]:
    return {(row.failure, row.where): row.code for row in result.untested}


def test_freshness_is_mended_by_hand() -> None:
    """Of each topic the newer document stood below the older one, and stands above it: from 1 to -1.

    All 12 signs alike: p is 2 of the 4096 ways to flip them.
    """
    state, (row,) = fixed(fresh(STALE), fresh(FRESH), "freshness")
    assert state == "good"
    assert (row.n, row.difference, row.p, row.adjusted) == (12, -2.0, 2 / 4096, 2 / 4096)  # no loss changed
    assert (row.is_detected_before, row.is_detected_after, row.interval) == (True, False, None)  # no variance
    assert fixed(fresh(STALE), fresh(STALE), "freshness")[0] == "bad"
    assert fixed(fresh(FRESH), fresh(STALE), "freshness")[0] == "undecided"  # it was no failure before


def test_less_of_a_failure_that_is_still_shown_is_something_to_look_at() -> None:
    """Of 40 topics 36 were stale, then 28: gaps of (36 - 4) / 40 = .8 and (28 - 12) / 40 = .4."""
    topics = [f"q{i:02}" for i in range(40)]
    qrels = {topic: {"o": 1, "n": 1} for topic in topics}
    before, after = (
        failures(qrels, traces(lambda i, stale=stale: "on" if i < stale else "no", topics), "R@2", documents=DATES)
        for stale in (36, 28)
    )
    state, (row,) = fixed(before, after, "freshness")
    assert row.difference == pytest.approx(-0.4)
    assert row.p == pytest.approx(2 / 2**8, abs=0.0012)  # eight differ, all one way; 100,000 sign flips
    assert state == "inspect"
    unclear = failures(qrels, traces(lambda i: "on" if i < 23 else "no", topics), "R@2", documents=DATES)
    slight = failures(qrels, traces(lambda i: "on" if i < 27 else "no", topics), "R@2", documents=DATES)
    assert (slight.tests[0].significant, unclear.tests[0].significant) == (True, False)
    assert fixed(slight, unclear, "freshness")[0] == "undecided"  # 4 topics: p 1/8, though "not shown" after


@pytest.mark.parametrize("meant", ["freshness", "feedback", "intent", "calibration", "missing content"])
def test_without_its_data_a_kind_is_not_tested_and_the_reason_is_given(meant: str) -> None:
    sides = failures(QRELS, STALE, "R@2"), failures(QRELS, FRESH, "R@2")
    question = answer_fixed(failure_changes(*sides), *sides, meant)
    assert question.state == "not tested"
    assert reasons(sides[0]) == {
        ("missing content", "corpus"): "no-data",
        ("calibration", "merged sources"): "no-data",
        ("freshness", "all topics"): "no-data",
        ("intent", "subtopics"): "no-data",
        ("intent", "classes of queries"): "no-data",
        ("feedback", "clicks"): "no-data",
        ("feedback", "labels"): "no-data",
    }
    assert next(row.reason for row in sides[0].untested if row.failure == meant) in question.finding
    assert fixed(fresh(STALE), sides[1], meant)[0] == "not tested"  # known before only


def test_with_few_topics_nothing_is_tested() -> None:
    for count, code in ((9, "few-units"), (10, "")):
        some = TOPICS[:count]
        qrels = {topic: QRELS[topic] for topic in some}
        question = failures(qrels, traces(lambda _: "on", some), "R@2", documents=DATES)
        assert reasons(question).get(("freshness", "all topics"), "") == code
        assert fixed(question, question, "freshness")[0] == ("not tested" if code else "bad")
    for count, state in ((5, "not tested"), (6, "good")):
        some = TOPICS[:count]
        qrels = {topic: QRELS[topic] for topic in some}
        before, after = (
            failures(qrels, traces(lambda _, document=document: document, some), "R@1") for document in ("xo", "ox")
        )
        found, (row,) = fixed(before, after, "scoring")
        assert found == state
        assert row.difference == -0.5  # R@1 from 0 to 1/2: also where it is not tested
        assert (math.isnan(row.p), row.interval) == (count < 6, None)


def clicked(worse: int, better: int) -> list[dict[str, Any]]:
    return [
        {"query_id": topic, "doc_id": doc, "clicks": times}
        for topic in TOPICS
        for doc, times in (("w", worse), ("b", better))
    ]


def test_feedback_is_mended_by_hand() -> None:
    """The better document stands lower; once the worse one has more clicks, then fewer: from 1 to -1."""
    qrels = {topic: {"w": 1, "b": 2} for topic in TOPICS}
    biased, sound = clicked(2, 1), clicked(1, 2)
    before, after = (failures(qrels, traces(lambda _: "wb"), "nDCG@2", clicks=record) for record in (biased, sound))
    state, (row,) = fixed(before, after, "feedback")
    assert state == "good"
    assert (row.difference, row.p) == (-2.0, 2 / 4096)
    old, new = ({name: {topic: ["w", "b"] for topic in TOPICS}} for name in ("old", "new"))
    options: dict[str, Any] = {"traces": (traces(lambda _: "wb"), traces(lambda _: "wb")), "target_failure": "feedback"}
    states = {
        name: next(question.state for question in review(qrels, old, new, "nDCG@2", clicks=clicks, **options).questions
                   if question.question.startswith("Does the change fix"))
        for name, clicks in (("none", None), ("pair", (biased, sound)), ("one", biased))
    }  # fmt: skip
    assert states == {"none": "not tested", "pair": "good", "one": "bad"}


def classes(broken: bool) -> tuple[Failures, Failures]:
    """Thirty topics of two classes: of class a the relevant document stands at rank 4 or 5 of 5, else at 1 or 2."""
    topics = [f"q{i:02}" for i in range(30)]
    qrels = {topic: {"r": 1} for topic in topics}
    slicing = slice_topics({topic: {"class": "ab"[i % 2]} for i, topic in enumerate(topics)}, "class")

    def listed(i: int) -> str:
        rank = (3 if broken and i % 2 == 0 else 0) + i // 2 % 2
        return "vwxyz"[:rank] + "r" + "vwxyz"[rank:4]

    class_traces = traces(listed, topics)
    clicks = [{"query_id": topic, "doc_id": "r", "clicks": 1} for topic in topics]
    dates = [{"doc_id": "r", "date": "2024-01-01"}]
    alone = failures(qrels, class_traces, "RR", slicing=slicing)
    cause_data: Mapping[str, Any] = {"documents": dates, "clicks": clicks, "corpus": "rvwxyz", "slicing": slicing}
    return alone, failures(qrels, class_traces, "RR", **cause_data)


def test_a_class_of_queries_is_intent_only_if_other_reasons_were_looked_for() -> None:
    alone, with_causes = classes(broken=True)
    findings = {test.where: (test.failure, test.significant) for test in alone.tests}
    assert findings == {"class=a": (SLICE_TEST, True), "class=b": (SLICE_TEST, False)}
    assert alone.alternatives == ("missing content", "freshness", "feedback")
    # dates and clicks were given, but no two relevant documents of a topic could be compared: still untested
    assert with_causes.alternatives == ("freshness", "feedback")
    assert {test.failure for test in with_causes.tests} == {SLICE_TEST}
    rows = {row["where"]: row for row in alone.table("tests").records()}
    assert rows["class=a"]["alternatives"] == "missing content, freshness, feedback"
    # RR of 1/4 and 1/5 against 1 and 1/2, 8 and 7 topics of 15 each: losses of .7767 and .2333
    assert rows["class=a"]["difference"] == pytest.approx((8 * 3 / 4 + 7 * 4 / 5) / 15 - (7 * 1 / 2) / 15)


def test_a_mended_class_is_tested_against_the_change_of_all_others() -> None:
    (before, _), (after, _) = classes(broken=True), classes(broken=False)
    state, rows = fixed(before, after, "intent")
    (row,) = (row for row in rows if row.where == "class=a")
    assert row.difference == pytest.approx((7 * 1 / 2 - 8 * 3 / 4 - 7 * 4 / 5) / 15)  # the others do not change
    assert state == "good"
    finding = answer_fixed(failure_changes(before, after), before, after, "intent").finding
    assert all(kind in finding for kind in before.alternatives)
    assert fixed(after, before, "intent")[0] == "undecided"
    assert fixed(before, before, "intent")[0] == "bad"


def test_the_command_takes_the_data_and_says_not_tested_without(tmp_path: Path) -> None:
    qrels = "".join(f"{topic} 0 {doc} 1\n" for topic in TOPICS for doc in "on")
    (tmp_path / "qrels.txt").write_text(qrels)
    (tmp_path / "documents.csv").write_text("doc_id,date\no,2024-01-01\nn,2025-01-01\n")
    (tmp_path / "clicks.csv").write_text("query_id,doc_id,clicks\n" + "".join(f"{topic},o,1\n" for topic in TOPICS))
    for name, outputs in (("old", STALE), ("new", FRESH)):
        write_traces(outputs, tmp_path / f"{name}.jsonl")
        ranked = [(topic, doc, rank) for topic in TOPICS
                  for rank, doc in enumerate("on" if name == "old" else "no", 1)]  # fmt: skip
        run = "".join(f"{topic} Q0 {doc} {rank} {-rank} {name}\n" for topic, doc, rank in ranked)
        (tmp_path / f"{name}.run").write_text(run)
    files = [str(tmp_path / name) for name in ("qrels.txt", "old.run", "new.run")]
    both = ["--traces", *(str(tmp_path / f"{name}.jsonl") for name in ("old", "new")), "--target-failure", "freshness"]
    documents = {}
    for name, more in (("without", []), ("with", ["--documents", str(tmp_path / "documents.csv")])):
        done = process("change", "review", *files, *both, *more, "--format", "json")
        assert done.code == 0, done.err
        documents[name] = json.loads(done.out)
    question = "Does the change fix the target failure?"
    assert question in documents["without"]["not_tested"]
    assert question not in documents["without"]["no_data"]
    assert documents["with"]["not_tested"] == []
    states = {
        name: {row["question"]: row["state"] for row in record["questions"]}[question]
        for name, record in documents.items()
    }
    assert states == {"without": "not tested", "with": "good"}
    many = [option for _ in range(3) for option in ("--clicks", str(tmp_path / "clicks.csv"))]
    assert process("change", "review", *files, *both, *many).code == 2


def test_losses_that_are_not_recorded_are_left_out_of_the_change() -> None:
    before, after = failures(QRELS, STALE, "R@1"), failures(QRELS, FRESH, "R@1")
    lost = np.array(before.recoverable["scoring"])
    lost[:3] = np.nan
    _, (row,) = fixed(replace(before, recoverable={**before.recoverable, "scoring": lost}), after, "scoring")
    assert row.n == 9
