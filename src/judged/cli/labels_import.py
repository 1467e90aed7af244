"""`judged labels import`: labels of files into a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from judged.results.decimals import counted

if TYPE_CHECKING:
    from judged.labels.labels import Kind


@click.command("import", short_help="Put the labels of files into STORE.")
@click.argument("store")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--judge", default="", metavar="NAME", help="Who gave the labels, where a file does not say.")
@click.option(
    "--kind",
    type=click.Choice(["human", "model", "click"]),
    default="human",
    show_default=True,
    help="Of what kind they are, where a file does not say.",
)
def command(store: str, paths: tuple[str, ...], judge: str, kind: Kind) -> None:
    """Put labels into STORE: tables of labels, qrels, books and ratings of Quepid, judgment lists of OpenSearch.

    A table has the columns query_id, doc_id, judge and grade; CSV, TSV, JSON, JSON Lines or Parquet. Formats that know
    queries only by their texts find the topics of the store by these. Of several labels of one judge for a pair, the
    latest by the column at counts or, where one has no time, the last one.
    """
    from judged.labels.exchange import import_labels
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        for path in paths:
            found = import_labels(opened, path, judge=judge, kind=kind)
            replaced = (
                f"{found.replaced:,} replaced by a later one of the same judge and pair" if found.replaced else ""
            )
            topics = counted(found.new_topics, "new topic") if found.new_topics else ""
            click.echo("; ".join(filter(None, (f"{counted(found.labels, 'label')}: {path}", replaced, topics))))
