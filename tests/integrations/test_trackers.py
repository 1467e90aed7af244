"""Scores in trackers: stand-ins with the interfaces of MLflow and Weights & Biases, and their rules for names."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from judged import InputError, Scores, evaluate
from stand_ins import Mlflow, WandbRun

QRELS = {f"q{i}": {"d": 1 + i % 2, "e": 1} for i in range(12)}
RUNS = {
    "new": {topic: ["d", "e"] for topic in QRELS},
    "old": {topic: ["x", "e", "d"] if i % 3 else ["d"] for i, topic in enumerate(QRELS)},
}
MEASURES = ["nDCG@10", "nDCG(gain=exp2)@10", "AP(rel=2)", "P@5"]


def scores_of(*names: str) -> Scores:
    return evaluate(QRELS, {name: RUNS[name] for name in names}, MEASURES)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    module = Mlflow(tmp_path)
    monkeypatch.setitem(sys.modules, "mlflow", module)
    return module


@pytest.fixture
def wandb_run(monkeypatch):
    module = ModuleType("wandb")
    module.Table = lambda columns, data: SimpleNamespace(columns=columns, data=data)
    monkeypatch.setitem(sys.modules, "wandb", module)
    return WandbRun()


def test_mlflow_has_means_interval_ends_and_scores_of_all_topics(mlflow, tmp_path):
    scores = scores_of("old")
    logged = scores.log_to(mlflow, step=7)
    assert [name for name in logged if not name.endswith(("_low", "_high"))] == [
        *("nDCG_at_10", "nDCG_gain_exp2_at_10"),
        *("AP_rel_2", "P_at_5"),
    ]
    assert mlflow.metrics == [("active", name, value, 7) for name, value in logged.items()]
    first = scores.estimates()[0]
    assert [logged[f"nDCG_at_10{end}"] for end in ("", "_low", "_high")] == [first.value, *first.ci]
    files = sorted(path.name for path in (tmp_path / "active" / "judged").iterdir())
    assert files == ["scores-7.csv", "scores-7.parquet"]
    assert Scores.load(tmp_path / "active" / "judged" / "scores-7.parquet").per_topic() == scores.per_topic()
    assert (tmp_path / "active" / "judged" / "scores-7.csv").read_text().count("\n") == 1 + 12 * len(MEASURES)


def test_a_client_and_an_active_run_log_to_their_run(mlflow, tmp_path):
    scores_of("old").log_to(mlflow, run_id="r1")
    active = SimpleNamespace(info=SimpleNamespace(run_id="r2"))  # as mlflow.start_run() returns it
    scores_of("old").log_to(active, per_topic=False)
    assert {run for run, *_ in mlflow.metrics} == {"r1", "r2"}
    assert [path.name for path in tmp_path.iterdir()] == ["r1"]
    assert (tmp_path / "r1" / "judged" / "scores.parquet").exists()


def test_several_runs_are_told_apart(mlflow):
    logged = scores_of("new", "old").log_to(mlflow)
    assert len(logged) == 2 * 3 * len(MEASURES)
    assert logged["new/P_at_5"] != logged["old/P_at_5"]
    renamed = evaluate(QRELS, {"a@b": RUNS["new"], "a(b)": RUNS["new"], "a[b]": RUNS["old"]}, "P@5")
    with pytest.raises(InputError, match="two metrics would be called 'a_b_/P_at_5'"):
        renamed.log_to(mlflow)


def test_wandb_keeps_names_and_gets_a_table_and_a_file(wandb_run):
    scores = scores_of("new", "old")
    logged = scores.log_to(wandb_run, step=3)
    ((data, step),) = wandb_run.logged
    assert step == 3
    table = data.pop("scores")
    assert data == logged
    assert {"new/nDCG(gain=exp2)@10", "new/nDCG(gain=exp2)@10_low"} < set(logged)
    assert table.columns == ["run", "measure", "query_id", "value"]
    assert len(table.data) == 2 * len(MEASURES) * 12
    assert ["old", "P@5", "q0", 0.2] in table.data
    ((loaded, name, kind),) = wandb_run.artifacts
    assert (loaded.per_topic(), name, kind) == (scores.per_topic(), "scores", "scores")


def test_only_metrics(wandb_run):
    logged = scores_of("new").log_to(wandb_run, per_topic=False)
    assert wandb_run.logged == [(logged, None)]
    assert wandb_run.artifacts == []


def test_means_without_an_interval_and_undefined_means(wandb_run):
    scores = evaluate({"q": {"d": 1}}, {"run": {"q": ["d"]}}, ["P@1", "NumRel"])
    assert "NumRel_low" not in scores.log_to(wandb_run)
    undefined = replace(scores, values=np.full_like(scores.values, np.nan))  # as if the measures left the topic out
    assert undefined.log_to(wandb_run, per_topic=False) == {"NumRel": 0.0}


def test_other_objects_are_refused():
    with pytest.raises(InputError, match="type dict"):
        scores_of("new").log_to({})
