"""Leaderboard: results of `evaluate` and `compare`, and hand calculations."""

from __future__ import annotations

import csv
import io
import math
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import judged
from judged.comparison.slicing import slice_topics
from judged.data import sample as shipped
from judged.interface.pages.leaderboard import CURVE_CUTOFFS
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.results.headline import MAX_WORDS
from judged.scoring.default_measures import BROWSED_MEASURES
from judged.scoring.measures.grammar import list_measures
from judged.web.app import make_app

pytestmark = pytest.mark.filterwarnings("ignore::judged.JudgedWarning")

TOPICS = [f"q{i}" for i in range(1, 9)]
QRELS = {topic: {"d": 1, "n": 0} for topic in TOPICS}
RUNS = {
    "bad": {topic: ["x", "d"] for topic in TOPICS},
    "good": {topic: ["d"] for topic in TOPICS},
    "twin": {topic: ["y", "d", "n"] for topic in TOPICS},
    "part": {topic: ["d"] for topic in TOPICS[:6]},
}
ATTRIBUTES = {topic: {"kind": "law" if i < 3 else "news", "words": i} for i, topic in enumerate(TOPICS)}
HOSTILE = ("<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", 'a" onmouseover="b & c=1#?', "none")


def client_of(workspace: Workspace) -> TestClient:
    return TestClient(make_app(workspace), base_url="http://127.0.0.1", raise_server_exceptions=True)


@pytest.fixture(scope="module")
def client(sample: Any) -> TestClient:
    return client_of(sample)


@pytest.fixture(scope="module")
def small() -> TestClient:
    return client_of(open_workspace(QRELS, RUNS, attributes=ATTRIBUTES, title="small"))


def fetch(client: TestClient, **query: Any) -> dict[str, Any]:
    answer = client.get("/api/v1/leaderboard", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: TestClient, **query: Any) -> str:
    answer = client.get("/api/v1/leaderboard", params=query)
    assert answer.status_code == 400, answer.text
    assert set(answer.json()) == {"problem", "fix"}
    return f"{answer.json()['problem']}: {answer.json()['fix']}"


def text_of(client: TestClient, status: int = 200, **query: Any) -> str:
    """Return the text of the page."""
    answer = client.get("/leaderboard", params=query)
    assert answer.status_code == status
    bare = re.sub(r"<script.*?</script>|<[^>]+>", " ", answer.text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(bare))


def names_of(data: dict[str, Any]) -> list[str]:
    return [row["run"] for row in data["board"]]


