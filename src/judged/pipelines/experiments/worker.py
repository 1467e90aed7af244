"""One configuration, built and asked in a process of its own: ``python -m judged.pipelines.experiments.worker JOB``."""

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
from judged.pipelines.experiments.configurations import PlanModules, versions
from judged.pipelines.experiments.limits import STEP, Memory, StepRecord, energy, machine, rounds_of, throughput
from judged.pipelines.experiments.pipelines import Asked, Generating, Part, system_of
from judged.pipelines.rag.generation import costs_of, tables_by_topic
from judged.pipelines.traces import Recorder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from judged.data.texts import Text
    from judged.pipelines.experiments.engines.base import Hit
    from judged.pipelines.experiments.limits import Clock
    from judged.pipelines.experiments.pipelines import System
    from judged.pipelines.rag.generation import TimedAnswer

RUN, TRACES, COSTS, FAILURE = "run.parquet", "traces.jsonl", "costs.json", "failure.json"
WORKER = "judged.pipelines.experiments.worker"
NO_SPACE = 74  # its exit code where the disk is full, which is no failure of the configuration
ANSWERS = "answers.json"  # of a configuration that generates: tables by name
_FEW = 10  # documents that are indexed first, so that libraries are there when it counts


def main() -> int:
    """Do the job of a file, in its folder; what went wrong is written down beside it."""
    path = Path(sys.argv[1])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads(path.read_text(encoding="utf-8"))
    sys.meta_path.insert(0, PlanModules(job["modules"]))
    try:
        work(job, path.parent)
    except Exception as error:  # noqa: BLE001  whatever an engine raises is what became of its configuration
        if is_full(error):
            return NO_SPACE
        traceback.print_exc()
        problem = failure_of(error, job["modules"].values())
        (path.parent / FAILURE).write_text(json.dumps(problem), encoding="utf-8")
        return 1
    return 0


def failure_of(error: Exception, files: Collection[str] = ()) -> dict[str, str]:
    """Return what went wrong, at which query, and what to do; of an error that is not ours also where it was raised.

    `files`: of the plan's modules; of an error that came through them the last line there is named.
    """
    if isinstance(error, JudgedError):
        problem, fix = error.parts
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = ([frame for frame in frames if frame.filename in files] or frames)[-1]
        problem, fix = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})", ""
    said = [*getattr(error, "__notes__", ()), problem]
    told = "".join(traceback.format_exception(error))
    return {"problem": ": ".join(said), "fix": fix, "traceback": told}


def _ask(system: System, query: str, text: str, depth: int, told: list[Asked] | None = None) -> list[Hit]:
    """Ask one query; what goes wrong bears its id."""
    try:
        return system.search(text, depth, told)
    except Exception as error:
        error.add_note(f"query {query}")
        raise


def _end_with_parent() -> None:
    """End at once when whoever started this has ended, however it did: its end of the pipe closes then."""
    os.read(0, 1)  # nothing is ever written
    os._exit(1)


def work(job: Mapping[str, Any], folder: Path, clock: Clock = time.perf_counter) -> None:
    """Build what the job says, ask it, and leave run, traces and costs in the folder."""
    documents, topics = Texts.read(job["documents"]).documents, Topics.read(job["queries"])
    if not documents:
        raise InputError("there are no documents to index", fix="give a file that has some", path=job["documents"])
    queries = {query: topics.text(query) for query in topics.table["query_id"].to_pylist()}
    part = Part.read(job["part"])
    steps, limit = StepRecord(folder / STEP), float(job["query_seconds"])
    with ExitStack() as built:
        with steps.step("build", float(job["build_seconds"])):
            system, costs = _built(part, documents, folder, clock, built)
        refused, cold_ms, of_answers = _asked(system, queries, job["depth"], folder, (steps, limit), clock)
        costs |= of_answers
        timed = [query for query in queries if query not in refused]
        told = {"refused": refused, "timed": timed, "cold_ms": cold_ms, "rounds_ms": []}

        def search(query: str) -> Any:  # recording a step takes about a microsecond
            with steps.step(f"query {query}", limit):
                return _ask(system, query, queries[query], job["depth"])

        def search_at_once(query: str) -> Any:  # some thread must end a query within the limit
            try:
                return _ask(system, query, queries[query], job["depth"])
            finally:
                steps.begin("queries at once", limit)

        if timed:
            rounds = {name: job[name] for name in ("rounds", "warm_up", "seed")}
            told["rounds_ms"] = rounds_of(search, timed, **rounds, clock=clock).tolist()
        if timed and job["concurrency"]:
            with steps.step("queries at once", limit):
                costs["queries_per_second"] = throughput(
                    search_at_once, timed, concurrency=job["concurrency"], clock=clock
                )
    shutil.rmtree(folder / "index")
    (folder / STEP).unlink()
    told |= {"costs": costs, "machine": {**machine(), "versions": versions(part)}}
    (folder / COSTS).write_text(json.dumps(told), encoding="utf-8")


