"""Pipelines that generate: what is answered is kept by configuration, asked once a query, beside its costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from judged.errors import InputError
from judged.pipelines.experiments import Plan, conclude, load, run
from judged.pipelines.experiments.runner import waiting
from labels.asking.fake_endpoint import serving
from pipelines.experiments import made

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


def planned(folder: Path, text: str = PLAN) -> Path:
    path = made.plan_file(folder, text)
    (folder / "generators.py").write_text(GENERATORS.replace('"asked.txt"', repr(str(folder / "asked.txt"))))
    return path


def texts_of(responses: Responses | None, run_name: str) -> dict[str, str | None]:
    assert responses is not None
    return {row["query_id"]: row["text"] for row in responses.of_run(run_name)["answers"].to_pylist()}


def test_answers_are_kept_beside_the_run_and_its_costs(tmp_path: Path) -> None:
    results = run(planned(tmp_path), tmp_path / "out")
    other = "generator=generators:counted"
    assert results.failures == {}
    assert texts_of(results.responses, "control") == {
        "q1": None, "q2": made.DOCUMENTS["d5"], "q3": None, "q4": None,
    }  # fmt: skip
    assert texts_of(results.responses, other)["q2"] == "d5. d1."
    assert (tmp_path / "asked.txt").read_text().splitlines() == list(made.QUERIES.values())  # not in rounds of latency
    assert results.costs["control"]["tokens_in"] is None
    assert (results.costs[other]["tokens_in"], results.costs[other]["tokens_out"]) == (10 * 2 / 4, 3.0)
    assert all(of["answer_ms"] >= 0 for of in results.costs.values())
    stages = {stage.name: stage.kind for stage in results.traces(other).stages}
    assert stages == {"sqlite": "candidates", "context": "shown", "cited": "cited"}
    assert np_rows(results.run("control")) == np_rows(results.run(other))  # the list is that of what it is made of


def np_rows(given: Any) -> list[tuple[str, str]]:
    return list(zip(given.table["query_id"].to_pylist(), given.table["doc_id"].to_pylist(), strict=True))


def test_verdicts_stay_while_the_answer_does(tmp_path: Path) -> None:
    path, out = planned(tmp_path), tmp_path / "out"
    run(path, out)
    other = "generator=generators:counted"
    nuggets = [{"query_id": "q2", "nugget_id": "n", "text": "pears are fruit"}]
    verdicts = [
        {"query_id": "q2", "run_id": name, "nugget_id": "n", "verdict": "support"} for name in ("control", other)
    ]
    for name, rows in (("nuggets", nuggets), ("assignments", verdicts)):
        (out / "responses" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    again = run(path, out)
    assert again.responses is not None
    assert again.responses["assignments"].num_rows == 2
    (tmp_path / "generators.py").write_text(GENERATORS.replace("[1]", "[2]").replace('"asked.txt"', "'/dev/null'"))
    assert len(waiting(Plan.read(path), out)) == 2  # the module is part of what results depend on
    changed = run(path, out)
    assert changed.responses is not None
    assert [row["run_id"] for row in changed.responses["assignments"].to_pylist()] == [other]
    assert len((out / "responses" / "earlier.assignments.jsonl").read_text().splitlines()) == 2
    assert changed.responses["nuggets"].num_rows == 1


def test_what_a_generator_raises_fails_its_configuration(tmp_path: Path) -> None:
    text = PLAN.replace('"generators:counted"', '"generators:failing"')
    results = run(planned(tmp_path, text), tmp_path / "out")
    assert list(results.levels) == ["control"]
    (why,) = results.failures.values()
    assert "query q1" in why
    assert "the model is down" in why


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PLAN.replace("generators:first", "generators:none"), "there is no 'none'"),
        (PLAN.replace("passages = 2", "passages = 0"), "no passages 0"),
        (PLAN.replace("generators:first", "model.toml"), r"model.toml"),
        (PLAN.replace('generator = ["generators:first", "generators:counted"]', ""), "chain has no generator"),
        (PLAN.replace('of = "sqlite"', ""), "generate needs of"),
    ],
)
def test_plans_that_cannot_generate_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        Plan.read(planned(tmp_path, text))


def test_a_model_of_an_endpoint_generates(tmp_path: Path) -> None:
    """It is told the passages by number; NO ANSWER abstains, an empty answer is none, and tokens are what it says."""

    def content(text: str, _: int) -> str:
        if "Question: networking" in text:
            return ""
        return "It is fruit [1]. So it is. [2]" if text.startswith("[1]") else "No answer."

    path = planned(tmp_path, PLAN.replace('"generators:first", "generators:counted"', '"model.toml"'))
    with serving(content, usage={"prompt_tokens": 50, "completion_tokens": 4}) as fake:
        (tmp_path / "model.toml").write_text(f'base_url = "{fake.url}"\nmodel = "m"')
        results = run(path, tmp_path / "out")
        assert fake.calls == len(made.QUERIES)
        assert all("logprobs" not in body and body["max_tokens"] == 400 for body in fake.bodies)
    assert results.responses is not None
    assert texts_of(results.responses, "control") == {"q1": None, "q2": "It is fruit. So it is.", "q4": None}
    assert results.responses["answers"]["abstained"].to_pylist() == [True, False, True]
    cited = results.responses["citations"].to_pylist()
    assert [(row["sentence"], row["doc_id"]) for row in cited] == [(1, "d5"), (2, "d1")]
    assert (results.costs["control"]["tokens_in"], results.costs["control"]["tokens_out"]) == (50.0, 4.0)


def test_results_without_a_generator_have_no_answers(tmp_path: Path) -> None:
    results = run(made.write(tmp_path), tmp_path / "out")
    assert results.responses is None
    assert "answer_ms" not in results.costs["control"]
    assert not (tmp_path / "out" / "responses").exists()


def test_it_is_concluded_with_what_answers_cost(tmp_path: Path) -> None:
    run(planned(tmp_path), tmp_path / "out")
    found = conclude(load(tmp_path / "out"), resamples=100, cost="answer_ms")
    assert {"answer_ms", "tokens_in", "tokens_out"} <= {column.name for column in found.table("leaderboard").columns}


def test_measures_of_answers_stand_beside_those_of_runs(tmp_path: Path) -> None:
    """Of q2 d1 and d3 are relevant: the control cites d5, the other d5 and d1; the rest is not answered by any."""
    path = planned(tmp_path)
    run(path, tmp_path / "out")
    results = load(tmp_path / "out", ["CitationRecall", "P@1"])
    assert results.scores.measure_names == ("nDCG@10", "RR", "CitationRecall", "P@1")
    found = {name: of["CitationRecall"]["q2"] for name, of in results.scores.per_topic().items()}
    assert found == {"control": 0.0, "generator=generators:counted": 0.5}
    alone = load(tmp_path / "out").scores
    assert results.scores.aggregate()["control"]["RR"] == alone.aggregate()["control"]["RR"]
    concluded = conclude(results, measure="CitationRecall", resamples=100)
    assert concluded.best == "generator=generators:counted"


def test_a_measure_of_answers_needs_a_generator(tmp_path: Path) -> None:
    run(made.write(tmp_path), tmp_path / "out")
    with pytest.raises(InputError, match="CitationRecall is of answers"):
        load(tmp_path / "out", "CitationRecall")
