"""The steps of `action.yml` run in a real shell, with the files and variables that GitHub gives them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")  # schemathesis installs it
ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
INSTALL, CHECK = ACTION["runs"]["steps"]
INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")
FILES = {"qrels": "qrels.txt", "baseline": "old.run", "candidate": "new.run"}
HOSTILE = "\"; touch broken; $(touch broken) `touch broken` '; touch broken #"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the action runs in bash")


@pytest.fixture
def job(tmp_path: Path):
    """Run a step with inputs; judged is installed without a network: pip makes a link to its source."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "temp").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text(
        f"""#!/bin/bash
if [ "$2" = pip ]; then printf '%s\\n' "${{@: -1}}" > "$RUNNER_TEMP/requirement"; ln -s {ROOT / "src"} "$7"; exit; fi
exec {shlex.quote(sys.executable)} "$@"
"""
    )
    python.chmod(0o755)
    topics = range(1, 31)
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 d1 1\n" for q in topics))
    (tmp_path / "old.run").write_text("".join(f"q{q} Q0 d1 1 {2 + q % 2} old\nq{q} Q0 d2 2 1.5 old\n" for q in topics))
    (tmp_path / "new.run").write_text("".join(f"q{q} Q0 d1 1 1.5 new\nq{q} Q0 d2 2 {q % 5} new\n" for q in topics))
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the working folder was imported')")

    def run(step: dict[str, Any], **inputs: str) -> subprocess.CompletedProcess[str]:
        values = {name: INPUT.sub(lambda match: inputs.get(match[1], ""), text) for name, text in step["env"].items()}
        environment = {
            **{name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_OUTPUT": str(tmp_path / "outputs"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "GITHUB_ACTION_PATH": "/the/action",
        }
        script = tmp_path / "step.sh"
        script.write_text(step["run"])
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]  # as GitHub starts it
        return subprocess.run(
            shell, cwd=tmp_path, env={**environment, **values}, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def gate(job):
    """Run both steps."""

    def run(**inputs: str) -> subprocess.CompletedProcess[str]:
        assert job(INSTALL, **inputs).returncode == 0
        return job(CHECK, **{**FILES, **inputs})

    return run


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "outputs").read_text().splitlines())


def test_a_long_comment_is_shortened(gate, tmp_path):
    gate(measures=" ".join(f"P@{cutoff}" for cutoff in range(1, 400)), margin="0.01")
    summary = (tmp_path / "summary").read_bytes()
    comment = (Path(outputs(tmp_path)["folder"]) / "comment.md").read_bytes()
    assert len(summary) > 60_000 == len(comment.rpartition(b"\n\n")[0])
    assert comment[:60_000] == summary[:60_000]


def test_a_candidate_that_loses_fails_the_job(gate, tmp_path):
    done = gate(measures="RR AP", margin="0.01")
    assert done.returncode == 1, done.stderr
    result = outputs(tmp_path)
    assert result["status"] == "fail"
    written = Path(result["folder"])
    assert json.loads((written / "gate.json").read_text())["exit_code"] == 1
    assert [path.name for path in sorted(written.iterdir())] == [
        "comment.md", "gate.json", "gate.md", "gate.sarif", "gate.xml",
    ]  # fmt: skip
    summary = (tmp_path / "summary").read_text()
    assert summary == (written / "comment.md").read_text()
    assert len(re.findall(r"^\| \*\*fail\*\* \| (?:RR|AP) \|", summary, re.MULTILINE)) == 2


@pytest.mark.parametrize(("strict", "code"), [("", 0), ("false", 0), ("true", 1), ("yes", 2)])
def test_an_inconclusive_check_fails_only_if_the_job_is_strict(strict, code, gate, tmp_path):
    done = gate(measures="RR", margin="0.3", strict=strict)
    assert done.returncode == code, done.stderr
    if code < 2:
        assert outputs(tmp_path)["status"] == ("fail" if code else "inconclusive")


def test_the_same_run_passes(gate, tmp_path):
    assert gate(candidate="old.run", measures="RR", margin="0.01").returncode == 0
    assert outputs(tmp_path)["status"] == "pass"


def test_a_configuration_is_used(gate, tmp_path):
    (tmp_path / "my gate.toml").write_text('[[check]]\nmeasure = "P@1"\nmargin = 0.9\n')
    done = gate(config="my gate.toml")
    assert done.returncode == 0, done.stderr
    assert "P@1" in (tmp_path / "summary").read_text()


def test_wrong_input_has_no_status(gate, tmp_path):
    done = gate(candidate="missing.run", measures="RR", margin="0.1")
    assert done.returncode == 2
    assert "missing.run" in done.stderr
    assert not (tmp_path / "outputs").exists()


def test_lines_of_files_are_not_commands_of_the_runner(gate):
    lines = gate(measures="RR", margin="0.01").stdout.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    assert len(token) == 64
    assert lines[-1] == f"::{token}::"


@pytest.mark.parametrize("name", [name for name in ACTION["inputs"] if name != "version"])
def test_an_input_is_never_run(name, gate, tmp_path):
    inputs = {"measures": "RR", "margin": "0.1", name: HOSTILE}
    assert gate(**inputs).returncode == 2
    assert not (tmp_path / "broken").exists()


def test_a_file_is_never_an_option(gate):
    assert gate(qrels="--help", measures="RR", margin="0.1").returncode == 2


@pytest.mark.parametrize(
    ("version", "requirement"), [("", "/the/action"), ("0.1.0", "judged==0.1.0"), (HOSTILE, f"judged=={HOSTILE}")]
)
def test_the_version_to_install(version, requirement, job, tmp_path):
    assert job(INSTALL, version=version).returncode == 0
    assert (tmp_path / "temp" / "requirement").read_text() == f"{requirement}\n"
    assert not (tmp_path / "broken").exists()


def test_each_input_is_a_variable_and_never_part_of_a_script():
    texts = [text for step in (INSTALL, CHECK) for text in step["env"].values()]
    assert {match[1] for text in texts for match in INPUT.finditer(text)} == set(ACTION["inputs"])
    assert not [step for step in (INSTALL, CHECK) if "${{" in step["run"]]


def test_the_workflows_of_the_pages_use_what_the_action_has():
    texts = [(ROOT / "docs" / name).read_text() for name in ("gate.md", "integrations.md")]
    used = {output for text in texts for output in re.findall(r"steps\.gate\.outputs\.(\w+)", text)}
    assert used == set(ACTION["outputs"])
    workflows = [yaml.safe_load(block) for text in texts for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert len(workflows) == 3
    (step,) = [step for step in workflows[0]["jobs"]["gate"]["steps"] if step.get("id") == "gate"]
    required = {name for name, properties in ACTION["inputs"].items() if properties.get("required")}
    assert required <= set(step["with"]) <= set(ACTION["inputs"])
