"""`judged power`: which differences the topics at hand could show, and how many topics a difference takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs, output
from judged.errors import InputError, JudgedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.evaluation import Scores
    from judged.stats.planning import PairPlan, Plan
    from judged.tables import Table

_FORMS = ("table", "markdown", "json", "csv", "latex")


@click.command("power", short_help="Say which differences could be found with these topics.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure. Repeat for more.  [default: nDCG@10, AP]"
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the two-sided paired t-test.")
@click.option(
    "--power",
    type=float,
    default=0.8,
    show_default=True,
    help="Probability with which a true difference is to be found.",
)
@click.option(
    "--difference", type=float, metavar="D", help="Also say how many topics it takes to find a true difference of D."
)
@click.option(
    "--topics",
    type=click.IntRange(1),
    metavar="N",
    help="Plan for N topics, in place of those that the runs have scores for.",
)
@click.option(
    "--sd", type=float, metavar="S", help="Standard deviation of the differences by topic, in place of QRELS and RUNs."
)
@click.option("--pairs", is_flag=True, help="Show every two runs.")
@click.option("--format", "form", type=click.Choice(_FORMS), default="table", show_default=True, help="Form.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@click.option("--run-format", metavar="FORMAT", help="Format of the runs, if it is not found by itself.")
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    alpha: float,
    power: float,
    difference: float | None,
    topics: int | None,
    sd: float | None,
    pairs: bool,
    form: str,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Say which differences between runs could be found with these topics.

    What two RUNs differ by varies from topic to topic; by how much decides which true difference a test would find.
    The observed differences play no part. Without files, give --sd and --topics.
    """
    from judged.stats.planning import plan, plan_of_sd

    asked: dict[str, Any] = {"difference": difference, "alpha": alpha, "power": power}
    if sd is not None:
        if qrels is not None or topics is None:
            raise InputError("--sd stands in place of QRELS and RUNs", fix="give --sd S --topics N, and no files")
        plans, names, remarks = {"": plan_of_sd(sd, topics, **asked)}, (), []
    else:
        scores = _scores(qrels, runs, measure, out, (qrels_format, run_format))
        wanted = [at for at, one in enumerate(scores.measures) if one.entry.aggregate == "mean"]
        if not wanted:
            raise InputError("no measure here is a mean over topics", fix="ask for one, such as AP")
        plans = {scores.measure_names[at]: plan(scores.values[:, at], topics=topics, **asked) for at in wanted}
        names, remarks = scores.run_names, [*scores.warnings, *_left(scores)]
    output.write(_written(plans, names, remarks, form, pairs=pairs), out)
    if form != "json":
        output.remarks(remarks)


def _scores(
    qrels: str | None, runs: tuple[str, ...], measure: tuple[str, ...], out: Path | None, formats: Sequence[str | None]
) -> Scores:
    import warnings

    from judged.data import Qrels
    from judged.evaluation import evaluate

    if qrels is None or not runs:
        raise InputError("QRELS and RUNs are needed", fix="name the files, or give --sd and --topics")
    given = inputs.runs_at(runs, formats[1])
    if len(given) < 2:
        raise InputError("one run has no differences to plan from", fix="give at least two, or --sd and --topics")
    inputs.keep_inputs(out, [qrels, *(run.where for run in given)])
    judgments = Qrels.read(qrels, format=formats[0])
    with warnings.catch_warnings(), inputs.progress_bar(given) as progress:
        warnings.simplefilter("ignore", JudgedWarning)  # they are part of the result, and shown from there
        return evaluate(judgments, given, measure or ("nDCG@10", "AP"), progress=progress)


def _left(scores: Scores) -> list[str]:
    """Say which measures no plan is made for."""
    return [
        f"{name} is no mean over topics, and no plan is made for it"
        for name, one in zip(scores.measure_names, scores.measures, strict=True)
        if one.entry.aggregate != "mean"
    ]


def _written(plans: dict[str, Plan], names: tuple[str, ...], remarks: list[str], form: str, *, pairs: bool) -> str:
    if form == "json":
        import json

        made = [_document(measure, one, names) for measure, one in plans.items()]
        return json.dumps({"runs": names, "plans": made, "warnings": remarks}, indent=2, ensure_ascii=False)
    table = _table(plans, names, pairs=pairs, exact=form == "csv")
    made = {"markdown": table.markdown, "csv": table.csv, "latex": table.latex}.get(form)
    if made is not None:
        return made()
    said = [f"{measure}: {one.sentence}" if measure else one.sentence for measure, one in plans.items()]
    return "\n".join([table.text(width=output.width()), "", *said])


def _document(measure: str, one: Plan, names: tuple[str, ...]) -> dict[str, Any]:
    found = one.to_dict()
    pairs = [{**pair, "first": names[pair["first"]], "second": names[pair["second"]]} for pair in found["pairs"]]
    return {"measure": measure or None, **found, "pairs": pairs}


def _table(plans: dict[str, Plan], names: tuple[str, ...], *, pairs: bool, exact: bool) -> Table:
    """Lay out one row a measure, over all pairs of runs; with pairs, also one row a pair."""
    from judged.tables import Table

    asked = next((one.difference for one in plans.values()), None)
    labels = ("measure", "first", "second") if pairs else ("measure",)
    numbers = ("topics", "SD of differences", "detectable", *(() if asked is None else (f"topics for {asked:g}",)))
    rows: list[tuple[str, ...]] = []
    for measure, one in plans.items():
        rows.append((measure or "(given)", *(("all", "all") if pairs else ()), *_cells(one, asked, exact=exact)))
        rows.extend(
            (measure, names[pair.first], names[pair.second], *_cells(pair, asked, exact=exact))
            for pair in (one.pairs if pairs else ())
        )
    return Table((*labels, *numbers), tuple(rows), labels=len(labels))


def _cells(one: Plan | PairPlan, asked: float | None, *, exact: bool) -> tuple[str, ...]:
    from judged.stats.planning import amount

    shown = repr if exact else amount
    needed = "-" if one.topics_needed is None else str(one.topics_needed)
    return (str(one.topics), shown(one.sd), shown(one.detectable), *(() if asked is None else (needed,)))
