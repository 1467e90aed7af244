"""The commands `judged labels`."""

from __future__ import annotations

import re
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
    from collections.abc import Collection, Iterable

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
    """Collect labels from people and models, measure agreement between judges, and create qrels.

    STORE is an SQLite file, or the address of a PostgreSQL database: postgresql://user@host/name (docs/labels.md).
    """


_depth_option = shared(
    "depth", help="The files with pairs are runs: use the top N documents of each run and topic.", default=None
)


@labels.command("new", short_help="Create a store, or add topics and documents to a store.")
@click.argument("store")
@click.option(
    "--scale",
    metavar="NAME|FILE",
    help="Grade scale: `binary`, `0-3`, `0-4`, or a table with the columns `grade`, `word`, and `definition`. "
    " [default: 0-3]",
)
@click.option(
    "--topics", "queries", metavar="FILE", help="File of topics: ids and texts, optionally description and narrative."
)
@click.option("--synthetic", is_flag=True, help="Record that the topics were generated from documents.")
@click.option("--documents", "texts", metavar="FILE", help="File or folder with titles and texts of documents.")
@click.option(
    "--tasks",
    "paths",
    metavar="FILE",
    multiple=True,
    help="Pairs of topic and document that every judge grades, as for 'judged labels tasks'. Repeat for more files.",
)
@_depth_option
@click.pass_context
def new_command(
    context: click.Context,
    store: str,
    scale: str | None,
    queries: str | None,
    synthetic: bool,
    texts: str | None,
    paths: tuple[str, ...],
    depth: int | None,
) -> None:
    """Create a store of labels, or add topics, documents, and tasks to an existing store.

    Existing topics, documents, and tasks do not change.
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
    if paths:
        context.invoke(tasks_command, store=store, paths=paths, depth=depth)


def _read_scale(path: str) -> list[tuple[float, str, str]]:
    """Read a custom scale from a file."""
    from judged.data.records import read_records
    from judged.labels.labels import SCALES, resolve_scale
    from judged.results.decimals import read_number

    if not Path(path).exists():
        fix = f"use {', '.join(SCALES)}, or a table with the columns `grade`, `word`, and `definition`"
        raise InputError(f"{path!r} is neither a scale nor a file", fix=fix)
    grades: list[tuple[float, str, str]] = []
    for line, row in read_records(path):
        try:
            grades.append((read_number(row["grade"]), str(row["word"]), str(row.get("definition", ""))))
        except (KeyError, ValueError) as error:
            fix = "use the columns `grade`, `word`, and, optionally, `definition`"
            raise InputError(f"the table is not a valid scale ({error})", fix=fix, path=path, line=line) from None
    try:
        resolve_scale(grades)
    except InputError as error:
        raise InputError(error.problem, fix="use one line per grade", path=path) from None
    return grades


def warn_about_similar_names(names: Iterable[str], known: Collection[str]) -> None:
    """Warn about judges that are not in `known` but resemble one of them: the name may be misspelled."""
    from difflib import get_close_matches

    def without_digits(name: str) -> str:
        return re.sub(r"\d", "", name)

    for name in sorted(set(names).difference(known)):
        for match in get_close_matches(name, known, 1, 0.65):
            if without_digits(name) != without_digits(match):  # judge1 and judge2 are different judges
                print_warnings([f"{name} is a new judge. If you meant the existing judge {match}, correct the name."])


_KIND = Choice("judged.labels.labels:Kind")


@labels.command("judges", short_help="Add judges, or list them.")
@click.argument("store")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--kind", type=_KIND, default="human", show_default=True, help="Type of the new judges.")
def judges_command(store: str, names: tuple[str, ...], kind: Kind) -> None:
    """Add judges to STORE, and print each judge's token for the judging page. Without names, list all judges.

    The store keeps only the hash of a token, so each token is printed only once. An existing judge gets a new token.
    """
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        known = opened.judge_names()
        for name in names:
            click.echo(f"{name}\t{opened.add_judge(name, kind=kind)}")
        warn_about_similar_names(opened.judge_names(), known)
        for name, kind_of_judge in opened.judges().items() if not names else ():
            click.echo(f"{name}\t{kind_of_judge}")


_SHARE = click.FloatRange(0, 1)


@labels.command("tasks", short_help="Add judging tasks, and assign them to judges.")
@click.argument("store")
@click.argument("paths", nargs=-1, metavar="FILE...")
@click.option(
    "--judges",
    metavar="NAMES",
    help="Names of the judges that the tasks are assigned to, separated by commas.  [default: all judges do all tasks]",
)
@click.option(
    "--each",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of judges per pair of topic and document.",
)
@click.option(
    "--overlap",
    type=_SHARE,
    default=0.0,
    metavar="SHARE",
    help="Share of pairs of topic and document that all judges grade.",
)
@click.option(
    "--repeats",
    type=_SHARE,
    default=0.0,
    metavar="SHARE",
    help="Share of pairs that a judge grades a second time. The judge does not see which pairs are repeated.",
)
@click.option(
    "--gold",
    metavar="QRELS",
    help="Pairs of topic and document with grades that are known to be correct (gold). All judges also grade these"
    " pairs, to measure the accuracy of the judges.",
)
@click.option(
    "--queries",
    metavar="FILE",
    help="Create tasks only for these topics: output of 'judged online queries', or a table with the column"
    " `query_id`.",
)
@_depth_option
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
    depth: int | None,
    seed: int,
) -> None:
    """Create tasks from pairs of topic and document, and assign them evenly to judges.

    Each FILE is a pool ('judged pool'), output of 'judged review' as CSV, TSV or JSON, qrels, or any table with
    the columns query_id and doc_id; with --depth, a run. Existing tasks do not change.
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
        pairs = [pair for path in paths for pair in read_pairs(path, topics, depth)]
        if queries:
            allowed_topics = read_topics(queries, topics)
            pairs = [pair for pair in pairs if pair[0] in allowed_topics]
        tasks = assign_tasks(pairs, names, each=each, overlap=overlap, repeats=repeats, gold=grades, seed=seed)
        known = opened.judge_names()
        added = opened.add_tasks(tasks)
        warn_about_similar_names(opened.judge_names(), known)
        missing_ids = opened.missing_ids()
    unchanged = f", {len(tasks) - added} already existed" if added < len(tasks) else ""
    click.echo(f"{counted(added, 'task')} added{unchanged}")
    print_warnings(
        f"{counted(len(ids), word)} of the tasks, such as {ids[0]!r}, {'is' if len(ids) == 1 else 'are'} not in the"
        " store, so judges see only the id. Fix: check the spelling of the ids, and add the texts with"
        f" 'judged labels new {store} --{word}s FILE'"
        for word, ids in missing_ids.items()
        if ids
    )


