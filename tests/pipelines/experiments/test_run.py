"""Running: scores are those of saved runs, nothing is run twice, and failures and interruptions lose nothing else."""

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
from judged.pipelines.experiments.engines import find_engine
from judged.pipelines.experiments.results import results_folder
from judged.pipelines.traces import read_traces
from pipelines.experiments import small_plan
from pipelines.experiments.server import can_start_postgresql, postgresql

STEMMERS = {"stemmer": ["none", "english"]}
ODD_ENGINES = """
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
    (folder / "odd_engines.py").write_text(ODD_ENGINES)
    pipeline_tables = "\n".join(
        f"[pipelines.{name}]\nengine = 'function'\nsearch = 'odd_engines:{name}'" for name in names
    )
    return small_plan.plan_file(folder, f"[factors]\nengine = {names}\n{pipeline_tables}")


def saved_tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: load(folder).run(name).table.to_pylist() for name in load(folder).levels}


def test_scores_and_runs_agree_with_direct_searches(tmp_path: Path) -> None:
    plan = Plan.of(small_plan.write(tmp_path) | {"factors": STEMMERS})
    results = run(plan, tmp_path / "out")
    assert results.scores.run_names == ("control", "stemmer=english")
    for configuration in plan.configurations:
        engine = find_engine("sqlite")()
        index_folder = tmp_path / configuration.levels["stemmer"]
        index_folder.mkdir()
        engine_settings = {
            name: value for name, value in configuration.node.settings.items() if name in engine.settings
        }
        engine.build(Texts.read(plan.documents).documents, engine_settings, index_folder)
        direct_hits = {
            query: dict(engine.search(text, 100)) for query, text in small_plan.QUERIES.items() if query != "q4"
        }
        rows = results.run(configuration.name).table.to_pylist()
        saved_hits: dict[str, dict[str, float]] = {}
        for row in rows:
            saved_hits.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
        assert saved_hits == {query: hits for query, hits in direct_hits.items() if hits}
        with pytest.warns(JudgedWarning):  # a topic without results
            scores = judged.evaluate(plan.qrels, results.run(configuration.name), ["nDCG@10", "RR"])
        run_index = results.scores.run_names.index(configuration.name)
        np.testing.assert_array_equal(scores.values[0], results.scores.values[run_index])
    assert results.levels["stemmer=english"] == {"stemmer": "english"}
    assert results.scores.value("RR", "stemmer=english") == 0.75  # all but "?"
    assert [
        (refused_query.query_id, refused_query.query, refused_query.reason)
        for refused_query in results.refused["control"]
    ] == [("q4", "?", "the query has no word")]
    notes = {(note.rule, note.subject): note.text for note in results.scores.notes}
    assert notes["refused-queries", "control"].startswith("the engine refused 1 of 4 queries")
    costs = results.costs["control"]
    assert costs["index_mb"] > 0.01
    assert costs["index_joules"] is None or costs["index_joules"] > 0
    assert all(costs[name] > 0 for name in ("index_seconds", "index_cpu_seconds", "p50_ms", "p95_ms", "cold_ms"))
    assert costs["p95_ms_ci"] is None  # of three queries
    assert results.machine["control"]["cores"] == os.cpu_count()
    traces = results.traces("control")
    assert traces.run("sqlite").table.num_rows == results.run("control").table.num_rows
    stemmers = {span.settings["stemmer"] for span in results.traces("stemmer=english").spans}
    assert (stemmers, traces.spans[0].settings["stemmer"] == "english") == ({"english"}, False)


def test_every_engine_agrees_with_direct_searches(tmp_path: Path) -> None:
    """Each engine in its own process, compared with direct searches; PostgreSQL if available."""
    engines = ["sqlite", "bm25s", "tantivy", "dense"]
    plan_fields = small_plan.write(tmp_path) | {
        "control": {},
        "concurrency": 2,
        "queries": str(tmp_path / "asked.jsonl"),
    }
    texts = {query: text for query, text in small_plan.QUERIES.items() if text != "?"}
    (tmp_path / "asked.jsonl").write_text(
        "\n".join(json.dumps({"query_id": query, "text": text}) for query, text in texts.items())
    )
    with ExitStack() as stack:
        if can_start_postgresql():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pg"))  # paths of sockets are short
            Path(folder).chmod(0o755)
            dsn = stack.enter_context(postgresql(Path(folder) / "s"))
            plan_fields["pipelines"] = {"server": {"engine": "postgresql", "dsn": dsn}}
            engines.append("server")
        plan = Plan.of(plan_fields | {"factors": {"engine": engines}})
        results = run(plan, tmp_path / "out")
        assert results.failures == {}
        documents = Texts.read(plan.documents).documents
        for configuration in plan.configurations:
            node = configuration.node
            engine = find_engine(node.engine)()
            index_folder = tmp_path / node.name
            index_folder.mkdir()
            engine.build(documents, {name: node.settings[name] for name in engine.settings}, index_folder)
            saved_hits: dict[str, dict[str, float]] = {}
            for row in results.run(configuration.name).table.to_pylist():
                saved_hits.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
            direct_hits = {query: dict(engine.search(text, 100)) for query, text in texts.items()}
            assert saved_hits == {query: pytest.approx(hits) for query, hits in direct_hits.items() if hits}
            engine.close()
    assert all(costs["queries_per_second"] > 0 for costs in results.costs.values())
    if can_start_postgresql():
        assert results.costs["server"]["index_mb"] > 0
        assert results.costs["server"]["index_cpu_seconds"] is results.costs["server"]["peak_mb"] is None
    conclusions = conclude(results, cost="queries_per_second", resamples=1000)
    assert conclusions.tradeoff.benefits == ("queries_per_second",)


def test_only_new_configurations_are_run(tmp_path: Path) -> None:
    plan_fields, calls = small_plan.write(tmp_path), list[tuple[str, int]]()

    def record_call(label: str, steps: int) -> None:
        if ": " not in label:  # else a long step of a configuration
            calls.append((label, steps))

    run(plan_fields | {"factors": STEMMERS}, tmp_path / "out", progress=record_call)
    assert calls == [("control", 0), ("stemmer=english", 1), ("stemmer=english", 1)]
    calls.clear()
    modified_times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "configurations").rglob("*")}
    larger_plan = plan_fields | {"factors": STEMMERS | {"title_weight": [1, 2]}}
    results = run(larger_plan, tmp_path / "out", progress=record_call)
    assert [name for name, _ in calls[:-1]] == ["title_weight=2", "stemmer=english title_weight=2"]
    assert all(path.stat().st_mtime_ns == modified for path, modified in modified_times.items() if path.is_file())
    assert len(results.levels) == 4
    assert len(load(tmp_path / "out").levels) == 4
    assert len(run(plan_fields, tmp_path / "out").levels) == 1  # only the configurations of the smaller plan


def test_a_failed_configuration_does_not_stop_the_run_and_is_tried_again(tmp_path: Path) -> None:
    names = ["calm", "wrong", "killed", "rising", "twice", "silent", "nan"]
    plan = Plan.read(odd_plan(tmp_path, names))
    results = run(plan, tmp_path / "out")
    (failed_key,) = (configuration.key for configuration in plan.configurations if configuration.name == "wrong")
    assert list(results.levels) == ["control"]
    line = 1 + ODD_ENGINES.splitlines().index('    raise RuntimeError("the engine is down")')
    location = f"{tmp_path / 'odd_engines.py'}:{line}"
    assert results.failures["wrong"] == f"query q1: RuntimeError: the engine is down ({location})"
    failure = json.loads(next((tmp_path / "out" / "configurations").glob(f"{failed_key}.*")).read_text())
    assert f"line {line}, in wrong" in failure["traceback"]
    assert {name: problem.split(".")[0] for name, problem in results.failures.items() if name != "wrong"} == {
        "killed": "the process was ended by signal 9",
        "rising": "query q1: scores must not increase with rank",
        "twice": "query q1: documents must be unique",
        "silent": "no query has results: the engine returned nothing",
        "nan": "query q1: scores must be finite",
    }
    assert {note.subject for note in results.scores.notes if note.rule == "failed"} == set(names[1:])
    assert [path.name for path in (tmp_path / "out" / "configurations").glob(".*")] == []
    (tmp_path / "odd_engines.py").write_text(ODD_ENGINES.replace("raise RuntimeError", 'return ["d3"]  #'))
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


def test_a_hanging_engine_is_stopped_and_the_others_are_run(tmp_path: Path) -> None:
    names = ["calm", "busy", "later"]
    (tmp_path / "hanging_engines.py").write_text(HANGING)
    pipeline_tables = "\n".join(
        f"[pipelines.{name}]\nengine = 'function'\nsearch = 'hanging_engines:{name}'" for name in names
    )
    plan = small_plan.plan_file(tmp_path, f"query_seconds = 1\n[factors]\nengine = {names}\n{pipeline_tables}")
    labels: list[str] = []
    results = run(plan, tmp_path / "out", progress=lambda label, _: labels.append(label))
    assert list(results.levels) == ["control"]
    stopped = {name: problem.partition(" after")[0] for name, problem in results.failures.items()}
    assert stopped["busy"] == "query q1: no result"
    assert stopped["later"].endswith(": no result")  # in a later round, whose order is random
    assert all("1 seconds" in problem and "query_seconds" in problem for problem in results.failures.values())
    assert [path.name for path in (tmp_path / "out" / "configurations").glob(".*")] == []
    assert [label for label in labels if ":" not in label] == ["control", "busy", "later", "later"]


def test_a_build_that_hangs_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "hanging_build.py").write_text("import time\ntime.sleep(3600)\ndef search(query, k): return []")
    pipeline_tables = "[pipelines.slow]\nengine = 'function'\nsearch = 'hanging_build:search'\n"
    plan = small_plan.plan_file(
        tmp_path, f"build_seconds = 1\n[factors]\nengine = ['sqlite', 'slow']\n{pipeline_tables}"
    )
    results = run(plan, tmp_path / "out")
    assert results.failures["slow"].startswith("build: no result after 1 seconds")


def test_keys_do_not_depend_on_time_limits(tmp_path: Path) -> None:
    plan_fields = small_plan.write(tmp_path)
    keys = {
        Plan.of(plan_fields | limits).configurations[0].key for limits in ({}, {"build_seconds": 7, "query_seconds": 8})
    }
    assert len(keys) == 1
    plan = Plan.of(plan_fields)
    assert (plan.build_seconds, plan.query_seconds) == (3600, 300)
    with pytest.raises(InputError, match="query_seconds"):
        Plan.of(plan_fields | {"query_seconds": 0})


def test_a_failed_control_and_missing_documents_are_errors(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="the control configuration has no results: query q1: RuntimeError: the engine is down"
    ):
        run(odd_plan(tmp_path, ["wrong", "calm"]), tmp_path / "out")
    plan_fields = small_plan.write(tmp_path)
    (tmp_path / "docs.jsonl").write_text("")
    with pytest.raises(InputError, match=r"docs\.jsonl"):
        run(plan_fields, tmp_path / "empty")
    (tmp_path / "docs.jsonl").write_text("[]")
    with pytest.raises(InputError, match="the file has no documents"):
        run(plan_fields, tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    small_plan.write(tmp_path)
    (tmp_path / "qrels.txt").write_text("other 0 d1 1\n")
    with pytest.raises(InputError, match="no query has a judgment"):
        run(plan_fields, tmp_path / "others")
    with pytest.raises(InputError, match="the folder has no experiment"):
        load(tmp_path / "nowhere")


def test_a_missing_library_is_reported_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "bm25s.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path / "hidden")
    results = run(small_plan.write(tmp_path) | {"factors": {"engine": ["sqlite", "bm25s"]}}, tmp_path / "out")
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
    results = run(small_plan.plan_file(tmp_path, text), tmp_path / "out")
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


def test_stages_have_the_order_that_was_used(tmp_path: Path) -> None:
    """With equal scores, fusion and reranking calculated from the ranks of the traces agree with the saved run."""
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
    results = run(small_plan.plan_file(tmp_path, text), tmp_path / "out")
    assert results.failures == {}

    def traced_docs(configuration: str, stage: str) -> list[str]:
        table = results.traces(configuration).run(stage).table.to_pylist()
        return [row["doc_id"] for row in table if row["query_id"] == "q1"]

    def saved_scores(configuration: str) -> dict[str, float]:
        rows = results.run(configuration).table.to_pylist()
        return {row["doc_id"]: row["score"] for row in rows if row["query_id"] == "q1"}

    assert traced_docs("control", "one") == ["d4", "d3", "d2", "d1"]
    assert traced_docs("control", "two") == ["d2", "d5", "d4", "d3"]
    fused: dict[str, float] = {}
    for stage in ("one", "two"):
        for rank, doc in enumerate(traced_docs("control", stage), 1):
            fused[doc] = fused.get(doc, 0) + 1 / (60 + rank)
    assert saved_scores("control") == pytest.approx(fused, abs=1e-15)
    assert traced_docs("again", "again") == list(saved_scores("again")) == ["d5", "d2", "d4", "d3"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text() if Path(f"/proc/{pid}").exists() else False


def test_an_interrupted_run_can_be_continued(tmp_path: Path) -> None:
    """Killed five times at random; complete results stay, and no process is left behind."""
    path = odd_plan(tmp_path, ["slow", "calm"])
    pids = tmp_path / "pids"
    pids.touch()
    environment = os.environ | {"PIDS": str(pids)}
    command = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to"]
    rng = np.random.default_rng(3)
    for _ in range(5):
        process = subprocess.Popen([*command, str(tmp_path / "killed")], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 3.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        deadline = time.monotonic() + 20
        while any(map(is_alive, map(int, pids.read_text().split()))) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(is_alive, map(int, pids.read_text().split())))
        for results_path in (tmp_path / "killed" / "configurations").glob("[!.]*"):
            assert {"run.parquet", "traces.jsonl", "costs.json"} <= {file.name for file in results_path.iterdir()}
    for name in ("killed", "never"):
        subprocess.run([*command, str(tmp_path / name)], env=environment, check=True, stdout=subprocess.DEVNULL)
    assert saved_tables(tmp_path / "killed") == saved_tables(tmp_path / "never")
    keys = [configuration.key for configuration in Plan.read(path).configurations]
    assert sorted(configuration.name for configuration in (tmp_path / "killed" / "configurations").iterdir()) == sorted(
        keys
    )
    for key in keys:
        trace_pair = [
            read_traces(results_folder(tmp_path / name, key) / "traces.jsonl") for name in ("killed", "never")
        ]
        assert [[span.documents for span in configuration.spans] for configuration in trace_pair[:1]] == [
            [span.documents for span in configuration.spans] for configuration in trace_pair[1:]
        ]


def test_a_second_run_in_a_folder_is_rejected(tmp_path: Path) -> None:
    path = odd_plan(tmp_path, ["slow", "calm"])
    (pids := tmp_path / "pids").touch()
    command = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to", str(tmp_path / "out")]
    first = subprocess.Popen(command, env=os.environ | {"PIDS": str(pids)}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not pids.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(InputError, match=f"another experiment run uses the folder .process {first.pid}."):
        run(path, tmp_path / "out")
    assert first.wait() == 0
    assert run(path, tmp_path / "out").failures == {}


def test_a_folder_with_results_of_other_files_is_rejected(tmp_path: Path) -> None:
    run(small_plan.write(tmp_path / "a"), tmp_path / "out")
    plan_text = (tmp_path / "out" / "plan.json").read_text()
    with pytest.raises(
        InputError, match=r"out: .* results of another plan .in .*, which has different documents, queries and qrels"
    ):
        run(small_plan.write(tmp_path / "b") | {"depth": 50}, tmp_path / "out")
    assert (tmp_path / "out" / "plan.json").read_text() == plan_text
    larger_plan = small_plan.write(tmp_path / "a") | {"factors": STEMMERS, "measures": ["AP"], "depth": 50}
    assert len(run(larger_plan, tmp_path / "out").levels) == 2
    (tmp_path / "a").rename(tmp_path / "c")
    moved_plan = small_plan.write(tmp_path / "c") | {"depth": 50}
    assert len(run(moved_plan, tmp_path / "out").levels) == 1


def test_an_interrupt_reports_how_to_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = odd_plan(tmp_path, ["calm", "slow"])
    (pids := tmp_path / "pids").touch()
    command = [sys.executable, "-m", "judged", "experiment", "run", str(path), "--to", str(tmp_path / "out")]
    monkeypatch.setenv("PIDS", str(pids))
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not pids.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate()
    assert process.returncode == 130
    assert "\nstopped: 1 of 2 configurations done" in messages, "after the progress lines"
    assert run(path, tmp_path / "out").failures == {}


def test_the_commands(tmp_path: Path) -> None:
    path = odd_plan(tmp_path, ["calm", "wrong"])
    planned = process("experiment", "plan", str(path), "--format", "json")
    assert [row["configuration"] for row in json.loads(planned.out)["configurations"]] == ["control", "wrong"]
    results_path = str(tmp_path / "out")
    assert process("experiment", "run", str(path), "--to", results_path).code == 1
    failed = process("experiment", "show", results_path)
    assert failed.code == 0
    assert "the engine is down" in failed.err
    (tmp_path / "odd_engines.py").write_text(ODD_ENGINES.replace("raise RuntimeError", 'return ["d3"]  #'))
    completed = process("experiment", "run", str(path), "--to", results_path, "--format", "json", "--resamples", "1000")
    assert completed.code == 0
    repeated = process("experiment", "show", results_path, "--format", "json", "--resamples", "1000")
    assert json.loads(repeated.out) == json.loads(completed.out)
    sliced = json.loads(process("experiment", "show", results_path, "--by", "words", "--format", "json").out)
    assert (
        sliced["slices"] == json.loads(conclude(results_path, by="words").json())["slices"]
    )  # the attribute `words` is derived from the queries
    assert sliced["slices"] == json.loads(conclude(load(results_path), by="words").json())["slices"]
    by_other_measure = json.loads(
        process("experiment", "show", results_path, "-m", "R(rel=2)@1", "--format", "json").out
    )
    assert by_other_measure["measure"] == "R(rel=2)@1"  # not in the plan: scored from the saved runs
    assert str(load(results_path, "R(rel=2)@1").scores.measures[-1]) == by_other_measure["measure"]
    assert process("experiment", "show", str(tmp_path)).code == 2
