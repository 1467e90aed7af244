"""The examples of docs/integrations.md run, beside stand-ins for the tools, and pytest prints what the page shows."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from judged.data import sample
from stand_ins import PETS, BaseEvaluator, Mlflow, Model

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")


def blocks(section: str, language: str) -> list[str]:
    """Return the code blocks of a section in a language."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    sample.copy(folder / "sample")
    return folder


def test_pytest_prints_what_the_page_shows(folder):
    test, snapshot = blocks("pytest", "python")
    (shown,) = blocks("pytest", "text")
    (folder / "test_search.py").write_text(f"{test}\n\n{snapshot}")
    plugin = ["-p", "judged.integrations.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", *plugin, "test_search.py", *options]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout

    printed = run()
    assert shown in printed
    assert "2 failed" in printed  # there is no baseline yet
    assert "1 passed" in run("--judged-update", "-k", "my_search")
    assert (folder / "judged_snapshots" / "my-search.run").exists()
    assert "1 passed" in run("-k", "my_search")


def test_the_example_of_mlflow(folder, monkeypatch):
    mlflow = Mlflow(folder)
    mlflow.start_run = lambda: open(os.devnull)  # noqa: PTH123, SIM115  any context manager
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.chdir(folder)
    (code,) = blocks("MLflow and Weights & Biases", "python")
    exec(code, {})  # noqa: S102
    names = [f"{name}{end}" for name in ("nDCG_at_10", "AP_rel_2") for end in ("", "_low", "_high")]
    assert [name for _, name, _, _ in mlflow.metrics] == names
    assert {step for *_, step in mlflow.metrics} == {100}
    files = {f"judged/{path.name}" for path in (folder / "active" / "judged").iterdir()}
    table = PAGE.split("\n## MLflow and Weights & Biases\n")[1]
    for name in ("nDCG_at_10", "nDCG_at_10_low", "AP_rel_2", *(name for name in files if name.endswith("parquet"))):
        assert f"`{name}`" in table


def test_the_example_of_sentence_transformers(monkeypatch):
    for name in ("", ".base", ".base.evaluation"):
        monkeypatch.setitem(sys.modules, f"sentence_transformers{name}", ModuleType(f"sentence_transformers{name}"))
    sys.modules["sentence_transformers.base.evaluation"].BaseEvaluator = BaseEvaluator
    module = "judged.integrations.sentence_transformers"
    monkeypatch.delitem(sys.modules, module, raising=False)
    queries, corpus = {"q1": "w1 w2", "q2": "w3", "q3": "w4"}, {"a": "w1", "b": "w2 w3", "c": "w5 w4"}
    relevant_docs = {"q1": {"a"}, "q2": {"b"}, "q3": {"c"}}
    names = {"queries": queries, "corpus": corpus, "relevant_docs": relevant_docs, "model": Model()}
    (code,) = blocks("sentence-transformers", "python")
    try:
        exec(code.replace("evaluator(model)", "evaluator(model); evaluator(model)"), names)  # noqa: S102
        assert importlib.import_module(module).RetrievalEvaluator is names["RetrievalEvaluator"]
    finally:
        sys.modules.pop(module, None)
    assert names["evaluator"].primary_metric in code


def test_the_examples_of_ir_datasets(monkeypatch, tmp_path, run):
    registry = {"beir/scifact/test": PETS}
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(registry=registry, load=registry.__getitem__))
    (code,) = blocks("ir_datasets", "python")
    exec(code, {})  # noqa: S102
    monkeypatch.chdir(tmp_path)
    for name in ("my", "bm25", "dense"):
        Path(f"{name}.run").write_text("q1 Q0 d1 1 2 a\nq2 Q0 d2 1 2 a\n")
    (commands,) = blocks("ir_datasets", "sh")
    for command in commands.splitlines():
        assert run(*command.split()[1:]).code == 0, command
