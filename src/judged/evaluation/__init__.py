"""`evaluate`: qrels and runs in, scores out."""

from judged.evaluation.dialects import DIALECTS, Dialect, dialect_of
from judged.evaluation.evaluate import evaluate, score_lists
from judged.evaluation.facts import Estimate, Policies, QrelsFacts, RunFacts
from judged.evaluation.inputs import DEFAULT_MEASURES, measures_of, runs_of
from judged.evaluation.scores import Scores

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
