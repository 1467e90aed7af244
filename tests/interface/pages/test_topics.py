"""List of topics, and page of one topic: numbers match hand calculations and the public functions."""

from __future__ import annotations

import html
import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from judged import Run, compare_tools, judge
from judged.data import sample as shipped
from judged.diagnosis.diff import diff
from judged.diagnosis.stages import stages
from judged.interface.pages.pagination import natural_key
from judged.interface.pages.topics.topic_list import similar_ids
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.results.headline import MAX_WORDS
from judged.results.html import minus
from judged.scoring.explanation import explain_list
from judged.scoring.uncertainty.ties import tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range
from judged.web.app import make_app

HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
QRELS = {"q": {"a": 2, "b": 1, "c": 0, "m": 1}, "none": {"x": 0}, "z": {"a": 1}}
A = {"q": {"a": 3.0, "x": 2.0, "b": 1.0}, "z": {"a": 1.0}}
B = {"q": {"b": 3.0, "a": 2.0, "c": 1.0}, "none": {"x": 1.0}}


def client(workspace: Workspace) -> TestClient:
    return TestClient(make_app(workspace), base_url="http://127.0.0.1")


@pytest.fixture(scope="module")
def of_sample(sample: Workspace) -> TestClient:
    return client(sample)


@pytest.fixture(scope="module")
def tiny() -> TestClient:
    return client(open_workspace(QRELS, {"A": A, "B": B}, queries={"q": "find a", "z": "the last", "none": "x"}))


def get(http: TestClient, path: str, **parameters: Any) -> Any:
    answer = http.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(http: TestClient, path: str, **parameters: Any) -> tuple[int, str, str]:
    answer = http.get(path, params=parameters)
    data = answer.json()
    return answer.status_code, data["problem"], data["fix"]


def documents_of(data: dict[str, Any], run: str) -> list[dict[str, Any]]:
    """Return the documents of one list, with their rank in the other one."""
    others = [f"rank:{other}" for other in data["runs"] if other != run]
    mine = [row for row in data["documents"] if 0 < (row[f"position:{run}"] or 0) <= data["cutoff"]]
    return [
        row | {"rank": row[f"rank:{run}"], "tied": row[f"tied:{run}"], "there": row[others[0]] if others else None}
        for row in sorted(mine, key=lambda row: row[f"position:{run}"])
    ]


