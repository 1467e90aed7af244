"""Records of other tools: each layout has the same five answers, so that the scores are the same too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from judged.data.column_names import use_columns
from judged.errors import InputError
from judged.pipelines.rag import evaluate
from judged.pipelines.rag.overview import describe_input
from judged.pipelines.rag.readers import read_responses
from judged.pipelines.rag.scoring import default_measures, unavailable_measures

LAYOUTS = Path(__file__).parent / "layouts"
WITH_PREDICTIONS = ("squad_predictions.json", "hotpot_predictions.json")
WITHOUT_TEXTS = (*WITH_PREDICTIONS, "ids.jsonl")
FILES = sorted(path.name for path in LAYOUTS.iterdir())
EXACT = [1, 0, 0, 0, 1]  # the third answer is missing
F1 = [1, 2 / 6, 0, 2 / 5, 1]
SCORES = {  # means of scores that a tool computed
    "ragas_0_1.csv": {"faithfulness": 0.5},
    "ragas_0_2.jsonl": {"faithfulness": 0.5},
    "deepeval_run.json": {"Faithfulness": 0.5, "success": 1},
    "langsmith.csv": {"feedback.correctness": 0.5, "execution_time": 1.5},
    "langsmith.json": {"feedback.correctness": 0.5},
    "phoenix_experiment.json": {"relevance": 0.5, "repetition_number": 1},
    "llamaindex_evaluators.json": {
        "faithfulness.score": 0.5, "faithfulness.passing": 1, "relevancy.score": 0.5, "relevancy.passing": 1,
    },
    "haystack_report.json": {"doc_mrr": 0.5},
}  # fmt: skip


def read(name: str) -> Any:
    names = [name, "squad_dataset.json"] if name in WITH_PREDICTIONS else [name]
    return read_responses([LAYOUTS / file for file in names])


def means(responses: Any, *measures: str) -> list[float]:
    scores = evaluate(responses, list(measures))
    return [scores.value(measure) for measure in measures]


def tables(responses: Any) -> dict[str, Any]:
    return {table.name: table.records() for table in describe_input(responses, all_measures=True)}


def notes(responses: Any) -> str:
    return " ".join(map(str, responses.notes))


@pytest.mark.parametrize("name", [name for name in FILES if name not in {"trulens.csv", "squad_dataset.json"}])
def test_layouts_with_the_same_answers_have_the_same_scores(name: str) -> None:
    responses = read(name)
    assert len(responses) == 4
    assert len(responses.query_ids) == 5
    assert means(responses, "ExactMatch", "TokenF1") == pytest.approx([sum(EXACT) / 5, sum(F1) / 5])
    if name not in WITHOUT_TEXTS:
        # Answers without a text have no context. One of the other four references is not in its context.
        assert means(responses, "AnswerRecall", "LexicalSupport") == pytest.approx([3 / 4, (1 + 1 / 2 + 0 + 1) / 4])
        assert responses["context"].num_rows == 6


@pytest.mark.parametrize("name", SCORES)
def test_scores_of_other_tools_are_means_without_a_test(name: str) -> None:
    responses = read(name)
    rows = tables(responses)["tool_scores"]
    assert {row["name"]: row["mean"] for row in rows} == pytest.approx(SCORES[name])
    assert {row["answers"] for row in rows} == {5}  # tools score missing answers too
    assert not set(SCORES[name]) & set(evaluate(responses).measure_names)


def test_versions_of_an_app_are_systems() -> None:
    responses = read("trulens.csv")
    assert responses.run_names == ("base", "rerank")
    rows = tables(responses)["tool_scores"]
    assert [row["mean"] for row in rows if row["name"] == "Groundedness"] == [0.5, 0.75]
    assert "app_name, record_id" in notes(responses)


def test_content_is_counted_by_system() -> None:
    assert tables(read("ragas_0_2.jsonl"))["content"] == [
        {"run": "ragas_0_2", "answers": 4, "sentences": 4, "sentences_with_citation": 0, "citations": 0,
         "cited_documents": 0, "passages": 6, "without_answer": 1}
    ]  # fmt: skip


def test_ids_of_reference_contexts_are_judgments() -> None:
    responses = read("ids.jsonl")
    # One of two retrieved ids is a reference, and one of two references is retrieved; the missing answer has none.
    scores = evaluate(responses)
    assert {"SetP", "SetR"} <= set(scores.measure_names)
    assert [scores.value(name) for name in ("SetP", "SetR")] == pytest.approx([0.5 * 4 / 5] * 2)
    assert responses["context"]["text"].null_count == 8


def test_parquet_and_delimited_text(tmp_path: Path) -> None:
    table = pyarrow.csv.read_csv(LAYOUTS / "ragas_0_1.csv", convert_options=_with_nulls())
    pq.write_table(table, tmp_path / "a.parquet")
    text = (LAYOUTS / "trulens.csv").read_text(encoding="utf-8")
    (tmp_path / "b.tsv").write_text(text.replace(",", "\t"), encoding="utf-8")
    assert means(read_responses(tmp_path / "a.parquet"), "ExactMatch", "AnswerRecall") == pytest.approx([0.4, 0.75])
    assert len(read_responses(tmp_path / "b.tsv")) == 10  # with two empty answers


def _with_nulls() -> Any:
    return pyarrow.csv.ConvertOptions(strings_can_be_null=True)


def test_names_of_columns_can_be_set(tmp_path: Path) -> None:
    rows = [{"frage": "When?", "out": "At 7.", "gold": "7", "ctx": ["At 7 or 8."], "who": "me"}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(InputError, match="no record has an answer") as caught:
        read_responses(path)
    assert "--columns answer=COLUMN" in (caught.value.fix or "")
    with use_columns({"answer": "out", "context": "ctx"}):
        responses = read_responses(path)
    assert responses["answers"]["text"].to_pylist() == ["At 7."]
    assert responses["context"]["text"].to_pylist() == ["At 7 or 8."]
    assert "not used: who" in notes(responses)


def test_retrieval_without_answers_names_the_command_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"query": "q", "retrieved_ids": ["a"], "relevant_ids": ["a"]}), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_responses(path)
    assert "judged evaluate FILE FILE" in (caught.value.fix or "")


def test_empty_predictions_of_squad_are_abstentions(tmp_path: Path) -> None:
    questions = [
        {"id": name, "question": name, "answers": [{"text": "x"}] * answerable, "is_impossible": not answerable}
        for name, answerable in (("a", 1), ("b", 1), ("c", 0), ("d", 0))
    ]
    data = {"data": [{"paragraphs": [{"context": "x", "qas": questions}]}]}
    predictions = {"a": "The x!", "b": "", "c": "", "d": "y"}
    for name, content in (("data.json", data), ("predictions.json", predictions)):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    responses = read_responses([tmp_path / "predictions.json", tmp_path / "data.json"])
    scores = evaluate(responses, ["ExactMatch", "TokenF1", "RightAbstention", "WrongAbstention"])
    assert scores.aggregate()["predictions"] == {
        "ExactMatch": 0.5, "TokenF1": 0.5, "RightAbstention": 0.5, "WrongAbstention": 0.5,
    }  # fmt: skip


def test_passages_with_one_id_are_one_document(tmp_path: Path) -> None:
    contexts = [{"doc_id": "d", "text": "One."}, {"doc_id": "d", "text": "Two."}, {"doc_id": "e", "content": "Three."}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "Two.", "contexts": contexts}), encoding="utf-8")
    rows = read_responses(path)["context"].to_pylist()
    assert [(row["doc_id"], row["rank"], row["text"]) for row in rows] == [("d", 1, "One.\nTwo."), ("e", 2, "Three.")]


def test_one_word_contexts_are_ids_only_if_all_are(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    texts = ["Paris", "The city of light."]
    for contexts, expected in ((texts, texts), (["d1", "d2"], [None, None])):
        path.write_text(json.dumps({"question": "q", "answer": "a", "sources": contexts}), encoding="utf-8")
        assert read_responses(path)["context"]["text"].to_pylist() == expected


def test_unavailable_measures_name_their_input() -> None:
    responses = read("trulens.csv")
    needed = {row["measures"]: row["requires"] for row in unavailable_measures(responses, None)}
    assert "ground_truth" in needed["ExactMatch, TokenF1"]
    assert "contexts" in needed["LexicalSupport"]
    others = {row["measures"] for row in unavailable_measures(read("ragas_0_2.jsonl"), None)}
    assert others == set(needed) - {"ExactMatch, TokenF1", "LexicalSupport", "AnswerRecall"}
    assert [row["measures"] for row in tables(responses)["unavailable"]] == list(needed)


def test_verdicts_take_precedence_over_comparisons_of_texts() -> None:
    tables = {"answers": [{"query_id": "q", "text": "7"}], "references": [{"query_id": "q", "text": "7"}]}
    assert default_measures(read_responses(LAYOUTS / "ids.jsonl"), None)[:2] == ["ExactMatch", "TokenF1"]
    judged_tables = {**tables, "correctness": [{"query_id": "q", "verdict": "support"}]}
    assert evaluate(tables).measure_names == ("ExactMatch", "TokenF1", "AnswerLength")
    assert evaluate(judged_tables).measure_names == ("Correctness", "AnswerLength")
