"""Running: saved runs are what is scored, nothing is done twice, one failure ends nothing, and a stop loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judged
from command_line import process
from judged.data.texts import Texts
from judged.errors import InputError, JudgedWarning
from judged.pipelines.experiments import Plan, conclude, load, run
from judged.pipelines.experiments.engines import engine_named
from judged.pipelines.experiments.results import folder_of
from judged.pipelines.traces import read_traces
from pipelines.experiments import made
from pipelines.experiments.server import postgresql, there

STEMMERS = {"stemmer": ["none", "english"]}
ODD = """
import os, signal, time

def calm(query, k):
    return ["d1", "d2"][:k]

def wrong(query, k):
    raise RuntimeError("the engine is down")

def killed(query, k):
    os.kill(os.getpid(), signal.SIGKILL)

def rising(query, k):
    return [("d1", 1.0), ("d2", 2.0)]

def twice(query, k):
    return ["d1", "d1"]

def silent(query, k):
    return []

def nan(query, k):
    return [("d1", float("nan"))]

def slow(query, k):
    with open(os.environ["PIDS"], "a") as file:
        print(os.getpid(), file=file)
    time.sleep(0.1)
    return ["d3", "d2", "d1"][:k]
"""


def odd_plan(folder: Path, names: list[str]) -> Path:
    (folder / "odd_engines.py").write_text(ODD)
    lists = "\n".join(f"[pipelines.{name}]\nengine = 'function'\nsearch = 'odd_engines:{name}'" for name in names)
    return made.plan_file(folder, f"[factors]\nengine = {names}\n{lists}")


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: load(folder).run(name).table.to_pylist() for name in load(folder).levels}


def test_scores_are_those_of_the_saved_runs_and_runs_those_of_the_engine(tmp_path: Path) -> None:
    plan = Plan.of(made.write(tmp_path) | {"factors": STEMMERS})
    results = run(plan, tmp_path / "out")
    assert results.scores.run_names == ("control", "stemmer=english")
    for configuration in plan.configurations:
        engine = engine_named("sqlite")()
        place = tmp_path / configuration.levels["stemmer"]
        place.mkdir()
        own = {name: value for name, value in configuration.part.settings.items() if name in engine.settings}
        engine.build(Texts.read(plan.documents).documents, own, place)
        asked = {query: dict(engine.search(text, 100)) for query, text in made.QUERIES.items() if query != "q4"}
        rows = results.run(configuration.name).table.to_pylist()
        found: dict[str, dict[str, float]] = {}
        for row in rows:
            found.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
        assert found == {query: hits for query, hits in asked.items() if hits}
        with pytest.warns(JudgedWarning):  # a topic for which nothing was returned
            scores = judged.evaluate(plan.qrels, results.run(configuration.name), ["nDCG@10", "RR"])
        at = results.scores.run_names.index(configuration.name)
        np.testing.assert_array_equal(scores.values[0], results.scores.values[at])
    assert results.levels["stemmer=english"] == {"stemmer": "english"}
    assert results.scores.value("RR", "stemmer=english") == 0.75  # all but "?"
    assert [(one.query_id, one.query, one.reason) for one in results.refused["control"]] == [
        ("q4", "?", "the query has no word")
    ]
    notes = {(note.rule, note.subject): note.text for note in results.scores.notes}
    assert notes["refused-queries", "control"].startswith("1 of 4 queries refused")
    costs = results.costs["control"]
    assert costs["index_mb"] > 0.01
    assert costs["index_joules"] is None or costs["index_joules"] > 0
    assert all(costs[name] > 0 for name in ("index_seconds", "index_cpu_seconds", "p50_ms", "p95_ms", "cold_ms"))
    assert costs["p95_ms_ci"] is None  # of three queries
    assert results.machine["control"]["cores"] == os.cpu_count()
    traces = results.traces("control")
    assert traces.run("sqlite").table.num_rows == results.run("control").table.num_rows


def test_every_engine_is_run_as_it_is(tmp_path: Path) -> None:
    """Each in a process of its own, and asked directly; PostgreSQL where it can be started."""
    engines = ["sqlite", "bm25s", "tantivy", "dense"]
    given = made.write(tmp_path) | {"control": {}, "concurrency": 2, "queries": str(tmp_path / "asked.jsonl")}
    texts = {query: text for query, text in made.QUERIES.items() if text != "?"}
    (tmp_path / "asked.jsonl").write_text(
        "\n".join(json.dumps({"query_id": query, "text": text}) for query, text in texts.items())
    )
    with ExitStack() as kept:
        if there():
            folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="pg"))  # paths of sockets are short
            Path(folder).chmod(0o755)
            dsn = kept.enter_context(postgresql(Path(folder) / "s"))
            given["pipelines"] = {"server": {"engine": "postgresql", "dsn": dsn}}
            engines.append("server")
        plan = Plan.of(given | {"factors": {"engine": engines}})
        results = run(plan, tmp_path / "out")
        assert results.failures == {}
        documents = Texts.read(plan.documents).documents
        for configuration in plan.configurations:
            part = configuration.part
            engine = engine_named(part.engine)()
            place = tmp_path / part.name
            place.mkdir()
            engine.build(documents, {name: part.settings[name] for name in engine.settings}, place)
            found: dict[str, dict[str, float]] = {}
            for row in results.run(configuration.name).table.to_pylist():
                found.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
            asked = {query: dict(engine.search(text, 100)) for query, text in texts.items()}
            assert found == {query: pytest.approx(hits) for query, hits in asked.items() if hits}
            engine.close()
    assert all(costs["queries_per_second"] > 0 for costs in results.costs.values())
    if there():
        assert results.costs["server"]["index_mb"] > 0
        assert results.costs["server"]["index_cpu_seconds"] is results.costs["server"]["peak_mb"] is None
    measured = conclude(results, cost="queries_per_second", resamples=1000)
    assert measured.tradeoff.benefits == ("queries_per_second",)


def test_nothing_is_done_twice_and_what_is_new_is_done(tmp_path: Path) -> None:
    given, told = made.write(tmp_path), list[tuple[str, int]]()

    def tell(label: str, steps: int) -> None:
        if ": " not in label:  # else a step of a configuration that takes long
            told.append((label, steps))

    run(given | {"factors": STEMMERS}, tmp_path / "out", progress=tell)
    assert told == [("control", 0), ("stemmer=english", 1), ("stemmer=english", 1)]
    told.clear()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "configurations").rglob("*")}
    more = given | {"factors": STEMMERS | {"title_weight": [1, 2]}}
    results = run(more, tmp_path / "out", progress=tell)
    assert [name for name, _ in told[:-1]] == ["title_weight=2", "stemmer=english title_weight=2"]
    assert all(path.stat().st_mtime_ns == changed for path, changed in before.items() if path.is_file())
    assert len(results.levels) == 4
    assert len(load(tmp_path / "out").levels) == 4
    assert len(run(given, tmp_path / "out").levels) == 1  # the smaller plan shows its own


def test_one_failure_ends_nothing_and_is_tried_again(tmp_path: Path) -> None:
    names = ["calm", "wrong", "killed", "rising", "twice", "silent", "nan"]
    plan = Plan.read(odd_plan(tmp_path, names))
    results = run(plan, tmp_path / "out")
    (wrong,) = (one.key for one in plan.configurations if one.name == "wrong")
    assert list(results.levels) == ["control"]
    raised = 1 + ODD.splitlines().index('    raise RuntimeError("the engine is down")')
    place = f"{tmp_path / 'odd_engines.py'}:{raised}"
    assert results.failures["wrong"] == f"query q1: RuntimeError: the engine is down ({place})"
    told = json.loads(next((tmp_path / "out" / "configurations").glob(f"{wrong}.*")).read_text())
    assert f"line {raised}, in wrong" in told["traceback"]
    assert {name: why.split(".")[0] for name, why in results.failures.items() if name != "wrong"} == {
        "killed": "its process was ended by signal 9",
        "rising": "query q1: scores rise down the list",
        "twice": "query q1: a document stands in the list twice",
        "silent": "no document was found for any query: it gave none",
        "nan": "query q1: a score is no number",
    }
    assert {note.subject for note in results.scores.notes if note.rule == "failed"} == set(names[1:])
    assert [path.name for path in (tmp_path / "out" / "configurations").glob(".*")] == []
    (tmp_path / "odd_engines.py").write_text(ODD.replace("raise RuntimeError", 'return ["d3"]  #'))
    path = tmp_path / "plan.toml"
    path.write_text(path.read_text().replace(str(names), "['calm', 'wrong']"))
    assert run(path, tmp_path / "out").failures == {}


HANGING = """
import re, threading

