"""The pages of a study: who sees which, what counts once, and what they do not say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judged.data.texts import Texts
from judged.interface.pages.guard import LOOPBACK, Rules
from judged.studies.design import Variant
from judged.studies.pages import Study, make_study_app, results, steps
from judged.studies.records import SearchBackend, StudyLists
from judged.studies.storage import OBSERVER
from study_made import DESIGN, DOCS, HOSTILE, design_in, store_of


class Person:
    """Somebody who takes part, without a browser."""

    def __init__(self, study: Study, participant: str = "p1") -> None:
        from fastapi.testclient import TestClient

        self.client = TestClient(make_study_app(study, Rules(LOOPBACK)), base_url="http://127.0.0.1")
        self.home = f"/s/{study.store.token(participant)}"
        self.text = self.client.get(self.home).text

    @property
    def step(self) -> str:
        """Tell which page comes next."""
        return self.client.get(self.home, follow_redirects=False).headers["location"].rpartition("/")[2]

    def get(self, below: str = "") -> str:
        """Open the page that is next, or something below it."""
        answer = self.client.get(f"{self.home}/{self.step}{below}")
        assert answer.status_code == 200, answer.text
        return answer.text

    def send(self, **form: Any) -> int:
        """Send the form of the page that is next, with what it needs."""
        text = self.get()
        fields = dict(re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', text))
        fields |= dict.fromkeys(re.findall(r'<select id="[^"]+" name="([^"]+)"', text), "50")
        return self.client.post(f"{self.home}/{self.step}", data=fields | form).status_code

    def act(self, action: str, page: int, doc_id: str, **more: Any) -> int:
        """Do something with a document."""
        form = {"action": action, "page": page, "id": doc_id, **more}
        return self.client.post(f"{self.home}/{self.step}/act", data=form).status_code

    def go_to(self, kind: str) -> None:
        """Pass pages until one of a kind comes."""
        while not self.step.startswith(kind):
            assert self.send() == 200


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    design = design_in(tmp_path)
    store = store_of(design, tmp_path / "store.db")
    yield Study(design, store, StudyLists.of(design))
    store.close()


def actions(study: Study, participant: str = "p1") -> list[str]:
    return [row["action"] for row in study.store.records()["events"].to_pylist() if row["participant"] == participant]


def test_the_pages_in_their_order(study: Study) -> None:
    person, page_names = Person(study), list[str]()
    while (name := person.step) != "thanks":
        page_names.append(re.sub(r"-\d+", "", name))
        assert person.send() == 200
    task = ["task", "search", "questions-satisfaction"]
    assert page_names[:5] == ["consent", "instruction", "task", "search", "task"]  # nothing is asked of practice
    assert page_names[4:] == [
        *task * 3, "questions-umux-lite", *task, "questions-umux-lite",
        "preference", "questions-tlx", "questions-own",
    ]  # fmt: skip
    records = study.store.records()
    answers = records["answers"].to_pylist()
    assert {(row["questionnaire"], bool(row["position"]), row["system"]) for row in answers} == {
        ("satisfaction", True, ""), ("umux-lite", False, "alpha"), ("umux-lite", False, "beta"),
        ("tlx", False, ""), ("own", False, ""),
    }  # fmt: skip
    assert "Thank you." in person.get()


def test_pages_name_no_system(study: Study) -> None:
    person = Person(study)
    while person.step != "thanks":
        text = person.get()
        assert "alpha" not in text
        assert "beta" not in text
        assert "alpha" not in person.step
        person.send()


def test_a_form_that_is_sent_twice_counts_once(study: Study) -> None:
    person = Person(study)
    person.go_to("questions")
    name = person.step
    for value in ("2", "5", "1"):
        assert person.client.post(f"{person.home}/{name}", data={"1": value}).status_code == 200
    assert person.step != name
    assert person.client.get(f"{person.home}/{name}").url.path.endswith(person.step)  # by the browser's way back
    assert study.store.records()["answers"]["value"].to_pylist() == [2.0]


def test_what_was_not_answered_is_asked_again(study: Study) -> None:
    person = Person(study)
    person.go_to("questions")
    for form in ({}, {"1": ""}, {"1": "6"}, {"1": "x"}, {"2": "1"}):
        assert person.client.post(f"{person.home}/{person.step}", data=form).status_code == 400
    assert person.step.startswith("questions")
    assert study.store.records()["answers"].num_rows == 0


def test_pages_that_are_loaded_again_count_once(study: Study) -> None:
    person = Person(study)
    person.go_to("search")
    for _ in range(3):
        person.get()
    doc = study.lists.systems[study.store.trials("p1")[0]["system"]].hits("q0", "")[1][0]
    for _ in range(3):
        assert HOSTILE not in person.get(f"/document?page=1&id={doc}")
    for _ in range(2):
        assert person.act("save", 1, doc, then="document") == 200
    for _ in range(2):
        assert person.act("back", 1, doc, seconds=0.001) == 200
    person.get("?first=11")
    assert person.act("save", 2, "d11" if doc == "d01" else "d12") == 200  # and back to the second page
    assert person.act("unsave", 1, doc) == 200
    person.send()
    assert actions(study) == ["query", "click", "save", "back", "query", "save", "unsave", "end"]
    events = study.store.records()["events"].to_pylist()
    assert [(row["page"], row["rank"]) for row in events[:2]] == [(1, 1), (1, 2)]
    assert [(row["page"], row["rank"]) for row in events if row["action"] == "query"] == [(1, 1), (2, 11)]
    assert next(row["value"] for row in events if row["action"] == "back") == 0.001
    assert [row["doc_id"] for row in study.store.records()["saved"].to_pylist()] == ["d11" if doc == "d01" else "d12"]


def test_leaving_a_document_without_scripts_has_its_time_too(study: Study) -> None:
    person = Person(study)
    person.go_to("search")
    doc = study.lists.systems[study.store.trials("p1")[0]["system"]].hits("q0", "")[0][0]
    person.get()
    person.get(f"/document?page=1&id={doc}")
    person.get()
    person.get(f"/document?page=1&id={doc}")
    person.send()
    assert actions(study) == ["query", "click", "back", "click", "back", "end"]


def test_what_was_not_shown_cannot_be_opened(study: Study) -> None:
    person = Person(study)
    person.go_to("search")
    person.get()
    for page, doc in ((1, "d99"), (1, "../x"), (2, "d00"), (1, "d11")):
        assert person.act("save", page, doc) == 400
        assert person.client.get(f"{person.home}/{person.step}/document?page={page}&id={doc}").status_code == 400
    assert actions(study) == ["query"]


def test_when_the_time_is_over_the_task_ends(study: Study) -> None:
    short = replace(study.design, practice=tuple(replace(task, minutes=1e-6) for task in study.design.practice))
    person = Person(replace(study, design=short))
    person.go_to("task")
    person.send()
    assert person.step == "task-2"
    assert actions(study) == ["end"]


def test_own_queries_of_an_engine(study: Study) -> None:
    queries: list[str] = []

    def hits(_: str, query: str) -> tuple[tuple[str, float], ...]:
        queries.append(query)
        return () if query == "nothing" else tuple((doc, 1.0) for doc in DOCS[:12])

    free = SearchBackend(hits, Texts.of({"d00": {"title": "One", "text": "It has words."}}), free=True)
    person = Person(replace(study, lists=StudyLists({"alpha": free, "beta": free})))
    person.go_to("search")
    assert "results" not in re.findall(r"<ol class=\"(\w+)", person.get())
    assert "No results" in person.get("?q=nothing")
    assert "<mark>words</mark>" in person.get("?q=words")
    assert "d11" in person.get("?q=words&first=11")
    assert "d11" in person.get()  # by the link, the page that was seen last
    assert 'value="words"' in person.get()
    person.send()
    result_pages = [row for row in study.store.records()["events"].to_pylist() if row["action"] == "query"]
    assert [(row["query"], row["rank"], len(row["shown"])) for row in result_pages] == [
        ("nothing", 1, 0), ("words", 1, 10), ("words", 11, 2),
    ]  # fmt: skip


def test_a_link_opens_its_own_pages_and_nothing_else(study: Study) -> None:
    person = Person(study)
    other, observer = (study.store.token(participant) for participant in ("p2", OBSERVER))
    observing = (f"/observe/{other}", f"/observe/{observer}/p99")
    for path in ("/", "/s/p1-guessed", f"/s/{observer}", *observing, "/leaderboard", "/api/v1/openapi.json", "/docs"):
        assert person.client.get(path).status_code in {400, 404}, path
    foreign = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert person.client.post(f"{person.home}/consent", headers=foreign).status_code == 403
    assert person.client.get(person.home, headers={"host": "evil.example"}).status_code == 421
    assert study.store.steps("p1") == {}


def test_an_observer_writes_notes_on_the_task_that_runs(study: Study) -> None:
    person, base = Person(study), f"/observe/{study.store.token(OBSERVER)}"
    person.go_to("search")
    assert all(participant in person.client.get(base).text for participant in ("p1", "p12"))
    assert person.client.post(f"{base}/p1", data={"text": "looks at <b>titles</b> alone"}).status_code == 200
    assert "&lt;b&gt;titles" in person.client.get(f"{base}/p1").text
    (note,) = study.store.records()["notes"].to_pylist()
    assert (note["position"], note["text"]) == (1, "looks at <b>titles</b> alone")


def test_who_somebody_is_is_asked_only_where_the_design_says_so(tmp_path: Path) -> None:
    design = design_in(tmp_path, DESIGN.replace("[topics]", "personal = true\n[topics]"))
    store = store_of(design, tmp_path / "store.db", 1)
    person = Person(Study(design, store, StudyLists.of(design)))
    assert 'name="person"' in person.get()
    person.send(person="ann@example.org")
    assert store.records()["answers"].num_rows == 0
    assert store.records(personal=True)["answers"]["text"].to_pylist() == ["ann@example.org"]
    store.close()


def test_what_a_variant_shows() -> None:
    text = "A beginning that says nothing of it. " * 9 + "Then comes Faust, and more is said of him. " * 9
    lists = SearchBackend(lambda *_: (), Texts.of({"a": {"title": "On Faust", "text": text}}), free=False)
    hits = (("a", 2.0), ("b", 1.0))
    (first, second) = results(lists, hits, "faust", Variant(snippets=100))
    assert "".join(first["title"]) == "On Faust"
    assert first["title"][1::2] == ["Faust"]
    assert "Faust" in first["snippet"][1::2]
    assert len("".join(first["snippet"])) <= 104
    assert (second["rank"], "".join(second["title"]), "".join(second["snippet"])) == (2, "b", "")
    plain = results(lists, hits, "faust", Variant(marks=False, snippets=0, results=1), first=1)
    assert [(row["title"], row["snippet"]) for row in plain] == [(["On Faust"], [""])]
    assert [row["doc_id"] for row in results(lists, hits, "faust", Variant(results=1), first=2)] == ["b"]


def test_left_and_right_change_between_participants(study: Study) -> None:
    pairs = [step.pair for i in range(12) for step in steps(study.design, i, study.store.trials("p1")) if step.pair]
    assert len(pairs) == 12
    assert sum(pair.left == "alpha" for pair in pairs) == 6