def column(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {row["run"]: row[name] for row in data["board"]}


def against(data: dict[str, Any], run: str, measure: str) -> dict[str, Any]:
    """Return the test of a run against the baseline."""
    return next(row for row in data["pairs"] if (row["second"], row["measure"]) == (run, measure))


def verdict(data: dict[str, Any], run: str, measure: str) -> str:
    return column(data, f"{measure} against {data['baseline']}")[run]


def noted(data: dict[str, Any], rule: str) -> list[str]:
    return [note["text"] for note in data["notes"] if note["rule"] == rule]


# --- numbers ----------------------------------------------------------------------------------------


def test_by_hand(small: TestClient) -> None:
    data = fetch(small, measures="RR", baseline="bad")
    assert column(data, "RR") == {"good": 1.0, "part": 0.75, "bad": 0.5, "twin": 0.5}
    assert names_of(data) == ["good", "part", "bad", "twin"]
    assert (data["baseline"], data["sort"], data["p_name"]) == ("bad", "-RR", "adjusted p")
    good = against(data, "good", "RR")
    # 2 of 2^8 ways to flip signs are as extreme; Holm multiplies the least of three p-values by 3
    assert (good["difference"], good["adjusted"]) == (0.5, 3 * 2 / 256)
    assert (good["significant"], good["n"], verdict(data, "good", "RR")) == (True, 8, "better")
    assert (against(data, "twin", "RR")["adjusted"], verdict(data, "twin", "RR")) == (1.0, "")
    # 8 topics with +0.5 six times and -0.5 twice: sums of at least 4 signs, 2 * (1 + 8 + 28) of 256, times 2 by Holm
    assert against(data, "part", "RR")["adjusted"] == pytest.approx(2 * 2 * 37 / 256)
    page = small.get("/leaderboard", params={"measures": "RR", "baseline": "bad"}).text
    # number, drawn interval, verdict, and p
    row = re.search(r"<tr><th[^>]*>(?:(?!</tr>).)*good.*?</tr>", page, re.DOTALL)[0]
    cells = [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
    assert cells[:4] == ["1.0000", "", "▲ better", "0.0234"]
    assert '<svg class="interval better"' in row


@pytest.mark.parametrize(
    ("runs", "n", "query", "status", "word", "value"),
    [
        (("good", "bad"), 8, {}, "better", "best run", 1.0),
        (("good", "bad"), 8, {"baseline": "bad"}, "better", "1 better", 1.0),
        (("good", "part", "bad"), 8, {}, "same", "no single best run", 1.0),  # part is not significantly worse
        (("twin", "bad"), 8, {"baseline": "bad"}, "same", "none better", 0.5),
        (("good", "bad"), 3, {}, "unknown", "not enough data", 1.0),
        (("bad",), 8, {}, "info", "not compared", 0.5),
        (("good", "bad"), 8, {"measures": "Judged@1"}, "info", "highest", 1.0),
    ],
)
def test_status_of_the_headline(
    runs: tuple[str, ...], n: int, query: dict[str, str], status: str, word: str, value: float
) -> None:
    qrels = {topic: QRELS[topic] for topic in TOPICS[:n]}
    chosen = {run: {topic: docs for topic, docs in RUNS[run].items() if topic in qrels} for run in runs}
    data = fetch(client_of(open_workspace(qrels, chosen)), **({"measures": "RR"} | query))
    headline = data["headline"]
    assert (headline["status"], headline["word"], headline["value"]) == (status, word, value)
    assert len(headline["sentence"].split()) <= MAX_WORDS
    estimates = judged.evaluate(qrels, chosen, query.get("measures", "RR")).estimates()
    assert tuple(headline["ci"]) in {row.ci for row in estimates if row.value == value}


def test_judged_share_and_missing_topics_by_hand(small: TestClient) -> None:
    data = fetch(small, measures="RR")
    expected = judged.evaluate(QRELS, RUNS, "Judged@10").aggregate()
    assert column(data, "judged") == {run: value["Judged@10"] for run, value in expected.items()}
    assert column(data, "judged")["good"] == 1.0
    assert column(data, "missing") == {"bad": 0, "good": 0, "twin": 0, "part": 2}
    page = text_of(small, measures="RR")
    assert "no results for 2 topics" in page
    assert "50.0% ! low" in page


OPTIONS = [
    {},
    {"baseline": "rrf", "correction": "bonferroni"},
    {"test": "t", "correction": "none", "measures": "AP,P@5"},
    {"test": "tukey", "measures": "AP"},
    {"test": "dunnett", "baseline": "tfidf", "measures": "AP"},
    {"test": "wilcoxon", "measures": "AP", "correction": "bh"},
    {"where": "query_class == 'how-to'", "measures": "AP,GMAP,NumRelRet"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_results_equal_those_of_compare(client: TestClient, sample: Workspace, options: dict[str, str]) -> None:
    names = options.get("measures", ",".join(BROWSED_MEASURES)).split(",")
    baseline = options.get("baseline") or sample.ranked_run_names(names[0])[0]
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), names)
    if "where" in options:
        cut = slice_topics(sample.topic_attributes(), "query_class", query_ids=scores.query_ids)
        scores = scores.over_topics(cut.mask("query_class=how-to"))
    how = {name: options[name] for name in ("test", "correction") if name in options}
    comparison = scores.compare(baseline=baseline, **how)  # type: ignore[arg-type]
    data = fetch(client, **options)
    pairs = {(row["measure"], row["second"]): row for row in data["pairs"]}
    assert len(pairs) == len(comparison.pairs)
    for measure_result in comparison.measures:
        assert column(data, measure_result.name) == {row.run: row.value for row in measure_result.estimates}
        ends = {row.run: row.ci and list(row.ci) for row in measure_result.estimates}
        if any(ends.values()):
            assert column(data, f"{measure_result.name}_ci") == ends
        for pair in measure_result.pairs:
            row = pairs[measure_result.name, pair.second]
            assert (row["difference"], row["adjusted"]) == (pair.shown_difference, pair.adjusted)
            assert (row["significant"], row["sentence"]) == (pair.significant, pair.sentence)
            words = ("ahead", "behind") if options.get("test") == "wilcoxon" else ("better", "worse")
            better = {pair.second: words[0], baseline: words[1], None: "unlike" if pair.significant else ""}[
                pair.better
            ]
            assert verdict(data, pair.second, measure_result.name) == better
    assert comparison.caption in data["sentences"][1]
    assert {note.text for note in comparison.notes} <= {note["text"] for note in data["notes"]}
    assert names_of(data) == [scores.run_names[i] for i in comparison.order]


def test_counts_are_shown_and_not_tested(small: TestClient) -> None:
    data = fetch(small, measures="NumRelRet,NumRet,NumQ")
    assert list(column(data, "NumRelRet").values()) == [8, 8, 8, 6]
    assert data["pairs"] == []
    assert [row["untested"] for row in data["measures"]] == [
        "NumRelRet is a sum over topics, and was not tested",
        "NumRet is a sum over topics, and was not tested",
        "NumQ is a count over topics, and was not tested",
    ]
    assert data["sentences"][1].startswith("No significance test; [95% CI")
    page = text_of(small, measures="NumRelRet,NumRet")
    assert " twin ⋯ Compare with bad Use as baseline Topics 8 " in page


def test_a_geometric_mean_is_compared_by_a_ratio(client: TestClient) -> None:
    data = fetch(client, measures="GMAP")
    ratio = against(data, "tfidf", "GMAP")
    assert ratio["is_ratio"]
    assert ratio["difference"] == pytest.approx(column(data, "GMAP")["tfidf"] / column(data, "GMAP")["bm25"])
    assert f"\N{MULTIPLICATION SIGN}{ratio['difference']:.3f} [{ratio['difference_ci'][0]:.3f}, " in text_of(
        client, measures="GMAP", details="difference"
    )


def test_where_neither_end_is_better_nothing_is_better(small: TestClient) -> None:
    data = fetch(small, measures="Judged@1", baseline="bad")  # all of good's first documents are judged, none of bad's
    assert (column(data, "Judged@1")["good"], column(data, "Judged@1")["bad"]) == (1, 0)
    assert verdict(data, "good", "Judged@1") == "higher"
    assert verdict(fetch(small, measures="Judged@1", baseline="good"), "bad", "Judged@1") == "lower"
    board = small.get("/leaderboard", params={"measures": "Judged@1"}).text.partition('class="board"')[2]
    assert "<b>1.0000</b>" not in board


def test_lower_is_better(small: TestClient) -> None:
    name = "Fallout(n=100)@1"  # bad has one that is not relevant at the first rank, good has none
    data = fetch(small, measures=name, baseline="bad")
    assert data["sort"] == name
    assert names_of(data) == ["good", "part", "bad", "twin"]
    assert verdict(data, "good", name) == "better"
    assert f"Lower is better for {name}." in text_of(small, measures=name)
    assert f'<a href="?measures=Fallout%28n%3D100%29%401&amp;sort=-{"Fallout%28n%3D100%29%401"}"' in small.get(
        "/leaderboard", params={"measures": name}
    ).text.replace("\n", "")


def test_belief_in_place_of_p(client: TestClient) -> None:
    data = fetch(client, measures="AP", test="bayes", baseline="bm25")
    expected = judged.compare(shipped.qrels(), shipped.runs(), "AP", baseline="bm25", test="bayes")
    assert data["p_name"] == "P(higher)"
    pair = expected.pair("bm25", "tfidf")
    assert pair.result.posterior is not None
    assert against(data, "tfidf", "AP")["posterior_higher"] == pair.result.posterior.higher


# --- what is chosen ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["nDCG@10,AP"], ["nDCG@10", "AP"]),
        (["AP", " ", "P@5"], ["AP", "P@5"]),
        (["nDCG(gain={1:1,2:5},judged_only=true)@10; AP"], ["nDCG(gain={1:1,2:5},judged_only=true)@10", "AP"]),
        (["P@5,10,AP"], ["P@5,10", "AP"]),
        (["P@5", "10"], ["P@5", "10"]),
        ([",,;"], []),
        (["nDCG(gain="], ["nDCG(gain="]),
        (["a)b}c"], ["a)b}c"]),
    ],
)
def test_names_are_parted_by_commas(texts: list[str], names: list[str]) -> None:
    assert list_measures(texts) == names


