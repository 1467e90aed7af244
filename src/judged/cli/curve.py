"""`judged curve`: a measure by its cutoff, or precision by recall, drawn in the terminal or as a picture."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from judged.cli import inputs, output
from judged.cli.formats import answer_options
from judged.cli.options import CHOICE, FORMATS, shared
from judged.cli.slice_options import narrowed
from judged.errors import InputError, MeasureError

if TYPE_CHECKING:
    from judged.cli.formats import Give

_WIDEST = 120  # columns: a wider drawing is no easier to read


@click.command("curve", short_help="Plot a measure against its cutoff, or precision against recall.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measure",
    "asked",
    multiple=True,
    metavar="NAME",
    help="A measure that takes a cutoff: nDCG, R, P, Success, 'P(rel=2)', ... nDCG@20 means"
    " cutoffs 1 to 20.  [default: nDCG]",
)
@click.option("--to", type=click.IntRange(1), metavar="K", help="Use the cutoffs 1, 2, 3, ... up to K.")
@click.option("--cutoffs", metavar="LIST", help="Use these cutoffs, such as 1,5,10 or 1..10,20,50.")
@click.option(
    "--precision-recall",
    type=click.Choice(["interpolated", "raw"]),
    help="Plot precision against recall: interpolated at recall 0, 0.1, ..., 1, or raw, both at the same cutoffs.",
)
@click.option("-t", "--topic", metavar="ID", help="Plot this topic only.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "exclude_self", "documents", "rel")
@shared("ci", "level", "draws", "seed", *CHOICE)
@answer_options(usual="plot", plot=".txt")
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
    give: Give,
    **options: Any,
) -> None:
    """Plot a measure of RUNs against its cutoff, or precision against recall, with intervals over topics.

    QRELS and RUN are files as for 'judged evaluate'. The plot is drawn in the terminal; -o writes a picture, a page,
    or a table of all points.
    """
    chooses = {name: options.pop(name) for name in CHOICE}
    if len(asked) > 1:
        raise InputError("a plot has one measure", fix="give one -m, and make a plot for each measure")
    measure = asked[0] if asked else None
    if measure and "@" in measure and (to or cutoffs):
        raise InputError(f"{measure} names its cutoff, and so do --to and --cutoffs", fix="give one of them")
    if precision_recall is not None and measure is not None:
        raise InputError(
            "--precision-recall has measures of its own", fix="leave out -m; --rel sets the lowest relevant grade"
        )
    from judged.scoring.curves import curve
    from judged.scoring.curves import precision_recall as by_recall

    judgments, given = give.inputs(qrels, runs, options, options["documents"], *chooses.values())
    options |= {"qrels": narrowed(judgments, given, **chooses)[0], "runs": given}
    options["cutoffs"] = _cutoffs(to, cutoffs)
    with inputs.scoring(given) as options["progress"]:
        if precision_recall is None:
            curves = curve(measure=measure or "nDCG", rel=rel, **options)
        else:
            curves = by_recall(how=precision_recall, rel=1 if rel is None else rel, **options)
    own = {
        "width": min(output.width() or 80, _WIDEST),
        "ascii_only": ascii_only or not (sys.stdout.encoding or "").lower().startswith("utf"),
        "colour": give.out is None and output.coloured(sys.stdout.isatty()),
    }
    give(curves if topic is None else curves.topic(topic), own=own)


def _cutoffs(to: int | None, text: str | None) -> int | list[int] | None:
    if text is None:
        return to
    if to is not None:
        raise InputError("--to and --cutoffs contradict each other", fix="give one of them")
    from judged.scoring.measures.grammar import parse_many

    try:
        return [vars(measure)["cutoff"] for measure in parse_many(f"P@{text}")]  # the grammar of measures knows series
    except MeasureError:
        raise InputError(f"{text!r} is not a list of cutoffs", fix="write 1,5,10 or 1..10,20,50") from None
