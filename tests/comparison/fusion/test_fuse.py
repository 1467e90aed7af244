"""Fusion: results of ranx, the included fused run, hand calculations, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged.comparison.fusion import fuse
from judged.data import sample
from judged.errors import InputError

RANX = json.loads(Path(__file__).with_name("ranx.json").read_text(encoding="utf-8"))
"""Three random runs and results of ranx 0.3.21; no ties, whose order ranx does not define."""
RUNS = {f"r{n}": run for n, run in enumerate(RANX["runs"])}
TWO = {"a": {"q": {"x": 9.0, "y": 7.0, "z": 1.0}}, "b": {"q": {"y": 0.9, "w": 0.8}}}


def scores(run: Any) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for row in run.table.to_pylist():
        rows.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
    return rows


def close(first: dict[str, dict[str, float]], second: dict[str, dict[str, float]]) -> bool:
    assert first.keys() == second.keys()
    return all(first[query] == pytest.approx(second[query], abs=1e-9) for query in first)


@pytest.mark.parametrize("which", sorted(RANX["values"]))
def test_values_of_ranx(which: str) -> None:
    algorithm, _, normalize = which.removeprefix("weighted ").partition("/")
    weights = (0.2, 0.3, 0.5) if which.startswith("weighted") else None
    missing = "share" if algorithm == "borda" else "skip"
    fused = fuse(RUNS, algorithm, normalize=normalize or "min-max", missing=missing, weights=weights)
    assert close(scores(fused), RANX["values"][which])


def test_the_sample_s_fused_run_is_made_again() -> None:
    runs = {run.name: run for run in sample.runs()}
    mine = scores(fuse([runs["bm25"], runs["tfidf_char"]], cutoff=50, ties="stable"))
    shipped = scores(runs["rrf"])
    assert mine.keys() == shipped.keys()
    for query, documents in mine.items():  # the shipped scores have six decimals
        assert list(documents.values()) == pytest.approx(list(shipped[query].values()), abs=5e-6)


def test_by_hand() -> None:
    # y: 1/62 + 1/61, x: 1/61, w: 1/62, z: 1/63
    assert scores(fuse(TWO))["q"] == pytest.approx({"y": 1 / 62 + 1 / 61, "x": 1 / 61, "w": 1 / 62, "z": 1 / 63})
    # a lacks w: rank 4 of it; b lacks x and z: rank 3
    assert scores(fuse(TWO, missing="last"))["q"] == pytest.approx({
        "y": 1 / 62 + 1 / 61, "x": 1 / 61 + 1 / 63, "w": 1 / 62 + 1 / 64, "z": 2 / 63,
    })  # fmt: skip
    # min-max of a: x 1, y 0.75, z 0; of b: y 1, w 0
    assert scores(fuse(TWO, "sum"))["q"] == pytest.approx({"y": 1.75, "x": 1.0, "z": 0.0, "w": 0.0})
    assert scores(fuse(TWO, "mnz"))["q"] == pytest.approx({"y": 3.5, "x": 1.0, "z": 0.0, "w": 0.0})
    # four candidates: a gives 4, 3, 2, and 1 to w; b gives 4, 3, and (4 - 2 + 1) / 2 to the two that are left
    assert scores(fuse(TWO, "borda"))["q"] == pytest.approx({"x": 5.5, "y": 7.0, "z": 3.5, "w": 4.0})
    # two scores: z-scores of b are 1 and -1; what it lacks has its lowest
    result = scores(fuse({"b": TWO["b"], "c": {"q": {"w": 5.0}}}, "sum", normalize="z-score"))["q"]
    assert result == pytest.approx({"y": 1.0, "w": -1.0})


def test_a_list_of_one_document_counts_in_full() -> None:
    assert scores(fuse({"a": {"q": {"x": 3.0}}, "b": {"q": {"y": 2.0, "z": 1.0}}}, "sum"))["q"]["x"] == 1.0


def test_a_topic_of_one_list_alone_keeps_its_order() -> None:
    fused = fuse({"a": {"q": {"x": 2.0, "y": 1.0}}, "b": {"p": {"z": 1.0}}}, missing="last")
    assert list(scores(fused)["q"]) == ["x", "y"]
    assert list(scores(fused)["p"]) == ["z"]


def test_equal_scores_stand_by_id_and_the_cutoff_keeps_the_first() -> None:
    fused = fuse({"a": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}, "c": {"q": {"w": 1.0}}})
    assert fused.table["doc_id"].to_pylist() == ["y", "x", "w"]
    assert fuse(TWO, cutoff=2).table["doc_id"].to_pylist() == ["y", "x"]
    assert fuse(TWO, depth=1).table["doc_id"].to_pylist() == ["y", "x"]


def test_ranks_are_the_order_where_there_are_no_scores() -> None:
    ranked = {"query_id": ["q", "q"], "doc_id": ["x", "y"], "rank": [2, 1]}
    import pyarrow as pa

    fused = fuse({"a": pa.table(ranked), "b": TWO["b"]})
    assert scores(fused)["q"]["y"] == pytest.approx(2 / 61)


LISTS = st.dictionaries(
    st.sampled_from("pq"),
    st.dictionaries(st.sampled_from("uvwxyz"), st.integers(0, 5).map(float), min_size=1),
    min_size=1,
)


@given(first=LISTS, second=LISTS, algorithm=st.sampled_from(["rrf", "sum", "max", "borda"]))
def test_the_order_of_lists_and_the_scale_of_scores_make_no_difference(first: Any, second: Any, algorithm: str) -> None:
    fused = scores(fuse({"a": first, "b": second}, algorithm))
    assert close(fused, scores(fuse({"b": second, "a": first}, algorithm)) | {query: fused[query] for query in ()})
    larger = {query: {doc: 3 * score + 8 for doc, score in documents.items()} for query, documents in first.items()}
    assert close(fused, scores(fuse({"a": larger, "b": second}, algorithm)))


@pytest.mark.parametrize(
    ("runs", "options", "problem"),
    [
        ({"a": TWO["a"]}, {}, "at least two runs are required, got a"),
        (TWO, {"algorithm": "condorcet"}, "condorcet"),
        (TWO, {"weights": [1, 2, 3]}, "3 weights for 2"),
        (TWO, {"weights": {"a": 1}}, "b"),
        (TWO, {"weights": [0, 0]}, "weights must be >= 0 with at least one > 0"),
        (TWO, {"weights": [1, -1]}, "weights must be >= 0 with at least one > 0"),
        (TWO, {"rrf_k": -1}, "rrf_k"),
        (TWO, {"algorithm": "mnz", "normalize": "z-score"}, "mnz"),
        (TWO, {"algorithm": "sum", "missing": "share"}, "share"),
        ({"a": TWO["a"], "b": {"q": {"x", "y"}}}, {}, "a run needs scores or ranks"),
    ],
)
def test_invalid_options(runs: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        fuse(runs, **options)
