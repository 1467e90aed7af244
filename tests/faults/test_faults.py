"""A small part of ``make faults``, without root: what a command writes is whole, however it ends."""

from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from command_line import process
from every_command import write_files
from faults.commands import COMMANDS, command_line, environment
from faults.processes import measure
from faults.signals import send
from judged.cli.exits import exit_code
from judged.data import sample
from judged.errors import InputError, OutputError, is_full
from judged.labels import LabelStore
from judged.labels import database as labels_database
from judged.online.engine import Database
from judged.pipelines.experiments import results, runner, worker
from judged.pipelines.experiments.limits import StepRecord
from judged.results.files import atomic_folder, atomic_write
from judged.studies.storage import StudyStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
SAID = "no space left on this disk. Fix: free disk space, or write to another place."


def fails(*_: object, **__: object) -> None:
    raise NO_SPACE


def limited(folder: Path, size: int, *arguments: str) -> Ended:
    """Run a command none of whose files may become larger: a write fails in libraries, too."""
    from command_line import Ended

    program = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
sys.argv[0] = "judged"
runpy.run_module("judged", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


def interrupt_first_removal(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Let the first removal of a folder be interrupted before it begins; return the folders, as they are removed."""
    remove, calls = shutil.rmtree, list[object]()

    def interrupted(path: Path, **options: bool) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    return calls


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_file_is_whole_whenever_a_signal_comes(number: signal.Signals, tmp_path: Path) -> None:
    command = next(command for command in COMMANDS if command.name == "study init")
    measured = measure(command, "old", tmp_path, tmp_path)
    assert send(command, "old", measured, tmp_path, tmp_path, number, Random(1))[1] == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_error_that_a_library_makes_of_a_signal_is_no_bug(number: int, code: int) -> None:
    program = f"""
import judged.cli.main as m, judged.data.sample as s, os, time
def qrels():
    try:
        os.kill(os.getpid(), {number}); time.sleep(5)
    except BaseException:
        pass
    raise RuntimeError("Query interrupted")
s.qrels = qrels
m.script()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "demo"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.strip()) == (code, "")


def test_a_signal_in_a_finalizer_or_a_library_that_logs_it_ends_the_command_quietly() -> None:
    """Python ignores what finalizers raise, and SQLAlchemy logs it."""
    program = """
import judged.cli.main as m, judged.data.sample as s, logging, os, time
class Finalized:
    def __del__(self):
        try:
            os.kill(os.getpid(), 15); time.sleep(5)
        except BaseException:
            logging.getLogger("library").exception("closing")
            raise
def qrels():
    Finalized()
    time.sleep(5)
    raise RuntimeError("it goes on")
s.qrels = qrels
m.script()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "demo"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.strip()) == (143, "")


def test_an_interrupted_statement_leaves_no_files_beside_a_store(tmp_path: Path) -> None:
    event = pytest.importorskip("sqlalchemy.event")
    assert event
    LabelStore.open(tmp_path / "x.db").close()
    program = """
import os, time
from sqlalchemy import Engine, event
import judged.cli.main as m
@event.listens_for(Engine, "after_cursor_execute")
def stop(connection, cursor, statement, parameters, context, many):
    if statement.startswith("INSERT"):
        kept = cursor.execute("SELECT name FROM sqlite_master UNION ALL SELECT 'x'")  # SQLite closes after its last row
        cycle = [kept]
        cycle.append(cycle)
        os.kill(os.getpid(), 2); time.sleep(5)
m.script()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "labels", "judges", str(tmp_path / "x.db"), "ann"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr.strip()) == (130, "")
    assert names(tmp_path) == ["x.db"]


def test_a_signal_at_the_end_does_not_keep_temporary_files(tmp_path: Path) -> None:
    program = f"""
import atexit, os, pathlib
import judged.cli.main as m
place = pathlib.Path({str(tmp_path)!r}) / "temporary"
place.mkdir()
atexit.register(place.rmdir)
atexit.register(os.kill, os.getpid(), 2)
m.script()
"""
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert names(tmp_path) == []


def test_ctrl_c_while_an_old_folder_is_removed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "x"
    with atomic_folder(target) as folder:
        (folder / "a").write_text("old")
    interrupt_first_removal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), atomic_folder(target) as folder:
        (folder / "a").write_text("new")
    assert names(tmp_path) == ["x"]
    assert (target / "a").read_text() == "new"


