"""`judged rag evaluate`: answers in, a table of measures out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import shared
from judged.cli.rag_inputs import MEASURES, QRELS, RESPONSES, responses_at
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("evaluate", short_help="Score answers by what they say, cite and rest on.")
@RESPONSES
@QRELS
@MEASURES
@click.option("--per-topic", is_flag=True, help="Show the scores of every topic.")
@click.option(
    "--unjudged/--no-unjudged",
    default=True,
    show_default=True,
    help="Show how far missing and failed verdicts could move each number.",
)
@shared("rel", "ci", "level", "draws", "seed", "attributes", "where")
@click.option("--by", metavar="NAME", help="With --attributes: the scores by slice, one for each value.")
@answer_options()
def command(
    responses: tuple[str, ...],
    qrels: str | None,
    measure: tuple[str, ...],
    per_topic: bool,
    by: str | None,
    give: Give,
    ci: Any,
    level: float,
    resamples: int,
    seed: int,
    attributes: str | None,
    **options: Any,
) -> None:
    """Score what systems answered, with intervals over topics."""
    from judged.comparison.slicing import slice_topics
    from judged.pipelines.rag import evaluate

    if by is not None and attributes is None:
        raise InputError("--by needs attributes of topics", fix="give --attributes FILE with it")
    given = responses_at(responses)
    give.keep(*responses, qrels, attributes)
    scores = evaluate(given, measure or None, qrels=qrels, attributes=attributes, **options)
    method: dict[str, Any] = {"ci": ci, "level": level, "resamples": resamples, "seed": seed}
    if by is not None:
        give(scores.by_slice(slice_topics(attributes, by, query_ids=scores.query_ids), **method))
    elif give.form == "parquet":
        give(scores)
    else:
        give(scores.summary(**method, per_topic=per_topic), table="topics" if per_topic else None)
