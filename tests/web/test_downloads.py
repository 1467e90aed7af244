"""Every table of a page as a file, conditions that are offered, and what stays of a form with a mistake in it."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from judged.comparison.slicing import Expression
from judged.web.app import make_app


@pytest.fixture(scope="module")
def tried(sample: Any) -> TestClient:
    return TestClient(make_app(sample))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/leaderboard",
        "/topics",
        "/topic?topic=t01",
        "/matrix",
        "/slices",
        "/traces",
        "/rag",
        "/agents",
        "/learn/nDCG",
    ],
)
def test_every_table_that_a_page_shows_is_there_in_every_form(tried: TestClient, page: str) -> None:
    names = {unescape(name) for name in re.findall(r'data-table="([^"]*)"', tried.get(page).text)} - {"sheet"}
    assert names
    path, _, query = page.partition("?")
    for name in names:
        for form in ("csv", "json", "tex", "md"):
            answer = tried.get(f"{path}.{quote(name, safe='')}.{form}?{query}")
            assert answer.status_code == 200, (page, name, answer.text)
            assert answer.headers["content-disposition"].endswith(f".{form}")
            assert answer.headers["content-security-policy"]


def test_a_table_in_pages_comes_whole_where_that_is_asked_for(tried: TestClient) -> None:
    first_page = rows_of(tried.get("/topics.topics.csv?sort=-mean").text)
    all_rows = rows_of(tried.get("/topics.topics.csv?sort=-mean&page=0").text)
    assert all_rows[: len(first_page)] == first_page
    assert [row["query_id"] for row in all_rows] == [
        row["query_id"] for row in tried.get("/api/v1/topics?sort=-mean&page=0").json()["topics"]
    ]
    assert len(all_rows) == 48


def test_json_and_csv_have_the_numbers_of_the_twin(tried: TestClient) -> None:
    twin = tried.get("/api/v1/topic?topic=t01&rel=2").json()["scores"]
    assert json.loads(tried.get("/topic.scores.json?topic=t01&rel=2").text) == twin
    assert [row["measure"] for row in rows_of(tried.get("/topic.scores.csv?topic=t01&rel=2").text)] == [
        row["measure"] for row in twin
    ]


@pytest.mark.parametrize(
    "path", ["/leaderboard.none.csv", "/topics.a/../b.csv", "/api.x.csv", "/topic.scores.csv?topic=x"]
)
def test_no_such_table_is_a_problem(tried: TestClient, path: str) -> None:
    assert tried.get(path).status_code in {400, 404}


def test_a_level_decides_what_is_relevant(tried: TestClient) -> None:
    usual, strict = (tried.get(f"/api/v1/topic?topic=t01{level}").json() for level in ("", "&rel=2"))
    assert (usual["relevant"], strict["relevant"]) == (7, 4)  # grades 3, 2, 2, 2, 1, 1, 1
    assert [row["measure"] for row in strict["scores"]][:2] == ["nDCG@10", "AP(rel=2)"]
    assert ({row["relevant"] for row in usual["losses"]}, {row["relevant"] for row in strict["losses"]}) == ({7}, {4})
    listed = tried.get("/api/v1/topics?measure=AP&rel=2").json()
    assert (listed["measure"], listed["topics"][0]["relevant"]) == ("AP(rel=2)", 4)
    assert tried.get("/api/v1/compare?measure=AP&rel=2").json()["measure"] == "AP(rel=2)"
    assert tried.get("/api/v1/slices?measures=AP&rel=2").json()["measures"] == ["AP(rel=2)"]
    assert tried.get("/api/v1/matrix?x=R@100&rel=2").json()["x"] == "R(rel=2)@100"


def test_every_condition_that_is_offered_chooses_topics(sample: Any, tried: TestClient) -> None:
    offered = tried.get("/api/v1/conditions").json()["conditions"]
    assert {"expression": "query_class == 'explore'", "topics": 8} in offered
    for row in offered:
        if row["topics"]:
            assert int(sample.mask(row["expression"]).sum()) == row["topics"]
        else:
            Expression(f"{row['expression']}1")


@pytest.mark.parametrize(
    ("path", "typed", "field"),
    [
        ("/topics", {"q": "list", "where": "kind ==", "measure": "AP"}, "where"),
        ("/topics", {"q": "list", "measure": "nDC", "rel": "2"}, "measure"),
        ("/topics", {"q": "list", "rel": "much"}, "rel"),
        ("/topic", {"topic": "t01", "measure": "AP", "explain": "no"}, "explain"),
        ("/compare", {"first": "rrf", "where": "kind ==", "measures": "AP"}, "where"),
        ("/leaderboard", {"baseline": "rrf", "where": "kind ==", "rel": "2"}, "where"),
        ("/matrix", {"run": "rrf", "where": "kind ==", "rel": "2"}, "where"),
        ("/slices", {"by": "kind", "where": "kind ==", "rel": "2"}, "where"),
    ],
)
def test_a_mistake_stands_at_its_field_and_all_that_was_typed_stays(
    tried: TestClient, path: str, typed: dict[str, str], field: str
) -> None:
    answer = tried.get(path, params=typed)
    assert answer.status_code in {400, 422}
    fields = re.findall(r"<(?:input|select)[^>]*>", answer.text)
    (wrong,) = (row for row in fields if 'aria-invalid="true"' in row)
    assert f'name="{field}"' in wrong
    (description_id,) = re.findall(r'aria-describedby="([^"]+)"', wrong)
    assert f'id="{description_id}"' in answer.text
    for name, value in typed.items():
        is_selected = f'<option value="{value}" selected' in answer.text or f"<option selected>{value}" in answer.text
        assert is_selected or any(f'name="{name}"' in row and f'value="{value}"' in row for row in fields), name


def test_words_of_the_query_are_marked_and_nothing_else_is_markup(tried: TestClient) -> None:
    assert "<mark>most</mark> <mark>common</mark> <mark>elements</mark>" in tried.get("/topic?topic=t01").text
    document = tried.get("/api/v1/document?doc_id=collections.Counter&topic=t01").json()
    assert "".join(document["pieces"]) == document["text"]
    assert document["pieces"][1] == "Elements"


def test_copied_and_saved_cells_have_one_value(tried: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(tried.get("/leaderboard.board.tsv").text), delimiter="\t"))
    assert rows == rows_of(tried.get("/leaderboard.board.csv").text)
    row = next(row for row in rows if row["run"] == "tfidf")
    low, value, high = (float(row[f"nDCG@10{end}"]) for end in ("_low", "", "_high"))
    assert low < value < high
    assert row["nDCG@10 against rrf"] == "worse"
    assert 0 < float(row["nDCG@10 adjusted p"]) < 0.05
    cells = [line.removesuffix(r" \\").split(" & ") for line in tried.get("/leaderboard.board.tex").text.splitlines()]
    (cell_row,) = [line for line in cells if line[0] == "tfidf"]
    assert cell_row[1:3] == [f"{value:.4f}", f"[{low:.3f}, {high:.3f}]"]
