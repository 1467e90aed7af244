"""`judged disagree`: where two measures prefer different systems, and what they see there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import evaluate, inputs, output
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.diagnosis.disagreement.result import Disagreement

_FORMS = ("table", "markdown", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".md": "markdown", ".json": "json", ".csv": "csv"}
_DEFAULT = ("nDCG@10", "R@100")


@click.command("disagree", short_help="Show where two measures prefer different systems, and why.")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="The two measures: -m twice.  [default: nDCG@10, R@100]"
)
@click.option(
    "--pair",
    nargs=2,
    metavar="NAME NAME",
    help="The two systems, by the names of their runs.  [default: those that the measures pull apart most]",
)
@click.option("--show", type=click.IntRange(1), default=5, show_default=True, help="How many topics are looked into.")
@click.option("--queries", metavar="FILE", help="Topics with their text, and attributes for --by.")
@click.option(
    "--by", multiple=True, metavar="NAME", help="Show slices by this attribute of --queries. Repeat for more."
)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
def command(
    qrels: str,
    runs: tuple[str, ...],
    measure: tuple[str, ...],
    pair: tuple[str, str] | None,
    show: int,
    queries: str | None,
    by: tuple[str, ...],
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **policies: Any,
) -> None:
    """Show where two measures prefer different systems: on which topics, what it rests on, and why.

    Of the topics that pull the two means apart most, the judged documents are compared, to say what one measure
    sees there and the other does not.
    """
    from judged.data import Qrels
    from judged.diagnosis.disagreement.making import disagreement

    chosen = form or inputs.form_of(out, _SUFFIX)
    if len(measure) not in {0, 2}:
        raise InputError(f"{len(measure)} measures are named", fix="name two, such as -m nDCG@10 -m R@100")
    if by and queries is None:
        raise InputError("--by names an attribute of the topics", fix="give the file that has it: --queries FILE")
    judgments = Qrels.read(qrels, format=qrels_format)
    given = inputs.runs_at(runs, run_format)
    documents = policies["documents"] or ""
    inputs.keep_inputs(out, [qrels, queries or "", documents, *(run.where for run in given)])
    with inputs.progress_bar(given) as progress:
        found = disagreement(
            judgments,
            given,
            *(measure or _DEFAULT),
            pair=pair or None,
            slicing=_slicing(queries, by),
            shown=show,
            queries=queries,
            progress=progress,
            **policies,
        )
    output.write(_written(found, chosen, shown=out is None), out)
    if chosen != "json":
        output.remarks(found.warnings)


def _slicing(queries: str | None, by: tuple[str, ...]) -> Any:
    if queries is None or not by:
        return None
    from judged.data.topics import Topics
    from judged.slicing.slices import slice_topics

    return slice_topics(Topics.read(queries), list(by))


def _written(found: Disagreement, form: str, *, shown: bool) -> str:
    if form == "json":
        import json

        return json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
    if form == "csv":
        return found.long_table().csv()
    return found.markdown() if form == "markdown" else found.text(width=output.width() if shown else None)


def _options(*names: str) -> list[click.Parameter]:
    """Take options from `judged evaluate`: they mean the same in both commands."""
    known = {option.name: option for option in evaluate.command.params}
    return [known[name] for name in names]


command.params[-3:-3] = _options("dialect", "topics", "depth", "ties", "documents")
command.params += _options("qrels_format", "run_format")