def test_ctrl_c_while_an_engine_is_freed_leaves_no_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    engine, removed = Database(), interrupt_first_removal(monkeypatch)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    folder = engine.folder
    del engine
    gc.collect()
    assert folder in removed
    assert not folder.exists()


@pytest.mark.parametrize("new", [False, True])
def test_a_folder_that_another_process_made_meanwhile(new: bool, tmp_path: Path) -> None:
    """It is replaced, or stays where the command was to make a new one."""
    target = tmp_path / "x"
    made = atomic_folder(target, new=new)
    (made.__enter__() / "a").write_text("ours")
    target.mkdir()
    (target / "a").write_text("theirs")
    if new:
        with pytest.raises(InputError, match="exists already"):
            made.__exit__(None, None, None)
    else:
        made.__exit__(None, None, None)
    assert (target / "a").read_text() == ("theirs" if new else "ours")
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_that_another_process_made_meanwhile_stays(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", fails)
    for text in ("first", "second"):
        with atomic_write(tmp_path / "x", new=True) as part:
            part.write_text(text)
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "first"


def test_a_demo_on_a_full_disk_is_not_half_there(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "copyfile", fails)
    done = run("demo", "--to", str(tmp_path / "sample"))
    assert (done.code, done.err.strip()) == (74, f"error: {tmp_path / 'sample'}: {SAID}")
    assert names(tmp_path) == []


def test_a_log_that_cannot_be_written_keeps_the_old_one(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    write_files(tmp_path)
    assert process("logs", "convert", str(tmp_path / "log.jsonl"), "--to", str(tmp_path / "log")).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()}
    beside = names(tmp_path)
    done = limited(tmp_path, 20_000, "logs", "convert", str(sample.LOG), "--to", "log")
    assert done.code == 74, done.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "log").iterdir()} == before
    assert names(tmp_path) == beside


