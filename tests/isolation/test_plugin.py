"""A package that extends judged is installed, and all that it adds is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = "q1: d1=3 d2=2 d3=1\nq2: d9=1\n"
PAGE = """
from fastapi.testclient import TestClient
from judged.interface.pages.workspace import open_workspace
from judged.web.app import make_app
opened = open_workspace({"q1": {"d1": 1}}, {"mine": {"q1": {"d1": 2.0, "d2": 1.0}}})
client = TestClient(make_app(opened), base_url="http://127.0.0.1")
print(client.get("/api/v1/longest").text)
print(client.get("/longest").text)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory):
    """Run Python where the example is installed."""
    place = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(place), str(ROOT / "examples" / "plugin")], check=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(ROOT / "src")])}

    def run(*arguments: str, cwd: Path = place) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    return run


def test_its_measure_and_its_format(python, tmp_path):
    (tmp_path / "my.qrels").write_text("q1 0 d1 1\nq1 0 d3 1\nq2 0 d9 1\n")
    (tmp_path / "my.colon").write_text(LINES)
    files = ["my.qrels", "my.colon", "--run-format", "colon"]
    how = ["-m", "FirstTwo", "--ci", "none", "--format", "csv"]
    done = python("-m", "judged", "evaluate", *files, *how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("my.colon,FirstTwo,mean,0.5,")


def test_a_damaged_file_of_its_format(python, tmp_path):
    (tmp_path / "my.qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "my.colon").write_text("q1: d1\n")
    done = python("-m", "judged", "evaluate", "my.qrels", "my.colon", "--run-format", "colon", cwd=tmp_path)
    assert done.returncode == 2
    assert "my.colon" in done.stderr


def test_its_command(python, tmp_path):
    (tmp_path / "my.colon").write_text(LINES)
    shown = python("-m", "judged", "longest", "my.colon", "--run-format", "colon", "--format", "csv", cwd=tmp_path)
    assert shown.stdout.splitlines()[1:] == ["my.colon,3"]
    listed = python("-m", "judged", "--help").stdout
    assert "Example:\n  longest" in listed
    assert "FirstTwo" in python("-m", "judged", "measures").stdout


def test_its_page(python):
    done = python("-c", PAGE)
    assert done.returncode == 0, done.stderr
    data, page = done.stdout.split("\n", 1)
    assert json.loads(data)["runs"] == [{"run": "mine", "n": 2}]
    assert "<h1>Longest rankings</h1>" in page
    assert 'href="/longest"' in page


def test_its_metric_and_its_layout_of_logs(python, tmp_path):
    (tmp_path / "my.log").write_text("p1 u1 shoes d1 d2*\np2 u2 boots d3* d4*\np3 u1 hats d5\np4 u3 hats d5\n")
    code = """
from judged.online import online_metrics, read_log
print(online_metrics(read_log("my.log", layout="stars"), ["OpenedShare", "ClicksPerPage"]).value("OpenedShare"))
read_log("my.log", layout="moons")
"""
    done = python("-c", code, cwd=tmp_path)
    assert done.stdout == "0.5\n", done.stderr
    assert "unknown layout 'moons'" in done.stderr


def test_its_engine(python, tmp_path):
    (tmp_path / "docs.jsonl").write_text(
        '{"id": "a", "title": "red shoes", "text": "of leather"}\n{"id": "b", "title": "red shoes", "text": ""}\n'
    )
    (tmp_path / "queries.tsv").write_text("q1\tRed shoes\n")
    (tmp_path / "my.qrels").write_text("q1 0 a 1\n")
    plan = 'documents = "docs.jsonl"\nqueries = "queries.tsv"\nqrels = "my.qrels"\nmeasures = ["RR"]\n'
    (tmp_path / "plan.toml").write_text(f'{plan}[control]\nengine = "shortest"\n')
    done = python("-m", "judged", "experiment", "run", "plan.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "plan" / "configurations").glob("*/run.parquet")
    rows = pq.read_table(run).to_pylist()
    assert [(row["doc_id"], row["score"]) for row in rows] == [("b", -2.0), ("a", -4.0)]


@pytest.mark.parametrize(
    ("code", "problem"),
    [("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"), ("COMPONENT = 1", "is not")],
)
def test_a_package_that_is_damaged_is_left_out_with_a_warning(code, problem, tmp_path):
    done = judged_beside("--help", tmp_path, code)
    assert done.returncode == 0
    assert "evaluate" in done.stdout
    assert "extra:COMPONENT" in done.stderr
    assert problem in done.stderr
    listed = judged_beside("plugins", tmp_path, code)
    assert listed.returncode == 1
    assert listed.stderr == ""
    (row,) = json.loads(listed.stdout)["additions"]
    assert problem in row.pop("problem")
    assert row == {"package": "extra", "version": "1.5", "kind": "component", "name": "it", "place": "extra:COMPONENT"}


def judged_beside(command: str, folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run a command where a package of one module is installed."""
    (folder / "extra.py").write_text(code)
    facts = folder / "extra-1.5.dist-info"
    facts.mkdir(exist_ok=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.5\n")
    (facts / "entry_points.txt").write_text("[judged.components]\nit = extra:COMPONENT\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}
    words = [sys.executable, "-m", "judged", command, *["--format", "json"][: 2 * (command == "plugins")]]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_plugins_lists_all_that_a_package_adds(python):
    done = python("-m", "judged", "plugins", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["additions"]
    table = python("-m", "judged", "plugins").stdout.strip()
    assert f"```text\n{table}\n```" in (ROOT / "docs" / "own-measures.md").read_text()
    assert {(row["package"], row["version"], row["problem"]) for row in rows} == {("judged-example", "1.0", "")}
    assert [(row["kind"], row["name"]) for row in rows] == [
        ("measure", "FirstTwo"),
        ("file format", "colon"),
        ("search engine", "shortest"),
        ("online metric", "OpenedShare"),
        ("log layout", "stars"),
        ("command", "longest"),
        ("page", "/longest"),
    ]


def test_plugins_says_what_cannot_be_used(tmp_path):
    code = """
from judged.components import Command, Component
from judged.scoring.measures import P
COMPONENT = Component(
    measures={"Good": "extra:P", "Missing": "extra:Missing"},
    readers={"far": "extra.far:read"},
    commands={"Mine": {"evaluate": Command("extra:P", "Mine."), "mine": Command("extra:P", "Mine.")}},
    serve="extra.away",
)
"""
    done = judged_beside("plugins", tmp_path, code)
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    problems = {(row["kind"], row["name"]): row["problem"] for row in answer["additions"]}
    assert [name for (_, name), problem in problems.items() if not problem] == ["Good", "mine"]
    assert "AttributeError" in problems["measure", "Missing"]
    assert "ModuleNotFoundError" in problems["file format", "far"]
    assert "another package" in problems["command", "evaluate"]
    assert "extra.away" in problems["options of judged serve", "extra.away"]
    assert answer["problems"] == len(answer["sentences"]) == 4


def test_the_page_of_the_documentation_shows_it():
    page = (ROOT / "docs" / "own-measures.md").read_text()
    shown = page[page.index("COMPONENT = Component(") :].partition("```")[0]
    assert shown in (ROOT / "examples" / "plugin" / "judged_example" / "__init__.py").read_text()
