"""Rank runs and join them with qrels: `judge` returns a `Judged`."""

from judged.scoring.judging.align import ReturnedDocs
from judged.scoring.judging.join import judge, judge_list
from judged.scoring.judging.judged import AspectLabels, Judged
from judged.scoring.judging.ranking import Precision, RankingRules, TiePolicy, TopicPolicy

__all__ = [
    "AspectLabels",
    "Judged",
    "Precision",
    "RankingRules",
    "ReturnedDocs",
    "TiePolicy",
    "TopicPolicy",
    "judge",
    "judge_list",
]
