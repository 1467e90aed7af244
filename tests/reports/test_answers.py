"""The section on answers, in a report."""

from __future__ import annotations

import judged
from judged.pipelines.rag import waterfall
from pipelines.rag.planted_losses import planted


def test_the_section_says_what_the_waterfall_says() -> None:
    made = planted({"old": {"context": 0.3}}, topics=12)
    report = judged.report(made.qrels, {"old": made.runs["last"]}, responses=made.responses)
    section = report.section("answers")
    assert section is not None
    answer = waterfall(made.responses, made.qrels, runs={"old": made.runs["last"]})
    assert answer.sentences[0] in report.sentences
    assert report.to_dict()["results"]["waterfall"] == answer.to_dict()
    assert {"answers_lead", "answers_chains"} <= {block.name for block in section.blocks}
    assert answer.sentences[0] in report.markdown()
