"""`judged evaluate`: qrels and runs in, a table of measures out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import CHOICE, FORMATS, shared
from judged.cli.slice_options import narrowed

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("evaluate")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure, such as nDCG@10 or P@5,10. Repeat for more."
)
@shared("dialect")
@click.option("--per-topic", is_flag=True, help="Show the scores of every topic.")
@shared("topics", "depth", "ties_or_bounds", "exclude_self")
@click.option(
    "--unjudged", is_flag=True, help="Show how far unjudged documents among those returned could move each number."
)
@shared("documents", "rel", "ci", "level", "draws", "seed")
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Judge N runs at a time, each in a process of its own. The scores are the same.",
)
@shared(*CHOICE)
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    per_topic: bool,
    ci: Any,
    level: float,
    resamples: int,
    seed: int,
    give: Give,
    **options: Any,
) -> None:
    """Score RUNs against QRELS, with intervals over topics.

    QRELS and RUN are files, whose format is detected: TREC, CSV, TSV, JSON, JSONL, Parquet, BEIR or MS MARCO, also
    compressed; - is standard input. NAME=FILE names a run. A folder or a pattern is a run for each file; a folder that
    Spark or DuckDB wrote is one run, and FILE.duckdb/TABLE is a table.
    """
    from judged.scoring.evaluation import DEFAULT_MEASURES, evaluate

    chooses = {name: options.pop(name) for name in CHOICE}
    judgments, given = give.inputs(
        qrels, runs, options, options["documents"], chooses["queries"], chooses["attributes"]
    )
    texts = None
    if chooses["queries"]:
        from judged.data.topics import Topics

        texts = Topics.read(chooses["queries"])
    judgments, options["attributes"] = narrowed(judgments, given, **chooses, measures=measure)
    with inputs.scoring(given) as progress:
        scores = evaluate(judgments, given, measure or DEFAULT_MEASURES, seed=seed, progress=progress, **options)
    if texts is not None:
        scores = replace(scores, queries={query: texts.text(query) for query in scores.query_ids})
    if give.form == "parquet":
        give(scores)
        return
    summary = scores.summary(ci=ci, level=level, resamples=resamples, seed=seed, per_topic=per_topic)
    give(summary, table="topics" if per_topic else None)
