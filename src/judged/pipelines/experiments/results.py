"""What an experiment left behind: scores, costs, and what went wrong."""

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
from judged.pipelines.experiments.answers import responses_of, scored
from judged.pipelines.experiments.collection import no_query
from judged.pipelines.experiments.limits import QUANTILES, quantile
from judged.pipelines.experiments.worker import COSTS, FAILURE, RUN, TRACES
from judged.pipelines.traces import read_traces
from judged.results.blocks import Note, first_few
from judged.results.decimals import counted
from judged.scoring.evaluation import measures_of
from judged.scoring.measures.grammar import list_measures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.pipelines.rag.responses import Responses
    from judged.pipelines.traces import Traces
    from judged.scoring.evaluation import Scores

PLAN = "plan.json"
_FIX = "name the folder that 'judged experiment run' was given, or run it again"


class Refused(NamedTuple):
    """A query that an engine did not take, which counts as one that finds nothing."""

    query_id: str
    query: str
    engine: str  # or the part of a pipeline
    reason: str


@dataclass(frozen=True, eq=False)
class Results:
    """What came of an experiment.

    Attributes
    ----------
    scores : Scores
        All configurations that were run, the control first, by topic and measure: `evaluate` of the saved runs.
    control : str
        The configuration that all others are compared with.
    levels : dict of dict
        By configuration and factor.
    costs : dict of dict
        By configuration: ``index_seconds, index_cpu_seconds, index_joules, peak_mb, index_mb, cold_ms, p50_ms, p95_ms``
        and, where it was asked for, ``queries_per_second``; None for what is not known. ``p50_ms`` and
        ``p95_ms`` are quantiles over the queries of a round, of all rounds the median. Beside them stand
        ``p50_ms_ci``, their 95% interval over queries, None where there are too few, and ``p50_ms_noise``, how far
        they vary from round to round (see `judged.pipelines.experiments.limits.quantile`), None with fewer than three
        rounds: where two of these overlap, the difference is noise. Of a configuration that generates, also
        ``answer_ms``, ``tokens_in`` and ``tokens_out``: the median milliseconds and the mean tokens of an answer.
    refused : dict of tuple of Refused
        Queries that were not taken, by configuration.
    failures : dict
        Why a configuration has no results, by its name.
    left_out : tuple of (levels, reason)
        Combinations that the plan leaves out.
    machine : dict
        What it ran on, by configuration.
    qrels : Qrels
    queries : Topics
    responses : Responses or None
        What configurations answered, and what is known of it: the tables in ``responses`` of the folder.
    folder : Path
    """

    scores: Scores
    control: str
    levels: Mapping[str, Mapping[str, Any]]
    costs: Mapping[str, Mapping[str, Any]]
    refused: Mapping[str, tuple[Refused, ...]]
    failures: Mapping[str, str]
    left_out: tuple[tuple[Mapping[str, Any], str], ...] = field(repr=False)
    machine: Mapping[str, Mapping[str, Any]] = field(repr=False)
    qrels: Qrels = field(repr=False)
    queries: Topics = field(repr=False)
    responses: Responses | None = field(repr=False)
    folder: Path

    def run(self, configuration: str) -> Run:
        """Give the saved run of a configuration."""
        return Run.scan(self._place(configuration) / RUN, name=configuration)

    def traces(self, configuration: str) -> Traces:
        """Give what each part of a configuration returned for each query, as traces."""
        return read_traces(self._place(configuration) / TRACES)

    def _place(self, configuration: str) -> Path:
        keys = {one["name"]: one["key"] for one in _planned(self.folder)["configurations"]}
        if configuration not in self.levels:
            raise InputError(f"no results of {configuration!r}", fix=f"use one of {', '.join(self.levels)}")
        return folder_of(self.folder, keys[configuration])


def folder_of(folder: Path, key: str) -> Path:
    """Name the folder of a configuration's results: it is complete or not there."""
    return folder / "configurations" / key


