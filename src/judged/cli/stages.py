"""`judged stages`: whether what is lost was not found, or was ranked badly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.narrowing import traced
from judged.cli.options import FORMATS, shared
from judged.cli.slicing import SliceOptions, slice_options

if TYPE_CHECKING:
    from judged.data import Run
    from judged.diagnosis.stages.making import Stages

PICTURES = {f".{form}": form for form in ("png", "svg", "pdf", "html")}
_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv", **PICTURES}


@click.command("stages")
@click.argument("qrels")
@click.argument("run")
@click.argument("final", required=False)
@click.option(
    "-m",
    "--measure",
    default="nDCG@10",
    show_default=True,
    metavar="NAME",
    help="A measure for which a better document higher is better.",
)
@click.option(
    "--depth", type=click.IntRange(1), default=100, show_default=True, help="Candidates of each topic of RUN."
)
@click.option("--recall", metavar="NAME", help="The measure of the candidates.  [default: R at the depth]")
@click.option("--against", metavar="RUN", help="Compare with another system: its candidates, or all of it.")
@click.option("--against-final", metavar="RUN", help="With --against: the final ranking of the other system.")
@click.option(
    "--least",
    type=float,
    default=0.1,
    show_default=True,
    help="A part counts for a topic from this share of the best score on.",
)
@click.option(
    "--share",
    type=float,
    default=0.15,
    show_default=True,
    help="And from this share of all that is lost on the topic on.",
)
@click.option(
    "--rate",
    type=float,
    default=0.1,
    show_default=True,
    help="False discovery rate of the topics that are said to have lost.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Up to here p is significant.")
@click.option("--resamples", type=int, default=100_000, show_default=True, help="Resamples of the tests.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@click.option("--per-topic", is_flag=True, help="Show every topic, largest loss first.")
@click.option("-t", "--topic", metavar="ID", help="Show what this topic lost, and where its documents were lost.")
@slice_options
@click.option(
    "--topics",
    type=click.Choice(["qrels", "both"]),
    default="qrels",
    show_default=True,
    help="Which topics count: all of the qrels, or those that every run has too.",
)
@click.option(
    "--ties",
    type=click.Choice(["docid", "docid-rising", "stable", "rank"]),
    default="docid",
    show_default=True,
    help="Order of equal scores.",
)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file; .svg, .png, .pdf and .html are pictures.",
)
@shared(*FORMATS)
def command(
    qrels: str,
    run: str,
    final: str | None,
    measure: str,
    against: str | None,
    against_final: str | None,
    per_topic: bool,
    topic: str | None,
    asked: SliceOptions,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Split each topic's loss: what is not among the first documents of RUN, and what is ranked badly among them.

    FINAL is the ranking made of the candidates, by a reranker say; without it, RUN as it stands. With --against, the
    difference of two systems is split in the same way and tested.
    """
    from judged.data import Qrels
    from judged.diagnosis.stages.making import stages
    from judged.errors import InputError

    chosen = form or inputs.form_of(out, _SUFFIX)
    if against_final and not against:
        raise InputError("--against-final goes with --against", fix="name the candidates of the other system too")
    if per_topic and topic is not None:
        raise InputError("--per-topic shows every topic, and --topic one", fix="give one of them")
    candidates = _one(run, run_format)
    ranking, other, other_ranking = (
        None if text is None else _one(text, run_format) for text in (final, against, against_final)
    )
    read = (candidates, ranking, other, other_ranking)
    inputs.keep_inputs(out, [qrels, *asked.paths, *(one.where for one in read if one is not None)])
    judgments = asked.narrowed(Qrels.read(qrels, format=qrels_format), other or candidates)
    made = stages(
        judgments,
        candidates,
        ranking,
        measure,
        against=other if other_ranking is None else (other, other_ranking),
        slicing=asked.slicing(judgments, other or candidates),
        **options,
    )
    if out is not None and chosen in PICTURES.values():
        _draw(made, chosen, out, per_topic=per_topic)
    else:
        width = output.width() if out is None else None
        text = _written(made, chosen, width, per_topic=per_topic, topic=topic, query=_query(asked.queries, topic))
        output.write(traced(text, chosen, asked.where), out)
    if chosen != "json":
        output.remarks((*made.warnings, *map(str, asked.notes(other or candidates))))


def _one(text: str, run_format: str | None) -> Run:
    from judged.errors import InputError

    runs = inputs.runs_at([text], run_format)
    if len(runs) != 1:
        raise InputError(f"it holds {len(runs)} runs", fix="give one run a file", path=text)
    return runs[0]


def _query(queries: str | None, topic: str | None) -> str:
    """Give the text of the topic that is shown; empty where it is not known."""
    if queries is None or topic is None:
        return ""
    from judged.data.topics import Topics

    return Topics.of(queries).text(topic)


def _draw(made: Stages, form: str, out: Path, *, per_topic: bool) -> None:
    from judged.charting import save_chart

    save_chart(made.chart(by="topic" if per_topic else "slice"), out, form, f"Where {made.measure} is lost")


def _written(made: Stages, form: str, width: int | None, *, per_topic: bool, topic: str | None, query: str) -> str:
    if form == "json":
        import json

        return json.dumps(made.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        return made.csv(topics=True if per_topic else None) if topic is None else made.documents_table(topic).csv()
    if topic is not None:
        return made.topic_text(topic, width, query=query, markdown=form == "markdown")
    return made.markdown(topics=per_topic) if form == "markdown" else made.text(width, topics=per_topic)
