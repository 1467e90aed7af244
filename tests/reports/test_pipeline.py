"""The section on stages, in a report over the sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import judged
from judged.data import sample
from judged.pipelines.traces import failures
from judged.pipelines.traces.recorder import sample_traces

if TYPE_CHECKING:
    from judged.reports import Report


def make_report(**options: Any) -> Report:
    runs = [run for run in sample.runs() if run.name in {"bm25", "rrf"}]
    return judged.report(sample.qrels(), runs, traces=sample_traces(), **options)


def test_the_section_says_what_the_answers_say() -> None:
    report, answer = make_report(), failures(sample.qrels(), sample_traces(), "nDCG@10")
    section = report.section("pipeline")
    assert section is not None
    assert answer.funnel.sentences[0] in report.sentences
    document = report.to_dict()["results"]
    assert document["failures"] == answer.to_dict()
    assert document["funnel"] == answer.funnel.to_dict()
    names = [block.name for block in section.blocks]
    assert {"pipeline_stages", "pipeline_parts", "pipeline_kinds"} <= set(names)
    assert "at bm25 + tfidf_char" in report.markdown()
    assert "at bm25 + tfidf_char" in report.html()


def test_a_measure_whose_loss_cannot_be_split_leaves_the_section_out() -> None:
    report = make_report(measures="bpref")
    assert report.section("pipeline") is None
    assert any("pipeline" in text for block in report.section("method").blocks for text in getattr(block, "texts", ()))
