"""`judged evaluate`: qrels and runs in, a table of measures out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.narrowing import narrowed, traced
from judged.cli.options import FORMATS, shared
from judged.errors import JudgedWarning

if TYPE_CHECKING:
    from judged.data.topics import Topics
    from judged.evaluation import Scores
    from judged.evaluation.facts import TieTreatment
    from judged.judging import TopicPolicy
    from judged.stats import IntervalName

_FORMS = ("table", "json", "csv", "markdown", "latex")
_SUFFIX = {
    "": "table",
    ".txt": "table",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}


@click.command("evaluate")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure, such as nDCG@10 or P@5,10. Repeat for more."
)
@shared("dialect")
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@shared("topics", "depth", "ties_or_bounds")
@click.option(
    "--unjudged", is_flag=True, help="Show how far returned documents without a judgment could move each number."
)
@shared("documents", "ci", "level", "draws", "seed")
@click.option(
    "--digits",
    type=click.IntRange(1, 17),
    default=4,
    show_default=True,
    help="Decimals of the numbers in a table; more where a number would seem to be a 0 or 1 that it is not. CSV, JSON"
    " and Parquet have all of them.",
)
@shared("queries", "attributes", "where")
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    dialect: str | None,
    per_topic: bool,
    topics: TopicPolicy | None,
    depth: int | None,
    ties: TieTreatment | None,
    unjudged: bool,
    documents: str | None,
    ci: IntervalName,
    level: float,
    resamples: int,
    seed: int,
    digits: int,
    queries: str | None,
    attributes: str | None,
    where: str | None,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Score RUNs against QRELS, with intervals over topics.

    QRELS and RUN are files in any of the formats that 'judged' knows, found by their content: TREC, CSV, TSV,
    JSON, JSONL, Parquet, BEIR, MS MARCO; also compressed, or - for standard input. NAME=FILE names a run.
    """
    import warnings

    from judged.data import Qrels
    from judged.evaluation import DEFAULT_MEASURES
    from judged.evaluation import evaluate as evaluate_runs

    chosen = form or inputs.form_of(out, _SUFFIX)
    judgments = Qrels.read(qrels, format=qrels_format)
    texts = _topics(queries) if queries else None
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [qrels, queries or "", attributes or "", documents or "", *(run.where for run in given)])
    judgments = narrowed(judgments, given, attributes=attributes, queries=queries, where=where, topics=topics)
    with warnings.catch_warnings(), inputs.progress_bar(given) as progress:
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the result, and shown from there
        scores = evaluate_runs(
            judgments,
            given,
            measure or DEFAULT_MEASURES,
            dialect=dialect,
            topics=topics,
            ties=ties,
            depth=depth,
            unjudged=unjudged,
            documents=documents,
            seed=seed,
            progress=progress,
        )
    interval = {"ci": ci, "level": level, "resamples": resamples, "seed": seed}
    named = None if texts is None else {query: texts.text(query) for query in scores.query_ids}
    if chosen == "parquet" and out is not None:
        scores.save(out)
        output.remarks(scores.warnings)
        return
    shown: dict[str, Any] = {
        "per_topic": per_topic,
        "queries": named,
        "digits": digits,
        "to_file": out is not None,
        "where": where,
    }
    output.write(_rendered(scores, chosen, interval, **shown), out)
    if chosen != "json":
        output.remarks(scores.warnings)


def _rendered(
    scores: Scores,
    form: str,
    interval: Any,
    *,
    per_topic: bool,
    queries: dict[str, str] | None,
    digits: int,
    to_file: bool,
    where: str | None,
) -> str:
    from judged.evaluation.table import long_table, summary_table, topic_table

    if form == "json":
        import json

        made = scores.to_dict(**interval, per_topic=per_topic)
        asked = ({"where": where} if where else {}) | ({"queries": queries} if queries else {})
        return json.dumps(made | asked, indent=2, ensure_ascii=False)
    if form == "csv":
        return long_table(scores, scores.estimates(**interval), per_topic=per_topic).csv()
    if per_topic:
        table = topic_table(scores, queries, digits)
    else:
        table = summary_table(scores, scores.estimates(**interval), digits)
    if form == "markdown":
        return traced(table.markdown(), form, where)
    if form == "latex":
        return traced(table.latex(), form, where)
    shown = not to_file
    colour = shown and output.coloured(sys.stdout.isatty())
    return (
        table.text(width=output.width() if shown else None, colour=colour) + "\n\n" + caption(scores, interval, where)
    )


def caption(scores: Scores, interval: dict[str, Any], where: str | None = None) -> str:
    """Say by which rules the numbers were made: topics, ties, intervals."""
    from judged.stats import IntervalMethod

    words = scores.interval_words(IntervalMethod(*interval.values()))
    return f"{scores.policies.words(len(scores.query_ids), where)}; {f'[{words}]' if words else 'no intervals'}"


def _topics(path: str) -> Topics:
    from judged.data.topics import Topics

    return Topics.read(path)
