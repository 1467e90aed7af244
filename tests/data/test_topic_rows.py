"""The rows of one topic as a run have the same scores as in the full run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given

from judged import InputError, Qrels, Run, judge
from judged.data.run import TopicRows
from judged.scoring.measures import parse
from strategies import collections


@given(collections())
def test_scores_of_a_topic_are_those_in_the_whole_run(made: tuple[Any, Any]) -> None:
    qrels, run = Qrels.of(made[0]), Run.of(made[1])
    assume(any(made[1].values()))
    rows = TopicRows.of(run)
    mapped = rows.memory_mapped()
    judged_run = judge(qrels, run)
    for measure in (parse("nDCG@3"), parse("AP"), parse("NumRet")):
        values = measure(judged_run)
        for topic, query in enumerate(judged_run.query_ids):
            for run_of in (rows.run, mapped.run):
                alone = judge(qrels.over([query]), run_of(query))
                assert measure(alone).tolist() == [values[topic]]


def test_topics_that_are_scattered_over_the_file_and_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q2 Q0 b 1 5 t\nq1 Q0 x 1 9 t\nq2 Q0 a 2 5 t\nq1 Q0 y 2 8 t\n")
    rows = TopicRows.of(Run.scan(path))
    assert rows.run("q2").table["doc_id"].to_pylist() == ["b", "a"]
    assert rows.run("q1").table.to_pydict() == {
        "query_id": ["q1", "q1"], "doc_id": ["x", "y"], "score": [9.0, 8.0], "rank": [1, 2],
    }  # fmt: skip
    assert rows.run("q1").name == "a"
    assert rows.memory_mapped().run("q1").table.equals(rows.run("q1").table)
    assert judge({"q9": {"d": 1}}, rows.run("q9")).returned.tolist() == [0]


def test_a_run_without_scores_stays_a_set() -> None:
    table = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"]})
    rows = TopicRows.of(Run.of(table))
    assert not rows.run("q").has_scores
    assert np.isclose(parse("SetP")(judge({"q": {"a": 1}}, rows.run("q")))[0], 0.5)


def test_rows_from_a_file_are_not_in_memory() -> None:
    docs = pa.array([f"d{number:07}" for number in range(200_000)])
    run = Run.of(pa.table({"query_id": pa.repeat("q", len(docs)), "doc_id": docs, "score": np.arange(len(docs))[::-1]}))
    rows = TopicRows.of(run)
    before = pa.total_allocated_bytes()
    mapped = rows.memory_mapped()
    assert pa.total_allocated_bytes() - before < mapped.table.nbytes / 20
    assert mapped.run("q").table.equals(rows.run("q").table)


def test_a_full_disk_leaves_rows_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("judged.data.run.TemporaryFile", full)
    rows = TopicRows.of(Run.of({"q": {"a": 1.0}}))
    assert rows.memory_mapped() is rows


def test_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "gone.run"
    path.write_text("q1 Q0 x 1 9 t\n")
    run = Run.scan(path)
    path.unlink()
    with pytest.raises(InputError, match=r"gone\.run"):
        TopicRows.of(run)
