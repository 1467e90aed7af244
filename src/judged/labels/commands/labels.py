"""The commands `judged labels`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.errors import InputError
from judged.interface import arguments
from judged.interface.arguments import answer_options, print_warnings, write_result
from judged.interface.options import Choice, LazyGroup, shared, with_options
from judged.results.decimals import counted

if TYPE_CHECKING:
    from judged.interface.arguments import OutputOptions
    from judged.labels.labels import Kind


@click.group(
    "labels",
    cls=LazyGroup,
    places={
        name: f"judged.labels.commands.models:{name}_command"
        for name in ("ask", "questions", "quality", "next", "estimate", "calibrate")
    },
)
def labels() -> None:
    """Collect judgments of several people and models, measure how far they agree, and make qrels of them.

    STORE is a file of SQLite, or the address of a PostgreSQL database: postgresql://user@host/name (docs/labels.md).
    """


@labels.command("new", short_help="Make a store, or add topics and documents to one.")
@click.argument("store")
@click.option(
    "--scale",
    metavar="NAME|FILE",
    help="binary, 0-3, 0-4, or a table with the columns grade, word and definition.  [default: 0-3]",
)
@click.option("--topics", "queries", metavar="FILE", help="Topics: ids and texts, with description and narrative.")
@click.option("--synthetic", is_flag=True, help="The topics were generated from documents: no user asked them.")
@click.option("--documents", "texts", metavar="FILE", help="Titles and texts of documents, or a folder of them.")
def new_command(store: str, scale: str | None, queries: str | None, synthetic: bool, texts: str | None) -> None:
    """Make a store of labels, or add topics and documents to one that is there.

    What is there stays as it is.
    """
    from judged.data.texts import Texts
    from judged.data.topics import Topics
    from judged.labels.labels import SCALES
    from judged.labels.store import LabelStore

    topics = None if queries is None else Topics.read(queries)  # before the store is created
    documents = None if texts is None else Texts.of(texts)
    with LabelStore.open(store, scale=scale if scale is None or scale in SCALES else _read_scale(scale)) as opened:
        if topics is not None:
            opened.add_topics(topics, synthetic=synthetic)
        if documents is not None:
            opened.add_documents(documents)
        scale_text = ", ".join(f"{grade.grade:g} {grade.word}" for grade in opened.scale)
        counts = f"{counted(len(opened.topics()), 'topic')}, {counted(opened.document_count(), 'document')}"
    click.echo(f"{opened.where}: {counts}; grades {scale_text}")


def _read_scale(path: str) -> list[tuple[float, str, str]]:
    """Read a custom scale from a file."""
    from judged.data.records import read_records
    from judged.labels.labels import SCALES, resolve_scale
    from judged.results.decimals import read_number

    if not Path(path).exists():
        fix = f"use {', '.join(SCALES)}, or a table with the columns grade, word and definition"
        raise InputError(f"{path!r} is neither a scale nor a file", fix=fix)
    grades: list[tuple[float, str, str]] = []
    for line, row in read_records(path):
        try:
            grades.append((read_number(row["grade"]), str(row["word"]), str(row.get("definition", ""))))
        except (KeyError, ValueError) as error:
            fix = "use binary, 0-3, 0-4, or a table with the columns grade, word and definition"
            raise InputError(f"not a valid scale ({error})", fix=fix, path=path, line=line) from None
    try:
        resolve_scale(grades)
    except InputError as error:
        raise InputError(error.problem, fix="use one line per grade", path=path) from None
    return grades


_KIND = Choice("judged.labels.labels:Kind")


@labels.command("judges", short_help="Add judges, or list them.")
@click.argument("store")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", type=_KIND, default="human", show_default=True, help="Of what kind they are.")
def judges_command(store: str, names: tuple[str, ...], kind: Kind) -> None:
    """Add judges to STORE and print the token that lets each into the judging page; without names, list who is there.

    A token is shown this once: only its hash is kept. Who is there already gets a new one.
    """
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        for name in names:
            click.echo(f"{name}\t{opened.add_judge(name, kind=kind)}")
        for name, kind_of_judge in opened.judges().items() if not names else ():
            click.echo(f"{name}\t{kind_of_judge}")


_SHARE = click.FloatRange(0, 1)


@labels.command("tasks", short_help="Say what is to be judged, and by whom.")
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
def tasks_command(
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
    from judged.labels.assignment import assign_tasks
    from judged.labels.exchange import read_pairs, read_topics
    from judged.labels.store import LabelStore

    gold_rows = Qrels.read(gold).table.to_pylist() if gold else []
    names = arguments.names_in([judges or ""])
    grades = {(row["query_id"], row["doc_id"]): row["relevance"] for row in gold_rows}
    with LabelStore.open(store, new=False) as opened:
        topics = {row["query_id"]: row["text"] for row in opened.topics()}
        pairs = [pair for path in paths for pair in read_pairs(path, topics)]
        if queries:
            allowed_topics = read_topics(queries, topics)
            pairs = [pair for pair in pairs if pair[0] in allowed_topics]
        tasks = assign_tasks(pairs, names, each=each, overlap=overlap, repeats=repeats, gold=grades, seed=seed)
        added = opened.add_tasks(tasks)
        missing_ids = opened.missing_ids()
    unchanged = f", {len(tasks) - added} were there" if added < len(tasks) else ""
    click.echo(f"{counted(added, 'task')} added{unchanged}")
    print_warnings(
        f"{counted(len(ids), word)} of the tasks, such as {ids[0]!r}, {'is' if len(ids) == 1 else 'are'} not in the"
        " store: judges see only the id. Add them with 'judged labels new', and look whether the ids are the same"
        for word, ids in missing_ids.items()
        if ids
    )


@labels.command("status", short_help="How far the judging is.")
@click.argument("store")
@answer_options()
def status_command(store: str, output: OutputOptions) -> None:
    """Show tasks by judge and topic, labels by kind, and how long a label takes."""
    from judged.labels.assignment import status
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        output(status(opened))


@labels.command("import", short_help="Put the labels of files into STORE.")
@click.argument("store")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--judge", default="", metavar="NAME", help="Who gave the labels, where a file does not say.")
@click.option(
    "--kind", type=_KIND, default="human", show_default=True, help="Of what kind they are, where a file does not say."
)
def import_command(store: str, paths: tuple[str, ...], judge: str, kind: Kind) -> None:
    """Put labels into STORE: tables of labels, qrels, books and ratings of Quepid, judgment lists of OpenSearch.

    A table has the columns query_id, doc_id, judge and grade; CSV, TSV, JSON, JSON Lines or Parquet. Formats that know
    queries only by their texts find the topics of the store by these. Of several labels of one judge for a pair, the
    latest by the column at counts or, where one has no time, the last one.
    """
    from judged.labels.exchange import import_labels
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        for path in paths:
            imported = import_labels(opened, path, judge=judge, kind=kind)
            text = f"{imported.replaced:,} replaced by a later one of the same judge and pair"
            replaced = text if imported.replaced else ""
            topics = counted(imported.new_topics, "new topic") if imported.new_topics else ""
            click.echo("; ".join(filter(None, (f"{counted(imported.labels, 'label')}: {path}", replaced, topics))))


consensus_options = with_options(
    click.option(
        "--by",
        default="majority",
        show_default=True,
        metavar="RULE",
        help="A judge's name; majority (of equally frequent grades the lowest); mean; dawid-skene, which weighs"
        " judges by how they err; or dawid-skene-mean.",
    ),
    click.option(
        "--kind",
        "kinds",
        type=_KIND,
        multiple=True,
        help="Count only these. Repeat for more.  [default: people's, if there are any]",
    ),
    click.option("--min-judges", type=click.IntRange(1), default=1, show_default=True, help="Leave out other pairs."),
)
"""Options for the aggregation of labels to qrels."""
_output_option = click.option("-o", "--output", "out", type=click.Path(path_type=Path), required=True, metavar="FILE")


@labels.command("qrels", short_help="Make qrels: one grade for each pair.")
@click.argument("store")
@consensus_options
@_output_option
def qrels_command(store: str, out: Path, **options: Any) -> None:
    """Make qrels of the labels of STORE, which may also be a table of labels.

    FILE.origin.json says how they were made, and of whose labels; results that rest on FILE say it too.
    """
    from judged.data.write import write_qrels
    from judged.labels.consensus import consensus_notes, qrels_of
    from judged.results.blocks import lines
    from judged.scoring.evaluation.notes import origin_notes

    arguments.keep_inputs(out, [store])
    options["kinds"] = options["kinds"] or None
    qrels = qrels_of(store, **options)
    write_qrels(qrels, out)
    click.echo(f"{counted(len(qrels), 'judgment')} of {counted(len(qrels.topics), 'topic')}: {out}")
    if qrels.origin is not None:
        print_warnings(lines((*origin_notes(qrels.origin), *consensus_notes(qrels.origin))))


_EXPORT_FORMATS = {"quepid": "quepid_ratings", "search-relevance": "judgment_list"}


@labels.command("export", short_help="Write labels for other tools.")
@click.argument("store")
@click.option(
    "--to",
    type=Choice(("labels", *_EXPORT_FORMATS)),
    default="labels",
    show_default=True,
    help="labels: all, by judge, as CSV, JSON Lines or Parquet; quepid: CSV of ratings; search-relevance: a judgment"
    " list for OpenSearch. The last two have one grade a pair (--by).",
)
@click.option("--notes", is_flag=True, help="With what judges wrote beside labels.")
@consensus_options
@_output_option
def export_command(store: str, to: str, notes: bool, out: Path, **options: Any) -> None:
    """Write the labels of STORE for other tools, or 'judged labels qrels' for qrels.

    Texts of documents are never written, and queries only in formats that know them by their texts.
    """
    from judged.labels import exchange
    from judged.labels.consensus import qrels_of
    from judged.labels.exchange import is_store
    from judged.labels.labels import Labels
    from judged.labels.store import LabelStore

    arguments.keep_inputs(out, [store])
    options["kinds"] = options["kinds"] or None
    is_label_store = is_store(store) or not Path(store).is_file()
    with LabelStore.open(store, new=False) if is_label_store else nullcontext(Labels.of(store)) as source:
        if to == "labels":
            labels = Labels.of(source)
            exchange.write_labels(labels, out, notes=notes)
            click.echo(f"{counted(len(labels), 'label')}: {out}")
            return
        topics = {row["query_id"]: row["text"] for row in getattr(source, "topics", tuple)()}
        qrels = qrels_of(source, **options)
    write_result(getattr(exchange, _EXPORT_FORMATS[to])(qrels, topics), out)
    click.echo(f"{counted(len(qrels), 'judgment')}: {out}")


@labels.command("topics", short_help="Choose topics from a list of queries with how often each was asked.")
@click.argument("queries")
@click.option("-n", "n", type=click.IntRange(1), default=50, show_default=True, help="How many topics.")
@click.option(
    "--scheme",
    type=Choice("judged.labels.topic_choice:Scheme"),
    default="traffic",
    show_default=True,
    help="Proportional to searches; as many of head, torso and tail; or all queries alike.",
)
@click.option("--column", default="count", show_default=True, metavar="NAME", help="The column that says how often.")
@shared("seed")
@answer_options()
def topics_command(queries: str, n: int, output: OutputOptions, **options: Any) -> None:
    """Choose topics from QUERIES, a table of queries and how often each was asked, with known probabilities.

    As CSV ('-o topics.csv') it is a file of topics: 'judged slices --queries topics.csv --weights weight' gives the
    mean over searches.
    """
    from judged.labels import choose_topics

    output.keep(queries)
    output(choose_topics(queries, n, **options))
