"""Synthetic queries from documents: checks, the store, and comparison with real queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judged.labels import LabelStore
from judged.labels.asking import ask_questions, prepare_questions
from judged.labels.asking.questions import shared_words
from labels.asking.fake_endpoint import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

DOCUMENTS = {
    "good": "Goethe wrote Faust over sixty years.",
    "copied": "The red fox jumps over the lazy dog each day.",
    "twice": "For that tragedy Goethe needed sixty years.",
    "none": "Lorem ipsum dolor.",
    "lines": "Bread is baked from flour.",
    "far": "Stones fall down.",
}
QUERIES = {
    "Goethe wrote": "who is the author of faust?",
    "red fox": "red fox jumps over the fence",
    "that tragedy": "Who is the author  of Faust?",
    "Lorem": "NONE",
    "Bread": "how is bread made\nand of what",
    "Stones": "mass of the moon",
}


def content(text: str, _: int) -> str:
    if "(yes or no)" in text:
        return "no" if "moon" in text else "Yes"
    return next(query for phrase, query in QUERIES.items() if phrase in text)


def test_queries_are_checked() -> None:
    store = LabelStore.open("sqlite://")
    with serving(content) as fake:
        prepared = prepare_questions(store, fake.endpoint(), DOCUMENTS, limit=9)
        assert (prepared.calls, len(prepared.requests)) == (12, 6)
        result = ask_questions(prepared, queries={"1": "goethe", "2": "what is the author of a text"})
        calls = fake.calls
        assert ask_questions(prepare_questions(store, fake.endpoint(), DOCUMENTS, limit=9)).used == result.used
    assert calls == fake.calls == 6 + 2
    rejections = {question.doc_id: question.rejected for question in result.questions}
    assert sorted(rejections.pop(doc) for doc in ("good", "twice")) == ["", "duplicate"]
    assert rejections == {
        "copied": "copied", "none": "no query", "lines": "other format", "far": "not answered by the document",
    }  # fmt: skip
    assert result.add_to(store) == 1
    (topic,) = store.topics()
    assert (topic["synthetic"], topic["query_id"][:10]) == (True, "synthetic-")
    assert [task.doc_id for task in store.tasks("ann")] == [result.used[0].doc_id]
    assert "synthetic" in {note.rule for note in result.notes}
    shares = {
        (row["attribute"], row["value"]): (row["synthetic"], row["real"])
        for row in result.table("comparison").records()
    }
    assert shares["kind", "question"] == (1, 0.5)
    assert shares["kind", "keywords"] == (0, 0.5)


@pytest.mark.parametrize("sign", ["\0", "\x1b[2J", "\t", "\r", "\u2028", "\ud800", "\x85"])
def test_queries_with_control_characters_are_rejected(sign: str) -> None:
    store = LabelStore.open("sqlite://")
    with serving(lambda *_: f"who wrote{sign}it?") as fake:
        result = ask_questions(prepare_questions(store, fake.endpoint(), {"d": "a text"}, limit=1))
    assert [question.rejected for question in result.questions] == ["other format"]
    assert result.add_to(store) == 0
    assert "other format" in result.text().encode().decode()


def test_queries_of_different_models_are_different_topics() -> None:
    store = LabelStore.open("sqlite://")
    queries = ["who wrote it?", "whose book is that?", "who wrote it?"]
    for i, text in enumerate(queries):
        with serving(lambda prompt, _, text=text: "yes" if "(yes or no)" in prompt else text) as fake:
            endpoint = replace(fake.endpoint(), model=f"model {i}")
            result = ask_questions(prepare_questions(store, endpoint, {"d": "a text"}, limit=1))
        assert result.add_to(store) == int(i < 2)
    assert sorted(topic["text"] for topic in store.topics()) == sorted(set(queries))


@pytest.mark.parametrize("text", ["誰が\u3000書いた", "who\u200cwrote it"])
def test_blanks_and_joiners_of_other_scripts_are_allowed(text: str) -> None:
    with serving(lambda prompt, _: "yes" if "(yes or no)" in prompt else text) as fake:
        store = LabelStore.open("sqlite://")
        result = ask_questions(prepare_questions(store, fake.endpoint(), {"d": "a text"}, limit=1))
    assert [question.text for question in result.used] == [text]


def test_unchecked_queries_are_not_used() -> None:
    store = LabelStore.open("sqlite://")
    with serving(content) as fake:
        result = ask_questions(prepare_questions(store, fake.endpoint(), DOCUMENTS, limit=9), budget_calls=7)
    assert (fake.calls, result.stopped, result.remaining) == (7, "budget", 1)
    assert "not checked" in {question.rejected for question in result.questions}
    assert len(result.used) <= 1


@pytest.mark.parametrize(
    ("query", "document", "expected"),
    [
        ("a b c d", "x a b c y", (0.75, 3)),
        ("Faust, written when?", "When was Faust written", (1.0, 2)),
        ("", "a", (0.0, 0)),
        ("a b a b", "a b a", (1.0, 3)),
    ],
)
def test_shared_words(query: str, document: str, expected: tuple[float, int]) -> None:
    assert shared_words(query, document) == expected


def test_the_command(tmp_path: Path, run: Callable[..., Ended]) -> None:
    (tmp_path / "docs.csv").write_text(
        "doc_id,text\n" + "".join(f'{doc},"{text}"\n' for doc, text in DOCUMENTS.items())
    )
    path = str(tmp_path / "labels.db")
    with serving(content) as fake:
        (tmp_path / "e.toml").write_text(f'base_url = "{fake.url}"\nmodel = "m"\n')
        arguments = ("labels", "questions", path, str(tmp_path / "docs.csv"), "--endpoint", str(tmp_path / "e.toml"))
        assert (run(*arguments).code, fake.calls) == (2, 0)
        ended = run(*arguments, "--yes", "--format", "csv")
    assert ended.code == 0
    assert ended.lines[0] == "query_id,doc_id,text,overlap,rejected"
    store = LabelStore.open(path)
    assert [topic["synthetic"] for topic in store.topics()] == [True]
    store.close()
