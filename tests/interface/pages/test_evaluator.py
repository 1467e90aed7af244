"""API of the evaluator: hand calculations, agreement with the public functions, and arbitrary input."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, quote

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from judged import judge
from judged.data import Qrels, Run
from judged.errors import InputError
from judged.interface.pages.evaluator.explanation import LOSSES, TERMS, explain_measure
from judged.interface.pages.evaluator.paste import read_pasted
from judged.interface.pages.evaluator.routes import router
from judged.interface.pages.evaluator.scores import evaluation
from judged.interface.pages.evaluator.state import EvaluationQuery, MeasureQuery
from judged.interface.pages.workspace import open_workspace
from judged.scoring.judging import judge_list
from judged.scoring.measures import parse
from judged.scoring.measures.registry import REGISTRY
from judged.web.app import make_app

API = "/api/v1/evaluator"


@pytest.fixture(scope="module")
def client(sample):
    app = make_app(sample)
    if API not in app.openapi()["paths"]:
        app.include_router(router)
    return TestClient(app, raise_server_exceptions=False)


def get(client, query="", path=API, status=200):
    answer = client.get(f"{path}?{query}")
    assert answer.status_code == status, answer.text[:500]
    return answer.json()


def evaluate(workspace, query):
    return evaluation(workspace, query).to_dict()


def explain(workspace, query):
    return explain_measure(workspace, query).to_dict()


def rows(data):
    """Return the measures of this package by name; other tests may have registered more."""
    scores = {row["name"]: row for row in data["measures"]}
    return {name: row for name, row in scores.items() if REGISTRY[row["family"]].cls.__module__.startswith("judged.")}


def rules(data):
    return [note["rule"] for note in data["notes"]]


def values(data, which="value"):
    return {name: row[which] for name, row in rows(data).items()}


# ---- classics, and the number that each has


@pytest.mark.parametrize(
    ("query", "measure", "value"),
    [
        ("", "nDCG@5", 0.9305),
        ("gain=exp2", "DCG(gain=exp2)@5", 8.931),
        ("gain=exp2", "IdealDCG(gain=exp2)@5", 9.393),
        ("gain=exp2", "nDCG(gain=exp2)@5", 0.951),
        ("list=3,2,0,1,2&gain=exp2&cutoff=5", "IdealDCG(gain=exp2)@5", 10.823),
        ("list=3,2,0,1,2&gain=exp2&cutoff=5", "nDCG(gain=exp2)@5", 0.969),
        ("list=1,0,1,0,1&missing=1", "AP", 0.567),
        ("list=1,0,1,0,1&relevant=4", "AP", 0.567),
        ("list=1,1,0,0,1,0,0,0,1", "AP", 0.76),
        ("list=0,0,1,0,0,0,1&relevant=3", "AP", 0.206),
        ("list=0,1,0,0,1,0,0,1&relevant=7", "AP", 0.182),
        ("list=0,1,0,1,1,0,1,0&relevant=4&cutoff=8", "AP@8", 0.543),
        ("list=0,1,0,1,1,0,1,0&relevant=4&cutoff=4", "R@4", 0.5),
        ("list=3,2,3,0,0,1,2,2,3,0&discount=original", "DCG(discount=original)@10", 9.61),
        ("list=3,2,3,0,0,1,2,2,3,0&discount=original", "nDCG(discount=original)@10", 0.88),
        ("list=0,7,2,4,6,1,4,3&cutoff=2", "nDCG@2", 0.409),
        ("list=0,4&missing=4&cutoff=2", "nDCG@2", 0.387),
        ("list=1,0,0,0,0,0,0,0,0,0&relevant=1&cutoff=2", "F@2", 2 / 3),
        ("list=2,1,0&rel=2&relevant=2", "SetR(rel=2)", 0.5),
    ],
)
def test_a_classic_has_its_number(client, query, measure, value):
    digits = 2 if value in {0.76, 9.61, 0.88} else 4 if value == 0.9305 else 3
    assert round(values(get(client, query))[measure], digits) == round(value, digits)


def test_default_list_is_the_example(client):
    data = get(client)
    assert [item["grade"] for item in data["list"]] == [3, 0, 2, 1, 0]
    assert (data["state"]["cutoff"], data["state"]["gain"]) == (5, "linear")
    assert data["query"] == "list=3,0,2,1,0&cutoff=5&gain=linear"
    assert data["list"][2] == {
        "rank": 3,
        "doc": "d3",
        "grade": 2,
        "relevant": True,
        "gain": 2.0,
        "discount": 2,
        "rank_in_other": None,
        "rank_before": None,
    }


# ---- two lists, and the list before


def test_swapped_documents_and_how_measures_moved(client):
    data = get(client, "list=1:a,0:b&before=0:b,1:a&other=0:b,1:a")
    scores = rows(data)
    assert {name: scores["RR"][name] for name in ("value", "other", "difference", "before", "change")} == {
        "value": 1,
        "other": 0.5,
        "difference": -0.5,
        "before": 0.5,
        "change": 0.5,
    }
    assert scores["P@10"]["change"] == 0
    first, second = data["list"], data["other"]
    assert [(row["doc"], row["rank_before"], row["rank_in_other"]) for row in first] == [
        ("a", 2, 2),
        ("b", 1, 1),
    ]
    assert [(row["doc"], row["grade"], row["rank_in_other"]) for row in second] == [("b", 0, 2), ("a", 1, 1)]


# System 1: R N R N N N N N R R, system 2: N R N N R R R N N N, of 4 relevant documents.
# AP 1: (1/1 + 2/3 + 3/9 + 4/10) / 4 = 0.6; AP 2: (1/2 + 2/5 + 3/6 + 4/7) / 4 = 0.4929
@pytest.mark.parametrize("relevant", ["", "&relevant=4"])
def test_two_systems_with_other_grades_at_the_same_ranks(client, relevant):
    data = get(client, f"list=1,0,1,0,0,0,0,0,1,1&other=0,1,0,0,1,1,1,0,0,0{relevant}")
    assert [item["grade"] for item in data["list"]] == [1, 0, 1, 0, 0, 0, 0, 0, 1, 1]
    assert [item["grade"] for item in data["other"]] == [0, 1, 0, 0, 1, 1, 1, 0, 0, 0]
    scores = rows(data)
    assert (scores["AP"]["value"], scores["AP"]["other"]) == pytest.approx((0.6, 69 / 140))
    assert (scores["Rprec"]["value"], scores["Rprec"]["other"]) == (0.5, 0.25)
    assert (scores["P@10"]["value"], scores["P@10"]["other"]) == (0.4, 0.4)
    assert get(client, data["query"])["measures"] == data["measures"]


def test_unnamed_rows_of_the_second_list_match_documents_by_grade(client):
    data = get(client, "list=1,0,1,0,0&other=0,1,0,1,1")
    assert [item["grade"] for item in data["other"]] == [0, 1, 0, 1, 1]
    assert [item["doc"] for item in data["other"]] == ["d2", "d1", "d4", "d3", "d6"]
    assert data["state"]["relevant"] == 3
    assert "unnamed-rows" in rules(data)
    assert get(client, data["query"]) == data
    assert "other=0,1,0,1,1" in data["query"]


def test_a_document_that_has_two_grades_is_refused(client):
    for query in ("list=1:a,0:b&other=0:a,1:b", "list=-:a,0:b&other=1:a", "list=1:a&other=-:a"):
        assert "'a'" in get(client, query, status=400)["problem"]


def test_the_list_before_has_its_own_grades_and_missing_documents(client):
    scores = rows(get(client, "list=1,1&before=0,1&missing=1&before_missing=1,1"))
    assert scores["SetP"] | {"before": 0.5, "change": 0.5} == scores["SetP"]
    assert (scores["NumRel"]["value"], scores["NumRel"]["before"]) == (3, 3)
    assert scores["Hole@10"]["before"] == 0.0


def test_hole_looks_at_the_judgments_of_its_own_list(client):
    scores = rows(get(client, "list=-:a,1:b&before=1:a,1:b&cutoff=2"))["Hole@2"]
    assert (scores["value"], scores["before"], scores["change"]) == (0.5, 0, 0.5)


def test_the_number_of_relevant_documents(client):
    state = get(client, "list=2,0,1&missing=1&relevant=5&rel=1")["state"]
    assert (state["relevant"], state["relevant_input"], state["known_relevant"], state["missing"]) == (5, 5, 3, [1])
    data = get(client, "list=2,0,1&missing=1&relevant=5&rel=2")
    assert data["state"]["known_relevant"] == 1
    assert values(data)["NumRel(rel=2)"] == 5
    assert values(data)["SetR(rel=2)"] == 0.2
    wrong = get(client, "list=2,0,1&missing=1&relevant=2", status=400)
    assert (
        wrong["problem"]
        == "`relevant` must be at least 3, the number of relevant documents in the lists and in `missing`, got 2"
    )
    assert "relevant=3" in wrong["fix"]


# ---- which measures


def test_every_measure_is_listed_or_unavailable(client):
    data = get(client)
    listed = {row["family"] for row in rows(data).values()}
    unavailable = {row["name"]: row["reason"] for row in data["unavailable"]}
    ours = {name for name, entry in REGISTRY.items() if entry.cls.__module__.startswith("judged.")}
    assert listed | unavailable.keys() >= ours
    assert not listed & unavailable.keys()
    assert all(unavailable.values())
    assert {"Accuracy", "APIA", "PrefShare", "TBG"} <= unavailable.keys()
    assert [group["key"] for group in data["groups"]] == list(dict.fromkeys(row["group"] for row in data["measures"]))
    assert 60 <= len(rows(data)) <= 72
    assert len({row["name"] for row in data["measures"]}) == len(data["measures"])


def test_options_set_parameters_of_measures(client):
    names = rows(get(client, "list=4,1&cutoff=3&gain={1:1,4:9}&discount=original&base=10&rel=2&max=5")).keys()
    assert {
        "nDCG(gain={1:1,4:9},discount=original,base=10)@3",
        "AP(rel=2)@3",
        "ERR(max=5)@3",
        "RBP(p=0.8,gain=graded,max=5)",
        "RBP(p=0.8,rel=2)",
        "NumRelRet(rel=2)@3",
    } <= names
    assert all(str(parse(name)) == name for name in names)


def test_a_base_is_left_out_where_the_discount_has_none(client):
    data = get(client, "list=1&base=10")
    assert (data["state"]["base"], data["query"]) == (2, "list=1&cutoff=10&gain=linear")


GRADES = st.lists(st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])), max_size=8)


def written(grades):
    return ",".join("-" if grade is None else f"{grade:g}" for grade in grades)


@settings(max_examples=25)
@given(GRADES, GRADES, st.lists(st.sampled_from([0.0, 1.0, 3.0]), max_size=3), st.sampled_from(["linear", "exp2"]))
def test_each_value_is_that_of_the_public_measure(sample, grades, others, missing, gain):
    """The lists have different documents; each list misses those of the other."""
    named_rows = ",".join(f"{part}:o{i}" for i, part in enumerate(filter(None, written(others).split(",")), 1))
    query = EvaluationQuery(
        typed=written(grades),
        other=named_rows,
        before=written(grades[::-1]),
        missing=written(missing),
        cutoff=3,
        gain=gain,
    )
    scores = rows(evaluate(sample, query))
    first = [grade for grade in grades if grade is not None]
    second = [grade for grade in others if grade is not None]
    if not (first and second):
        assert all(row["value"] is not None for row in scores.values())
        return
    first_list, second_list = (
        judge_list(grades, missing=[*second, *missing]),
        judge_list(others, missing=[*first, *missing]),
    )
    before = judge_list(grades[::-1], missing=[*second, *missing])
    for name, row in scores.items():
        measure = parse(name)
        assert row["value"] == pytest.approx(float(measure(first_list)[0]), rel=1e-12, abs=1e-15), name
        assert row["other"] == pytest.approx(float(measure(second_list)[0]), rel=1e-12, abs=1e-15), name
        assert row["before"] == pytest.approx(float(measure(before)[0]), rel=1e-12, abs=1e-15), name
        assert row["difference"] == row["other"] - row["value"]
        assert row["change"] == row["value"] - row["before"]


@pytest.mark.parametrize(
    "query",
    [
        "list=",
        "list=&other=",
        "list=&missing=1",
        "list=-,-,-",
        "list=0,0&missing=0",
        "list=-2,-1",
        "list=-1,3&rel=0",
        "list=0.5,1.25&rel=0.5",
        "list=1",
        "list=1,0&cutoff=1000",
        "list=3,2&gain={3:-5}",
        "list=3&relevant=10000",
        f"list={','.join(['3'] * 200)}&other={','.join(f'1:x{i}' for i in range(200))}&cutoff=1",
    ],
)
def test_every_measure_has_a_number_for_unusual_lists(client, query):
    data = get(client, query)
    assert [name for name, row in rows(data).items() if row["value"] is None or row["reason"]] == []


@pytest.mark.parametrize(
    ("query", "without"),
    [
        ("list=2000,3&gain=exp2", "nDCG(gain=exp2)@10"),
        ("list=3,3&gain={3:1e308}", "CG(gain={3:1e+308})@10"),
        ("list=2000,3", "ERR"),
    ],
)
def test_overflow_is_null_with_a_reason(client, query, without):
    data = get(client, query)
    assert values(data)[without] is None
    assert rows(data)[without]["reason"]
    assert any(without in note["text"] for note in data["notes"] if note["rule"] == "no-number")
    assert values(data)["AP"] == 1


def test_overflow_of_the_previous_list_has_no_effect(client):
    scores = rows(get(client, "list=3,0&before=2000,0&gain=exp2"))["nDCG(gain=exp2)@10"]
    assert (scores["value"], scores["before"], scores["change"]) == (1, None, None)
    assert "2^2000" in scores["reason"]


def test_positives_and_negatives_at_the_cutoff(client):
    """Of 100 documents 4 are relevant; the first three of the one list hold 2, of the other 1."""
    data = get(client, "list=1,0,1,0,1&other=0,1,-&missing=1&cutoff=3&n=100")
    counted = [[row[name] for name in ("tp", "fp", "fn", "tn")] for row in data["counts"]]
    assert counted == [[2, 1, 2, 95], [1, 2, 3, 94]]
    assert rows(data)["Accuracy(n=100)@3"]["value"] == 0.97
    assert get(client, "list=1,0&cutoff=3")["counts"][0]["tn"] is None
    assert "must be at least 10" in get(client, "list=1,0,1,0,1&missing=1,1&relevant=8&n=9", status=400)["problem"]


def test_notes(client):
    data = get(client, "list=0,-&cutoff=5")
    assert rules(data) == ["nothing-relevant", "unjudged", "short-list"]
    assert "1 of 2 documents have no judgment" in data["notes"][1]["text"]
    assert get(client)["notes"] == []


# ---- the address


def test_the_canonical_query_gives_the_same_state(client):
    name = quote(quote("a b,c:&é", safe=""), safe="")
    query = (
        f"list=3:{name},-,0.5&other=1:y,2:x&missing=0,0,0,0,0,2&relevant=5&cutoff=7&gain={{1:1,2:5}}&discount=original"
    )
    data = get(client, f"{query}&base=3&rel=0.5&max=4")
    again = get(client, data["query"])
    assert again == data
    assert data["list"][0]["doc"] == "a b,c:&é"
    assert "missing=0*5,2" in data["query"]
    assert "before" not in dict(parse_qsl(get(client, "list=1&before=0,1")["query"]))


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("list=1,nan", "rank 2 of list"),
        ("list=1e999", "rank 1 of list"),
        ("list=1_0", "rank 1 of list"),
        ("list=\u0661", "rank 1 of list"),
        ("list=1:a,2:a", "twice, at ranks 1 and 2"),
        ("list=1:%00", "control characters"),
        ("list=" + ",".join(["1"] * 201), "at most 200"),
        (f"list=1:{'x' * 501}", "got 501"),
        ("list=1&missing=-", "must contain grades only"),
        ("list=1&missing=0*99999", "must be 0 to 9999"),
        ("list=1&missing=0*9999", "at most 5000"),
        ("list=1&gain=exp2)@5", "the gain is invalid"),
        ("list=1&gain=linear,gain=exp2", "the gain is invalid"),
        ("list=1&gain={1:nan}", "the gain is invalid"),
        ("list=1&gain=linear,judged_only=true", "the gain is invalid"),
        ("list=1&discount=log3", "discount="),
        ("list=1&discount=original&base=nan", "base="),
        ("list=5&max=4", "at most max=4"),
        ("run=bm25", "must be used together"),
        ("run=none&topic=1", "no run 'none'"),
        ("run=bm25&topic=none", "no topic 'none'"),
    ],
)
def test_invalid_parameters_are_errors(client, query, problem):
    for path in (API, f"{API}/measure", f"{API}/export"):
        more = {API: "", f"{API}/measure": "&measure=AP", f"{API}/export": "&format=markdown"}[path]
        answer = get(client, query + more, path, 400)
        assert problem in answer["problem"]
        assert answer["fix"]


@pytest.mark.parametrize(
    "query",
    ["cutoff=0", "cutoff=1001", "cutoff=x", "relevant=-1", "relevant=99999", "rel=nan", "rel=-1", "max=0", "max=inf"],
)
def test_numbers_are_bounded(client, query):
    assert query.split("=")[0] in get(client, query, status=422)["problem"]


def test_a_topic_of_a_run(client, sample):
    query_id = sample.query_ids[0]
    data = get(client, f"run=bm25&topic={query_id}&other_run=tfidf&cutoff=10")
    state, judged = data["state"], sample.judged("bm25").only(query_id)
    documents = judged.returned_docs
    assert [item["doc"] for item in data["list"]] == documents.doc.to_pylist()[:20]
    assert state["source"] == {
        "run": "bm25",
        "topic": query_id,
        "query": sample.query(query_id),
        "other_run": "tfidf",
    }
    for name in ("nDCG@10", "AP@10", "P@10", "R@10", "RR@10"):
        assert values(data)[name] == pytest.approx(float(parse(name)(judged)[0]), abs=1e-12)
        assert values(data, "other")[name] == pytest.approx(
            float(parse(name)(sample.judged("tfidf").only(query_id))[0])
        )
    assert state["relevant"] == judged.num_relevant(1.0)[0]
    again = get(client, data["query"])
    assert (again["measures"], again["state"]) == (data["measures"], data["state"])


def test_topics_without_documents_or_relevant_ones():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"c": 0}}
    opened = open_workspace(qrels, {"full": {"1": {"a": 1.0}, "2": {"c": 1.0}}, "half": {"2": {"x": 2.0, "c": 1.0}}})
    half = evaluate(opened, EvaluationQuery(run="half", topic="1"))
    assert (half["list"], half["state"]["missing"], values(half)["AP"]) == ([], [1, 0], 0)
    both = evaluate(opened, EvaluationQuery(run="full", topic="2", other_run="half"))
    assert [{name: row[name] for name in ("doc", "grade")} for row in both["other"]] == [
        {"doc": "x", "grade": None},
        {"doc": "c", "grade": 0},
    ]
    assert (both["state"]["relevant"], values(both, "difference")["RR"]) == (0, 0)


def test_a_workspace_without_runs_has_the_evaluator():
    opened = open_workspace({"1": {"a": 1}}, [])
    assert values(evaluate(opened, EvaluationQuery(typed="0,1")))["RR"] == 0.5
    with pytest.raises(InputError, match="no run 'x' is open"):
        evaluate(opened, EvaluationQuery(run="x", topic="1"))


# ---- one measure


SUMS = {
    "P", "SetP", "R", "SetR", "RelP", "SetRelP", "AP", "GMAP", "Rprec", "RprecMult", "BinG", "G", "RBP",
    "InfAP", "nDCG", "CG", "DCG", "Bpref", "GMBpref", "Judged", "Hole", "NumNonrelRet", "NumRelRet", "GAP", "Q",
    "NCG", "INSQ", "INST", "NERR8", "NERR9", "NERR10", "NERR11", "BPM", "BPMD", "SDCG", "TrAP", "IFT1", "IFT2",
    "IFT12", "CwlTBG", "CwlU", "ERR",
}  # fmt: skip


@pytest.mark.parametrize(
    "query", ["", "list=3,0,-,1,2,-,0,1&missing=2,1&cutoff=6", "list=-1,2,0,1&other=1,-,0:z&rel=2&cutoff=3&missing=0"]
)
def test_contributions_are_terms_of_a_sum_or_losses(sample, query):
    sums, parameters = set(), dict(parse_qsl(query))
    for name, row in rows(evaluate(sample, EvaluationQuery(**parameters))).items():
        explanation = explain(sample, MeasureQuery(**parameters, measure=name))
        for explained_list, value in zip(explanation["lists"], [row["value"], row["other"]], strict=False):
            assert explained_list["value"] == pytest.approx(value, abs=1e-15), name
            assert explained_list["contributions_description"] in {TERMS, LOSSES}
            bars = [bar["value"] for bar in explained_list["contributions"]]
            if explained_list["contributions_description"] == TERMS:
                sums.add(row["family"])
                assert sum(bars) == pytest.approx(value, abs=1e-12), name
            assert explained_list["explanation"]["score"] == explained_list["value"]
        assert explanation["name"] == name
        assert explanation["definition"]
        assert explanation["lists"][0]["lines"], name
    assert sums == SUMS


def bars(client, query, measure):
    explained_list = get(client, f"{query}&measure={quote(measure)}", f"{API}/measure")["lists"][0]
    return [bar["value"] for bar in explained_list["contributions"]], explained_list["contributions_description"]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("P@4", [0.25, 0, 0, 0.25]),
        ("AP", [1 / 3, 0, 0, 2 / 4 / 3]),
        ("DCG@4", [3, 0, 0, 1 / 2.321928094887362]),
        ("RBP(p=0.8)", [0.2, 0, 0, 0.2 * 0.8**3]),
        ("NumRelRet", [1, 0, 0, 1]),
    ],
)
def test_the_terms_of_a_sum_by_hand(client, measure, expected):
    values, meaning = bars(client, "list=3,0,-,1&missing=2&cutoff=4", measure)
    assert values == pytest.approx(expected, abs=1e-12)
    assert meaning == TERMS


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("RR", [1 - 1 / 4, 0, 0, 0]),
        ("Success@4", [0, 0, 0, 0]),
        ("F@4", [4 / 7 - 2 / 7, 0, 0, 4 / 7 - 2 / 7]),  # of 2 found among 4, 3 relevant: 2 * 2 / (4 + 3)
        ("SetAP", [4 / 12 - 1 / 12, 0, 0, 4 / 12 - 1 / 12]),
        ("IdealDCG", [0, 0, 0, 0]),
    ],
)
def test_losses_match_hand_calculation(client, measure, expected):
    values, meaning = bars(client, "list=3,0,-,1&missing=2&cutoff=4", measure)
    assert values == pytest.approx(expected, abs=1e-12)
    assert meaning == LOSSES


@pytest.mark.parametrize(
    "measure", ["RR", "F@5", "Compat", "nDCGrel", "RnDCG", "PairAccuracy", "AP11", "Yaap", "Utility"]
)
def test_a_loss_is_that_of_a_list_with_a_nonrelevant_document_in_its_place(client, measure):
    grades, missing = [3.0, 0.0, None, 1.0, 2.0], [2.0]
    values, _ = bars(client, "list=3,0,-,1,2&missing=2&cutoff=5", measure)
    score = parse(measure).of_list(grades, missing=missing)
    for i, grade in enumerate(grades):
        instead = [0.0 if place == i else other for place, other in enumerate(grades)]
        lost = score - parse(measure).of_list(instead, missing=[*missing, grade]) if grade else 0
        assert values[i] == pytest.approx(lost, abs=1e-12), i


def test_a_measure_is_explained_line_by_line(client):
    explanation = get(client, f"gain=exp2&measure={quote('nDCG(gain=exp2)@5')}", f"{API}/measure")
    assert explanation["family"] == "nDCG"
    assert explanation["lists"][0]["lines"][0] == "gain = 2^grade - 1"
    assert explanation["lists"][0]["lines"][-1] == "nDCG(gain=exp2)@5 = DCG / IdealDCG = 8.9307 / 9.3928 = 0.9508"
    assert explanation["lists"][0]["explanation"]["sheets"][0]["columns"][:3] == ["rank", "document", "grade"]


def test_a_measure_is_scored_at_every_cutoff(client):
    """ "Cat in a box": relevant at 2, 4, 5, 7 of 8; the other list at 1, 4, 5, 7."""
    explanation = get(client, "list=0,1,0,1,1,0,1,0&other=1,0,0,1,1,0,1,0&cutoff=8&measure=R@8", f"{API}/measure")
    assert explanation["curve"] == [[0, 0.25, 0.25, 0.5, 0.75, 0.75, 1, 1], [0.25, 0.25, 0.25, 0.5, 0.75, 0.75, 1, 1]]
    assert explanation["differences"] == [{"rank": 1, "value": 0.25}, {"rank": 2, "value": -0.25}]
    assert get(client, "list=1&measure=Rprec", f"{API}/measure")["curve"] == []


@pytest.mark.parametrize("measure", ["nDCG@7", "AlphaDCG@5", "P", "nonsense", "P@1..99999", "AP(rel=2)", ")("])
def test_only_listed_measures_are_explained(client, measure):
    assert get(client, f"measure={quote(measure)}", f"{API}/measure", 400)["fix"]


def test_a_measure_without_a_number_is_a_problem(client):
    wrong = get(client, f"list=2000&gain=exp2&measure={quote('nDCG(gain=exp2)@10')}", f"{API}/measure", 400)
    assert "2^2000" in wrong["problem"]


@pytest.mark.parametrize("query", ["list=", "list=-,-", "list=0"])
def test_lists_without_anything_relevant_are_explain(sample, query):
    asked = dict(parse_qsl(query, keep_blank_values=True))
    for name, row in rows(evaluate(sample, EvaluationQuery(**asked))).items():
        (one,) = explain(sample, MeasureQuery(**asked, measure=name))["lists"]
        assert one["value"] == row["value"], name
        assert all(bar["value"] == 0 for bar in one["contributions"]) or row["family"] in {
            "Judged",
            "Hole",
            "NumNonrelRet",
        }


# ---- files


@pytest.mark.parametrize("doc", ["a b", "x%20y", "\u00a0z", "plain", "ü#1"])
def test_exported_qrels_and_run_give_the_same_scores(client, tmp_path, doc):
    query = f"list=3:{quote(quote(doc, safe=''))},0,-,1.5&other=1:b,3:a%2520b&missing=2&relevant=7"
    data = get(client, query)
    paths = {}
    for name, extra in {"qrels": "format=qrels", "list": "format=run", "other": "format=run&which=other"}.items():
        answer = client.get(f"{API}/export?{query}&{extra}")
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_bytes(answer.content)
    for which, key in (("list", "value"), ("other", "other")):
        judged = judge(Qrels.of(paths["qrels"]), Run.of(paths[which]))
        assert judged.query_ids == ("list",)
        for name, value in values(data, key).items():
            assert float(parse(name)(judged)[0]) == pytest.approx(value, abs=1e-12), name


def test_exported_markdown_reads_as_tables(client):
    text = client.get(f"{API}/export?list=3:a%257Cb,-&other=1:c&missing=2&format=markdown").text
    assert "| 1 | a\\|b | 3 |" in text
    assert "| 2 | d2 | - |" in text
    assert "| RR | 1.0000 | 1.0000 | 0.0000 |" in text
    assert "`/evaluator?list=3:a%257Cb,-&other=1:c&missing=2&cutoff=10&gain=linear`" in text
    assert "Number of relevant documents (grade 1 or higher): 3." in text


def test_exported_markdown_shows_names_as_they_are(client):
    hostile = quote(quote("<b> [x](y) `c` _d_ e_f", safe=""), safe="")
    text = client.get(f"{API}/export?list=1:{hostile}&format=markdown").text
    assert r"| 1 | &lt;b&gt; [x\](y) \`c\` \_d\_ e_f | 1 |" in text


@pytest.mark.parametrize(
    "query", ["list=-,-&format=qrels", "list=&missing=1&format=run", "list=1&which=other&format=run"]
)
def test_exporting_an_empty_list_is_an_error(client, query):
    assert get(client, query, f"{API}/export", 400)["fix"]


def test_an_exported_topic_keeps_its_name(client, sample):
    query_id = sample.query_ids[1]
    text = client.get(f"{API}/export?run=bm25&topic={query_id}&format=run").text
    assert text.splitlines()[0].startswith(f"{query_id} Q0 ")
    assert len(text.splitlines()) == 20


# ---- what is pasted


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("3 0 2", [("d1", 3), ("d2", 0), ("d3", 2)], "grades"),
        ("3,0,\n-,– ? null", [("d1", 3), ("d2", 0), ("d3", None), ("d4", None), ("d5", None), ("d6", None)], "grades"),
        ("grade\n3\n0", [("d1", 3), ("d2", 0)], "grades"),
        ("0.5;-1;1e1", [("d1", 0.5), ("d2", -1), ("d3", 10)], "grades"),
        ("a 3\nb -\n", [("a", 3), ("b", None)], "document and grade"),
        ('# a comment\r\ndoc,grade\r\n"x, y",2\r\nb,0', [("x, y", 2), ("b", 0)], "document and grade"),
        ("two words\t2\nb\t1", [("two words", 2), ("b", 1)], "document and grade"),
        ("12 3\nx7 0", [("12", 3), ("x7", 0)], "document and grade"),
        ("2 b 0\n1 a 3", [("a", 3), ("b", 0)], "rank, document, and grade"),
        ("1 7 3\n2 9 0", [("7", 3), ("9", 0)], "rank, document, and grade"),
        ("301 0 FT1 1\n301 0 FT2 0\n302 0 FT3 2", [("FT1", 1), ("FT2", 0)], "1 other topic omitted"),
        ("301 Q0 a 1 0.5 r\n301 Q0 b 2 0.9 r\n301 Q0 c 3 0.5 r", [("b", None), ("c", None), ("a", None)], "TREC run"),
        ("[3, null, 0.5]", [("d1", 3), ("d2", None), ("d3", 0.5)], "JSON"),
        (
            '[{"doc": "a", "grade": 1}, {"id": 7, "rating": null}, {"label": "2"}]',
            [("a", 1), ("7", None), ("d3", 2)],
            "JSON",
        ),
        ('{"a": 1, "b": 0}', [("a", 1), ("b", 0)], "JSON"),
        ('{"results": [{"doc_id": "a", "relevance": 2}]}', [("a", 2)], "JSON"),
        ('{"doc": "a", "grade": 1}\n{"doc": "b"}', [("a", 1), ("b", None)], "JSON"),
        ("\ufeff3 0", [("d1", 3), ("d2", 0)], "grades"),
        ("R N r", [("d1", 1), ("d2", 0), ("d3", 1)], "relevant (R, 1) or not"),
        ("RNN", [("d1", 1), ("d2", 0), ("d3", 0)], "relevant (R, 1) or not"),
        ("yes\nno\n?", [("d1", 1), ("d2", 0), ("d3", None)], "relevant (R, 1) or not"),
        ("1 R\n2 N", [("d1", 1), ("d2", 0)], "relevant (R, 1) or not"),
        ("1. R\n2. N", [("d1", 1), ("d2", 0)], "relevant (R, 1) or not"),
        ("2. d7 not relevant\n1. d12 relevant\n3) d9: 2", [("d12", 1), ("d7", 0), ("d9", 2)], "rank, document"),
        ("r 3\nn 0", [("r", 3), ("n", 0)], "document and grade"),
        ("1, 65, 4.8040\n1, 12, 5.1\n2, 7, 9", [("12", None), ("65", None)], "topic, document, and score"),
        ("q1 d5 2\nq1 d7 0", [("d5", 2), ("d7", 0)], "topic, document, and grade"),
    ],
)
def test_format_of_a_paste_is_detected(client, text, expected, said):
    answer = client.post(f"{API}/paste", json={"text": text})
    assert answer.status_code == 200, answer.text
    assert [(item["doc"], item["grade"]) for item in answer.json()["list"]] == expected
    assert said in answer.json()["read_as"]
    assert answer.json()["n_omitted"] == 0


def test_a_pasted_run_has_the_judgments_of_its_topic(client, sample):
    query_id = sample.query_ids[0]
    data = get(client, f"run=bm25&topic={query_id}")
    lines = client.get(f"{API}/export?run=bm25&topic={query_id}&format=run").text
    for text, address in ((lines, "list=1"), (lines.replace(query_id, "x"), f"run=tfidf&topic={query_id}")):
        answer = client.post(f"{API}/paste?{address}", json={"text": text}).json()
        assert f"are judged for topic {query_id}" in answer["read_as"]
        assert values(get(client, answer["query"])) == values(data)
    answer = client.post(f"{API}/paste?run=tfidf&topic={query_id}&into=other", json={"text": lines}).json()
    assert values(get(client, answer["query"]), "other") == pytest.approx(
        values(get(client, f"run=tfidf&topic={query_id}&other_run=bm25"), "other")
    )


def test_paste_as_the_second_list(client):
    """Each list keeps its grades, whichever is first, and the settings do not change."""
    first = client.post(f"{API}/paste?list=3&cutoff=3", json={"text": "R N R"}).json()["query"]
    both = client.post(f"{API}/paste?{first}&into=other", json={"text": "N R N R"}).json()["query"]
    assert both == "list=1,0,1&other=0,1,0,1&cutoff=3&gain=linear"
    again = client.post(f"{API}/paste?list=1:a,0:b&other=0:b,1:a&relevant=9", json={"text": "b 1"}).json()["query"]
    assert again == "list=1:b&other=0,1:a&cutoff=10&gain=linear"
    wrong = client.post(f"{API}/paste?list=1:a&into=other", json={"text": "a 0"})
    assert (wrong.status_code, "'a' has two grades: 1" in wrong.json()["problem"]) == (400, True)


@pytest.mark.parametrize("text", ["1 " * 250, "\n".join(f"x{i} 1" for i in range(250)), json.dumps([1] * 250)])
def test_two_hundred_documents_are_read_and_the_rest_counted(text):
    read = read_pasted(text)
    assert (len(read.documents), read.n_omitted) == (200, 50)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the text is empty"),
        (" \n\t", "the text is empty"),
        (",,,", "only comments and separators"),
        ("hello world", "line 1"),
        ("3 0\n2 many", "line 2"),
        ("a 3\nb zz", "line 2"),
        ("a 3\nb 1 2", "line 2"),
        ("a 3\na 1", "'a' twice"),
        ("1 a 3\nx b 2", "line 2"),
        ("q 0 a 1\nq 0 b", "line 2"),
        ("q Q0 a 1 0.5 r\nq Q0 b 2 high r", "line 2"),
        ("q Q0 a 1 0.5 r\nq Q0 a 2 0.4 r", "'a' twice"),
        ("1e999", "line 1"),
        ("inf nan", "line 1"),
        ("a\x00b 1", "control characters"),
        ("[1, ", "text:1: invalid JSON"),
        ("[NaN]", "NaN"),
        ("[1e999]", "too large"),
        ("[[1]]", "item 1"),
        ("[{}, true]", "item 2"),
        ('[{"doc": {}, "grade": 1}]', "item 1"),
        ('["\\ud800"]', "unpaired surrogate"),
        ('[{"doc": "\\ud800", "grade": 1}]', "unpaired surrogate"),
        ("[" * 100_000, "too deep"),
        ('{"a":' * 100_000, "too deep"),
        ("[" + "9" * 5000 + "]", "4,300 digits"),
        ("9" * 900_000, "line 1"),
        ("x" * 900_000, "line 1"),
        ("," * 999_000, "only comments"),
        ("a," * 400_000, "line 1"),
        ('"' * 400_000 + ",", "line 1"),
        ("a b c\n" * 15_000, "line 1"),
        ("1\n" * 300_000, "got 300,001"),
    ],
)
def test_a_hostile_paste_is_a_problem(client, text, problem):
    answer = client.post(f"{API}/paste", json={"text": text})
    assert answer.status_code == 400, answer.text[:300]
    assert problem in answer.json()["problem"]
    assert len(answer.json()["problem"]) < 300


def test_a_paste_that_is_too_long_is_refused(client):
    assert client.post(f"{API}/paste", json={"text": "1" * 1_000_001}).status_code == 422
    assert client.post(f"{API}/paste", json={"txt": "1"}).status_code == 422


@settings(max_examples=200)
@given(st.text(max_size=60) | st.text(alphabet='0123 -.,\n\tab[]{}":Q#?x', max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        read = read_pasted(text)
    except InputError:
        return
    assert read.read_as.startswith("Read as ")
    assert len({document.doc for document in read.documents}) == len(read.documents)


@settings(max_examples=60)
@given(
    st.text(alphabet="0123,-:*.e%{}=&ab ", max_size=40), st.sampled_from(["list", "other", "before", "missing", "gain"])
)
def test_any_address_is_answered(client, text, name):
    answer = client.get(API, params={"list": "1", name: text})
    assert answer.status_code in {200, 400}


@pytest.mark.parametrize(
    ("part", "query"), [("numbers", "list=x"), ("calculation", "list=x&measure=AP"), ("example", "list=1&measure=none")]
)
def test_a_part_of_the_page_tells_its_problem_as_json(client, part, query):
    assert get(client, query, f"{API}/{part}", 400)["fix"]


def test_numbers_come_as_the_page_writes_them(client):
    """Of the bar of RR, which was 1/2 and is 1, the right half is new."""
    part = client.get(f"{API}/numbers?list=1:a,0:b&before=0:b,1:a&only=RR&n=9&cutoff=1").text
    assert part.count('class="measure"') == 2  # RR and RR@1
    assert 'x="50.0%" width="50.00%" data-tone="good"' in part
    assert ['TN <b class="tn">8</b>' in part, 'title="rank 2 before the last change">▲2</span>' in part] == [True, True]


def test_example_options_are_read_from_the_measure_name(client):
    part = client.get(f"{API}/example?list=3,0,2,1,0&measure={quote('nDCG(gain=exp2)@5')}").text
    assert '<b class="value">0.9508</b>' in part
    assert 'href="/evaluator?list=3,0,2,1,0&amp;cutoff=5&amp;gain=exp2"' in part


def test_a_page_of_no_measure_explains_none() -> None:
    client = TestClient(make_app(open_workspace({"q": {"d": 1}}, {})))
    assert client.get("/api/v1/evaluator?only=none").json()["measures"] == []
    assert client.get("/evaluator?only=none").status_code == 200


@pytest.mark.parametrize("query", ["", "?list=3,0,2,1,0&cutoff=5&gain=linear", "?cutoff=5"])
def test_a_page_explains_the_measure_in_focus(query: str) -> None:
    page = TestClient(make_app(open_workspace({"q": {"d": 1}}, {}))).get(f"/evaluator{query}").text
    assert 'data-name="nDCG@5"' in page
    assert "4.4307 / 4.7619 = 0.9305" in page
