"""Accuracy of agents compared with their effort, and effects of their parts, such as the retriever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from judged.diagnosis.tradeoff.tradeoff import tradeoff_of_scores

if TYPE_CHECKING:
    from judged.diagnosis.tradeoff import Tradeoff
    from judged.scoring.evaluation.scores import Scores


def compare_effort(scores: Scores, **options: Any) -> Tradeoff:
    """Compare the first measure of agents with the others as efforts: systems that no other one dominates.

    Parameters
    ----------
    scores
        Result of `judged.pipelines.trajectories.evaluate` with two or more measures: accuracy, then efforts.
    options
        As for `Scores.tradeoff`.

    Examples
    --------
    >>> from judged.pipelines.trajectories import evaluate
    >>> trials = [{"query_id": q, "run_id": run, "answer": "7", "correct": run == "b",
    ...            "steps": [{"kind": "search", "documents": []}] * count}
    ...           for q in ("q1", "q2") for run, count in (("a", 1), ("b", 4))]
    >>> tradeoff = compare_effort(evaluate(trials, ["AnswerAccuracy", "NumSearches"]))
    >>> tradeoff.costs["b"]["NumSearches"]
    4.0
    """
    measure, *efforts = scores.measures
    costs = {
        run: {str(effort): scores.value(effort, run) for effort in efforts if not np.isnan(scores.value(effort, run))}
        for run in scores.run_names
    }
    intervals = {estimate.run: {} for estimate in scores.estimates()}
    for estimate in scores.estimates():
        if estimate.ci is not None and estimate.measure != str(measure):
            intervals[estimate.run][estimate.measure] = estimate.ci
    return tradeoff_of_scores(scores, costs, measure=measure, cost_intervals=intervals, **options)
