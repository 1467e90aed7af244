"""Datasets of ir_datasets: a stand-in with its interface is read as files with the same content are."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from judged import InputError, MissingExtraError, Qrels, Run, Texts, Topics, evaluate
from judged.data.sources import open_source
from stand_ins import PETS, Dataset, SubtopicGrade

ADDRESS = "irds:local/pets"


@pytest.fixture(autouse=True)
def ir_datasets(monkeypatch):
    """Put the stand-in in the place of ir_datasets."""
    registry = {"local/pets": PETS}
    module = SimpleNamespace(registry=registry, load=registry.__getitem__)
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    return registry


@pytest.mark.parametrize("data", [ADDRESS, PETS])
def test_all_parts_of_a_dataset(data):
    qrels, topics, texts = Qrels.of(data), Topics.of(data), Texts.of(data)
    assert qrels.table.select([0, 1, 2]).to_pylist() == [
        {"query_id": "q1", "doc_id": "d1", "relevance": 1.0},
        {"query_id": "q1", "doc_id": "d2", "relevance": 0.0},
        {"query_id": "q2", "doc_id": "d2", "relevance": 2.0},
    ]
    assert qrels.where == topics.where == "irds:local/pets"
    assert [topics.text("q1"), topics.text("q2")] == ["cat", "dog"]
    assert "description" in topics.attributes
    assert [texts.title("d1"), texts.text("d1"), texts.title("d2"), texts.text("d2")] == [
        *("Cats", "They sleep."),
        *("", "Dogs bark."),
    ]
    assert Run.of(data).table.to_pylist()[1] == {"query_id": "q1", "doc_id": "d1", "score": 1.5}


def test_selected_documents_come_from_the_document_store():
    assert list(Texts.of(ADDRESS, {"d2"}).documents) == ["d2"]


def test_names():
    assert (Qrels.of(ADDRESS).name, Topics.of(ADDRESS).name, Run.of(ADDRESS).name) == ("local/pets",) * 3
    assert open_source(f"mine={ADDRESS}", "qrels").name == "mine"


def test_results_are_scored_like_those_of_a_file(tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d2 2\n")
    assert evaluate(ADDRESS, ADDRESS, "RR").aggregate() == {"local/pets": {"RR": 0.75}}
    assert Qrels.read(tmp_path / "qrels.txt").table.equals(Qrels.of(ADDRESS).table)


def test_subtopics_are_read_as_iterations(ir_datasets):
    grades = [SubtopicGrade("q", "d", 1, "1"), SubtopicGrade("q", "d", 1, "2")]
    ir_datasets["web"] = Dataset(qrels=grades)
    assert Qrels.of("irds:web").table["iteration"].to_pylist() == ["1", "2"]


@pytest.mark.parametrize(
    ("read", "part"), [(Qrels.of, "qrels"), (Run.of, "scoreddocs"), (Topics.of, "queries"), (Texts.of, "docs")]
)
def test_a_missing_part_is_named(ir_datasets, read, part):
    ir_datasets["empty"] = Dataset()
    with pytest.raises(InputError, match=f"irds:empty: .*{part}"):
        read("irds:empty")


def test_an_unknown_dataset_and_a_failed_download(ir_datasets):
    with pytest.raises(InputError, match="write local/pets"):
        Qrels.of("irds:local/pet")

    def fail():
        raise RuntimeError("All download sources failed")
        yield

    ir_datasets["far"] = broken = Dataset(qrels=[])
    broken.qrels_iter = fail
    with pytest.raises(InputError, match="All download sources failed"):
        Qrels.of("irds:far")


def test_without_ir_datasets_the_error_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"Fix: pip install ir_datasets\."):
        Qrels.of(ADDRESS)
