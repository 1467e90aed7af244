"""Page of slices: results of `by_slice` and `compare_slices`, links that select a slice, and empty states."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient

from judged.comparison.slicing import slice_topics
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.interface.pages.answer_pages import conjunction
from judged.interface.pages.slices import visible_runs
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUOTED = """it's "quoted" \\ <b> & a=b + 100% `x`"""
"""A value that would break every way of writing it down but the right one."""


def client(workspace: Workspace) -> TestClient:
    return TestClient(make_app(workspace))


@pytest.fixture(scope="module")
def of_sample(sample: Workspace) -> TestClient:
    return client(sample)


def collection(kinds: list[str], runs: int = 2, **more: Any) -> Workspace:
    """One relevant document a topic; the first run has it at the top for even topics, the second always second."""
    ids = [f"q{i:02}" for i in range(len(kinds))]
    lists = {
        "one": {query: ["d"] if i % 2 == 0 else ["x", "d"] for i, query in enumerate(ids)},
        "two": {query: ["x", "d"] for query in ids},
    }
    attributes = {query: {"sort": kind} for query, kind in zip(ids, kinds, strict=True)}
    return open_workspace(
        {query: {"d": 1} for query in ids}, dict(list(lists.items())[:runs]), attributes=attributes, **more
    )


def links(text: str, path: str) -> Iterator[str]:
    """Return the condition of each link to a page."""
    for link in re.findall(rf'href="({path}\?[^"]*)"', text):
        yield from parse_qs(urlsplit(html.unescape(link)).query).get("where", [])


def test_scores_are_those_of_by_slice(sample: Workspace, of_sample: TestClient) -> None:
    runs, measures = ["bm25", "rrf"], ["nDCG@10", "AP"]
    cut = slice_topics(sample.attributes, "query_class", min_topics=8)
    for run in runs:
        parameters = {"by": "query_class", "measures": ",".join(measures), "run": run, "min_topics": 8}
        data = of_sample.get("/api/v1/slices", params=parameters).json()
        expected = sample.scores(measures, [run]).by_slice(cut, seed=0)
        assert data["sentences"] == list(expected.sentences)
        assert data["results"] == expected.table("results").records()
        assert sum(row["adjusted"] is not None for row in data["results"]) == 8  # four slices, two measures
        assert data["averages"] == expected.table("averages").records()


def test_where_narrows_scores_and_thirds(sample: Workspace, of_sample: TestClient) -> None:
    where = "query_class in ('how-to', 'known-item')"
    data = of_sample.get("/api/v1/slices", params={"by": "length", "run": "bm25", "where": where}).json()
    attributes = sample.topic_attributes(["query_class", "length"])
    mask = sample.mask(where)
    query_ids = [query for query, keeps in zip(sample.query_ids, mask.tolist(), strict=True) if keeps]
    cut = slice_topics(attributes, "length", query_ids=query_ids)
    expected = sample.scores(["nDCG@10", "R@100"], ["bm25"]).over_topics(mask).by_slice(cut)
    assert (data["n"], len(query_ids)) == (32, 32)
    assert data["results"] == expected.table("results").records()
    for row in data["slices"]:
        assert row["n"] == expected.estimate(row["name"]).size
        assert int(sample.mask(row["where"]).sum()) == row["n"]


def test_differences_are_those_of_compare_slices(sample: Workspace, of_sample: TestClient) -> None:
    parameters = {"by": "query_class", "run": "rrf", "baseline": "bm25"}
    data = of_sample.get("/api/v1/slices", params=parameters).json()["comparison"]
    cut = slice_topics(sample.attributes, "query_class")
    expected = sample.scores(["nDCG@10", "R@100"], ["bm25", "rrf"]).compare_slices(cut, "bm25")
    # over all topics, p is that of the leaderboard
    expected = expected.with_overall(sample.comparison(["nDCG@10", "R@100"], "bm25"))
    assert data["sentences"] == list(expected.sentences)
    assert data["choices"]["resamples"] == 100_000
    assert len(data["results"]) == 10  # all topics and four slices, two measures
    for row, expected_row in zip(data["results"], expected.table("results").records(), strict=True):
        assert [row[name] for name in ("slice", "measure", "difference", "adjusted", "small")] == [
            expected_row[name] for name in ("slice", "measure", "difference", "adjusted", "small")
        ]


def test_page_and_json_agree(of_sample: TestClient) -> None:
    address = "/slices?by=query_class&run=bm25"
    text = html.unescape(re.sub(r"\s+", " ", re.sub(r"</?code>", "`", of_sample.get(address).text)))
    data = of_sample.get(f"/api/v1{address}").json()
    for row in data["results"]:
        assert row["slice"] in text
        assert f"{row['value']:.4f}" in text
    for sentence in data["sentences"]:
        assert sentence in text
    assert "too few topics</span>" in text
    assert "Slices with fewer than 10 topics are not tested." in text
    assert f'href="/api/v1{address}"' in text