@labels.command("status", short_help="Show the progress of judging.")
@click.argument("store")
@answer_options()
def status_command(store: str, output: OutputOptions) -> None:
    """Show tasks by judge and topic, labels by kind, and the time per label."""
    from judged.labels.assignment import status
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        output(status(opened))


@labels.command("import", short_help="Import labels from files.")
@click.argument("store")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--judge", default="", metavar="NAME", help="Name of the judge, if the file has no names of judges.")
@click.option(
    "--kind",
    type=_KIND,
    default="human",
    show_default=True,
    help="Type of the judge, if the file has no types of judges.",
)
@shared("columns")
def import_command(store: str, paths: tuple[str, ...], judge: str, kind: Kind) -> None:
    """Import labels into STORE: tables of labels, qrels, and exports of Quepid, Label Studio, Argilla, and doccano.

    Judgment lists of OpenSearch are also read. A table has the columns query_id, doc_id, judge and grade, or a column
    of grades for each judge; its format is CSV, TSV, JSON, JSON Lines or Parquet. If a format has no topic ids, the
    text of a query identifies the topic. If a judge has several labels for a pair, the latest label counts (column
    time). If a label has no time, the last row counts.
    """
    from judged.labels.exchange import import_labels
    from judged.labels.store import LabelStore

    with LabelStore.open(store, new=False) as opened:
        known = opened.judge_names()
        for path in paths:
            imported = import_labels(opened, path, judge=judge, kind=kind)
            text = f"{imported.replaced:,} replaced by a later label of the same judge and pair"
            replaced = text if imported.replaced else ""
            topics = counted(imported.new_topics, "new topic") if imported.new_topics else ""
            click.echo("; ".join(filter(None, (f"{counted(imported.labels, 'label')}: {path}", replaced, topics))))
        warn_about_similar_names(opened.judge_names(), known)


