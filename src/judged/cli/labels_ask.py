"""`judged labels ask`: a model is asked for the grades of a store's open tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli.formats import answer_options
from judged.cli.options import shared
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.cli.formats import Give
    from judged.labels.asking.asking import Asked
    from judged.labels.asking.preparation import Prepared
    from judged.labels.asking.replies import Tally

    Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--endpoint", required=True, metavar="FILE", help="TOML file: base_url, model, key_variable, prices..."
    ),
    click.option("--budget-calls", type=click.IntRange(0), metavar="N", help="Send at most N requests."),
    click.option("--budget-money", type=click.FloatRange(0), metavar="X", help="Spend at most X, in the prices' unit."),
    click.option("--characters", type=click.IntRange(1), metavar="N", help="Cut documents to N characters."),
    click.option("--yes", is_flag=True, help="Send without asking first."),
)


def asking_options(command: Command) -> Command:
    """Give a command the options of everything that is sent to a model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("ask", short_help="Ask a model for the grades of STORE's open tasks.")
@click.argument("store")
@click.option("--judge", default="", metavar="NAME", help="The model's name as a judge.  [default: its model's name]")
@click.option(
    "--repeats",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of its pairs that it is asked again, with another seed.",
)
@click.option("--examples", metavar="FILE", help="Examples for the model, JSONL: query, document, grade.")
@shared("texts")
@asking_options
@answer_options()
@click.pass_context
def command(
    context: click.Context,
    store: str,
    endpoint: str,
    examples: str | None,
    give: Give,
    budget_calls: int | None,
    budget_money: float | None,
    yes: bool,
    **options: Any,
) -> None:
    """Ask a model, at an endpoint that speaks OpenAI's chat protocol, for the grades of STORE's open tasks.

    First it says what will be sent, where to, and what that may cost. What is answered is kept at once; the same
    command goes on after a stop. The exit code is 1 if something is left (docs/model-judges.md).
    """
    from judged.data.json_rows import json_lines
    from judged.labels import LabelStore
    from judged.labels.asking import Endpoint, ask, prepare

    give.keep(store, endpoint, examples, options["texts"])
    shown = () if examples is None else [row for _, row in json_lines(Path(examples), examples)]
    prepared = prepare(LabelStore.open(store), Endpoint.read(endpoint), examples=shown, **options)
    confirmed(prepared, yes)
    give_asked(context, give, ask(prepared, budget_calls=budget_calls, budget_money=budget_money, progress=progress()))


def confirmed(prepared: Prepared, yes: bool) -> None:
    """Say what will be sent, and ask whether it may be; nothing is asked where nothing is sent."""
    if yes or not prepared.calls:
        click.echo("\n".join(prepared.sentences), err=True)
        return
    click.echo(prepared.text(), err=True)
    if not sys.stdin.isatty():
        raise InputError("nothing was sent", fix="add --yes to send it")
    click.confirm("Send this?", abort=True, err=True)


def progress() -> Callable[[Tally], None] | None:
    """Write how far it has come on one line of a terminal."""
    if not sys.stderr.isatty():
        return None

    def tell(tally: Tally) -> None:
        done = tally.answered + tally.cached
        invalid = ", ".join(f"{count} {kind}" for kind, count in tally.invalid.most_common())
        money = f", {tally.budget.money:.4g} spent" if tally.budget.money else ""
        line = f"{done} of {tally.requests}, {tally.budget.calls} calls{money}{f' ({invalid})' if invalid else ''}"
        click.echo(f"\r\033[2K{line}", nl=False, err=True)
        if not tally.left:
            click.echo("", err=True)

    return tell


def give_asked(context: click.Context, give: Give, asked: Asked) -> None:
    """Write what came of it; the exit code says whether something is left."""
    give(asked)
    if asked.left:
        context.exit(1)
