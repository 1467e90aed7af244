"""`judged labels questions`: queries that a model makes from documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from judged.cli.formats import answer_options
from judged.cli.labels_ask import asking_options, confirmed, give_asked, progress

if TYPE_CHECKING:
    from judged.cli.formats import Give


@click.command("questions", short_help="Have a model make queries from documents.")
@click.argument("store")
@click.argument("texts")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="From so many documents.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the choice of documents.")
@click.option("--queries", metavar="FILE", help="Queries that people asked, to compare the synthetic ones with.")
@asking_options
@answer_options()
@click.pass_context
def command(
    context: click.Context,
    store: str,
    texts: str,
    queries: str | None,
    endpoint: str,
    give: Give,
    budget_calls: int | None,
    budget_money: float | None,
    yes: bool,
    **options: Any,
) -> None:
    """Have a model make a query from each of some documents of TEXTS, check them, and add the good ones to STORE.

    They are marked as synthetic there, each with its document as a task. Nothing is labelled. The exit code is 1 if
    something is left (docs/model-judges.md).
    """
    from judged.labels import LabelStore
    from judged.labels.asking import Endpoint, ask_questions, prepare_questions

    give.keep(store, endpoint, texts, queries)
    opened = LabelStore.open(store)
    prepared = prepare_questions(opened, Endpoint.read(endpoint), texts, **options)
    confirmed(prepared, yes)
    questions = ask_questions(
        prepared, queries=queries, budget_calls=budget_calls, budget_money=budget_money, progress=progress()
    )
    questions.add_to(opened)
    give_asked(context, give, questions)
