"""Two runs compared: the numbers of judged's own functions, and the words around them."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from judged import compare
from judged.comparison.pair import pair_columns
from judged.comparison.slicing import slice_topics
from judged.data import sample as shipped
from judged.interface.pages.compare import MAX_BARS, ComparisonQuery, compare_page, figures
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.results import Table, plain
from judged.results.chart_drawings import draw_charts as draw
from judged.results.charts import specification
from judged.results.headline import MAX_WORDS
from judged.results.html import minus
from judged.web.app import make_app

HOSTILE = "<script>alert(1)</script>"
QRELS = {name: {"d": 1, "n": 0} for name in ("q1", "q2", "q3", "q4", "q5")}
OLD = {"q1": ["d"], "q2": ["x", "d"], "q3": ["x", "d"], "q4": ["x", "y", "z", "d"], "q5": ["d", "n"]}
NEW = {"q1": ["d"], "q2": ["d"], "q3": ["d"], "q4": ["d"]}  # q5 is missing: 0
QUERIES = {"q1": "Tax on Land", "q2": "peace", "q3": "apples", "q4": "land reform", "q5": HOSTILE}
# RR of old: 1, 1/2, 1/2, 1/4, 1; of new: 1, 1, 1, 1, 0; differences 0, .5, .5, .75, -1


def client(workspace: Workspace) -> TestClient:
    return TestClient(make_app(workspace), base_url="http://127.0.0.1")


def small(**more: Any) -> Workspace:
    return open_workspace(QRELS, {"old": OLD, "new": NEW}, **more)


def paired(workspace: Workspace, parameters: dict[str, Any]) -> dict[str, Any]:
    """Compare runs with the first one as baseline, whichever is best."""
    return {"first": next(iter(workspace.run_names), "")} | parameters if "second" not in parameters else parameters


def fetch(workspace: Workspace, **parameters: Any) -> Any:
    answer = client(workspace).get("/api/v1/compare", params=paired(workspace, parameters))
    assert answer.status_code == 200, answer.text
    return answer.json()


def shown(workspace: Workspace, status: int = 200, **parameters: Any) -> str:
    answer = client(workspace).get("/compare", params=paired(workspace, parameters))
    assert answer.status_code == status
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text.split("<main")[1])))


def ids(data: Any) -> list[str]:
    return [row["query_id"] for row in data["listed"]]


def verdict(data: Any) -> Any:
    """Return the test by the selected measure."""
    return next(row for row in data["pairs"] if row["measure"] == data["measure"])


def means(data: Any) -> list[float]:
    return [row["value"] for row in data["results"] if row["measure"] == data["measure"]]


def test_the_numbers_are_those_of_compare(sample: Workspace) -> None:
    names = ("nDCG@10", "AP", "RR", "R@100")
    runs = {run.name: run for run in shipped.runs()}
    expected = compare(shipped.qrels(), runs, names, baseline="bm25")
    data = fetch(sample, first="bm25", second="rrf", measure="AP")
    tests = [expected.pair("bm25", "rrf", name) for name in names]
    assert data["pairs"] == Table("pairs", pair_columns(tests)).records()
    assert data["sentences"][0] == tests[1].sentence
    assert data["choices"]["correction"] == "holm"
    assert verdict(data)["adjusted"] > verdict(data)["p"], "corrected for all runs that are open"


@pytest.mark.parametrize(
    ("first", "second", "n", "measure", "status", "word"),
    [
        ("late", "early", 8, "RR", "better", "better"),
        ("early", "late", 8, "RR", "worse", "worse"),
        ("mixed", "early", 8, "RR", "same", "no significant difference"),
        ("late", "late2", 8, "RR", "same", "equal"),
        ("late", "early", 3, "RR", "unknown", "not enough data"),
        ("late", "early", 8, "Judged@1", "info", "higher"),
    ],
)
def test_status_of_the_headline(first: str, second: str, n: int, measure: str, status: str, word: str) -> None:
    topics = [f"q{i}" for i in range(n)]
    late, early = {topic: ["x", "d"] for topic in topics}, {topic: ["d"] for topic in topics}
    runs = {"late": late, "late2": late, "early": early, "mixed": {**early, "q0": ["x", "d"]}}
    qrels = {topic: {"d": 1} for topic in topics}
    workspace = open_workspace(qrels, {first: runs[first], second: runs[second]})
    data = fetch(workspace, first=first, second=second, measure=measure, measures=measure)
    headline, pair = data["headline"], verdict(data)
    assert (headline["status"], headline["word"]) == (status, word)
    expected = compare(qrels, {first: runs[first], second: runs[second]}, measure, baseline=first).pairs[0]
    assert headline["value"] == pair["difference"] == expected.result.difference
    assert headline["ci"] == (expected.shown_interval and list(expected.shown_interval))
    assert len(headline["sentence"].split()) <= MAX_WORDS


def test_colors_of_differences_by_topic() -> None:
    def statuses(measure: str) -> dict[str, str]:
        query = ComparisonQuery(first="old", second="new", measure=measure)
        listed = compare_page(small(), query).listed[0]
        return dict(zip(listed.column("query_id").values, listed.column("difference").statuses, strict=True))

    assert statuses("RR") == {"q1": "same", "q2": "better", "q3": "better", "q4": "better", "q5": "worse"}
    assert statuses("Fallout(n=9)@1")["q5"] == "same"
    assert statuses("Fallout(n=9)@2")["q5"] == "better"  # old returns a document that is not relevant
    assert set(statuses("Judged@1").values()) == {"info"}


def test_p_does_not_depend_on_the_other_measures_of_the_table(sample: Workspace) -> None:
    data = fetch(sample, measures="AP, P@5,10", measure="RR", second="rrf")
    assert [row["measure"] for row in data["pairs"]] == ["AP", "P@5", "P@10", "RR"]
    alone = verdict(fetch(sample, measures="RR", measure="RR", second="rrf"))
    assert verdict(data) == alone
    two = open_workspace(sample.qrels, [sample.judged(name).run for name in ("bm25", "rrf")])
    pair = verdict(fetch(two, measures="RR", measure="RR", first="bm25", second="rrf"))
    assert pair["adjusted"] == pair["p"] == verdict(fetch(sample, measure="RR", first="bm25", second="rrf"))["p"]


def test_default_runs_are_baseline_or_best_and_the_best_other(sample: Workspace) -> None:
    recall = {run: values["R@100"] for run, values in sample.scores(("R@100",)).aggregate().items()}
    best, second, third = sorted(recall, key=recall.__getitem__, reverse=True)[:3]
    data = client(sample).get("/api/v1/compare", params={"measure": "R@100"}).json()
    assert (data["first"], data["second"]) == (best, second)
    assert fetch(sample, measure="R@100", first=third)["second"] == best
    assert fetch(sample, measure="R@100", second=best)["first"] == second
    workspace = open_workspace(QRELS, {"new": NEW, "the baseline": OLD, "twin": NEW})
    assert workspace.default_pair("RR") == ("the baseline", "new")


def test_topics_by_hand() -> None:
    data = fetch(small(queries=QUERIES), measure="RR", measures="RR")
    assert means(data) == [0.65, 0.8]
    assert verdict(data)["difference"] == pytest.approx(0.15)
    assert data["counts"] == {"all": 5, "wins": 3, "losses": 1, "ties": 1}
    assert ids(data) == ["q4", "q2", "q3", "q1", "q5"]
    assert data["listed"][0] == {
        "query_id": "q4", "query": "land reform", "first": 0.25, "second": 1.0, "difference": 0.75,
        "first_judged": 0.25, "second_judged": 1.0, "first_has": True, "second_has": True,
    }  # fmt: skip
    last = data["listed"][-1]
    assert (last["first"], last["second"], last["difference"], last["second_has"]) == (1.0, 0.0, -1.0, False)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"outcome": "wins"}, ["q4", "q2", "q3"]),
        ({"outcome": "losses"}, ["q5"]),
        ({"outcome": "ties"}, ["q1"]),
        ({"sort": "difference"}, ["q5", "q1", "q2", "q3", "q4"]),
        ({"sort": "-query_id"}, ["q5", "q4", "q3", "q2", "q1"]),
        ({"sort": "query"}, ["q5", "q3", "q4", "q2", "q1"]),
        ({"sort": "-query"}, ["q1", "q2", "q4", "q3", "q5"]),
        ({"sort": "first"}, ["q4", "q2", "q3", "q1", "q5"]),
        ({"sort": "-second"}, ["q1", "q2", "q3", "q4", "q5"]),
        ({"sort": "-first_judged"}, ["q1", "q5", "q2", "q3", "q4"]),
        ({"q": " LAND "}, ["q4", "q1"]),
        ({"q": "Q3"}, ["q3"]),
        ({"q": "land", "outcome": "ties"}, ["q1"]),
        ({"q": "nothing"}, []),
        ({"page": 99}, ["q4", "q2", "q3", "q1", "q5"]),
    ],
)
def test_topics_are_filtered_searched_and_sorted(parameters: dict[str, Any], expected: list[str]) -> None:
    assert ids(fetch(small(queries=QUERIES), measure="RR", **parameters)) == expected


def test_topics_without_a_score_are_last_in_both_directions() -> None:
    workspace = open_workspace({**QRELS, "q0": {"n": 0}}, {"old": OLD, "new": NEW})
    for sort in ("difference", "-difference"):
        data = fetch(workspace, measure="nDCG(undefined=skip)@10", sort=sort)
        assert data["unscored"] == 1
        assert ids(data)[-1] == "q0"
        assert data["listed"][-1]["difference"] is None
    assert verdict(data)["n"] == 5
    assert "1 topic without a score of one or both runs" in shown(workspace, measure="nDCG(undefined=skip)@10")


def test_pages_of_topics() -> None:
    qrels = {f"q{i:03}": {"d": 1} for i in range(120)}
    runs = {"old": {name: ["x", "d"] for name in qrels}, "new": {name: ["d"] for name in qrels}}
    data = fetch(open_workspace(qrels, runs), measure="RR", sort="query_id", page=3)
    assert ids(data) == [f"q{i:03}" for i in range(100, 120)]
    assert data["paging"] == {"page": 3, "total": 120, "size": 50}
    assert "101–120 of 120 topics" in shown(open_workspace(qrels, runs), measure="RR", sort="query_id", page=3)


def test_only_some_topics(sample: Workspace) -> None:
    where = "relevant > 5"
    scores = sample.scores(("AP",)).over_topics(sample.mask(where))
    pair = scores.compare(baseline="bm25", ci="none").pair("bm25", "rrf")
    data = fetch(sample, first="bm25", second="rrf", measure="AP", measures="AP", where=where)
    assert 0 < pair.result.n < 48
    assert verdict(data)["n"] == pair.result.n == data["counts"]["all"]
    assert (verdict(data)["difference"], verdict(data)["adjusted"]) == (pair.result.difference, pair.adjusted)
    assert f"Only topics with {where}" in re.sub(r"\s+", " ", shown(sample, where=where))


def test_single_topics_are_left_out_of_the_test_that_gave_the_verdict(sample: Workspace) -> None:
    """Each p-value without a topic is that of the page over all topics but this one."""
    answer = fetch(sample, first="bm25", second="lm_dirichlet", measure="AP")
    scores = sample.scores(("AP",), ("bm25", "lm_dirichlet"))
    rows = [row for row in answer["deciding"] if row["p"] is not None]
    assert rows
    for row in rows:
        again = fetch(
            sample,
            first="bm25",
            second="lm_dirichlet",
            measure="AP",
            measures="AP",
            where=f"query_id != '{row['query_id']}'",
        )
        assert row["p"] == verdict(again)["adjusted"]
        assert row["without"] == pytest.approx(verdict(again)["difference"])
        changed = verdict(again)["significant"] != verdict(answer)["significant"]
        assert ("significance" in row["changes"]) == changed
    differences = scores.values[1, 0] - scores.values[0, 0]
    moved = [abs(row["without"] - np.mean(differences)) for row in answer["deciding"]]
    assert moved == sorted(moved, reverse=True)


def test_topics_that_weaken_the_verdict_most_where_none_changes_it() -> None:
    data = fetch(small(), measure="RR")["deciding"]  # all but q5: 0.4375; all but q4: 0
    assert [(row["query_id"], row["without"], row["changes"]) for row in data] == [("q4", 0.0, "sign")]
    qrels = {f"q{i:02}": {"d": 1} for i in range(20)}
    old = {name: ["x", "d"] for name in qrels}
    new = {name: ["d"] for name in qrels} | {"q07": ["x", "x2", "d"], "q08": old["q08"]}
    data = fetch(open_workspace(qrels, {"old": old, "new": new}), measure="RR")["deciding"]
    # 18 differences of 0.5, one of -1/6, one of 0: without a gain the mean is (17 * 0.5 - 1/6) / 19
    assert [row["changes"] for row in data] == [""] * 3, "three topics whose removal weakens the verdict most"
    assert [row["without"] for row in data] == pytest.approx([(17 * 0.5 - 1 / 6) / 19] * 3)
    assert all(row["p"] <= 0.05 for row in data)


def test_by_slice(sample: Workspace) -> None:
    scores = sample.scores(("nDCG@10", "AP", "RR", "R@100"), ("bm25", "rrf"))
    slicing = slice_topics(sample.topic_attributes(("relevant_band",)), "relevant_band", query_ids=scores.query_ids)
    expected = scores.compare_slices(slicing, "bm25", measures=("AP",))
    expected = expected.with_overall(sample.comparison("AP", "bm25"))  # p is that of the leaderboard
    data = fetch(sample, first="bm25", second="rrf", measure="AP", by="relevant_band")["slices"]
    assert data["results"] == expected.to_dict()["results"]
    assert data["sentences"] == list(expected.sentences)
    text = client(sample).get("/compare", params={"by": "relevant_band"}).text
    assert "where=relevant_band+%3D%3D+%276-20%27" in text
    assert fetch(sample)["slices"] is None
    attributes = '<option value="{}">'.format
    assert attributes("relevant_band") in client(sample).get("/compare").text
    assert attributes("kind") not in client(small()).get("/compare").text, "it follows from texts, and there are none"


def test_lower_is_better() -> None:
    data = fetch(small(), measure="Fallout(n=100)@10", measures="RR")
    assert data["lower_is_better"]
    assert data["counts"] == {"all": 5, "wins": 4, "losses": 0, "ties": 1}
    assert data["sort"] == "difference"
    assert ids(data)[0] == "q4", "three wrong documents fewer"
    assert data["listed"][0]["difference"] < 0
    text = shown(small(), measure="Fallout(n=100)@10")
    assert "Lower Fallout(n=100)@10 is better." in text
    assert "new better 4" in text
    assert "4-1-0" in text
    assert "bars below 0 are improvements." in text
    assert "Below the dashed line, new is better" in text


def test_measures_without_a_mean_are_not_tested() -> None:
    data = fetch(small(), measure="NumRet", measures="RR")
    assert [row["measure"] for row in data["pairs"]] == ["RR"]
    assert data["sentences"][0].startswith("NumRet is a sum over topics, and was not tested")
    assert means(data) == [11.0, 4.0]
    assert "not tested" in shown(small(), measure="NumRet")
    assert "new higher 0" in shown(small(), measure="NumRet")
    ratio = fetch(small(), measure="GMAP")
    assert verdict(ratio)["is_ratio"]
    assert verdict(ratio)["difference"] == pytest.approx(means(ratio)[1] / means(ratio)[0])
    assert "\N{MULTIPLICATION SIGN}" in shown(small(), measure="GMAP")


def test_no_difference_at_all() -> None:
    workspace = open_workspace(QRELS, {"one": OLD, "again": OLD})
    data = fetch(workspace, measure="RR")
    assert data["sentences"][0] == "again and one have the same RR on all 5 topics."
    assert data["sentences"][1] == "The mean difference is 0, regardless of which topic is removed."
    assert data["deciding"] == []
    page = client(workspace).get("/compare?measure=RR").text
    assert "data-spec" not in page
    assert "equal scores on every topic: one = again" in page


def test_one_topic() -> None:
    workspace = open_workspace({"q": {"d": 1}}, {"old": {"q": ["x", "d"]}, "new": {"q": ["d"]}})
    data = fetch(workspace, measure="RR")
    assert "no conclusion is possible" in data["sentences"][0]
    assert verdict(data)["p"] is None
    assert "Score of new minus score of old on each topic, topic q (+0.500)." in shown(workspace, measure="RR")


@pytest.mark.parametrize(
    ("parameters", "name", "problem"),
    [
        ({"first": "old", "second": "old"}, "second", "old cannot be compared with itself"),
        ({"second": "older"}, "second", "no run 'older' is open"),
        ({"first": "older"}, "first", "no run 'older' is open"),
        ({"measure": "nDGC@10"}, "measure", "nDGC"),
        ({"measures": "AP, nothing"}, "measures", "nothing"),
        ({"measures": "P@1..12"}, "measures", "measures can be tested together"),
        ({"measure": "P@5,10"}, "measure", "P@5, P@10"),
        ({"where": "kind =="}, "where", "kind =="),
        ({"where": "relevant > 99"}, "where", "no topic satisfies 'relevant > 99'"),
        ({"by": "color"}, "by", "color"),
    ],
)
def test_invalid_parameters_are_reported_at_their_field(parameters: dict[str, str], name: str, problem: str) -> None:
    served = client(small())
    answer, page = served.get("/api/v1/compare", params=parameters), served.get("/compare", params=parameters)
    assert (answer.status_code, page.status_code) == (400, 400)
    assert problem in answer.json()["problem"]
    assert problem in html.unescape(re.split(r'id="(?:where-)?problem"', page.text)[1])
    if name != "by":
        field = re.search(rf'<(?:input|select) [^>]*name="{name}"[^>]*>', page.text)
        assert field is not None
        assert 'aria-invalid="true"' in field[0]
    for typed in parameters.values():
        assert typed in html.unescape(page.text.split("<form")[1]), "what was typed stays"


@pytest.mark.parametrize("query", ["sort=color", "outcome=none", "page=-1", "page=x", f"q={'x' * 501}"])
def test_parameters_of_the_wrong_kind(query: str) -> None:
    served = client(small())
    assert served.get(f"/compare?{query}").status_code == 422
    assert set(served.get(f"/api/v1/compare?{query}").json()) == {"problem", "fix"}


def test_fewer_than_two_runs() -> None:
    empty, single = open_workspace(QRELS, {}), open_workspace(QRELS, {"only": OLD})
    assert "No run is open" in shown(empty)
    assert "Only one run is open" in shown(single)
    assert client(empty).get("/api/v1/compare").json()["problem"] == "no run is open"
    assert client(single).get("/api/v1/compare").status_code == 400


def test_links_to_topics_keep_the_parameters() -> None:
    page = html.unescape(client(small(queries=QUERIES)).get("/compare?first=old&measure=RR&outcome=wins&q=e").text)
    table = page.split('id="topics"')[1]
    assert re.findall(r'href="(/topic\?[^"]*)"', table) == [
        f"/topic?measure=RR&first=old&second=new&topic={name}" for name in ("q4", "q2", "q3")
    ]
    head = re.search(r'<a href="([^"]*)"><bdi>Query', table)
    assert head is not None
    parameters = {"first=old", "second=new", "measure=RR", "outcome=wins", "q=e"}
    assert set(head[1].removeprefix("?").split("&")) == {*parameters, "sort=query"}
    assert 'aria-sort="descending"' in table
    swap = re.search(r'href="/compare\?([^"]*)">Swap', page)
    assert swap is not None
    assert {"first=new", "second=old"} < set(swap[1].split("&"))


def test_the_texts_of_people_are_written_as_they_are() -> None:
    workspace = open_workspace(QRELS, {HOSTILE: OLD, "new": NEW}, queries=QUERIES)
    page = client(workspace).get("/compare?measure=RR").text
    assert HOSTILE not in page
    assert html.escape(HOSTILE) in page


def test_no_query_column_without_query_texts() -> None:
    assert not re.search(r"sort=query\b", client(small()).get("/compare").text)
    assert re.search(r"sort=query\b", client(small(queries=QUERIES)).get("/compare").text)


def draw_charts(workspace: Workspace) -> list[list[dict[str, Any]]]:
    """Return the rows of both charts."""
    charts = figures(compare_page(workspace, ComparisonQuery(measure="RR", first="old")))
    return [max(specification(draw(chart))["datasets"].values(), key=len) for chart in charts]


def test_chart_contents() -> None:
    workspace = small(queries=QUERIES)
    bars, points = draw_charts(workspace)
    assert [(row["x"], row["y"], row["color"]) for row in bars] == [
        ("q4", 0.75, "second"), ("q2", 0.5, "second"), ("q3", 0.5, "second"), ("q1", 0.0, "neither"),
        ("q5", -1.0, "first"),
    ]  # fmt: skip
    assert [(row["x"], row["y"]) for row in points][:2] == [(0.25, 1.0), (0.5, 1.0)]
    assert bars[0]["link"] == "/topic?measure=RR&first=old&second=new&topic=q4"
    assert figures(compare_page(workspace, ComparisonQuery(measure="RR", first="old")))[0].sentence == (
        "Score of new minus score of old on each topic, from topic q4 (+0.750) to topic q5 (-1.000)."
        " Blue: new is better. Orange: old is better."
    )


def many(topics: int = 1500) -> Workspace:
    rng = np.random.default_rng(7)
    qrels = {f"q{i:04}": {"d": 1} for i in range(topics)}

    def run() -> dict[str, list[str]]:
        places = rng.integers(0, 10, topics).tolist()
        return {name: [f"x{i}" for i in range(place)] + ["d"] for name, place in zip(qrels, places, strict=True)}

    return open_workspace(qrels, {"old": run(), "new": run()})


def test_of_many_topics_some_are_drawn() -> None:
    bars, points = draw_charts(many())
    page = compare_page(many(), ComparisonQuery(measure="RR", first="old"))
    falling = [row["y"] for row in bars]
    assert (len(bars), len(points)) == (MAX_BARS, 1500)
    assert falling == sorted(falling, reverse=True)
    assert (falling[0], falling[-1]) == (np.nanmax(page.differences), np.nanmin(page.differences))
    cut = "The chart shows 400 of 1,500 topics"
    assert [cut in chart.sentence for chart in figures(page)] == [True, False]


def test_page_and_api_show_the_same(sample: Workspace) -> None:
    data = fetch(sample, second="rrf", measure="AP")
    text = shown(sample, second="rrf", measure="AP")
    assert minus(data["sentences"][0]) in text
    for row in data["listed"][:3]:
        assert f"{row['query_id']} {row['query']} {row['first']:.4f} {row['second']:.4f}" in text
    assert plain(data) == data
