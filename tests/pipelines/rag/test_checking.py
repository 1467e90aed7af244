"""Findings of `check_responses` by rule, and attributes of queries by `query_facts`."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from judged.cli.main import app
from judged.errors import InputError
from judged.pipelines.rag import check_responses, query_facts
from judged.pipelines.traces import Span, Traces
from judged.pipelines.traces.traces import Kind

_REWRITE: tuple[str, Kind] = ("rewrite", "rewrite")
_FIRST: tuple[str, Kind] = ("bm25", "candidates")
TABLES: dict[str, Any] = {
    "answers": [{"query_id": topic, "run_id": run, "text": "x"} for topic, run in (("1", "a"), ("1", "b"), ("2", "a"))],
    "sentences": [{"query_id": "1", "run_id": "a", "sentence": 1, "text": "it is"},
                  {"query_id": "1", "run_id": "a", "sentence": 2}],
    "context": [{"query_id": "1", "run_id": run, "doc_id": doc} for run in "ab" for doc in "xyz"],
    "citations": [{"query_id": "1", "run_id": "a", "sentence": 1, "doc_id": "x"},
                  {"query_id": "1", "run_id": "a", "sentence": 2, "doc_id": "w"}],
    "nuggets": [{"query_id": "1", "nugget_id": "m", "importance": "okay"}],
    "assignments": [{"query_id": "1", "run_id": "a", "nugget_id": "m", "verdict": verdict, "judge": judge}
                    for judge, verdict in (("j", "failed"), ("k", "not"))],
    "support": [{"query_id": "1", "run_id": "a", "sentence": 1, "doc_id": "x", "verdict": "support"}],
}  # fmt: skip


def rules(*args: Any, **options: Any) -> dict[tuple[str, str], int]:
    return {(finding.severity, finding.rule): finding.count for finding in check_responses(*args, **options)}


def test_each_rule_has_its_count() -> None:
    counts = rules(
        TABLES, {"1": {"x": 1}, "3": {"x": 1}}, runs={"r": {"1": {"x": 1.0, "y": 0.5}}}, corpus=["x", "y", "z"]
    )
    assert counts == {
        ("warning", "missing-answers"): 1,  # b did not answer 2
        ("warning", "empty-contexts"): 1,  # of 2 by a
        ("warning", "no-nuggets"): 1,  # 2
        ("warning", "no-vital-nuggets"): 1,  # 1
        ("warning", "not-judged"): 1,  # 2
        ("warning", "not-answered"): 1,  # 3
        ("warning", "no-text"): 1,  # sentence 2
        ("warning", "failed-verdicts"): 1,  # of j
        ("warning", "missing-verdicts"): 1,  # support of sentence 2 by w; assignment of m to b
        ("warning", "cited-outside-context"): 1,  # w
        ("info", "unknown-documents"): 1,  # w and others are not judged
        ("warning", "unknown-documents"): 1,  # w is in no run and not in the corpus
        ("info", "missing-table"): 1,  # evidence, references, correctness, feedback
    }


def test_foreign_ids_and_duplicate_answers_are_errors() -> None:
    assert rules(TABLES, {"1": {"x#1": 1}})["error", "mismatched-ids"] == 2
    duplicated = {"answers": [*TABLES["answers"], TABLES["answers"][0]]}
    assert [finding.severity for finding in check_responses(duplicated)] == ["error"]


@pytest.mark.parametrize(("verdict", "code"), [("support", 0), ("perhaps", 1)])
def test_exit_codes(tmp_path: Any, verdict: str, code: int) -> None:
    (tmp_path / "answers.csv").write_text("query_id,text\n1,x\n")
    (tmp_path / "correctness.csv").write_text(f"query_id,verdict\n1,{verdict}\n")
    assert CliRunner().invoke(app, ["rag", "check", str(tmp_path)]).exit_code == code
    with pytest.raises(InputError, match="no such"):  # exit code 2 on the command line
        check_responses(str(tmp_path / "absent"))


def test_query_facts_are_rewritten_and_entity() -> None:
    rewrites = {"q1": ("a zip", "zip file"), "q2": ("tar", "tar")}
    spans = [
        Span(topic, topic, stage, kind, query=text)
        for topic, (query, rewritten) in rewrites.items()
        for stage, kind, text in ((*_REWRITE, rewritten), (*_FIRST, query))
    ]
    facts = query_facts(Traces(tuple(spans)), entities=[{"entity": "zip", "parent": "archives"}])
    assert facts.column("rewritten").to_pylist() == [True, False]
    assert facts.column("entity").to_pylist() == [["zip", "archives"], None]


def test_each_missing_table_has_its_own_line() -> None:
    """Only equal findings of several files are combined into one line."""
    text = str(check_responses({"answers": [{"query_id": "q", "text": "x"}]}))
    assert all(f"the table `{name}` is missing" in text for name in ("context", "citations", "nuggets", "support"))
