"""`judged compare`: which systems differ, by how much, and whether it could be luck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import evaluate, inputs, output
from judged.cli.narrowing import narrowed, traced
from judged.cli.options import CHOICE, FORMATS, POLICIES, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from judged.comparison import Collections, Comparison
    from judged.data import Qrels, Run

_FORMS = ("table", "markdown", "latex", "json", "csv")
_SUFFIX = {"": "table", ".txt": "table", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex"}
_TESTS = (
    "randomisation", "t", "wilcoxon", "sign", "bootstrap", "bca", "studentised", "ratio", "bayes",
    "tukey", "randomised-tukey", "nemenyi", "dunnett", "randomised-dunnett",
)  # fmt: skip
_OF_TWO = _TESTS.index("tukey")
_SPELT = ("randomization", "studentized", "randomized-tukey", "randomized-dunnett")


@click.command("compare", short_help="Test which RUNs differ, and by how much.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="In place of QRELS and RUNs: scores saved by 'judged evaluate -o FILE.parquet'. Repeat for several"
    " collections; NAME=FILE names one.",
)
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME=QRELS,RUN,...",
    help="One of several collections. Systems are matched by the names of their runs.",
)
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@click.option(
    "-m", "--measure", multiple=True, metavar="NAME", help="A measure. Repeat for more.  [default: nDCG@10, AP]"
)
@click.option(
    "--test",
    type=click.Choice((*_TESTS, *_SPELT)),
    default="randomisation",
    show_default=True,
    metavar="TEST",
    help=f"Test of two systems: {', '.join(_TESTS[:_OF_TWO])}; or of all at once, which takes no correction:"
    f" {', '.join(_TESTS[_OF_TWO:])}.",
)
@shared("correction")
@click.option(
    "--family",
    type=click.Choice(["measure", "all"]),
    default="measure",
    show_default=True,
    help="What is corrected together: the pairs of each measure, or those of all.",
)
@shared("alpha", "resamples")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the resamples.")
@click.option(
    "--minimum", type=float, default=0.0, metavar="D", help="A topic is won or lost by at least this difference."
)
@shared("margin")
@click.option("--pairs", is_flag=True, help="Show every pair.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "documents", "ci", *CHOICE)
@click.option("--format", "form", type=click.Choice(_FORMS), help="Form of the result: a table, or what -o ends in.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file.")
@shared(*FORMATS)
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measure: tuple[str, ...],
    pairs: bool,
    form: str | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    **options: Any,
) -> None:
    """Compare RUNs over the topics of QRELS: which differ, by how much, and whether it could be luck.

    QRELS and RUN are files as for 'judged evaluate'. With --collection or several --scores, systems are compared on
    each collection, with collections as columns.
    """
    chosen = form or inputs.form_of(out, _SUFFIX)
    chooses = {name: options.pop(name) for name in CHOICE}
    ways = [bool(qrels), bool(scores), bool(collections)]
    if sum(ways) != 1:
        raise InputError(
            "QRELS and RUNs, --scores and --collection are three ways to say what is compared", fix="give one of them"
        )
    measures = measure or None
    if not qrels and (given := [f"--{name}" for name, value in chooses.items() if value]):
        raise InputError(f"{given[0]} goes with QRELS and RUNs", fix="leave it out")
    if len(scores) + len(collections) > 1 or collections:
        result = _collections(scores, collections, measures, out, qrels_format, run_format, options)
        written = _written_collections(result, chosen, shown=out is None)
    else:
        one = _one(qrels, runs, scores, measures, out, qrels_format, run_format, options, chooses)
        result, written = one, _written(one, chosen, pairs=pairs, shown=out is None, where=chooses["where"])
    output.write(written, out)
    if chosen != "json":
        output.remarks(result.warnings)


def _one(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    measures: tuple[str, ...] | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    options: dict[str, Any],
    chooses: dict[str, str | None],
) -> Comparison:
    """Compare the runs of one collection."""
    from judged.comparison import compare

    if scores:
        inputs.keep_inputs(out, scores)
        return compare(scores[0], measures=measures, **_without_policies(options))
    judgments, given = _files(qrels or "", runs, out, options["documents"], qrels_format, run_format)
    if not given:
        raise InputError("no run is given", fix="name two runs or more behind QRELS")
    inputs.keep_inputs(out, [chooses["queries"] or "", chooses["attributes"] or ""])
    judgments = narrowed(judgments, given, **chooses, topics=options["topics"], baseline=options["baseline"])
    with inputs.progress_bar(given) as progress:
        return compare(judgments, given, measures, progress=progress, **options)


def _collections(
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measures: tuple[str, ...] | None,
    out: Path | None,
    qrels_format: str | None,
    run_format: str | None,
    options: dict[str, Any],
) -> Collections:
    """Compare systems on several collections."""
    from judged.comparison import compare_collections

    context = click.get_current_context()
    for unused in ("minimum", "margin", "ci", "pairs"):
        if context.get_parameter_source(unused) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{unused} is not for several collections", fix="leave it out, or compare them one by one"
            )
        options.pop(unused, None)
    if scores:
        named = [_named(text) for text in scores]
        inputs.keep_inputs(out, [path for _, path in named])
        return compare_collections(_distinct(named), measures, **_without_policies(options))
    made: list[tuple[str, Any]] = []
    for text in collections:
        name, equals, files = text.partition("=")
        qrels, *runs = files.split(",")
        if not equals or not runs:
            raise InputError(f"{text!r} is no collection", fix="write NAME=QRELS,RUN1,RUN2")
        made.append((name, _files(qrels, runs, out, options["documents"], qrels_format, run_format)))
    return compare_collections(_distinct(made), measures, **options)


def _files(
    qrels: str,
    runs: tuple[str, ...] | list[str],
    out: Path | None,
    documents: str | None,
    qrels_format: str | None,
    run_format: str | None,
) -> tuple[Qrels, list[Run]]:
    from judged.data import Qrels

    judgments = Qrels.read(qrels, format=qrels_format)
    given = inputs.runs_at(runs, run_format)
    inputs.keep_inputs(out, [qrels, documents or "", *(run.where for run in given)])
    return judgments, given


def _named(text: str) -> tuple[str, str]:
    """Read NAME=FILE, or FILE, whose stem is the name."""
    from judged.data.files import exists

    name, equals, path = text.partition("=")
    return (name, path) if equals and not exists(text) else (Path(text).stem, text)


def _distinct(named: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in named]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two collections are named {twice[0]}", fix="give them names: NAME=...")
    return dict(named)


def _without_policies(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out the policies that a saved table already went by, and refuse those that were given."""
    given = [f"--{name}" for name in POLICIES if options[name] is not None]
    if given:
        raise InputError(
            f"{given[0]} cannot change scores that were already made",
            fix="give it to 'judged evaluate', or QRELS and RUNs",
        )
    return {name: value for name, value in options.items() if name not in POLICIES}


def _written(found: Comparison, form: str, *, pairs: bool, shown: bool, where: str | None) -> str:
    if form == "json":
        return traced(_json(found.to_dict()), form, where)
    if form == "csv":
        return found.csv()
    if form == "markdown":
        return traced(found.markdown(pairs=pairs), form, where)
    if form == "latex":
        return traced(found.latex(pairs=pairs), form, where)
    choices = found.choices
    interval = {"ci": "none", "level": choices.level, "resamples": choices.resamples, "seed": choices.seed}
    rules = evaluate.caption(found.scores, interval, where).removesuffix("; no intervals")
    return f"{found.text(width=output.width() if shown else None, pairs=pairs)}\n\n{rules}"


def _written_collections(found: Collections, form: str, *, shown: bool) -> str:
    if form == "json":
        return _json(found.to_dict())
    return found.text(width=output.width() if shown else None) if form == "table" else getattr(found, form)()


def _json(made: dict[str, Any]) -> str:
    import json

    return json.dumps(made, indent=2, ensure_ascii=False)
