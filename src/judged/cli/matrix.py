"""`judged matrix`: slices and topics by two measures, to tell bad candidates from bad ranking."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.cli.narrowing import traced
from judged.cli.options import FORMATS, POLICIES, shared
from judged.cli.slicing import SliceOptions, slice_options

if TYPE_CHECKING:
    from judged.diagnosis.matrix.making import Matrix

_PICTURES = {f".{form}": form for form in ("png", "svg", "pdf", "html")}
_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv", **_PICTURES}


@click.command("matrix")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-x", default="R@100", show_default=True, metavar="NAME", help="The measure across: of the candidates.")
@click.option("-y", default="nDCG@10", show_default=True, metavar="NAME", help="The measure up: of the final ranking.")
@click.option(
    "--baseline",
    metavar="RUN",
    help="The run whose means are the cuts, and that the others are compared with.  [default: the first]",
)
@click.option("--cuts", metavar="X,Y", help="Other cuts than the baseline's means.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option(
    "--rate",
    type=float,
    default=0.1,
    show_default=True,
    help="False discovery rate of the topics that are said to have lost.",
)
@click.option("--resamples", type=int, default=100_000, show_default=True, help="Resamples of the tests.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@click.option("--per-run", is_flag=True, help="Show each of many runs in full; of more than 4 a summary is shown.")
@slice_options
@shared(*POLICIES)
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
    runs: tuple[str, ...],
    baseline: str | None,
    cuts: str | None,
    per_topic: bool,
    per_run: bool,
    asked: SliceOptions,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Set RUNs, their slices and topics against two measures: of the candidates, and of the final ranking.

    Low on -y alone: found, and ranked badly. Low on -x alone: not found, or not judged. A slice is called low only
    where its whole interval lies below the cut.
    """
    from judged.data import Qrels
    from judged.diagnosis.matrix.making import performance_matrix

    chosen = form or inputs.form_of(out, _SUFFIX)
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [qrels, options["documents"] or "", *asked.paths, *(run.where for run in given)])
    first = next((run for run in given if run.name == baseline), given[0])
    judgments = asked.narrowed(Qrels.read(qrels, format=qrels_format), first)
    with inputs.progress_bar(given) as progress:
        made = performance_matrix(
            judgments,
            given,
            baseline=baseline,
            cuts=_cuts(cuts),
            slicing=asked.slicing(judgments, first),
            progress=progress,
            **options,
        )
    if out is not None and chosen in _PICTURES.values():
        _draw(made, chosen, out)
    else:
        text = _written(made, chosen, output.width() if out is None else None, per_topic=per_topic, per_run=per_run)
        output.write(traced(text, chosen, asked.where), out)
    if chosen != "json":
        output.remarks((*made.warnings, *map(str, asked.notes(first))))


def _cuts(text: str | None) -> tuple[float, float] | None:
    from judged.decimals import read_number
    from judged.errors import InputError

    if text is None:
        return None
    try:
        x, y = (read_number(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{text!r} are no cuts", fix="write two numbers, such as --cuts 0.8,0.4") from None
    return x, y


def _draw(made: Matrix, form: str, out: Path) -> None:
    from judged.charting import save_chart

    save_chart(made.chart(), out, form, f"{made.y} against {made.x}")


def _written(made: Matrix, form: str, width: int | None, *, per_topic: bool, per_run: bool) -> str:
    if form == "json":
        import json

        return json.dumps(made.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
    if form == "csv":
        return made.csv(topics=True if per_topic else None)
    if form == "markdown":
        return made.markdown(topics=per_topic, per_run=per_run)
    return made.text(width, topics=per_topic, per_run=per_run)
