"""Rank and join, once: `judge` turns qrels and a run into a `Judged`."""

from judged.judging.join import judge
from judged.judging.judged import Judged, Ranking, TiePolicy, TopicPolicy
from judged.judging.lists import judge_list

__all__ = ["Judged", "Ranking", "TiePolicy", "TopicPolicy", "judge", "judge_list"]
