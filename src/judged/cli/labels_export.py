"""`judged labels export`: labels for other tools."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from judged.cli import inputs, output
from judged.cli.labels_qrels import consensus_options
from judged.results.decimals import counted

_TO = {"quepid": "quepid_ratings", "search-relevance": "judgment_list"}


@click.command("export", short_help="Write labels for other tools.")
@click.argument("store")
@click.option(
    "--to",
    type=click.Choice(["labels", *_TO]),
    default="labels",
    show_default=True,
    help="labels: all, by judge, as CSV, JSON Lines or Parquet; quepid: CSV of ratings; search-relevance: a judgment"
    " list for OpenSearch. The last two have one grade a pair (--by).",
)
@click.option("--notes", is_flag=True, help="With what judges wrote beside labels.")
@consensus_options
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), required=True, metavar="FILE")
def command(store: str, to: str, notes: bool, out: Path, **options: Any) -> None:
    """Write the labels of STORE for other tools, or 'judged labels qrels' for qrels.

    Texts of documents are never written, and queries only in formats that know them by their texts.
    """
    from judged.labels import exchange
    from judged.labels.consensus import qrels_of
    from judged.labels.exchange import is_store
    from judged.labels.labels import Labels
    from judged.labels.store import LabelStore

    inputs.keep_inputs(out, [store])
    options["kinds"] = options["kinds"] or None
    kept = is_store(store) or not Path(store).is_file()
    with LabelStore.open(store, new=False) if kept else nullcontext(Labels.of(store)) as source:
        if to == "labels":
            labels = Labels.of(source)
            exchange.write_labels(labels, out, notes=notes)
            click.echo(f"{counted(len(labels), 'label')}: {out}")
            return
        topics = {row["query_id"]: row["text"] for row in getattr(source, "topics", tuple)()}
        made = qrels_of(source, **options)
    output.write(getattr(exchange, _TO[to])(made, topics), out)
    click.echo(f"{counted(len(made), 'judgment')}: {out}")
