"""Scores of lists that are judged already: those that `evaluate` gives."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judged import InputError, Qrels, Run, evaluate, judge
from judged.data import sample
from judged.scoring.evaluation import score_lists
from judged.scoring.judging import TiePolicy, TopicPolicy
from strategies import collections

MEASURES = ("nDCG@3", "AP", "RR", "Judged@2", "NumRelRet")
TIES = [one for one in get_args(TiePolicy) if one != "rank"]


@given(
    collections(),
    st.sampled_from([one for one in get_args(TiePolicy) if one != "rank"]),
    st.sampled_from(get_args(TopicPolicy)),
)
@pytest.mark.filterwarnings("ignore::judged.JudgedWarning")
def test_they_are_those_of_evaluate(made: tuple[Any, Any], ties: Any, topics: Any) -> None:
    qrels, run = Qrels.of(made[0]), Run.of(made[1])
    try:
        expected = evaluate(qrels, run, MEASURES, ties=ties, topics=topics)
    except InputError:
        return  # no topic in common
    found = score_lists([judge(qrels, run, ties=ties)], MEASURES, topics=topics)
    assert found.query_ids == expected.query_ids
    np.testing.assert_array_equal(found.values, expected.values)
    assert asdict(found.policies) == asdict(expected.policies)
    assert found.warnings == expected.warnings


def test_everything_that_is_known_of_the_sample() -> None:
    qrels, runs = sample.qrels(), sample.runs()[:3]
    with pytest.warns(match="no documents returned"):
        expected = evaluate(qrels, sample.runs()[:4], MEASURES)
    del expected
    expected = evaluate(qrels, runs, MEASURES)
    found = score_lists([judge(qrels, run) for run in runs], MEASURES)
    assert found.summary(per_topic=True).json() == expected.summary(per_topic=True).json()


def test_lists_that_do_not_belong_together() -> None:
    qrels, run = Qrels.of({"q": {"a": 1}}), Run.of({"q": {"a": 1.0}})
    with pytest.raises(InputError, match="at least one result of `judge`"):
        score_lists([], "AP")
    with pytest.raises(InputError, match="must be judged with the same qrels"):
        score_lists([judge(qrels, run), judge(qrels, run, depth=1)], "AP")
    with pytest.raises(InputError, match="must be judged with the same qrels"):
        score_lists([judge(qrels, run), judge(Qrels.of({"q": {"a": 1}}), run)], "AP")
