"""The drop-in for pytrec_eval against pytrec_eval-terrier 0.5.11: every double equal, in the same dicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compat_data import collection
from judged import InputError, MeasureError
from judged.scoring.compat import pytrec_eval as ours

MISSING = object()
UNDEFINED = ("iprec_at_recall", "11pt_avg")  # NaN there where a ranking is empty, 0 here


def differences(theirs, mine):
    return [
        (topic, name, value, mine[topic].get(name, MISSING))
        for topic, values in theirs.items()
        for name, value in values.items()
        if not (
            mine[topic].get(name, MISSING) == value
            or name == "runid"
            or (math.isnan(value) and name.startswith(UNDEFINED) and mine[topic][name] == 0.0)
        )
    ]


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_every_double_of_every_measure(seed, level, judged_only):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = collection(seed, 120)
    arguments = ({"all_trec"}, level, judged_only)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, *arguments).evaluate(run)
    mine = ours.RelevanceEvaluator(qrels, *arguments).evaluate(run)
    assert list(mine) == list(theirs)  # the run's order
    for topic, values in theirs.items():
        assert list(mine[topic]) == list(values)
    assert not differences(theirs, mine)[:5]
    assert sum(map(len, theirs.values())) > 8_000


def test_undefined_values_are_the_only_exception():
    """The comparison above must not hide more than it says: without empty rankings it allows nothing but runid."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    for seed in range(8):
        qrels, run = collection(seed, 60)
        theirs = pytrec_eval.RelevanceEvaluator(qrels, {"all_trec"}).evaluate(run)
        assert not any(math.isnan(value) for values in theirs.values() for value in values.values())


@pytest.mark.parametrize(
    "names",
    [
        ["P"],
        ["P_5"],
        ["P.5,10"],
        ["P.10", "P"],
        ["P_20", "P.5,10", "map"],
        ["ndcg_cut"],
        ["ndcg_cut.10"],
        ["ndcg_cut_7", "ndcg"],
        ["map_cut_1,1000"],
        ["iprec_at_recall_0.10"],
        ["iprec_at_recall.0.1,0.25,1"],
        ["Rprec_mult_0.20"],
        ["Rprec_mult.3.0,0.5"],
        ["11pt_avg.0.5,1.0,0.25"],
        ["11pt_avg_0.2"],
        ["set_F.4"],
        ["set_F_0.5"],
        ["set_F.0.37"],
        ["success_2,3"],
        ["relative_P.3", "recall_3"],
        ["official"],
        ["set"],
        ["set", "P_3", "set_P"],
        ["num_q", "num_nonrel_judged_ret", "gm_map", "gm_bpref"],
        [],
    ],
    ids=",".join,
)
def test_every_spelling(names):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = collection(3, 60)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    mine = ours.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    assert {topic: list(values) for topic, values in mine.items()} == {
        topic: list(values) for topic, values in theirs.items()
    }
    wrong = differences(theirs, mine)
    rooted = names in (["set_F_0.5"], ["set_F.0.37"])  # weights that are not the square of a double
    assert not [mismatch for mismatch in wrong if not (rooted and mismatch[2] == pytest.approx(mismatch[3], rel=3e-16))]


def test_what_is_supported_has_the_same_names():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    assert ours.supported_measures == pytrec_eval.supported_measures
    assert ours.supported_nicknames == pytrec_eval.supported_nicknames


@pytest.mark.parametrize("measure", ["num_ret", "gm_map", "map"])
def test_aggregates(measure):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    values = [math.log(number + 0.1) for number in range(1000)]
    theirs = pytrec_eval.compute_aggregated_measure(measure, values)
    assert ours.compute_aggregated_measure(measure, values) == theirs