def calm(query, k):
    return ["d1", "d2"][:k]

def later(query, k, seen=[]):
    seen.append(query)
    if len(seen) > 4:  # the first round of four queries is answered
        threading.Event().wait()
    return ["d1"]

def busy(query, k):
    re.match(r"(a+)+$", "a" * 64 + "b")  # never ends, and holds the interpreter's lock
"""


def test_an_engine_that_hangs_is_stopped_and_the_others_are_run(tmp_path: Path) -> None:
    names = ["calm", "busy", "later"]
    (tmp_path / "hanging_engines.py").write_text(HANGING)
    lists = "\n".join(f"[pipelines.{name}]\nengine = 'function'\nsearch = 'hanging_engines:{name}'" for name in names)
    plan = made.plan_file(tmp_path, f"query_seconds = 1\n[factors]\nengine = {names}\n{lists}")
    said: list[str] = []
    results = run(plan, tmp_path / "out", progress=lambda label, _: said.append(label))
    assert list(results.levels) == ["control"]
    stopped = {name: why.partition(" after")[0] for name, why in results.failures.items()}
    assert stopped["busy"] == "query q1: no result"
    assert stopped["later"].endswith(": no result")  # in a later round, whose order is random
    assert all("1 seconds" in why and "query_seconds" in why for why in results.failures.values())
    assert [path.name for path in (tmp_path / "out" / "configurations").glob(".*")] == []
    assert [one for one in said if ":" not in one] == ["control", "busy", "later", "later"]


def test_a_build_that_hangs_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "hanging_build.py").write_text("import time\ntime.sleep(3600)\ndef search(query, k): return []")
    lists = "[pipelines.slow]\nengine = 'function'\nsearch = 'hanging_build:search'\n"
    plan = made.plan_file(tmp_path, f"build_seconds = 1\n[factors]\nengine = ['sqlite', 'slow']\n{lists}")
    results = run(plan, tmp_path / "out")
    assert results.failures["slow"].startswith("build: no result after 1 seconds")


def test_limits_are_no_part_of_what_results_depend_on(tmp_path: Path) -> None:
    given = made.write(tmp_path)
    keys = {Plan.of(given | limits).configurations[0].key for limits in ({}, {"build_seconds": 7, "query_seconds": 8})}
    assert len(keys) == 1
    usual = Plan.of(given)
    assert (usual.build_seconds, usual.query_seconds) == (3600, 300)
    with pytest.raises(InputError, match="query_seconds"):
        Plan.of(given | {"query_seconds": 0})


def test_a_control_that_fails_is_an_error_and_so_is_nothing_to_index(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the control has no results: query q1: RuntimeError: the engine is down"):
        run(odd_plan(tmp_path, ["wrong", "calm"]), tmp_path / "out")
    given = made.write(tmp_path)
    (tmp_path / "docs.jsonl").write_text("")
    with pytest.raises(InputError, match=r"docs\.jsonl"):
        run(given, tmp_path / "empty")
    (tmp_path / "docs.jsonl").write_text("[]")
    with pytest.raises(InputError, match="there are no documents to index"):
        run(given, tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    made.write(tmp_path)
    (tmp_path / "qrels.txt").write_text("other 0 d1 1\n")
    with pytest.raises(InputError, match="no query has a judgment"):
        run(given, tmp_path / "others")
    with pytest.raises(InputError, match="there is no experiment here"):
        load(tmp_path / "nowhere")


def test_an_engine_that_is_not_installed_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "bm25s.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "hidden")
    results = run(made.write(tmp_path) | {"factors": {"engine": ["sqlite", "bm25s"]}}, tmp_path / "out")
    assert results.failures == {"bm25s": "bm25s is not installed. Fix: pip install 'judged[engines]'."}
    assert list(results.levels) == ["control"]


def test_a_fusion_and_a_rerank_are_saved_with_their_stages(tmp_path: Path) -> None:
    (tmp_path / "ranking.py").write_text("def longest(query, given): return [len(one.text) for one in given]")
    text = """
