"""`judged curve`: a measure by its cutoff, or precision by recall, drawn in the terminal or as a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from judged.cli import inputs, output
from judged.cli.narrowing import narrowed
from judged.cli.options import CHOICE, FORMATS, shared
from judged.errors import InputError, JudgedWarning, MeasureError

if TYPE_CHECKING:
    from judged.curves import Curves
    from judged.data import Qrels, Run

_FORMS = ("plot", "table", "csv", "json", "markdown", "latex", "parquet", "png", "svg", "pdf", "html")
_WIDEST = 120  # columns: a wider drawing is no easier to read
_INTERVAL = ("ci", "level", "resamples", "seed")


@click.command("curve", short_help="Draw a measure by its cutoff, or precision by recall.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measure",
    "asked",
    multiple=True,
    metavar="NAME",
    help="A measure that takes a cutoff: nDCG, R, P, Success, 'P(rel=2)', ... nDCG@20: from 1 to 20.  [default: nDCG]",
)
@click.option("--to", type=click.IntRange(1), metavar="K", help="The last cutoff of 1, 2, 3 ...")
@click.option("--cutoffs", metavar="LIST", help="These cutoffs, such as 1,5,10 or 1..10,20,50.")
@click.option(
    "--precision-recall",
    type=click.Choice(["interpolated", "raw"]),
    help="Precision by recall: interpolated at recall 0, 0.1 ... 1, or both at the same cutoffs.",
)
@click.option("--rel", type=float, metavar="N", help="With --precision-recall: the lowest grade that is relevant.")
@click.option("-t", "--topic", metavar="ID", help="Draw this topic alone.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "documents")
@shared("ci", "level", "draws", "seed", *CHOICE)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a plot, or what -o ends in.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file: .png, .svg, .pdf, .html (needs no network), .csv, .json, .parquet, .md, .tex or .txt.",
)
@shared(*FORMATS)
def command(
    qrels: str,
    runs: tuple[str, ...],
    asked: tuple[str, ...],
    to: int | None,
    cutoffs: str | None,
    precision_recall: Literal["interpolated", "raw"] | None,
    rel: float | None,
    topic: str | None,
    ascii_only: bool,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **policies: Any,
) -> None:
    """Draw a measure of RUNs by its cutoff, or precision by recall, with intervals over topics.

    QRELS and RUN are files as for 'judged evaluate'. A drawing for the terminal is printed; -o makes a picture, a
    page, or a table of all points.
    """
    chosen, chooses = _form(form, out), {name: policies.pop(name) for name in CHOICE}
    if len(asked) > 1:
        raise InputError("a drawing has one measure", fix="leave one -m, and make a drawing for each")
    measure = asked[0] if asked else None
    if policies["ties"] == "bounds":
        raise InputError("a curve shows no bounds", fix="evaluate at one cutoff, or draw the mean: --ties expected")
    if measure and "@" in measure and (to or cutoffs):
        raise InputError(f"{measure} says where to cut, and so do --to and --cutoffs", fix="give one of them")
    if precision_recall is None and rel is not None:
        raise InputError("--rel goes with --precision-recall", fix="write the level into the measure: -m 'R(rel=2)'")
    if precision_recall is not None and measure is not None:
        raise InputError("--precision-recall has measures of its own", fix="leave out -m; --rel chooses the level")
    from judged.data import Qrels

    judgments = Qrels.read(qrels, format=qrels_format)
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(
        out, [qrels, *(path or "" for path in (policies["documents"], chooses["queries"], chooses["attributes"]))]
    )
    inputs.keep_inputs(out, [run.where for run in given])
    judgments = narrowed(judgments, given, **chooses, topics=policies["topics"])
    policies["cutoffs"] = _cutoffs(to, cutoffs)
    if precision_recall is None:
        made = _made("curve", judgments, given, measure or "nDCG", **policies)
    else:
        made = _made("precision_recall", judgments, given, precision_recall, rel=1 if rel is None else rel, **policies)
    drawn = made if topic is None else made.topic(topic)
    if chosen == "plot" and out is None:
        output.write(_plot(drawn, _caption(made, topic, policies, chooses["where"]), ascii_only=ascii_only), None)
    elif out is None:
        output.write(drawn.written(chosen), None)
    else:
        drawn.save(out, form=chosen)
    if chosen != "json":
        output.remarks(drawn.warnings)


def _made(call: str, qrels: Qrels, runs: list[Run], *what: Any, **policies: Any) -> Curves:
    import warnings

    from judged import curves

    with warnings.catch_warnings(), inputs.progress_bar(runs) as progress:
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the result, and shown from there
        return getattr(curves, call)(qrels, runs, *what, progress=progress, **policies)


def _form(form: str | None, out: Path | None) -> str:
    """Tell what to make before anything is read."""
    if out is not None:
        from judged.curves.saving import form_of

        return form or form_of(out)
    if form in {"parquet", "png", "svg", "pdf"}:
        raise InputError(f"{form} is not printed", fix="name a file with -o")
    return form or "plot"


def _cutoffs(to: int | None, text: str | None) -> int | list[int] | None:
    if text is None:
        return to
    if to is not None:
        raise InputError("--to and --cutoffs contradict each other", fix="give one of them")
    from judged.measures import parse_many

    try:
        return [vars(one)["cutoff"] for one in parse_many(f"P@{text}")]  # the grammar of measures knows series
    except MeasureError:
        raise InputError(f"{text!r} is no list of cutoffs", fix="write 1,5,10 or 1..10,20,50") from None


def _plot(curves: Curves, caption: str, *, ascii_only: bool) -> str:
    terminal = sys.stdout.isatty()
    plain = ascii_only or not (sys.stdout.encoding or "").lower().startswith("utf")
    drawing = curves.text(width=min(output.width() or 80, _WIDEST), ascii_only=plain, colour=output.coloured(terminal))
    return f"{drawing}\n\n{caption}"


def _caption(curves: Curves, topic: str | None, policies: dict[str, Any], where: str | None) -> str:
    """Say what the numbers rest on, as `judged evaluate` does."""
    from judged.evaluation.summary import basis
    from judged.stats import IntervalMethod

    if topic is not None:
        return basis(curves.scores, over=f"topic {topic}")
    said = basis(curves.scores, IntervalMethod(*(policies[name] for name in _INTERVAL)))
    return said + (f"; where {where}" if where else "")
