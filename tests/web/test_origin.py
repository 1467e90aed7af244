"""Where judgments came from: kept with them, beside files, in provenance; and said where people did not judge."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import judged
from judged import Qrels, Run, Scores, agree, evaluate
from judged.data.qrels import Origin
from judged.data.write import write_qrels, write_run
from judged.errors import InputError
from judged.interface.pages.workspace import open_workspace
from judged.scoring.evaluation.notes import origin_notes
from judged.web.app import make_app

TOPICS = [f"q{i}" for i in range(1, 9)]
GRADES = {topic: {f"d{doc}": (i * doc) % 3 for doc in range(1, 7)} for i, topic in enumerate(TOPICS, 1)}
RUNS = {name: {topic: {f"d{doc}": doc * (-1) ** i for doc in range(1, 7)} for topic in TOPICS} for i, name in
        enumerate(("old", "new"))}  # fmt: skip
PEOPLE = Origin("majority", human=60, judges=("ann", "bob"), last="2026-01-02T03:04:05.678+00:00", sha256="ab")
MIXED = Origin("mean", human=10, model=30, click=8, judges=("ann", "llm", "log"), synthetic=3, tied=2)
RULES = ["model-judgments", "click-judgments", "synthetic-topics"]


def qrels_from(origin: Origin | None) -> Qrels:
    return replace(Qrels.of(GRADES), origin=origin)


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.csv", "qrels.jsonl", "qrels.parquet", "qrels.txt.gz"])
def test_a_file_has_its_origin_beside_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_qrels(qrels_from(MIXED), path)
    assert Qrels.read(path).origin == MIXED
    assert json.loads((tmp_path / f"{name}.origin.json").read_text())["origin"]["model"] == 30


def test_the_origin_of_another_file_does_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    write_qrels(qrels_from(MIXED), path)
    path.write_text(path.read_text().replace("q1 0 d1 1", "q1 0 d1 2"))
    assert Qrels.read(path).origin is None
    write_qrels(qrels_from(None), path)
    assert Qrels.read(path).origin is None


def test_names_that_are_as_long_as_can_be_and_devices_have_nothing_beside_them(tmp_path: Path) -> None:
    path = tmp_path / ("q" * 251 + ".txt")
    write_qrels(qrels_from(None), path)
    assert Qrels.read(path).origin is None
    write_qrels(qrels_from(MIXED), "/dev/null")
    assert not Path("/dev/null.origin.json").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"file_sha256": "x"', '{"file_sha256": 3, "origin": 4}'])
def test_an_origin_that_cannot_be_read_is_named_with_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "qrels.txt"
    write_qrels(qrels_from(MIXED), path)
    beside = tmp_path / "qrels.txt.origin.json"
    beside.write_text(text)
    if text.endswith("4}"):  # that of another file, whatever it says
        assert Qrels.read(path).origin is None
        return
    with pytest.raises(InputError) as raised:
        Qrels.read(path)
    assert raised.value.path == str(beside)


def test_what_a_later_judged_writes_besides_is_left_out() -> None:
    assert Origin.of({**asdict(MIXED), "weather": "rain"}) == MIXED


def test_it_stays_where_topics_are_chosen_and_grades_changed() -> None:
    qrels = qrels_from(MIXED)
    assert qrels.over({"q1"}).origin == qrels.regraded(qrels.grades + 1).origin == MIXED


def test_it_is_in_the_provenance_and_saved_with_scores(tmp_path: Path) -> None:
    scores = evaluate(qrels_from(MIXED), RUNS, "AP", dialect="trec_eval-10")
    assert scores.to_dict()["qrels"]["origin"] == asdict(MIXED)
    scores.save(tmp_path / "scores.parquet")
    assert Scores.load(tmp_path / "scores.parquet").qrels == scores.qrels
    assert evaluate(GRADES, RUNS, "AP").to_dict()["qrels"]["origin"] is None


def test_judgments_of_people_are_nothing_to_warn_of() -> None:
    assert evaluate(qrels_from(PEOPLE), RUNS, "AP").notes == evaluate(GRADES, RUNS, "AP").notes


def test_every_result_says_that_people_did_not_judge_or_ask() -> None:
    qrels = qrels_from(MIXED)
    scores = evaluate(qrels, RUNS, "AP")
    attributes = {topic: {"kind": "long" if i % 2 else "short"} for i, topic in enumerate(TOPICS)}
    slicing = judged.slice_topics(attributes, "kind", min_topics=2)
    answers = [
        scores, scores.compare(), scores.over_topics([True] * 4 + [False] * 4), scores.by_slice(slicing),
        scores.compare_slices(slicing), scores.gate("old", "new", measures="AP", margin=0.1),
        judged.matrix(qrels, RUNS), judged.disagree(qrels, RUNS), judged.review(qrels, RUNS),
        judged.diff(qrels, RUNS["old"], RUNS["new"]), judged.stages(qrels, RUNS["old"]),
    ]  # fmt: skip
    for answer in answers:
        rules = [note.rule for note in answer.notes]
        assert [rule for rule in RULES if rule in rules] == RULES, type(answer)
        assert answer.to_dict()["qrels"]["origin"]["synthetic"] == 3, type(answer)


def test_reports_and_pages_say_it_too(tmp_path: Path) -> None:
    write_qrels(qrels_from(MIXED), tmp_path / "qrels.txt")
    for name, run in RUNS.items():
        write_run(Run.of(run), tmp_path / f"{name}.run")
    workspace = open_workspace(str(tmp_path / "qrels.txt"), [str(tmp_path / f"{name}.run") for name in RUNS])
    client = TestClient(make_app(workspace), base_url="http://127.0.0.1")
    expected_notes = [note.text for note in origin_notes(MIXED)]
    assert len(expected_notes) == len(RULES)
    for text in (judged.report(qrels_from(MIXED), RUNS).json(), client.get("/api/v1/leaderboard").text):
        assert all(note in text for note in expected_notes)
    assert all(note in client.get("/leaderboard").text for note in expected_notes)


def test_judges_that_are_models_are_named_where_judges_are_compared() -> None:
    result = agree({"ann": qrels_from(PEOPLE), "mixed": qrels_from(MIXED)}, runs=RUNS, measures="AP")
    assert ("model-judgments", "mixed") in {(note.rule, note.subject) for note in result.notes}
    assert not any(note.subject == "ann" for note in result.notes)
