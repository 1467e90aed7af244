"""Pipelines with a generator: answers are saved by configuration, generated once per query, and have costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.pipelines.experiments import Plan, conclude, load, run
from judged.pipelines.experiments.runner import pending_configurations
from labels.asking.fake_endpoint import serving
from pipelines.experiments import small_plan

if TYPE_CHECKING:
    from judged.pipelines.rag.responses import Responses

GENERATORS = """
from judged.pipelines.rag.generation import Generated

def first(query, passages):
    with open("asked.txt", "a") as file:
        print(query, file=file)
    return f"{passages[0].text} [1]" if passages else None

def counted(query, passages):
    return Generated([f"{one.doc_id}. [{place}]" for place, one in enumerate(passages, 1)], 10 * len(passages), 3)

def failing(query, passages):
    raise RuntimeError("the model is down")
"""
PLAN = """
[control]
stemmer = "none"
[factors]
engine = ["chain"]
generator = ["generators:first", "generators:counted"]
[pipelines.chain]
engine = "generate"
of = "sqlite"
passages = 2
"""


def write_plan(folder: Path, text: str = PLAN) -> Path:
    path = small_plan.plan_file(folder, text)
    (folder / "generators.py").write_text(GENERATORS.replace('"asked.txt"', repr(str(folder / "asked.txt"))))
    return path


def texts_of(responses: Responses | None, run_name: str) -> dict[str, str | None]:
    assert responses is not None
    return {row["query_id"]: row["text"] for row in responses.of_run(run_name)["answers"].to_pylist()}


def test_answers_are_saved_with_run_and_costs(tmp_path: Path) -> None:
    results = run(write_plan(tmp_path), tmp_path / "out")
    counted_name = "generator=generators:counted"
    assert results.failures == {}
    assert texts_of(results.responses, "control") == {
        "q1": None, "q2": small_plan.DOCUMENTS["d5"], "q3": None, "q4": None,
    }  # fmt: skip
    assert texts_of(results.responses, counted_name)["q2"] == "d5. d1."
    assert (tmp_path / "asked.txt").read_text().splitlines() == list(
        small_plan.QUERIES.values()
    )  # not repeated in rounds of latency
    assert results.costs["control"]["tokens_in"] is None
    assert (results.costs[counted_name]["tokens_in"], results.costs[counted_name]["tokens_out"]) == (10 * 2 / 4, 3.0)
    assert all(costs["answer_ms"] >= 0 for costs in results.costs.values())
    stages = {stage.name: stage.kind for stage in results.traces(counted_name).stages}
    assert stages == {"sqlite": "candidates", "context": "shown", "cited": "cited"}
    assert query_doc_pairs(results.run("control")) == query_doc_pairs(
        results.run(counted_name)
    )  # a generator does not change the list


def query_doc_pairs(run: Any) -> list[tuple[str, str]]:
    return list(zip(run.table["query_id"].to_pylist(), run.table["doc_id"].to_pylist(), strict=True))


def test_verdicts_of_changed_answers_are_dropped(tmp_path: Path) -> None:
    path, out = write_plan(tmp_path), tmp_path / "out"
    run(path, out)
    counted_name = "generator=generators:counted"
    nuggets = [{"query_id": "q2", "nugget_id": "n", "text": "pears are fruit"}]
    verdicts = [
        {"query_id": "q2", "run_id": name, "nugget_id": "n", "verdict": "support"} for name in ("control", counted_name)
    ]
    for name, rows in (("nuggets", nuggets), ("assignments", verdicts)):
        (out / "responses" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    rerun = run(path, out)
    assert rerun.responses is not None
    assert rerun.responses["assignments"].num_rows == 2
    (tmp_path / "generators.py").write_text(GENERATORS.replace("[1]", "[2]").replace('"asked.txt"', "'/dev/null'"))
    assert len(pending_configurations(Plan.read(path), out)) == 2  # results depend on the module
    changed = run(path, out)
    assert changed.responses is not None
    assert [row["run_id"] for row in changed.responses["assignments"].to_pylist()] == [counted_name]
    assert len((out / "responses" / "earlier.assignments.jsonl").read_text().splitlines()) == 2
    assert changed.responses["nuggets"].num_rows == 1


def test_an_error_of_a_generator_fails_its_configuration(tmp_path: Path) -> None:
    text = PLAN.replace('"generators:counted"', '"generators:failing"')
    results = run(write_plan(tmp_path, text), tmp_path / "out")
    assert list(results.levels) == ["control"]
    (reason,) = results.failures.values()
    assert "query q1" in reason
    assert "the model is down" in reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PLAN.replace("generators:first", "generators:none"), "does not define 'none'"),
        (PLAN.replace("passages = 2", "passages = 0"), "passages = 0"),
        (PLAN.replace("generators:first", "model.toml"), r"model.toml"),
        (PLAN.replace('generator = ["generators:first", "generators:counted"]', ""), "chain requires generator"),
        (PLAN.replace('of = "sqlite"', ""), "generate requires of"),
    ],
)
def test_invalid_generators_are_rejected(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        Plan.read(write_plan(tmp_path, text))


def test_a_model_of_an_endpoint_generates(tmp_path: Path) -> None:
    """The model gets numbered passages. NO ANSWER abstains, and an empty answer is dropped."""

    def content(text: str, _: int) -> str:
        if "Question: networking" in text:
            return ""
        return "It is fruit [1]. So it is. [2]" if text.startswith("[1]") else "No answer."

    path = write_plan(tmp_path, PLAN.replace('"generators:first", "generators:counted"', '"model.toml"'))
    with serving(content, usage={"prompt_tokens": 50, "completion_tokens": 4}) as endpoint:
        (tmp_path / "model.toml").write_text(f'base_url = "{endpoint.url}"\nmodel = "m"')
        results = run(path, tmp_path / "out")
        assert endpoint.calls == len(small_plan.QUERIES)
        assert all("logprobs" not in body and body["max_tokens"] == 400 for body in endpoint.bodies)
    assert results.responses is not None
    assert texts_of(results.responses, "control") == {"q1": None, "q2": "It is fruit. So it is.", "q4": None}
    assert results.responses["answers"]["abstained"].to_pylist() == [True, False, True]
    citations = results.responses["citations"].to_pylist()
    assert [(row["sentence"], row["doc_id"]) for row in citations] == [(1, "d5"), (2, "d1")]
    assert (results.costs["control"]["tokens_in"], results.costs["control"]["tokens_out"]) == (50.0, 4.0)


def test_results_without_a_generator_have_no_answers(tmp_path: Path) -> None:
    results = run(small_plan.write(tmp_path), tmp_path / "out")
    assert results.responses is None
    assert "answer_ms" not in results.costs["control"]
    assert not (tmp_path / "out" / "responses").exists()


def test_conclusions_include_the_costs_of_answers(tmp_path: Path) -> None:
    run(write_plan(tmp_path), tmp_path / "out")
    conclusions = conclude(load(tmp_path / "out"), resamples=100, cost="answer_ms")
    assert {"answer_ms", "tokens_in", "tokens_out"} <= {
        column.name for column in conclusions.table("leaderboard").columns
    }


def test_measures_of_answers_are_scored_with_those_of_runs(tmp_path: Path) -> None:
    """For q2, d1 and d3 are relevant. The control cites d5, the other d5 and d1; the other queries have no answers."""
    path = write_plan(tmp_path)
    run(path, tmp_path / "out")
    results = load(tmp_path / "out", ["CitationRecall", "P@1"])
    assert results.scores.measure_names == ("nDCG@10", "RR", "CitationRecall", "P@1")
    recall = {name: scores["CitationRecall"]["q2"] for name, scores in results.scores.per_topic().items()}
    assert recall == {"control": 0.0, "generator=generators:counted": 0.5}
    run_scores = load(tmp_path / "out").scores
    assert results.scores.aggregate()["control"]["RR"] == run_scores.aggregate()["control"]["RR"]
    conclusions = conclude(results, measure="CitationRecall", resamples=100)
    assert conclusions.best == "generator=generators:counted"


def test_a_measure_of_answers_requires_a_generator(tmp_path: Path) -> None:
    run(small_plan.write(tmp_path), tmp_path / "out")
    with pytest.raises(InputError, match="CitationRecall requires generated answers"):
        load(tmp_path / "out", "CitationRecall")
