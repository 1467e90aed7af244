"""Advice: measures that suit the judgments and runs, measures to avoid, and the reasons."""

from judged.scoring.advice.advise import Advice, Recommendation, advise
from judged.scoring.advice.profile import Profile, RunProfile, build_profile
from judged.scoring.advice.rules import RULES, Predicate, Rule

__all__ = [
    "RULES",
    "Advice",
    "Predicate",
    "Profile",
    "Recommendation",
    "Rule",
    "RunProfile",
    "advise",
    "build_profile",
]  # fmt: skip
