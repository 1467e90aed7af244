"""`judged change review`: one sheet for a change; exit code 0: nothing that decides says no; 1: something does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.options import shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("review", short_help="One sheet: better, where, at what cost, gate, users; and what is blank.")
@click.argument("qrels")
@click.argument("baseline")
@click.argument("candidate")
@click.option("-m", "--measure", multiple=True, metavar="NAME", help="The first decides what is better.")
@shared("queries", "attributes")
@click.option("--by", multiple=True, metavar="NAME", help="Attributes to slice by.  [default: those with few values]")
@click.option("--traces", nargs=2, metavar="BASELINE CANDIDATE", help="Traces of both, for kinds of failure.")
@click.option("--meant", metavar="KIND", help="The kind of failure that the change was meant to mend.")
@click.option("--reviewed", type=click.Path(path_type=Path), metavar="FILE", help="Columns run, wrong and reviewed.")
@click.option("--costs", type=click.Path(path_type=Path), metavar="FILE", help="A column run, and one for each --cost.")
@click.option("--cost", "columns", multiple=True, metavar="COLUMN", help="A column of --costs. Repeat for more.")
@click.option("--gate", "config", type=click.Path(path_type=Path), metavar="FILE", help="Its configuration.")
@click.option("--log", multiple=True, metavar="FILE", help="A log with arms, as 'judged online abtest' reads it.")
@click.option("--arm", metavar="NAME", help="The candidate's arm in it.  [default: the first that is no baseline]")
@click.option("--guardrail", "guardrails", multiple=True, metavar="NAME", help="Of the test: metrics not to be lost.")
@click.option("--interleaved", multiple=True, metavar="FILE", help="A log of lists that mix both.")
@click.option("--propensities", multiple=True, metavar="FILE", help="A log with propensities, for 'off-policy'.")
@click.option("--topics", metavar="FILE", help="How pages of it find topics, as for 'judged clicks'.")
@click.option("--watch", "watched", type=click.Path(path_type=Path), metavar="FILE", help="Of 'judged watch'.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for everything random.")
@answer_options()
def command(
    qrels: str,
    baseline: str,
    candidate: str,
    give: Give,
    *,
    measure: tuple[str, ...],
    by: tuple[str, ...],
    traces: tuple[str, str] | None,
    costs: Path | None,
    columns: tuple[str, ...],
    log: tuple[str, ...],
    guardrails: tuple[str, ...],
    interleaved: tuple[str, ...],
    propensities: tuple[str, ...],
    topics: str | None,
    watched: Path | None,
    **options: Any,
) -> None:
    """Fill in the sheet of a change from whatever is known of BASELINE and CANDIDATE, and name what is blank.

    Exit code 0: nothing that decides (gate, A/B test, watch) says no; 1: something does; 2: wrong input.
    """
    from judged.changes import review

    give.keep(qrels, baseline, candidate, *log, *(traces or ()))
    more: dict[str, Any] = {}
    if (costs is None) != (not columns):
        raise InputError("--costs and --cost go together", fix="give the table, and the columns that are costs")
    if costs is not None:
        more["costs_of"] = (costs, columns)
    if traces:
        from judged.traces import read_traces

        more["traces"] = tuple(read_traces(one) for one in traces)
    if log:
        from judged.online import abtest, read_log

        more["test"] = abtest(read_log(log), guardrails=guardrails)
    if interleaved:
        from judged.online import read_log
        from judged.online.interleaving.analysis import interleaving

        more["mixed"] = interleaving(read_log(interleaved))
    if propensities:
        from judged.clicks import off_policy
        from judged.online import read_log

        more["logged"] = off_policy(read_log(propensities), candidate, topics=topics)
    if watched:
        from judged.watch import watch

        more["watch"] = watch(watched)
    made = review(qrels, baseline, candidate, list(measure) or None, by=by or None, **options, **more)
    give(made)
    if made.decision == "do not ship":
        raise SystemExit(1)
