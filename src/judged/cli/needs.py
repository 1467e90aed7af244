"""`judged needs`: systems by need, where several queries word the same one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.options import FORMATS, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.needs.result import Needs

_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv"}


@click.command("needs", short_help="Look at RUNs by need, where several queries word the same one.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--needs", "mapping", metavar="FILE", help="The need of each query: a table with query_id and need.")
@click.option("--queries", metavar="FILE", help="Queries with their text; without --needs, one column names the need.")
@click.option(
    "--column", metavar="NAME", help="The column that names the need.  [default: need, topic_id, or the only one]"
)
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure. Repeat for more.  [default: nDCG@10, AP]"
)
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@click.option(
    "--worst", type=click.IntRange(0), default=10, show_default=True, help="How many needs are shown that vary most."
)
@click.option(
    "--depth",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many documents are looked at for how alike two rankings are.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the tests' resamples.")
@shared("dialect", "topics", "ties", "documents")
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    mapping: str | None,
    queries: str | None,
    measure: tuple[str, ...],
    worst: int,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Look at RUNs by need, where several queries word the same one: mean, worst wording, and how consistent they are.

    Each need counts once. QRELS may be by query or by need; judgments of a need are those of each of its queries.
    """
    from judged.data import Qrels
    from judged.diagnosis.needs.making import needs

    chosen = form or inputs.form_of(out, _SUFFIX)
    if mapping is None and queries is None:
        raise InputError("nothing says which queries word the same need", fix="give --needs FILE or --queries FILE")
    judgments = Qrels.read(qrels, format=qrels_format)
    given = inputs.runs_at(runs, run_format)
    others = [mapping or "", queries or "", options["documents"] or ""]
    inputs.keep_inputs(out, [qrels, *others, *(run.where for run in given)])
    texts = None
    if queries is not None:
        from judged.data.topics import Topics

        texts = Topics.read(queries)
    with inputs.progress_bar(given) as progress:
        found = needs(judgments, mapping or texts, given, measure or None, queries=texts, progress=progress, **options)
    output.write(_written(found, chosen, worst=worst, shown=out is None), out)
    if chosen != "json":
        output.remarks(found.warnings)


def _written(found: Needs, form: str, *, worst: int, shown: bool) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    if form == "csv":
        return found.long_table().csv()
    if form == "markdown":
        return found.markdown(worst=worst)
    return found.text(width=output.width() if shown else None, worst=worst)
