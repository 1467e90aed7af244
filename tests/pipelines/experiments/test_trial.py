"""TrialEngines agree with direct calls of the engines, build each engine once, and allow no unsafe settings."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from judged import evaluate
from judged.data import sample
from judged.data.texts import Texts
from judged.errors import InputError
from judged.pipelines.experiments import Plan
from judged.pipelines.experiments.engines.databases import SqliteFts5
from judged.pipelines.experiments.trial import TrialEngines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = {
    "documents": str(sample.FOLDER / "docs.jsonl.gz"),
    "queries": str(sample.FOLDER / "queries.jsonl"),
    "qrels": str(sample.FOLDER / "qrels.txt"),
}
PLAN: dict[str, Any] = {
    **FILES,
    "control": {"engine": "sqlite", "stemmer": "none"},
    "factors": {"engine": ["sqlite", "trigrams", "both", "bm25s"], "stemmer": ["none", "english"]},
    "pipelines": {
        "trigrams": {"engine": "sqlite", "tokens": "trigrams", "stemmer": "none"},
        "both": {"engine": "fusion", "lists": ["sqlite", "trigrams"]},
    },
}
TOPIC = "t05"


@pytest.fixture
def trials() -> Iterator[TrialEngines]:
    engines = TrialEngines(Plan.of(PLAN))
    yield engines
    engines.close()


def search_directly(folder: Path, query: str, **settings: Any) -> dict[str, float]:
    folder.mkdir()
    engine = SqliteFts5()
    defaults = {name: setting.default for name, setting in engine.settings.items()}
    engine.build(Texts.read(FILES["documents"]).documents, {**defaults, **settings}, folder)
    hits = dict(engine.search(query, 100))
    engine.close()
    return hits


def test_both_lists_agree_with_direct_searches(trials: TrialEngines, tmp_path: Path) -> None:
    query = sample.topics().text(TOPIC)
    trial = trials.attempt(TOPIC, {"stemmer": "english", "title_weight": "3"}, query="largest divisor", measure="AP")
    runs = {
        "control": {TOPIC: search_directly(tmp_path / "a", query, stemmer="none")},
        "trial": {TOPIC: search_directly(tmp_path / "b", "largest divisor", title_weight=3.0)},
    }
    scores = evaluate(sample.qrels().over([TOPIC]), runs, "AP")
    (pair,) = trial.sides.topics[0].scores
    assert [pair.first, pair.second] == scores.values[:, 0, 0].tolist()
    for row in trial.sides.topics[0].rows:
        for rank, name in ((row.first_rank, "control"), (row.second_rank, "trial")):
            order = sorted(runs[name][TOPIC].items(), key=lambda hit: (hit[1], hit[0]), reverse=True)
            assert rank is None or order[rank - 1][0] == row.doc_id
    assert trial.facts()["settings"] == {"stemmer": "english", "title_weight": 3.0}
    assert (trial.query, trial.reworded) == ("largest divisor", True)


def test_an_engine_is_built_once(trials: TrialEngines, monkeypatch: pytest.MonkeyPatch) -> None:
    built_configurations: list[Any] = []
    original_build = SqliteFts5.build

    def counting_build(self: Any, documents: Any, configuration: Any, folder: Any) -> None:
        built_configurations.append(dict(configuration))
        original_build(self, documents, configuration, folder)

    monkeypatch.setattr(SqliteFts5, "build", counting_build)
    trials.attempt(TOPIC, {})
    assert len(built_configurations) == 1
    trials.attempt("t06", {"stemmer": "english"})
    trials.attempt(TOPIC, {"stemmer": "english"}, query="divisor")
    assert len(built_configurations) == 2
    trials.attempt(TOPIC, {"rrf_k": "10"}, engine="both")
    assert len(built_configurations) == 3  # the trigrams
    trials.attempt(TOPIC, {"rrf_k": "20"}, engine="both")
    assert len(built_configurations) == 3


def test_changed_levels_can_be_added_to_the_plan(trials: TrialEngines) -> None:
    trial = trials.attempt(TOPIC, {"title_weight": "2.5", "stemmer": "english"})
    levels = tomllib.loads(trial.toml)
    assert levels == {"factors": {"title_weight": [1.0, 2.5]}}  # the plan has the stemmer already
    plan = Plan.of({**PLAN, "factors": {**PLAN["factors"], **levels["factors"]}})
    assert {"stemmer": "english", "title_weight": 2.5, "engine": "sqlite"} in [
        configuration.levels for configuration in plan.configurations
    ]
    assert trials.attempt(TOPIC, {}).toml == ""


def test_a_rejected_query_is_reported(trials: TrialEngines) -> None:
    trial = trials.attempt(TOPIC, {}, query="?!")
    assert len(trial.refused) == 1
    assert trial.sides.topics[0].scores[0].second == 0
    assert trial.refused[0] in trial.sentences


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title_weight": "high"}, "title_weight: 'high'"),
        ({"title_weight": "inf"}, "title_weight = inf"),
        ({"stemmer": "danish"}, "stemmer = 'danish'"),
        ({"k2": "1"}, "no setting 'k2'"),
        ({"rewrite": "os:system"}, "rewrite cannot be changed here"),
        ({"synonyms": "/etc/passwd"}, "synonyms cannot be changed here"),
        ({"tokens": "trigrams", "stemmer": "english"}, "trigrams cannot be stemmed"),
    ],
)
def test_invalid_changes_are_rejected(trials: TrialEngines, changes: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        trials.attempt(TOPIC, changes)
    assert trials.attempt(TOPIC, {"k1": "3"}).changed == {}  # settings of other engines are ignored
    with pytest.raises(InputError, match="no engine 'lucene'"):
        trials.attempt(TOPIC, {}, engine="lucene")
    with pytest.raises(InputError):
        trials.attempt("none", {})


def test_values_are_parsed_as_they_are_formatted(trials: TrialEngines) -> None:
    settings = trials.settings({"rrf_k": "30", "weights": "2, 1", "depth": "50", "missing": "none"}, "both")
    assert {name: settings[name] for name in ("rrf_k", "weights", "depth")} == {
        "rrf_k": 30.0, "weights": (2.0, 1.0), "depth": 50,
    }  # fmt: skip
    fields = trials.fields(settings)
    assert fields["weights"].value == "2,1"
    values = {name: field.value for name, field in fields.items()}
    assert trials.settings(values, "both") == trials.settings({}, "both") | {
        "rrf_k": 30.0, "weights": (2.0, 1.0), "depth": 50,
    }  # fmt: skip
    assert {"stemmer", "tokens"} <= set(fields)
    assert trials.attempt(TOPIC, {"weights": "2,1"}, engine="both").toml == "[factors]\nweights = [[], [2.0, 1.0]]"


def test_a_hanging_engine_is_stopped_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hanging_try.py").write_text("import threading\ndef search(query, k): threading.Event().wait()\n")
    pipelines = {"hangs": {"engine": "function", "search": "hanging_try:search"}}
    limits = {"build_seconds": 1, "query_seconds": 1}
    plan = Plan.of({**FILES, **limits, "control": {"engine": "hangs"}, "pipelines": pipelines})
    with pytest.raises(InputError, match="hangs: no result after 2 seconds"):
        TrialEngines(plan).attempt(TOPIC, {})
