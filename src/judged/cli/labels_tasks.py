"""`judged labels tasks`: what is to be judged, and by whom."""

from __future__ import annotations

import click

from judged.cli import output
from judged.cli.options import shared
from judged.results.decimals import counted

_SHARE = click.FloatRange(0, 1)


@click.command("tasks", short_help="Say what is to be judged, and by whom.")
@click.argument("store")
@click.argument("paths", nargs=-1, metavar="FILE...")
@click.option("--judges", metavar="NAMES", help="Who judges, joined by commas.  [default: everybody everything]")
@click.option("--each", type=click.IntRange(1), default=1, show_default=True, help="How many judges see a pair.")
@click.option("--overlap", type=_SHARE, default=0.0, metavar="SHARE", help="The share of pairs that all judges see.")
@click.option(
    "--repeats", type=_SHARE, default=0.0, metavar="SHARE", help="The share that a judge sees twice, unknowing."
)
@click.option("--gold", metavar="QRELS", help="Pairs whose grades are known; all judges see them among the others.")
@click.option(
    "--queries", metavar="FILE", help="Only topics with these queries: a list of 'judged online queries', or any table."
)
@shared("seed")
def command(
    store: str,
    paths: tuple[str, ...],
    judges: str | None,
    each: int,
    overlap: float,
    repeats: float,
    gold: str | None,
    queries: str | None,
    seed: int,
) -> None:
    """Make tasks of pairs of topic and document, and share them out evenly among judges.

    FILEs are pools ('judged pool'), lists of 'judged review' as CSV, TSV or JSON, runs, qrels, or any table with the
    columns query_id and doc_id. Tasks that are there already stay.
    """
    from judged.data.qrels import Qrels
    from judged.labels.assignment import assigned
    from judged.labels.exchange import read_pairs, read_topics
    from judged.labels.store import LabelStore

    known = Qrels.read(gold).table.to_pylist() if gold else []
    names = [name.strip() for name in (judges or "").split(",") if name.strip()]
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in known}
    with LabelStore.open(store, new=False) as opened:
        topics = {row["query_id"]: row["text"] for row in opened.topics()}
        only = read_topics(queries, topics) if queries else None
        pairs = (pair for path in paths for pair in read_pairs(path, topics) if only is None or pair[0] in only)
        tasks = assigned(pairs, names, each=each, overlap=overlap, repeats=repeats, gold=grades, seed=seed)
        added = opened.add_tasks(tasks)
        lacking = opened.lacking()
    there = f", {len(tasks) - added} were there" if added < len(tasks) else ""
    click.echo(f"{counted(added, 'task')} added{there}")
    output.notes(
        f"{counted(len(ids), word)} of the tasks, such as {ids[0]!r}, {'is' if len(ids) == 1 else 'are'} not in the"
        " store: judges see only the id. Add them with 'judged labels new', and look whether the ids are the same"
        for word, ids in lacking.items()
        if ids
    )
