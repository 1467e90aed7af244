"""Tables of answers: what they refuse, and what they fill in."""

import json
from pathlib import Path

import pytest

from judged.errors import InputError
from judged.pipelines.rag import Responses, check_responses

ANSWER = {"query_id": "q", "run_id": "a", "text": "It is 7. Or 8."}


def test_what_is_not_given_is_usual() -> None:
    rows = [{"query_id": "q", "sentence": 1, "doc_id": "d2"}, {"query_id": "q", "sentence": "1", "doc_id": "d1"}]
    made = Responses.of({"answers": [{"query_id": "q"}], "citations": rows})
    assert made.run_names == ("run",)
    assert made["citations"]["place"].to_pylist() == [1, 2]
    assert made["sentences"].num_rows == 1
    assert made.run("citations", "run").table["doc_id"].to_pylist() == ["d2", "d1"]


def test_a_document_cited_twice_stands_where_it_is_cited_first() -> None:
    cited = [(1, "b"), (2, "a"), (3, "b")]
    rows = [{**ANSWER, "sentence": sentence, "doc_id": document} for sentence, document in cited]
    assert Responses.of({"answers": [ANSWER], "citations": rows}).run("citations", "a").table["doc_id"].to_pylist() == [
        "b",
        "a",
    ]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "no answers"),
        ({"answers": [ANSWER, ANSWER]}, "two rows"),
        ({"answers": [{"text": "x"}]}, "no query_id"),
        ({"anwsers": [ANSWER]}, "no table 'anwsers'"),
        ({"answers": [ANSWER], "nuggets": [{"query_id": "q", "nugget_id": "1", "importance": "high"}]}, "'high'"),
        ({"answers": [ANSWER], "assignments": [{**ANSWER, "nugget_id": "1", "verdict": "support"}]}, "nuggets has no"),
        ({"answers": [ANSWER], "context": [{**ANSWER, "run_id": "b", "doc_id": "d"}]}, "answers has no row"),
        ({"answers": [ANSWER], "citations": [{**ANSWER, "sentence": "one", "doc_id": "d"}]}, "whole number"),
        ({"answers": [ANSWER], "correctness": [{**ANSWER, "verdict": "right"}]}, "no verdict 'right'"),
    ],
)
def test_what_does_not_go_together_is_refused(tables: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Responses.of(tables)


def test_one_system_of_several() -> None:
    made = Responses.of({"answers": [ANSWER, {**ANSWER, "run_id": "b"}, {**ANSWER, "query_id": "r"}]})
    assert (len(made), len(made.of_run("a")), len(made.of_topics(["r"]))) == (3, 2, 1)
    with pytest.raises(InputError, match="use one of a, b"):
        made.of_run("c")


def test_a_folder_with_a_file_a_table(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps(ANSWER) + "\n", encoding="utf-8")
    (tmp_path / "nuggets.csv").write_text("query_id,nugget_id,importance\nq,1,vital\nq,2,okay\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("not a table", encoding="utf-8")
    made = Responses.of(tmp_path)
    assert (len(made), made["nuggets"]["importance"].to_pylist()) == (1, ["vital", "okay"])
    (tmp_path / "nuggets.csv").write_text("query_id,nugget_id\nq,1\n,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"nuggets\.csv:3"):
        Responses.of(tmp_path)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("rank", 1.7, "rank is 1.7"),
        ("rank", 10**20, "rank is 1000"),
        ("rank", float("inf"), "rank is inf"),
        ("doc_id", ["a", "b"], "doc_id is"),
        ("text", {"a": 1}, "text is"),
    ],
)
def test_a_cell_that_is_no_single_value_of_its_column_is_refused(column: str, value: object, words: str) -> None:
    row = {"query_id": "q", "doc_id": "d", column: value}
    with pytest.raises(InputError, match=f"context: {words}"):
        Responses.of({"answers": [{"query_id": "q"}], "context": [row]})


def test_whole_numbers_may_be_written_as_others() -> None:
    """Tables with a gap have their whole numbers as fractions."""
    made = Responses.of({"answers": [{"query_id": 1}], "context": [{"query_id": 1, "doc_id": 7, "rank": 2.0}]})
    assert made["context"].select(["query_id", "doc_id", "rank"]).to_pylist() == [
        {"query_id": "1", "doc_id": "7", "rank": 2}
    ]


def test_what_is_not_read_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("query_id,txt\nq,x\n", encoding="utf-8")
    (tmp_path / "nugets.csv").write_text("query_id,nugget_id\nq,1\n", encoding="utf-8")
    (tmp_path / "support.json").write_text('"x"', encoding="utf-8")
    (tmp_path / "README.md").write_text("not a table", encoding="utf-8")
    told = {note.rule: note.text for note in Responses.of(tmp_path).notes}
    assert set(told) == {"columns-not-read", "empty-table", "files-not-read"}
    assert told["columns-not-read"].endswith("txt")
    assert told["files-not-read"].endswith("nugets.csv")
    rules = {finding.rule for finding in check_responses(tmp_path) if finding.severity == "warning"}
    assert rules >= set(told)
