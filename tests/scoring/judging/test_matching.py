"""Ids of a run that differ from those of the qrels only in notation."""

from __future__ import annotations

from pathlib import Path

import pytest

import judged
from judged import Qrels, Run
from judged.scoring.judging.matching import with_ids_of

RULE = "matched-ids"

pytestmark = pytest.mark.filterwarnings("ignore::judged.errors.JudgedWarning")


@pytest.fixture
def evaluated(tmp_path: Path):
    def evaluate(qrels: list[str], *runs: list[str], **options):
        files = [tmp_path / name for name in ("qrels.txt", *(f"r{i}.run" for i in range(len(runs))))]
        files[0].write_text("".join(f"{line}\n" for line in qrels), encoding="utf-8")
        for file, run in zip(files[1:], runs, strict=True):
            rows = (row.split() for row in run)
            lines = [f"{topic} Q0 {doc} {rank} {9 - rank} r\n" for rank, (topic, doc) in enumerate(rows, 1)]
            file.write_text("".join(lines), encoding="utf-8")
        return judged.evaluate(files[0], files[1:], ["RR", "P@1"], **options)

    return evaluate


def rules(scores) -> list[str]:
    return [note.rule for note in scores.notes]


@pytest.mark.parametrize(
    ("judged_id", "returned_id"),
    [("SKU-7", "sku-0007"), ("12", "12.0"), ("0012", "12"), ("caf\u00e9", "cafe\u0301"), ("A1", "a1")],
)
@pytest.mark.parametrize("processes", [1, 2])
def test_ids_match_without_regard_to_notation(evaluated, judged_id: str, returned_id: str, processes: int) -> None:
    run = ["q1 other", f"q1 {returned_id}"]
    scores = evaluated([f"q1 0 {judged_id} 1"], run, run, processes=processes)
    assert scores.values[:, 0, 0].tolist() == [0.5, 0.5]
    assert rules(scores).count(RULE) == 2


def test_topics_match_without_regard_to_notation(evaluated) -> None:
    scores = evaluated(["7 0 d 1", "8 0 e 1"], ["007 d", "008 x"])
    assert scores.query_ids == ("7", "8")
    assert scores.values[0, 0].tolist() == [1.0, 0.0]


def test_a_run_with_a_judged_document_keeps_its_ids(evaluated) -> None:
    scores = evaluated(["q1 0 A1 1", "q1 0 b 1"], ["q1 a1", "q1 b"])
    assert scores.values[0, 0].tolist() == [0.5]
    assert RULE not in rules(scores)


def test_only_the_run_with_other_ids_is_matched(evaluated) -> None:
    with pytest.warns(judged.errors.JudgedWarning, match="ids were matched"):
        scores = evaluated(["q1 0 A1 1"], ["q1 A1"], ["q1 a1"])
    assert scores.values[:, 0, 0].tolist() == [1.0, 1.0]
    assert [note.subject for note in scores.notes if note.rule == RULE] == ["r1"]


def test_documents_with_the_same_form_are_not_matched(evaluated) -> None:
    two_in_run = evaluated(["q1 0 A1 1"], ["q1 a1", "q1 a01"])
    two_in_qrels = evaluated(["q1 0 A1 1", "q1 0 A01 1"], ["q1 a1"])
    for scores in (two_in_run, two_in_qrels):
        assert scores.values[0, 0].tolist() == [0.0]
        assert "nothing-judged" in rules(scores)
        assert RULE not in rules(scores)


def test_ids_of_python_objects_stay_exact() -> None:
    scores = judged.evaluate({"q1": {"A1": 1}}, {"q1": {"a1": 1.0}}, "RR")
    assert scores.values.tolist() == [[[0.0]]]


def test_ids_that_are_in_the_qrels_are_kept() -> None:
    qrels = Qrels.of({"q1": {"A1": 1, "a1": 0, "B2": 1}})
    run = Run.of({"q1": {"a1": 3.0, "A1": 2.0, "b2": 1.0, "C3": 0.5}})
    assert with_ids_of(qrels, run).table["doc_id"].to_pylist() == ["a1", "A1", "B2", "C3"]
