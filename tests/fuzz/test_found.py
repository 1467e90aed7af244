"""Damaged files that were once read wrong, or refused without their name: what the fuzz found, at its smallest."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

import spans_made
from fuzz.cases import run
from fuzz.workers import OF
from judged import Scores, evaluate
from judged.data import files
from judged.errors import InputError
from judged.labels.asking.prompts import expected_grade
from judged.online.clicks.examination import read_propensities
from judged.online.clicks.impression_counts import count_impressions, count_page_patterns
from judged.online.simulation import SimulationPlan, simulate
from judged.pipelines.experiments.generated_answers import read_experiment_responses
from judged.pipelines.experiments.worker import ANSWERS
from judged.pipelines.traces.steps import read_clicks
from judged.scoring.judging import judge_list

if TYPE_CHECKING:
    from pathlib import Path

    from fuzz.readers import Reader

_STAGE = {"trace_id": "t", "query_id": "q1", "stage": "s", "kind": "candidates", "documents": ["d1"]}
_SPAN = spans_made.span("retrieval", 0, 1, {"input.value": "red shoe"}, inside="", trace="t")
_LABEL = {"query_id": "q1", "doc_id": "d1", "judge": "ann", "grade": 1}
_PLACED = {
    "openinference.span.kind": "RETRIEVER", "input.value": "x", f"retrieval.documents.{10**400}.document.id": "x",
}  # fmt: skip
_PLAN = {"configurations": [], "left_out": [], "qrels": "x", "queries": "x", "measures": ["-1e400"]}
_SUPPORT = {"topic_id": "1", "run_id": "r", "sentences": [{"sentenceID": 0, "text": "x", "citations": []}]}
_TREC = {"topic_id": "1", "run_id": "r", "references": ["d1"], "answer": [{"text": "x", "citations": [[]]}]}
_NO_LIST = """
[queries.columns]
query_id = "id"
time = "t"
query = "q"
hit_ids = { path = "hits", optional = true }
[events]
each = { path = "clicked", optional = true }
[events.columns]
query_id = "id"
time = "t"
action = { value = "click" }
object_id = "@"
"""
_FOUND: dict[str, list[tuple[str, str, str]]] = {
    "labels": [
        ("topics of a list", ".json", '[{"query_id": "q1", "doc_id": "d1"}, -1]'),
        ("labels into a store", ".csv", "query,docid,rating\nred\0shoe,d1,1\n"),
        ("labels", ".jsonl", '{"query_id": "q1", "doc_id": "d1", "grade": {"a": 1}}'),
        ("labels into a store", ".csv", "query_id,doc_id,judge,grade\nq1,,ann,1\n"),
        ("labels into a store", ".jsonl", json.dumps({**_LABEL, "seed": "9" * 30})),
        ("labels of topics", ".json", '{"hits": {"hits": [[1]]}}'),
        ("labels as text", ".tsv", "query_id\tdoc_id\tjudge\tgrade\rq0\td0\tann\t0\rq1\td1\tbob\t1\r"),
        ("pairs", ".jsonl", json.dumps({**_LABEL, "note": "\t" * 100_000})),
        ("pool", ".csv", "query_id,doc_id,stratum,probability,best_rank,runs\nq2\fd2,1-10,0.5,3,3\n"),
        ("endpoint", ".toml", 'base_url = "x"\nmodel = "m"\n'),
    ],
    "traces": [
        ("stages", ".jsonl", json.dumps({**_STAGE, "documents": [{"id": "d", "features": True}]})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "latency_ms": float("nan")})),
        ("spans", ".jsonl", json.dumps(_SPAN | {"startTimeUnixNano": 10**400, "endTimeUnixNano": [1e999, 1]})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "parents": 5})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "documents": [{"id": "d", "rank": 10**400}]})),
        ("spans", ".jsonl", json.dumps(spans_made.span("r", 0, 1, _PLACED, inside="", trace="t"))),
        ("stages", ".jsonl", json.dumps({**_STAGE, "query": "\ud800"})),
        ("stages", ".jsonl", json.dumps({**_STAGE, "documents": [{"id": "d", "score": 10**399}]})),
    ],
    "rag": [
        ("answers: trec rag", ".jsonl", json.dumps(_TREC)),
        ("answers of traces", ".jsonl", json.dumps({**_STAGE, "documents": [""], "facts": {"answer": "x"}})),
        ("answers: trec rag", ".jsonl", json.dumps({**_TREC, "references": None})),
        ("answers: support", ".jsonl", json.dumps({**_SUPPORT, "sentences": None})),
    ],
    "saved": [
        ("propensities", ".json", '{"curves": []}'),
        ("propensities", ".csv", "rank,value\n1,1\n1e999,0.5\n"),
        ("propensities", ".csv", "rank,value\n1,1\n999999999999,0.5\n"),
        ("results/plan.json", ".json", '{"configurations": [{"name": "a", "key": "../x", "levels": {}}]}'),
        ("results/plan.json", ".json", "[" * 100_000),
        ("results/plan.json", ".json", json.dumps(_PLAN)),
        ("state of a watch", ".json", "[" * 100_000),
        ("state of a watch", ".json", json.dumps({"points": [["a", "", "2026-03-01", 10**400, 1, 1, 1]]})),
    ],
    "files": [("texts", ".csv", '"a\x0bb",c\nd,e,f\n'), ("documents", ".csv", "doc_id," + "x," * 70_000 + "\nd1\n")],
    "logs": [("a mapping", ".toml", _NO_LIST), ("converted", ".json", "[" * 100_000)],
}


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Reader]:
    """Return the readers by their kind and name."""
    made = ((of, OF[of].readers(tmp_path_factory.mktemp(of))) for of in _FOUND)
    return {(of, reader.name): reader for of, known in made for reader in known}


@pytest.mark.parametrize(
    ("of", "name", "ending", "text"), [(of, *case) for of, cases in _FOUND.items() for case in cases]
)
def test_what_was_found_stays_fixed(
    readers: dict[tuple[str, str], Reader], tmp_path: Path, of: str, name: str, ending: str, text: str
) -> None:
    path = tmp_path / f"damaged{ending}"
    path.write_text(text, newline="")
    outcome = run(readers[of, name], path)
    assert outcome.kind != "wrong", outcome.reason


def test_a_long_line_is_refused_in_the_middle_of_reading(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"short\n" + b"x" * 5000 + b"\nend\n")
    with pytest.raises(InputError, match=r"long.txt:2: this line has more than 1,000 bytes"):
        list(files.blocks(path, size=64, longest=1000))
    assert b"".join(files.blocks(path, size=64, longest=6000)) == path.read_bytes()


@pytest.mark.parametrize("grades", [10, "210"])
def test_a_list_of_grades_must_be_a_list(grades: Any) -> None:
    with pytest.raises(InputError, match="`grades` must be a list of grades, got"):
        judge_list(grades)


def test_clicks_are_counted_by_a_column_that_the_query_also_names() -> None:
    log = simulate(SimulationPlan(), seed=1).log()
    assert count_impressions(log, by="query").by == "query"
    assert count_page_patterns(log, by="query")


@pytest.mark.parametrize("text", ["[1]", '{"x": 0}', '{"1": 9999}', "{", "[" * 100_000])
def test_probabilities_that_are_none_give_no_expected_grade(text: str) -> None:
    assert math.isnan(expected_grade(text))


@pytest.mark.parametrize("text", ["[]", '{"answers": 1}', '{"answers": [1]}', '{"answers": []}', "{"])
def test_damaged_answers_of_an_experiment_are_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / ANSWERS).write_text(text)
    with pytest.raises(InputError, match=ANSWERS):
        read_experiment_responses({"a": tmp_path}, tmp_path)


def test_a_number_too_large_in_a_table_of_a_policy_or_of_clicks_is_refused_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"query_id": "q1", "doc_id": "d1", "clicks": 10**400}))
    with pytest.raises(InputError, match=r"x.jsonl:1"):
        read_clicks(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="propensities must be numbers by rank"):
        read_propensities([10**400])


@pytest.mark.parametrize("left_out", ["judged", "judged sha256"])
def test_scores_without_a_part_of_their_metadata_are_refused_by_name(tmp_path: Path, left_out: str) -> None:
    path = tmp_path / "scores.parquet"
    evaluate({"q1": {"d1": 1}}, {"a": {"q1": ["d1"]}}, "AP").save(path)
    table = parquet.read_table(path)
    kept = {name: text for name, text in table.schema.metadata.items() if name != left_out.encode()}
    assert len(kept) < len(table.schema.metadata)
    parquet.write_table(table.replace_schema_metadata(kept), path)
    with pytest.raises(InputError, match=r"scores.parquet: this is"):
        Scores.load(path)
