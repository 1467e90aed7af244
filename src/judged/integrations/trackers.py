"""Log scores to MLflow or Weights & Biases, through their public interfaces; neither is a dependency."""

from __future__ import annotations

import math
import re
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from judged.errors import InputError

if TYPE_CHECKING:
    from judged.scoring.evaluation import Scores


def log_scores(
    scores: Scores, tracker: Any, *, step: int | None = None, run_id: str | None = None, per_topic: bool = True
) -> dict[str, float]:
    """Log each mean with the ends of its 95% confidence interval, and the scores of all topics.

    Metrics are called ``nDCG@10``, ``nDCG@10_low``, and ``nDCG@10_high``; with several runs, ``bm25/nDCG@10``. MLflow
    does not allow all characters: there, ``@`` becomes ``_at_``, and other characters become ``_``.

    Parameters
    ----------
    scores
        Result of `evaluate`.
    tracker
        The module ``mlflow``, an ``MlflowClient``, an active run of MLflow, the module ``wandb``, or a run of
        Weights & Biases.
    step
        Step of the metrics, such as that of a training.
    run_id
        Run of MLflow. An ``MlflowClient`` requires it; otherwise the default is the active run.
    per_topic
        Whether to add the scores of all topics: the file ``scores.parquet``, which `Scores.load` reads, and a table to
        look at (Weights & Biases: ``scores``; MLflow: ``scores.csv``). In MLflow, the step is part of these names.

    Returns
    -------
    dict
        Names and values of the logged metrics.

    Raises
    ------
    InputError
        If `tracker` is none of these, or two metrics would have the same name in MLflow.

    Examples
    --------
    >>> from judged import evaluate
    >>> class Client:  # as an MlflowClient
    ...     def log_metric(self, run_id, key, value, step=None):
    ...         print(run_id, key, round(value, 3))
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}}
    >>> scores = evaluate(qrels, {"q1": ["d1"], "q2": ["x", "d2"], "q3": ["d3"]}, "nDCG@10")
    >>> _ = scores.log_to(Client(), run_id="3f2a", per_topic=False)
    3f2a nDCG_at_10 0.877
    3f2a nDCG_at_10_low 0.064
    3f2a nDCG_at_10_high 1.0
    """
    metrics = _metrics(scores)
    with TemporaryDirectory() as folder:
        files = [Path(folder, f"scores{'' if step is None else f'-{step}'}.{suffix}") for suffix in ("parquet", "csv")]
        for file in files if per_topic else ():
            scores.save(file)
        if hasattr(tracker, "info"):  # an active run of MLflow
            tracker, run_id = import_module("mlflow"), tracker.info.run_id
        if hasattr(tracker, "log_metric"):
            run = {} if run_id is None else {"run_id": run_id}
            metrics = _mlflow_names(metrics)
            for name, value in metrics.items():
                tracker.log_metric(key=name, value=value, step=step, **run)
            for file in files if per_topic else ():
                tracker.log_artifact(local_path=str(file), artifact_path="judged", **run)
        elif hasattr(tracker, "log"):
            table = {"scores": _wandb_table(scores)} if per_topic else {}
            tracker.log({**metrics, **table}, step=step)
            if per_topic:
                tracker.log_artifact(str(files[0]), name="scores", type="scores")
        else:
            problem = f"scores cannot be logged to an object of type {type(tracker).__name__}"
            raise InputError(problem, fix="use mlflow, an MlflowClient, wandb, or a run of one of these")
    return metrics


def _metrics(scores: Scores) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for estimate in scores.estimates():
        name = estimate.measure if len(scores.runs) == 1 else f"{estimate.run}/{estimate.measure}"
        metrics[name] = estimate.value
        if estimate.ci:
            metrics[f"{name}_low"], metrics[f"{name}_high"] = estimate.ci
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _mlflow_names(metrics: dict[str, float]) -> dict[str, float]:
    names = [re.sub(r"[^\w./ -]+_?", "_", name.replace("@", "_at_")).rstrip("_") for name in metrics]
    if duplicates := [name for name in names if names.count(name) > 1]:
        problem = f"two metrics would be called {duplicates[0]!r} in MLflow"
        raise InputError(problem, fix="use names of runs that differ in letters or digits")
    return dict(zip(names, metrics.values(), strict=True))


def _wandb_table(scores: Scores) -> Any:
    columns = scores.to_arrow().to_pydict()
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    return import_module("wandb").Table(columns=list(columns), data=rows)
