"""Results of an experiment: scores, costs, and failures."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judged.data.json_rows import check_shape
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.topics import Topics
from judged.errors import InputError, JudgedWarning, MeasureError
from judged.pipelines.experiments.collection import missing_query_notes
from judged.pipelines.experiments.generated_answers import read_experiment_responses, score_runs
from judged.pipelines.experiments.limits import QUANTILES, quantile
from judged.pipelines.experiments.neighbors import NeighborSearch
from judged.pipelines.experiments.worker import COSTS, FAILURE, RUN, TRACES
from judged.pipelines.traces import read_traces
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.results.spelling import use_one_of
from judged.scoring.evaluation import measures_of
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.traces import Traces
    from judged.scoring.evaluation import Scores

PLAN = "plan.json"
_FIX = "use the output folder of 'judged experiment run', or run the experiment again"


class RefusedQuery(NamedTuple):
    """A query that an engine rejected. It counts as a query without results."""

    query_id: str
    query: str
    engine: str  # or name of a node of a pipeline
    reason: str


@dataclass(frozen=True, eq=False)
class Results:
    """Results of an experiment.

    Attributes
    ----------
    scores : Scores
        Scores of all completed configurations, control first: `evaluate` of the saved runs.
    control : str
        Configuration that all others are compared with.
    levels : dict of dict
        By configuration and factor.
    costs : dict of dict
        By configuration: ``index_seconds, index_cpu_seconds, index_joules, peak_mb, index_mb, cold_ms, p50_ms, p95_ms,
        p99_ms`` and, if throughput was measured, ``queries_per_second``; None if unknown. ``p50_ms``, ``p95_ms``, and
        ``p99_ms`` are quantiles over the queries of a round, median over rounds. ``p50_ms_ci`` is the 95% interval over
        queries, None with too few queries. ``p50_ms_noise`` is the variation between rounds (see
        `judged.pipelines.experiments.limits.quantile`), None with fewer than three rounds: if two of these overlap, the
        difference is noise. A configuration that generates answers also has ``answer_ms``, ``tokens_in``, and
        ``tokens_out``: median milliseconds and mean tokens per answer.
    refused : dict of tuple of RefusedQuery
        Rejected queries, by configuration.
    failures : dict
        Reason why a configuration has no results, by name.
    left_out : tuple of (levels, reason)
        Combinations that the plan omits.
    machine : dict
        Machine of the measurement, by configuration.
    neighbors : dict of NeighborSearch
        By configuration that searches vectors without a pipeline: its results, compared with exact search.
    qrels : Qrels
    queries : Topics
    responses : Responses or None
        Generated answers with verdicts: the tables in ``responses`` of the folder.
    folder : Path
    """

    scores: Scores
    control: str
    levels: Mapping[str, Mapping[str, Any]]
    costs: Mapping[str, Mapping[str, Any]]
    refused: Mapping[str, tuple[RefusedQuery, ...]]
    failures: Mapping[str, str]
    left_out: tuple[tuple[Mapping[str, Any], str], ...] = field(repr=False)
    machine: Mapping[str, Mapping[str, Any]] = field(repr=False)
    neighbors: Mapping[str, NeighborSearch] = field(repr=False)
    qrels: Qrels = field(repr=False)
    queries: Topics = field(repr=False)
    responses: Responses | None = field(repr=False)
    folder: Path

    def run(self, configuration: str) -> Run:
        """Return the saved run of a configuration."""
        return Run.scan(self._configuration_folder(configuration) / RUN, name=configuration)

    def traces(self, configuration: str) -> Traces:
        """Return the results of each node of a configuration, by query, as traces."""
        return read_traces(self._configuration_folder(configuration) / TRACES)

    def _configuration_folder(self, configuration: str) -> Path:
        keys = {config["name"]: config["key"] for config in _read_plan(self.folder)["configurations"]}
        if configuration not in self.levels:
            raise InputError(f"there are no results of {configuration!r}", fix=use_one_of(self.levels))
        return results_folder(self.folder, keys[configuration])


def results_folder(folder: Path, key: str) -> Path:
    """Return the folder of a configuration's results. It is complete or does not exist."""
    return folder / "configurations" / key