def test_lines_are_read_as_there():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run = ["q1 Q0 d1 1 0.5 tag\n", "q1\tQ0\td2\t2\t1e-3\ttag\r\n", "q2 Q0 d1 1 -3 tag\n"]
    qrels = ["q1 0 d1 1\n", "q1 0 d2 -1\n"]
    assert ours.parse_run(run) == pytrec_eval.parse_run(run) == {"q1": {"d1": 0.5, "d2": 0.001}, "q2": {"d1": -3.0}}
    assert ours.parse_qrel(qrels) == pytrec_eval.parse_qrel(qrels) == {"q1": {"d1": 1, "d2": -1}}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["q1 Q0 d1 1 0.5 tag", "q1 Q0 d1 2 0.4 tag"], "<lines>:2: document d1 appears twice for topic q1"),
        (["q1 Q0 d1 1 0.5"], "<lines>:1: 5 fields. Fix: write query Q0 document rank score tag"),
        (["", "q1 Q0 d1 1 high tag"], "<lines>:2: 'high' is not a number"),
    ],
)
def test_lines_that_cannot_be_read(lines, message):
    with pytest.raises(InputError, match=message):
        ours.parse_run(lines)


@pytest.mark.parametrize(
    ("name", "message"),
    [  # what 0.5.11 does with these names
        ("xyz", "unsupported measure xyz"),  # the same
        ("yaap", "unsupported measure yaap"),  # the same
        ("rbp", "unsupported measure rbp"),  # the same
        ("P_0", "a cutoff must be 1 or more"),  # ends the interpreter
        ("ndcg_10", "with a cutoff, the name is ndcg_cut_10"),  # ends the interpreter
        ("map_10", "with a cutoff, the name is map_cut_10"),  # gives map
        ("G.1", "G takes no parameter '1'"),  # ends the interpreter
        ("recip_rank_10", "recip_rank takes no parameter '10'"),  # gives recip_rank without a cutoff
        ("set_P_5", "set_P takes no parameter '5'"),  # gives set_P
        ("P_5x", "P takes no parameter '5x'. Fix: write P.5,10"),  # gives P_5
        ("set_F.0.5,2.0", "set_F takes one parameter"),  # gives one of them
        ("utility.1", "utility takes 4 coefficients, got 1"),  # gives 0
    ],
)
def test_names_that_are_refused(name, message):
    with pytest.raises(MeasureError, match=message):
        ours.RelevanceEvaluator({"q": {"a": 1}}, {name})
    assert issubclass(MeasureError, ValueError)  # which is what pytrec_eval raises


def test_the_same_cutoff_twice_is_one():
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1}}, {"P_5", "P_05"})  # this ends the interpreter there
    assert evaluator.evaluate({"q": {"a": 1.0}}) == {"q": {"P_5": 0.2}}


def test_gains_and_coefficients_that_pytrec_eval_cannot_read():
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1, "b": 2, "c": 0}}, ["ndcg.1=3,2=1", "utility.1,-0.5,0,0"])
    values = evaluator.evaluate({"q": {"b": 3.0, "c": 2.0, "a": 1.0}})["q"]
    assert values == {
        "utility": 2 * 1 - 0.5 * 1,  # two relevant and one other document returned
        "ndcg_1=3,2=1": pytest.approx((1 + 3 / 2) / (3 + 1 / math.log2(3)), abs=1e-15),
    }


def test_scores_are_compared_in_single_precision():
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
    assert evaluator.evaluate({"q": {"a": 16777217.0, "b": 16777216.0}}) == {"q": {"recip_rank": 0.5}}


def test_what_pytrec_eval_does_not_take():
    evaluator = ours.RelevanceEvaluator({1: {7: 0.5, 8: np.int64(2)}}, ["map", "ndcg"], relevance_level=0.5)
    scores = evaluator.evaluate({1: {8: np.float32(0.5), 7: np.float64(0.25), 9: 1}})
    assert scores[1]["map"] == (1 / 2 + 2 / 3) / 2
    assert ours.RelevanceEvaluator({"q": {"a\0b": 1}}, {"map"}).evaluate({"q": {"a\0c": 1.0}}) == {"q": {"map": 0.0}}
    assert ours.RelevanceEvaluator({"q": {"a": -1}}, {"map", "num_ret"}).evaluate({"q": {"a": 1.0}}) == {
        "q": {"num_ret": 1.0, "map": 0.0}
    }


