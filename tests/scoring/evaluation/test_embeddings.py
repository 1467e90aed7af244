"""Evaluation of embedding functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judged
from judged.data.write import write_run
from judged.errors import InputError
from judged.scoring.evaluation import embeddings
from judged.scoring.evaluation.embeddings import evaluate_embeddings, nearest, run_of_embeddings


def hashed(texts: list[str]) -> Any:
    """Return vectors that depend on the text only, with equal components for many texts."""
    return np.array([np.random.default_rng(len(text)).integers(-2, 3, 4) for text in texts], dtype=np.float64)


@pytest.mark.parametrize("cells", [1, 40, 1 << 24])
def test_exact_search_equals_a_full_sort(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_BLOCK_CELLS", cells)
    rng = np.random.default_rng(1)
    queries, documents = rng.random((7, 5), dtype=np.float32), rng.random((13, 5), dtype=np.float32)
    for k in (1, 4, 13):
        rows, products = nearest(queries, documents, k)
        full = queries @ documents.T
        expected = np.argsort(-full, axis=1, kind="stable")[:, :k]
        assert (rows == expected).all()
        assert products == pytest.approx(np.take_along_axis(full, expected, axis=1), rel=1e-6)


def test_equal_products_are_ordered_by_row() -> None:
    rows, _ = nearest(np.ones((1, 2), dtype=np.float32), np.ones((5, 2), dtype=np.float32), 5)
    assert rows.tolist() == [[0, 1, 2, 3, 4]]


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_scores_equal_those_of_a_run_on_disk(similarity: Any, tmp_path: Path) -> None:
    queries = {f"q{i}": "w" * i for i in range(1, 9)}
    documents = {f"d{i:02}": {"title": "t" * i, "text": "x"} for i in range(40)}
    qrels = {f"q{i}": {f"d{(7 * i + j) % 40:02}": 1 + j % 2 for j in range(5)} for i in range(1, 8)}
    scores = evaluate_embeddings(hashed, queries, documents, qrels, ["nDCG@10", "AP"], similarity=similarity, cutoff=20)
    run = run_of_embeddings(hashed, queries, documents, similarity=similarity, cutoff=20)
    write_run(run, tmp_path / "embeddings.run")
    written = judged.evaluate(qrels, tmp_path / "embeddings.run", ["nDCG@10", "AP"])
    assert scores.per_topic()["embeddings"] == written.per_topic()["embeddings"]
    assert "q8" not in scores.query_ids


def test_cosine_by_hand() -> None:
    vectors = {"q": [3, 4], "a": [6, 8], "b": [4, 3], "zero": [0, 0]}
    run = run_of_embeddings(
        lambda texts: [vectors[text] for text in texts], {"1": "q"}, {t: t for t in ("a", "b", "zero")}
    )
    scores = dict(zip(run.table["doc_id"].to_pylist(), run.table["score"].to_pylist(), strict=True))
    assert scores == {"a": pytest.approx(1), "b": pytest.approx(24 / 25), "zero": 0}


def test_function_of_queries_and_batches() -> None:
    sizes: list[int] = []

    def encode(texts: list[str]) -> Any:
        sizes.append(len(texts))
        return np.eye(3)[[len(text) % 3 for text in texts]]

    documents = {str(i): "x" * i for i in range(5)}
    evaluate_embeddings(
        encode,
        {"q": "xx"},
        documents,
        {"q": {"2": 1}},
        "RR",
        texts_per_call=2,
        encode_queries=lambda t: np.eye(3)[[2] * len(t)],
    )
    assert sizes == [2, 2, 1]


@pytest.mark.parametrize(
    ("vectors", "message"),
    [(np.ones(2), "shape"), (np.ones((1, 2)), "shape"), (np.full((2, 2), np.nan), "not finite")],
)
def test_invalid_vectors_are_refused(vectors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_of_embeddings(lambda _: vectors, {"1": "a", "2": "b"}, {"d": "x", "e": "y"})


def test_other_invalid_inputs_are_refused() -> None:
    def encode(texts: list[str]) -> Any:
        return np.ones((len(texts), 2))

    with pytest.raises(InputError, match="no query has a judgment"):
        evaluate_embeddings(encode, {"q": "a"}, {"d": "x"}, {"p": {"d": 1}})
    with pytest.raises(InputError, match="dimensions"):
        run_of_embeddings(encode, {"q": "a"}, {"d": "x"}, encode_queries=lambda texts: np.ones((len(texts), 3)))
    with pytest.raises(InputError, match="similarity"):
        run_of_embeddings(encode, {"q": "a"}, {"d": "x"}, similarity="l2")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="documents"):
        run_of_embeddings(encode, {"q": "a"}, {})
