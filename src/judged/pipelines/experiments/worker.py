"""Worker process: build and search one configuration: ``python -m judged.pipelines.experiments.worker JOB``."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from judged.data.run import Run
from judged.data.texts import Texts
from judged.data.topics import Topics
from judged.data.write import write_run
from judged.errors import InputError, JudgedError, is_full
from judged.pipelines.experiments.configurations import PlanModules, library_versions
from judged.pipelines.experiments.engines.vectors import VectorEngine
from judged.pipelines.experiments.limits import (
    STEP_FILE,
    PeakMemory,
    StepRecord,
    energy,
    machine,
    measure_rounds,
    throughput,
)
from judged.pipelines.experiments.pipelines import Generating, Node, SearchRecord, create_system
from judged.pipelines.rag.generation import costs_of, tables_by_topic
from judged.pipelines.traces import Recorder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Hit
    from judged.pipelines.experiments.limits import Clock
    from judged.pipelines.experiments.pipelines import SearchSystem
    from judged.pipelines.rag.generation import TimedAnswer

RUN, TRACES, COSTS, FAILURE = "run.parquet", "traces.jsonl", "costs.json", "failure.json"
WORKER = "judged.pipelines.experiments.worker"
NO_SPACE = 74  # exit code if the disk is full, which is not a failure of the configuration
ANSWERS = "answers.json"  # tables by name, if the configuration generates answers
_WARM_UP_DOCUMENTS = 10  # documents of a trial build, so that the measured build does not include imports


def main() -> int:
    """Run the job of a file in its folder; a failure is written to the same folder."""
    path = Path(sys.argv[1])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads(path.read_text(encoding="utf-8"))
    sys.meta_path.insert(0, PlanModules(job["modules"]))
    try:
        run_job(job, path.parent)
    except Exception as error:  # noqa: BLE001 - any error of an engine is the result of its configuration
        if is_full(error):
            return NO_SPACE
        traceback.print_exc()
        problem = describe_failure(error, job["modules"].values())
        (path.parent / FAILURE).write_text(json.dumps(problem), encoding="utf-8")
        return 1
    return 0


def describe_failure(error: Exception, files: Collection[str] = ()) -> dict[str, str]:
    """Return problem, fix, and traceback of an error; the problem of an unexpected error includes its line.

    `files` are the modules of the plan. If the error passed through them, the last line in them is reported.
    """
    if isinstance(error, JudgedError):
        problem, fix = error.parts
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last_frame = ([frame for frame in frames if frame.filename in files] or frames)[-1]
        problem, fix = f"{type(error).__name__}: {error} ({last_frame.filename}:{last_frame.lineno})", ""
    parts = [*getattr(error, "__notes__", ()), problem]
    traceback_text = "".join(traceback.format_exception(error))
    return {"problem": ": ".join(parts), "fix": fix, "traceback": traceback_text}


def _search(
    system: SearchSystem, query: str, text: str, depth: int, records: list[SearchRecord] | None = None
) -> list[Hit]:
    """Search one query; the ID of the query is added to an error."""
    try:
        return system.search(text, depth, records)
    except Exception as error:
        error.add_note(f"query {query}")
        raise


def _end_with_parent() -> None:
    """Exit when the parent process ends, which closes its end of the pipe."""
    os.read(0, 1)  # blocks: the parent never writes
    os._exit(1)


def run_job(job: Mapping[str, Any], folder: Path, clock: Clock = time.perf_counter) -> None:
    """Build and search the configuration of a job, and write run, traces, and costs to the folder."""
    documents, topics = Texts.read(job["documents"]).documents, Topics.read(job["queries"])
    if not documents:
        raise InputError("the file has no documents", fix="use a file with documents", path=job["documents"])
    queries = {query: topics.text(query) for query in topics.table["query_id"].to_pylist()}
    node = Node.read(job["part"])
    steps, limit = StepRecord(folder / STEP_FILE), float(job["query_seconds"])
    with ExitStack() as cleanup:
        with steps.step("build", float(job["build_seconds"])):
            system, costs = _build_measured(node, documents, folder, clock, cleanup)
        for engine in system.engines():
            if isinstance(engine, VectorEngine):
                engine.read_queries(queries)
        settings = {part.name: part.settings for part in node.all()}
        refused, cold_ms, answer_costs = _search_all(
            system, queries, job["depth"], folder, (steps, limit), clock, settings
        )
        costs |= answer_costs
        measured_queries = [query for query in queries if query not in refused]
        measurements: dict[str, Any] = {
            "refused": refused,
            "timed": measured_queries,
            "cold_ms": cold_ms,
            "rounds_ms": [],
        }

        def search(query: str) -> Any:  # recording a step takes about a microsecond
            with steps.step(f"query {query}", limit):
                return _search(system, query, queries[query], job["depth"])

        def search_concurrently(query: str) -> Any:  # the limit restarts whenever any query ends
            try:
                return _search(system, query, queries[query], job["depth"])
            finally:
                steps.begin("concurrent queries", limit)

        if measured_queries:
            rounds = {name: job[name] for name in ("rounds", "warm_up", "seed")}
            measurements["rounds_ms"] = measure_rounds(search, measured_queries, **rounds, clock=clock).tolist()
        if measured_queries and job["concurrency"]:
            with steps.step("concurrent queries", limit):
                costs["queries_per_second"] = throughput(
                    search_concurrently, measured_queries, concurrency=job["concurrency"], clock=clock
                )
        measurements["neighbors"] = _compare_neighbors(
            system, {query: queries[query] for query in measured_queries}, job
        )
    shutil.rmtree(folder / "index")
    (folder / STEP_FILE).unlink()
    measurements |= {"costs": costs, "machine": {**machine(), "versions": library_versions(node)}}
    (folder / COSTS).write_text(json.dumps(measurements), encoding="utf-8")


def _build_measured(
    node: Node, documents: Mapping[str, Text], folder: Path, clock: Clock, cleanup: ExitStack
) -> tuple[SearchSystem, dict[str, float | None]]:
    """Build the indexes, and return the system with the costs of the build."""
    warm_up_documents = dict(list(documents.items())[:_WARM_UP_DOCUMENTS])
    # The folder is inside `folder`, which is removed if this process is killed. Errors are ignored: the build below
    # raises them again.
    with suppress(Exception), tempfile.TemporaryDirectory(dir=folder) as temporary_path:
        trial_system = create_system(node)
        with ExitStack() as trial_cleanup:
            trial_cleanup.callback(_close, trial_system)
            trial_system.build(warm_up_documents, Path(temporary_path))
    system, index_folder = create_system(node), folder / "index"
    index_folder.mkdir()
    cleanup.callback(_close, system)
    memory = PeakMemory()
    with energy() as used_energy:
        wall, cpu = clock(), time.process_time()
        system.build(documents, index_folder)
        wall, cpu = clock() - wall, time.process_time() - cpu
    sizes = [engine.size() for engine in system.engines()]
    size = None if None in sizes else sum(filter(None, sizes))
    is_external = any(engine.runs_externally for engine in system.engines())
    return system, {
        "index_seconds": None if size is None else wall,
        "index_cpu_seconds": None if is_external else cpu,
        "index_joules": None if is_external else used_energy.joules,
        "peak_mb": None if is_external else memory.peak_mb(),
        "index_mb": None if size is None else size / 1e6,
    }


def _compare_neighbors(
    system: SearchSystem, queries: Mapping[str, str], job: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Compare the results of an engine of vectors with exact search; None for other engines and for pipelines."""
    records: list[SearchRecord] = []
    engine = system.engines()[0]
    if Node.read(job["part"]).of or not isinstance(engine, VectorEngine):
        return None
    lists: list[tuple[str, list[Hit]]] = []
    for query, text in queries.items():
        records.clear()
        _search(system, query, text, job["depth"], records)
        lists.append((records[0].query, records[0].hits))
    k = min(job["neighbors"], job["depth"])
    fingerprint, qualities = engine.compare_with_exact(lists, k)
    recalls, inverse_ratios = zip(*qualities, strict=True) if qualities else ((), ())
    return {
        "k": k, "vectors": fingerprint, "exact": engine.is_exact, "recall": recalls, "inverse_ratio": inverse_ratios,
    }  # fmt: skip