def test_nothing_to_evaluate():
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1}, "none": {}}, {"map", "P_5"})
    assert evaluator.evaluate({}) == {}
    assert evaluator.evaluate({"other": {"a": 1.0}, "none": {"a": 1.0}}) == {}
    assert evaluator.evaluate({"q": {}}) == {"q": {"map": 0.0, "P_5": 0.0}}
    assert ours.RelevanceEvaluator({}, {"map"}).evaluate({"q": {"a": 1.0}}) == {}


def test_lone_surrogates_do_not_end_the_interpreter():
    evaluator = ours.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
    assert evaluator.evaluate({"q": {"\ud800": 2.0, "a": 1.0}, "\udc00": {"a": 1.0}}) == {"q": {"recip_rank": 0.5}}
    with pytest.raises(InputError, match="Fix"):
        ours.RelevanceEvaluator({"q": {"\ud800": 1}}, {"map"})


@pytest.mark.parametrize("run", [{"q": {"a": math.nan}}, {"q": {"a": "1"}}])
def test_runs_that_are_refused(run):
    with pytest.raises(InputError, match="Fix"):
        ours.RelevanceEvaluator({"q": {"a": 1, "b": 1}}, {"map"}).evaluate(run)


def test_calls_do_not_touch_one_another_or_their_input():
    qrels, run = collection(5, 40)
    before = repr((qrels, run))
    evaluator = ours.RelevanceEvaluator(qrels, {"all_trec"})
    first = evaluator.evaluate(run)
    evaluator.evaluate({topic: {doc: -score for doc, score in docs.items()} for topic, docs in run.items()})
    assert evaluator.evaluate(run) == first
    assert repr((qrels, run)) == before


@pytest.mark.parametrize("measures", [{5}, None, {b"map"}, 5, ["map", None]])
def test_names_that_are_no_text(measures):
    with pytest.raises(MeasureError, match=r"a measure must be a name, got .*Fix: use strings, such as {'map', 'P_5'}"):
        ours.RelevanceEvaluator({"q": {"a": 1}}, measures)


@pytest.mark.parametrize("level", ["1", None, math.nan, -1, [1]])
def test_levels_that_are_no_numbers(level):
    with pytest.raises(InputError, match="relevance_level"):
        ours.RelevanceEvaluator({"q": {"a": 1}}, {"map"}, level)


@pytest.mark.parametrize("value", [None, [1], "q", 5])
def test_what_is_no_dict(value):
    with pytest.raises(InputError, match=r"a dict is required, got \w+. Fix: use {query_id: {doc_id: relevance}}"):
        ours.RelevanceEvaluator(value, {"map"})
    with pytest.raises(InputError, match=r"a dict is required, got \w+. Fix: use {query_id: {doc_id: score}}"):
        ours.RelevanceEvaluator({"q": {"a": 1}}, {"map"}).evaluate(value)


@pytest.mark.parametrize("digits", [30, 400, 5000])
def test_a_cutoff_of_many_digits(digits):
    with pytest.raises(MeasureError, match="Fix"):
        ours.RelevanceEvaluator({"q": {"a": 1}}, {"P_" + digits * "9"})


@pytest.mark.parametrize("weight", ["1", "4", "0.25", "2.25"])
def test_weights_whose_root_is_a_double_give_the_same_bits(weight):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = collection(3, 60)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {f"set_F.{weight}"}).evaluate(run)
    assert ours.RelevanceEvaluator(qrels, {f"set_F.{weight}"}).evaluate(run) == theirs