def missed_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the relevant documents that no list shows."""
    return [row for row in data["documents"] if not row["shown"]]


def by_measure(data: dict[str, Any], row: int = 0) -> list[float | None]:
    """Return the scores of the lists by the measure in a row of the table of scores."""
    return [data["scores"][row][f"run:{run}"] for run in data["runs"]]


def scores_of(data: dict[str, Any]) -> list[list[float | None]]:
    """Return the scores of each topic of a list, in the order of its runs."""
    return [[row[f"run:{run}"] for run in data["runs"]] for row in data["topics"]]


# The list


def test_the_list_has_the_scores_of_every_run(of_sample: TestClient, sample: Workspace) -> None:
    data = get(of_sample, "/api/v1/topics")
    scores = sample.scores(["nDCG@10"], sample.ranked_run_names())
    assert data["runs"] == list(sample.ranked_run_names())  # the best first
    assert [row["query_id"] for row in data["topics"]] == list(scores.query_ids)
    assert scores_of(data) == scores.values[:, 0, :].T.tolist()
    assert [row["mean"] for row in data["topics"]] == pytest.approx(scores.values[:, 0, :].mean(axis=0).tolist())
    assert [row["spread"] for row in data["topics"]] == np.ptp(scores.values[:, 0, :], axis=0).tolist()
    assert (data["total"], data["all_topics"], data["pages"]) == (48, 48, 1)


def test_the_list_by_hand(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topics", measure="RR@10")
    assert [(row["query_id"], row["query"], row["relevant"], row["judged"]) for row in data["topics"]] == [
        ("none", "x", 0, 1),
        ("q", "find a", 3, 4),
        ("z", "the last", 1, 1),
    ]
    assert scores_of(data) == [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    assert [(row["mean"], row["spread"]) for row in data["topics"]] == [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0)]
    graded = get(tiny, "/api/v1/topics", measure="RR(rel=2)@10")
    assert [row["relevant"] for row in graded["topics"]] == [0, 1, 0]
    assert (data["relevant_from"], graded["relevant_from"]) == (1.0, 2.0)
    assert get(tiny, "/api/v1/topics")["relevant_from"] is None  # nDCG counts any grade above 0


@pytest.mark.parametrize(
    ("parameters", "status", "word", "value"),
    [
        ({"measure": "RR@10"}, "info", "1 topic with score 0", 1),  # means 0, 0.5, 1
        ({"measure": "RR@10", "runs": ["B"]}, "info", "2 topics with score 0", 2),
        ({"measure": "RR@10", "q": "a"}, "info", "hardest topic", 0.5),  # find a, the last: 1, 0.5
        ({"measure": "Fallout(n=9)@1"}, "info", "hardest topic", 1 / 18),  # of B on `none`: 1 of 9; A returned nothing
        ({"measure": "Judged@10", "q": "find"}, "info", "lowest topic", 5 / 6),  # A: 2 of 3 judged
        ({"measure": "nDCG(undefined=skip)@10", "q": "x"}, "unknown", "no scores", None),
    ],
)
def test_status_of_the_headline(
    tiny: TestClient, parameters: dict[str, Any], status: str, word: str, value: float | None
) -> None:
    data = get(tiny, "/api/v1/topics", **parameters)
    headline, means = data["headline"], [row["mean"] for row in data["topics"] if row["mean"] is not None]
    assert (headline["status"], headline["word"]) == (status, word)
    assert headline["value"] == (value if value is None else pytest.approx(value))
    assert headline["value"] in {None, sum(mean == 0 for mean in means), min(means, default=0), max(means, default=0)}
    assert len(headline["sentence"].split()) <= MAX_WORDS
    worst_first = sorted(means, reverse="Fallout" in parameters["measure"])
    assert [row["mean"] for row in data["hardest"]] == worst_first


def test_without_runs_topics_have_no_headline() -> None:
    http = client(open_workspace(QRELS, {}))
    assert "headline" not in get(http, "/api/v1/topics")
    assert "headline" not in get(http, "/api/v1/topic", topic="q")


@pytest.mark.parametrize(
    ("parameters", "status", "word", "value"),
    [
        ({"topic": "z", "first": "A", "second": "B"}, "info", "lower", -1.0),
        ({"topic": "z", "first": "B", "second": "A"}, "info", "higher", 1.0),
        ({"topic": "q", "first": "A", "second": "B"}, "info", "equal", 0.0),
        ({"topic": "z", "first": "A", "second": ""}, "info", "score", 1.0),
        (
            {"topic": "none", "first": "B", "second": "A", "measure": "nDCG(undefined=skip)"},
            "unknown",
            "no score",
            None,
        ),
    ],
)
def test_headline_of_one_topic(
    tiny: TestClient, parameters: dict[str, Any], status: str, word: str, value: float | None
) -> None:
    data = get(tiny, "/api/v1/topic", **({"measure": "RR@10"} | parameters))
    headline = data["headline"]
    assert (headline["status"], headline["word"], headline["value"]) == (status, word, value)
    assert len(headline["sentence"].split()) <= MAX_WORDS
    if len(data["runs"]) == 2:
        assert headline["value"] == data["scores"][0]["difference"]


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("query_id", "none q z"),
        ("-query_id", "z q none"),
        ("query", "q z none"),  # find a, the last, x
        ("relevant", "none z q"),
        ("-judged", "q none z"),
        ("mean", "none z q"),
        ("-spread", "z none q"),
        ("run:B", "none z q"),
        ("-run:A", "q z none"),
    ],
)
def test_orders(tiny: TestClient, sort: str, ids: str) -> None:
    data = get(tiny, "/api/v1/topics", measure="RR@10", sort=sort)
    assert [row["query_id"] for row in data["topics"]] == ids.split()


def test_the_drawn_range_of_runs_sorts_by_the_spread(tiny: TestClient) -> None:
    head = '<th scope="col" class="label"{}><a href="?sort={}"><bdi>Range of runs'
    assert head.format(' aria-sort="descending"', "spread") in tiny.get("/topics?sort=-spread").text
    assert head.format("", "-spread") in tiny.get("/topics").text


def test_topics_without_a_score_are_last_in_both_directions() -> None:
    http = client(open_workspace(QRELS, {"A": A}))
    for sort in ("mean", "-mean", "run:A", "-run:A"):
        data = get(http, "/api/v1/topics", measure="nDCG(undefined=skip)@10", sort=sort)
        assert data["topics"][-1]["query_id"] == "none"
        assert scores_of(data)[-1] == [None]
        assert data["topics"][-1]["mean"] is None


def test_only_the_chosen_runs_count(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topics", measure="RR@10", runs=["B"], sort="-mean")
    assert (data["runs"], data["other_runs"]) == (["B"], ["A"])
    assert [(row["query_id"], row["mean"]) for row in data["topics"]] == [("q", 1.0), ("none", 0.0), ("z", 0.0)]


def test_search_and_filter(of_sample: TestClient, sample: Workspace) -> None:
    data = get(of_sample, "/api/v1/topics", q="LIST of", sort="mean")
    expected = [
        topic for topic in sample.query_ids if all(word in sample.query(topic).lower() for word in ("list", "of"))
    ]
    assert sorted(row["query_id"] for row in data["topics"]) == expected
    assert 1 < len(expected) < 10
    assert data["total"] == len(expected)
    where = "query_class == 'known-item' and relevant < 4"
    filtered = get(of_sample, "/api/v1/topics", where=where)
    mask = sample.mask(where)
    assert [row["query_id"] for row in filtered["topics"]] == list(itertools.compress(sample.query_ids, mask.tolist()))
    assert get(of_sample, "/api/v1/topics", q="t07")["topics"][0]["query_id"] == "t07"


def test_pages_of_a_long_list() -> None:
    ids = [f"q{number}" for number in range(1, 121)]
    http = client(open_workspace({topic: {"d": 1} for topic in ids}, {"A": {"q1": {"d": 1.0}}}))
    pages = [get(http, "/api/v1/topics", page=page) for page in (1, 2, 3, 9)]
    assert [row["query_id"] for page in pages[:3] for row in page["topics"]] == ids  # q9 before q10
    assert [(page["page"], page["pages"], page["total"]) for page in pages] == [(page, 3, 120) for page in (1, 2, 3, 3)]
    page_text = http.get("/topics?page=2&sort=-query_id").text
    assert "51–100 of 120 topics" in page_text
    assert "/api/v1/topics?sort=-query_id&amp;page=2" in page_text


def test_more_runs_than_columns() -> None:
    runs = {f"r{number}": A for number in range(15)}
    http = client(open_workspace(QRELS, runs))
    data = get(http, "/api/v1/topics")
    assert (data["runs"], data["other_runs"]) == ([f"r{i}" for i in range(12)], ["r12", "r13", "r14"])
    assert len(get(http, "/api/v1/topic", topic="q")["all_runs"]) == 15


def test_a_measure_that_is_better_low_has_its_hardest_topics_first(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topics", measure="NumNonrelRet", sort="-mean")
    assert data["lower_is_better"] is True
    assert [(row["query_id"], scores) for row, scores in zip(data["topics"], scores_of(data), strict=True)] == [
        ("none", [0.0, 1.0]),
        ("q", [0.0, 1.0]),  # x is unjudged
        ("z", [0.0, 0.0]),
    ]
    page_text = html.unescape(tiny.get("/topics?measure=NumNonrelRet").text)
    assert '<a href="/topics?measure=NumNonrelRet&sort=-mean">lowest score first</a>' in page_text
    topic = get(tiny, "/api/v1/topic", topic="none", measure="NumNonrelRet")
    assert (topic["scores"][0]["difference"], topic["scores"][0]["better"]) == (1.0, "A")
    assert [row["run"] for row in topic["all_runs"]] == ["A", "B"]


@pytest.mark.parametrize(
    ("parameters", "status", "expected"),
    [
        ({"sort": "size"}, 400, "there is no column 'size'"),
        ({"sort": "run:C"}, 400, "there is no column 'run:C'"),
        ({"runs": "C"}, 400, "no run 'C' is open"),
        ({"measure": "nDGC@10"}, 400, "there is no measure 'nDGC'"),
        ({"measure": ""}, 400, ""),
        ({"where": "kind = 1"}, 400, "'kind = 1' is not an expression"),
        ({"where": "kind == 1"}, 400, "kind"),
        ({"page": "-1"}, 422, "page"),
        ({"page": "x"}, 422, "page"),
        ({"q": "x" * 600}, 422, "q"),
    ],
)
def test_invalid_list_parameters(tiny: TestClient, parameters: dict[str, str], status: int, expected: str) -> None:
    code, problem, _ = refused(tiny, "/api/v1/topics", **parameters)
    assert code == status
    assert expected in problem
    assert tiny.get("/topics", params=parameters).status_code == status


def test_no_topic_holds_the_words(tiny: TestClient) -> None:
    assert get(tiny, "/api/v1/topics", q="zebra")["topics"] == []
    page_text = tiny.get("/topics?q=zebra&sort=mean").text
    assert "None of 3 topics contains zebra in its ID or query." in page_text


# One topic


def test_one_topic_by_hand(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topic", topic="q")
    gain_b = 1 / math.log2(3)
    ideal = 2 + gain_b + 1 / 2
    first, second = (2 + 1 / 2) / ideal, (1 + 2 / math.log2(3)) / ideal
    assert (data["judged"], data["relevant"]) == (4, 3)
    assert [(row["grade"], row["state"], row["documents"]) for row in data["grades"]] == [
        (2.0, "relevant", 1),
        (1.0, "relevant", 2),
        (0.0, "not relevant", 1),
    ]
    assert by_measure(data) == pytest.approx([first, second])
    assert data["scores"][0]["difference"] == pytest.approx(second - first)
    assert data["scores"][0]["better"] == "A"
    left = next(row for row in data["all_runs"] if row["run"] == "A")
    assert [
        (row["doc_id"], row["rank"], row["state"], row["there"], row["moved"]) for row in documents_of(data, "A")
    ] == [
        ("a", 1, "relevant", 2, "down 1"),
        ("x", 2, "unjudged", None, "gone"),
        ("b", 3, "relevant", 1, "up 2"),
    ]
    assert [
        (row["doc_id"], row["rank"], row["state"], row["there"], row["moved"]) for row in documents_of(data, "B")
    ] == [
        ("b", 1, "relevant", 3, "up 2"),
        ("a", 2, "relevant", 1, "down 1"),
        ("c", 3, "not relevant", None, "new"),
    ]
    assert (left["returned"], left["unjudged"]) == (3, 1)
    assert documents_of(data, "B")[0]["change"] == pytest.approx((1 - 1 / 2) / ideal)
    assert [(row["doc_id"], row["grade"], row["position:A"], row["position:B"]) for row in missed_of(data)] == [
        ("m", 1.0, None, None)
    ]
    reachable = (2 + gain_b) / ideal
    loss = data["losses"][0]
    names = ("score", "attainable_candidates", "best", "lost_candidates", "lost_ranking")
    lost = [first, reachable, 1.0, 1 - reachable, reachable - first]
    assert [loss[name] for name in names] == pytest.approx(lost)
    assert (loss["retrieved"], loss["relevant"]) == (2, 3)
    ties, unjudged = data["score_ranges"][:2]
    assert (ties["low"], ties["high"], ties["sentence"]) == (
        ties["score"],
        ties["score"],
        "The score does not depend on the order of documents with equal scores.",
    )
    best = (2 + 2 * gain_b + 1 / 2) / (2 + 2 * gain_b + 1 / 2 + 1 / math.log2(5))  # x has grade 2
    assert (unjudged["low"], unjudged["high"]) == pytest.approx((first, best))
    by = "depending on the grades of its 1 unjudged document; both limits are possible scores."
    assert unjudged["sentence"] == f"The score is between {first:.4f} and {best:.4f}, {by}"


def test_tied_documents_are_named_and_bounded() -> None:
    http = client(open_workspace({"q": {"a": 1, "b": 0}}, {"A": {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}}))
    data = get(http, "/api/v1/topic", topic="q", measure="RR")
    assert [(row["doc_id"], row["tied"]) for row in documents_of(data, data["runs"][0])] == [
        ("b", True),
        ("a", True),
        ("c", False),
    ]
    assert (data["score_ranges"][0]["low"], data["score_ranges"][0]["high"]) == (0.5, 1.0)
    assert data["score_ranges"][0]["sentence"].startswith(
        "The score is between 0.5000 and 1.0000, depending on the order of"
    )


@pytest.mark.parametrize(
    ("measure", "query_id"),
    [
        ("nDCG@10", "t05"),
        ("AP", "t12"),
        ("RR@10", "t44"),
        ("ERR(max=3)", "t12"),
        ("Bpref", "t05"),
        ("RBP(p=0.8)", "t09"),
    ],
)
def test_one_topic_by_the_public_functions(
    of_sample: TestClient, sample: Workspace, measure: str, query_id: str
) -> None:
    data = get(of_sample, "/api/v1/topic", topic=query_id, first="bm25", second="tfidf", measure=measure)
    qrels, runs = shipped.qrels(), {run.name: run for run in shipped.runs()}
    judged_lists = [judge(qrels, runs[name]).only(query_id) for name in ("bm25", "tfidf")]
    topic_index = sample.query_ids.index(query_id)
    scores = sample.scores([measure])
    assert by_measure(data) == [
        float(scores.values[scores.run_names.index(judged_list.run.name), 0, topic_index])
        for judged_list in judged_lists
    ]
    assert {row["run"]: row["score"] for row in data["all_runs"]} == dict(
        zip(scores.run_names, scores.values[:, 0, topic_index].tolist(), strict=True)
    )
    assert [row["score"] for row in data["all_runs"]] == sorted(scores.values[:, 0, topic_index].tolist(), reverse=True)
    for place, judged_list in enumerate(judged_lists):
        reaches = data["score_ranges"][2 * place : 2 * place + 2]
        for reach, expected_range in zip(
            reaches, (tie_range(judged_list, measure), unjudged_range(judged_list, measure)), strict=True
        ):
            assert (reach["low"], reach["high"], reach["kind"]) == (
                expected_range.low[0],
                expected_range.high[0],
                expected_range.kind[0],
            )
        assert data["explanations"][place]["score"] == explain_list(judged_list, measure, query_id).score
    topic_diff = diff(qrels, runs["bm25"], runs["tfidf"], topic=query_id, measure=measure, cutoff=10).topics[0]
    assert data["sentences"] == [topic_diff.sentence]
    for which in (0, 1):
        side = topic_diff.ranked_rows(which)
        documents = documents_of(data, data["runs"][which])
        assert [row["doc_id"] for row in documents] == [row.doc_id for row in side]
        assert [row["grade"] for row in documents] == [row.grade for row in side]
        assert [row["moved"] for row in documents] == [row.movement for row in side]
        assert [row["change"] for row in documents] == pytest.approx([row.changes[0] for row in side])
        assert [row["there"] for row in documents] == [(row.first_rank if which else row.second_rank) for row in side]


def test_the_loss_is_that_of_stages(of_sample: TestClient) -> None:
    data = get(of_sample, "/api/v1/topic", topic="t12", first="bm25_nostem", second="tfidf", measure="AP")
    for loss, name in zip(data["losses"], ("bm25_nostem", "tfidf"), strict=True):
        run = next(run for run in shipped.runs() if run.name == name)
        split = stages(shipped.qrels(), run, measure="AP", cutoff=100)
        topic_index = split.query_ids.index("t12")
        assert [loss["lost_candidates"], loss["lost_ranking"]] == split.trace.parts[:, topic_index].tolist()
        assert loss["attainable_candidates"] == split.trace.attainable[topic_index]
        assert (loss["retrieved"], loss["relevant"]) == (
            split.trace.num_retrieved[topic_index],
            split.trace.relevant[topic_index],
        )
        assert loss["verdict"] == split.verdicts[topic_index]
    refused_by_stages = get(of_sample, "/api/v1/topic", topic="t12", measure="SetP")["losses"][0]
    assert refused_by_stages["score"] is None
    assert "cannot be split into stages" in refused_by_stages["sentence"]


def test_what_other_tools_report(of_sample: TestClient) -> None:
    parameters = {"topic": "t12", "first": "bm25", "second": "tfidf", "measure": "nDCG@10"}
    assert "tools" not in get(of_sample, "/api/v1/topic", **parameters)
    data = get(of_sample, "/api/v1/topic", **parameters, tools=True)["tools"]
    for name in ("bm25", "tfidf"):
        run = next(run for run in shipped.runs() if run.name == name)
        comparison = compare_tools(shipped.qrels(), run, "t12", "nDCG@10")
        columns = ("tool", "tool_measure", "measure", "printed", "reason")
        lines = [tuple(row[column] for column in columns) for row in data if row["run"] == name]
        assert lines == [row for row in comparison.table().grid().rows[1:] if row[1]]
        assert len(lines) > 3


def test_the_scale_of_grades_is_that_of_all_judgments() -> None:
    """An unjudged document may have the highest grade of the qrels, though this topic has none of it."""
    qrels = {"q": {"a": 1}, "other": {"b": 4}}
    run = {"q": {"x": 2.0, "a": 1.0}}
    data = get(client(open_workspace(qrels, {"A": run})), "/api/v1/topic", topic="q", measure="DCG@2", tools=True)
    grade_range = unjudged_range(judge(qrels, run).only("q"), "DCG@2")
    assert grade_range.high[0] == 4 + 1 / math.log2(3)
    assert data["score_ranges"][1]["high"] == grade_range.high[0]
    comparison = compare_tools(qrels, run, "q", "DCG@2").tool_scores
    assert [row["printed"] for row in data["tools"]] == [
        opinion.printed for opinion in comparison if opinion.tool_measure
    ]


def test_deeper_lists(of_sample: TestClient) -> None:
    shallow, deep = (
        get(of_sample, "/api/v1/topic", topic="t12", first="bm25", second="bm25_nostem", cutoff=cutoff)
        for cutoff in (10, 50)
    )
    assert [len(documents_of(shallow, run)) for run in shallow["runs"]] == [10, 10]
    assert [len(documents_of(deep, run)) for run in deep["runs"]] == [50, 50]
    assert any(row["there"] and row["there"] > 10 for row in documents_of(shallow, "bm25"))
    page_text = html.unescape(of_sample.get("/topic?topic=t12&first=bm25&second=bm25_nostem").text)
    for row in missed_of(shallow):
        for run in shallow["runs"]:
            rank = row[f"rank:{run}"]
            assert rank is None or rank > 10
            assert (f"rank {rank}" if rank else "not returned") in page_text


def test_next_topic_follows_the_order_of_the_list(of_sample: TestClient) -> None:
    parameters = {
        "sort": "-spread",
        "where": "relevant in (4, 5, 6, 7)",
        "q": "a",
        "measure": "AP",
        "runs": ["bm25", "tfidf"],
    }
    ids = [row["query_id"] for row in get(of_sample, "/api/v1/topics", **parameters)["topics"]]
    walked, here = [], ids[0]
    while here:
        data = get(of_sample, "/api/v1/topic", topic=here, **parameters)
        assert (data["position"], data["total"]) == (len(walked) + 1, len(ids))
        assert data["previous"] == (walked[-1] if walked else None)
        walked.append(here)
        here = data["next"]
    assert walked == ids
    page_text = html.unescape(of_sample.get("/topic", params={"topic": ids[1], **parameters}).text)
    query_string = "measure=AP&sort=-spread&q=a&where=relevant+in+%284%2C+5%2C+6%2C+7%29&runs=bm25&runs=tfidf"
    assert f'rel="next" href="/topic?{query_string}&topic={ids[2]}"' in page_text
    assert f'<a href="/topics?{query_string}">All topics</a>' in page_text
    outside = next(topic for topic in (f"t{number:02}" for number in range(1, 49)) if topic not in ids)
    elsewhere = get(of_sample, "/api/v1/topic", topic=outside, **parameters)
    assert (elsewhere["position"], elsewhere["previous"], elsewhere["next"]) == (0, None, None)


def test_which_runs_are_shown(tiny: TestClient) -> None:
    def fetch_runs(**parameters: str) -> list[str]:
        return get(tiny, "/api/v1/topic", topic="q", **parameters)["runs"]

    assert fetch_runs() == ["A", "B"]
    assert fetch_runs(first="B") == ["B"]
    assert fetch_runs(first="B", second="A") == ["B", "A"]
    assert fetch_runs(second="") == ["A"]
    assert fetch_runs(second="A") == ["B", "A"]
    assert fetch_runs(first="B", second="B") == ["B"]
    assert refused(tiny, "/api/v1/topic", topic="q", first="C") == (400, "no run 'C' is open", "use one of A, B")


def test_a_single_list(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topic", topic="q", first="B")
    assert "sentences" not in data
    assert [(row["there"], row["moved"]) for row in documents_of(data, data["runs"][0])] == [(None, "")] * 3
    assert all(row["run:B"] is not None and "run:A" not in row for row in data["scores"])
    assert "that the list does not show" in tiny.get("/topic?topic=q&first=B").text


def test_a_topic_without_relevant_documents(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topic", topic="none")
    assert (data["relevant"], missed_of(data)) == (0, [])
    assert data["losses"][1]["verdict"] == "no relevant documents"
    assert "No document of this topic is judged relevant" in tiny.get("/topic?topic=none").text


def test_a_run_without_the_topic(tiny: TestClient) -> None:
    data = get(tiny, "/api/v1/topic", topic="z")
    assert data["notes"][0]["text"] == "B returned nothing for this topic, and is scored as an empty list."
    assert [row["returned"] for row in sorted(data["all_runs"], key=lambda row: row["run"])] == [1, 0]
    assert by_measure(data) == [1.0, 0.0]
    assert data["losses"][1]["sentence"] == "B returned nothing for this topic, so the whole score is lost."
    assert [row["run"] for row in data["score_ranges"]] == ["A", "A"]
    assert "B returned nothing for this topic." in tiny.get("/topic?topic=z").text


def test_a_run_that_is_a_set() -> None:
    rows = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "x"]})
    http = client(open_workspace(QRELS, [Run.of(rows, name="S"), Run.of(A, name="A")]))
    listed = get(http, "/api/v1/topics")
    assert scores_of(listed)[1][0] is None
    assert "the run S has no scores" in listed["notes"][0]["text"]
    data = get(http, "/api/v1/topic", topic="q")
    assert [(row["doc_id"], row["rank"]) for row in documents_of(data, data["runs"][0])] == [("x", None), ("a", None)]
    assert [row["there"] for row in documents_of(data, data["runs"][1])] == [None, None, None]
    assert by_measure(data)[0] is None
    assert "requires a ranking" in data["explanations"][0]["problem"]
    of_set = get(http, "/api/v1/topic", topic="q", measure="SetP", first="S", second="A")
    assert by_measure(of_set) == [0.5, pytest.approx(2 / 3)]
    assert of_set["score_ranges"][0]["sentence"] == "The run is an unranked set."
    assert http.get("/topic?topic=q").status_code == 200


def test_no_run_at_all() -> None:
    http = client(open_workspace(QRELS, []))
    assert [row["relevant"] for row in get(http, "/api/v1/topics", sort="-relevant")["topics"]] == [3, 1, 0]
    data = get(http, "/api/v1/topic", topic="q")
    assert (data["runs"], data["all_runs"]) == ([], [])
    assert [(row["doc_id"], row["grade"]) for row in missed_of(data)] == [("a", 2.0), ("b", 1.0), ("m", 1.0)]
    page_text = http.get("/topic?topic=q").text
    assert "No run is open" in page_text
    assert "3 relevant documents" in page_text
    assert "No run is open" in http.get("/topics").text
    assert refused(http, "/api/v1/topic", topic="q", first="A")[1] == "no run 'A' is open"


def test_a_measure_that_looks_at_all_topics() -> None:
    """Document b is judged for q2: on q1 alone it would be a hole."""
    http = client(open_workspace({"q1": {"a": 1}, "q2": {"b": 1}}, {"A": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}}))
    data = get(http, "/api/v1/topic", topic="q1", measure="Hole@3")
    assert by_measure(data) == [pytest.approx(1 / 3)]
    assert data["score_ranges"][1]["sentence"].startswith("Hole@3 cannot be computed for a single topic")
    assert "depends on the other topics" in data["explanations"][0]["problem"]
    assert refused(http, "/api/v1/topic/explain", topic="q1", run="A", measure="Hole@3")[0] == 400


def test_topics_that_do_not_exist(of_sample: TestClient) -> None:
    code, problem, fix = refused(of_sample, "/api/v1/topic", topic="t4")
    assert (code, problem) == (400, "the judgments have no topic 't4'")
    assert fix.startswith("use a similar topic: t04, ")
    assert "t04" in of_sample.get("/topic?topic=t4").text
    assert refused(of_sample, "/api/v1/topic", topic="x" * 5000)[1] == f"the judgments have no topic '{'x' * 79}…'"
    assert refused(of_sample, "/api/v1/topic")[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", cutoff=0)[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", cutoff=101)[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", explain="nope")[1] == "there is no measure 'nope'"


def test_ids_near_one() -> None:
    assert similar_ids(("q1", "q2", "q3"), "q2 ") == ["q2", "q3", "q1"]
    assert sorted(["b10", "b9", "a", "b09"], key=natural_key) == ["a", "b9", "b09", "b10"]


# Explanations


def test_explain_any_measure(of_sample: TestClient) -> None:
    run = next(run for run in shipped.runs() if run.name == "bm25")
    expected = explain_list(judge(shipped.qrels(), run), "AP", "t12")
    data = get(of_sample, "/api/v1/topic/explain", topic="t12", run="bm25", measure="AP")
    assert data == expected.to_dict()
    of_page = get(of_sample, "/api/v1/topic", topic="t12", first="bm25", explain="AP")["explanations"][0]
    assert of_page == {**expected.to_dict(), "problem": ""}
    page_text = of_sample.get("/topic?topic=t12&first=bm25&explain=AP").text
    assert "<li>AP = sum of precision / R = 2.7500 / 3 = 0.9167</li>" in page_text
    assert '<td class="label"><bdi>inspect.getdoc</bdi></td><td>1</td><td>2</td><td>1</td><td>2</td>' in page_text


def test_long_explanations_merge_ranks_without_effect() -> None:
    qrels = {"q": {f"d{i:03}": 1 for i in range(150)}}
    run = {"q": {f"d{i:03}": 1000.0 - i for i in range(150)} | {f"u{i}": 999.5 - i / 100 for i in range(3)}}
    http = client(open_workspace(qrels, {"A": run}))
    assert len(get(http, "/api/v1/topic", topic="q", measure="AP")["explanations"][0]["sheets"][0]["rows"]) == 153
    page_text = http.get("/topic?topic=q&measure=AP").text
    assert '><bdi>2-4</bdi></th><td class="label"><bdi>(3 unjudged documents)</bdi></td>' in page_text


# Documents and hostile texts


@pytest.fixture(scope="module")
def hostile() -> TestClient:
    qrels = {"a/b c?d&é#": {"d/1 &<b>": 2, HOSTILE: 1, "gone": 1}, "L" * 3000: {"x": 1}, HOSTILE: {"x": 1}}
    first = {"a/b c?d&é#": {HOSTILE: 3.0, "d/1 &<b>": 2.0, "u": 1.0}, "L" * 3000: {"x": 1.0}, HOSTILE: {"x": 1.0}}
    second = {"a/b c?d&é#": {"u": 2.0, "d/1 &<b>": 1.0}}
    docs = {HOSTILE: {"title": HOSTILE, "text": HOSTILE}, "d/1 &<b>": "é" * 100_000}
    queries = {"a/b c?d&é#": HOSTILE, "L" * 3000: "word " * 20_000}
    attributes = {"a/b c?d&é#": {HOSTILE[:20]: HOSTILE}}
    return client(
        open_workspace(
            qrels, {f"A {HOSTILE}": first, "B/b": second}, queries=queries, texts=docs, attributes=attributes
        )
    )


@pytest.mark.parametrize("query_id", ["a/b c?d&é#", "L" * 3000, HOSTILE])
def test_hostile_texts_are_texts(hostile: TestClient, query_id: str) -> None:
    for parameters in (
        {},
        {"tools": "true", "explain": "AP"},
        {"first": "B/b", "second": f"A {HOSTILE}", "cutoff": "100"},
    ):
        answer = hostile.get("/topic", params={"topic": query_id, **parameters})
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert "alert(2)</script>" not in answer.text
        assert html.escape(f"A {HOSTILE}").replace("&quot;", "&#34;") in answer.text
    listed = hostile.get("/topics", params={"sort": f"-run:A {HOSTILE}"})
    assert listed.status_code == 200
    assert "<img" not in listed.text


def test_list_links_open_their_topics(hostile: TestClient) -> None:
    page_text = hostile.get("/topics").text.partition('data-table="topics"')[2]
    links = [
        html.unescape(part.split('"')[0]) for part in page_text.split('<a href="')[1:] if part.startswith("/topic?")
    ]
    titles = [hostile.get(link.replace("/topic?", "/api/v1/topic?")).json()["query_id"] for link in links]
    assert titles == [HOSTILE, "L" * 3000, "a/b c?d&é#"]


def test_documents(hostile: TestClient) -> None:
    assert get(hostile, "/api/v1/document", doc_id=HOSTILE) == {
        "doc_id": HOSTILE,
        "title": HOSTILE,
        "text": HOSTILE,
        "characters": len(HOSTILE),
    }
    part = get(hostile, "/api/v1/document", doc_id="d/1 &<b>")
    assert (part["text"], part["characters"]) == ("é" * 4000, 100_000)
    assert len(get(hostile, "/api/v1/document", doc_id="d/1 &<b>", length=100_000)["text"]) == 100_000
    assert hostile.get("/api/v1/document", params={"doc_id": HOSTILE}).headers["content-type"] == "application/json"
    code, problem, fix = refused(hostile, "/api/v1/document", doc_id="u")
    assert (code, problem) == (400, "the document 'u' has no text")
    assert fix.startswith("use a document of the collection")
    assert refused(hostile, "/api/v1/document", doc_id=HOSTILE, length=0)[0] == 422


def test_no_documents_are_open(tiny: TestClient) -> None:
    assert refused(tiny, "/api/v1/document", doc_id="a")[:2] == (400, "no document texts are open")
    data = get(tiny, "/api/v1/topic", topic="q")
    assert data["notes"][0]["rule"] == "no-texts"
    assert not any(row["has_text"] for row in documents_of(data, data["runs"][0]))


# The page and its twin


def test_the_page_shows_the_data(of_sample: TestClient) -> None:
    parameters = {"topic": "t12", "first": "bm25", "second": "bm25_nostem", "explain": "AP", "tools": "true"}
    data = get(of_sample, "/api/v1/topic", **parameters)
    page_text = html.unescape(of_sample.get("/topic", params=parameters).text)
    texts = [data["query"], *data["sentences"], *(row["sentence"] for row in data["score_ranges"] + data["losses"])]
    texts += [step["numbers"] for row in data["explanations"] for step in row["steps"]]
    texts += [row["reason"] for row in data["tools"]]
    texts += [f"{row[name]:.4f}" for row in data["scores"] for name in ("run:bm25", "run:bm25_nostem")]
    texts += [f"grade {row['grade']:g}" for row in data["documents"] if row["grade"] is not None]
    assert [text for text in texts if text not in page_text and minus(text) not in page_text] == []
    assert 'href="/evaluator?run=bm25_nostem&topic=t12"' in page_text
    assert '<a href="#b-0" class="jump">rank 1 in bm25_nostem</a>' in page_text
    assert "/api/v1/topic?topic=t12&first=bm25&second=bm25_nostem&explain=AP&tools=true" in page_text