def test_measures_in_any_spelling_count_once(small: TestClient) -> None:
    data = fetch(small, measures=["ndcg_cut_10, AP", "map", "nDCG@10", "P@1,2"])
    assert [row["measure"] for row in data["columns"]] == ["nDCG@10", "AP", "P@1", "P@2"]
    assert [row["family"] for row in data["columns"]] == ["nDCG", "AP", "P", "P"]


def test_too_many_measures(small: TestClient) -> None:
    assert len(fetch(small, measures="P@1..24")["measures"]) == 24
    assert "a table can have at most 24 measures" in refused(small, measures="P@1..25")
    assert "is too long" in refused(small, measures="P@1..1000000")


def test_sorting(small: TestClient) -> None:
    def order(sort: str) -> list[str]:
        return names_of(fetch(small, measures="RR,R@1", sort=sort))

    assert order("run") == ["bad", "good", "part", "twin"]
    assert order("-run") == ["twin", "part", "good", "bad"]
    assert order("RR") == ["bad", "twin", "part", "good"]
    assert order("-R@1") == ["good", "part", "bad", "twin"]
    assert order("-recall.1") == order("-R@1")
    assert order("P@5") == order("") == ["good", "part", "bad", "twin"]  # a measure that is not in the table
    judged_first = order("-judged")
    assert judged_first[0] == "good"
    assert judged_first[-1] == "bad"
    assert "there is no column 'zz': sort by one of run, judged, RR, R@1" in refused(
        small, measures="RR,R@1", sort="zz"
    )