def load(folder: str | Path, measures: Any = ()) -> Results:
    """Read the results of a finished or unfinished experiment.

    Parameters
    ----------
    folder
        Output folder of `run`.
    measures
        Additional measures to score the saved runs by; nothing is searched again.

    Raises
    ------
    InputError
        If there are no results, or none of the control.
    MeasureError
        If a measure is invalid.
    """
    path = Path(folder)
    plan = _read_plan(path)
    if not plan["configurations"]:
        raise InputError("the plan has no configurations", fix=_FIX, path=str(path / PLAN))
    folders = {config["name"]: results_folder(path, config["key"]) for config in plan["configurations"]}
    completed = {config["name"]: config for config in plan["configurations"] if folders[config["name"]].is_dir()}
    control = plan["configurations"][0]
    if control["name"] not in completed:
        problem, fix = _failure(path, control["key"])
        fix = fix or "correct the problem, and run the experiment again"
        raise InputError(f"the control configuration has no results: {problem}", fix=fix, path=str(path))
    failed = [config for config in plan["configurations"] if config["name"] not in completed]
    missing = {config["name"]: _failure(path, config["key"]) for config in failed}
    failures = {name: f"{problem}. Fix: {fix}." if fix else problem for name, (problem, fix) in missing.items()}
    runs = [Run.scan(folders[name] / RUN, name=name) for name in completed]
    qrels = Qrels.read(plan["qrels"])
    responses = read_experiment_responses({name: folders[name] for name in completed}, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # the scores have them as notes
        scores = score_runs(qrels, runs, [*plan["measures"], *list_measures(measures)], responses)
    topics = Topics.read(plan["queries"])
    measured = {name: _read_json(folders[name] / COSTS, _COSTS_SHAPE) for name in completed}
    refused = {
        name: tuple(
            RefusedQuery(query, topics.text(query), *parts)
            for query, reasons in costs["refused"].items()
            for parts in reasons
        )
        for name, costs in measured.items()
    }
    missing_query = list(missing_query_notes(topics, qrels))  # more specific than the note "missing-topics"
    score_notes = [
        note
        for note in scores.notes
        if note.rule != "missing-topics" or note.weight not in [missing.weight for missing in missing_query]
    ]
    notes = [
        *(
            Note(**{name: fields[name] for name in Note.__annotations__ if name in fields})
            for fields in plan.get("notes") or ()
        ),
        *missing_query,
        *(Note("failed", reason, name, severity="error", of="configurations") for name, reason in failures.items()),
        *_refusal_notes(refused, len(topics)),
        *_busy_notes({name: costs["machine"] for name, costs in measured.items()}),
    ]
    return Results(
        replace(scores, notes=(*score_notes, *notes)),
        control["name"],
        {name: config["levels"] for name, config in completed.items()},
        {name: {**costs["costs"], **latency_costs(costs)} for name, costs in measured.items()},
        refused,
        failures,
        tuple((config["levels"], config["reason"]) for config in plan["left_out"]),
        {name: costs["machine"] for name, costs in measured.items()},
        {name: search for name, costs in measured.items() if (search := NeighborSearch.read(costs))},
        qrels,
        topics,
        responses,
        path,
    )


def _read_plan(folder: Path) -> Any:
    plan = _read_json(folder / PLAN, _PLAN_SHAPE)
    if not all(re.fullmatch("[0-9a-f]{1,64}", configuration["key"]) for configuration in plan["configurations"]):
        raise InputError(
            "the key of each configuration must be a hash of hexadecimal digits", fix=_FIX, path=str(folder / PLAN)
        )
    try:
        measures_of(plan["measures"])
    except MeasureError as error:
        raise InputError(error.parts[0], fix=_FIX, path=str(folder / PLAN)) from None
    return plan


_PLAN_SHAPE = {
    "configurations": [{"name": str, "key": str, "levels": dict}], "left_out": [{"levels": dict, "reason": str}],
    "qrels": str, "queries": str, "measures": [str], "notes?": [{"rule": str, "text": str}],
}  # fmt: skip
_COSTS_SHAPE = {
    "refused": {str: [[str]]}, "costs": {str: (float, type(None))}, "machine": {"load?": float, "cores?": float},
    "cold_ms": [float], "rounds_ms": [[float]],
    "neighbors?": {"k": int, "vectors": str, "exact": bool, "recall": [float], "inverse_ratio": [float]},
}  # fmt: skip


def _read_json(path: Path, shape: Any) -> Any:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_shape(content, shape, path.name)
        if len(set(map(len, content.get("rounds_ms", ())))) > 1:
            raise ValueError("rounds have different numbers of queries")
    except (OSError, ValueError, RecursionError) as error:
        problem = f"the folder has no experiment, or it is damaged ({error})"
        raise InputError(problem, fix=_FIX, path=str(path.parent)) from None
    return content


def _failure(folder: Path, key: str) -> tuple[str, str]:
    """Return problem and fix of a failed configuration; the fix may be empty."""
    try:
        failure = _read_json(folder / "configurations" / f"{key}.{FAILURE}", {"problem": str, "fix?": str})
    except InputError:  # an empty file may be of an earlier version, whose disk was full
        return "not run yet", ""
    return failure["problem"], failure.get("fix") or ""


def _refusal_notes(refused: Mapping[str, tuple[RefusedQuery, ...]], n: int) -> Iterator[Note]:
    """Yield a note on the rejected queries of each configuration."""
    for name, refused_queries in refused.items():
        queries = {query.query_id: f"{query.query_id} {query.query!r}" for query in refused_queries}
        if queries:
            reason = f"{refused_queries[0].engine}: {refused_queries[0].reason}"
            text = (
                f"the engine refused {len(queries)} of {counted(n, 'query', 'queries')} ({reason}); refused queries"
                " count as queries without results"
            )
            text = f"{text}: {first_few(list(queries.values()))}"
            yield Note("refused-queries", text, name, len(queries), of="configurations")


def _busy_notes(machines: Mapping[str, Mapping[str, Any]]) -> Iterator[Note]:
    """Yield a note if more processes wanted to run than the machine has cores, so that times are too high."""
    loads = {
        name: host["load"] / host["cores"] for name, host in machines.items() if host.get("load") and host.get("cores")
    }
    busy = [name for name, load in loads.items() if load > 1 + 1 / machines[name]["cores"]]
    if busy:
        busiest = max(loads, key=lambda name: loads[name])
        host = machines[busiest]
        load = f"{host['load']:.0f} processes on {counted(host['cores'], 'core')}"
        text = (
            f"the machine was busy with other work ({load}), so the measured costs of {first_few(busy)} may be too high"
        )
        yield Note("busy-machine", text)


def latency_costs(measurements: Mapping[str, Any]) -> dict[str, Any]:
    """Return the latency quantiles with their intervals and their noise."""
    milliseconds = np.array(measurements["rounds_ms"], dtype=np.float64)
    if not milliseconds.size:
        return dict.fromkeys(("cold_ms", *QUANTILES), None)
    costs: dict[str, Any] = {"cold_ms": float(np.median(measurements["cold_ms"]))}
    for name, share in QUANTILES.items():
        estimate = quantile(milliseconds, share)
        costs |= {name: estimate.value, f"{name}_ci": estimate.ci, f"{name}_noise": estimate.noise}
    return costs
