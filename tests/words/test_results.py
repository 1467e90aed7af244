"""Fields of results, and keys of their JSON, are called by the words that parameters have."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from fastapi.testclient import TestClient

from judged.interface.pages.workspace import open_sample
from judged.results import COUNT, TEXT, Answer, Column, Table
from judged.web.app import make_app
from word_list import listed
from words.answer_examples import EXAMPLES

ASIDE = {
    "confidence": "the stated probability that an answer is right; the level of an interval is `level`",
    "control": "the settings that a plan's other configurations are compared with; what comes of it is the baseline",
    "query_id": "the column of ids, as in qrels and runs, so that tables join",
    "worst": "the score of a need's worst wording, beside `mean` and `best`",
    "shown": "on the page of a topic: on which side a document or run is shown",
    "top": "an answer to a question of the advice: what was judged is the top of each run",
}
"""Keys of results that are, as parameters, other words; and what they are here."""
OF_LOGS = {"metric", "metrics", "k"}
"""What users did has metrics, as measures have judgments, and a metric its own parameters."""
PAGES = (
    "/api/v1/open", "/api/v1/leaderboard", "/api/v1/compare?by=query_class", "/api/v1/topics",
    "/api/v1/topic?topic=t01", "/api/v1/matrix?by=query_class&baseline=rrf",
    "/api/v1/slices?by=query_class&baseline=rrf", "/api/v1/measures", "/api/v1/measures/nDCG", "/api/v1/lessons",
    "/api/v1/advice", "/api/v1/evaluator?list=3,0,1",
)  # fmt: skip


class Key(NamedTuple):
    path: str
    name: str
    value: Any


def faults_of_keys(keys: list[Key]) -> list[str]:
    """Say which keys have a name that another word stands for, and which numbers of topics are not called n."""
    words, never = listed()
    faults = dict[str, None]()
    for key in keys:
        if key.name in never and key.name not in words and key.name not in ASIDE:
            faults[f"{key.path}: the word is {never[key.name]}"] = None
        if key.name == "topics" and isinstance(key.value, int | float):
            faults[f"{key.path}: a number of topics is called n"] = None
    return list(faults)


def keys_of(value: Any, path: str) -> Iterator[Key]:
    """Give every key of a document, however deep; lists are one place."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield Key(f"{path}.{name}", name, part)
            yield from keys_of(part, f"{path}.{name}")
    elif isinstance(value, list):
        for part in value:
            yield from keys_of(part, path)


def classes(base: type) -> Iterator[type]:
    for sub in base.__subclasses__():
        yield sub
        yield from classes(sub)


def fields_of(kinds: list[type]) -> list[Key]:
    return [
        Key(f"{kind.__name__}.{field.name}", field.name, 0 if field.type in {"int", "float"} else None)
        for kind in kinds
        if dataclasses.is_dataclass(kind)
        for field in dataclasses.fields(kind)
    ]


def test_every_field_of_an_answer_is_called_by_its_word() -> None:
    kinds = [kind for kind in classes(Answer) if kind.__module__.startswith("judged.")]
    assert len(kinds) > 30
    of_logs = {kind.__name__ for kind in kinds if kind.__module__.startswith("judged.online")}
    fields = [key for key in fields_of(kinds) if not (key.path.split(".")[0] in of_logs and key.name in OF_LOGS)]
    assert faults_of_keys(fields) == []


@pytest.fixture(scope="module")
def keys() -> list[Key]:
    """Every key of an example of each answer, and of pages over the sample."""
    client = TestClient(make_app(open_sample()), base_url="http://127.0.0.1")
    answers = {name: make() for name, make in EXAMPLES.items()}
    documents = {name: json.loads(answer.json()) for name, answer in answers.items()}
    of_logs = {name for name, answer in answers.items() if type(answer).__module__.startswith("judged.online")}
    for page in PAGES:
        answer = client.get(page)
        assert answer.status_code == 200, page
        documents[page] = answer.json()
    every = ((name, key) for name, document in documents.items() for key in keys_of(document, name))
    return [key for name, key in every if not (name in of_logs and key.name in OF_LOGS)]


def test_every_key_of_a_document_is_called_by_its_word(keys: list[Key]) -> None:
    assert len({key.path for key in keys}) > 1000
    assert faults_of_keys(keys) == []


def test_every_exemption_is_needed(keys: list[Key]) -> None:
    words, never = listed()
    assert {name for name in ASIDE if name not in never or name in words} == set()
    assert set(ASIDE) <= {key.name for key in keys}


@dataclass(frozen=True)
class Planted:
    against: str
    topics: int
    limit: int


def test_planted_fields_are_found() -> None:
    assert faults_of_keys(fields_of([Planted])) == [
        "Planted.against: the word is baseline", "Planted.topics: a number of topics is called n",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        (Column("k", [5], COUNT), "made.rows.k: the word is cutoff"),
        (Column("metric", ["AP"], TEXT), "made.rows.metric: the word is measure"),
        (Column("topics", [48], COUNT), "made.rows.topics: a number of topics is called n"),
    ],
)
def test_a_planted_key_is_found(column: Column, fault: str) -> None:
    table = Table("rows", (Column("query_id", ["q1"], TEXT), column))
    assert faults_of_keys(list(keys_of({"rows": table.records()}, "made"))) == [fault]
