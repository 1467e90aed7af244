"""Half a million doubles, each equal to the last bit to what pytrec_eval-terrier 0.5.11 computes.

Its engine is trec_eval 9.0.8: every measure that it offers, with its default parameters and with others.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from judged import evaluate, judge
from judged.scoring.measures import parse
from judged.scoring.measures.aggregates import FLOOR
from judged.scoring.peers.trec_eval import expand

pytrec_eval = pytest.importorskip("pytrec_eval")
engine = pytest.importorskip("pytrec_eval_ext").RelevanceEvaluator  # its own parser refuses gains, but computes them

CUTS = ",".join(map(str, (1, 2, 3, 5, 10, 15, 20, 30, 100, 1000)))
TEXT = {"relstring", "runid"}
ALL = [
    f"{name}.{CUTS}" if name in {"P", "recall", "relative_P", "success", "map_cut", "ndcg_cut"} else name
    for name in sorted(set(pytrec_eval.supported_measures) - TEXT)
]
TIED_SCORES = [float(number) / 8 for number in range(-20, 60)]
NEAR_SCORES = [1 + number * 2.0**-26 for number in range(40)]  # 32 bits hold steps of 2^-23: five different ones
LETTERS = ["é", "日", "Z", "a", '"', "ß", "-", "_", "9", "10", "e\u0301", "\ufffd", "\U0001d4b3"]

Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def collection(seed: int, topics: int, grades: list[int] | None = None) -> tuple[Qrels, Run]:
    """Create judgments and a run: deep and short rankings, ties, topics missing on both sides, odd ids."""
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    grades = grades or chance.choice([[0, 1], [-1, 0, 1, 2, 3, 4], [0, 0, 0, 0, 1, 2, 4], [-2, -1, 0, 1], [1, 2]])
    scores = chance.choice([TIED_SCORES, TIED_SCORES[:3], NEAR_SCORES, [float(number) for number in range(2000)]])
    docs = [f"{chance.choice(LETTERS)}{number}{chance.choice(LETTERS)}" for number in range(chance.choice([30, 300]))]
    qrels, run = {}, {}
    for number in range(topics):
        topic = f"{chance.choice(LETTERS)}{number}"
        judged_docs = chance.sample(docs, chance.randint(1, len(docs) // 2))
        returned = chance.sample(docs, chance.choice([1, 2, 7, len(docs) // 2, len(docs)]))
        if chance.random() > 0.05:
            # all-negative judgments break trec_eval itself: one grade is never negative
            qrels[topic] = {doc: chance.choice(grades) for doc in judged_docs} | {judged_docs[0]: max(grades)}
            if chance.random() < 0.1:
                qrels[topic] = dict.fromkeys(qrels[topic], 0)
        if chance.random() > 0.05:
            run[topic] = {doc: chance.choice(scores) for doc in returned}
    return qrels, run


def compare(qrels: Qrels, run: Run, specs: list[str], level: int = 1, *, judged_only: bool = False) -> int:
    """Hold every double of their answer against ours, and count them."""
    theirs = engine(
        query_relevance=qrels, measures=set(specs), relevance_level=level, judged_docs_only_flag=judged_only
    ).evaluate(run)
    lines = {line.name: line for line in expand(*specs, level=level, dialect="trec_eval-9")}
    ours = {name: str(condensed(line.measure) if judged_only else line.measure) for name, line in lines.items()}
    scores = evaluate(qrels, run, list(dict.fromkeys(ours.values())), topics="both", precision="single")
    computed = scores.per_topic()["run"]
    assert set(scores.query_ids) == set(theirs)
    wrong, compared = [], 0
    for topic, values in theirs.items():
        for printed, value in values.items():
            name = printed if printed in lines else next(name for name in lines if lines[name].root == printed)
            score = computed[ours[name]][topic]
            if printed.startswith("gm_"):
                score = math.log(max(score, FLOOR))  # trec_eval keeps the logarithm
            compared += 1
            if printed == "Rndcg" and math.isnan(value):  # relevant documents, none of which gains: 0/0 there
                assert score == 0.0
            elif score != value:
                wrong.append((topic, ours[name], value, score))
    assert not wrong, (len(wrong), wrong[:10])
    return compared


def condensed(measure: Any) -> Any:
    return measure.replace(judged_only=True)


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_every_double_is_the_same(seed: int, level: int) -> None:
    assert compare(*collection(seed, 250), ALL, level) > 23_000  # of each of twenty cases


def test_the_cases_hold_every_kind_of_trouble() -> None:
    pairs = [collection(seed, 250) for seed in range(10)]
    assert {grade for qrels, _ in pairs for docs in qrels.values() for grade in docs.values()} == {*range(-2, 5)}
    assert {len(docs) for _, run in pairs for docs in run.values()} >= {1, 2, 7, 15, 30, 150, 300}
    assert any(set(NEAR_SCORES) & set(docs.values()) for _, run in pairs for docs in run.values())
    assert all(set(qrels) - set(run) and set(run) - set(qrels) for qrels, run in pairs)
    assert len(ALL) == 32


@pytest.mark.parametrize("seed", [30, 31, 32])
@pytest.mark.parametrize("level", [3, 7])
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_other_levels(seed: int, level: int) -> None:
    assert compare(*collection(seed, 100, [-1, 0, 1, 2, 3, 4]), ALL, level) > 8_000


WEIGHED = ("ndcg", "ndcg_rel", "Rndcg", "G")


@pytest.mark.parametrize("seed", range(40, 46))
@pytest.mark.parametrize(
    "gains",
    [
        "1=3,2=9",
        "2=1,1=2",  # the higher grade is worth less
        "1=1.5,2=2.5,3=3.75,4=10.25",
        "1=1.1,2=2.3,3=3.7,4=100.9",
        "1=0,2=1",  # level 1 gains nothing
        "0=5,1=7",  # not relevant gains
        "1=-1,3=8",
        "0=-2,4=6.5",
        "7=11",  # no document has this grade
    ],
)
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_gains_of_ones_own(seed: int, gains: str) -> None:
    pair = collection(seed, 60, [-1, 0, 0, 1, 1, 2, 3, 4])
    assert compare(*pair, [f"{name}.{gains}" for name in WEIGHED]) > 180


@pytest.mark.parametrize("seed", [123, 174, 186, 190, 305, 313, 315, 376])
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_gains_that_are_no_round_numbers(seed: int) -> None:
    """In each of these, G has a double that is another if k is added at once instead of k times 1.

    Gains stand more than 1 apart: trec_eval does not put others in order.
    """
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    values = sorted(chance.uniform(-2, 6) for _ in range(5))
    for index in range(1, 5):
        values[index] = max(values[index], values[index - 1] + 1.01)
    gains = ",".join(f"{level}={gain:.3f}" for level, gain in zip(chance.sample(range(5), 5), values, strict=True))
    pair = collection(seed, 60, [-1, 0, 0, 1, 1, 2, 3, 4])
    assert compare(*pair, [f"{name}.{gains}" for name in WEIGHED]) > 180


@pytest.mark.parametrize("seed", range(50, 54))
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_other_parameters(seed: int) -> None:
    specs = ["utility.2,-0.5,-1,0.25", "set_F.4", "11pt_avg.0.25,0.5,0.75", "Rprec_mult.0.1,0.3,1.7,5"]
    specs += ["iprec_at_recall.0.05,0.33,0.5,0.95"]
    assert compare(*collection(seed, 100), specs) > 800


@pytest.mark.parametrize("seed", range(60, 64))
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_without_unjudged_documents(seed: int) -> None:
    """Their -J is our judged_only; an empty ranking left by it is in a test of its own."""
    qrels, run = collection(seed, 100)
    run = {
        topic: docs
        for topic, docs in run.items()
        if any(qrels.get(topic, {}).get(doc, -1) >= 0 for doc in docs)
    }  # fmt: skip
    able = [spec for spec in ALL if all(hasattr(line.measure, "judged_only") for line in expand(spec))]
    assert compare(qrels, run, able, judged_only=True) > 4_000


def test_an_empty_ranking_is_no_number_to_trec_eval() -> None:
    """It divides 0 by 0 for recall points that are reached without a document; here they score 0."""
    theirs = engine(
        query_relevance={"q": {"a": 1}},
        measures={"iprec_at_recall", "11pt_avg"},
        relevance_level=1,
        judged_docs_only_flag=True,
    ).evaluate({"q": {"x": 1.0}})["q"]
    assert [name for name, value in theirs.items() if math.isnan(value)] == ["iprec_at_recall_0.00", "11pt_avg"]
    empty = judge({"q": {"a": 1}}, {"q": {"x": 1.0}})
    for name in ("IPrec(judged_only=true)@0", "AP11(judged_only=true)", "IPrec(judged_only=true)@1"):
        assert parse(name)(empty).tolist() == [0.0]


@pytest.mark.parametrize("seed", [20, 21])
def test_deep_rankings_sum_as_c_does(seed: int) -> None:
    """Three thousand relevant documents in one ranking: any other order of addition would show."""
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    docs = [f"d{number}" for number in range(6000)]
    qrels = {"q": {doc: chance.choice([0, 1, 2, 3]) for doc in docs}}
    run = {"q": {doc: float(position) for position, doc in enumerate(chance.sample(docs, 5000))}}
    assert compare(qrels, run, ALL) == len(expand(*ALL))


def test_scores_that_differ_below_single_precision_are_where_versions_differ() -> None:
    """trec_eval 9 sees a tie and takes the greater id first; trec_eval 10, as judged, compares doubles."""
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.100000002, "z": 0.100000001}}
    assert pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"] == 0.5
    assert evaluate(qrels, run, "RR").value("RR") == 1.0
    assert evaluate(qrels, run, "RR", precision="single").value("RR") == 0.5