def test_all_runs_have_one_table_per_measure(of_sample: TestClient, sample: Workspace) -> None:
    data = of_sample.get("/api/v1/slices?by=query_class&measures=nDCG@10").json()
    assert data["every_run"] is True
    assert [row["run"] for row in data["results"] if row["slice"] == "all topics"] == list(sample.ranked_run_names())
    text = of_sample.get("/slices?by=query_class").text
    assert text.count('<table class="slices">') == 2


def test_downloaded_slices_contain_their_conditions(of_sample: TestClient) -> None:
    saved = of_sample.get("/slices.bm25 by slice.json?by=query_class&run=bm25").json()
    data = of_sample.get("/api/v1/slices?by=query_class&run=bm25").json()
    where = {row["name"]: row["where"] for row in data["slices"]} | {"all topics": "", "mean of slices": None}
    assert {row["slice"]: row["where"] for row in saved} == where
    values = {row["slice"]: row["value"] for row in data["results"] if row["measure"] == "R@100"}
    assert {row["slice"]: row["R@100"] for row in saved if row["slice"] in values} == values


@pytest.mark.parametrize("page", ["/topics", "/leaderboard", "/matrix"])
def test_links_select_exactly_their_slice_for_any_value(page: str) -> None:
    kinds = ["plain", QUOTED, 'only "double"', "only 'single'", "\n\ttabs"]
    opened = collection([kinds[i % 5] for i in range(20)])
    text = client(opened).get("/slices?by=sort&min_topics=1").text
    slice_links = list(dict.fromkeys(links(text, page)))
    assert len(slice_links) == 5
    for expression in slice_links:
        mask = opened.mask(expression)
        values = {opened.attributes.column("sort").to_pylist()[i] for i in mask.nonzero()[0]}  # type: ignore[union-attr]
        assert len(values) == 1
        assert mask.sum() == 4
    assert "<b>" not in text.replace("<b>Next:</b>", "")


@pytest.mark.parametrize("inner", [QUOTED, "a' or sort != 'a", "x') or ('' == '"])
def test_links_keep_existing_conditions(inner: str) -> None:
    opened = collection([inner if i % 2 else "other" for i in range(12)])
    where = "query_id < 'q06'"
    data = client(opened).get("/api/v1/slices", params={"by": "sort", "where": where, "min_topics": 1}).json()
    line = next(row for row in data["slices"] if row["name"] == f"sort={inner}")
    assert line["where"] == conjunction(where, line["expression"])
    assert [query for query, keeps in zip(opened.query_ids, opened.mask(line["where"]), strict=True) if keeps] == [
        "q01", "q03", "q05",
    ]  # fmt: skip


def test_numbers_by_hand() -> None:
    opened = collection(["even", "odd"] * 12)
    data = client(opened).get("/api/v1/slices?by=sort&measures=RR&run=one&baseline=two").json()
    by_name = {row["slice"]: row for row in data["results"]}
    assert {name: row["value"] for name, row in by_name.items()} == {
        "all topics": 0.75,
        "sort=even": 1,
        "sort=odd": 0.5,
    }
    assert (by_name["sort=even"]["rest_difference"], by_name["sort=even"]["better"]) == (0.5, True)
    assert by_name["sort=odd"]["better"] is False
    rows = {row["slice"]: row for row in data["comparison"]["results"]}
    assert {name: row["difference"] for name, row in rows.items()} == {
        "all topics": 0.25,
        "sort=even": 0.5,
        "sort=odd": 0,
    }
    assert [rows["sort=even"][name] for name in ("wins", "ties", "losses")] == [12, 0, 0]


def test_attributes_are_listed_with_meaning(of_sample: TestClient) -> None:
    attributes = {row["name"]: row for row in of_sample.get("/api/v1/slices").json()["attributes"]}
    assert attributes["query_class"]["source"] == "input"
    assert attributes["query_class"]["meaning"] == "explore, how-to, known-item, symptom"
    assert attributes["kind"]["source"] == "the texts of the queries"
    assert attributes["length"]["kind"] == "number"  # the sample's own, not the derived one
    text = of_sample.get("/slices").text
    for name in attributes:
        assert f'href="/slices?by={name}"' in text
        assert of_sample.get("/api/v1/slices", params={"by": name, "run": "bm25"}).status_code == 200


def test_without_attributes_and_texts_the_judgments_are_sliced() -> None:
    opened = open_workspace({"a": {"d": 1}, "b": {"d": 1, "e": 1}}, {"r": {"a": ["d"], "b": ["x"]}})
    data = client(opened).get("/api/v1/slices").json()
    assert data["by"] == ["relevant_band"]
    assert [row["name"] for row in data["attributes"]] == ["relevant", "relevant_band", "judged", "first_relevant"]
    text = client(opened).get("/slices").text
    assert "All attributes above are derived from the data" in text
    assert "No slice has enough topics to be tested" in text


