"""Scores that other tools report for a topic: each row of the table in docs/same-name.md, and the tools themselves.

Unless stated otherwise, these programs computed the expected values for the list of the test:
pytrec_eval-terrier 0.5.11 (trec_eval 9.0.8), ir_measures 0.4.3, ranx 0.3.21 with make_comparable, trectools 0.0.50,
cwl-eval 1.0.12, scikit-learn 1.9.1, gdeval through ir_measures, torchmetrics 1.9.0 with PyTorch 2.13.0.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings

from judged import InputError, compare_tools, judge
from judged.scoring.explanation import ToolComparison
from judged.scoring.measures import parse
from judged.scoring.peers.tool_measures import TOOLS
from strategies import collections

Grades = list[Any]


def compare_on_list(
    measure: str, grades: Grades, tools: str, missing: Grades | None = None, **options: Any
) -> ToolComparison:
    """Compare tools on a list of grades in rank order; None is a document without a judgment."""
    qrels = {f"d{rank}": grade for rank, grade in enumerate(grades, 1) if grade is not None}
    qrels |= {f"m{rank}": grade for rank, grade in enumerate(missing or [], 1)}
    run = {f"d{rank}": float(len(grades) + 1 - rank) for rank in range(1, len(grades) + 1)}
    return compare_tools({"q": qrels}, {"q": run}, "q", measure, tools, **options)


def scores(measure: str, grades: Grades, tools: str, missing: Grades | None = None, **options: Any) -> list[Any]:
    comparison = compare_on_list(measure, grades, tools, missing, **options)
    return [comparison.score, *(score.score for score in comparison.tool_scores)]


def decisive_rules(comparison: ToolComparison, tool: str) -> list[str]:
    return next([r.rule for r in score.rules if r.matters] for score in comparison.tool_scores if score.tool == tool)


def test_rbp_without_a_persistence() -> None:
    tools = "ir_measures,trectools,ranx,trec_eval-10,cwl_eval,lenskit"
    values = scores("RBP(p=0.5)", [1, 0, 1], tools)
    assert values == pytest.approx([0.625, 0.328, 0.328, 0.328, 0.181, 0.181, 0.15 * (1 + 0.85**2)], rel=1e-14)
    assert decisive_rules(compare_on_list("RBP(p=0.5)", [1, 0, 1], tools), "lenskit") == ["p=0.85 instead of 0.5"]


def test_rbp_with_grades() -> None:
    values = scores("RBP(p=0.8)", [3, 0, 1], "ir_measures,ranx,trec_eval-10,cwl_eval")
    topic_highest = 0.1 * (1 + 0.9**2 / 3)  # by hand: gains 3/3, 0, 1/3
    assert values == pytest.approx([0.328, 0.328, 0.7279999999999999, topic_highest, topic_highest], rel=1e-14)
    assert decisive_rules(compare_on_list("RBP(p=0.8)", [3, 0, 1], "ranx"), "ranx") == [
        "RBP(p=0.8,gain=graded,max=3) instead of RBP(p=0.8)",
        "the tool does not scale grades: the score is multiplied by 3",
    ]


def test_err() -> None:
    comparison = compare_on_list("ERR(max=3)@10", [2, 0, 1], "gdeval,ir_measures")
    assert comparison.score == pytest.approx(0.4010416666666667)
    assert [score.printed for score in comparison.tool_scores] == ["0.20443", repr(comparison.tool_scores[1].score)]
    assert decisive_rules(comparison, "gdeval") == ["max=4 instead of 3"]


def test_the_gain_of_ndcg() -> None:
    comparison = compare_on_list("nDCG@5", [3, 2, 0, 1, 2], "pytrec_eval,ranx,gdeval,beir")
    assert [score.printed for score in comparison.tool_scores] == ["0.9602", "0.9602471757862604", "0.96864", "0.96025"]
    assert decisive_rules(comparison, "gdeval") == ["gain=exp2 instead of linear"]
    assert decisive_rules(comparison, "pytrec_eval") == []


def test_the_ideal_of_ndcg() -> None:
    comparison = compare_on_list("nDCG", [0, 4], "trec_eval-9,scikit-learn,torchmetrics", missing=[4])
    assert comparison.score == 0.38685280723454163
    assert comparison.tool_scores[0].score == 0.38685280723454163
    assert [score.score for score in comparison.tool_scores[1:]] == pytest.approx([0.6309297535714573] * 2, rel=1e-14)
    assert decisive_rules(comparison, "scikit-learn") == ["judgments of documents that were not returned are ignored"]
    max_dcg = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    assert scores("nDCG@10", [0, 4], "cwl_eval", missing=[4])[1] == pytest.approx((1 / math.log2(3)) / max_dcg)


def test_ndcg_and_the_relevance_level() -> None:
    comparison = compare_on_list("nDCG", [1, 2], "trec_eval-9,ir_measures,ranx", missing=[2], rel=2)
    assert [score.score for score in comparison.tool_scores] == [
        0.6012610260559063,
        0.6012610260559063,
        0.38685280723454163,
    ]
    assert comparison.tool_scores[2].tool_measure == "ndcg-l2"
    comparison = compare_on_list("AP(rel=2)", [1, 2], "trec_eval-9,ir_measures,ranx", missing=[2])
    assert [score.score for score in comparison.tool_scores] == [0.25, 0.25, 0.25]  # by hand: P@2 is 1/2, of two
    assert [score.measure for score in comparison.tool_scores] == ["AP(rel=2)"] * 3


def test_ndcg_and_ndcg_cut() -> None:
    assert scores("nDCG", [1, 0, 1], "pytrec_eval", missing=[1])[1] == 0.7039180890341347
    assert scores("nDCG@2", [1, 0, 1], "pytrec_eval", missing=[1])[1] == 0.6131471927654584


def test_recall_at_k() -> None:
    assert scores("R@2", [1, 0, 1], "pytrec_eval,ir_measures,beir", missing=[1, 1, 1]) == [0.2, 0.2, 0.2, 0.2]
    assert scores("RelP@2", [1, 0, 1], "pytrec_eval,beir", missing=[1, 1, 1]) == [0.5, 0.5, 0.5]


def test_judged_at_k() -> None:
    comparison = compare_on_list("Judged@10", [1, None, 0], "ir_measures,trec_eval-10,beir")
    assert [score.score for score in comparison.tool_scores] == pytest.approx([2 / 3, 0.1, 0.1])
    assert decisive_rules(comparison, "beir") == ["the tool computes another measure: Hole@10"]


def test_precision_of_short_lists() -> None:
    assert scores("P@10", [1, 0, 1], "pytrec_eval,ir_measures,ranx") == [0.2, 0.2, 0.2, 0.2]
    assert scores("SetP", [1, 0, 1], "pytrec_eval,ranx") == pytest.approx([2 / 3] * 3)


def test_f() -> None:
    values = scores("SetF(beta=2)", [1, 0, 0, 0], "pytrec_eval,ir_measures", missing=[1])
    f1 = 2 * (1 / 4 * 1 / 2) / (1 / 4 + 1 / 2)  # their default: beta is 1
    assert values == pytest.approx([5 * (1 / 4 * 1 / 2) / (4 * 1 / 4 + 1 / 2), f1, f1])
    assert scores("F@3", [1, 0, 0, 0], "ranx", missing=[1]) == pytest.approx([0.4, 0.4])


def test_mrr() -> None:
    comparison = compare_on_list("RR", [None] * 10 + [1], "trec_eval-9,ir_measures,ranx,msmarco")
    assert [score.score for score in comparison.tool_scores] == [1 / 11, 1 / 11, 1 / 11, 0.0]
    assert decisive_rules(comparison, "msmarco") == ["cutoff=10"]
    assert compare_on_list("RR@5", [None] * 6 + [1], "msmarco").tool_scores[0].score == 1 / 7  # its cutoff is always 10


def test_a_level_goes_to_the_tools_that_take_one() -> None:
    comparison = compare_on_list("RR(rel=2)@10", [1, 2], "msmarco,trec_eval-9,beir,lenskit")
    assert comparison.score == 0.5
    assert [score.score for score in comparison.tool_scores[:3]] == [
        1.0,
        0.5,
        1.0,
    ]  # msmarco and BEIR count every grade from 1
    level_2, level_3 = (scores("RBP(p=0.8)", [1, 2, 3], "ranx", rel=level)[1] for level in (2, 3))
    assert (level_2, level_3) == pytest.approx((0.704, 0.384))  # ranx 0.3.21


def test_tools_with_their_own_order_of_ties_are_marked() -> None:
    comparison = compare_tools(
        {"q": {"a": 1, "b": 0}}, {"q": {"a": 1.0, "b": 1.0}}, "q", "nDCG", "scikit-learn,pytrec_eval"
    )
    assert [bool(score.caveat) for score in comparison.tool_scores] == [True, False]
    assert comparison.tool_scores[0].caveat[-40:] in " ".join(comparison.text().split())
    untied = compare_tools({"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}, "q", "nDCG", "scikit-learn")
    assert not untied.tool_scores[0].caveat


def test_high_grades_keep_their_digits() -> None:
    comparison = compare_tools({"q": {"a": 1234567}}, {"q": {"a": 1.0}}, "q", "RBP(p=0.8)", "cwl_eval")
    assert comparison.tool_scores[0].measure == "RBP(p=0.9,gain=graded,max=1234567)"


def test_bpref() -> None:
    assert scores("Bpref", [0, 1, 0, 1], "pytrec_eval,ir_measures,ranx", missing=[0]) == [0.25] * 4


def test_topics_without_relevant_documents() -> None:
    comparison = compare_on_list("nDCG@5", [0, 0], "trec_eval-10,ir_measures,gdeval")
    assert [score.printed for score in comparison.tool_scores] == ["0.0000", "0.0", "does not count"]
    assert decisive_rules(comparison, "gdeval") == ["undefined=skip instead of 0"]


def test_missing_topics() -> None:
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}}, {"1": {"a": 1.0}}
    comparison = compare_tools(qrels, run, "2", "AP", "trec_eval-9,pytrec_eval,trectools,ir_measures,trec_eval-10")
    assert [score.printed for score in comparison.tool_scores] == ["does not count"] * 3 + ["0.0", "0.0000"]
    assert decisive_rules(comparison, "trec_eval-9") == ["topics missing from the run do not count"]
    printed = [compare_tools(qrels, run, "2", name, "beir").tool_scores[0].printed for name in ("RR@10", "nDCG@10")]
    assert printed == ["0.00000", "does not count"]


def test_average_precision_where_documents_are_missing() -> None:
    values = scores("AP", [1, 0, 1], "pytrec_eval,torchmetrics,cwl_eval", missing=[1, 1])
    assert values == pytest.approx([5 / 12, 5 / 12, 5 / 6, 5 / 6])


TORCHMETRICS = json.loads((Path(__file__).parent / "torchmetrics-1.9.0.json").read_text(encoding="utf-8"))["cases"]
"""Values that torchmetrics 1.9.0 returned for lists of grades with the scores n, n - 1, ..., 1, plus a shift."""


@pytest.mark.parametrize("shift", [0.0, -2.5])
def test_torchmetrics_itself(shift: float) -> None:
    """With the shift, the last two scores are below 0. AP, RR, P, and recall count such documents as not relevant."""
    mismatches: list[Any] = []
    for case in TORCHMETRICS:
        if case["shift"] != shift:
            continue
        count = len(case["grades"])
        qrels = {"q": {f"d{i}": grade for i, grade in enumerate(case["grades"])}}
        run = {"q": {f"d{i}": count - i + shift for i in range(count)}}
        for measure, value in case["values"].items():
            tool_score = compare_tools(qrels, run, "q", measure, "torchmetrics").tool_scores[0]
            mismatches += [(case, measure, tool_score.score)] if abs(tool_score.score - value) > 2e-6 else []
    assert mismatches == []


def test_torchmetrics_with_a_cutoff() -> None:
    """AP of 1, 0, 0, 1 at 2 is 1/1 over the one relevant document above the cutoff."""
    comparison = compare_on_list("AP@2", [1, 0, 0, 1], "torchmetrics")
    assert (comparison.score, comparison.tool_scores[0].score) == (0.5, 1.0)
    assert (comparison.tool_scores[0].tool_measure, comparison.tool_scores[0].measure) == (
        "retrieval_average_precision(top_k=2)",
        "AP(norm=returned)@2",
    )
    assert compare_on_list("RR@5", [0, 0, 0, 0, 0, 1], "torchmetrics").tool_scores[0].score == 0.0
    assert (
        compare_on_list("R@1", [1, 1], "torchmetrics", missing=[1, 1]).tool_scores[0].score == 0.5
    )  # 2 of 4: not returned
    assert compare_on_list("AP(rel=2)", [1, 2, 3], "torchmetrics").tool_scores[0].score == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )


@pytest.mark.parametrize(
    ("run", "score"),
    [
        (["b", "a"], 0.5),
        ({"b": -1.0, "a": -2.0}, 0.5),
        ({"b": 0.0, "a": -1.0}, 0.5),
        ({"b": -1.0, "a": -2.5}, 0.0),
        ({"b": 0.0, "a": -2.0}, 0.0),
    ],
)
def test_scores_that_stand_for_ranks_lose_no_document(run: Any, score: float) -> None:
    other: Any = ["a"] if isinstance(run, list) else {"a": 2.0}
    comparison = compare_tools({"q": {"a": 1}, "p": {"a": 1}}, {"q": run, "p": other}, "q", "RR", "torchmetrics")
    assert (comparison.score, comparison.tool_scores[0].score) == (0.5, score)


def test_accuracy() -> None:
    comparison = compare_on_list("Accuracy(n=1000)", [1, 0, None, 1, 0], "ir_measures,beir", missing=[1])
    assert [score.score for score in comparison.tool_scores] == pytest.approx([2 / 3, 1.0])
    assert [score.measure for score in comparison.tool_scores] == ["PairAccuracy", "Success@10"]


def test_rules_about_order_and_judgments() -> None:
    qrels, run = {"q": {"a": 2, "b": 0, "q": 1}}, {"q": {"q": 3.0, "b": 1.00000001, "a": 1.0}}
    comparison = compare_tools(qrels, run, "q", "RR@10", "pytrec_eval,beir,msmarco")
    assert [score.score for score in comparison.tool_scores] == [
        1.0,
        0.5,
        1.0,
    ]  # beir: q is left out, b and a are equal in 32 bits
    assert [score.rule for score in comparison.tool_scores[1].rules] == [
        "a document whose id equals the topic id is removed",
        "scores are compared as 32-bit numbers",
    ]
    assert [rule.score for rule in comparison.tool_scores[1].rules] == [0.5, 0.5]
    assert (
        comparison.tool_scores[2].rules[0].rule == "every judged document counts as relevant, regardless of its grade"
    )


def test_forms() -> None:
    comparison = compare_on_list("nDCG@5", [1, 3], "gdeval,msmarco")
    rows = comparison.table().grid().rows
    assert rows[1:] == (
        ("gdeval", "ndcg@5", "nDCG(gain=exp2,undefined=skip)@5", "0.70981", "gain=exp2 instead of linear"),
        ("msmarco", "", "", "-", "the tool does not have this measure"),
    )
    assert rows[0] == ("judged", "nDCG@5", "nDCG@5", "0.7967075809905066", "")
    assert comparison.title == "nDCG@5 of topic q, run run, compared with other tools"
    tools = comparison.to_dict()["tools"]
    assert tools[1]["rules"][0] == {
        "rule": "gain=exp2 instead of linear",
        "score": pytest.approx(0.7098, abs=1e-4),
        "matters": True,
    }
    assert tools[2]["score"] is None


def test_unknown_names() -> None:
    with pytest.raises(InputError, match=r"no tool 'trec_eval'.*Fix: use one of trec_eval-10, trec_eval-9\."):
        compare_on_list("nDCG", [1], "trec_eval")
    with pytest.raises(InputError, match="the qrels have no topic 'z'"):
        compare_tools({"q": {"a": 1}}, {"q": {"a": 1.0}}, "z", "nDCG", "ranx")


def test_every_reading_is_a_measure() -> None:
    for tool in TOOLS.values():
        for name, tool_measure in tool.aliases.items():
            measure_name = name.replace("@k", "@0.5" if name in {"IPrec@k", "RprecMult@k"} else "@5")
            with_parameters = {
                "RBP": "RBP(p=0.5)",
                "ERR": "ERR(max=4)",
                "ERR@5": "ERR(max=4)@5",
                "Accuracy": "Accuracy(n=9)",
            }
            comparison = compare_on_list(
                with_parameters.get(measure_name, measure_name), [1, 0, 2], tool.name, missing=[1]
            )
            assert comparison.tool_scores[0].tool_measure, (tool.name, name)
            assert parse(comparison.tool_scores[0].measure)
            assert tool_measure.name


NAMES = {"nDCG@5": "ndcg_cut_5", "nDCG": "ndcg", "AP": "map", "AP@2": "map_cut_2", "RR": "recip_rank", "P@5": "P_5",
         "R@2": "recall_2", "Bpref": "bpref", "Rprec": "Rprec"}  # fmt: skip


@pytest.mark.oracle
@settings(max_examples=60)
@given(collections())
def test_the_tools_themselves_agree(collection: tuple[Any, Any]) -> None:
    """pytrec_eval 0.5.11, which ir_measures 0.4.3 runs, on the same judgments and run."""
    pytrec_eval: Any = pytest.importorskip("pytrec_eval")
    float_qrels, run = collection
    qrels = {q: {d: int(g) for d, g in docs.items()} for q, docs in float_qrels.items()}
    assume(all(any(grade >= 0 for grade in docs.values()) for docs in qrels.values()))  # else trec_eval crashes
    topic = min(set(qrels) & set(run))
    assume(run[topic])
    tool = pytrec_eval.RelevanceEvaluator({topic: qrels[topic]}, {"ndcg_cut.5", "map_cut.2", "P.5", "recall.2",
                                          "ndcg", "map", "recip_rank", "bpref", "Rprec"})  # fmt: skip
    theirs = tool.evaluate({topic: run[topic]})[topic]
    for ours, name in NAMES.items():
        comparison = compare_tools(qrels, run, topic, ours, "pytrec_eval,ir_measures")
        assert comparison.tool_scores[0].score == theirs[name], ours
        assert comparison.tool_scores[1].score == theirs[name], ours
        assert comparison.score == float(parse(ours)(judge(qrels, run).only(topic))[0])
