"""What the commands of `judged rag` read: answers of one system or several, judgments, and what stood before them."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from judged.cli import inputs
from judged.cli.options import shared

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.pipelines.rag import Responses

    Command = TypeVar("Command", bound=Callable[..., Any])

RESPONSES = click.argument("responses", nargs=-1, required=True, metavar="RESPONSES...")
QRELS = click.option(
    "--qrels", metavar="QRELS", help="Judgments of documents.  [default: documents that hold a nugget, by evidence]"
)
MEASURES = click.option(
    "-m",
    "--measure",
    multiple=True,
    metavar="NAME",
    help="A measure of answers, such as NuggetRecall or SupportP, or one of rankings, such as R@10, of the context."
    " Repeat for more.  [default: those that the tables allow]",
)
_RUN = "A run behind the answers, by its stage in the order of the pipeline, or by system: NAME=RUN. Repeat for more."


def responses_at(texts: Sequence[str], queries: str | None = None, documents: str | None = None) -> Responses:
    """Read RESPONSES: files without a name go together, folders and NAME=PATH stand beside each other.

    NAME is a system in what stands at PATH, or how its only one is called. Exports that name queries and passages by
    their texts find their ids in `queries` and `documents`.
    """
    from judged.pipelines.rag.readers import read_responses
    from judged.pipelines.rag.responses import Responses

    named = [inputs.named(text) for text in texts]
    files = [path for name, path in named if not name and not Path(path).is_dir()]
    parts: list[Responses] = []
    for name, path in named:
        if path not in files[1:] or name:
            together = not name and path in files
            made = read_responses(files if together else path, topics=queries, texts=documents)
            parts.append(made.called(name) if name else made)
    return Responses.of(parts)


class Before(NamedTuple):
    """What stood before answers, as it is given to functions; None for what nobody gave."""

    qrels: Qrels | None
    runs: dict[str, Run] | None
    corpus: list[str] | None
    paths: tuple[str, ...]


def sources(command: Command) -> Command:
    """Give a command RESPONSES, and what stood before them: QRELS, runs and the corpus."""

    @wraps(command)
    def reading(
        qrels: str | None, runs: Sequence[str], corpus: str | None, qrels_format: Any, run_format: Any, **options: Any
    ) -> None:
        from judged.data.qrels import Qrels
        from judged.data.texts import document_ids

        judgments = None if qrels is None else Qrels.read(qrels, format=qrels_format)
        named = {run.name: run for run in inputs.runs_at(runs, run_format)} or None
        paths = tuple(path for path in (qrels, corpus) if path)
        command(before=Before(judgments, named, document_ids(corpus) if corpus else None, paths), **options)

    made: Any = reading
    for option in (
        click.option("--corpus", metavar="FILE", help="All documents, or their ids, one on each line."),
        click.option("--run", "runs", multiple=True, metavar="[NAME=]RUN", help=_RUN),
        click.option("--qrels", metavar="FILE", help="Judgments: which documents are relevant."),
        RESPONSES,
    ):
        made = option(made)
    return shared("qrels_format", "run_format")(made)
