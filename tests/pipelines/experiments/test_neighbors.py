"""Vector search: recall and distances against brute force, vectors of files, and the error rate of equivalence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judged
from judged import InputError
from judged.data.texts import Text
from judged.pipelines.experiments import conclude, run
from judged.pipelines.experiments.engines import find_engine
from judged.pipelines.experiments.engines.base import QueryRefusedError
from judged.pipelines.experiments.engines.vectors import neighbor_quality
from judged.pipelines.experiments.neighbors import NeighborSearch, equivalence_p, neighbor_rows, neighbor_section

ALPHA = 0.05


def cosines(*values: float) -> Any:
    return np.array(values, dtype=np.float32)


def test_quality_by_hand() -> None:
    # Distances of the cosines 0.875, 0.5, -1 are 0.5, 1, 2.
    query = cosines(0.5, 0.875, -1.0)
    assert neighbor_quality(query, [1, 0], 2) == (1.0, 1.0)
    assert neighbor_quality(query, [1, 2], 2) == (0.5, pytest.approx(1 / 1.5))  # ratios 1 and 2
    assert neighbor_quality(query, [1], 2) == (0.5, pytest.approx(1 / 1.5))  # missing: distance 2
    assert neighbor_quality(cosines(0.5, 0.5, 0.5), [2], 1) == (1.0, 1.0)  # as near as the nearest
    assert neighbor_quality(cosines(1.0, 0.5), [1], 1) == (0.0, 0.0)  # 1 / 0
    assert neighbor_quality(cosines(1.0, 1.0), [1, 0], 2) == (1.0, 1.0)  # 0 / 0
    assert neighbor_quality(cosines(0.9, 0.8, 0.7), [0, 1, 2], 1) == (1.0, 1.0)  # only the first k


def clustered_vectors(n: int, dimensions: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(200, dimensions))
    vectors = centers[rng.integers(0, len(centers), n)] + 0.7 * rng.normal(size=(n, dimensions))
    return vectors.astype(np.float32)


def build(name: str, folder: Path, documents: Any, queries: Any, **configuration: Any) -> Any:
    folder.mkdir()
    np.save(folder / "documents.npy", documents)
    np.save(folder / "queries.npy", queries)
    engine = find_engine(name)()
    settings = {key: setting.default for key, setting in engine.settings.items()}
    files = {f"{kind}_vectors": str(folder / file) for kind, file in
             (("document", "documents.npy"), ("query", "queries.npy"))}  # fmt: skip
    texts = {f"d{i}": Text("", "") for i in range(len(documents))}
    (folder / "index").mkdir()
    engine.build(texts, settings | files | configuration, folder / "index")
    engine.read_queries({f"q{i}": f"query {i}" for i in range(len(queries))})
    return engine


def mean_recall(engine: Any, n_queries: int, ef: int | None = None) -> float:
    if ef is not None:
        engine._configuration["ef_query"] = ef
        if hasattr(engine._graph, "expansion_search"):
            engine._graph.expansion_search = ef
    lists = [(f"query {i}", engine.search(f"query {i}", 10)) for i in range(n_queries)]
    _, qualities = engine.compare_with_exact(lists, 10)
    assert all(quality.inverse_ratio <= 1 for quality in qualities)
    return float(np.mean([quality.recall for quality in qualities]))


def test_exact_search_equals_brute_force(tmp_path: Path) -> None:
    documents, queries = clustered_vectors(500, 16, 1), clustered_vectors(20, 16, 2)
    engine = build("dense", tmp_path / "dense", documents, queries)
    unit_documents, unit_queries = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (documents, queries))
    for i, query in enumerate(unit_queries):
        similarities = unit_documents.astype(np.float64) @ query
        expected = [f"d{row}" for row in np.argsort(-similarities)[:10]]
        hits = engine.search(f"query {i}", 10)
        assert [doc for doc, _ in hits] == expected
        assert [score for _, score in hits] == pytest.approx(np.sort(similarities)[::-1][:10], abs=1e-6)
    assert mean_recall(engine, 20) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "least"),
    [("voyager", "f32", 0.99), ("usearch", "f32", 0.99), ("usearch", "f16", 0.99), ("usearch", "i8", 0.85),
     ("voyager", "e4m3", 0.6)],
)  # fmt: skip
def test_recall_rises_with_ef(tmp_path: Path, name: str, dtype: str, least: float) -> None:
    documents, queries = clustered_vectors(20_000, 32, 3), clustered_vectors(200, 32, 4)
    engine = build(name, tmp_path / "index", documents, queries, dtype=dtype, m=16, ef_build=100)
    recalls = [mean_recall(engine, 200, ef) for ef in (10, 80, 640)]
    assert recalls == sorted(recalls)
    assert recalls[0] < 0.99
    assert recalls[-1] >= least
    if dtype == "f32":
        assert recalls[0] < recalls[1]


def test_vectors_of_files(tmp_path: Path) -> None:
    documents = clustered_vectors(50, 8, 5)
    queries = np.concatenate([clustered_vectors(2, 8, 6), np.zeros((1, 8), np.float32)])
    by_rows = build("dense", tmp_path / "rows", documents, queries)
    order = np.random.default_rng(7).permutation(50)
    files = {}
    for kind, column, ids, vectors in (
        ("document", "doc_id", [f"d{i}" for i in order], documents[order]),
        ("query", "query_id", ["q2", "q1", "q0"], queries[::-1]),
    ):
        files[f"{kind}_vectors"] = str(tmp_path / f"{kind}.parquet")
        pq.write_table(pa.table({column: ids, "vector": vectors.tolist()}), files[f"{kind}_vectors"])
    by_id = build("dense", tmp_path / "id", documents, queries, **files)
    assert by_id.search("query 1", 5) == by_rows.search("query 1", 5)
    with pytest.raises(QueryRefusedError):
        by_id.search("query 2", 5)
    with pytest.raises(InputError, match="no vector of the query"):
        by_id.search("another query", 5)
    np.save(tmp_path / "short.npy", documents[:49])
    (tmp_path / "text.npy").write_text("no array")
    pq.write_table(pa.table({"doc_id": ["d0"], "vector": [[1.0]]}), tmp_path / "one.parquet")
    for name, problem in (("short.npy", "expected one row for each document"), ("text.npy", "cannot read"),
                          ("one.parquet", "no vector for 49 of 50 ids"), ("none.npy", "cannot read")):  # fmt: skip
        # The problem follows the path: an error of ours is not wrapped in another one.
        with pytest.raises(InputError, match=rf"^{re.escape(str(tmp_path / name))}: {problem}"):
            build("dense", tmp_path / f"folder of {name}", documents, queries, document_vectors=str(tmp_path / name))
    with pytest.raises(InputError, match="requires vectors of the queries"):
        build("dense", tmp_path / "half", documents, queries, query_vectors="")


def simulated_losses(rng: Any, kind: str, n: int) -> Any:
    """Return losses by topic with a mean of 0.01 in the population."""
    if kind == "rare":
        return 0.5 * (rng.random(n) < 0.02)
    if kind == "very rare":
        return 1.0 * (rng.random(n) < 0.01)
    return 0.01 + 0.05 * rng.standard_normal(n)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rare", "very rare", "common"])
@pytest.mark.parametrize("n", [100, 600])
def test_error_rate_of_equivalence(kind: str, n: int) -> None:
    rng, repetitions = np.random.default_rng(8), 200
    exact = np.full(n, 0.6)
    shown = [
        equivalence_p(exact, exact - simulated_losses(rng, kind, n), 0.01, 1.0) <= ALPHA for _ in range(repetitions)
    ]
    assert np.mean(shown) <= ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / repetitions)


def test_power_of_equivalence() -> None:
    rng = np.random.default_rng(9)
    exact = rng.random(800)
    approximate = exact - 0.02 * (rng.random(800) < 0.02)  # a mean loss of 0.0004
    assert equivalence_p(exact, approximate, 0.01, 1.0) <= ALPHA
    assert equivalence_p(exact[:100], approximate[:100], 0.01, 1.0) > ALPHA
    assert equivalence_p(exact, exact - 0.05, 0.01, 1.0) > ALPHA
    assert equivalence_p(exact, exact + 0.05, 0.01, 1.0) > ALPHA  # a gain is a difference too


@pytest.mark.parametrize("margin", [0.0, -0.01, float("nan"), float("inf")])
def test_margins_that_make_no_sense_are_refused(margin: float) -> None:
    with pytest.raises(InputError, match="`margin` must be a positive number"):
        equivalence_p(np.zeros(9), np.zeros(9), margin, 1.0)


def test_no_difference_exceeds_a_margin_above_the_range() -> None:
    assert equivalence_p(np.zeros(9), np.ones(9), 1.5, 1.0) == 0
    assert equivalence_p(np.zeros(9), np.ones(9), 1.0, 1.0) > ALPHA
    assert equivalence_p(np.zeros(0), np.zeros(0), 1.5, 1.0) == 1


def test_engines_may_refuse_different_numbers_of_queries() -> None:
    topics = [f"q{i}" for i in range(12)]
    run = {topic: {"d": 1.0} for topic in topics}
    scores = judged.evaluate({topic: {"d": 1} for topic in topics}, {"a": run, "b": run}, "RR")
    searches = {
        "a": NeighborSearch(10, "x", True, (1.0,) * 12, (1.0,) * 12, 100.0),
        "b": NeighborSearch(10, "y", False, (1.0,) * 9 + (0.5,) * 2, (1.0,) * 11, 200.0),
    }
    rows = neighbor_rows(searches, {"a": {"engine": "dense"}, "b": {"engine": "voyager"}}, scores, 0.01, 0.95)
    table = neighbor_section(rows, scores, {}, 0.01, 0.95).blocks[1]
    assert table.column("recall").values == pytest.approx([1.0, 10 / 11])
    assert table.column("recall").ci[0] is None
    low, high = table.column("recall").ci[1]
    assert low < 10 / 11 < high


def test_fixed_sequence() -> None:
    topics = [f"q{i}" for i in range(600)]
    qrels = {topic: {"d": 1} for topic in topics}
    good, bad = (dict.fromkeys(topics, docs) for docs in (["d"], ["x", "d"]))
    runs = {"exact": good, "a64": good, "a32": bad, "a16": good, "b64": good, "b32": good, "other": good}
    scores = judged.evaluate(qrels, runs, "RR")
    levels = {name: {"engine": name[0], "ef_query": int(name[1:])} for name in ("a64", "a32", "a16", "b64", "b32")}
    levels |= {"exact": {"engine": "dense"}, "other": {"engine": "other"}}
    searches = {
        name: NeighborSearch(10, "y" if name == "other" else "x", name == "exact", (1.0,), (1.0,), 100.0)
        for name in runs
    }
    rows = {row.run: row for row in neighbor_rows(searches, levels, scores, 0.01, 0.95)}
    verdicts = {name: row.is_equivalent for name, row in rows.items()}
    # 16 is not shown, because 32 is not; without exact search over the same vectors there is no test.
    assert verdicts == {"exact": None, "a64": True, "a32": False, "a16": False, "b64": True, "b32": True, "other": None}
    assert next(iter(rows)) == "exact"
    assert rows["a16"].p < ALPHA


@pytest.mark.slow
def test_experiment_with_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    documents, queries = clustered_vectors(300, 8, 11), clustered_vectors(12, 8, 12)
    np.save(tmp_path / "d.npy", documents)
    np.save(tmp_path / "q.npy", queries)
    (tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"doc_id": f"d{i}", "text": f"text {i}"}) + "\n" for i in range(300))
    )
    (tmp_path / "queries.jsonl").write_text(
        "".join(json.dumps({"query_id": f"q{i}", "text": f"query {i}"}) + "\n" for i in range(12))
    )
    lines = [f"q{i} 0 d{doc} 1\n" for i in range(12) for doc in rng.choice(300, 20, replace=False)]
    (tmp_path / "qrels.txt").write_text("".join(lines))
    plan = {
        "documents": str(tmp_path / "docs.jsonl"), "queries": str(tmp_path / "queries.jsonl"),
        "qrels": str(tmp_path / "qrels.txt"), "measures": ["nDCG@10"], "depth": 20, "warm_up": 2, "neighbors": 5,
        "control": {"engine": "dense", "document_vectors": str(tmp_path / "d.npy"),
                    "query_vectors": str(tmp_path / "q.npy"), "m": 2, "ef_build": 2},
        "factors": {"engine": ["dense", "voyager"], "ef_query": [1, 200]},
    }  # fmt: skip
    results = run(plan, tmp_path / "out")
    assert results.failures == {}
    searches = results.neighbors
    assert len({search.vectors for search in searches.values()}) == 1
    assert [search.k for search in searches.values()] == [5, 5, 5]
    unit_documents, unit_queries = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (documents, queries))
    nearest = np.argsort(-(unit_queries @ unit_documents.T), axis=1)[:, :5]
    for name, search in searches.items():
        returned = results.run(name).table.to_pandas().groupby("query_id")["doc_id"].apply(list)
        expected = [
            len({f"d{doc}" for doc in nearest[i]} & set(returned[f"q{i}"][:5])) / 5 for i in range(12)
        ]  # the run has the best document first
        assert search.recall == pytest.approx(expected)
        assert search.is_exact == (name == "control")
    assert searches["control"].recall == (1.0,) * 12
    assert np.mean(searches["voyager"].recall) < 1
    conclusions = conclude(results)
    table = conclusions.table("neighbors")
    assert table.column("recall").values[0] == 1
    assert conclusions.facts()["measure"] == "nDCG@10"
    assert [row.is_equivalent for row in conclusions.neighbors] == [None, False, False]  # 12 topics are too few
