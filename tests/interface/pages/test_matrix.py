"""Page of the matrix: results of `matrix`, and the topics in a rectangle."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from judged.comparison.slicing import slice_topics
from judged.data import sample as shipped
from judged.diagnosis.matrix import matrix
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.results.html import minus
from judged.web.app import make_app


def client(workspace: Workspace) -> TestClient:
    return TestClient(make_app(workspace))


@pytest.fixture(scope="module")
def of_sample(sample: Workspace) -> TestClient:
    return client(sample)


@pytest.fixture(scope="module")
def by_hand() -> TestClient:
    """Eight topics at known places: x is R@2 of two relevant documents, y is RR."""
    lists = {
        "a": ["r", "s"], "b": ["r", "x"], "c": ["x", "r"], "d": ["x", "y", "r"], "e": ["x", "y"], "f": ["s", "r"],
        "g": ["x", "s"], "h": ["x", "y", "z", "s"],
    }  # fmt: skip
    qrels: dict[str, dict[str, int]] = {query: {"r": 1, "s": 1} for query in lists}
    other = {query: ["x", "s"] for query in lists}
    return client(
        open_workspace(
            {**qrels, "none": {"x": 0}}, {"run": {**lists, "none": ["x"]}, "other": {**other, "none": ["x"]}}
        )
    )


AXES = "x=R@2&y=RR"
PLACES = {"a": (1, 1), "b": (0.5, 1), "c": (0.5, 0.5), "d": (0, 1 / 3), "e": (0, 0), "f": (1, 1), "g": (0.5, 0.5),
          "h": (0, 0.25), "none": (0, 0)}  # fmt: skip


def chosen(http: TestClient, query: str) -> list[str]:
    return sorted(row["query_id"] for row in http.get(f"/api/v1/matrix?{query}").json()["selected"])


def test_numbers_are_those_of_performance_matrix(sample: Workspace, of_sample: TestClient) -> None:
    cut = slice_topics(sample.attributes, "query_class")
    runs = [run for run in shipped.runs() if run.name in {"bm25", "rrf"}]
    expected = matrix(shipped.qrels(), runs, slicing=cut, baseline="bm25")
    # over all topics, p is that of the leaderboard
    expected = expected.with_overall(sample.comparison(["R@100", "nDCG@10"], "bm25"))
    data = of_sample.get("/api/v1/matrix?run=rrf&baseline=bm25&by=query_class").json()
    assert data["cuts"] == list(expected.cuts)
    assert data["sentences"] == list(expected.sentences)
    assert data["counts"] == expected.table("counts").records()
    assert data["choices"]["resamples"] == 100_000
    assert data["points"] == expected.table("points").records()
    assert len(data["points"]) == 10
    assert data["changes"] == expected.table("changes").records()


def test_default_thresholds_of_one_run_are_its_means(sample: Workspace, of_sample: TestClient) -> None:
    means = sample.scores(["R@100", "nDCG@10"], ["bm25"]).aggregate()["bm25"]
    data = of_sample.get("/api/v1/matrix?run=bm25").json()
    assert data["cuts"] == [means["R@100"], means["nDCG@10"]]
    assert [data["selection"][name] for name in ("x_mean", "y_mean")] == data["cuts"]
    assert (data["run"], data["baseline"], data.get("changes")) == ("bm25", "", None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "a b c d e f g h none"),
        ("x0=0.5", "a b c f g"),
        ("x0=0.5&x1=0.5", "b c g"),
        ("x1=0.4&y0=0.25", "d h"),
        ("x0=&x1=&y0=0.3333&y1=1", "a b c d f g"),
        ("x0=1&x1=0.5&y0=1&y1=0.4", "a b c f g"),
        ("y0=0.51&y1=0.99", ""),
        ("x0=-5&x1=5&y0=-1e300&y1=1e300", "a b c d e f g h none"),
    ],
)
def test_rectangle_selects_topics_within_it(by_hand: TestClient, query: str, expected: str) -> None:
    assert chosen(by_hand, f"{AXES}&{query}") == expected.split()
    data = by_hand.get(f"/api/v1/matrix?{AXES}&{query}").json()["selection"]
    places = [PLACES[query_id] for query_id in expected.split()]
    assert data["count"] == len(places)
    if places:
        assert data["x_mean"] == pytest.approx(sum(x for x, _ in places) / len(places))
        assert data["y_mean"] == pytest.approx(sum(y for _, y in places) / len(places))
    else:
        assert data["x_mean"] is None


def test_quadrants_select_by_the_cuts(by_hand: TestClient) -> None:
    data = by_hand.get(f"/api/v1/matrix?{AXES}").json()
    counts = {row["quadrant"]: row["n"] for row in data["counts"]}
    assert data["cuts"] == [pytest.approx(3.5 / 9), pytest.approx((3 + 1 + 1 / 3 + 1 / 4) / 9)]  # 0.389, 0.509
    assert counts == {
        "healthy": 3, "ranking problem": 2, "coverage problem": 0, "both problems": 3, "no relevant documents": 1,
    }  # fmt: skip
    assert chosen(by_hand, f"{AXES}&quadrant=healthy") == ["a", "b", "f"]
    assert chosen(by_hand, f"{AXES}&quadrant=ranking+problem") == ["c", "g"]
    assert chosen(by_hand, f"{AXES}&quadrant=both+problems&y0=0.1") == ["d", "h"]
    assert chosen(by_hand, f"{AXES}&quadrant=no+relevant+documents") == ["none"]
    assert chosen(by_hand, f"{AXES}&quadrant=coverage+problem") == []


def test_changes_and_means_of_the_other_run(by_hand: TestClient) -> None:
    data = by_hand.get(f"/api/v1/matrix?{AXES}&run=run&baseline=other&x0=1&sort=-query_id").json()
    selection = data["selection"]
    assert [(row["run"], row["query_id"]) for row in data["selected"]] == [("run", "f"), ("run", "a")]
    assert [(row["x_change"], row["y_change"]) for row in data["selected"]] == [(0.5, 0.5)] * 2
    assert (selection["x_mean"], selection["x_mean_baseline"], selection["y_mean_baseline"]) == (1, 0.5, 0.5)


def test_topics_are_sorted_as_requested(by_hand: TestClient) -> None:
    def order(sort: str) -> str:
        data = by_hand.get(f"/api/v1/matrix?{AXES}&sort={sort}&y0=0.01&baseline=other").json()
        return "".join(row["query_id"] for row in data["selected"])

    assert order("query_id") == "abcdfgh"
    assert order("y") == "hdcgbaf"
    assert order("-x") == "afbcgdh"
    assert order("change") == "hdcgbaf"


def test_pages_of_topics(of_sample: TestClient) -> None:
    pages = [of_sample.get(f"/api/v1/matrix?sort=query_id&page={page}").json() for page in (1, 2, 9)]
    places = [(page["selection"]["page"], page["selection"]["pages"], len(page["selected"])) for page in pages]
    assert places == [(1, 2, 25), (2, 2, 23), (2, 2, 23)]
    assert len({row["query_id"] for page in pages for row in page["selected"]}) == 48
    text = of_sample.get("/matrix?sort=query_id&page=2&x0=0").text
    assert 'rel="prev" href="?x0=0&amp;sort=query_id&amp;page=1"' in text


def test_fixed_thresholds_part_the_topics_and_stay_in_links(by_hand: TestClient) -> None:
    data = by_hand.get(f"/api/v1/matrix?{AXES}&cuts=0.6,0.4").json()
    assert (data["cuts"], data["custom_cuts"]) == ([0.6, 0.4], True)
    assert chosen(by_hand, f"{AXES}&cuts=0.6,0.4&quadrant=healthy") == ["a", "f"]
    assert chosen(by_hand, f"{AXES}&cuts=0.6,0.4&quadrant=coverage+problem") == ["b", "c", "g"]
    text = by_hand.get(f"/matrix?{AXES}&cuts=0.8,0.5").text
    assert "Thresholds are R@2 0.800 and RR 0.500, as set." in text
    assert "?cuts=0.8%2C0.5&amp;x=R%402&amp;y=RR&amp;quadrant=healthy" in text
    assert {by_hand.get(f"/matrix?{AXES}&cuts={cuts}").status_code for cuts in ("0.8", "a,b", "0.5,7")} == {400}


def test_where_narrows_cuts_and_topics(sample: Workspace, of_sample: TestClient) -> None:
    where = "query_class == 'how-to'"
    data = of_sample.get("/api/v1/matrix", params={"where": where, "by": "kind", "run": "bm25"}).json()
    means = sample.scores(["R@100", "nDCG@10"], ["bm25"]).over_topics(sample.mask(where)).aggregate()["bm25"]
    assert (data["selection"]["count"], data["cuts"]) == (18, [means["R@100"], means["nDCG@10"]])
    for row in data["slices"]:
        assert int(sample.mask(row["where"]).sum()) == row["n"]


def dots(text: str, name: str = "run") -> list[dict[str, Any]]:
    match = re.search(rf'data-spec="{name}">(.*?)</script>', text, re.DOTALL)
    assert match is not None
    spec = json.loads(match[1])
    return next(layer["data"]["values"] for layer in spec["layer"] if layer.get("data", {}).get("name") == "topics")


def test_topics_at_the_same_position_are_one_dot(by_hand: TestClient) -> None:
    dot_by_position = {
        (dot["x_score"], round(dot["y_score"], 3)): dot
        for dot in dots(by_hand.get(f"/matrix?{AXES}&x0=0.5&y1=0.6").text)
    }
    assert {place: (dot["topics"], dot["selected"]) for place, dot in dot_by_position.items()} == {
        (1, 1): (2, 0), (0.5, 1): (1, 0), (0.5, 0.5): (2, 2), (0, 0.333): (1, 0), (0, 0): (2, 0), (0, 0.25): (1, 0),
    }  # fmt: skip
    assert dot_by_position[0.5, 1]["query_id"] == "b"
    assert (dot_by_position[0.5, 0.5]["from"], dot_by_position[0.5, 0.5]["to"]) == ([0.5, 0.5], [0.5, 0.5])
    assert "query_id" not in dot_by_position[1, 1]


def test_the_chart_shows_the_rectangle(by_hand: TestClient) -> None:
    text = by_hand.get(f"/matrix?{AXES}&x0=0.5&y1=0.6&baseline=other").text
    spec = json.loads(re.search(r'data-spec="run">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert spec["params"][0]["value"] == {"x": [0.5, 1.0], "y": [0.0, 0.6]}
    beside = json.loads(re.search(r'data-spec="baseline">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert "params" not in beside
    assert sorted((dot["topics"], dot["selected"]) for dot in dots(text, "baseline")) == [(1, 0), (8, 2)]


def test_page_and_json_agree(of_sample: TestClient) -> None:
    query = "run=rrf&baseline=bm25&by=query_class&x0=0.2&x1=0.7&y0=0.1"
    data = of_sample.get(f"/api/v1/matrix?{query}").json()
    text = html.unescape(of_sample.get(f"/matrix?{query}").text)
    selection = data["selection"]
    assert f"{selection['count']} topics of 48 selected; R@100 from 0.2 to 0.7; nDCG@10 from 0.1." in text
    assert f"Means of rrf: R@100 {selection['x_mean']:.4f}, nDCG@10 {selection['y_mean']:.4f}" in text
    for row in data["selected"]:
        assert f'href="/topic?first=bm25&second=rrf&measure=nDCG%4010&topic={row["query_id"]}"' in text
        assert row["query"] in text
    for sentence in data["sentences"]:
        assert minus(sentence) in text


def test_without_a_run_and_with_hostile_names() -> None:
    empty = client(open_workspace({"a": {"d": 1}}, []))
    assert "No run is open" in empty.get("/matrix").text
    assert empty.get("/api/v1/matrix").status_code == 400
    name, query = '"><script>x</script>', "<img src=x onerror=y>"
    opened = open_workspace(
        {query: {"d": 1}, "b": {"d": 1}}, {name: {query: ["d"], "b": ["x", "d"]}}, queries={query: name}
    )
    text = client(opened).get("/matrix?by=judged").text
    assert "<script>x" not in text
    assert "<img" not in text


def test_no_topic_has_a_relevant_document() -> None:
    opened = client(open_workspace({"a": {"d": 0}, "b": {"d": 0}}, {"r": {"a": ["d"], "b": ["d"]}}))
    data = opened.get("/api/v1/matrix").json()
    assert data["sentences"] == ["No topic has a relevant document, so no topic can be classified."]
    assert data["counts"][-1] == {"run": "r", "quadrant": "no relevant documents", "n": 2}
    assert opened.get("/matrix").status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("x0=nan", 422), ("x0=inf", 422), ("x0=a", 422), ("page=-1", 422), ("page=", 200), ("quadrant=x", 422),
        ("sort=z", 422), ("run=nobody", 400), ("baseline=nobody", 400), ("x=foo", 400), ("x=nDCG@10", 400),
        ("y=NumRel", 400), ("by=nope", 400), ("where=kind", 400), ("baseline=bm25", 200), ("by=,", 200),
        ("by=kind&min_topics=1000", 200), ("x0=0.5&x1=", 200), ("x=", 400), ("sort=change", 200),
    ],
)  # fmt: skip
def test_no_parameters_cause_an_internal_error(of_sample: TestClient, query: str, status: int) -> None:
    assert of_sample.get(f"/matrix?{query}").status_code == status
    assert of_sample.get(f"/api/v1/matrix?{query}").status_code == status