def load(folder: str | Path, measures: Any = ()) -> Results:
    """Read the results of an experiment, also of one that is not done yet.

    Parameters
    ----------
    folder
        Where `run` put them.
    measures
        More to score the saved runs by, beside those of the plan: nothing is searched again.

    Raises
    ------
    InputError
        If there are none, or the control has none.
    MeasureError
        If a measure cannot be read.
    """
    place = Path(folder)
    plan = _planned(place)
    if not plan["configurations"]:
        raise InputError("it plans no configuration", fix=_FIX, path=str(place / PLAN))
    done = {one["name"]: one for one in plan["configurations"] if folder_of(place, one["key"]).is_dir()}
    control = plan["configurations"][0]
    if control["name"] not in done:
        problem, fix = _why(place, control["key"])
        fix = fix or "put that right, and run it again"
        raise InputError(f"the control has no results: {problem}", fix=fix, path=str(place))
    missing = {one["name"]: _why(place, one["key"]) for one in plan["configurations"] if one["name"] not in done}
    failures = {name: f"{problem}. Fix: {fix}." if fix else problem for name, (problem, fix) in missing.items()}
    runs = [Run.scan(folder_of(place, one["key"]) / RUN, name=name) for name, one in done.items()]
    qrels = Qrels.read(plan["qrels"])
    responses = responses_of({name: folder_of(place, one["key"]) for name, one in done.items()}, place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JudgedWarning)  # they are notes of the scores
        scores = scored(qrels, runs, [*plan["measures"], *list_measures(measures)], responses)
    topics = Topics.read(plan["queries"])
    told = {name: _saved(folder_of(place, one["key"]) / COSTS, _COSTS) for name, one in done.items()}
    refused = {
        name: tuple(
            Refused(query, topics.text(query), *parts) for query, said in one["refused"].items() for parts in said
        )
        for name, one in told.items()
    }
    unasked = list(no_query(topics, qrels))  # of which "nothing returned" says less
    of_scores = [
        one
        for one in scores.notes
        if one.rule != "missing-topics" or one.weight not in [note.weight for note in unasked]
    ]
    notes = [
        *(
            Note(**{name: told[name] for name in Note.__annotations__ if name in told})
            for told in plan.get("notes") or ()
        ),
        *unasked,
        *(Note("failed", why, name, severity="error", of="configurations") for name, why in failures.items()),
        *_refusals(refused, len(topics)),
        *_busy({name: one["machine"] for name, one in told.items()}),
    ]
    return Results(
        replace(scores, notes=(*of_scores, *notes)),
        control["name"],
        {name: one["levels"] for name, one in done.items()},
        {name: {**one["costs"], **latency_of(one)} for name, one in told.items()},
        refused,
        failures,
        tuple((one["levels"], one["reason"]) for one in plan["left_out"]),
        {name: one["machine"] for name, one in told.items()},
        qrels,
        topics,
        responses,
        place,
    )


def _planned(folder: Path) -> Any:
    plan = _saved(folder / PLAN, _PLAN)
    if not all(re.fullmatch("[0-9a-f]{1,64}", made["key"]) for made in plan["configurations"]):
        raise InputError("a key of a configuration is no hash", fix=_FIX, path=str(folder / PLAN))
    try:
        measures_of(plan["measures"])
    except MeasureError as error:
        raise InputError(error.parts[0], fix=_FIX, path=str(folder / PLAN)) from None
    return plan


_PLAN = {
    "configurations": [{"name": str, "key": str, "levels": dict}], "left_out": [{"levels": dict, "reason": str}],
    "qrels": str, "queries": str, "measures": [str], "notes?": [{"rule": str, "text": str}],
}  # fmt: skip
_COSTS = {
    "refused": {str: [[str]]}, "costs": {str: (float, type(None))}, "machine": {"load?": float, "cores?": float},
    "cold_ms": [float], "rounds_ms": [[float]],
}  # fmt: skip


def _saved(path: Path, shape: Any) -> Any:
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        check_shape(saved, shape, path.name)
        if len(set(map(len, saved.get("rounds_ms", ())))) > 1:
            raise ValueError("rounds of different lengths")
    except (OSError, ValueError, RecursionError) as error:
        problem = f"there is no experiment here, or it is damaged ({error})"
        raise InputError(problem, fix=_FIX, path=str(path.parent)) from None
    return saved


def _why(folder: Path, key: str) -> tuple[str, str]:
    """Give what went wrong with a configuration, and what to do about it; empty where nobody knows."""
    try:
        failure = _saved(folder / "configurations" / f"{key}.{FAILURE}", {"problem": str, "fix?": str})
    except InputError:  # an empty file may be of an earlier version, whose disk was full
        return "it was not run yet", ""
    return failure["problem"], failure.get("fix") or ""


def _refusals(refused: Mapping[str, tuple[Refused, ...]], n: int) -> Iterator[Note]:
    """Say how many queries were not taken, and which."""
    for name, given in refused.items():
        queries = {one.query_id: f"{one.query_id} {one.query!r}" for one in given}
        if queries:
            why = f"{given[0].engine}: {given[0].reason}"
            text = f"{len(queries)} of {counted(n, 'query', 'queries')} refused ({why}), which counts as an empty list"
            text = f"{text}: {first_few(list(queries.values()))}"
            yield Note("refused-queries", text, name, len(queries), of="configurations")


def _busy(machines: Mapping[str, Mapping[str, Any]]) -> Iterator[Note]:
    """Warn of times that were taken while more was to be done than the machine has cores for."""
    loads = {name: one["load"] / one["cores"] for name, one in machines.items() if one.get("load") and one.get("cores")}
    busy = [name for name, load in loads.items() if load > 1 + 1 / machines[name]["cores"]]
    if busy:
        worst = max(loads, key=lambda name: loads[name])
        had = f"{machines[worst]['load']:.0f} processes wanted its {counted(machines[worst]['cores'], 'core')}"
        text = f"the machine was busy with other work ({had}): costs of {first_few(busy)} are upper bounds"
        yield Note("busy-machine", text)


def latency_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Give latencies of what was timed, their intervals, and by how much rounds differ."""
    taken = np.array(told["rounds_ms"], dtype=np.float64)
    if not taken.size:
        return dict.fromkeys(("cold_ms", *QUANTILES), None)
    costs: dict[str, Any] = {"cold_ms": float(np.median(told["cold_ms"]))}
    for name, share in QUANTILES.items():
        found = quantile(taken, share)
        costs |= {name: found.value, f"{name}_ci": found.ci, f"{name}_noise": found.noise}
    return costs
