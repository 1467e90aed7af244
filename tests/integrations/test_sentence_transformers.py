"""The evaluator of sentence-transformers, on a stand-in with the interface of its base class and of a model."""

from __future__ import annotations

import csv
import importlib
import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from judged import InputError, MissingExtraError, Scores
from stand_ins import WORDS, BaseEvaluator, Model

MODULE = "judged.integrations.sentence_transformers"


@pytest.fixture
def evaluators(monkeypatch):
    """The module, imported beside the stand-in."""
    for name in ("", ".base", ".base.evaluation"):
        monkeypatch.setitem(sys.modules, f"sentence_transformers{name}", ModuleType(f"sentence_transformers{name}"))
    sys.modules["sentence_transformers.base.evaluation"].BaseEvaluator = BaseEvaluator
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield importlib.import_module(MODULE)
    sys.modules.pop(MODULE)


@pytest.fixture
def data():
    """Queries, documents, and relevant ids; ten documents are there twice, so that their similarities tie."""
    generator = np.random.default_rng(1)
    documents = {f"d{i}": " ".join(generator.choice(WORDS, 6)) for i in range(120)}
    documents |= {f"copy{i}": documents[f"d{i}"] for i in range(10)}
    queries = {f"q{i}": " ".join(generator.choice(WORDS, 3)) for i in range(30)}
    relevant = {
        query: {doc for doc, words in documents.items() if len(set(text.split()) & set(words.split())) >= 2} or {"d0"}
        for query, text in queries.items()
    }
    return queries, documents, relevant


def theirs(model, queries, documents, relevant):
    """Compute the metrics of `InformationRetrievalEvaluator` by its formulas."""
    doc_vectors = model.encode_document(list(documents.values()))
    doc_vectors = (doc_vectors / np.linalg.norm(doc_vectors, axis=1, keepdims=True)).astype(np.float32)
    sums = {}
    for query, text in queries.items():
        vector = model.encode_query([text])[0]
        products = doc_vectors @ (vector / np.linalg.norm(vector)).astype(np.float32)
        order = sorted(zip(-products.round(5), documents, strict=True))
        hits = [doc in relevant[query] for _, doc in order]
        count = len(relevant[query])
        dcg = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(hits[:10]))
        values = {"ndcg@10": dcg / sum(1 / math.log2(rank + 2) for rank in range(min(count, 10)))}
        values["mrr@10"] = next((1 / (rank + 1) for rank, hit in enumerate(hits[:10]) if hit), 0)
        precisions = [sum(hits[: rank + 1]) / (rank + 1) for rank, hit in enumerate(hits[:100]) if hit]
        values["map@100"] = sum(precisions) / min(100, count)
        for k in (1, 3, 5, 10):
            values |= {f"accuracy@{k}": any(hits[:k]), f"precision@{k}": sum(hits[:k]) / k}
            values[f"recall@{k}"] = sum(hits[:k]) / count
        sums = {name: sums.get(name, 0) + value / len(queries) for name, value in values.items()}
    return {f"dev_cosine_{name}": value for name, value in sums.items()}


def test_values_are_those_of_their_formulas(evaluators, data):
    model, evaluator = Model(), evaluators.RetrievalEvaluator(*data, name="dev")
    metrics, expected = evaluator(model), theirs(model, *data)
    assert {key for key in metrics if not key.endswith(("_low", "_high"))} == set(expected)
    assert len(metrics) == 3 * len(expected)
    for key, value in expected.items():
        assert metrics[key] == pytest.approx(value, abs=1e-9), key
        assert metrics[f"{key}_low"] < metrics[key] < metrics[f"{key}_high"]
    assert evaluator.primary_metric == "dev_cosine_ndcg@10"
    assert evaluator.greater_is_better is True
    assert model.stored == (metrics, -1, -1)


def test_scores_of_all_checkpoints_are_kept(evaluators, data):
    evaluator = evaluators.RetrievalEvaluator(*data, ["nDCG@10"])
    first = evaluator(Model(1), epoch=1, steps=100)
    second = evaluator(Model(2), epoch=1.5, steps=200)
    evaluator(Model(1))
    evaluator(Model(1))
    names = ("epoch 1, step 100", "epoch 1.5, step 200", "model", "model#2")
    assert evaluator.scores.run_names == names
    values = [evaluator.scores.value("nDCG@10", name) for name in names]
    assert values == [first["cosine_ndcg@10"], second["cosine_ndcg@10"], values[0], values[0]]
    assert isinstance(evaluator.scores, Scores)
    assert len(evaluator.scores.per_topic()["model"]["nDCG@10"]) == 30
    comparison = evaluator.scores.compare().to_dict()
    assert comparison["schema"].startswith("judged.compar")


