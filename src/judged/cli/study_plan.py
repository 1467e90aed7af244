"""`judged study plan`: how many people, and topics, it takes to find a difference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from judged.cli.formats import answer_options
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("plan", short_help="How many people, and topics, it takes to find a difference.")
@click.argument("design")
@click.option(
    "--difference", type=float, required=True, metavar="D", help="The least difference of two systems that matters."
)
@click.option("--pilot", metavar="FOLDER", help="Records of a pilot, from which the spreads are estimated.")
@click.option(
    "--outcome", metavar="NAME", help="Of the pilot: minutes, saved, or a questionnaire asked after each task."
)
@click.option("--trials", type=float, metavar="S", help="Of single trials.  [default: 1]")
@click.option("--people-by-system", type=float, metavar="S", help="Of what a system is to people.  [default: 0.3]")
@click.option("--topics-by-system", type=float, metavar="S", help="Of what it is to topics.  [default: 0.3]")
@click.option("--people", type=float, metavar="S", help="Of people, where each has one variant.  [default: 0]")
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Significance level of the test.")
@click.option("--power", type=float, default=0.8, show_default=True, help="Probability of finding the difference.")
@answer_options()
def command(
    design: str,
    difference: float,
    give: Give,
    *,
    pilot: str | None,
    outcome: str | None,
    alpha: float,
    power: float,
    **sds: float | None,
) -> None:
    """Say how many participants, and topics, it takes to find a true difference between two systems of DESIGN.

    Both people and topics are samples: where topics are few, more people are not enough. Options with S are standard
    deviations, in the unit of the difference; those that are given replace those of the pilot.
    """
    from judged.studies import Spreads, StudyRecords, pilot_spreads, plan_study, read_design

    give.keep(design)
    if (pilot is None) != (outcome is None):
        raise InputError("a pilot has several outcomes", fix="give both --pilot FOLDER and --outcome NAME")
    read, spreads, notes = read_design(design), Spreads(0.0, 0.3, 0.3, 1.0), ()
    if pilot and outcome:
        spreads, notes = pilot_spreads(StudyRecords.read(pilot), read, outcome)
    spreads = replace(spreads, **{name: sd for name, sd in sds.items() if sd is not None})
    give(plan_study(read, difference, spreads, alpha=alpha, power=power, outcome=outcome or "", notes=notes))
