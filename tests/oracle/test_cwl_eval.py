"""Compare the user models with cwl-eval 1.0.12: five expectations and five residuals each.

cwl_eval ranks by the order of the file; all scores here decrease, which is equivalent. It takes the cost of a document
from its element type in column 2 of the run; here it is an attribute of the document.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judged
from judged import Judged
from judged.scoring.measures import parse
from judged.scoring.measures.cwl import RankMatrices, UserExpectations
from shared_data import SHARED, needs_shared

OF = ("EU", "ETU", "EC", "ETC", "ED")
COSTS = {"E1": 1.0, "E2": 2.0, "E3": 5.0, "E4": 7.5}
TABLE = Path(__file__).with_name("cwl_eval.tsv")
FOLDER = SHARED / "tool_fixtures" / "cwl"

Rows = list[tuple[str, str, str, str]]
"""Topic, document, element type, score."""


def rows(data: str) -> list[list[str]]:
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [fields for line in lines if (fields := line.split("\t"))[0] == data]


def synthetic_data() -> tuple[dict[str, dict[str, float]], Rows]:
    """Return judgments and a run: a short ranking, one below rank 1000, one without gains, one with gains only."""
    qrels: dict[str, dict[str, float]] = {}
    run: Rows = []
    for topic, length, step in (("A", 12, 2), ("B", 1100, 9), ("C", 6, 3), ("D", 5, 1)):
        ids = [f"{topic}{rank}" for rank in range(1, length + 1)]
        qrels[topic] = {doc: (rank * 7919 // 13) % 5 for rank, doc in enumerate(ids, 1) if rank % step == 0}
        if topic == "C":
            qrels[topic] = dict.fromkeys(qrels[topic], 0.0) | {"C-missing": 3.0}
        if topic == "D":
            qrels[topic] = dict.fromkeys(ids, 4.0)
        run += [(topic, doc, f"E{rank * rank % 4 + 1}", str(-rank)) for rank, doc in enumerate(ids, 1)]
    return qrels, run


def fixture() -> tuple[dict[str, dict[str, float]], Rows]:
    """Read cwl_eval's own example; documents are prefixed by topic, as their costs differ between topics."""
    qrels: dict[str, dict[str, float]] = {}
    for topic, _, doc, gain in (line.split() for line in (FOLDER / "gain_file").read_text().splitlines() if line):
        qrels.setdefault(topic, {})[f"{topic}-{doc}"] = float(gain)
    lines = [line.split() for line in (FOLDER / "result_file").read_text().splitlines() if line]
    assert dict(line.split() for line in (FOLDER / "cost_file").read_text().splitlines() if line) == {
        kind: str(cost) for kind, cost in COSTS.items()
    }
    return qrels, [(topic, f"{topic}-{doc}", kind, score) for topic, kind, doc, _, score, _ in lines]


@cache
def collection(data: str) -> Judged:
    qrels, run_rows = synthetic_data() if data == "made" else fixture()
    run: dict[str, dict[str, float]] = {}
    for topic, doc, _, score in run_rows:
        run.setdefault(topic, {})[doc] = float(score)
    return judged.judge(
        qrels, run, documents={doc: {"cost": COSTS[kind]} for _, doc, kind, _ in run_rows}, ties="stable"
    )


@pytest.mark.parametrize("data", ["made", pytest.param("fixture", marks=needs_shared)])
def test_every_expectation_and_every_residual(data: str) -> None:
    judged_run, num_compared = collection(data), 0
    scores: dict[str, Any] = {}
    for _, costs, topic, name, *printed in rows(data):
        if name.startswith("core"):
            continue
        topic_index = judged_run.query_ids.index(topic)
        for column, value in enumerate(printed):
            measure = parse(name).replace(of=OF[column % 5], costs=costs, residual=column >= 5)
            if str(measure) not in scores:
                scores[str(measure)] = measure(judged_run)
            assert scores[str(measure)][topic_index] == pytest.approx(float(value), rel=2e-11, abs=1e-9), (
                str(measure),
                topic,
            )
            num_compared += 1
    assert num_compared == {"made": 1200, "fixture": 1560}[data]


