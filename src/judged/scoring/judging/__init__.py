"""Rank and join, once: `judge` turns qrels and a run into a `Judged`."""

from judged.scoring.judging.align import Returned
from judged.scoring.judging.join import judge, judge_list
from judged.scoring.judging.judged import Judged, Labels
from judged.scoring.judging.ranking import Precision, Ranking, TiePolicy, TopicPolicy

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
