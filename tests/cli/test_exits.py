"""How the command ends where something goes wrong that is not the input."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from command_line import process
from every_command import write_files
from judged.data import sample

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

GATE = ("gate", "qrels.txt", "old.run", "new.run")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(command: str) -> Ended:
    """Run `judged` in a shell, which can close and redirect what a process is given."""
    from command_line import Ended

    done = subprocess.run(
        ["/bin/sh", "-c", command.replace("judged ", f"{sys.executable} -m judged ")],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("two\nlines"), KeyError("key"), RecursionError("deep"), EOFError(),
        OSError(errno.EIO, "Input/output error"), AssertionError(), UnicodeEncodeError("utf-8", "\udce9", 0, 1, "no"),
    ],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_unexpected_error_is_one_line_and_70(
    error: Exception, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(sample, "qrels", fail)
    done = run("demo")
    assert (done.code, done.out) == (70, "")
    assert done.err.strip().startswith("error: ")
    assert " Fix: " in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert type(error).__name__ in done.err
    assert "JUDGED_TRACEBACK" in done.err
    monkeypatch.setenv("JUDGED_TRACEBACK", "1")
    assert "Traceback" in run("demo").err


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), 71, "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), 74, "/tmp/x: no space left on this disk"),  # noqa: S108
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 74, f"{tempfile.gettempdir()}: no space left"),
    ],
)
def test_what_the_machine_lacks_is_no_bug(
    error: Exception, code: int, words: str, run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(sample, "qrels", fail)
    done = run("demo")
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert " Fix: " in done.err


def test_a_database_that_is_interrupted_or_has_no_space_is_no_bug(
    run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    for error, code in (
        (duckdb.InterruptException("Interrupted!"), 130),
        (duckdb.IOException(f"Could not write file: {os.strerror(errno.ENOSPC)}"), 74),
        (duckdb.IOException("something else"), 70),
    ):

        def fail(error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(sample, "qrels", fail)
        assert run("demo").code == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("hidden", ["", "ValueError"])
def test_a_signal_ends_the_process_with_its_own_code(number: int, code: int, hidden: str) -> None:
    """Also where somebody's code makes another error of it."""
    catch = f"except BaseException as e: raise {hidden}('stopped') from e" if hidden else "finally: pass"
    body = f"try: os.kill(os.getpid(), {number}); time.sleep(5)\n    {catch}"
    head = "import judged.cli.main as m, judged.data.sample as s, os, time"
    program = f"{head}\ndef qrels():\n    {body}\ns.qrels = qrels; m.script()"
    done = subprocess.run(
        [sys.executable, "-c", program, "demo"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr.strip()) == (code, "")


def test_ctrl_c_is_130(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sample, "qrels", stop)
    done = run("demo")
    assert (done.code, done.err.strip()) == (130, "")


def test_an_interrupt_of_the_process_is_130() -> None:
    code = "import judged.cli.main as m, os; from judged.data import sample as s"
    code += "; s.qrels = lambda: os.kill(os.getpid(), 2); m.script()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.strip()) == (128 + signal.SIGINT, "")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("where", [">/dev/full", ">&-", "2>/dev/full >/dev/full", "2>&- >&-", ">/dev/full <&-"])
@pytest.mark.parametrize(
    "command", ["judged measures", "judged --help", "judged trec_eval -h", "judged " + " ".join(GATE)]
)
def test_an_output_of_the_shell_that_takes_nothing_is_74(command: str, where: str) -> None:
    done = shell(f"{command} {where}")
    assert done.code == 74
    assert done.err.count("error: standard output") == (0 if "2>" in where else 1)
    assert "Traceback" not in done.err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["measures", "gate qrels.txt old.run new.run -o /dev/stdout", "--help"])