consensus_options = with_options(
    click.option(
        "--by",
        default="majority",
        show_default=True,
        metavar="RULE",
        help="Aggregation rule: `majority` (the most frequent grade; in a tie, the lowest of the tied grades), `mean`,"
        " `dawid-skene`"
        " (the most probable grade), `dawid-skene-mean` (the expected grade), or the name of a judge. Dawid and"
        " Skene's model estimates the error rates of judges, and weights judges accordingly.",
    ),
    click.option(
        "--kind",
        "kinds",
        type=_KIND,
        multiple=True,
        help="Type of judges whose labels are used. Repeat for more types.  [default: `human` if there are human"
        " labels,"
        " otherwise all types]",
    ),
    click.option(
        "--min-judges",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Minimum number of judges that must have graded a pair of topic and document. Pairs that"
        " fewer judges graded are left out.",
    ),
)
"""Options for the aggregation of labels to qrels."""
_output_option = click.option("-o", "--output", "out", type=click.Path(path_type=Path), required=True, metavar="FILE")


@labels.command("qrels", short_help="Create qrels with one grade per pair of topic and document.")
@click.argument("store")
@consensus_options
@_output_option
@shared("columns")
def qrels_command(store: str, out: Path, **options: Any) -> None:
    """Create qrels from the labels in STORE, a store or a table of labels.

    FILE.origin.json records the aggregation rule and the judges. Results that use FILE include the content of
    FILE.origin.json.
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


@labels.command("export", short_help="Export labels for other tools.")
@click.argument("store")
@click.option(
    "--to",
    type=Choice(("labels", *_EXPORT_FORMATS)),
    default="labels",
    show_default=True,
    help="`labels`: all labels as CSV, JSON Lines or Parquet; `quepid`: ratings as CSV; `search-relevance`: a judgment"
    " list for OpenSearch. In the formats `quepid` and `search-relevance`, all labels of a topic and document are"
    " combined into one grade. The option --by selects the rule.",
)
@click.option("--notes", is_flag=True, help="Include the notes of judges.")
@consensus_options
@_output_option
@shared("columns")
def export_command(store: str, to: str, notes: bool, out: Path, **options: Any) -> None:
    """Export the labels of STORE for other tools. For qrels, use 'judged labels qrels'.

    The export never contains texts of documents. The export contains query texts only if the
    format has no topic ids.
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


@labels.command("topics", short_help="Sample topics from queries and their search counts.")
@click.argument("queries")
@click.option("-n", "n", type=click.IntRange(1), default=50, show_default=True, help="Number of topics.")
@click.option(
    "--scheme",
    type=Choice("judged.labels.topic_choice:Scheme"),
    default="traffic",
    show_default=True,
    help="Sampling scheme. `traffic`: probabilities proportional to the number of searches; `strata`: equal numbers of"
    " frequent (head), less frequent (torso), and rare (tail) queries; `random`: equal probabilities.",
)
@click.option(
    "--column",
    default="count",
    show_default=True,
    metavar="NAME",
    help="Column with the number of searches of each query.",
)
@shared("seed")
@answer_options()
def topics_command(queries: str, n: int, output: OutputOptions, **options: Any) -> None:
    """Sample topics with known sampling probabilities from QUERIES, a table of queries and their numbers of searches.

    The CSV output ('-o topics.csv') is a topics file. To estimate means over searches, use the command
    'judged slices --queries topics.csv --weights weight'.
    """
    from judged.labels import choose_topics

    output.keep(queries)
    output(choose_topics(queries, n, **options))
