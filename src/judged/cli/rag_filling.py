"""What the commands share in which a model fills a table of answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli.formats import answer_options
from judged.cli.labels_ask import asking_options, confirmed, give_asked, progress
from judged.cli.options import shared
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from judged.cli.formats import Give
    from judged.rag.responses import Responses

    Command = TypeVar("Command", bound=Callable[..., Any])

RESPONSES = click.argument("paths", nargs=-1, required=True, metavar="RESPONSES...")
_WHERE = (
    click.option("--into", metavar="FOLDER", help="Write the table there.  [default: RESPONSES, if it is a folder]"),
    click.option(
        "--store",
        metavar="STORE",
        help="Where replies are kept: nothing is asked twice.  [default: FOLDER/asked.db]",
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


def filling_options(*names: str, verdicts: bool = True) -> Callable[[Command], Command]:
    """Give a command RESPONSES, the options of all that fills a table, and the shared ones of these names."""

    def decorate(command: Command) -> Command:
        command = answer_options()(command)
        command = asking_options(command)
        for option in reversed((*_WHERE, *(_VERDICTS if verdicts else ()))):
            command = option(command)
        return RESPONSES(shared(*names)(command))

    return decorate


def filled(
    context: click.Context, give: Give, prepare: Callable[..., Any], paths: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Ask what was prepared, write the tables that were filled, and say what came of it."""
    from judged.labels.asking import Endpoint
    from judged.rag.asking import fill
    from judged.rag.writing import write_responses

    folder = options.pop("into") or (paths[0] if len(paths) == 1 and Path(paths[0]).is_dir() else None)
    if folder is None:
        raise InputError("it is not said where the table belongs", fix="give --into FOLDER")
    give.keep(*paths, options["endpoint"], options.get("queries"), options.get("texts"), options.get("qrels"))
    if "families" in options:
        options["families"] = pairs(options["families"])
    Path(folder).mkdir(parents=True, exist_ok=True)
    budget = {name: options.pop(name) for name in ("budget_calls", "budget_money")}
    yes, store = options.pop("yes"), options.pop("store") or str(Path(folder) / "asked.db")
    given = responses_at(paths, options.get("queries"), options.get("texts"))
    prepared = prepare(given, Endpoint.read(options.pop("endpoint")), store=store, **options)
    confirmed(prepared, yes)
    made = fill(prepared, **budget, progress=progress())
    whole = Path(folder).resolve() != Path(paths[0]).resolve()
    written = ("nuggets", "evidence") if made.fills == "nuggets" else (made.fills,)
    write_responses(made.responses, folder, made.responses.tables if whole else written)
    give_asked(context, give, made)


def pairs(families: tuple[str, ...]) -> dict[str, str]:
    """Read RUN=MODEL."""
    if wrong := next((text for text in families if "=" not in text), None):
        raise InputError(f"--family {wrong} names no model", fix="write --family RUN=MODEL")
    return dict(text.split("=", 1) for text in families)


def responses_at(paths: tuple[str, ...], queries: str | None = None, texts: str | None = None) -> Responses:
    """Read a folder of tables, or files that go together."""
    from judged.rag.readers import read_responses

    return read_responses(paths[0] if len(paths) == 1 else paths, topics=queries, texts=texts)
