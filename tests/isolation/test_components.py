"""Judged works without any of its outer components, as if that did not exist."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from judged.components import PACKAGES, built_in

ROOT = Path(__file__).resolve().parents[2]
OUTER = PACKAGES[1:]
CORE_TESTS = ("results", "data", "stats", "scoring", "comparison", "diagnosis", "integrations", "interface/commands")
COMMANDS = {
    "evaluate": "qrels.txt runs/bm25.run.gz runs/rrf.run.gz -m nDCG@10 -m AP --format json",
    "compare": "qrels.txt runs/bm25.run.gz runs/rrf.run.gz -m nDCG@10",
    "slices": "qrels.txt runs/bm25.run.gz --queries queries.jsonl --by query_class",
    "stages": "qrels.txt runs/bm25.run.gz --cutoff 50",
    "gate": "qrels.txt runs/bm25.run.gz runs/tfidf.run.gz -m nDCG@10 --margin 0.01",
}


def cases() -> list[tuple[str, ...]]:
    """Return what is left out: all outer components, and another one each day; each with JUDGED_ISOLATION=all."""
    every = os.environ.get("JUDGED_ISOLATION") == "all"
    chosen = OUTER[date.today().toordinal() % len(OUTER)]  # noqa: DTZ011  workers must agree
    return [OUTER, *((name,) for name in (OUTER if every else (chosen,)))]


def dependents(left_out: tuple[str, ...]) -> set[str]:
    """Return what cannot be used without some components: these, and those that need them."""
    needs = dict(zip(PACKAGES, (component.needs for component in built_in()), strict=True))
    return {name for name in OUTER if name in left_out or set(needs[name]) & set(left_out)}


@pytest.fixture(scope="module", params=cases(), ids=lambda names: "core-alone" if names == OUTER else names[0])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Install judged without some components; give their names, and the folder."""
    base = tmp_path_factory.mktemp("judged")
    left_out = {ROOT / "src" / "judged" / name for name in request.param}
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, base)

    def ignore(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name) in left_out or name == "__pycache__"]

    shutil.copytree(ROOT / "src", base / "src", ignore=ignore)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(base / "site"), str(base)], check=True)
    return request.param, base / "site"


def judged(place: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(place)}
    command = [sys.executable, "-m", "judged", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, check=False)


def test_the_help_lists_what_is_left(installed, tmp_path):
    left_out, place = installed
    done = judged(place, "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    listed = {line.split()[0] for line in done.stdout.decode().splitlines() if line.startswith("  ") and line.split()}
    gone = dependents(left_out)
    for name, component in zip(PACKAGES, built_in(), strict=True):
        names = {command for commands in component.commands.values() for command in commands}
        assert names.isdisjoint(listed) if name in gone else names <= listed


def test_a_command_of_a_component_that_is_left_out_is_unknown(installed, tmp_path):
    left_out, place = installed
    component = dict(zip(PACKAGES, built_in(), strict=True))[left_out[0]]
    command = next(iter(next(iter(component.commands.values()))))
    done = judged(place, command, cwd=tmp_path)
    assert done.returncode == 2
    assert b"No such command" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_the_core_writes_the_same_bytes(installed, command, tmp_path):
    _, place = installed
    sample = tmp_path / "sample"
    judged(ROOT / "src", "demo", "--to", str(sample), cwd=tmp_path)
    arguments = [command, *COMMANDS[command].split()]
    before, after = (judged(folder, *arguments, cwd=sample) for folder in (ROOT / "src", place))
    assert before.stdout
    assert (after.returncode, after.stdout, after.stderr) == (before.returncode, before.stdout, before.stderr)


def test_the_sample_is_written_without_what_components_add(installed, tmp_path):
    left_out, place = installed
    done = judged(place, "demo", "--to", "sample", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "sample" / "traces.jsonl").exists() == ("pipelines" not in dependents(left_out))


def test_the_tests_of_what_is_left_pass(installed):
    left_out, place = installed
    gone = dependents(left_out)
    rest = [name for name in OUTER[:-1] if name not in gone]  # those of the workbench ask all components
    folders = [str(ROOT / "tests" / name) for name in (*CORE_TESTS, *rest)]
    environment = {**os.environ, "PYTHONPATH": str(place)}
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    quick = ["-m", "not slow and not browser and not oracle and not page"]
    done = subprocess.run([*pytest_, *quick, *folders], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()[-3000:]
