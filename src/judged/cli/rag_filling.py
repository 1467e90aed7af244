"""`judged rag nuggets|assign|support|correctness`: a model fills a table of answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.labels_ask import asking_options, confirmed, give_asked, progress
from judged.cli.options import shared
from judged.cli.rag_inputs import RESPONSES, responses_at
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.cli.formats import Give

_WHERE = (
    click.option("--into", metavar="FOLDER", help="Write the table there.  [default: RESPONSES, if it is a folder]"),
    click.option(
        "--store", metavar="STORE", help="Where replies are kept: nothing is asked twice.  [default: FOLDER/asked.db]"
    ),
    click.option(
        "--judge", default="", metavar="NAME", help="The model's name as a judge.  [default: as its endpoint]"
    ),
)
_VERDICTS = (
    click.option(
        "--repeats", type=click.FloatRange(0, 1), default=0.1, show_default=True, metavar="SHARE",
        help="Share of topics of which all is asked again, two at least: how far the judge wavers.",
    ),
    click.option(
        "--keep-addressed", is_flag=True,
        help="Ask also about texts that address the judge; else what rests on them fails."
    ),
    click.option(
        "--family", "families", multiple=True, metavar="RUN=MODEL",
        help="The model behind a system: whether it is of the judge's family. Repeat for more.",
    ),
)  # fmt: skip
_FORM = "A reply in any other form is failed, and no verdict."
_SENT = """First it says what will be sent, where to, and what that may cost. The exit code is 1 if something is left
    (docs/rag-judges.md)."""


def _filling(table: str, short: str, *names: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command with RESPONSES, the options of all that fills a table, and the shared ones of these names."""

    def decorate(command: Callable[..., None]) -> click.Command:
        given = asking_options(answer_options()(click.pass_context(command)))
        for option in reversed((*_WHERE, *(() if table == "nuggets" else _VERDICTS))):
            given = option(given)
        text = f"{command.__doc__} {_SENT}" if table == "nuggets" else f"{command.__doc__} {_FORM} {_SENT}"
        return click.command(help=text, short_help=short)(RESPONSES(shared(*names)(given)))

    return decorate


@_filling("nuggets", "Have a model list what answers should say.", "queries", "texts")
@click.option("--qrels", required=True, metavar="QRELS", help="Judgments: nuggets are made from relevant documents.")
@click.option("--rel", type=float, default=1.0, show_default=True, metavar="GRADE", help="The lowest relevant grade.")
@click.option("--depth", type=click.IntRange(1), default=10, show_default=True, help="So many documents of a topic.")
@click.option("--limit", type=click.IntRange(1), default=30, show_default=True, help="The most nuggets of a topic.")
def nuggets(context: click.Context, **options: Any) -> None:
    """Have a model list the nuggets of each topic of RESPONSES that has none: facts of 1 to 12 words, vital or okay.

    They are made from the documents that QRELS call relevant, of which those that address the judge are left out.
    """
    _filled(context, "nuggets", **options)


@_filling("assignments", "Have a model say how far answers say the nuggets.", "queries")
def assign(context: click.Context, **options: Any) -> None:
    """Have a model say how far each answer says each nugget of its topic: support, partial or not."""
    _filled(context, "assignments", **options)


@_filling("support", "Have a model say how far sentences are supported by what they cite.", "texts")
@click.option("--context", "whole", is_flag=True, help="By all of the context together, not by what they cite.")
def support(context: click.Context, whole: bool, **options: Any) -> None:
    """Have a model say how far each sentence is supported by each document that it cites, or by its context.

    Verdicts are support, partial, not and contradicts.
    """
    _filled(context, "support", **options, by={"context": whole})


@_filling("correctness", "Have a model say how far answers agree with right ones.", "queries")
def correctness(context: click.Context, **options: Any) -> None:
    """Have a model say how far each answer agrees with the references of its topic: support, partial or not."""
    _filled(context, "correctness", **options)


def _filled(
    context: click.Context,
    table: str,
    *,
    responses: tuple[str, ...],
    into: str | None,
    store: str | None,
    endpoint: str,
    yes: bool,
    budget_calls: int | None,
    budget_money: float | None,
    give: Give,
    families: tuple[str, ...] = (),
    by: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Ask what was prepared, write the tables that were filled, and say what came of it."""
    from judged.labels.asking import Endpoint
    from judged.pipelines.rag.asking import fill, prepare_table
    from judged.pipelines.rag.responses import write_responses

    folder = into or (responses[0] if len(responses) == 1 and Path(responses[0]).is_dir() else None)
    if folder is None:
        raise InputError("it is not said where the table belongs", fix="give --into FOLDER")
    if wrong := next((text for text in families if "=" not in text), None):
        raise InputError(f"--family {wrong} names no model", fix="write --family RUN=MODEL")
    queries, texts = options.get("queries"), options.get("texts")
    give.keep(*responses, endpoint, queries, texts, options.get("qrels"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    options |= {"store": store or str(Path(folder) / "asked.db"), **(by or {})}
    options["families"] = dict(text.split("=", 1) for text in families)
    prepared = prepare_table(table, responses_at(responses, queries, texts), Endpoint.read(endpoint), **options)
    confirmed(prepared, yes)
    made = fill(prepared, budget_calls=budget_calls, budget_money=budget_money, progress=progress())
    own = ("nuggets", "evidence") if table == "nuggets" else (table,)
    whole = Path(folder).resolve() != Path(responses[0]).resolve()
    write_responses(made.responses, folder, made.responses.tables if whole else own)
    give_asked(context, give, made)
