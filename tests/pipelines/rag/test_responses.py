"""Tables of responses: invalid input, and defaults."""

import json
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.pipelines.rag import Responses, check_responses

ANSWER = {"query_id": "q", "run_id": "a", "text": "It is 7. Or 8."}


def test_missing_columns_have_defaults() -> None:
    rows = [{"query_id": "q", "sentence": 1, "doc_id": "d2"}, {"query_id": "q", "sentence": "1", "doc_id": "d1"}]
    responses = Responses.of({"answers": [{"query_id": "q"}], "citations": rows})
    assert responses.run_names == ("run",)
    assert responses["citations"]["place"].to_pylist() == [1, 2]
    assert responses["sentences"].num_rows == 1
    assert responses.run("citations", "run").table["doc_id"].to_pylist() == ["d2", "d1"]


def test_a_document_cited_twice_has_its_first_rank() -> None:
    cited = [(1, "b"), (2, "a"), (3, "b")]
    rows = [{**ANSWER, "sentence": sentence, "doc_id": document} for sentence, document in cited]
    assert Responses.of({"answers": [ANSWER], "citations": rows}).run("citations", "a").table["doc_id"].to_pylist() == [
        "b",
        "a",
    ]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({}, "answers is empty"),
        ({"answers": [ANSWER, ANSWER]}, "several rows"),
        ({"answers": [{"text": "x"}]}, "no query_id"),
        ({"anwsers": [ANSWER]}, "no table 'anwsers'"),
        ({"answers": [ANSWER], "nuggets": [{"query_id": "q", "nugget_id": "1", "importance": "high"}]}, "'high'"),
        ({"answers": [ANSWER], "assignments": [{**ANSWER, "nugget_id": "1", "verdict": "support"}]}, "nuggets has no"),
        ({"answers": [ANSWER], "context": [{**ANSWER, "run_id": "b", "doc_id": "d"}]}, "answers has no row"),
        ({"answers": [ANSWER], "citations": [{**ANSWER, "sentence": "one", "doc_id": "d"}]}, "integer"),
        ({"answers": [ANSWER], "correctness": [{**ANSWER, "verdict": "right"}]}, "the invalid verdict 'right'"),
    ],
)
def test_inconsistent_tables_raise(tables: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Responses.of(tables)


def test_select_systems_and_topics() -> None:
    responses = Responses.of({"answers": [ANSWER, {**ANSWER, "run_id": "b"}, {**ANSWER, "query_id": "r"}]})
    assert (len(responses), len(responses.of_run("a")), len(responses.of_topics(["r"]))) == (3, 2, 1)
    with pytest.raises(InputError, match="use one of a, b"):
        responses.of_run("c")


def test_a_folder_with_one_file_for_each_table(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps(ANSWER) + "\n", encoding="utf-8")
    (tmp_path / "nuggets.csv").write_text("query_id,nugget_id,importance\nq,1,vital\nq,2,okay\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("not a table", encoding="utf-8")
    responses = Responses.of(tmp_path)
    assert (len(responses), responses["nuggets"]["importance"].to_pylist()) == (1, ["vital", "okay"])
    (tmp_path / "nuggets.csv").write_text("query_id,nugget_id\nq,1\n,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"nuggets\.csv:3"):
        Responses.of(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("rank", 1.7, "rank is 1.7"),
        ("rank", 10**20, "rank is 1000"),
        ("rank", float("inf"), "rank is inf"),
        ("doc_id", ["a", "b"], "doc_id is"),
        ("text", {"a": 1}, "text is"),
    ],
)
def test_cells_of_the_wrong_type_raise(column: str, value: object, message: str) -> None:
    row = {"query_id": "q", "doc_id": "d", column: value}
    with pytest.raises(InputError, match=f"context: {message}"):
        Responses.of({"answers": [{"query_id": "q"}], "context": [row]})


def test_whole_numbers_can_be_floats() -> None:
    """Data frames with missing values store whole numbers as floats."""
    responses = Responses.of({"answers": [{"query_id": 1}], "context": [{"query_id": 1, "doc_id": 7, "rank": 2.0}]})
    assert responses["context"].select(["query_id", "doc_id", "rank"]).to_pylist() == [
        {"query_id": "1", "doc_id": "7", "rank": 2}
    ]


def test_notes_list_files_and_columns_that_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("query_id,txt\nq,x\n", encoding="utf-8")
    (tmp_path / "nugets.csv").write_text("query_id,nugget_id\nq,1\n", encoding="utf-8")
    (tmp_path / "support.json").write_text('"x"', encoding="utf-8")
    (tmp_path / "README.md").write_text("not a table", encoding="utf-8")
    notes = {note.rule: note.text for note in Responses.of(tmp_path).notes}
    assert set(notes) == {"unknown-columns", "empty-table", "unknown-files"}
    assert notes["unknown-columns"].endswith("txt")
    assert notes["unknown-files"].endswith("nugets.csv")
    rules = {finding.rule for finding in check_responses(tmp_path) if finding.severity == "warning"}
    assert rules >= set(notes)