def test_a_reader_that_leaves_is_quiet_and_neither_yes_nor_no(command: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-m", "judged", *command.split()]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as started:
        assert started.stdout
        assert started.stderr
        started.stdout.close()
        assert b"error" not in started.stderr.read()
        assert started.wait(60) == 128 + signal.SIGPIPE


@pytest.mark.usefixtures("files")
def test_a_closed_input_is_wrong_input() -> None:
    done = shell("judged evaluate - old.run <&-")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith("error: <stdin>: ")


@pytest.mark.parametrize("name", ["a" * 256, "é" * 128, "old.run/below.txt", "no/such/folder.txt", "."])
def test_a_name_that_no_output_can_have_is_wrong_input(name: str, files: Path, run: Callable[..., Ended]) -> None:
    before = sorted(files.iterdir())
    for command in (("evaluate", "qrels.txt", "old.run", "--format", "csv"), (*GATE, "--format", "json")):
        done = run(*command, "-o", name)
        assert (done.code, done.err.splitlines()[-1].startswith("error: ")) == (2, True)
    assert sorted(files.iterdir()) == before


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", ["a" * 256, "old.run/below", "."])
def test_a_name_that_no_folder_can_have_is_wrong_input(name: str, run: Callable[..., Ended]) -> None:
    assert run("demo", "--to", name).code == 2


@pytest.mark.parametrize(
    "name", ["a" * 256, "old.run/below.txt", "name=" + "a" * 300, b"caf\xe9".decode("utf-8", "surrogateescape")]
)
def test_a_name_that_no_input_can_have_is_wrong_input(name: str, files: Path) -> None:
    for arguments in (("qrels.txt", name), (name, "old.run")):
        done = process("evaluate", *arguments, "-o", str(files / "out.txt"))
        assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown", "latex"])
def test_names_that_are_no_utf_8_are_read_shown_and_written(form: str, files: Path) -> None:
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    (files / f"{odd}.run").write_bytes((files / "old.run").read_bytes())
    done = process("evaluate", "qrels.txt", f"{odd}.run", f"{odd}={odd}.run", "--format", form)
    assert done.code == 0, done.err
    assert "caf\\" in done.out
    assert process("evaluate", "qrels.txt", f"{odd}.run", "--format", form, "-o", f"{odd}.out").code == 0
    assert (files / f"{odd}.out").read_text().count("caf") >= 1


def test_scores_of_a_name_that_is_no_utf_8_are_kept(files: Path, run: Callable[..., Ended]) -> None:
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    (files / f"{odd}.run").write_bytes((files / "old.run").read_bytes())
    assert run("evaluate", "qrels.txt", f"{odd}=old.run", f"{odd}.run", "-o", "scores.parquet").code == 0


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (("explain", "a.qrels", "a.run", "t1", "-m", "AP"), "write judged explain [OPTIONS] [QRELS] [RUN]; "),
        (("diff", "a.qrels", "a.run"), "write judged diff [OPTIONS] QRELS RUN_A RUN_B; "),
        (("eval", "a.qrels"), "write judged evaluate."),
        (("nothing-like-it",), "see 'judged --help'."),
    ],
)
def test_a_wrong_call_is_answered_with_the_right_one(
    run: Callable[..., Ended], written: tuple[str, ...], meant: str
) -> None:
    done = run(*written)
    assert done.code == 2
    assert f"Fix: {meant}" in done.err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("command", ["evaluate {} old.run", "evaluate qrels.txt {}", "labels status {}"])
@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "mysql"])
def test_passwords_of_addresses_are_never_shown(command: str, scheme: str, run: Callable[..., Ended]) -> None:
    done = run(*command.format(f"{scheme}://ann:hunter2@127.0.0.1:1/db").split())
    assert done.code == 2
    assert "hunter2" not in done.out + done.err
    assert scheme.partition("+")[0] in done.err


def test_a_full_disk_below_a_store_is_said(tmp_path: Path) -> None:
    """A database of SQLite that may have four pages: what SQLite says of a full disk."""
    import sqlite3

    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import OperationalError

    from judged.cli.exits import exit_code
    from judged.errors import is_full

    engine = create_engine(f"sqlite:///{tmp_path / 'x.db'}")
    event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count=4"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x TEXT)")
        with pytest.raises(OperationalError) as caught:
            connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    assert is_full(caught.value)
    assert not is_full(OperationalError("", {}, sqlite3.OperationalError("locked")))
    assert exit_code(caught.value) == 74
