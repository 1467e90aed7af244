"""The drop-in for ranx against what ranx 0.3.21 printed, where that is not chance: without ties."""

from __future__ import annotations

import copy
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from judged import InputError, MeasureError, evaluate
from judged.scoring.compat import ranx

PRINTED = json.loads((Path(__file__).parent / "ranx-0.3.21.json").read_text())


def collection():
    """Give the judgments and the run that ranx scored: 12 topics, of which three have nothing relevant."""
    sizes = [40, 3, 1, 12, 25, 40, 8, 30, 17, 40, 20, 15]
    qrels, run = {}, {}
    for topic, size in enumerate(sizes):
        name = f"q{topic:02}"
        qrels[name] = {f"d{doc}": (topic * doc + doc) % 4 for doc in range(60) if (topic * 7 + doc * 5) % 3}
        if topic == 11:
            qrels[name] = dict.fromkeys(qrels[name], 0)
        run[name] = {f"d{doc}": float((doc * 17 + topic * 13) % 61) for doc in range(topic, topic + size)}
        assert len(set(run[name].values())) == size  # no ties
    return qrels, run


@pytest.mark.parametrize("name", PRINTED["scores"])
def test_every_score(name):
    qrels, run = collection()
    printed = PRINTED["scores"][name]
    scores = ranx.evaluate(qrels, run, [name, "mrr"], return_mean=False)[name]
    assert scores.tolist() == pytest.approx(printed, rel=1e-14, abs=1e-15)
    assert ranx.evaluate(qrels, run, name) == pytest.approx(sum(printed) / len(printed), rel=1e-14)
    assert any(printed)


def test_the_table_is_whole():
    assert len(PRINTED["scores"]) == 41
    assert PRINTED["version"] == "0.3.21"
    roots = {name.split("-l")[0].split("@")[0].split(".")[0] for name in PRINTED["scores"]}
    assert roots == {
        "hits", "hit_rate", "precision", "recall", "f1", "r-precision", "bpref", "rbp", "mrr", "map", "dcg",
        "dcg_burges", "ndcg", "ndcg_burges",
    }  # fmt: skip


def test_mean_and_deviation():
    qrels, run = collection()
    for name, printed in ranx.evaluate(qrels, run, ["map", "mrr"], return_std=True).items():
        assert printed == pytest.approx(PRINTED["std"][name], rel=1e-14)


@pytest.mark.parametrize("name", [name for name in PRINTED["scores"] if not name.startswith(("rbp", "hits"))])
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_the_dialect_gives_the_same_means(name):
    """But for rbp, which is not a measure of ours with these grades, and hits, which we add up."""
    qrels, run = collection()
    scores = evaluate(qrels, run, name, dialect="ranx")
    assert scores.value(name) == pytest.approx(sum(PRINTED["scores"][name]) / 12, rel=1e-14)


def test_topics_are_joined_by_id():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    run = {"q2": {"b": 1.0}, "q1": {"a": 1.0}}
    assert ranx.evaluate(qrels, run, "map") == 1.0  # ranx 0.3.21 gives 0.0


def test_the_order_of_scores_is_that_of_the_qrels():
    qrels = {"z": {"a": 1}, "b": {"b": 1}}
    run = {"b": {"c": 1.0}, "z": {"a": 1.0}}
    assert ranx.evaluate(qrels, run, "mrr", return_mean=False).tolist() == [1.0, 0.0]


def test_ties_are_ordered_by_falling_id():
    docs = [f"d{number:03}" for number in range(100)]
    for order in (docs, docs[::-1], docs[50:] + docs[:50]):
        scores = ranx.evaluate({"q": {"d097": 1}}, {"q": dict.fromkeys(order, 1.0)}, "mrr")
        assert scores == 1 / 3  # behind d099 and d098; ranx gives .014 to .167, by the order of the dict


def test_bpref_without_documents_judged_not_relevant():
    """ranx 0.3.21 prints nan."""
    assert ranx.evaluate({"q": {"a": 1, "b": 2}}, {"q": {"a": 2.0, "x": 1.0}}, "bpref") == 0.5


