"""`judged labels new`: a store, its scale, topics and documents."""

from __future__ import annotations

from pathlib import Path

import click

from judged.errors import InputError
from judged.results.decimals import counted


@click.command("new", short_help="Make a store, or add topics and documents to one.")
@click.argument("store")
@click.option(
    "--scale",
    metavar="NAME|FILE",
    help="binary, 0-3, 0-4, or a table with the columns grade, word and definition.  [default: 0-3]",
)
@click.option("--topics", "queries", metavar="FILE", help="Topics: ids and texts, with description and narrative.")
@click.option("--synthetic", is_flag=True, help="The topics were made from documents: nobody asked them.")
@click.option("--documents", "texts", metavar="FILE", help="Titles and texts of documents, or a folder of them.")
def command(store: str, scale: str | None, queries: str | None, synthetic: bool, texts: str | None) -> None:
    """Make a store of labels, or add topics and documents to one that is there.

    What is there stays as it is.
    """
    from judged.data.texts import Texts
    from judged.data.topics import Topics
    from judged.labels.scales import SCALES
    from judged.labels.store import LabelStore

    topics = None if queries is None else Topics.read(queries)  # before anything is made
    documents = None if texts is None else Texts.of(texts)
    with LabelStore.open(store, scale=scale if scale is None or scale in SCALES else _own(scale)) as opened:
        if topics is not None:
            opened.add_topics(topics, synthetic=synthetic)
        if documents is not None:
            opened.add_documents(documents)
        words = ", ".join(f"{grade.grade:g} {grade.word}" for grade in opened.scale)
        held = f"{counted(len(opened.topics()), 'topic')}, {counted(opened.size(), 'document')}"
    click.echo(f"{opened.where}: {held}; grades {words}")


def _own(path: str) -> list[tuple[float, str, str]]:
    """Read a scale of one's own."""
    from judged.data.records import read_records
    from judged.labels.scales import SCALES, scale_of
    from judged.results.decimals import read_number

    if not Path(path).exists():
        fix = f"name {', '.join(SCALES)}, or a table with the columns grade, word and definition"
        raise InputError(f"there is no scale, and no file, {path!r}", fix=fix)
    grades: list[tuple[float, str, str]] = []
    for line, row in read_records(path):
        try:
            grades.append((read_number(row["grade"]), str(row["word"]), str(row.get("definition", ""))))
        except (KeyError, ValueError) as error:
            fix = "name binary, 0-3, 0-4, or a table with the columns grade, word and definition"
            raise InputError(f"this is no scale ({error})", fix=fix, path=path, line=line) from None
    try:
        scale_of(grades)
    except InputError as error:
        raise InputError(error.problem, fix="give each grade its own line", path=path) from None
    return grades