def user(name: str, matrices: RankMatrices) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the continuation of a user model that is a measure of another kind here."""
    kind, *parameter = name.split()
    if kind == "P":
        return (matrices.rank < int(parameter[0])).astype(float)[None, :]
    if kind == "RBP":
        return np.full((1, matrices.gain.shape[1]), float(parameter[0]))
    if kind == "RR":
        return (matrices.gained == 0).astype(float)
    shares = np.cumsum((matrices.gain / matrices.rank)[:, ::-1], axis=1)[:, ::-1]  # AP: what is still to come
    return np.pad(shares[:, 1:], ((0, 0), (0, 1))) / np.where(shares > 0, shares, 1.0)


@needs_shared
def test_the_framework_gives_the_other_measures_of_cwl_eval_too() -> None:
    """P, RBP, RR, and AP as continuations; those of `judged` compute the same numbers in another way."""
    judged_run, num_compared = collection("fixture"), 0
    for _, costs, topic, name, *printed in rows("fixture"):
        if not name.startswith("core"):
            continue
        topic_index = judged_run.query_ids.index(topic)
        is_judged_hit = judged_run.topic == topic_index
        gain, best, cost = np.zeros((1, 1000)), np.ones((1, 1000)), np.ones((1, 1000))
        gain[0, judged_run.rank[is_judged_hit] - 1] = best[0, judged_run.rank[is_judged_hit] - 1] = judged_run.grade[
            is_judged_hit
        ]
        if costs == "column":
            is_of_topic = judged_run.returned_docs.topic == topic_index
            cost[0, judged_run.returned_docs.rank[is_of_topic] - 1] = judged_run.fact("cost", "the test").to_numpy()[
                is_of_topic
            ]
        low, high = (RankMatrices(matrices, cost, np.ones((1, 1))) for matrices in (gain, best))
        values = [
            [
                float(UserExpectations(matrices, user(name.removeprefix("core "), matrices)).total(quantity)[0])
                for quantity in OF
            ]
            for matrices in (low, high)
        ]
        expected = values[0] + [more - less for less, more in zip(*values, strict=True)]
        assert expected == pytest.approx([float(value) for value in printed], rel=2e-11, abs=1e-9), (name, topic)
        num_compared += 1
    assert num_compared == 42


@needs_shared
def test_average_precision_of_cwl_eval_is_two_of_ours() -> None:
    """Its AP divides by the relevant documents returned, its TrAP by all: T1 alone has gains of 0 and 1."""
    judged_run = collection("fixture")
    printed = {(topic, name): float(values[0]) for _, costs, topic, name, *values in rows("fixture") if costs == "unit"}
    assert parse("AP(norm=returned)")(judged_run)[0] == pytest.approx(printed["T1", "core AP"], rel=1e-11)
    assert parse("AP")(judged_run)[0] == pytest.approx(printed["T1", "TrAP(max=1)"], rel=1e-11)


IR_MEASURES = {
    # ir_measures 0.4.3 with cwl-eval 1.0.12 on the made collection, topics A, B, C, D; max is its max_rel, min min_rel
    "INST(max=4)": (0.2136529266733, 0.01550299746724, 0.0, 0.9981151997824),
    "INST(T=2,max=4,min=1)": (0.1888684507005, 0.02247041249938, 0.0, 0.8943427551545),
    "INSQ(T=3,max=4)": (0.197784644394, 0.03721757494442, 0.0, 0.4777761448561),
    "BPM(T=2,max=4)@10": (0.3333333333333, 0.05, 0.0, 1.0),
    "SDCG(max=4)@10": (0.2742208064785, 0.03312711172719, 0.0, 0.6489315753318),
    "SDCG(max=4,min=1)@20": (0.1785976083433, 0.04769026222306, 0.0, 0.4187992501038),
    "NERR8(max=4)@10": (0.3478260869565, 0.05263157894737, 0.0, 1.0),
    "NERR9(max=4)@10": (0.2460510328068, 0.01929703652653, 0.0, 1.0),
    "NERR10(p=0.7,max=4)": (0.2911910030416, 0.009189034386424, 0.0, 1.0),
    "NERR11(T=2,max=4)": (0.2804077810754, 0.02088015970317, 0.0, 1.0),
}


@pytest.mark.parametrize("name", IR_MEASURES)
def test_the_numbers_of_ir_measures(name: str) -> None:
    """Grades below min gain nothing, and a negative one (A3, as in TREC Web) neither."""
    qrels, found = synthetic_data()
    qrels["A"]["A3"] = -1.0
    run = {topic: {doc: float(score) for t, doc, _, score in found if t == topic} for topic in qrels}
    assert parse(name)(judged.judge(qrels, run)).tolist() == pytest.approx(IR_MEASURES[name], rel=1e-12)
