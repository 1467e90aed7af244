"""Run a plan. Each configuration runs in its own process; its results are saved completely or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.qrels import Qrels
from judged.data.topics import Topics
from judged.errors import InputError, is_full
from judged.pipelines.experiments.collection import MISSING, TWICE
from judged.pipelines.experiments.configurations import configuration_modules
from judged.pipelines.experiments.generated_answers import write_answers
from judged.pipelines.experiments.limits import LIMITS, STEP_FILE, watch
from judged.pipelines.experiments.plan import FILES, Plan
from judged.pipelines.experiments.results import PLAN, Results, load, results_folder
from judged.pipelines.experiments.worker import FAILURE, NO_SPACE, WORKER
from judged.results import listed
from judged.results.files import atomic_write, named_disk_errors, remove_folder
from judged.results.table import plain

try:
    import fcntl
except ImportError:  # Windows, where two runs of one folder must not be at work at once
    fcntl = None

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from judged.pipelines.experiments.configurations import Configuration

_SINGLE_THREAD = {
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
"""Libraries use one thread: the gain of several depends on the machine more than on the engine."""


def run(plan: Any, folder: str | Path, *, progress: Callable[[str, int], None] | None = None) -> Results:
    """Run an experiment, or continue a stopped one.

    Parameters
    ----------
    plan
        A `Plan`, a TOML file, or a mapping with the layout of the file.
    folder
        Output folder. Each configuration has a folder that is complete or does not exist, so nothing is run twice, and
        an interruption loses at most one configuration. A failed configuration is tried again.
    progress
        Called before each configuration, with its name and the number of configurations done since the last call; also
        with the name and the current step, such as ``control: query q1``, and 0.

    Returns
    -------
    Results
        As from `load`, including failures.

    Raises
    ------
    InputError
        If the plan or the folder cannot be used, another run uses the folder, it has results for other files, or the
        control failed.
    OutputError
        If the disk is full.
    """
    plan = Plan.of(plan)
    path = Path(folder)
    judged_topics, queries = Qrels.read(plan.qrels).topics, Topics.read(plan.queries)
    if not set(judged_topics) & set(queries.table["query_id"].to_pylist()):
        raise InputError("no query has a judgment", fix="use the same topic IDs in both files", path=plan.queries)
    with named_disk_errors(path), _locked_folder(path):
        _check_same_experiment(plan, path)
        pending = pending_configurations(plan, path)
        for unfinished in (path / "configurations").glob(".*.part"):  # of an interrupted run
            shutil.rmtree(unfinished, ignore_errors=True)
        with atomic_write(path / PLAN) as temporary_path:
            temporary_path.write_text(json.dumps(_plan_document(plan), indent=1), encoding="utf-8")
        for i, configuration in enumerate(pending):
            if progress:
                progress(configuration.name, int(i > 0))
            _run_configuration(plan, configuration, path, progress)
        if progress and pending:
            progress(pending[-1].name, 1)
        results = load(path)
        results.scores.save(path / "scores.parquet")
        if results.responses is not None:
            write_answers(results.responses, path)
        return results


@contextmanager
def _locked_folder(path: Path) -> Generator[None]:
    """Create the results folder and lock it until this process ends, also if it is killed."""
    try:
        (path / "configurations").mkdir(parents=True, exist_ok=True)
        lock = (path / ".running").open("a+", encoding="utf-8")
    except OSError as error:
        if is_full(error):
            raise
        problem = f"cannot write to the folder ({error.strerror})"
        raise InputError(problem, fix="use another folder", path=str(path)) from None
    with lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            problem = f"another experiment run uses the folder (process {lock.read() or 'unknown'})"
            raise InputError(problem, fix="wait until that run ends, or use another folder", path=str(path)) from None
        except OSError:  # the file system does not support locks
            pass
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _check_same_experiment(plan: Plan, path: Path) -> None:
    """Raise an error if the folder has results for other documents, queries, or judgments."""
    try:
        earlier_plan = json.loads((path / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    changed_files = [name for name in FILES if earlier_plan.get(name) != getattr(plan, name)]
    earlier_keys = {config["key"] for config in earlier_plan.get("configurations", ())}
    # If a key is the same, the content is too, and only the paths of the files have changed.
    if changed_files and not earlier_keys & {config.key for config in plan.configurations}:
        problem = (
            f"the folder has results of another plan (in {earlier_plan.get('folder')}), which has different"
            f" {listed(changed_files)}"
        )
        raise InputError(problem, fix="use another folder: --to FOLDER", path=str(path))


def pending_configurations(plan: Plan, folder: Path) -> list[Configuration]:
    """Return the configurations of a plan without results in a folder."""
    return [config for config in plan.configurations if not results_folder(folder, config.key).is_dir()]


def _plan_document(plan: Plan) -> dict[str, Any]:
    """Return the plan in the form that `load` reads."""
    configurations = [
        {"name": config.name, "key": config.key, "settings": config.settings, "levels": config.levels}
        for config in plan.configurations
    ]
    files = {name: getattr(plan, name) for name in FILES} | {"folder": str(plan.folder)}
    left_out = [config._asdict() for config in plan.left_out]
    notes = [
        asdict(note) for note in plan.notes if note.rule in (MISSING, TWICE)
    ]  # so that `load` need not read the documents
    return plain({**plan.facts(), **files, "configurations": configurations, "left_out": left_out, "notes": notes})


def _run_configuration(
    plan: Plan, configuration: Configuration, path: Path, progress: Callable[[str, int], None] | None = None
) -> None:
    """Run one configuration; its results get their final name when they are complete."""
    target = results_folder(path, configuration.key)
    temporary_path = target.with_name(f".{configuration.key}.{os.getpid()}.part")
    temporary_path.mkdir()
    try:
        names = ("documents", "queries", "depth", "rounds", "warm_up", "seed", "concurrency", "neighbors", *LIMITS)
        job = {name: getattr(plan, name) for name in names} | {"part": asdict(configuration.node)}
        job["modules"] = configuration_modules(configuration.node, plan.folder)
        (temporary_path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        report = progress and (lambda label: progress(f"{configuration.name}: {label}", 0))
        exit_code = _run_worker(temporary_path, plan.folder, report or (lambda _: None))
        failure = target.with_name(f"{configuration.key}.{FAILURE}")
        if exit_code == 0:
            failure.unlink(missing_ok=True)
            try:
                temporary_path.rename(target)
            except OSError:
                if not target.is_dir():  # else another process has run it meanwhile
                    raise
        elif exit_code == NO_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        else:
            _write_failure(temporary_path, exit_code).replace(failure)
    finally:
        remove_folder(temporary_path)


def _run_worker(job_folder: Path, folder: Path, report: Callable[[str], None]) -> int:
    """Run a job in a process that ends with this one or at a time limit; return its exit code."""
    # The worker has the same import path, without the plan's folder: only files that the plan names are modules.
    # PYTHONPATH would also affect the start of Python, which imports sitecustomize, so the program sets the path.
    import_paths = [path for path in sys.path if path and Path(path).resolve() != folder.resolve()]
    program = f"import runpy, sys; sys.path[:] = {import_paths!r}; runpy.run_module({WORKER!r}, run_name='__main__')"
    command = [sys.executable, "-P", "-c", program, str(job_folder / "job.json")]
    with (job_folder / "messages.txt").open("wb") as messages:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command, stdin=subprocess.PIPE, stdout=messages, stderr=messages, env={**os.environ, **_SINGLE_THREAD}
        )
        try:
            exceeded_step = watch(job_folder / STEP_FILE, partial(_has_ended, process), report)
            if exceeded_step is not None:
                problem, fix = exceeded_step.error.parts
                (job_folder / FAILURE).write_text(json.dumps({"problem": problem, "fix": fix}), encoding="utf-8")
                return 1
            return process.wait()
        finally:
            process.kill()
            if process.stdin:
                process.stdin.close()
            process.wait()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _write_failure(job_folder: Path, exit_code: int) -> Path:
    """Return the file with the reason of a failure; if the process could not write it, write how it ended."""
    failure_path = job_folder / FAILURE
    try:
        json.loads(failure_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # missing or incomplete
        messages = (job_folder / "messages.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last_message = f": {messages[-1]}" if messages else ""
        outcome = f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with code {exit_code}"
        failure_path.write_text(json.dumps({"problem": f"the process {outcome}{last_message}"}), encoding="utf-8")
    return failure_path