def test_runs_without_a_score_are_last_in_both_directions() -> None:
    runs = {"some": {"q1": ["d"]}, "other": {"q1": ["x", "d"]}}
    client = client_of(open_workspace({"q1": {"d": 1}, "q2": {"d": 1}}, runs))
    for sort in ("RR", "-RR"):
        data = fetch(client, measures="RR", sort=sort)
        values = list(column(data, "RR").values())
        assert values == sorted(values, reverse=sort.startswith("-"))


def test_over_a_slice_by_hand(small: TestClient) -> None:
    data = fetch(small, measures="RR", where="kind == 'news'", baseline="bad")
    assert (data["n"], data["all_topics"]) == (5, 8)
    assert data["sentences"][0] == "Means are over the 5 of 8 topics that satisfy the condition kind == 'news'."
    assert column(data, "RR")["part"] == 3 / 5
    assert {row["n"] for row in data["results"]} == {5}
    assert column(data, "missing")["part"] == 2
    assert against(data, "good", "RR")["adjusted"] == 3 * 2 / 32
    law = fetch(small, measures="RR", where="kind == 'law'")
    assert (column(law, "RR")["part"], column(law, "missing")["part"]) == (1.0, 0)
    single_topic = fetch(small, measures="RR", where="words == 0", baseline="bad")
    assert single_topic["sentences"][0] == "Means are over the 1 of 8 topics that satisfy the condition words == 0."
    assert against(single_topic, "good", "RR")["adjusted"] is None  # one topic has no test


