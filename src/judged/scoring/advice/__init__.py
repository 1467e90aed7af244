"""Advice: which measures suit the judgments and runs at hand, which do not, and why. The rules are data."""

from judged.scoring.advice.advise import Advice, Recommendation, advise
from judged.scoring.advice.profile import Profile, RunProfile, profile_of
from judged.scoring.advice.rules import RULES, Condition, Rule

__all__ = ["RULES", "Advice", "Condition", "Profile", "Recommendation", "Rule", "RunProfile", "advise", "profile_of"]
