"""Rank and join, once: `judge` turns qrels and a run into a `Judged`."""

from judged.judging.dense import Returned
from judged.judging.join import judge
from judged.judging.judged import Judged, Labels
from judged.judging.lists import judge_list
from judged.judging.pairs import Pairs, Preferences, preferences
from judged.judging.policies import Precision, Ranking, TiePolicy, TopicPolicy
from judged.judging.split import ByAspect, by_aspect

__all__ = [
    "ByAspect",
    "Judged",
    "Labels",
    "Pairs",
    "Precision",
    "Preferences",
    "Ranking",
    "Returned",
    "TiePolicy",
    "TopicPolicy",
    "by_aspect",
    "judge",
    "judge_list",
    "preferences",
]