def test_few_topics_are_warned_of(client: TestClient) -> None:
    few = fetch(client, where="query_class == 'explore'")
    assert noted(few, "few-topics") == ["means over 8 topics are unreliable: use at least 10 topics"]
    assert [note["rule"] for note in few["notes"]][1] == "of-all-topics"
    assert not noted(fetch(client, where="query_class == 'how-to'"), "few-topics")


def test_default_and_selected_baseline(small: TestClient) -> None:
    assert fetch(small, measures="RR")["baseline"] == "good"
    with_baseline = client_of(open_workspace(QRELS, {**RUNS, "my-Baseline": RUNS["bad"]}))
    assert fetch(with_baseline, measures="RR")["baseline"] == "my-Baseline"
    assert fetch(small, measures="RR", baseline="part")["baseline"] == "part"
    data = fetch(small, measures="RR")
    assert verdict(data, "bad", "RR") == "worse"
    page = text_of(small, measures="RR", baseline="good")
    assert "good is first; 2 of 3 other runs are significantly worse." in page
    assert "3 tests against good by RR: n = 8 topics; paired randomization test, exact;" in page


def test_errors_are_shown_at_their_field(client: TestClient) -> None:
    answer = client.get(
        "/leaderboard",
        params={
            "measures": "AP,nDCGG@10",
            "baseline": "<b>",
            "test": "q",
            "correction": "z",
            "curve": "AP11",
            "sort": "?",
        },
    )
    assert answer.status_code == 400
    page = answer.text
    assert '<input id="others" name="measures" list="known-measures" value="nDCGG@10"' in page  # as it was typed
    for name, problem in (
        ("measures", "there is no measure 'nDCGG'. Fix: did you mean nDCG"),
        ("baseline", "no run '<b>' is open. Fix: use one of bm25, "),
        ("test", "unknown test: 'q'. Fix: use one of randomization, "),
        ("correction", "unknown correction: 'z'. Fix: use one of none, "),
        ("sort", "there is no column '?'. Fix: sort by one of run, judged, AP"),
        ("curve", "AP11 takes no cutoff"),
    ):
        match = re.search(rf'<p class="problem" id="{name}-problem">(.*?)</p>', page)
        assert match is not None, name
        assert unescape(match[1]).startswith(problem)
        if name not in {"sort", "curve"}:
            assert page.count(f'aria-invalid="true" aria-describedby="{name}-problem"') == 1
    assert "7 tests against bm25_prf by AP: " in unescape(page)  # the rest goes on as usual


def test_a_condition_that_cannot_be_read_shows_nothing(client: TestClient) -> None:
    page = text_of(client, 400, where="query_class = 'how-to'")
    assert "\"query_class = 'how-to'\" is not an expression. Fix: compare attributes" in page
    assert "No topics to show" in page
    assert "0.4240" not in page
    assert "no topic satisfies" in refused(client, where="query_class == 'nothing'")
    assert "no attribute 'color'" in refused(client, where="color == 1")


def test_a_measure_that_cannot_be_scored_here(client: TestClient) -> None:
    assert "AWRF" in refused(client, measures="AP,AWRF@10")  # it asks for facts about documents
    page = client.get("/leaderboard", params={"measures": "AP,AWRF@10"}).text
    assert 'list="known-measures" value="AWRF@10"' in page
    assert "7 tests against bm25_prf by AP: " in page
    assert "Measures (1): NumRet" in text_of(client, 400, measures="AWRF@10")