def test_negative_grades_are_judged_not_relevant():
    """One judged document above the relevant one, R = 1: 1 - 1/1. With a negative grade passed over it were 1."""
    qrels, run = {"q": {"a": -1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert ranx.evaluate(qrels, run, "bpref") == 0.0
    assert evaluate(qrels, run, "bpref", dialect="ranx").value("bpref") == 0.0
    assert evaluate(qrels, run, "bpref").value("bpref") == 1.0


def test_rbp_adds_up_grades():
    qrels, run = {"q": {"a": 3, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    assert ranx.evaluate(qrels, run, "rbp.5") == 0.5 * (3 + 1 * 0.5)
    assert ranx.evaluate(qrels, run, "rbp.5-l2") == 0.5 * 3
    with pytest.raises(MeasureError, match=r"write RBP\(p=0.5,gain=graded,max=3\), which is ranx's score div"):
        evaluate(qrels, run, "rbp.5", dialect="ranx")
    assert evaluate({"q": {"a": 1}}, run, "rbp.5", dialect="ranx").measure_names == ("RBP(p=0.5)",)


@pytest.mark.parametrize("name", ["ndgc@10", "rbp", "recall@ten", "err@10", "", "NDCG@10", "ndcg_cut_10"])
def test_unknown_metrics(name):
    with pytest.raises(MeasureError, match="ranx has no metric"):
        ranx.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, name)


def test_different_topics():
    qrels, run = {"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1.0}, "q3": {"a": 1.0}}
    before = copy.deepcopy((qrels, run))
    with pytest.raises(InputError, match="1 are only in the qrels, 1 only in the run"):
        ranx.evaluate(qrels, run, "map")
    assert ranx.evaluate(qrels, run, "map", make_comparable=True) == 0.5
    assert (qrels, run) == before


def test_what_ranx_cannot_take():
    assert ranx.evaluate({1: {7: 1.5}, 2: {}}, {2: {}, 1: {8: 2, 7: 1}}, ["mrr", "ndcg"], return_mean=False) == {
        "mrr": pytest.approx([0.5, 0.0]),
        "ndcg": pytest.approx([1 / math.log2(3), 0.0]),
    }


class Kept:
    """Looks like the objects of ranx."""

    def __init__(self, data):
        self.data = data
        self.scores = defaultdict(dict)
        self.mean_scores, self.std_scores = {}, {}

    def to_dict(self):
        return self.data


def test_ranx_objects_get_their_scores():
    qrels, run = Kept({"q1": {"a": 1}, "q2": {"b": 1}}), Kept({"q1": {"a": 1.0}, "q2": {"a": 1.0}})
    assert ranx.evaluate(qrels, run, ["map", "mrr"], return_std=True)["map"] == {"mean": 0.5, "std": 0.5}
    assert run.mean_scores == {"map": 0.5, "mrr": 0.5}
    assert run.std_scores == {"map": 0.5, "mrr": 0.5}
    assert run.scores == {"map": {"q1": 1.0, "q2": 0.0}, "mrr": {"q1": 1.0, "q2": 0.0}}
    saved = Kept(run.data)
    ranx.evaluate(qrels, saved, "map", save_results_in_run=False)
    assert not saved.scores


def test_one_metric_or_several():
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0}}
    assert ranx.evaluate(qrels, run, "map") == 1.0
    assert ranx.evaluate(qrels, run, ["map"]) == 1.0  # as ranx
    assert ranx.evaluate(qrels, run, ["map", "mrr"]) == {"map": 1.0, "mrr": 1.0}
    assert isinstance(ranx.evaluate(qrels, run, "map@5", return_mean=False), np.ndarray)  # ranx: KeyError
    with pytest.raises(InputError, match="required for the run, got list"):
        ranx.evaluate(qrels, [1], "map")


def test_the_thin_objects():
    """As ranx's own script has it: Qrels and Run of dicts, scores written into the run."""
    qrels, run = ranx.Qrels({"q1": {"a": 1}, "q2": {"b": 1}}), ranx.Run({"q1": {"a": 1.0}, "q2": {"a": 1.0}}, name="x")
    assert ranx.evaluate(qrels, run, ["map", "mrr"], return_std=True)["mrr"] == {"mean": 0.5, "std": 0.5}
    assert run.mean_scores == run.std_scores == {"map": 0.5, "mrr": 0.5}
    assert run.scores["map"] == {"q1": 1.0, "q2": 0.0}
    assert (run.name, len(run), run.keys()) == ("x", 2, ["q1", "q2"])
    assert ranx.Run.from_dict(run.to_dict(), name="y").name == "y"
    with pytest.raises(InputError, match="required for the Qrels, got list"):
        ranx.Qrels([1])


def test_the_thin_objects_read_files(tmp_path):
    (tmp_path / "q.txt").write_text("1 0 a 2\n1 0 b 0\n2 0 c 1\n")
    (tmp_path / "mine.run").write_text("1 Q0 b 1 0.75 t\n1 Q0 a 2 0.5 t\n2 Q0 c 1 3 t\n")
    qrels, run = ranx.Qrels.from_file(str(tmp_path / "q.txt")), ranx.Run.from_file(str(tmp_path / "mine.run"), "trec")
    assert qrels.to_dict() == {"1": {"a": 2, "b": 0}, "2": {"c": 1}}
    assert {type(grade) for docs in qrels.to_dict().values() for grade in docs.values()} == {int}
    assert run.to_dict() == {"1": {"b": 0.75, "a": 0.5}, "2": {"c": 3.0}}
    assert run.name == "mine"
    assert ranx.evaluate(qrels, run, "mrr") == 0.75
    (tmp_path / "twice.run").write_text("1 Q0 b 1 0.75 t\n1 Q0 b 2 0.5 t\n")
    with pytest.raises(InputError, match=r"document b appears twice for topic 1. Fix: keep one"):
        ranx.Run.from_file(str(tmp_path / "twice.run"))


def test_no_names_of_judged_leak():
    assert ranx.__all__ == ["Qrels", "Run", "evaluate"]
    assert ranx.Qrels.__module__ == ranx.Run.__module__ == "judged.scoring.compat.ranx"
    assert not hasattr(ranx, "compare")


@pytest.mark.parametrize(
    "metrics",
    [None, 5, ["map", 5], b"map", *(f"{name}{400 * '9'}" for name in ("precision@", "ndcg@", "map-l", "rbp."))],
)
def test_metrics_that_are_no_names(metrics):
    with pytest.raises(MeasureError, match="Fix: ") as caught:
        ranx.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, metrics)
    assert len(str(caught.value)) < 100
