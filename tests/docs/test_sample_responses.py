"""The sample's answers are what the example makes of its runs, and what was made by hand keeps its own rules."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from judged.data import sample
from judged.pipelines.rag.responses import KEYS, NOT, SUPPORT, VITAL, Responses

ROOT = Path(__file__).resolve().parents[2]
README = (sample.FOLDER / "README.md").read_text(encoding="utf-8").partition("## Answers")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def responses() -> Responses:
    return Responses.of(sample.RESPONSES)


def test_the_example_makes_the_answers(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "examples" / "answerer.py"))["main"](str(tmp_path))
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == {"answers.jsonl", "sentences.jsonl", "context.jsonl", "citations.jsonl"}
    assert made == {name: (sample.RESPONSES / name).read_bytes() for name in made}


def test_the_readme_counts_right(responses: Responses) -> None:
    nuggets, support = responses["nuggets"].to_pylist(), responses["support"].to_pylist()
    pairs = [row for row in support if row["doc_id"]]
    vital = sum(row["importance"] == VITAL for row in nuggets)
    said = " ".join(README.split())
    for number, words in (
        (len(responses), "answers to"), (len(responses.query_ids), "topics (8"),
        (responses["sentences"].num_rows, "sentences with"), (len(nuggets), "nuggets, 2 to 6"), (vital, "`vital`"),
        (len(nuggets) - vital, "`okay`"), (responses["assignments"].num_rows, "verdicts"), (len(pairs), "of 126 pairs"),
        (len({row["query_id"] for row in pairs}), "topics; and for 10"), (len(support) - len(pairs), "sentences |"),
        (responses["correctness"].num_rows, "answers agrees"),
    ):  # fmt: skip
        assert re.search(rf"\b{number} {re.escape(words)}", said) or f"of {number} {words}" in said, (number, words)


def test_nuggets_are_short_and_stand_in_relevant_documents(responses: Responses) -> None:
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in sample.qrels().table.to_pylist()}
    rows = responses["evidence"].to_pylist()
    assert all(grades.get((row["query_id"], row["doc_id"]), 0) >= 2 for row in rows)
    nuggets = responses["nuggets"].to_pylist()
    assert {row["nugget_id"] for row in rows} == {row["nugget_id"] for row in nuggets}
    assert all(1 <= len(row["text"].split()) <= 12 for row in nuggets)
    counts = Counter(row["query_id"] for row in nuggets)
    assert (min(counts.values()), max(counts.values()), len(counts)) == (2, 6, 25)


def test_every_nugget_has_a_verdict_of_every_answer(responses: Responses) -> None:
    assigned = responses["assignments"].to_pylist()
    wanted = {(row["query_id"], run, row["nugget_id"], "hand", 0)
              for row in responses["nuggets"].to_pylist() for run in responses.run_names}  # fmt: skip
    assert {tuple(row[column] for column in KEYS["assignments"]) for row in assigned} == wanted
    texts = {(row["query_id"], row["run_id"], row["sentence"]) for row in responses["sentences"].to_pylist()}
    for row in assigned:  # what is said is said in a sentence that there is
        place = row["query_id"], row["run_id"], row["sentence"]
        assert (row["verdict"] == NOT) == (row["sentence"] is None)
        assert row["sentence"] is None or place in texts


def test_what_a_nugget_names_stands_in_the_sentence_that_says_it(responses: Responses) -> None:
    nuggets = {row["nugget_id"]: row["text"] for row in responses["nuggets"].to_pylist()}
    sentences = {tuple(row[name] for name in ("query_id", "run_id", "sentence")): row["text"]
                 for row in responses["sentences"].to_pylist()}  # fmt: skip
    checked = 0
    for row in responses["assignments"].to_pylist():
        name = re.search(r"\b[a-z]+\.[A-Za-z_.]+\w", nuggets[row["nugget_id"]])
        if row["verdict"] == SUPPORT and name:
            checked += 1
            assert name[0] in sentences[row["query_id"], row["run_id"], row["sentence"]]
    assert checked > 20


def test_support_speaks_of_what_is_cited(responses: Responses) -> None:
    key = ("query_id", "run_id", "sentence", "doc_id")
    cited = {tuple(row[name] for name in key) for row in responses["citations"].to_pylist()}
    assert all(tuple(row[name] for name in key) in cited for row in responses["support"].to_pylist() if row["doc_id"])
