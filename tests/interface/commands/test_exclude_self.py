"""Documents that have the id of their topic: noticed where they come first, and left out on request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from judged import Qrels, Run, compare, evaluate, gate, judge
from judged.data.write import write_qrels, write_run
from judged.diagnosis.gates import read_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

TOPICS = [f"q{at:02}" for at in range(40)]
QRELS = {topic: {f"d{topic}": 1} for topic in TOPICS}


def run_of(first: int) -> dict[str, dict[str, float]]:
    """Return the topic's own id first in so many topics, and behind the relevant document in the others."""
    return {topic: {topic: 3.0 if at < first else 1.0, f"d{topic}": 2.0} for at, topic in enumerate(TOPICS)}


def rules(answer: Any) -> set[str]:
    return {note.rule for note in answer.notes}


@pytest.mark.parametrize("first", [0, 7, 40])
def test_topics_that_find_themselves_are_counted_in_every_form(first: int, tmp_path: Path) -> None:
    run = run_of(first)
    rows = [(topic, doc, score) for topic, docs in run.items() for doc, score in docs.items()]
    write_run(Run.of(run), tmp_path / "a.run")
    scattered = pl.DataFrame(rows[::2] + rows[1::2], schema=["query_id", "doc_id", "score"], orient="row")
    counts = [judge(QRELS, form).n_self_top for form in (run, tmp_path / "a.run", scattered)]
    assert counts == [first] * 3
    tied = {topic: dict.fromkeys(docs, 1.0) for topic, docs in run.items()}
    assert judge(QRELS, tied).n_self_top == 40


@pytest.mark.parametrize(("first", "noted"), [(0, False), (19, False), (20, True), (40, True)])
def test_a_warning_where_most_topics_find_themselves(first: int, noted: bool) -> None:
    run = run_of(first)
    plain, left_out = (evaluate(QRELS, run, "RR", exclude_self=exclude) for exclude in (None, True))
    assert ("self-first" in rules(plain)) is noted
    assert plain.value("RR") == pytest.approx(1 - first / 80)
    assert (left_out.value("RR"), "self-first" in rules(left_out)) == (1.0, False)
    assert left_out.policies.exclude_self
    assert left_out.policies.describe(40) != plain.policies.describe(40)


def test_a_warning_where_a_relevant_document_is_left_out() -> None:
    qrels = {topic: {f"d{topic}": 1, topic: 1 if at < 4 else 0} for at, topic in enumerate(TOPICS)}
    left_out = evaluate(qrels, run_of(40), "R@10", dialect="beir")
    assert left_out.value("R@10") == pytest.approx((36 + 4 / 2) / 40)
    [note] = [note for note in left_out.notes if note.rule == "relevant-self-removed"]
    assert note.text.startswith("in 4 topics, ")
    kept = evaluate(qrels, run_of(40), "R@10", dialect="beir", exclude_self=False)
    assert (kept.value("R@10"), rules(kept) & {"relevant-self-removed"}) == (1.0, set())


def test_commands_and_gates_leave_them_out(run: Callable[..., Ended], tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("q.txt", "a.run", "b.run")]
    write_qrels(Qrels.of(QRELS), names[0])
    write_run(Run.of(run_of(40)), names[1])
    write_run(Run.of(run_of(0)), names[2])
    found = json.loads(run("evaluate", *names, "-m", "RR", "--exclude-self", "--format", "json").out)
    assert [row["value"] for row in found["results"]] == [1.0, 1.0]
    assert found["policies"]["exclude_self"] is True
    compared = compare(names[0], names[1:], measures="RR", exclude_self=True)
    assert [pair.result.difference for pair in compared.measures[0].pairs] == [0.0]
    assert run("compare", *names, "-m", "RR", "--exclude-self").code == 0
    config = tmp_path / "gate.toml"
    config.write_text('[gate]\nexclude_self = true\n[[check]]\nmeasure = "RR"\nmargin = 0.01\n')
    assert gate(names[0], {"old": names[2]}, {"new": names[1]}, read_config(config)).passed
