"""`judged rag waterfall`: at which step evidence is lost on the way from the corpus to the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import shared
from judged.cli.rag_inputs import responses_at, sources
from judged.cli.slice_options import SliceOptions, slice_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give
    from judged.cli.rag_inputs import Before
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.pipelines.traces import Traces


@click.command("waterfall", short_help="Where the evidence went, and which step to work on.")
@sources
@click.option("--traces", "paths", multiple=True, metavar="FILE", help="Traces, in place of runs. Repeat for more.")
@click.option(
    "--cutoffs",
    nargs=2,
    type=click.IntRange(1),
    default=(100, 10),
    show_default=True,
    metavar="FIRST LAST",
    help="How many documents of the first and of the last stage count.",
)
@click.option("--rel", type=float, default=1, show_default=True, metavar="GRADE", help="The lowest relevant grade.")
@click.option("--partial", is_flag=True, help="Let partial support pass.")
@click.option("--needs", metavar="FILE", help="Columns query_id and need: intervals are over needs, not over topics.")
@click.option(
    "--entities", metavar="FILE", help="Names of entities: columns entity, alias and parent; for --by entity."
)
@shared("level")
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@click.option("--lost", is_flag=True, help="Show what was lost, and where.")
@click.option("--all", "every", is_flag=True, help="Show the steps of all chains.")
@slice_options
@answer_options()
def command(
    responses: tuple[str, ...],
    before: Before,
    paths: tuple[str, ...],
    needs: str | None,
    entities: str | None,
    partial: bool,
    per_topic: bool,
    lost: bool,
    every: bool,
    asked: SliceOptions,
    give: Give,
    **options: Any,
) -> None:
    """Follow evidence from the corpus to the answer, and say at which step most is lost.

    The first stage is held to the first 100 documents, the last to the first 10. Besides attributes of files, topics
    can be cut --by entity and, with traces, --by rewritten.
    """
    from judged.data.expression import Expression
    from judged.pipelines.rag import waterfall
    from judged.pipelines.traces import read_traces

    give.keep(*responses, *before.paths, needs, entities, *paths, *asked.paths)
    given = responses_at(responses)
    traces = read_traces(paths) if paths else None
    slicing = None
    if asked.where or asked.by or asked.slices:
        known = _known(before.qrels, traces, entities, asked)
        topics = given["answers"]["query_id"].unique().to_pylist()
        if asked.where:
            mask = Expression(asked.where).mask(known.over(topics))
            topics = [topic for topic, kept in zip(topics, mask.tolist(), strict=True) if kept]
            if not topics:
                raise InputError(f"no topic satisfies {asked.where!r}", fix="check the values of its attributes")
            given = given.of_topics(topics)
        slicing = asked.cut(known, topics) if asked.by or asked.slices else None
    options |= {"runs": before.runs, "traces": traces, "corpus": before.corpus, "needs": needs, "slicing": slicing}
    answer = waterfall(given, before.qrels, strict=not partial, **options)
    unfolded = [
        name for name, on in (("slices", slicing), ("steps", every), ("topics", per_topic), ("lost", lost)) if on
    ]
    give(answer, unfold=unfolded, table=unfolded[0] if unfolded else None)


def _known(qrels: Qrels | None, traces: Traces | None, entities: str | None, asked: SliceOptions) -> Attributes:
    """Give what is known of topics: of files and derived, and what texts and traces tell."""
    from judged.comparison.slicing.derived import known_topics
    from judged.pipelines.rag import query_facts

    if qrels is None:
        raise InputError("topics are cut and chosen by what is known of judged ones", fix="give --qrels FILE")
    told = query_facts(traces, entities=entities, queries=asked.queries) if traces or entities else None
    needed = [name for name in asked.names if told is None or name not in told.names]
    known = known_topics(qrels, attributes=asked.attributes, queries=asked.queries, needed=needed)
    return known if told is None else known.joined(told)
