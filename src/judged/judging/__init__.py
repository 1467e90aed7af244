"""Rank and join, once: `judge` turns qrels and a run into a `Judged`."""

from judged.judging.dense import Returned
from judged.judging.hits import Labels
from judged.judging.join import judge, judge_list
from judged.judging.judged import Judged
from judged.judging.ranking import Precision, Ranking, TiePolicy, TopicPolicy

__all__ = [
    "Judged",
    "Labels",
    "Precision",
    "Ranking",
    "Returned",
    "TiePolicy",
    "TopicPolicy",
    "judge",
    "judge_list",
]