def _built(
    part: Part, documents: Mapping[str, Text], folder: Path, clock: Clock, built: ExitStack
) -> tuple[System, dict[str, float | None]]:
    """Build an index, to be closed in the end, and say what that took."""
    few = dict(list(documents.items())[:_FEW])
    # Within `folder`, which is removed if this process is killed. What goes wrong here goes wrong again below.
    with suppress(Exception), tempfile.TemporaryDirectory(dir=folder) as place:
        first = system_of(part)
        with ExitStack() as once:
            once.callback(_close, first)
            first.build(few, Path(place))
    system, index = system_of(part), folder / "index"
    index.mkdir()
    built.callback(_close, system)
    memory = Memory()
    with energy() as used:
        wall, cpu = clock(), time.process_time()
        system.build(documents, index)
        wall, cpu = clock() - wall, time.process_time() - cpu
    sizes = [engine.size() for engine in system.engines()]
    size = None if None in sizes else sum(filter(None, sizes))
    elsewhere = any(engine.elsewhere for engine in system.engines())
    return system, {
        "index_seconds": None if size is None else wall,
        "index_cpu_seconds": None if elsewhere else cpu,
        "index_joules": None if elsewhere else used.joules,
        "peak_mb": None if elsewhere else memory.peak_mb(),
        "index_mb": None if size is None else size / 1e6,
    }


def _close(system: System) -> None:
    for engine in system.engines():
        with suppress(Exception):  # of an engine that was not built as a whole
            engine.close()


def _asked(
    system: System,
    queries: Mapping[str, str],
    depth: int,
    folder: Path,
    limit: tuple[StepRecord, float],  # of a query, in seconds, and where the queries are recorded
    clock: Clock,
) -> tuple[dict[str, list[tuple[str, str]]], list[float], dict[str, float | None]]:
    """Ask every query for the first time; give what was refused and why, the milliseconds, and what answers cost."""
    recorder, (steps, seconds) = Recorder(folder / TRACES), limit
    rows: list[tuple[str, str, float]] = []
    refused: dict[str, list[tuple[str, str]]] = {}
    cold_ms: list[float] = []
    answers: dict[str, TimedAnswer] = {}
    for query, text in queries.items():
        told: list[Asked] = []
        with steps.step(f"query {query}", seconds):
            begun = clock()
            hits = _ask(system, query, text, depth, told)
            cold_ms.append(1000 * (clock() - begun))
        refuse_odd(query, hits)
        rows += [(query, doc, score) for doc, score in hits]
        refused |= {query: said} if (said := [(one.name, one.refused) for one in told if one.refused]) else {}
        with recorder.query(query, text, trace_id=query) as trace:
            for one in told:
                trace.stage(one.name, one.kind, one.hits, parents=one.parents, query=one.query,
                            latency_ms=one.milliseconds)  # fmt: skip
            if isinstance(system, Generating):
                with steps.step(f"query {query}", seconds):
                    answers[query] = said = _answer(system, query, text, hits, clock)
                trace.stage("context", "shown", [row["doc_id"] for row in said.tables["context"]])
                trace.stage("cited", "cited", list(dict.fromkeys(row["doc_id"] for row in said.tables["citations"])))
    if not rows:
        why = next(iter(refused.values()))[0][1] if refused else "it gave none"
        raise InputError(f"no document was found for any query: {why}", fix="look at how queries are made")
    names = ("query_id", "doc_id", "score")
    columns = zip(*rows, strict=True)
    write_run(Run.of(pa.table(dict(zip(names, map(pa.array, columns), strict=True)))), folder / RUN)
    if answers:
        (folder / ANSWERS).write_text(json.dumps(tables_by_topic(answers)), encoding="utf-8")
    return refused, cold_ms, costs_of(answers.values())


def _answer(system: Generating, query: str, text: str, hits: list[Hit], clock: Clock) -> TimedAnswer:
    try:
        return system.answer(text, hits, clock)
    except Exception as error:
        error.add_note(f"query {query}")
        raise


def refuse_odd(query: str, hits: list[tuple[str, float]]) -> None:
    """Refuse a list that its scores would put in another order."""
    scores = [score for _, score in hits]
    if not all(map(math.isfinite, scores)):
        raise InputError(f"query {query}: a score is no number", fix="give finite scores, or none")
    if any(later > earlier for earlier, later in pairwise(scores)):
        raise InputError(
            f"query {query}: scores rise down the list", fix="give documents by falling score, or no scores"
        )
    if len({doc for doc, _ in hits}) < len(hits):
        raise InputError(f"query {query}: a document stands in the list twice", fix="give each once")


if __name__ == "__main__":
    sys.exit(main())
