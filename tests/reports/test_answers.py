"""The section on answers, in a report."""

from __future__ import annotations

import judged
from judged.pipelines.rag import waterfall
from pipelines.rag.planted_losses import planted


def test_the_section_says_what_the_waterfall_says() -> None:
    planted_data = planted({"old": {"context": 0.3}}, topics=12)
    report = judged.report(planted_data.qrels, {"old": planted_data.runs["last"]}, responses=planted_data.responses)
    section = report.section("answers")
    assert section is not None
    answer = waterfall(planted_data.responses, planted_data.qrels, runs={"old": planted_data.runs["last"]})
    assert answer.sentences[0] in report.sentences
    assert report.to_dict()["results"]["waterfall"] == answer.to_dict()
    assert {"answers_main_steps", "answers_chains"} <= {block.name for block in section.blocks}
    assert answer.sentences[0] in report.markdown()
