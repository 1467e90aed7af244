"""Evaluation of runs with qrels: `evaluate` returns `Scores`."""

from judged.scoring.default_measures import DEFAULT_MEASURES
from judged.scoring.evaluation.dialects import DIALECTS, Dialect, dialect_of
from judged.scoring.evaluation.evaluate import evaluate, score_lists
from judged.scoring.evaluation.facts import Estimate, Policies, QrelsFacts, RunFacts
from judged.scoring.evaluation.inputs import measures_of, runs_of
from judged.scoring.evaluation.scores import Scores

__all__ = [
    "DEFAULT_MEASURES",
    "DIALECTS",
    "Dialect",
    "Estimate",
    "Policies",
    "QrelsFacts",
    "RunFacts",
    "Scores",
    "dialect_of",
    "evaluate",
    "measures_of",
    "runs_of",
    "score_lists",
]