def test_each_call_adds_a_line_to_the_csv_file(evaluators, data, tmp_path):
    evaluator = evaluators.RetrievalEvaluator(*data, ["nDCG@10", "RBP(p=0.8)"], name="dev")
    metrics = [evaluator(Model(seed), str(tmp_path / "eval"), epoch=1, steps=seed) for seed in (1, 2)]
    (file,) = (tmp_path / "eval").iterdir()
    assert file.name == "Retrieval_evaluation_dev_results.csv"
    rows = list(csv.DictReader(file.read_text().splitlines()))
    columns = [f"cosine-{name}{end}" for name in ("NDCG@10", "RBP(p=0.8)") for end in ("", "_low", "_high")]
    assert list(rows[0]) == ["epoch", "steps", *columns]
    assert [(row["epoch"], row["steps"]) for row in rows] == [("1", "1"), ("1", "2")]
    assert [float(row["cosine-NDCG@10_low"]) for row in rows] == [line["dev_cosine_ndcg@10_low"] for line in metrics]
    evaluators.RetrievalEvaluator(*data, ["RR"], write_csv=False)(Model(), str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_options_reach_the_model(evaluators, data):
    options = {"query_options": {"prompt": "query: "}, "document_options": {"batch_size": 4}}
    model, evaluator = Model(), evaluators.RetrievalEvaluator(*data, ["RR"], texts_per_call=1000, **options)
    evaluator(model)
    assert dict(model.calls) == {
        "query": {"show_progress_bar": False, "prompt": "query: "},
        "document": {"show_progress_bar": False, "batch_size": 4},
    }


def test_the_similarity_of_the_model_or_of_the_evaluator(evaluators, data):
    model = Model()
    model.similarity_fn_name = "dot"
    assert "dot_mrr@10" in evaluators.RetrievalEvaluator(*data, ["RR@10"])(model)
    cosine = evaluators.RetrievalEvaluator(*data, ["RR@10"], similarity="cosine")(model)
    assert cosine["cosine_mrr@10"] == pytest.approx(theirs(model, *data)["dev_cosine_mrr@10"])
    model.similarity_fn_name = "euclidean"
    with pytest.raises(InputError, match="cosine or dot"):
        evaluators.RetrievalEvaluator(*data, ["RR@10"])(model)


def test_queries_without_a_text_are_ignored_and_grades_count(evaluators):
    queries, documents = {"q": "w1 w2"}, {"a": "w1 w2", "b": "w3 w4"}
    qrels = {"q": {"a": 1, "b": 3}, "elsewhere": {"a": 1}}
    metrics = evaluators.RetrievalEvaluator(queries, documents, qrels, "nDCG@10")(Model())
    dcg, ideal = 1 + 3 / math.log2(3), 3 + 1 / math.log2(3)
    assert metrics["cosine_ndcg@10"] == pytest.approx(dcg / ideal)


def test_a_measure_of_cost_is_minimized(evaluators, data):
    low, high = (evaluators.RetrievalEvaluator(*data, [name]).greater_is_better for name in ("NumNonrelRet", "P@5"))
    assert (low, high) == (False, True)


def test_older_versions(monkeypatch, evaluators, data):
    expected = evaluators.RetrievalEvaluator(*data, ["RR@10"])(Model())
    module = ModuleType("sentence_transformers.evaluation")
    module.SentenceEvaluator = type("SentenceEvaluator", (BaseEvaluator,), {})
    monkeypatch.setitem(sys.modules, "sentence_transformers.base", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers.base.evaluation", None)
    monkeypatch.setitem(sys.modules, "sentence_transformers.evaluation", module)
    older = importlib.reload(evaluators)
    assert issubclass(older.RetrievalEvaluator, module.SentenceEvaluator)
    model = SimpleNamespace(similarity_fn_name="cosine", encode=Model().encode)  # it has no encode_query
    assert older.RetrievalEvaluator(*data, ["RR@10"])(model) == expected


def test_without_sentence_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install sentence-transformers\."):
        importlib.import_module(MODULE)