def test_without_runs_slices_are_counted() -> None:
    opened = open_workspace({"a": {"d": 1}, "b": {"d": 0}}, [])
    data = client(opened).get("/api/v1/slices?min_topics=1").json()
    assert [(row["name"], row["n"]) for row in data["slices"]] == [
        ("relevant_band=none", 1), ("relevant_band=1", 1),
    ]  # fmt: skip
    assert "No run is open" in client(opened).get("/slices").text


def test_all_topics_in_one_slice() -> None:
    text = client(collection(["same"] * 12)).get("/slices?by=sort").text
    assert "All topics are in one slice" in text


def test_slices_by_an_outcome_have_a_note(of_sample: TestClient) -> None:
    assert "regression to the mean" in of_sample.get("/slices?by=first_relevant&run=rrf").text


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("where=kin+%3D%3D", "is not an expression"),
        ("where=nothing+%3D%3D+1", "no attribute"),
        ("where=query_class+%3D%3D+%27none%27", "no topic satisfies"),
        ("where=query_class+%3D%3D+3", "is a text"),
    ],
)
def test_invalid_expressions_are_reported_at_their_field(of_sample: TestClient, query: str, problem: str) -> None:
    answer = of_sample.get(f"/slices?{query}")
    assert answer.status_code == 400
    place = answer.text.index('id="where-problem"')
    assert problem in answer.text[place : place + 300]
    assert 'aria-invalid="true" aria-describedby="where-problem"' in answer.text
    assert problem in of_sample.get(f"/api/v1/slices?{query}").json()["problem"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("by=nope", 400), ("measures=foo", 400), ("run=nobody", 400), ("baseline=nobody", 400), ("min_topics=0", 422),
        ("min_topics=x", 422), ("min_topics=", 200), ("by=query_class,query_class", 200), ("measures=,", 200),
        ("measures=P@1,P@2,P@3,P@4,P@5,P@6,P@7", 400), ("run=bm25&baseline=bm25", 400), ("baseline=rrf&run=*", 200),
        ("baseline=bm25", 200), ("by=query_class,kind&run=bm25", 200), ("measures=GMAP,NumRel&run=bm25", 200),
    ],
)  # fmt: skip
def test_no_parameters_cause_an_internal_error(of_sample: TestClient, query: str, status: int) -> None:
    assert of_sample.get(f"/slices?{query}").status_code == status
    assert of_sample.get(f"/api/v1/slices?{query}").status_code == status


def test_with_much_data_only_the_best_run_is_shown(sample: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from judged.interface.pages import slices as answer
    from judged.interface.pages.slices import SlicesQuery

    monkeypatch.setattr(answer, "_MAX_TESTED", 100)
    assert visible_runs(sample, SlicesQuery()) == ("rrf",)
    assert visible_runs(sample, SlicesQuery(run="*")) == sample.ranked_run_names()


def test_classes_have_their_own_measures(sample: Workspace, of_sample: TestClient) -> None:
    own = {"known-item": "P@5", "explore": "R@100"}
    parameters = {"by": "query_class", "measures": "AP", "baseline": "bm25", "run": "tfidf"}
    parameters["class_measures"] = ",".join(f"{name}={measure}" for name, measure in own.items())
    slicing = slice_topics(sample.attributes, "query_class").with_measures(own, "AP")
    expected = sample.scores(["R@100", "AP", "P@5"], ["tfidf"]).by_slice(slicing)
    data = of_sample.get("/api/v1/slices", params=parameters).json()
    assert data["results"] == expected.table("results").records()
    assert data["averages"] == []
    assert data["sentences"] == list(expected.sentences)
    compared = sample.scores(["R@100", "AP", "P@5"], ["bm25", "tfidf"]).compare_slices(slicing, "bm25")
    assert data["comparison"]["results"] == compared.table("results").records()
    page = of_sample.get("/slices", params=parameters).text
    assert NO_AVERAGE in page
    assert ">all topics<" not in page
    assert "known-item=P@5,explore=R@100" in page
    assert all("class_measures" not in link for link in re.findall(r'href="/slices\?[^"]*by=length[^"]*"', page))


def test_class_measures_of_a_page_are_never_a_path(of_sample: TestClient, tmp_path: Path) -> None:
    (tmp_path / "a=b.toml").write_text('[class.measures]\nexplore = "R@100"\n')
    parameters = {"by": "query_class", "class_measures": str(tmp_path / "a=b.toml")}
    answer = of_sample.get("/api/v1/slices", params=parameters)
    assert answer.status_code == 400
    assert "no class" in answer.json()["problem"]
    for measures in ("nav=P@5", "explore=P5", "explore"):
        page = of_sample.get("/slices", params={"by": "query_class", "class_measures": measures})
        assert page.status_code == 400
        assert 'name="class_measures"' in page.text