@pytest.mark.parametrize("kind", ["labels", "study"])
def test_a_store_has_all_tables_or_is_not_there(kind: str, tmp_path: Path) -> None:
    event = pytest.importorskip("sqlalchemy.event")
    from judged.labels import schema as of_labels
    from judged.studies import schema as of_studies

    table = of_labels.about if kind == "labels" else of_studies.actions

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    event.listen(table, "after_create", stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            _open(kind, tmp_path)
    finally:
        event.remove(table, "after_create", stop)
    assert names(tmp_path) == []
    _open(kind, tmp_path).close()
    assert names(tmp_path) == ["x.db"]


def _open(kind: str, folder: Path) -> LabelStore | StudyStore:
    path = folder / "x.db"
    return LabelStore.open(path) if kind == "labels" else StudyStore.open(path, "design", new=True)


def test_a_store_on_a_full_disk_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlalchemy")
    monkeypatch.setattr("pathlib.Path.write_bytes", fails)
    with pytest.raises(OutputError) as raised:
        LabelStore.open(tmp_path / "x.db")
    assert str(raised.value) == f"{tmp_path / 'x.db'}: {SAID}"
    assert names(tmp_path) == []


def test_what_a_store_has_no_room_for_leaves_it_as_it_was(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    write_files(tmp_path)
    size = (tmp_path / "labels.db").stat().st_size
    (tmp_path / "many.txt").write_text("".join(f"q1 0 d{n} 1\n" for n in range(5000)))
    done = limited(tmp_path, size + 50_000, "labels", "import", "labels.db", "many.txt", "--judge", "bob")
    assert done.code == 74, done.err
    assert "labels.db: " in done.err
    with LabelStore.open(tmp_path / "labels.db", new=False) as store:
        assert len(store) == 96


def test_an_io_error_of_a_store_is_told_by_the_room_on_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says "disk I/O error" where there is no room for the files beside a store."""
    pytest.importorskip("sqlalchemy")
    import sqlite3

    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    for free, said in ((0, SAID), (1 << 30, "this file cannot be written (disk I/O error)")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        with pytest.raises(OutputError) as raised:
            labels_database._raise_judged_error(
                str(tmp_path / "x.db"), "x.db", SimpleNamespace(original_exception=error)
            )  # type: ignore[arg-type]
        assert str(raised.value).startswith(f"x.db: {said}")
        assert exit_code(raised.value) == 74


def test_a_store_that_another_process_keeps_locked_is_no_bug(tmp_path: Path) -> None:
    event = pytest.importorskip("sqlalchemy.event")
    import sqlite3

    with LabelStore.open(tmp_path / "x.db") as store:
        event.listen(store.engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout=1"))
        store.engine.dispose()
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another process has locked the store") as raised:
            store.add_topics({"q": "text"})
        other.close()
    assert exit_code(raised.value) == 2


def test_stores_that_are_made_at_once_lose_nothing(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    together, errors = threading.Barrier(5), list[BaseException]()

    def add(n: int) -> None:
        try:
            together.wait()
            with LabelStore.open(tmp_path / "x.db") as store:
                store.add_topics({f"q{n}-{index}": "text" for index in range(50)})
        except BaseException as error:  # noqa: BLE001  of another thread
            errors.append(error)

    threads = [threading.Thread(target=add, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with LabelStore.open(tmp_path / "x.db", new=False) as store:
        assert len(store.topics()) == 250
    assert names(tmp_path) == ["x.db"]


def test_participants_that_two_processes_add_at_once_share_no_place(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sqlalchemy")
    from judged.studies import assignment

    write_files(tmp_path)
    assign = assignment.assignments
    words = ("study", "links", str(tmp_path / "study.toml"), "--store", str(tmp_path / "new.db"), "--participants")

    def assign_late(*arguments: object) -> object:
        monkeypatch.setattr(assignment, "assignments", assign)
        assert process(*words, "2").code == 0
        return assign(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(assignment, "assignments", assign_late)
    done = run(*words, "3")
    store = StudyStore.open(tmp_path / "new.db")
    people = store.participants()
    store.close()
    assert len(set(people.values())) == len(people) >= 3
    links = [line.split("\t")[:2] for line in done.out.splitlines()[:-1]]
    assert dict(links) == {who: participant.group for who, participant in people.items()}


def test_a_full_disk_is_no_failure_of_a_configuration(
    tmp_path: Path, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    monkeypatch.setattr(runner, "_run_worker", lambda *_: worker.NO_SPACE)
    done = run("experiment", "run", str(tmp_path / "experiment.toml"), "--to", str(tmp_path / "new"))
    assert (done.code, done.err.splitlines()[-1]) == (74, f"error: {tmp_path / 'new'}: {SAID}")
    assert names(tmp_path / "new" / "configurations") == []


def test_a_worker_on_a_full_disk_says_so_with_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job.json").write_text(json.dumps({"modules": {}}))
    monkeypatch.setattr(sys, "argv", ["worker", str(tmp_path / "job.json")])
    monkeypatch.setattr(worker, "run_job", fails)
    monkeypatch.setattr(worker, "_end_with_parent", time.time)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    assert worker.main() == worker.NO_SPACE
    assert names(tmp_path) == ["job.json"]


def test_a_worker_that_is_killed_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its folders are within that of its configuration."""
    folders: list[Path] = []

    def build(_: object, folder: Path) -> None:
        folders.append(folder)
        raise ValueError("no index")

    monkeypatch.setattr(worker, "create_system", lambda _: SimpleNamespace(build=build, engines=list, close=list))
    with pytest.raises(ValueError, match="no index"), ExitStack() as stack:
        worker._build_measured(None, {}, tmp_path, time.perf_counter, stack)  # type: ignore[arg-type]
    assert [folder.parent for folder in folders] == [tmp_path, tmp_path]


def test_an_empty_failure_of_an_earlier_version_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "configurations").mkdir()
    (tmp_path / "configurations" / "a.failure.json").write_text("")
    assert results._failure(tmp_path, "a") == ("not run yet", "")


def test_a_lock_without_room_is_said_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.setattr("pathlib.Path.mkdir", fails)
    with pytest.raises(OutputError, match="no space left"):
        runner.run(tmp_path / "experiment.toml", tmp_path / "new")


def test_the_step_of_a_worker_has_room_before_it_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write into a hole of a mapped file would end the process with SIGBUS where the disk is full."""
    monkeypatch.setattr("pathlib.Path.write_bytes", fails)
    with pytest.raises(OSError, match="No space left"):
        StepRecord(tmp_path / "step")


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (NO_SPACE, True),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), True),
        (shutil.Error([("a", "b", str(NO_SPACE))]), True),
        (ValueError(f"An IO error: {NO_SPACE.strerror}"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (RuntimeError("full"), False),
    ],
)
def test_errors_of_a_full_disk_are_known_by_number_or_by_what_they_quote(error: Exception, full: bool) -> None:
    assert is_full(error) == full


def test_commands_are_forty_and_each_has_a_place(tmp_path: Path) -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS) >= 40
    assert all(str(tmp_path) in " ".join(command_line(command, tmp_path)) for command in COMMANDS)
