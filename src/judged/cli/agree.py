"""`judged agree`: how far several judges agree, and what their disagreement does to systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli import inputs, output
from judged.decimals import read_number
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judged.agreement import JudgeAgreement
    from judged.data import Qrels
    from judged.judging import TiePolicy
    from judged.stats.agreement import Scale
    from judged.tables import Table

_FORMS = ("table", "markdown", "json", "csv", "latex")
_MOST_GRADES = 12  # of a confusion table that anyone would read


@click.command("agree")
@click.argument("qrels", nargs=-1, required=True, metavar="QRELS QRELS...")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="A run to score by each judge. Repeat for more.")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="How runs are scored. Repeat for more.  [default: nDCG@10]"
)
@click.option(
    "--rel",
    multiple=True,
    metavar="[NAME=]N",
    help="Make grades from N on 1 and all others 0, for all judges or for one. Repeat for more.",
)
@click.option(
    "--scale",
    type=click.Choice(["nominal", "ordinal", "interval"]),
    default="ordinal",
    show_default=True,
    help="What Krippendorff's alpha takes grades for.",
)
@click.option("--own", is_flag=True, help="Score runs by all that each judge judged, not only by what both judged.")
@click.option("--per-topic", is_flag=True, help="Show every topic.")
@click.option("--depth", type=click.IntRange(1), metavar="N", help="Use only the first N documents of each topic.")
@click.option(
    "--ties",
    type=click.Choice(["docid", "docid-rising", "stable", "rank"]),
    default="docid",
    show_default=True,
    help="Order of equal scores.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--format", "form", type=click.Choice(_FORMS), default="table", show_default=True, help="Form.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@click.option("--run-format", metavar="FORMAT", help="Format of the runs, if it is not found by itself.")
def command(
    qrels: tuple[str, ...],
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    rel: tuple[str, ...],
    scale: Scale,
    own: bool,
    per_topic: bool,
    depth: int | None,
    ties: TiePolicy,
    level: float,
    form: str,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
) -> None:
    """Compare the judgments of several judges.

    Each two are compared by what both judged: kappa, weighted kappas and Krippendorff's alpha, with intervals over
    topics. With runs, also by how they rank the systems: tau, tau_AP, and how many pairs of systems change places.
    NAME=FILE names a judge or a run.
    """
    from judged.agreement import agree

    judges = [_judge(text, qrels_format) for text in qrels]
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [*(judge.where for judge in judges), *(run.where for run in given)])
    found = agree(
        *judges,
        runs=given,
        measures=measure or ("nDCG@10",),
        rel=_levels(rel),
        scale=scale,
        own=own,
        ties=ties,
        depth=depth,
        level=level,
    )
    made = _written(found, form, per_topic=per_topic, fit=out is None)
    if form == "table":
        made += f"\n\nover what both judged; [{level:.0%} interval: jackknife over topics, adjusted t]"
    output.write(made, out)
    if form != "json":
        output.remarks(found.notes)


def _judge(text: str, qrels_format: str | None) -> Qrels:
    from judged.data import Qrels
    from judged.data.files import exists

    name, equals, path = text.partition("=")
    if not equals or exists(text):
        name, path = "", text
    return Qrels.read(path, format=qrels_format, name=name or None)


def _levels(texts: tuple[str, ...]) -> float | Mapping[str, float] | None:
    """Read N for all judges, or NAME=N for each."""
    if not texts:
        return None
    named: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        try:
            named[name] = read_number(number)
        except ValueError:
            raise InputError(f"{number!r} is not a grade", fix="write --rel N or --rel NAME=N") from None
    if "" in named and len(texts) > 1:
        raise InputError("--rel N is for all judges, and another --rel stands beside it", fix="name a judge in each")
    return named.get("", named)


def _written(found: JudgeAgreement, form: str, *, per_topic: bool, fit: bool) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    if form == "csv":
        from judged.agreement.layout import long_table

        return long_table(
            found.pairs, found.systems, {"alpha": found.alpha, "fleiss": found.fleiss}, per_topic=per_topic
        ).csv()
    tables = [found.table()]
    if len(found.judges) > 2:
        tables.append(found.overall_table())
    if len(found.pairs) == 1 and len(found.pairs[0].confusion.grades) <= _MOST_GRADES:
        tables.append(found.confusion_table())
    if found.systems:
        tables.append(found.systems_table())
    if per_topic:
        tables += [found.topic_table(at) for at in range(len(found.pairs))]
    return "\n\n".join(_drawn(table, form, output.width() if fit else None) for table in tables)


def _drawn(table: Table, form: str, width: int | None) -> str:
    if form == "markdown":
        return table.markdown()
    return table.latex() if form == "latex" else table.text(width=width)
