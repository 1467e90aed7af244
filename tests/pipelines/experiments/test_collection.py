"""Plans and results report documents, queries, and judgments that do not belong together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import process
from judged.errors import InputError
from judged.pipelines.experiments import Plan, load, run
from pipelines.experiments import small_plan

RULES = ("documents-missing", "documents-twice", "topics-without-query")


def collection_texts(notes: Any) -> dict[str, str]:
    return {note.rule: note.text for note in notes if note.rule in RULES}


def test_plan_and_results_report_inconsistent_files(tmp_path: Path) -> None:
    plan = small_plan.write(tmp_path)
    assert collection_texts(Plan.of(plan).notes) == {}
    documents = {"CACM-0046" if doc == "d2" else doc: text for doc, text in small_plan.DOCUMENTS.items()}
    lines = [json.dumps({"doc_id": doc, "text": text}) for doc, text in [*documents.items(), ("d3", "other words")]]
    Path(plan["documents"]).write_text("\n".join(lines))
    Path(plan["qrels"]).write_text(small_plan.QRELS.replace("d2", "CACM-46") + "q1 0 x 1\nq2 0 x 0\nq9 0 d1 1\n")
    notes = collection_texts(Plan.of(plan).notes)
    assert list(notes) == list(RULES)
    assert notes["documents-missing"].startswith("3 of 8 judgments refer to 2 documents ")
    assert "CACM-46, x; 1 of these document ids differ" in notes["documents-missing"]
    assert "'CACM-0046'" in notes["documents-missing"]
    assert notes["documents-twice"].startswith("1 document ")
    assert notes["topics-without-query"].startswith("no query for judged topic q9;")
    results = run(plan, tmp_path / "out")
    Path(plan["documents"]).unlink()  # the documents are not read again
    for result_notes in (results.scores.notes, load(tmp_path / "out").scores.notes):
        assert collection_texts(result_notes) == notes
    output = process("experiment", "show", str(tmp_path / "out"))
    assert "no query for judged topic q9" in output.out + output.err


def test_topics_without_a_query_are_not_reported_as_empty_results(tmp_path: Path) -> None:
    stemmed = {"control": {"engine": "sqlite", "stemmer": "english"}}  # every query but q4 has results
    plan = small_plan.write(tmp_path) | stemmed
    lines = [json.dumps({"query_id": query, "text": small_plan.QUERIES[query]}) for query in ("q1", "q2")]
    Path(plan["queries"]).write_text("\n".join(lines))
    results = run(plan, tmp_path / "out")
    assert "missing-topics" not in [note.rule for note in results.scores.notes]
    assert collection_texts(results.scores.notes)["topics-without-query"].startswith(
        "no query for 2 of 4 judged topics: q3, q4;"
    )
    (tmp_path / "two").mkdir()
    plan = small_plan.write(tmp_path / "two") | stemmed
    Path(plan["qrels"]).write_text(small_plan.QRELS + "q9 0 d1 1\n")  # and q4, which has no results
    notes = {note.rule: note for note in run(plan, tmp_path / "two" / "out").scores.notes}
    assert (notes["missing-topics"].weight, notes["topics-without-query"].weight) == (2, 1)


def test_documents_without_text_are_rejected_with_their_fields(tmp_path: Path) -> None:
    plan = small_plan.write(tmp_path)
    lines = [json.dumps({"doc_id": doc, "words": text}) for doc, text in small_plan.DOCUMENTS.items()]
    for text in ("\n".join(lines), f"[{', '.join(lines)}]"):
        Path(plan["documents"]).write_text(text)
        with pytest.raises(
            InputError, match=r"no document has a title or a text; fields of the first record: doc_id, words"
        ):
            run(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()
