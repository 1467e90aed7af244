"""`judged compare`: which systems differ, by how much, and whether it could be luck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judged.cli import inputs
from judged.cli.formats import answer_options
from judged.cli.options import CHOICE, DEFAULT_TEST, FORMATS, PAIRED_TESTS, POLICIES, shared
from judged.cli.slice_options import narrowed
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from judged.cli.formats import Give
    from judged.scoring.evaluation import Scores

_OF_ALL = ("tukey", "randomised-tukey", "nemenyi", "dunnett", "randomised-dunnett")


@click.command("compare", short_help="Test which RUNs differ, and by how much.")
@click.argument("qrels", required=False)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="Instead of QRELS and RUNs: scores saved by 'judged evaluate -o FILE.parquet'. Repeat for more: files with the"
    " same qrels are joined, others are several collections; NAME=FILE names one.",
)
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="NAME=QRELS,RUN,...",
    help="One of several collections. Repeat for each; systems are matched by run name.",
)
@click.option("--baseline", metavar="RUN", help="Compare every run with this one.  [default: every pair]")
@shared("measures")
@click.option(
    "--test",
    type=click.Choice((*PAIRED_TESTS, *_OF_ALL)),
    default=None,
    metavar="TEST",
    help=f"Test of each pair: {', '.join(PAIRED_TESTS)}; or of all systems at once, which"
    f" needs no correction: {', '.join(_OF_ALL)}.  [default: {DEFAULT_TEST}]",
)
@shared("correction")
@click.option(
    "--family",
    type=click.Choice(["measure", "all"]),
    default="measure",
    show_default=True,
    help="What is corrected together: the pairs of each measure, or those of all measures.",
)
@shared("alpha", "resamples")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed for the resamples.")
@click.option(
    "--min-difference",
    type=float,
    default=0.0,
    metavar="D",
    help="Count a topic as won or lost only if the scores differ by at least D.",
)
@shared("margin")
@click.option("--pairs", is_flag=True, help="Show every pair.")
@shared("dialect", "topics", "depth", "ties_or_bounds", "exclude_self", "documents", "rel", "ci", *CHOICE)
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
    """Compare RUNs over the topics of QRELS: which differ, by how much, and whether it could be chance.

    QRELS and RUN are files as for 'judged evaluate'. With --collection or several --scores, systems are compared on
    each collection, with collections as columns.
    """
    from judged.comparison import collections_of_scores, compare, compare_collections
    from judged.scoring.evaluation import Scores

    if sum(map(bool, (qrels, scores, collections))) != 1:
        raise InputError(
            "QRELS and RUNs, --scores and --collection are three ways to say what to compare",
            fix="give one of them; --scores and --collection are written before each of their values",
        )
    chooses = {name: options.pop(name) for name in CHOICE}
    if not qrels and (given := [f"--{name}" for name, value in chooses.items() if value]):
        raise InputError(f"{given[0]} goes with QRELS and RUNs", fix="leave it out")
    formats = {name: options.pop(name) for name in FORMATS}
    options["measures"] = measure or None
    if scores:
        options = _without_policies(options)
        give.keep(*(inputs.named(text)[1] for text in scores))
    unfold = ["pairs"] if pairs else ()
    tables = _by_judgments([(name, Scores.load(path)) for name, path in map(_stem, scores)])
    if len(tables) > 1:
        options = _of_collections(options)
        give(collections_of_scores(_distinct(tables), **options))
    elif collections:
        options = _of_collections(options)
        named = _distinct(_read(text, give, formats, options["documents"]) for text in collections)
        give(compare_collections(named, **options))
    elif scores:
        give(tables[0][1].compare(**options), unfold=unfold)
    else:
        paths = options["documents"], chooses["queries"], chooses["attributes"]
        judgments, given_runs = give.inputs(qrels or "", runs, formats, *paths)
        if not given_runs:
            raise InputError("no run is given", fix="name two or more runs after QRELS")
        how: dict[str, Any] = {"baseline": options["baseline"], "measures": measure}
        judgments, options["attributes"] = narrowed(judgments, given_runs, **chooses, **how)
        with inputs.progress_bar(given_runs) as progress:
            answer = compare(judgments, given_runs, progress=progress, **options)
        give(answer, unfold=unfold)


def _by_judgments(named: list[tuple[str, Scores]]) -> list[tuple[str, Scores]]:
    """Put scores by the same judgments together, under the first name."""
    from judged.scoring.evaluation.joined_scores import same_judgments

    parts: list[list[tuple[str, Scores]]] = []
    for name, scores in named:
        same = next((part for part in parts if same_judgments(part[0][1].qrels, scores.qrels)), None)
        if same is None:
            parts.append(same := [])
        same.append((name, scores))
    return [(part[0][0], part[0][1].join(*(scores for _, scores in part[1:]))) for part in parts]


def _of_collections(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out what makes no sense for several collections, and refuse what was asked of it."""
    context = click.get_current_context()
    for unused in ("min_difference", "margin", "ci", "pairs"):
        if context.get_parameter_source(unused) is click.core.ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{unused} does not work with several collections", fix="leave it out, or compare them one by one"
            )
        options.pop(unused, None)
    return options


def _stem(text: str) -> tuple[str, str]:
    """Read NAME=FILE, or FILE, whose stem is the name."""
    name, path = inputs.named(text)
    return name or Path(path).stem, path


def _read(text: str, give: Give, formats: dict[str, str | None], documents: str | None) -> tuple[str, Any]:
    """Read NAME=QRELS,RUN,..."""
    name, equals, paths = text.partition("=")
    qrels, *runs = paths.split(",")
    if not equals or not runs:
        raise InputError(f"{text!r} does not describe a collection", fix="write NAME=QRELS,RUN1,RUN2")
    return name, give.inputs(qrels, runs, {**formats}, documents)


def _distinct(collections: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    named = list(collections)
    names = [name for name, _ in named]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two collections are named {twice[0]}", fix="give them names: NAME=...")
    return dict(named)


def _without_policies(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out the policies that a saved table already went by, and refuse those that were given."""
    given = [f"--{name.replace('_', '-')}" for name in POLICIES if options[name] is not None]
    if given:
        raise InputError(
            f"{given[0]} cannot change scores that are already computed",
            fix="give it to 'judged evaluate', or give QRELS and RUNs here",
        )
    return {name: value for name, value in options.items() if name not in POLICIES}
