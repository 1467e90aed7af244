"""The list of topics and the page of one: the same numbers as by hand and by the public functions."""

from __future__ import annotations

import html
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from judged import Run, compare_tools, judge
from judged.data import sample as shipped
from judged.diagnosis.diff import diff
from judged.diagnosis.stages import stages
from judged.interface.pages.pagination import natural
from judged.interface.pages.topics.topic_list import near_ids
from judged.interface.pages.workspace import Workspace, open_workspace
from judged.results.html import minus
from judged.scoring.explanation import explain_list
from judged.scoring.uncertainty.ties import tie_range
from judged.scoring.uncertainty.unjudged import unjudged_range
from judged.web.app import make_app

if TYPE_CHECKING:
    from collections.abc import Callable

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


def get(of: TestClient, path: str, **asked: Any) -> Any:
    answer = of.get(path, params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(of: TestClient, path: str, **asked: Any) -> tuple[int, str, str]:
    answer = of.get(path, params=asked)
    found = answer.json()
    return answer.status_code, found["problem"], found["fix"]


def documents_of(found: dict[str, Any], run: str) -> list[dict[str, Any]]:
    """Give the documents of one list, with where the other one has them."""
    others = [f"rank:{other}" for other in found["runs"] if other != run]
    mine = [row for row in found["documents"] if 0 < (row[f"place:{run}"] or 0) <= found["cutoff"]]
    return [
        row | {"rank": row[f"rank:{run}"], "tied": row[f"tied:{run}"], "there": row[others[0]] if others else None}
        for row in sorted(mine, key=lambda row: row[f"place:{run}"])
    ]


def missed_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the relevant documents that no list shows."""
    return [row for row in found["documents"] if not row["shown"]]


def by_measure(found: dict[str, Any], row: int = 0) -> list[float | None]:
    """Give the scores of the lists by the chosen measure, or one of the usual ones."""
    return [found["scores"][row][f"run:{run}"] for run in found["runs"]]


def scores_of(found: dict[str, Any]) -> list[list[float | None]]:
    """Give the scores of each topic of a list, in the order of its runs."""
    return [[row[f"run:{run}"] for run in found["runs"]] for row in found["topics"]]


# The list


def test_the_list_has_the_scores_of_every_run(of_sample: TestClient, sample: Workspace) -> None:
    found = get(of_sample, "/api/v1/topics")
    scores = sample.scores(["nDCG@10"], sample.ranked())
    assert found["runs"] == list(sample.ranked())  # the best first
    assert [one["query_id"] for one in found["topics"]] == list(scores.query_ids)
    assert scores_of(found) == scores.values[:, 0, :].T.tolist()
    assert [one["mean"] for one in found["topics"]] == pytest.approx(scores.values[:, 0, :].mean(axis=0).tolist())
    assert [one["spread"] for one in found["topics"]] == np.ptp(scores.values[:, 0, :], axis=0).tolist()
    assert (found["total"], found["of"], found["pages"]) == (48, 48, 1)


def test_the_list_by_hand(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topics", measure="RR@10")
    assert [(one["query_id"], one["query"], one["relevant"], one["judged"]) for one in found["topics"]] == [
        ("none", "x", 0, 1),
        ("q", "find a", 3, 4),
        ("z", "the last", 1, 1),
    ]
    assert scores_of(found) == [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]]
    assert [(one["mean"], one["spread"]) for one in found["topics"]] == [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0)]
    graded = get(tiny, "/api/v1/topics", measure="RR(rel=2)@10")
    assert [one["relevant"] for one in graded["topics"]] == [0, 1, 0]
    assert (found["relevant_from"], graded["relevant_from"]) == (1.0, 2.0)
    assert get(tiny, "/api/v1/topics")["relevant_from"] is None  # nDCG counts any grade above 0


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
    found = get(tiny, "/api/v1/topics", measure="RR@10", sort=sort)
    assert [one["query_id"] for one in found["topics"]] == ids.split()


def test_topics_without_a_score_come_last_either_way() -> None:
    of = client(open_workspace(QRELS, {"A": A}))
    for sort in ("mean", "-mean", "run:A", "-run:A"):
        found = get(of, "/api/v1/topics", measure="nDCG(undefined=skip)@10", sort=sort)
        assert found["topics"][-1]["query_id"] == "none"
        assert scores_of(found)[-1] == [None]
        assert found["topics"][-1]["mean"] is None


def test_only_the_chosen_runs_count(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topics", measure="RR@10", runs=["B"], sort="-mean")
    assert (found["runs"], found["other_runs"]) == (["B"], ["A"])
    assert [(one["query_id"], one["mean"]) for one in found["topics"]] == [("q", 1.0), ("none", 0.0), ("z", 0.0)]


def test_search_and_filter(of_sample: TestClient, sample: Workspace) -> None:
    found = get(of_sample, "/api/v1/topics", q="LIST of", sort="mean")
    wanted = [one for one in sample.query_ids if all(word in sample.query(one).lower() for word in ("list", "of"))]
    assert sorted(one["query_id"] for one in found["topics"]) == wanted
    assert 1 < len(wanted) < 10
    assert found["total"] == len(wanted)
    where = "query_class == 'known-item' and relevant < 4"
    kept = get(of_sample, "/api/v1/topics", where=where)
    mask = sample.mask(where)
    assert [one["query_id"] for one in kept["topics"]] == list(itertools.compress(sample.query_ids, mask.tolist()))
    assert get(of_sample, "/api/v1/topics", q="t07")["topics"][0]["query_id"] == "t07"


def test_pages_of_a_long_list() -> None:
    ids = [f"q{number}" for number in range(1, 121)]
    of = client(open_workspace({one: {"d": 1} for one in ids}, {"A": {"q1": {"d": 1.0}}}))
    pages = [get(of, "/api/v1/topics", page=page) for page in (1, 2, 3, 9)]
    assert [one["query_id"] for page in pages[:3] for one in page["topics"]] == ids  # q9 before q10
    assert [(page["page"], page["pages"], page["total"]) for page in pages] == [(page, 3, 120) for page in (1, 2, 3, 3)]
    shown = of.get("/topics?page=2&sort=-query_id").text
    assert "51–100 of 120 topics" in shown
    assert "/api/v1/topics?sort=-query_id&amp;page=2" in shown


def test_more_runs_than_columns() -> None:
    runs = {f"r{number}": A for number in range(15)}
    of = client(open_workspace(QRELS, runs))
    found = get(of, "/api/v1/topics")
    assert (found["runs"], found["other_runs"]) == ([f"r{at}" for at in range(12)], ["r12", "r13", "r14"])
    assert len(get(of, "/api/v1/topic", topic="q")["all_runs"]) == 15


def test_a_measure_that_is_better_low_has_its_hardest_topics_first(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topics", measure="NumNonrelRet", sort="-mean")
    assert found["lower_is_better"] is True
    assert [(row["query_id"], scores) for row, scores in zip(found["topics"], scores_of(found), strict=True)] == [
        ("none", [0.0, 1.0]),
        ("q", [0.0, 1.0]),  # x is unjudged
        ("z", [0.0, 0.0]),
    ]
    shown = html.unescape(tiny.get("/topics?measure=NumNonrelRet").text)
    assert '<a href="/topics?measure=NumNonrelRet&sort=-mean">hardest first</a>' in shown
    topic = get(tiny, "/api/v1/topic", topic="none", measure="NumNonrelRet")
    assert (topic["scores"][0]["difference"], topic["scores"][0]["better"]) == (1.0, "A")
    assert [one["run"] for one in topic["all_runs"]] == ["A", "B"]


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"sort": "size"}, 400, "topics cannot be sorted by 'size'"),
        ({"sort": "run:C"}, 400, "topics cannot be sorted by 'run:C'"),
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
def test_lists_that_make_no_sense(tiny: TestClient, asked: dict[str, str], status: int, said: str) -> None:
    code, problem, _ = refused(tiny, "/api/v1/topics", **asked)
    assert code == status
    assert said in problem
    assert tiny.get("/topics", params=asked).status_code == status


def test_no_topic_holds_the_words(tiny: TestClient) -> None:
    assert get(tiny, "/api/v1/topics", q="zebra")["topics"] == []
    shown = tiny.get("/topics?q=zebra&sort=mean").text
    assert "Of 3 topics, none has zebra in its id or query text." in shown


# One topic


def test_one_topic_by_hand(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topic", topic="q")
    gain_b = 1 / math.log2(3)
    ideal = 2 + gain_b + 1 / 2
    first, second = (2 + 1 / 2) / ideal, (1 + 2 / math.log2(3)) / ideal
    assert (found["judged"], found["relevant"]) == (4, 3)
    assert [(one["grade"], one["state"], one["documents"]) for one in found["grades"]] == [
        (2.0, "relevant", 1),
        (1.0, "relevant", 2),
        (0.0, "not relevant", 1),
    ]
    assert by_measure(found) == pytest.approx([first, second])
    assert found["scores"][0]["difference"] == pytest.approx(second - first)
    assert found["scores"][0]["better"] == "A"
    left = next(row for row in found["all_runs"] if row["run"] == "A")
    assert [
        (one["doc_id"], one["rank"], one["state"], one["there"], one["moved"]) for one in documents_of(found, "A")
    ] == [
        ("a", 1, "relevant", 2, "down 1"),
        ("x", 2, "unjudged", None, "gone"),
        ("b", 3, "relevant", 1, "up 2"),
    ]
    assert [
        (one["doc_id"], one["rank"], one["state"], one["there"], one["moved"]) for one in documents_of(found, "B")
    ] == [
        ("b", 1, "relevant", 3, "up 2"),
        ("a", 2, "relevant", 1, "down 1"),
        ("c", 3, "not relevant", None, "new"),
    ]
    assert (left["returned"], left["unjudged"]) == (3, 1)
    assert documents_of(found, "B")[0]["change"] == pytest.approx((1 - 1 / 2) / ideal)
    assert [(row["doc_id"], row["grade"], row["place:A"], row["place:B"]) for row in missed_of(found)] == [
        ("m", 1.0, None, None)
    ]
    reachable = (2 + gain_b) / ideal
    loss = found["losses"][0]
    names = ("score", "attainable_candidates", "best", "lost_candidates", "lost_ranking")
    lost = [first, reachable, 1.0, 1 - reachable, reachable - first]
    assert [loss[name] for name in names] == pytest.approx(lost)
    assert (loss["found"], loss["relevant"]) == (2, 3)
    ties, unjudged = found["reaches"][:2]
    assert (ties["low"], ties["high"], ties["sentence"]) == (
        ties["score"],
        ties["score"],
        "Whatever the order of documents with equal scores, it stays.",
    )
    best = (2 + 2 * gain_b + 1 / 2) / (2 + 2 * gain_b + 1 / 2 + 1 / math.log2(5))  # x has grade 2
    assert (unjudged["low"], unjudged["high"]) == pytest.approx((first, best))
    by = "by the grades of its 1 unjudged document; both ends can be reached."
    assert unjudged["sentence"] == f"Between {first:.4f} and {best:.4f}, {by}"


def test_tied_documents_are_named_and_bounded() -> None:
    of = client(open_workspace({"q": {"a": 1, "b": 0}}, {"A": {"q": {"a": 1.0, "b": 1.0, "c": 0.5}}}))
    found = get(of, "/api/v1/topic", topic="q", measure="RR")
    assert [(one["doc_id"], one["tied"]) for one in documents_of(found, found["runs"][0])] == [
        ("b", True),
        ("a", True),
        ("c", False),
    ]
    assert (found["reaches"][0]["low"], found["reaches"][0]["high"]) == (0.5, 1.0)
    assert found["reaches"][0]["sentence"].startswith("Between 0.5000 and 1.0000, by the order of documents with equal")


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
    found = get(of_sample, "/api/v1/topic", topic=query_id, first="bm25", second="tfidf", measure=measure)
    qrels, runs = shipped.qrels(), {run.name: run for run in shipped.runs()}
    ones = [judge(qrels, runs[name]).only(query_id) for name in ("bm25", "tfidf")]
    at = sample.query_ids.index(query_id)
    scores = sample.scores([measure])
    assert by_measure(found) == [float(scores.values[scores.run_names.index(one.run.name), 0, at]) for one in ones]
    assert {one["run"]: one["score"] for one in found["all_runs"]} == dict(
        zip(scores.run_names, scores.values[:, 0, at].tolist(), strict=True)
    )
    assert [one["score"] for one in found["all_runs"]] == sorted(scores.values[:, 0, at].tolist(), reverse=True)
    for place, one in enumerate(ones):
        reaches = found["reaches"][2 * place : 2 * place + 2]
        for reach, wanted in zip(reaches, (tie_range(one, measure), unjudged_range(one, measure)), strict=True):
            assert (reach["low"], reach["high"], reach["kind"]) == (wanted.low[0], wanted.high[0], wanted.kind[0])
        assert found["explained"][place]["score"] == explain_list(one, measure, query_id).score
    whole = diff(qrels, runs["bm25"], runs["tfidf"], topic=query_id, measure=measure, cutoff=10).topics[0]
    assert found["sentences"] == [whole.sentence]
    for which in (0, 1):
        side = whole.ranked_rows(which)
        documents = documents_of(found, found["runs"][which])
        assert [one["doc_id"] for one in documents] == [row.doc_id for row in side]
        assert [one["grade"] for one in documents] == [row.grade for row in side]
        assert [one["moved"] for one in documents] == [row.movement for row in side]
        assert [one["change"] for one in documents] == pytest.approx([row.changes[0] for row in side])
        assert [one["there"] for one in documents] == [(row.first_rank if which else row.second_rank) for row in side]


def test_the_loss_is_that_of_stages(of_sample: TestClient) -> None:
    found = get(of_sample, "/api/v1/topic", topic="t12", first="bm25_nostem", second="tfidf", measure="AP")
    for loss, name in zip(found["losses"], ("bm25_nostem", "tfidf"), strict=True):
        run = next(run for run in shipped.runs() if run.name == name)
        whole = stages(shipped.qrels(), run, measure="AP", cutoff=100)
        at = whole.query_ids.index("t12")
        assert [loss["lost_candidates"], loss["lost_ranking"]] == whole.trace.parts[:, at].tolist()
        assert loss["attainable_candidates"] == whole.trace.attainable[at]
        assert (loss["found"], loss["relevant"]) == (whole.trace.num_found[at], whole.trace.relevant[at])
        assert loss["verdict"] == whole.verdicts[at]
    refused_by_stages = get(of_sample, "/api/v1/topic", topic="t12", measure="SetP")["losses"][0]
    assert refused_by_stages["score"] is None
    assert "its loss cannot be split into stages" in refused_by_stages["sentence"]


def test_what_other_tools_report(of_sample: TestClient) -> None:
    asked = {"topic": "t12", "first": "bm25", "second": "tfidf", "measure": "nDCG@10"}
    assert "tools" not in get(of_sample, "/api/v1/topic", **asked)
    found = get(of_sample, "/api/v1/topic", **asked, tools=True)["tools"]
    for name in ("bm25", "tfidf"):
        run = next(run for run in shipped.runs() if run.name == name)
        told = compare_tools(shipped.qrels(), run, "t12", "nDCG@10")
        columns = ("tool", "called", "measure", "printed", "why")
        lines = [tuple(row[column] for column in columns) for row in found if row["run"] == name]
        assert lines == [row for row in told.table().grid().rows[1:] if row[1]]
        assert len(lines) > 3


def test_the_scale_of_grades_is_that_of_all_judgments() -> None:
    """An unjudged document may have the highest grade of the qrels, though this topic has none of it."""
    qrels = {"q": {"a": 1}, "other": {"b": 4}}
    run = {"q": {"x": 2.0, "a": 1.0}}
    found = get(client(open_workspace(qrels, {"A": run})), "/api/v1/topic", topic="q", measure="DCG@2", tools=True)
    whole = unjudged_range(judge(qrels, run).only("q"), "DCG@2")
    assert whole.high[0] == 4 + 1 / math.log2(3)
    assert found["reaches"][1]["high"] == whole.high[0]
    told = compare_tools(qrels, run, "q", "DCG@2").tool_scores
    assert [row["printed"] for row in found["tools"]] == [opinion.printed for opinion in told if opinion.called]


def test_deeper_lists(of_sample: TestClient) -> None:
    shallow, deep = (
        get(of_sample, "/api/v1/topic", topic="t12", first="bm25", second="bm25_nostem", cutoff=cutoff)
        for cutoff in (10, 50)
    )
    assert [len(documents_of(shallow, run)) for run in shallow["runs"]] == [10, 10]
    assert [len(documents_of(deep, run)) for run in deep["runs"]] == [50, 50]
    assert any(row["there"] and row["there"] > 10 for row in documents_of(shallow, "bm25"))
    shown = html.unescape(of_sample.get("/topic?topic=t12&first=bm25&second=bm25_nostem").text)
    for row in missed_of(shallow):
        for run in shallow["runs"]:
            rank = row[f"rank:{run}"]
            assert rank is None or rank > 10
            assert (f"rank {rank}" if rank else "not returned") in shown


def test_the_way_to_the_next_topic_is_the_order_of_the_list(of_sample: TestClient) -> None:
    asked = {
        "sort": "-spread",
        "where": "relevant in (4, 5, 6, 7)",
        "q": "a",
        "measure": "AP",
        "runs": ["bm25", "tfidf"],
    }
    ids = [one["query_id"] for one in get(of_sample, "/api/v1/topics", **asked)["topics"]]
    walked, here = [], ids[0]
    while here:
        found = get(of_sample, "/api/v1/topic", topic=here, **asked)
        assert (found["place"], found["of"]) == (len(walked) + 1, len(ids))
        assert found["previous"] == (walked[-1] if walked else None)
        walked.append(here)
        here = found["next"]
    assert walked == ids
    shown = html.unescape(of_sample.get("/topic", params={"topic": ids[1], **asked}).text)
    kept = "measure=AP&sort=-spread&q=a&where=relevant+in+%284%2C+5%2C+6%2C+7%29&runs=bm25&runs=tfidf"
    assert f'rel="next" href="/topic?{kept}&topic={ids[2]}"' in shown
    assert f'<a href="/topics?{kept}">All topics</a>' in shown
    outside = next(one for one in (f"t{number:02}" for number in range(1, 49)) if one not in ids)
    elsewhere = get(of_sample, "/api/v1/topic", topic=outside, **asked)
    assert (elsewhere["place"], elsewhere["previous"], elsewhere["next"]) == (0, None, None)


def test_which_runs_are_shown(tiny: TestClient) -> None:
    chosen: Callable[..., list[str]] = lambda **asked: get(tiny, "/api/v1/topic", topic="q", **asked)["runs"]  # noqa: E731
    assert chosen() == ["A", "B"]
    assert chosen(first="B") == ["B"]
    assert chosen(first="B", second="A") == ["B", "A"]
    assert chosen(second="") == ["A"]
    assert chosen(second="A") == ["B", "A"]
    assert chosen(first="B", second="B") == ["B"]
    assert refused(tiny, "/api/v1/topic", topic="q", first="C") == (400, "no run 'C' is open", "use one of A, B")


def test_one_list_alone(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topic", topic="q", first="B")
    assert "sentences" not in found
    assert [(one["there"], one["moved"]) for one in documents_of(found, found["runs"][0])] == [(None, "")] * 3
    assert all(row["run:B"] is not None and "run:A" not in row for row in found["scores"])
    assert "that the list does not show" in tiny.get("/topic?topic=q&first=B").text


def test_a_topic_without_relevant_documents(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topic", topic="none")
    assert (found["relevant"], missed_of(found)) == (0, [])
    assert found["losses"][1]["verdict"] == "nothing relevant"
    assert "No document of this topic is known to be relevant" in tiny.get("/topic?topic=none").text


def test_a_run_without_the_topic(tiny: TestClient) -> None:
    found = get(tiny, "/api/v1/topic", topic="z")
    assert found["notes"][0]["text"] == "B has nothing for this topic: it counts as an empty list."
    assert [row["returned"] for row in sorted(found["all_runs"], key=lambda row: row["run"])] == [1, 0]
    assert by_measure(found) == [1.0, 0.0]
    assert found["losses"][1]["sentence"] == "B has nothing for this topic: everything is lost."
    assert [one["run"] for one in found["reaches"]] == ["A", "A"]
    assert "B returned nothing for this topic." in tiny.get("/topic?topic=z").text


def test_a_run_that_is_a_set() -> None:
    rows = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "x"]})
    of = client(open_workspace(QRELS, [Run.of(rows, name="S"), Run.of(A, name="A")]))
    listed = get(of, "/api/v1/topics")
    assert scores_of(listed)[1][0] is None
    assert "the run S has no scores" in listed["notes"][0]["text"]
    found = get(of, "/api/v1/topic", topic="q")
    assert [(one["doc_id"], one["rank"]) for one in documents_of(found, found["runs"][0])] == [("x", None), ("a", None)]
    assert [one["there"] for one in documents_of(found, found["runs"][1])] == [None, None, None]
    assert by_measure(found)[0] is None
    assert "needs a ranking" in found["explained"][0]["problem"]
    of_set = get(of, "/api/v1/topic", topic="q", measure="SetP", first="S", second="A")
    assert by_measure(of_set) == [0.5, pytest.approx(2 / 3)]
    assert of_set["reaches"][0]["sentence"] == "The run is a set: it has no order."
    assert of.get("/topic?topic=q").status_code == 200


def test_no_run_at_all() -> None:
    of = client(open_workspace(QRELS, []))
    assert [one["relevant"] for one in get(of, "/api/v1/topics", sort="-relevant")["topics"]] == [3, 1, 0]
    found = get(of, "/api/v1/topic", topic="q")
    assert (found["runs"], found["all_runs"]) == ([], [])
    assert [(one["doc_id"], one["grade"]) for one in missed_of(found)] == [("a", 2.0), ("b", 1.0), ("m", 1.0)]
    shown = of.get("/topic?topic=q").text
    assert "No run is open" in shown
    assert "3 relevant documents" in shown
    assert "No run is open" in of.get("/topics").text
    assert refused(of, "/api/v1/topic", topic="q", first="A")[1] == "no run 'A' is open"


def test_a_measure_that_looks_at_all_topics() -> None:
    """Document b is judged for q2: on q1 alone it would be a hole."""
    of = client(open_workspace({"q1": {"a": 1}, "q2": {"b": 1}}, {"A": {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}}}))
    found = get(of, "/api/v1/topic", topic="q1", measure="Hole@3")
    assert by_measure(found) == [pytest.approx(1 / 3)]
    assert found["reaches"][1]["sentence"].startswith("Hole@3 of one topic depends on the other topics")
    assert "depends on the other topics" in found["explained"][0]["problem"]
    assert refused(of, "/api/v1/topic/explain", topic="q1", run="A", measure="Hole@3")[0] == 400


def test_topics_that_do_not_exist(of_sample: TestClient) -> None:
    code, problem, fix = refused(of_sample, "/api/v1/topic", topic="t4")
    assert (code, problem) == (400, "no topic 't4' is in the judgments")
    assert fix.startswith("near it are t04, ")
    assert "t04" in of_sample.get("/topic?topic=t4").text
    assert refused(of_sample, "/api/v1/topic", topic="x" * 5000)[1] == f"no topic '{'x' * 79}…' is in the judgments"
    assert refused(of_sample, "/api/v1/topic")[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", cutoff=0)[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", cutoff=101)[0] == 422
    assert refused(of_sample, "/api/v1/topic", topic="t04", explain="nope")[1] == "there is no measure 'nope'"


def test_ids_near_one() -> None:
    assert near_ids(("q1", "q2", "q3"), "q2 ") == ["q2", "q3", "q1"]
    assert sorted(["b10", "b9", "a", "b09"], key=natural) == ["a", "b9", "b09", "b10"]


# Explanations


def test_explain_any_measure(of_sample: TestClient) -> None:
    run = next(run for run in shipped.runs() if run.name == "bm25")
    wanted = explain_list(judge(shipped.qrels(), run), "AP", "t12")
    found = get(of_sample, "/api/v1/topic/explain", topic="t12", run="bm25", measure="AP")
    assert found == wanted.to_dict()
    of_page = get(of_sample, "/api/v1/topic", topic="t12", first="bm25", explain="AP")["explained"][0]
    assert of_page == {**wanted.to_dict(), "problem": ""}
    shown = of_sample.get("/topic?topic=t12&first=bm25&explain=AP").text
    assert "<li>AP = sum of precision / R = 2.7500 / 3 = 0.9167</li>" in shown
    assert '<td class="label"><bdi>inspect.getdoc</bdi></td><td>1</td><td>2</td><td>1</td><td>2</td>' in shown


def test_long_explanations_put_together_what_counts_nowhere() -> None:
    qrels = {"q": {f"d{at:03}": 1 for at in range(150)}}
    run = {"q": {f"d{at:03}": 1000.0 - at for at in range(150)} | {f"u{at}": 999.5 - at / 100 for at in range(3)}}
    of = client(open_workspace(qrels, {"A": run}))
    assert len(get(of, "/api/v1/topic", topic="q", measure="AP")["explained"][0]["sheets"][0]["rows"]) == 153
    shown = of.get("/topic?topic=q&measure=AP").text
    assert '><bdi>2-4</bdi></th><td class="label"><bdi>(3 without a judgment)</bdi></td>' in shown


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
    for asked in ({}, {"tools": "true", "explain": "AP"}, {"first": "B/b", "second": f"A {HOSTILE}", "cutoff": "100"}):
        answer = hostile.get("/topic", params={"topic": query_id, **asked})
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert "alert(2)</script>" not in answer.text
        assert html.escape(f"A {HOSTILE}").replace("&quot;", "&#34;") in answer.text
    listed = hostile.get("/topics", params={"sort": f"-run:A {HOSTILE}"})
    assert listed.status_code == 200
    assert "<img" not in listed.text


def test_every_link_of_the_list_leads_to_its_topic(hostile: TestClient) -> None:
    shown = hostile.get("/topics").text
    links = [html.unescape(part.split('"')[0]) for part in shown.split('<a href="')[1:] if part.startswith("/topic?")]
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
    assert (code, problem) == (400, "no text of document 'u' is known")
    assert fix.startswith("texts are kept of documents that were judged or returned")
    assert refused(hostile, "/api/v1/document", doc_id=HOSTILE, length=0)[0] == 422


def test_no_documents_are_open(tiny: TestClient) -> None:
    assert refused(tiny, "/api/v1/document", doc_id="a")[:2] == (400, "no texts of documents are open")
    found = get(tiny, "/api/v1/topic", topic="q")
    assert found["notes"][0]["rule"] == "no-texts"
    assert not any(one["has_text"] for one in documents_of(found, found["runs"][0]))


# The page and its twin


def test_the_page_shows_the_data(of_sample: TestClient) -> None:
    asked = {"topic": "t12", "first": "bm25", "second": "bm25_nostem", "explain": "AP", "tools": "true"}
    found = get(of_sample, "/api/v1/topic", **asked)
    shown = html.unescape(of_sample.get("/topic", params=asked).text)
    texts = [found["query"], *found["sentences"], *(one["sentence"] for one in found["reaches"] + found["losses"])]
    texts += [step["numbers"] for one in found["explained"] for step in one["steps"]]
    texts += [row["why"] for row in found["tools"]]
    texts += [f"{row[name]:.4f}" for row in found["scores"] for name in ("run:bm25", "run:bm25_nostem")]
    texts += [f"grade {row['grade']:g}" for row in found["documents"] if row["grade"] is not None]
    assert [text for text in texts if text not in shown and minus(text) not in shown] == []
    assert 'href="/evaluator?run=bm25_nostem&topic=t12"' in shown
    assert '<a href="#b-0" class="jump">rank 1 in bm25_nostem</a>' in shown
    assert "/api/v1/topic?topic=t12&first=bm25&second=bm25_nostem&explain=AP&tools=true" in shown
