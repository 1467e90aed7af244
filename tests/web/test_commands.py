"""`judged serve`: what is open, where, for whom, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from judged.data import sample
from judged.errors import InputError
from judged.interface.pages.guard import LOOPBACK
from judged.interface.pages.serving import PORT, open_listener
from judged.web import server
from label_stores import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QRELS = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
RUN = "q1 Q0 d2 1 2.0 t\nq1 Q0 d1 2 1.0 t\nq2 Q0 d3 1 1.0 t\n"


@dataclass
class Server:
    """A process that serves, what it said before it was ready, and its address."""

    process: Any
    output: str
    address: str

    @property
    def port(self) -> int:
        return int(self.address.rstrip("/").rpartition(":")[2])

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        base, _, _ = self.address.partition("?")
        request = urllib.request.Request(base.rstrip("/") + path, headers=headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self, how: int = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@contextmanager
def serving(*arguments: str, **env: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "judged", "serve", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", **env},
    )  # fmt: skip
    output = ""
    try:
        for line in process.stdout:
            output += line
            if "Ctrl-C" in line:
                break
        match = re.search(r"http://\S+", output)
        assert match, output + process.stderr.read()
        yield Server(process, output, match[0])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def files(tmp_path) -> tuple[str, str]:
    (tmp_path / "mine.qrels").write_text(QRELS)
    (tmp_path / "first.run").write_text(RUN)
    return str(tmp_path / "mine.qrels"), str(tmp_path / "first.run")


def test_the_sample_is_open_without_files_and_ctrl_c_ends_it_quietly():
    with serving("--port", "0") as server:
        assert "48 topics, 8 runs\n" in server.output
        assert re.search(r"open at http://127\.0\.0\.1:\d+/\n", server.output)
        status, text = server.get("/api/v1/open")
        assert status == 200
        assert '"judgments":1613' in text
        assert server.get("/")[0] == 200
        assert server.get("/shared/vega.js")[0] == 200  # drawn by altair, where pandas is hidden
        status, text = server.get("/compare")
        assert status == 200
        assert "data-spec=" in text  # a chart
        assert server.get("/", Host="evil.example")[0] == 421
        assert server.get("/../../../../etc/passwd")[0] == 404
        code, stderr = server.end()
        assert code == 0
        assert stderr.strip() == ""


def test_labels_are_open_without_the_sample(tmp_path):
    store = store_of(tmp_path / "labels.db")
    with serving("--labels", store.where, "--port", "0") as server:
        assert f"label store {store.where}: {len(store.all_tasks())} tasks, 0 labels" in server.output
        assert re.search(r"http://127\.0\.0\.1:\d+/judging\n", server.output)
        assert '"judgments":0' in server.get("/api/v1/open")[1]
        assert server.get("/judging")[0] == 200
        assert '"assigned":6' in server.get("/api/v1/judging?judge=ann")[1]


def test_a_judge_is_let_in_from_another_machine_by_their_token(tmp_path):
    store = store_of(tmp_path / "labels.db")
    token = store.add_judge("ann")
    with serving("--labels", store.where, "--port", "0", "--host", "0.0.0.0") as server:  # noqa: S104
        bearer = {"Authorization": f"Bearer {token}"}
        assert server.get("/api/v1/judging")[0] == 401
        assert server.get("/api/v1/judging", **bearer)[0] == 200
        assert server.get("/api/v1/open", **bearer)[0] == 401


def test_labels_that_are_not_there_are_not_made(tmp_path):
    missing = tmp_path / "labels.db"
    command = [sys.executable, "-m", "judged", "serve", "--labels", str(missing)]
    done = subprocess.run(command, check=False, capture_output=True)
    assert (done.returncode, missing.exists()) == (2, False)


def test_files_are_open_by_their_names(files, tmp_path):
    qrels, run = files
    (tmp_path / "q.tsv").write_text("q1\tincome tax\n")
    (tmp_path / "a.csv").write_text("query_id,kind\nq1,law\n")
    (tmp_path / "d.jsonl").write_text('{"doc_id": "d1", "text": "a"}\n')
    more = ["--queries", tmp_path / "q.tsv", "--attributes", tmp_path / "a.csv", "--texts", tmp_path / "d.jsonl"]
    with serving(qrels, f"best={run}", run, "--port", "0", *map(str, more)) as server:
        assert server.output.startswith("mine: 2 topics, 2 runs\nruns: best, first\n")
        text = server.get("/api/v1/open")[1]
        assert '"queries":1,"attributes":["kind"],"documents":1' in text
        assert str(tmp_path) not in text


FORM = f'--x\r\nContent-Disposition: form-data; name="qrels"; filename="q"\r\n\r\n{QRELS}\r\n--x--\r\n'.encode()


def upload(server: Server) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(f"{server.address}api/v1/open", data=FORM, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        assert answer.status == 200


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_being_told_to_end_removes_what_was_uploaded(files, tmp_path, how):
    with serving(*files, "--port", "0", TMPDIR=str(tmp_path)) as server:
        upload(server)
        assert len(list(tmp_path.glob("judged-*"))) == 1
        server.end(how)
    assert list(tmp_path.glob("judged-*")) == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_being_told_to_end_while_files_are_sent_is_no_fault(how):
    head = "POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    with serving("--port", "0") as server, socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(FORM)}\r\n\r\n".encode() + FORM[:-9])
        assert server.get("/open")[0] == 200  # what was sent before is being read
        _, stderr = server.end(how)
    assert "Traceback" not in stderr


def test_what_a_killed_server_left_is_removed_at_the_next_start_and_nothing_else(files, tmp_path):
    (tmp_path / "judged-of-somebody-else").mkdir()
    with serving(*files, "--port", "0", TMPDIR=str(tmp_path)) as running:
        upload(running)
        names_before = {row.name for row in tmp_path.iterdir()}
        with serving(*files, "--port", "0", TMPDIR=str(tmp_path)) as server:
            upload(server)
            server.end(signal.SIGKILL)
        assert len({row.name for row in tmp_path.iterdir()} - names_before) == 1
        with serving(*files, "--port", "0", TMPDIR=str(tmp_path)) as server:
            assert server.get("/open")[0] == 200
            assert {row.name for row in tmp_path.iterdir()} == names_before
        assert running.get("/")[0] == 200


def test_a_port_that_is_taken_is_an_error(run):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = run("serve", "--port", str(port))
    assert ended.code == 2
    assert ended.err == f"error: port {port} is in use. Fix: use --port with another port, or omit --port.\n"


def test_the_next_port_is_taken_where_the_usual_one_is_not_free():
    others = []
    try:
        first = open_listener()
        others.append(first.socket)
        second = open_listener()
        others.append(second.socket)
        assert PORT <= first.port < second.port < PORT + 50
    finally:
        for listener in others:
            listener.close()


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["nothing.qrels"], "nothing.qrels: there is no such file"),
        (["--queries", "q.tsv"], "--queries requires QRELS"),
        (["--texts", "d"], "--texts requires QRELS"),
        (["--port", "70000"], "70000"),
        (["--port", "x"], "not a valid integer"),
        (["--host", ""], "`host` must not be empty"),
        (["--host", "192.0.2.1", "--port", "0"], "cannot listen on '192.0.2.1'"),
        (["--host", "a..b", "--port", "0"], "cannot listen on 'a..b'"),
        (["--token", "short", "--port", "0"], "the token is invalid"),
        (["--token", "spaces are not fine", "--port", "0"], "the token is invalid"),
        (["--token", "semi;colon=x", "--port", "0"], "the token is invalid"),
    ],
)
def test_what_makes_no_sense_is_an_error_of_the_input(run, arguments, output):
    ended = run("serve", *arguments)
    assert ended.code == 2
    assert output in ended.err
    assert "Fix: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("library", ["fastapi", "uvicorn", "jinja2", "python_multipart"])
def test_a_missing_library_is_named_with_its_extra(run, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    ended = run("serve")
    name = library.replace("_", "-")
    assert (ended.code, ended.err) == (2, f"error: {name} is not installed. Fix: pip install 'judged[web]'.\n")


def test_help_needs_no_library_of_the_web(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert run("serve", "--help").code == 0
    assert run("--help").code == 0


def test_beyond_this_machine_a_token_is_made_and_needed():
    with serving("--host", "0.0.0.0", "--port", "0") as server:  # noqa: S104
        token = re.search(r"\?token=([\w-]{32})\n", server.output)
        assert token, server.output
        port = re.search(r":(\d+)/", server.address)[1]
        local = Server(server.process, server.output, f"http://127.0.0.1:{port}/")
        assert local.get("/")[0] == 401
        assert local.get("/api/v1/open", Authorization=f"Bearer {token[1]}")[0] == 200
        assert local.get("/api/v1/open", Authorization="Bearer wrong")[0] == 401
        assert local.get("/", Host="evil.example", Authorization=f"Bearer {token[1]}")[0] == 421


def test_a_token_of_ones_own_is_needed_everywhere():
    with serving("--port", "0", JUDGED_TOKEN="my-own-token") as server:  # noqa: S106
        assert server.output.count("?token=my-own-token\n") == 1
        assert server.get("/")[0] == 401
        assert server.get("/", Authorization="Bearer my-own-token")[0] == 200


def test_places_tell_whom_they_answer():
    here = open_listener(port=0)
    anywhere, another = open_listener("0.0.0.0", 0), open_listener("0.0.0.0", 0)  # noqa: S104
    try:
        assert here.token is None
        assert here.rules.hosts == LOOPBACK
        assert here.rules.addresses is False
        assert len(anywhere.token) >= 32
        assert anywhere.rules.addresses is True
        assert anywhere.address.startswith(f"http://{socket.gethostname()}:{anywhere.port}/?token=")
        assert another.token != anywhere.token
    finally:
        for row in (here, anywhere, another):
            row.socket.close()


def test_a_name_that_is_none_is_refused():
    with pytest.raises(InputError, match="cannot listen"):
        open_listener("no.such.name.invalid", 0)


def test_the_browser_is_opened_with_the_address(run, monkeypatch):
    opened: list[str] = []
    done = threading.Event()

    def browse(address: str) -> None:
        opened.append(address)
        done.set()

    class Ended:
        def __init__(self, config: Any) -> None:
            del config

        def run(self, sockets: Any) -> None:
            assert done.wait(10)
            sockets[0].close()
            raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", browse)
    monkeypatch.setattr("judged.web.server.uvicorn.Server", Ended)
    ended = run("serve", "--open", "--port", "0")
    assert ended.code == 0
    assert f"open at {opened[0]}\n" in ended.out


def test_a_progress_bar_is_shown_for_large_runs_alone(run, monkeypatch, files):
    """The bar is that of the other commands: here, that it is asked."""
    run_counts: list[int] = []

    @contextmanager
    def bar(runs: Any) -> Iterator[Any]:
        run_counts.append(len(runs))
        yield lambda _name, count: run_counts.append(count)

    class Ended:
        def __init__(self, config: Any) -> None:
            del config

        def run(self, sockets: Any) -> None:
            sockets[0].close()

    monkeypatch.setattr("judged.interface.arguments.progress_bar", bar)
    monkeypatch.setattr("judged.web.server.uvicorn.Server", Ended)
    assert run("serve", *files, "--port", "0").code == 0
    assert run_counts[0] == 1
    assert sum(run_counts[1:]) == len(RUN)


@pytest.mark.parametrize("library", [SimpleNamespace(), None])
def test_it_starts_where_there_is_no_glibc(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    started: list[object] = []

    def loaded(name: str | None) -> object:
        if library is None:
            raise TypeError(name)  # as on Windows
        return library

    monkeypatch.setattr(server, "CDLL", loaded)
    monkeypatch.setattr(server, "Thread", lambda **arguments: started.append(arguments) or SimpleNamespace(start=str))
    monkeypatch.setattr(server.pa, "set_memory_pool", started.append)  # for this process alone it would stay
    server.prepare()
    assert len(started) == 3


def test_an_experiment_is_open_with_its_own_files(tmp_path: Path) -> None:
    plan = sample.FOLDER / "experiment.toml"
    with serving("--experiment", str(plan), "--port", "0") as server:
        assert "Experiment experiment: 48 topics" in server.output
        assert '"configurations"' in server.get("/api/v1/experiment")[1]
        code, _ = server.end()
    assert code == 0
    for more in (["qrels.txt"], ["--queries", "q.tsv"], ["--results", str(tmp_path)]):
        done = subprocess.run(
            [sys.executable, "-m", "judged", "serve", "--experiment", str(plan), *more],
            check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
