"""Pipelines: fusion agrees with `fuse`, and reranking follows the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judged.comparison.fusion import fuse
from judged.data.texts import Text
from judged.errors import InputError
from judged.pipelines.experiments import Candidate
from judged.pipelines.experiments.configurations import FULL, DesignSpace
from judged.pipelines.experiments.pipelines import Node, SearchRecord, create_system, expand_query, read_synonyms
from pipelines.experiments.small_plan import DOCUMENTS

TEXTS = {doc: Text("", text) for doc, text in DOCUMENTS.items()}
QUERIES = ("pears and fruit", "networks", "connections of the tree", "nothing here")


def build_system(folder: Path, name: str, pipelines: dict[str, Any], **control: Any) -> Any:
    node, _ = DesignSpace({"engine": name, **control}, {}, (), pipelines, FULL, folder).node(name, control)
    system = create_system(node)
    system.build(TEXTS, folder)
    return system


def shortness(query: str, candidates: list[Candidate]) -> list[float]:
    """Score short documents higher."""
    assert query in QUERIES
    return [-float(len(candidate.text)) for candidate in candidates]


def build_reranker(folder: Path, function: Any) -> Any:
    """Rerank the first two documents of SQLite's list."""
    folder.mkdir(exist_ok=True)
    child, _ = DesignSpace({}, {}, (), {}, FULL, folder).node("sqlite", {})
    system = create_system(Node("again", "rerank", {"function": function, "cutoff": 2}, (child,)))
    system.build(TEXTS, folder)
    return system


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rrf_k": 5.0, "weights": [0.2, 0.8]},
        {"algorithm": "sum", "normalize": "z-score"},
        {"algorithm": "mnz", "missing": "last"},
        {"algorithm": "borda", "depth": 2},
    ],
)
def test_fusion_agrees_with_fuse(options: dict[str, Any], tmp_path: Path) -> None:
    pipelines = {
        "words": {"engine": "sqlite", "stemmer": "none"},
        "grams": {"engine": "sqlite", "stemmer": "none", "tokens": "trigrams"},
        "both": {"engine": "fusion", "lists": ["words", "grams"], **options},
    }
    runs = {}
    for name in ("words", "grams"):
        (tmp_path / name).mkdir()
        engine = build_system(tmp_path / name, name, pipelines)
        runs[name] = {query: dict(engine.search(query, 5)) for query in QUERIES}
    (tmp_path / "both").mkdir()
    fusion = build_system(tmp_path / "both", "both", pipelines)
    table = fuse(runs, cutoff=5, **options).table.to_pylist()
    expected = {
        query: [(row["doc_id"], row["score"]) for row in table if row["query_id"] == query] for query in QUERIES
    }
    assert {query: fusion.search(query, 5) for query in QUERIES} == expected
    assert expected["nothing here"] == []
    assert len(fusion.engines()) == 2


def test_reranked_documents_precede_the_others(tmp_path: Path) -> None:
    reranker = build_reranker(tmp_path, shortness)
    records: list[SearchRecord] = []
    hits = reranker.search(QUERIES[0], 5, records)
    assert [doc for doc, _ in records[0].hits] == ["d1", "d3", "d5", "d2"]  # equal scores, in the order of runs
    assert hits == [("d3", -10.0), ("d1", -26.0), ("d5", -27.0), ("d2", -28.0)]
    assert reranker.search(QUERIES[0], 1) == [("d3", -10.0)]  # the reranker still reads two
    assert [(record.name, record.kind, record.parents) for record in records] == [
        ("sqlite", "candidates", ()), ("again", "rerank", ("sqlite",)),
    ]  # fmt: skip
    invalid_reranker = build_reranker(
        tmp_path / "wrong", lambda query, candidates: [float(len(query + str(candidates)))]
    )
    with pytest.raises(InputError, match=r"2 finite scores, got"):
        invalid_reranker.search(QUERIES[0], 5)


def test_nodes_with_the_same_name_share_a_system(tmp_path: Path) -> None:
    """A list and its reranking share one index."""
    pipelines = {
        "both": {"engine": "fusion", "lists": ["sqlite", "again"]},
        "again": {"engine": "rerank", "of": "sqlite", "function": "math:sqrt"},
    }
    fusion = build_system(tmp_path, "both", pipelines)
    assert len(fusion.engines()) == len(list(tmp_path.rglob("index.sqlite"))) == 1


def test_queries_are_rewritten_then_expanded(tmp_path: Path) -> None:
    synonyms_file = tmp_path / "words.txt"
    synonyms_file.write_text("# groups\nvehicle, pears, Fruit # food\n\nsea side,networks\n")
    assert read_synonyms(str(synonyms_file)) == (("vehicle", "pears", "Fruit"), ("sea side", "networks"))
    (tmp_path / "index").mkdir()
    engine = build_system(tmp_path / "index", "sqlite", {}, synonyms=str(synonyms_file), rewrite="builtins:str")
    records: list[SearchRecord] = []
    hits = engine.search("Sea side vehicle", 5, records)
    assert records[0].query == "Sea side vehicle pears Fruit networks"
    assert {doc for doc, _ in hits} == {"d1", "d2", "d3", "d4", "d5"}
    assert expand_query("seaside vehicles", read_synonyms(str(synonyms_file))) == "seaside vehicles"
    synonyms_file.write_text("car\n")
    with pytest.raises(InputError, match=r"words.txt:1: .*two words, got 'car'"):
        read_synonyms(str(synonyms_file))


def test_a_rejected_query_has_no_results_in_its_node(tmp_path: Path) -> None:
    pipelines = {
        "grams": {"engine": "sqlite", "stemmer": "none", "tokens": "trigrams"},
        "both": {"engine": "fusion", "lists": ["sqlite", "grams"]},
    }
    fusion = build_system(tmp_path, "both", pipelines)
    records: list[SearchRecord] = []
    assert [doc for doc, _ in fusion.search("of", 5, records)]
    assert [(record.name, record.refused) for record in records] == [
        ("sqlite", ""), ("grams", "the query has no word"), ("both", ""),
    ]  # fmt: skip
    assert fusion.search("?", 5) == []
