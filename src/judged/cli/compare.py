"""`judged compare`: which systems differ, by how much, and whether it could be luck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.giving import answer_options
from judged.cli.narrowing import narrowed
from judged.cli.options import CHOICE, FORMATS, POLICIES, shared
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judged.cli.giving import Give
    from judged.comparison import Collections, Comparison
    from judged.data import Qrels, Run

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
@answer_options()
@shared(*FORMATS)
def command(
    qrels: str | None,
    runs: tuple[str, ...],
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measure: tuple[str, ...],
    pairs: bool,
    give: Give,
    **options: Any,
) -> None:
    """Compare RUNs over the topics of QRELS: which differ, by how much, and whether it could be luck.

    QRELS and RUN are files as for 'judged evaluate'. With --collection or several --scores, systems are compared on
    each collection, with collections as columns.
    """
    if sum(map(bool, (qrels, scores, collections))) != 1:
        raise InputError(
            "QRELS and RUNs, --scores and --collection are three ways to say what is compared", fix="give one of them"
        )
    chooses = {name: options.pop(name) for name in CHOICE}
    if not qrels and (given := [f"--{name}" for name, value in chooses.items() if value]):
        raise InputError(f"{given[0]} goes with QRELS and RUNs", fix="leave it out")
    formats = {name: options.pop(name) for name in FORMATS}
    measures = measure or None
    if len(scores) > 1 or collections:
        give(_collections(scores, collections, measures, give, formats, options))
    elif scores:
        from judged.comparison import compare

        give.keep(*scores)
        give(compare(scores[0], measures=measures, **_without_policies(options)), unfold=["pairs"] if pairs else ())
    else:
        found = _comparison(qrels or "", runs, measures, give, formats, chooses, options)
        give(found, unfold=["pairs"] if pairs else (), where=chooses["where"])


def _comparison(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...] | None,
    give: Give,
    formats: dict[str, str | None],
    chooses: dict[str, str | None],
    options: dict[str, Any],
) -> Comparison:
    """Compare the runs of one collection."""
    from judged.comparison import compare

    judgments, given = _files(qrels, runs, give, options["documents"], **formats)
    if not given:
        raise InputError("no run is given", fix="name two runs or more behind QRELS")
    give.keep(chooses["queries"], chooses["attributes"])
    judgments = narrowed(judgments, given, **chooses, topics=options["topics"], baseline=options["baseline"])
    with inputs.progress_bar(given) as progress:
        return compare(judgments, given, measures, progress=progress, **options)


def _collections(
    scores: tuple[str, ...],
    collections: tuple[str, ...],
    measures: tuple[str, ...] | None,
    give: Give,
    formats: dict[str, str | None],
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
        give.keep(*(path for _, path in named))
        return compare_collections(_distinct(named), measures, **_without_policies(options))
    files: list[tuple[str, Any]] = []
    for text in collections:
        name, equals, paths = text.partition("=")
        qrels, *runs = paths.split(",")
        if not equals or not runs:
            raise InputError(f"{text!r} is no collection", fix="write NAME=QRELS,RUN1,RUN2")
        files.append((name, _files(qrels, runs, give, options["documents"], **formats)))
    return compare_collections(_distinct(files), measures, **options)


def _files(
    qrels: str,
    runs: Sequence[str],
    give: Give,
    documents: str | None,
    qrels_format: str | None,
    run_format: str | None,
) -> tuple[Qrels, list[Run]]:
    from judged.data import Qrels

    judgments = Qrels.read(qrels, format=qrels_format)
    given = inputs.runs_at(runs, run_format)
    give.keep(qrels, documents, *(run.where for run in given))
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
