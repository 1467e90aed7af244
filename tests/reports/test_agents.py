"""The section on agents, in a report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import judged
from judged.pipelines.trajectories import Trajectories, evaluate, where
from pipelines.trajectories.agents import simulated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

RECORDS, QRELS, _ = simulated("opened", questions=20, rate=0.3)
RUN = {topic: ["x", *documents] for topic, documents in QRELS.items()}


def test_the_section_says_what_the_answers_say() -> None:
    report = judged.report(QRELS, {"run": RUN}, trajectories=RECORDS)
    section = report.section("agents")
    assert section is not None
    answer = where(RECORDS, QRELS)
    assert answer.sentences[0] in report.sentences
    results = report.to_dict()["results"]
    assert results["evidence_loss"]["parts"] == answer.to_dict()["parts"]
    assert results["agents"]["results"] == evaluate(RECORDS, qrels=QRELS).to_dict()["results"]
    assert {"agents_parts", "agents_headroom", "agents_summary"} <= {block.name for block in section.blocks}
    assert answer.sentences[0] in report.markdown()


def test_the_section_has_the_topics_of_the_report() -> None:
    few = {topic: QRELS[topic] for topic in sorted(QRELS)[:8]}
    report = judged.report(few, {"run": RUN}, trajectories=RECORDS)
    selected = Trajectories.of(RECORDS).of_topics(few)
    assert report.to_dict()["results"]["evidence_loss"]["parts"] == where(selected, few).to_dict()["parts"]


def test_trajectories_of_other_questions_are_an_omitted_section() -> None:
    report = judged.report(QRELS, {"run": RUN}, trajectories=[{"query_id": "other", "correct": True, "steps": []}])
    assert report.section("agents") is None
    assert "agents: " in report.markdown()


def test_the_command_adds_the_section(tmp_path: Path, run: Callable[..., Ended]) -> None:
    (tmp_path / "t.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in RECORDS))
    (tmp_path / "qrels.json").write_text(json.dumps(QRELS))
    (tmp_path / "run.json").write_text(
        json.dumps({topic: {doc: 0.5 - i / 10 for i, doc in enumerate(docs)} for topic, docs in RUN.items()})
    )
    paths = [str(tmp_path / name) for name in ("qrels.json", "run.json", "t.jsonl", "report.html")]
    result = run("report", *paths[:2], "--trajectories", paths[2], "-o", paths[3])
    assert result.code == 0, result.err
    assert 'id="agents"' in (tmp_path / "report.html").read_text()
