"""`judged trec_eval`: trec_eval's command, with its options, output and exit codes."""

from __future__ import annotations

import sys

import click


class _Untouched(click.Command):
    """A command that reads its arguments itself: every one of them reaches it as it was typed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args


@click.command(
    "trec_eval",
    cls=_Untouched,
    add_help_option=False,
)
@click.pass_context
def trec_eval_command(ctx: click.Context) -> None:
    """Evaluate as trec_eval does: its options, its output, its exit codes ('judged trec_eval -h')."""
    from judged.scoring.compat.trec_eval.command import trec_eval

    outcome = trec_eval(ctx.args)
    sys.stdout.flush()
    sys.stdout.buffer.write(outcome.output.encode(errors="surrogateescape"))
    if outcome.message:
        click.echo(outcome.message, err=True)
    ctx.exit(outcome.code)
