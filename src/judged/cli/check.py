"""`judged check`: what is wrong with these files, where, and what to do about it."""

from __future__ import annotations

import click


@click.command("check")
@click.argument("qrels")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--qrels-format", metavar="FORMAT", help="Format of QRELS, if it is not found by itself.")
@click.option("--run-format", metavar="FORMAT", help="Format of the runs, if it is not found by itself.")
def command(qrels: str, runs: tuple[str, ...], qrels_format: str | None, run_format: str | None) -> None:
    """Look in QRELS and RUNs for what would make numbers wrong.

    Exit code 0: clean, or only warnings; 1: errors; 2: a file cannot be read at all.
    """
    from judged.data import Qrels
    from judged.data.check import check_qrels, check_run
    from judged.data.findings import lines, plural
    from judged.errors import InputError

    findings = check_qrels(qrels, format=qrels_format)
    try:
        judgments = Qrels.read(qrels, format=qrels_format)
    except InputError:
        judgments = None  # what is wrong with it has been found; the runs are still looked at by themselves
    for run in runs:
        findings += check_run(run, judgments, format=run_format)
    for line in lines(findings):
        click.echo(line)
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    click.echo(f"{plural(errors, 'error')}, {plural(warnings, 'warning')} in {plural(1 + len(runs), 'file')}")
    raise SystemExit(1 if errors else 0)
