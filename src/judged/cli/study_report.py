"""`judged study report`: what a study shows; exit code 0 whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("report", short_help="What a study shows, for whom, and what may not be concluded.")
@click.argument("records", type=click.Path(path_type=Path))
@click.option(
    "--design", type=click.Path(path_type=Path), metavar="FILE", help="How it was made, and its questionnaires."
)
@click.option("--outcome", metavar="NAME", help="What decides; all else explores.  [default: the first]")
@click.option("--qrels", metavar="FILE", help="Judgments of documents.  [default: those of the design]")
@click.option(
    "-m", "--measure", default="nDCG@10", show_default=True, metavar="NAME", help="Held against what people said."
)
@click.option("--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True,
              help="Of intervals.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for everything random.")
@answer_options()
def command(
    records: Path,
    give: Give,
    *,
    design: Path | None,
    outcome: str | None,
    qrels: str | None,
    measure: str,
    level: float,
    seed: int,
) -> None:
    """Say what the study whose RECORDS are in this folder shows of its systems."""
    from judged.studies.design import read_design
    from judged.studies.records import StudyRecords
    from judged.studies.study_report import report

    known = read_design(design) if design is not None else None
    give(
        report(StudyRecords.read(records), known, outcome=outcome, qrels=qrels, measure=measure, level=level, seed=seed)
    )
