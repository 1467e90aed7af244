"""Run a plan: each configuration in a process of its own, its results saved whole or not at all."""

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
from judged.pipelines.experiments.answers import keep
from judged.pipelines.experiments.collection import MISSING, TWICE
from judged.pipelines.experiments.configurations import modules_of
from judged.pipelines.experiments.limits import LIMITS, STEP, watch
from judged.pipelines.experiments.plan import FILES, Plan
from judged.pipelines.experiments.results import PLAN, Results, folder_of, load
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

_ONE = {
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
"""Libraries of engines use one thread: what several would gain depends on the machine more than on the engine."""


def run(plan: Any, folder: str | Path, *, progress: Callable[[str, int], None] | None = None) -> Results:
    """Run an experiment, or what is left of it.

    Parameters
    ----------
    plan
        A `Plan`, a TOML file, or a mapping laid out as the file is.
    folder
        Where results go: each configuration in a folder that is complete or not there, so that nothing is done twice,
        and a stop at any moment costs one configuration at most. A configuration that failed is tried again.
    progress
        Called with the name of each configuration before it is run, and with how many are done since the last call;
        also with the name and what the configuration is doing, such as ``control: query q1``, and 0.

    Returns
    -------
    Results
        As `load` gives them: also of those that failed.

    Raises
    ------
    InputError
        If the plan or the folder cannot be used, another run is at work in it, it has results over other files, or the
        control failed.
    OutputError
        If the disk is full.
    """
    plan = Plan.of(plan)
    place = Path(folder)
    judged, asked = Qrels.read(plan.qrels).topics, Topics.read(plan.queries)
    if not set(judged) & set(asked.table["query_id"].to_pylist()):
        raise InputError("no query has a judgment", fix="check that both files use the same ids", path=plan.queries)
    with named_disk_errors(place), _alone(place):
        _refuse_another(plan, place)
        todo = waiting(plan, place)
        for left in (place / "configurations").glob(".*.part"):  # by one that was stopped
            shutil.rmtree(left, ignore_errors=True)
        with atomic_write(place / PLAN) as part:
            part.write_text(json.dumps(_written(plan), indent=1), encoding="utf-8")
        for at, configuration in enumerate(todo):
            if progress:
                progress(configuration.name, int(at > 0))
            _run(plan, configuration, place, progress)
        if progress and todo:
            progress(todo[-1].name, 1)
        results = load(place)
        results.scores.save(place / "scores.parquet")
        if results.responses is not None:
            keep(results.responses, place)
        return results


@contextmanager
def _alone(place: Path) -> Generator[None]:
    """Make a folder for results and keep other runs out of it, until this process ends, however it does."""
    try:
        (place / "configurations").mkdir(parents=True, exist_ok=True)
        lock = (place / ".running").open("a+", encoding="utf-8")
    except OSError as error:
        if is_full(error):
            raise
        problem = f"nothing can be written here ({error.strerror})"
        raise InputError(problem, fix="name another folder", path=str(place)) from None
    with lock:
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            problem = f"another run, process {lock.read() or 'unknown'}, is at work in this folder"
            raise InputError(problem, fix="wait until it ends, or name another folder", path=str(place)) from None
        except OSError:  # a file system that has no locks
            pass
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _refuse_another(plan: Plan, place: Path) -> None:
    """Refuse a folder in which another experiment is: one over documents, queries or judgments that stand elsewhere."""
    try:
        before = json.loads((place / PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return
    moved = [name for name in FILES if before.get(name) != getattr(plan, name)]
    known = {one["key"] for one in before.get("configurations", ())}
    if moved and not known & {one.key for one in plan.configurations}:  # else files that were only moved
        problem = f"the results of another plan are here, of {before.get('folder')}: its {listed(moved)} are others"
        raise InputError(problem, fix="name another folder (--to)", path=str(place))


def waiting(plan: Plan, folder: Path) -> list[Configuration]:
    """Give the configurations of a plan that have no results in a folder."""
    return [one for one in plan.configurations if not folder_of(folder, one.key).is_dir()]


def _written(plan: Plan) -> dict[str, Any]:
    """Give what `load` must know of a plan."""
    configurations = [
        {"name": one.name, "key": one.key, "settings": one.settings, "levels": one.levels}
        for one in plan.configurations
    ]
    files = {name: getattr(plan, name) for name in FILES} | {"folder": str(plan.folder)}
    left_out = [one._asdict() for one in plan.left_out]
    notes = [asdict(note) for note in plan.notes if note.rule in (MISSING, TWICE)]  # not to read documents again
    return plain({**plan.facts(), **files, "configurations": configurations, "left_out": left_out, "notes": notes})


def _run(
    plan: Plan, configuration: Configuration, place: Path, progress: Callable[[str, int], None] | None = None
) -> None:
    """Run one configuration, and give its results their name when they are complete."""
    target = folder_of(place, configuration.key)
    part = target.with_name(f".{configuration.key}.{os.getpid()}.part")
    part.mkdir()
    try:
        names = ("documents", "queries", "depth", "rounds", "warm_up", "seed", "concurrency", *LIMITS)
        job = {name: getattr(plan, name) for name in names} | {"part": asdict(configuration.part)}
        job["modules"] = modules_of(configuration.part, plan.folder)
        (part / "job.json").write_text(json.dumps(job), encoding="utf-8")
        tell = progress and (lambda label: progress(f"{configuration.name}: {label}", 0))
        code = _worked(part, plan.folder, tell or (lambda _: None))
        failure = target.with_name(f"{configuration.key}.{FAILURE}")
        if code == 0:
            failure.unlink(missing_ok=True)
            try:
                part.rename(target)
            except OSError:
                if not target.is_dir():  # else somebody ran it meanwhile
                    raise
        elif code == NO_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        else:
            _explain(part, code).replace(failure)
    finally:
        remove_folder(part)


def _worked(part: Path, folder: Path, tell: Callable[[str], None]) -> int:
    """Run a job in a process that ends when this one does, or at a limit of time; return its exit code."""
    # What is found here is found there, but for the plan's folder: its files are not modules unless the plan says so.
    # Set by the program and not by PYTHONPATH, it has no part in the start of Python, which imports sitecustomize.
    paths = [path for path in sys.path if path and Path(path).resolve() != folder.resolve()]
    program = f"import runpy, sys; sys.path[:] = {paths!r}; runpy.run_module({WORKER!r}, run_name='__main__')"
    command = [sys.executable, "-P", "-c", program, str(part / "job.json")]
    with (part / "messages.txt").open("wb") as messages:
        started = subprocess.Popen(  # noqa: S603  it is our own
            command, stdin=subprocess.PIPE, stdout=messages, stderr=messages, env={**os.environ, **_ONE}
        )
        try:
            over = watch(part / STEP, partial(_has_ended, started), tell)
            if over is not None:
                problem, fix = over.error.parts
                (part / FAILURE).write_text(json.dumps({"problem": problem, "fix": fix}), encoding="utf-8")
                return 1
            return started.wait()
        finally:
            started.kill()
            if started.stdin:
                started.stdin.close()
            started.wait()


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _explain(part: Path, code: int) -> Path:
    """Give the file that says why a job failed; of a process that could not write one, how it ended."""
    why = part / FAILURE
    try:
        json.loads(why.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # it could not be written, or not all of it
        said = (part / "messages.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = f": {said[-1]}" if said else ""
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        why.write_text(json.dumps({"problem": f"its process {how}{last}"}), encoding="utf-8")
    return why