@pytest.mark.parametrize(
    "query",
    [
        {"measures": "("}, {"measures": "nDCG@0"}, {"measures": "\x00"}, {"measures": "RBP(p=7)@3"},
        {"where": "().__class__"}, {"where": "\x00"}, {"where": "(" * 900}, {"curve": "x" * 300}, {"sort": "-"},
        {"curve": "nDCG@1..90000"}, {"curve": "P@0"}, {"baseline": "\ud83d"}, {"beside": "nothing"},
        {"test": "dunnett", "where": "words == 3"}, {"measures": "x" * 301}, {"where": "x" * 2001}, {"format": "pdf"},
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_makes_it_fail(small: TestClient, query: dict[str, str]) -> None:
    for path in ("/leaderboard", "/api/v1/leaderboard", "/leaderboard.board.csv"):
        pairs = {name: value.encode("utf-8", "surrogatepass") for name, value in query.items()}
        answer = small.get(path, params=pairs)
        assert answer.status_code in {200, 400, 422}, (path, answer.text)


# --- one run, no run, many topics, many runs, hostile names -----------------------------------------


def test_a_single_run_is_not_tested() -> None:
    client = client_of(open_workspace(QRELS, {"only": RUNS["part"]}, attributes=ATTRIBUTES))
    data = fetch(client, measures="RR", curve="R")
    assert data["baseline"] is None
    assert data["sentences"][1].startswith("No tests, because only one run is open: no significance test; [95% CI")
    low, high = judged.evaluate(QRELS, {"only": RUNS["part"]}, "RR").estimates()[0].ci or (0, 0)
    assert data["board"][0]["RR"] == 0.75
    assert data["board"][0]["RR_ci"] == [low, high]
    page = text_of(client, measures="RR")
    assert f"0.7500 RR of only 95% CI {low:.3f} to {high:.3f} Only one run is scored, over 8 topics." in page
    assert "as baseline" not in page
    assert data["pairs"] == []
    markdown = client.get("/leaderboard.board.md?measures=P@1").text  # P@1 is RR on every topic here
    assert markdown.splitlines()[2].startswith(f"| only | 0.7500 | [{low:.3f}, {high:.3f}] |")


def test_page_without_runs_links_to_opening_files() -> None:
    client = client_of(open_workspace(QRELS, None))
    data = fetch(client, curve="nDCG", where="relevant == 1", baseline="x", sort="-AP")
    assert (data["baseline"], data["curve"], "board" in data) == (None, None, False)
    page = client.get("/leaderboard")
    assert page.status_code == 200
    assert "No run is open" in page.text
    assert 'href="/open"' in page.text
    assert client.get("/leaderboard.board.csv").status_code == 400


def test_over_many_topics_it_takes_the_t_test() -> None:
    random = np.random.default_rng(5)
    topics = [f"q{i}" for i in range(2001)]
    qrels = {topic: {"d": 1} for topic in topics}
    lists = (["d"], ["x", "d"], ["x", "y", "d"])
    runs = {name: {topic: lists[random.integers(3)] for topic in topics} for name in ("one", "two")}
    client = client_of(open_workspace(qrels, runs, attributes={topic: {"at": i} for i, topic in enumerate(topics)}))
    data = fetch(client, measures="RR", curve="R", baseline="one")
    expected = judged.compare(qrels, runs, "RR", baseline="one", test="t")
    assert (data["choices"]["test"], data["sentences"][1]) == ("t", f"1 test against one by RR: {expected.caption}.")
    assert "paired t-test" in data["sentences"][1]
    assert "[95% CI: t interval adjusted for skewness and score range]" in data["sentences"][1]
    assert against(data, "two", "RR")["p"] == expected.pair("one", "two").result.p
    assert noted(data, "many-topics")
    randomization = fetch(client, measures="RR", test="randomization")
    assert (randomization["choices"]["test"], randomization["choices"]["resamples"]) == ("randomization", 10_000)
    fewer = fetch(client, measures="RR", where="at < 2000")
    assert (fewer["choices"]["test"], fewer["choices"]["resamples"]) == ("randomization", 10_000)
    assert not noted(fewer, "many-topics")


def test_hostile_names_stay_texts() -> None:
    runs = {name: RUNS["good" if i % 2 else "bad"] for i, name in enumerate(HOSTILE)}
    client = client_of(
        open_workspace(QRELS, runs, attributes={topic: {"<i>": f"<b>'{i % 2}"} for i, topic in enumerate(TOPICS)})
    )
    page = client.get("/leaderboard", params={"baseline": HOSTILE[1], "curve": "P", "details": "difference"})
    assert page.status_code == 200
    for part in ("<img", "<script>alert", "<b>'", 'onmouseover="b', "<i>"):
        assert part not in page.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.text
    assert "second=a%22+onmouseover%3D%22b+%26+c%3D1%23%3F&amp;measure=nDCG%4010" in page.text
    data = fetch(client, baseline=HOSTILE[2])
    assert data["baseline"] == HOSTILE[2]
    assert set(names_of(data)) == set(HOSTILE)
    slice_now = fetch(client, where='`<i>` == "<b>\'1"')
    assert slice_now["n"] == 4


# --- curves -----------------------------------------------------------------------------------------


def test_the_curve_is_that_of_the_engine(client: TestClient, sample: Workspace) -> None:
    data = fetch(client, curve="nDCG")
    cutoffs = [k for k in CURVE_CUTOFFS if k <= 50]  # the sample has 50 documents a topic
    expected = judged.curve(shipped.qrels(), shipped.runs(), "nDCG", cutoffs=cutoffs).to_dict()
    assert (data["curve"]["measure"], data["curve"]["cutoffs"]) == ("nDCG@k", cutoffs)
    assert sorted(data["points"], key=str) == sorted(expected["points"], key=str)
    over = fetch(client, curve="P", where="query_class == 'how-to'")["points"]
    cut = slice_topics(sample.topic_attributes(), "query_class", query_ids=sample.query_ids).mask("query_class=how-to")
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), "P@5").over_topics(cut)
    assert {row["run"]: row["value"] for row in over if row["cutoff"] == 5} == {
        run: scores.value("P@5", run) for run in scores.run_names
    }


