"""Choices and options as people spell them: accepted, or answered with what to write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import judged
from judged import InputError, MeasureError
from judged.comparison.choices import Choices, all_tests
from judged.results.spelling import canonical_name, one_of
from judged.stats.correction import CORRECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

QRELS = {f"q{i}": {"a": 1} for i in range(6)}
RUNS = {"old": {query: ["x", "a"] for query in QRELS}, "new": {query: ["a"] for query in QRELS}}


@pytest.mark.parametrize(
    ("spelling", "choice"),
    [
        ("t-test", "t"), ("ttest", "t"), ("T", "t"), ("Paired t-test", "t"), ("permutation", "randomization"),
        ("Randomization", "randomization"), ("randomized_tukey", "randomized-tukey"), ("Wilcoxon", "wilcoxon"),
        ("Holm", "holm"), ("BH", "bh"), ("Benjamini-Hochberg", "bh"), ("bonferroni", "bonferroni"),
    ],
)  # fmt: skip
def test_a_choice_however_it_is_spelled(spelling: str, choice: str) -> None:
    assert canonical_name(spelling, [*all_tests(), *CORRECTIONS]) == choice


def test_every_choice_is_itself_and_none_is_another() -> None:
    for names in (list(all_tests()), list(CORRECTIONS)):
        assert [canonical_name(name.upper(), names) for name in names] == names
    with pytest.raises(InputError, match=r"unknown test: 'tuky'\. Fix: did you mean tukey\? One of "):
        one_of("test", "tuky", all_tests())


def test_python_takes_the_spellings_and_results_have_one() -> None:
    comparison = judged.compare(QRELS, RUNS, "RR", test="t-test", correction="BH")
    assert (comparison.choices.test, comparison.choices.correction) == ("t", "bh")
    assert comparison.to_dict() == judged.compare(QRELS, RUNS, "RR", test="t", correction="bh").to_dict()
    assert Choices(test="Randomized Tukey").is_joint_test
    assert judged.stats.adjust([0.01, 0.04], "Holm").tolist() == [0.02, 0.04]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("NDCG10", "nDCG@10"),
        ("Recall100", "R@100"),
        ("P10", "P@10"),
        ("map-5", "AP@5"),
        ("ndcg_burges10", "ndcg_burges@10"),
    ],
)
def test_a_measure_without_its_at_sign(written: str, meant: str) -> None:
    with pytest.raises(MeasureError, match=rf"did you mean {re.escape(meant)}\?"):
        judged.measures.parse(written)
    judged.measures.parse(meant)


def test_topics_by_id_where_the_policy_stands() -> None:
    for call in (judged.evaluate, judged.compare):
        with pytest.raises(InputError, match=re.escape("""where="query_id in ('q1', 'q2')\"""")):
            call(QRELS, RUNS, "RR", topics="q1,q2")
    with pytest.raises(InputError, match=re.escape("""where="query_id == 'q1'\"""")):
        judged.stages(QRELS, RUNS["old"], topics=["q1"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "option", "fix"),
    [
        ("compare", "--decimals", "write --digits"),
        ("compare", "--confidence", "write --alpha"),
        ("evaluate", "--confidence", "write --level"),
        ("explain", "--level", "write --rel"),
        ("compare", "--csv", "write --format csv"),
        ("explain", "--topics", "write --topic"),
        ("compare", "--random_state", "write --seed"),
        ("compare", "--qrels", "judged compare"),
    ],
)
def test_an_option_by_another_name(run: Callable[..., Any], command: str, option: str, fix: str) -> None:
    done = run(command, option, "1")
    assert (done.code, f"Fix: {fix}" in done.err or f": {fix}" in done.err) == (2, True), done.err


def test_several_that_may_be_meant_are_told_apart(run: Callable[..., Any]) -> None:
    message = run("compare", "q", "a", "b", "--delta", "0.1").err
    assert re.search(r"write --min-difference \(.+\), or --margin \(.+\)", message)


def test_topics_by_id_on_the_command_line(run: Callable[..., Any]) -> None:
    for command in ("evaluate", "compare", "slices", "stages", "report", "matrix", "needs"):
        assert "--where \"query_id in ('t01', 't02')\"" in run(command, "q", "a", "--topics", "t01,t02").err
    assert "where" not in run("agree", "q", "a", "--topics", "t01,t02").err