[factors]
engine = ["sqlite", "both", "again"]
[pipelines.both]
engine = "fusion"
lists = ["sqlite", "grams"]
[pipelines.grams]
engine = "sqlite"
stemmer = "none"
tokens = "trigrams"
[pipelines.again]
engine = "rerank"
of = "both"
function = "ranking:longest"
"""
    results = run(made.plan_file(tmp_path, text), tmp_path / "out")
    assert results.failures == {}
    stages = results.traces("again").stages
    assert [(stage.name, stage.kind, stage.parents) for stage in stages] == [
        ("sqlite", "candidates", ()), ("grams", "candidates", ()), ("both", "fuse", ("sqlite", "grams")),
        ("again", "rerank", ("both",)),
    ]  # fmt: skip
    lists = {name: results.traces("both").run(name) for name in ("sqlite", "grams")}
    fused = judged.fuse({"sqlite": results.run("control"), "grams": lists["grams"]}, cutoff=100).table.to_pylist()
    assert {(row["query_id"], row["doc_id"]): row["score"] for row in fused} == {
        (row["query_id"], row["doc_id"]): row["score"] for row in results.run("both").table.to_pylist()
    }


def test_stages_stand_in_the_order_in_which_they_were_used(tmp_path: Path) -> None:
    """Equal scores: fused by hand from the places of the traces, and put in another order, they give the saved run."""
    (tmp_path / "ties.py").write_text(
        "def rising(query, k):\n    return [(doc, 1.0) for doc in ['d1', 'd2', 'd3', 'd4']][:k]\n"
        "def mixed(query, k):\n    return [('d2', 5.0), ('d3', 3.0), ('d5', 3.0), ('d4', 3.0)][:k]\n"
        "def alike(query, given):\n    return [0.0] * len(given)\n"
    )
    text = """