def test_curve_only_if_requested(client: TestClient) -> None:
    assert fetch(client)["curve"] is None
    assert 'id="chart-curve"' not in client.get("/leaderboard").text
    page = client.get("/leaderboard?curve=RBP(p%3D0.5)").text
    assert 'id="chart-curve"' in page
    assert '<option value="RBP(p=0.5)" selected>RBP(p=0.5)</option>' in page


def test_of_many_runs_the_best_and_the_baseline_are_drawn() -> None:
    qrels = {topic: {"d": 1} for topic in TOPICS}
    runs = {f"run{i:02}": {topic: [*(f"x{n}" for n in range(i)), "d"] for topic in TOPICS} for i in range(12)}
    client = client_of(open_workspace(qrels, runs))
    data = fetch(client, measures="RR", baseline="run11", curve="R")
    drawn_runs = dict.fromkeys(row["run"] for row in data["points"])
    assert list(drawn_runs) == list(runs)
    assert [row["value"] for row in data["points"] if row["run"] == "run01"][:3] == [0, 1, 1]
    page = client.get("/leaderboard", params={"measures": "RR", "baseline": "run11", "curve": "R"}).text
    assert '"domain":["run00","run11"]' in page  # the best and the baseline alone have colors


# --- what can be taken along ------------------------------------------------------------------------


