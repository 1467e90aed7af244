"""A query tried live is what the engines themselves give, each built once, and nothing that a page may not choose."""

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
from judged.pipelines.experiments.trial import Trials

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
def trials() -> Iterator[Trials]:
    made = Trials(Plan.of(PLAN))
    yield made
    made.close()


def asked_directly(folder: Path, query: str, **settings: Any) -> dict[str, float]:
    folder.mkdir()
    engine = SqliteFts5()
    usual = {name: setting.default for name, setting in engine.settings.items()}
    engine.build(Texts.read(FILES["documents"]).documents, {**usual, **settings}, folder)
    hits = dict(engine.search(query, 100))
    engine.close()
    return hits


def test_both_lists_are_the_engine_s_own(trials: Trials, tmp_path: Path) -> None:
    query = sample.topics().text(TOPIC)
    tried = trials.attempt(TOPIC, {"stemmer": "english", "title_weight": "3"}, query="largest divisor", measure="AP")
    runs = {
        "control": {TOPIC: asked_directly(tmp_path / "a", query, stemmer="none")},
        "tried": {TOPIC: asked_directly(tmp_path / "b", "largest divisor", title_weight=3.0)},
    }
    scores = evaluate(sample.qrels().over([TOPIC]), runs, "AP")
    (pair,) = tried.sides.topics[0].scores
    assert [pair.first, pair.second] == scores.values[:, 0, 0].tolist()
    for row in tried.sides.topics[0].rows:
        for rank, name in ((row.first_rank, "control"), (row.second_rank, "tried")):
            order = sorted(runs[name][TOPIC].items(), key=lambda hit: (hit[1], hit[0]), reverse=True)
            assert rank is None or order[rank - 1][0] == row.doc_id
    assert tried.facts()["settings"] == {"stemmer": "english", "title_weight": 3.0}
    assert (tried.query, tried.reworded) == ("largest divisor", True)


def test_an_engine_is_built_once_whatever_it_is_a_part_of(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    real = SqliteFts5.build

    def counting(self: Any, documents: Any, configuration: Any, folder: Any) -> None:
        built.append(dict(configuration))
        real(self, documents, configuration, folder)

    monkeypatch.setattr(SqliteFts5, "build", counting)
    trials.attempt(TOPIC, {})
    assert len(built) == 1
    trials.attempt("t06", {"stemmer": "english"})
    trials.attempt(TOPIC, {"stemmer": "english"}, query="divisor")
    assert len(built) == 2
    trials.attempt(TOPIC, {"rrf_k": "10"}, engine="both")
    assert len(built) == 3  # the trigrams
    trials.attempt(TOPIC, {"rrf_k": "20"}, engine="both")
    assert len(built) == 3


def test_what_was_found_becomes_a_configuration_of_the_plan(trials: Trials) -> None:
    found = trials.attempt(TOPIC, {"title_weight": "2.5", "stemmer": "english"})
    levels = tomllib.loads(found.toml)
    assert levels == {"factors": {"title_weight": [1.0, 2.5]}}  # the plan has the stemmer already
    plan = Plan.of({**PLAN, "factors": {**PLAN["factors"], **levels["factors"]}})
    assert {"stemmer": "english", "title_weight": 2.5, "engine": "sqlite"} in [
        one.levels for one in plan.configurations
    ]
    assert trials.attempt(TOPIC, {}).toml == ""


def test_a_query_that_is_refused_is_shown(trials: Trials) -> None:
    found = trials.attempt(TOPIC, {}, query="?!")
    assert len(found.refused) == 1
    assert found.sides.topics[0].scores[0].second == 0
    assert found.refused[0] in found.sentences


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title_weight": "high"}, "title_weight cannot be 'high'"),
        ({"title_weight": "inf"}, "no title_weight"),
        ({"stemmer": "danish"}, "no stemmer 'danish'"),
        ({"k2": "1"}, "no setting 'k2'"),
        ({"rewrite": "os:system"}, "rewrite cannot be changed here"),
        ({"synonyms": "/etc/passwd"}, "synonyms cannot be changed here"),
        ({"tokens": "trigrams", "stemmer": "english"}, "trigrams have no stem"),
    ],
)
def test_what_makes_no_sense_is_refused_and_costs_nothing(trials: Trials, changes: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        trials.attempt(TOPIC, changes)
    assert trials.attempt(TOPIC, {"k1": "3"}).changed == {}  # another engine's setting is left out
    with pytest.raises(InputError, match="no engine 'lucene' is in the plan"):
        trials.attempt(TOPIC, {}, engine="lucene")
    with pytest.raises(InputError):
        trials.attempt("none", {})


def test_numbers_lists_and_choices_are_typed_as_they_are_shown(trials: Trials) -> None:
    settings = trials.settings({"rrf_k": "30", "weights": "2, 1", "depth": "50", "missing": "none"}, "both")
    assert {name: settings[name] for name in ("rrf_k", "weights", "depth")} == {
        "rrf_k": 30.0, "weights": (2.0, 1.0), "depth": 50,
    }  # fmt: skip
    fields = trials.fields(settings)
    assert fields["weights"].value == "2,1"
    assert trials.settings({name: one.value for name, one in fields.items()}, "both") == trials.settings({}, "both") | {
        "rrf_k": 30.0, "weights": (2.0, 1.0), "depth": 50,
    }  # fmt: skip
    assert {"stemmer", "tokens"} <= set(fields)
    assert trials.attempt(TOPIC, {"weights": "2,1"}, engine="both").toml == "[factors]\nweights = [[], [2.0, 1.0]]"


def test_an_engine_that_hangs_ends_at_the_limit_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hanging_try.py").write_text("import threading\ndef search(query, k): threading.Event().wait()\n")
    pipelines = {"hangs": {"engine": "function", "search": "hanging_try:search"}}
    limits = {"build_seconds": 1, "query_seconds": 1}
    plan = Plan.of({**FILES, **limits, "control": {"engine": "hangs"}, "pipelines": pipelines})
    with pytest.raises(InputError, match="hangs: no result after 2 seconds"):
        Trials(plan).attempt(TOPIC, {})
