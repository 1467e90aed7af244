"""`judged stages`: whether what is lost was not found, or was ranked badly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import FORMATS, TIES, shared
from judged.cli.slice_options import SliceOptions, slice_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("stages", short_help="Split each topic's loss into what was not found and what was ranked badly.")
@click.argument("qrels")
@click.argument("run")
@click.argument("final", required=False)
@click.option(
    "-m",
    "--measure",
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="A measure that rewards ranking better documents higher.",
)
@click.option(
    "--cutoff",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="How many documents of each topic of RUN are candidates.",
)
@shared("rel")
@click.option("--recall", metavar="NAME", help="The measure of the candidates.  [default: R at the cutoff]")
@click.option("--baseline", metavar="RUN", help="Compare with another system: its candidates, or its only ranking.")
@click.option("--baseline-final", metavar="RUN", help="With --baseline: the final ranking of that system.")
@click.option(
    "--min-loss",
    type=float,
    default=0.1,
    show_default=True,
    help="Do not count a part of a topic's loss below this share of the best score.",
)
@click.option(
    "--min-share",
    type=float,
    default=0.15,
    show_default=True,
    help="Nor one below this share of everything lost on the topic.",
)
@shared("fdr", "alpha", "resamples")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the resamples.")
@click.option("--per-topic", is_flag=True, help="Show every topic, largest loss first.")
@click.option("-t", "--topic", metavar="ID", help="Show what this topic lost, and where its documents were lost.")
@slice_options
@click.option(
    "--topics",
    type=click.Choice(["qrels", "both"]),
    default="qrels",
    show_default=True,
    help="Which topics count: all in the qrels, or those that every run has too.",
)
@click.option(
    "--ties",
    type=click.Choice(TIES[:4]),
    default="docid",
    show_default=True,
    help="Order of documents with equal scores.",
)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    run: str,
    final: str | None,
    baseline: str | None,
    baseline_final: str | None,
    per_topic: bool,
    topic: str | None,
    asked: SliceOptions,
    give: Give,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Split each topic's loss into what is missing from the first documents of RUN and what is ranked badly among them.

    FINAL is the ranking that, say, a reranker made of the candidates; without it, RUN itself is the final ranking.
    With --baseline, the difference between two systems is split in the same way and tested.
    """
    from judged.data.qrels import Qrels
    from judged.data.topics import Topics
    from judged.diagnosis.stages import stages
    from judged.scoring.evaluation.inputs import measures_of

    if baseline_final and not baseline:
        raise InputError("--baseline-final goes with --baseline", fix="name the candidates of the other system too")
    if per_topic and topic is not None:
        raise InputError("--per-topic shows every topic, but --topic only one", fix="give one of them")
    options["measure"] = measures_of(options["measure"], rel=(rel := options.pop("rel")))
    if rel is not None:
        options["recall"] = measures_of(options["recall"] or f"R@{options['cutoff']}", rel=rel)
    runs = {path: inputs.runs_at([path], run_format) for path in (run, final, baseline, baseline_final) if path}
    give.keep(qrels, *asked.paths, *(given[0].where for given in runs.values()))
    cut_by = runs[baseline or run][0]
    judgments, slicing = asked.applied(Qrels.read(qrels, format=qrels_format), cut_by)
    other: Any = baseline and runs[baseline]
    other = (other, runs[baseline_final]) if baseline_final else other
    answer = stages(judgments, runs[run], final and runs[final], baseline=other, slicing=slicing, **options)
    notes = [str(note) for note in asked.notes(cut_by)]
    if topic is not None:
        query = Topics.of(asked.queries).text(topic) if asked.queries else ""
        give(answer.topic(topic, query), notes=notes)
        return
    shown = "topics" if per_topic else None
    table = "topics" if answer.slicing is None else shown
    give(answer, unfold=(shown or "",), table=table, chart=shown, notes=notes)
