"""The sample's pipeline as traces: two rankers, their fusion, and the first page that people would see."""

from __future__ import annotations

from dataclasses import replace

from judged.data import sample
from judged.pipelines.traces.traces import Traces, traces_of_runs

_SHOWN = 10  # documents of a page


def sample_traces() -> Traces:
    """Give what stages of a pipeline made of the sample's topics.

    Candidates are `bm25` and `tfidf_char`, 50 documents each; `rrf` is what reciprocal rank fusion made of them, cut at
    50; people are shown the first ten.

    >>> [(stage.name, stage.kind, stage.parents) for stage in sample_traces().stages][2:]
    [('rrf', 'fuse', ('bm25', 'tfidf_char')), ('shown', 'shown', ('rrf',))]
    """
    runs = {run.name: run for run in sample.runs()}
    stages = {name: runs[name] for name in ("bm25", "tfidf_char", "rrf")} | {"shown": runs["rrf"]}
    traces = traces_of_runs(stages, parents={"tfidf_char": (), "rrf": ("bm25", "tfidf_char")})
    queries = sample.topics()
    spans = [replace(span, query=queries.text(span.query_id)) for span in traces.spans]
    return Traces(
        tuple(
            replace(span, kind="shown", documents=(span.documents or ())[:_SHOWN]) if span.stage == "shown" else span
            for span in spans
        ),
        "pydocs",
    )