def test_tables_are_those_of_the_comparison(client: TestClient) -> None:
    query = {"measures": "AP,P@5", "baseline": "rrf", "correction": "bonferroni"}
    scores = judged.evaluate(shipped.qrels(), shipped.runs(), ["AP", "P@5"])
    expected = scores.compare(baseline="rrf", correction="bonferroni")
    answer = client.get("/leaderboard.pairs.csv", params=query)
    assert answer.text == f"{expected.csv()}\n"
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''pairs.csv"
    rows = list(csv.DictReader(io.StringIO(client.get("/leaderboard.results.csv", params=query).text)))
    estimates = {(row.run, row.measure): row for row in scores.estimates()}
    assert len(rows) == len(estimates)
    for row in rows:
        estimate = estimates[row["run"], row["measure"]]
        assert (float(row["value"]), float(row["ci_low"]), float(row["ci_high"])) == (estimate.value, *estimate.ci)
    assert client.get("/leaderboard.board.tex", params=query).text.startswith(r"\begin{tabular}")
    assert client.get("/leaderboard.board.pdf", params=query).status_code == 404


def test_rel_applies_to_measures_without_their_own(client: TestClient) -> None:
    query = {"measures": "AP,RR(rel=3),nDCG@10", "rel": 2}
    data = client.get("/api/v1/leaderboard", params=query).json()
    expected = judged.evaluate(shipped.qrels(), shipped.runs(), ["AP(rel=2)", "RR(rel=3)", "nDCG@10"])
    rows = {row["run"]: row for row in data["board"]}
    for row in expected.estimates(ci="none"):
        assert rows[row.run][row.measure] == row.value
    page = client.get("/leaderboard", params=query).text
    assert 'name="measures" value="AP" checked' in page  # so that another level can be chosen
    assert 'href="/api/v1/leaderboard?rel=2&amp;measures=AP%2CRR%28rel%3D3%29%2CnDCG%4010"' in page
    assert 'href="/matrix?y=AP&amp;rel=2"' in page


def test_the_address_keeps_the_choice(client: TestClient) -> None:
    page = client.get(
        "/leaderboard",
        params={"measures": ["AP", "P@5,10"], "baseline": "rrf", "where": "words > 7", "details": "difference"},
    ).text
    state = "measures=AP%2CP%405%2CP%4010&amp;baseline=rrf&amp;where=words+%3E+7&amp;details=difference"
    assert f'href="/api/v1/leaderboard?{state}"' in page
    assert f'<a href="?{state}&amp;sort=-P%4010"><bdi>P@10' in page
    assert (
        'href="?measures=AP%2CP%405%2CP%4010&amp;baseline=rrf&amp;where=words+%3E+7">Hide intervals and differences</a>'
        in page
    )
    assert 'href="/compare?measure=AP&amp;first=rrf&amp;where=words+%3E+7&amp;second=bm25"' in page
    assert 'href="/topics?measure=AP&amp;runs=rrf&amp;where=words+%3E+7&amp;runs=bm25"' in page
    assert 'href="/learn/P"' in page


def test_json_has_no_nan(small: TestClient) -> None:
    text = small.get("/api/v1/leaderboard", params={"measures": "RR,NumRet", "where": "words == 0", "curve": "P"}).text
    assert "NaN" not in text
    assert "Infinity" not in text
    assert not math.isnan(fetch(small, measures="RR")["board"][0]["judged"])


def test_warnings_of_many_runs_are_merged_by_kind() -> None:
    runs = {f"run{i:02}": {topic: ["d", "n"] for topic in TOPICS[1 + i % 3 :]} for i in range(30)}
    page = client_of(open_workspace(QRELS, runs))
    data = fetch(page, baseline="run00")
    assert len({note["rule"] for note in data["notes"]}) < 8
    text = page.get("/leaderboard", params={"baseline": "run00"}).text
    assert text.count("no documents returned for") == 1
    assert "30 runs, worst run02, run05, run08" in text
    for path in ("/", "/slices", "/matrix"):
        assert page.get(path).text.count("no documents returned for") <= 2