[factors]
engine = ["both", "again"]
[pipelines.one]
engine = "function"
search = "ties:rising"
[pipelines.two]
engine = "function"
search = "ties:mixed"
[pipelines.both]
engine = "fusion"
lists = ["one", "two"]
[pipelines.again]
engine = "rerank"
of = "two"
function = "ties:alike"
cutoff = 2
"""
    results = run(made.plan_file(tmp_path, text), tmp_path / "out")
    assert results.failures == {}

    def listed(configuration: str, stage: str) -> list[str]:
        table = results.traces(configuration).run(stage).table.to_pylist()
        return [row["doc_id"] for row in table if row["query_id"] == "q1"]

    def saved(configuration: str) -> dict[str, float]:
        rows = results.run(configuration).table.to_pylist()
        return {row["doc_id"]: row["score"] for row in rows if row["query_id"] == "q1"}

    assert listed("control", "one") == ["d4", "d3", "d2", "d1"]
    assert listed("control", "two") == ["d2", "d5", "d4", "d3"]
    fused: dict[str, float] = {}
    for stage in ("one", "two"):
        for rank, doc in enumerate(listed("control", stage), 1):
            fused[doc] = fused.get(doc, 0) + 1 / (60 + rank)
    assert saved("control") == pytest.approx(fused, abs=1e-15)
    assert listed("again", "again") == list(saved("again")) == ["d5", "d2", "d4", "d3"]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text() if Path(f"/proc/{pid}").exists() else False


def test_killed_at_any_moment_it_ends_as_one_that_never_was(tmp_path: Path) -> None:
    """Killed five times, from the first moments on; what was complete stays, and no process is left behind."""
    path = odd_plan(tmp_path, ["slow", "calm"])
    pids = tmp_path / "pids"
    pids.touch()
    environment = os.environ | {"PIDS": str(pids)}
    start = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to"]
    rng = np.random.default_rng(3)
    for _ in range(5):
        started = subprocess.Popen([*start, str(tmp_path / "killed")], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 3.0))
        started.send_signal(signal.SIGKILL)
        started.wait()
        ended = time.monotonic() + 20
        while any(map(alive, map(int, pids.read_text().split()))) and time.monotonic() < ended:
            time.sleep(0.05)
        assert not any(map(alive, map(int, pids.read_text().split())))
        for done in (tmp_path / "killed" / "configurations").glob("[!.]*"):
            assert {"run.parquet", "traces.jsonl", "costs.json"} <= {file.name for file in done.iterdir()}
    for name in ("killed", "never"):
        subprocess.run([*start, str(tmp_path / name)], env=environment, check=True, stdout=subprocess.DEVNULL)
    assert tables(tmp_path / "killed") == tables(tmp_path / "never")
    keys = [one.key for one in Plan.read(path).configurations]
    assert sorted(one.name for one in (tmp_path / "killed" / "configurations").iterdir()) == sorted(keys)
    for key in keys:
        both = [read_traces(folder_of(tmp_path / name, key) / "traces.jsonl") for name in ("killed", "never")]
        assert [[span.documents for span in one.spans] for one in both[:1]] == [
            [span.documents for span in one.spans] for one in both[1:]
        ]


def test_a_second_run_in_a_folder_ends_with_a_sentence_and_the_first_goes_on(tmp_path: Path) -> None:
    path = odd_plan(tmp_path, ["slow", "calm"])
    (pids := tmp_path / "pids").touch()
    start = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to", str(tmp_path / "out")]
    first = subprocess.Popen(start, env=os.environ | {"PIDS": str(pids)}, stdout=subprocess.DEVNULL)
    ended = time.monotonic() + 30
    while not pids.read_text() and time.monotonic() < ended:
        time.sleep(0.02)
    with pytest.raises(InputError, match=f"another run, process {first.pid}, is at work"):
        run(path, tmp_path / "out")
    assert first.wait() == 0
    assert run(path, tmp_path / "out").failures == {}


def test_a_folder_with_the_results_of_other_files_is_refused(tmp_path: Path) -> None:
    run(made.write(tmp_path / "a"), tmp_path / "out")
    kept = (tmp_path / "out" / "plan.json").read_text()
    with pytest.raises(InputError, match=r"out: the results of another plan are here, .*documents, queries and qrels"):
        run(made.write(tmp_path / "b") | {"depth": 50}, tmp_path / "out")
    assert (tmp_path / "out" / "plan.json").read_text() == kept
    more = made.write(tmp_path / "a") | {"factors": STEMMERS, "measures": ["AP"], "depth": 50}
    assert len(run(more, tmp_path / "out").levels) == 2
    (tmp_path / "a").rename(tmp_path / "c")
    moved = made.write(tmp_path / "c") | {"depth": 50}
    assert len(run(moved, tmp_path / "out").levels) == 1


def test_a_stop_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = odd_plan(tmp_path, ["calm", "slow"])
    (pids := tmp_path / "pids").touch()
    start = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to", str(tmp_path / "out")]
    monkeypatch.setenv("PIDS", str(pids))
    started = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ended = time.monotonic() + 30
    while not pids.read_text() and time.monotonic() < ended:
        time.sleep(0.02)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate()
    assert started.returncode == 130
    assert "\nstopped: 1 done, 1 left" in said, "below the lines of progress"
    assert run(path, tmp_path / "out").failures == {}


def test_the_commands(tmp_path: Path) -> None:
    path = odd_plan(tmp_path, ["calm", "wrong"])
    shown = process("experiment", "plan", str(path), "--format", "json")
    assert [one["configuration"] for one in json.loads(shown.out)["configurations"]] == ["control", "wrong"]
    place = str(tmp_path / "out")
    assert process("experiment", "run", str(path), "--to", place).code == 1
    failed = process("experiment", "show", place)
    assert failed.code == 0
    assert "the engine is down" in failed.err
    (tmp_path / "odd_engines.py").write_text(ODD.replace("raise RuntimeError", 'return ["d3"]  #'))
    done = process("experiment", "run", str(path), "--to", place, "--format", "json", "--resamples", "1000")
    assert done.code == 0
    again = process("experiment", "show", place, "--format", "json", "--resamples", "1000")
    assert json.loads(again.out) == json.loads(done.out)
    sliced = json.loads(process("experiment", "show", place, "--by", "words", "--format", "json").out)
    assert sliced["slices"] == json.loads(conclude(place, by="words").json())["slices"]  # words of its own queries
    assert sliced["slices"] == json.loads(conclude(load(place), by="words").json())["slices"]
    other = json.loads(process("experiment", "show", place, "-m", "R(rel=2)@1", "--format", "json").out)
    assert other["measure"] == "R(rel=2)@1"  # the plan does not name it: it is scored from the saved runs
    assert str(load(place, "R(rel=2)@1").scores.measures[-1]) == other["measure"]
    assert process("experiment", "show", str(tmp_path)).code == 2