def _close(system: SearchSystem) -> None:
    for engine in system.engines():
        with suppress(Exception):  # the engine may be half built
            engine.close()


def _search_all(
    system: SearchSystem,
    queries: Mapping[str, str],
    depth: int,
    folder: Path,
    limit: tuple[StepRecord, float],  # record of steps, and limit of a query in seconds
    clock: Clock,
    settings: Mapping[str, Mapping[str, Any]],  # by name of the node
) -> tuple[dict[str, list[tuple[str, str]]], list[float], dict[str, float | None]]:
    """Search every query for the first time. Return rejections, milliseconds, and costs of answers."""
    recorder, (steps, seconds) = Recorder(folder / TRACES), limit
    rows: list[tuple[str, str, float]] = []
    refused: dict[str, list[tuple[str, str]]] = {}
    cold_ms: list[float] = []
    answers: dict[str, TimedAnswer] = {}
    for query, text in queries.items():
        records: list[SearchRecord] = []
        with steps.step(f"query {query}", seconds):
            start = clock()
            hits = _search(system, query, text, depth, records)
            cold_ms.append(1000 * (clock() - start))
        check_hits(query, hits)
        rows += [(query, doc, score) for doc, score in hits]
        if reasons := [(record.name, record.refused) for record in records if record.refused]:
            refused[query] = reasons
        with recorder.query(query, text, trace_id=query) as trace:
            for record in records:
                trace.stage(record.name, record.kind, record.hits, parents=record.parents, query=record.query,
                            latency_ms=record.milliseconds, settings=settings.get(record.name))  # fmt: skip
            if isinstance(system, Generating):
                with steps.step(f"query {query}", seconds):
                    answers[query] = answer = _answer(system, query, text, hits, clock)
                trace.stage("context", "shown", [row["doc_id"] for row in answer.tables["context"]])
                trace.stage("cited", "cited", list(dict.fromkeys(row["doc_id"] for row in answer.tables["citations"])))
    if not rows:
        reason = next(iter(refused.values()))[0][1] if refused else "the engine returned nothing"
        raise InputError(
            f"no query has results: {reason}", fix="check the queries, and the setting `rewrite` if it is used"
        )
    column_names = ("query_id", "doc_id", "score")
    columns = zip(*rows, strict=True)
    write_run(Run.of(pa.table(dict(zip(column_names, map(pa.array, columns), strict=True)))), folder / RUN)
    if answers:
        (folder / ANSWERS).write_text(json.dumps(tables_by_topic(answers)), encoding="utf-8")
    return refused, cold_ms, costs_of(answers.values())


def _answer(system: Generating, query: str, text: str, hits: list[Hit], clock: Clock) -> TimedAnswer:
    try:
        return system.answer(text, hits, clock)
    except Exception as error:
        error.add_note(f"query {query}")
        raise


def check_hits(query: str, hits: list[tuple[str, float]]) -> None:
    """Check that scores are finite and do not rise, and that documents are unique."""
    scores = [score for _, score in hits]
    if not all(map(math.isfinite, scores)):
        raise InputError(f"query {query}: scores must be finite", fix="return finite scores, or no scores")
    if any(later > earlier for earlier, later in pairwise(scores)):
        raise InputError(
            f"query {query}: scores must not increase with rank",
            fix="sort documents by descending score, or omit scores",
        )
    if len({doc for doc, _ in hits}) < len(hits):
        raise InputError(f"query {query}: documents must be unique", fix="return each document once")


if __name__ == "__main__":
    sys.exit(main())
