"""The provider for ir_measures against what ir_measures 0.4.3 printed with all of its own providers, without ties.

The table was made with pytrec_eval-terrier 0.5.11, cwl-eval 1.0.12, pyndeval 0.0.8 and gdeval.pl.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_data import collection
from judged import MeasureError
from judged.scoring.measures import parse

ir_measures = pytest.importorskip("ir_measures")
from judged.scoring.compat import ir_measures as ours  # noqa: E402 - it needs ir_measures

PRINTED = json.loads((Path(__file__).parent / "ir_measures-0.4.3.json").read_text())
ROUNDED = ("ERR@", "nDCG(dcg='exp-log2')")  # gdeval prints 5 decimals


class Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


def flat():
    """Give the judgments and the run of the table: a topic without relevant documents, one missing, one too many."""
    qrels = {
        str(topic): {f"d{doc}": (topic * doc * doc + doc) % 6 - 1 for doc in range(60) if (topic * 7 + doc * 5) % 3}
        for topic in range(1, 10)
    }
    qrels["8"] = dict.fromkeys(qrels["8"], 0)
    run = {
        str(topic): {f"d{doc}": float((doc * 17 + topic * 13) % 61) for doc in range(topic, topic + 5 * topic)}
        for topic in [3, 1, 2, 4, 6, 5, 8, 7]
    }
    run["99"] = {"d1": 1.0}
    return qrels, run


def subtopics():
    qrels = [
        Judgment(str(topic), f"d{doc}", (topic * doc + subtopic) % 3 % 2, str(subtopic))
        for topic in range(1, 7)
        for doc in range(40)
        for subtopic in range(1, 5)
        if (doc + subtopic + topic) % 3
    ]
    run = {
        str(topic): {f"d{doc}": float((doc * 17 + topic * 13) % 61) for doc in range(topic, topic + 8 * topic)}
        for topic in range(1, 6)
    }
    return qrels, run


@pytest.fixture(scope="module")
def computed():
    """Score all measures of the table in two calls of ir_measures: one for each kind of judgments."""
    values = {}
    for kind, (qrels, run) in (("flat", flat()), ("subtopics", subtopics())):
        measures = {name: ir_measures.parse_measure(name) for name in PRINTED[kind]}
        results = ir_measures.calc(measures.values(), qrels, run)
        by_topic = {}
        for metric in results.per_query:
            by_topic.setdefault(str(metric.measure), {})[metric.query_id] = metric.value
        for name, measure in measures.items():
            values[kind, name] = {**by_topic[str(measure)], "mean": results.aggregated[measure]}
    return values


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in ("flat", "subtopics") for name in PRINTED[kind]])
def test_every_number(computed, kind, name):
    printed, mine = PRINTED[kind][name], computed[kind, name]
    assert mine.keys() == printed.keys()
    tolerance = 5.1e-6 if name.startswith(ROUNDED) else 1e-12
    assert mine == pytest.approx(printed, rel=0, abs=tolerance)
    if kind == "flat" and not name.startswith((*ROUNDED, "RBP", "BPM", "SDCG", "NERR", "INS", "Accuracy", "SetF(beta")):
        assert mine == printed  # to the last bit


def test_the_table_is_whole():
    assert PRINTED["versions"]["ir_measures"] == "0.4.3"
    assert len(PRINTED["flat"]) == 68
    assert len(PRINTED["subtopics"]) == 14
    supported = {measure.NAME for measure in ir_measures.measures.registry.values()}
    tested = {ir_measures.parse_measure(name).NAME for kind in ("flat", "subtopics") for name in PRINTED[kind]}
    assert supported - tested == {"Compat"}  # which has another number here


def test_everything_comes_from_here():
    first = ir_measures.DefaultPipeline.providers[0]
    assert first is ours.provider is ir_measures.providers.registry["judged_evaluation"]
    for kind in ("flat", "subtopics"):
        assert all(first.supports(ir_measures.parse_measure(name)) for name in PRINTED[kind])


@pytest.mark.parametrize("seed", range(4))
def test_ties_are_those_of_pytrec_eval(seed):
    """Every double equal on generated collections with ties, near ties, and topics missing on both sides."""
    qrels, run = collection(seed, 60)
    names = "AP AP(rel=2)@10 nDCG nDCG@10 P@5 R(rel=2)@20 RR Rprec Bpref infAP SetP SetR SetF SetAP Success@3 NumRet"
    names += " P(judged_only=True)@5 IPrec@0.1 NumRelRet NumQ nDCG(gains={0:1,1:2,4:9})@5"
    measures = [ir_measures.parse_measure(name) for name in names.split()]
    theirs = ir_measures.pytrec_eval.calc(measures, qrels, run)
    mine = ours.provider.calc(measures, qrels, run)
    key = lambda metric: (metric.query_id, str(metric.measure))  # noqa: E731
    by_name = {key(metric): metric.value for metric in theirs.per_query}
    assert {key(metric): metric.value for metric in mine.per_query} == by_name
    assert mine.aggregated == pytest.approx(theirs.aggregated, rel=1e-12)  # they add up in another order


def test_one_ranking_for_all_measures():
    """Two tied documents, b first. ir_measures gives RR 0.5, RR@10 1.0, P@1 0.0 and Compat 1.0 in one call."""
    names = ["RR", "RR@10", "P@1", "Compat", "ERR@10", "RBP(rel=1)"]
    measures = [ir_measures.parse_measure(name) for name in names]
    values = ir_measures.calc_aggregate(measures, {"x-1": {"a": 1, "b": 0}}, {"x-1": {"a": 1.0, "b": 1.0}})
    compat = parse("Compat").of_list([0, 1])
    assert list(values.values()) == pytest.approx(
        [found_in for _, found_in in sorted(zip(names, [0.5, 0.5, 0.0, compat, 1 / 16 / 2, 0.2 * 0.8], strict=True))]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [  # what ir_measures 0.4.3 does not compute
        ("RR(judged_only=True)@10", 1 / 2),
        ("RBP(p=0.5,rel=1)@2", 0.0),
        ("nDCG(dcg='exp-log2')", (3 / math.log2(4)) / 3),
        ("ERR", (3 / 16) / 3),
        ("NumRel(rel=2)", 1.0),
        ("Accuracy(rel=0)@1", 1.0),  # a division by zero there
    ],
)
def test_more_than_there(name, value):
    qrels, run = {"1": {"a": 2, "b": 0}}, {"1": {"b": 3.0, "x": 2.0, "a": 1.0}}
    measure = ir_measures.parse_measure(name)
    assert ir_measures.calc_aggregate([measure], qrels, run) == {measure: pytest.approx(value)}


@pytest.mark.parametrize("name", ["RBP", "ERR_IA", "nDCG(dcg='exp-log2',gains={1:2})"])
def test_what_is_left_to_others(name):
    assert not ours.provider.supports(ir_measures.parse_measure(name))


def test_a_grade_above_4_is_refused_by_err_whatever_else_is_asked():
    """gdeval ends with an error; measures with max_rel lower the grade, and must not lower it for ERR."""
    qrels, run = {"1": {"a": 5}}, {"1": {"a": 1.0}}
    bpm = ir_measures.BPM(max_rel=4) @ 5
    assert ir_measures.calc_aggregate([bpm], qrels, run) == {bpm: pytest.approx(1.0)}
    for measures in ([ir_measures.ERR @ 5], [ir_measures.ERR @ 5, bpm]):
        with pytest.raises(MeasureError, match="Fix"):
            ir_measures.calc_aggregate(measures, qrels, run)


def test_measures_made_by_users_are_theirs():
    mine = ir_measures.define(lambda *_: [("q", 0.25)], name="Mine")
    assert not ours.provider.supports(mine)
    results = ir_measures.calc_aggregate([mine, ir_measures.AP], {"q": {"a": 1}}, {"q": {"a": 1.0}})
    assert results == {mine: 0.25, ir_measures.AP: 1.0}


def test_diversity_measures_do_not_take_turns():
    """ir_measures gives 0 for all but one of these, and not always for the same."""
    qrels, run = subtopics()
    names = ["ERR_IA@5", "alpha_nDCG(alpha=0.9)@5", "nNRBP(alpha=0.3,beta=0.8)", "StRecall@1"]
    measures = {name: ir_measures.parse_measure(name) for name in names}
    values = ir_measures.calc_aggregate(measures.values(), qrels, run)
    for name, measure in measures.items():
        assert values[measure] == pytest.approx(PRINTED["subtopics"][name]["mean"], abs=1e-12)


def test_every_form_of_input():
    pandas = pytest.importorskip("pandas")
    qrels, run = flat()
    rows = [Judgment(query, doc, grade, "0") for query, docs in qrels.items() for doc, grade in docs.items()]
    ranked = [ir_measures.ScoredDoc(query, doc, score) for query, docs in run.items() for doc, score in docs.items()]
    frame = pandas.DataFrame(rows)
    frame["note"] = "text"
    scored = pandas.DataFrame(reversed(ranked))  # not grouped by topic from the start
    scored["rank"] = range(len(scored))
    measure = ir_measures.nDCG @ 10
    expected = ir_measures.calc_aggregate([measure], qrels, run)
    for judgments, rankings in ((rows, ranked), (iter(rows), iter(ranked)), (frame, scored), (qrels, scored)):
        assert ir_measures.calc_aggregate([measure], judgments, rankings) == expected


def test_judgments_from_a_generator_last():
    """ir_measures reads them again for the second run, and finds nothing."""
    evaluator = ir_measures.evaluator([ir_measures.AP], (Judgment("q", "a", 1, "0") for _ in range(1)))
    for _ in range(2):
        assert evaluator.calc_aggregate({"q": {"a": 1.0}}) == {ir_measures.AP: 1.0}


def test_nothing_to_score():
    measures = [ir_measures.AP, ir_measures.NumQ]
    assert ir_measures.calc_aggregate(measures, {"q": {}}, {"q": {"a": 1.0}}) == dict.fromkeys(measures, 0.0)
    assert ir_measures.calc_aggregate(measures, {"q": {"a": 1}}, {}) == dict.fromkeys(measures, 0.0)
    assert ir_measures.calc_aggregate(measures, {"q": {"a": 1}}, []) == dict.fromkeys(measures, 0.0)
    values = ir_measures.calc_aggregate([ir_measures.AP], [], {"q": {"a": 1.0}})
    assert math.isnan(values[ir_measures.AP])


def test_columns_that_are_needed():
    assert ours.provider.qrel_inputs([ir_measures.AP]) == ["query_id", "doc_id", "relevance"]
    assert "iteration" in ours.provider.qrel_inputs([ir_measures.AP, ir_measures.alpha_nDCG @ 5])


def test_one_import_is_enough():
    code = (
        "import ir_measures, judged.scoring.compat.ir_measures as ours;"
        "assert ir_measures.DefaultPipeline.providers[0] is ours.provider;"
        "print(ir_measures.calc_aggregate([ir_measures.ERR @ 20], {'x-1': {'a': 4}}, {'x-1': {'a': 1.0}}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{ERR@20: 0.9375}\n"
