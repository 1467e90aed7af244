"""`evaluate`: qrels and runs in, scores out."""

from judged.evaluation.inputs import DEFAULT_MEASURES, measures_of, qrels_of, runs_of
from judged.evaluation.scores import Estimate, Policies, QrelsFacts, RunFacts, Scores
from judged.evaluation.scoring import evaluate

__all__ = [
    "DEFAULT_MEASURES",
    "Estimate",
    "Policies",
    "QrelsFacts",
    "RunFacts",
    "Scores",
    "evaluate",
    "measures_of",
    "qrels_of",
    "runs_of",
]
