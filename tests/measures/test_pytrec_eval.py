"""More than 100,000 doubles, each equal to the last bit to what pytrec_eval-terrier 0.5.11 computes.

Its engine is trec_eval 9.0.8, which compares scores in single precision: all scores here are exact in it.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from judged import evaluate

pytrec_eval = pytest.importorskip("pytrec_eval")

CUTS = (1, 2, 3, 5, 10, 15, 20, 30, 100, 1000)
NAMES = {
    "map": "AP{}",
    "recip_rank": "RR{}",
    "Rprec": "Rprec{}",
    "bpref": "Bpref{}",
    "set_P": "SetP{}",
    "set_recall": "SetR{}",
    "set_F": "SetF{}",
    "num_ret": "NumRet",
    "num_rel": "NumRel{}",
    "num_rel_ret": "NumRelRet{}",
    "num_q": "NumQ",
    "ndcg": "nDCG",
}
AT_CUTS = {"map_cut": "AP{}", "P": "P{}", "recall": "R{}", "success": "Success{}", "ndcg_cut": "nDCG"}
TIED_SCORES = [float(whole) / 8 for whole in range(-20, 60)]  # exact in single precision, with many ties
LETTERS = ["é", "日", "Z", "a", '"', "ß", "-", "_", "9", "10", "e\u0301", "\ufffd", "\U0001d4b3"]


@cache
def table(level: int) -> dict[str, str]:
    """Give our name for each of theirs."""
    suffix = "" if level == 1 else f"(rel={level})"
    names = {theirs: ours.format(suffix) for theirs, ours in NAMES.items()}
    for theirs, ours in AT_CUTS.items():
        names |= {f"{theirs}_{k}": f"{ours.format(suffix)}@{k}" for k in CUTS}
    return names


def collection(seed: int, topics: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Make judgments and a run: deep and short rankings, ties, topics missing on both sides, odd ids."""
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    grades = chance.choice([[0, 1], [-1, 0, 1, 2, 3, 4], [0, 0, 0, 0, 1, 2, 4], [-2, -1, 0, 1], [1, 2]])
    scores = chance.choice([TIED_SCORES, TIED_SCORES[:3], [float(at) for at in range(2000)]])
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


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_every_double_is_the_same(seed: int, level: int) -> None:
    qrels, run = collection(seed, 250)
    names = table(level)
    wanted = {*NAMES, *(f"{name}.{','.join(map(str, CUTS))}" for name in AT_CUTS)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, wanted, relevance_level=level).evaluate(run)
    scores = evaluate(qrels, run, list(names.values()), topics="both")
    ours = scores.per_topic()["run"]
    assert set(scores.query_ids) == set(theirs)
    wrong = [
        (topic, name, value, ours[names[name]][topic])
        for topic, values in theirs.items()
        for name, value in values.items()
        if ours[names[name]][topic] != value
    ]
    assert not wrong, wrong[:10]
    assert {name for values in theirs.values() for name in values} == set(names)
    assert len(theirs) * len(names) > 12_000  # of each of twelve cases


@pytest.mark.parametrize("seed", [20, 21])
def test_deep_rankings_sum_as_c_does(seed: int) -> None:
    """Three thousand relevant documents in one ranking: any other order of addition would show."""
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    docs = [f"d{number}" for number in range(6000)]
    qrels = {"q": {doc: chance.choice([0, 1, 2, 3]) for doc in docs}}
    run = {"q": {doc: float(at) for at, doc in enumerate(chance.sample(docs, 5000))}}
    names = {"map": "AP", "ndcg": "nDCG", "bpref": "Bpref", "ndcg_cut_1000": "nDCG@1000"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg", "bpref", "ndcg_cut.1000"}).evaluate(run)["q"]
    ours = evaluate(qrels, run, list(names.values())).per_topic()["run"]
    for name, mine in names.items():
        assert ours[mine]["q"] == theirs[name], name


def test_scores_that_differ_below_single_precision_are_where_versions_differ() -> None:
    """trec_eval 9 sees a tie and takes the greater id first; trec_eval 10, as judged, compares doubles."""
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 0.100000002, "z": 0.100000001}}
    assert pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q"]["recip_rank"] == 0.5
    assert evaluate(qrels, run, "RR").value("RR") == 1.0
