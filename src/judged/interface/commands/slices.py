"""`judged slices`: scores and differences by slices of the topics."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.errors import InputError
from judged.interface import inputs
from judged.interface.formats import answer_options, print_warnings
from judged.interface.options import DEFAULT_TEST, FORMATS, PAIRED_TESTS, POLICIES, shared
from judged.results.blocks import Note, first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run
    from judged.interface.formats import Give

    Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class SliceOptions:
    """What the options of slices ask for."""

    attributes: str | None = None  # a path
    by: tuple[str, ...] = ()  # names of attributes, several of them with commas between
    slices: str | None = None  # a path
    cross: bool = False  # whether slices of several attributes are crossed
    min_topics: int | None = None  # topics of a slice that is tested; None for the usual number
    queries: str | None = None  # a path
    where: str | None = None  # an expression

    @property
    def names(self) -> list[str]:
        """The attributes that make slices."""
        return [name.strip() for text in self.by for name in text.split(",") if name.strip()]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read: no result may be written over them."""
        return tuple(path for path in (self.attributes, self.queries, self.slices) if path)

    def known(self, qrels: Qrels, run: Run, *, names: Iterable[str] = (), documents: str | None = None) -> Attributes:
        """Give the attributes of the topics: from the files, or else derived."""
        from judged.comparison.slicing.derived import known_topics

        given = {"attributes": self.attributes, "queries": self.queries, "documents": documents}
        return known_topics(qrels, needed=[*self._needed(), *names], run=run, **given)

    def notes(self, run: Run) -> tuple[Note, ...]:
        """Give the note on topics that are chosen or cut by an outcome of this run."""
        from judged.comparison.slicing.derived import OUTCOME

        if OUTCOME not in self._needed():
            return ()
        luck = "on topics where that run did badly, any other run does better by luck alone (regression to the mean)"
        return (Note("cut-by-outcome", f"{OUTCOME} is taken from {run.name}: {luck}"),)

    def applied(self, qrels: Qrels, run: Run, documents: str | None = None) -> tuple[Qrels, Slicing | None]:
        """Leave the topics that ``--where`` keeps, and cut them into slices; None where none are asked for."""
        qrels = self.narrowed(qrels, run)
        if not (self.by or self.slices):
            return qrels, None
        return qrels, self.cut(self.known(qrels, run, documents=documents), qrels.topics)

    def cut(self, known: Attributes, query_ids: Sequence[str]) -> Slicing:
        """Cut topics into slices by their attributes."""
        from judged.comparison.slicing.topic_slices import Slicing, slice_topics

        if not (self.by or self.slices):
            names = first_few(list(known.names))
            raise InputError("nothing says how to slice", fix=f"give --by NAME, one of {names}; or --slices FILE")
        for name in self.names:
            if Path(name).is_file() and known.spelled(name) not in known.names:
                raise InputError(f"--by takes names, and {name} is a file", fix=f"write --attributes {name} --by NAME")
        how: dict[str, Any] = {"min_topics": self.min_topics, "query_ids": query_ids}
        by = [known.spelled(name) for name in self.names]
        if not self.cross:
            return slice_topics(known, by, slices=self.slices, **how)
        parts = [slice_topics(known, name, **how) for name in by]
        parts += [slice_topics(known, slices=self.slices, **how)] if self.slices else []
        if len(parts) < 2:
            raise InputError("--cross needs two things to cross", fix="give --by NAME,NAME")
        return reduce(Slicing.crossed, parts)

    def narrowed(self, qrels: Qrels, run: Run) -> Qrels:
        """Leave the judgments of the topics that ``--where`` keeps, and say of how many this is not known."""
        from judged.scoring.evaluation.inputs import narrowed

        known = self.known(qrels, run) if self.where else None
        qrels, lacking = narrowed(qrels, self.where, known)
        print_warnings(map(str, lacking))
        return qrels

    def _needed(self) -> list[str]:
        """Name the attributes that slices and ``--where`` ask for."""
        from judged.comparison.slicing.topic_slices import read_slices

        texts = [slice_.expression for slice_ in read_slices(self.slices)] if self.slices else []
        return [*self.names, *(name for text in (*texts, self.where or "") for name in _names(text))]


def narrowed(
    qrels: Qrels,
    runs: list[Run],
    *,
    attributes: str | None,
    queries: str | None,
    where: str | None,
    baseline: str | None = None,
    measures: Sequence[str] = (),
) -> tuple[Qrels, Attributes | None]:
    """Keep the topics that an expression over their attributes asks for; and give those that measures ask for."""
    from judged.scoring.evaluation.inputs import attributes_of

    needed = attributes_of(measures)
    if where is None:
        if attributes is not None and not needed:
            fix = "say which topics: --where \"kind == 'law'\", or -m \"P@5 where kind == 'law'\""
            raise InputError("--attributes goes with --where", fix=fix)
        if not needed:
            return qrels, None
    cut_by = next((run for run in runs if run.name == baseline), runs[0])
    asked = SliceOptions(attributes=attributes, queries=queries, where=where)
    print_warnings(map(str, asked.notes(cut_by)))
    return asked.narrowed(qrels, cut_by), asked.known(qrels, cut_by, names=needed) if needed else None


def _names(expression: str) -> tuple[str, ...]:
    from judged.data.expression import Expression

    return Expression(expression).names


def slice_options(command: Command) -> Command:
    """Give a command the options of slices, which reach it as ``asked``."""

    @wraps(command)
    def call(*args: Any, **options: Any) -> Any:
        asked = SliceOptions(**{field.name: options.pop(field.name) for field in fields(SliceOptions)})
        return command(*args, asked=asked, **options)

    made: Any = call
    for option in (
        shared("queries", "where"),
        click.option(
            "--min-topics",
            type=click.IntRange(1),
            metavar="N",
            help="Slices with fewer topics are shown, but not tested or ranked.  [default: 10]",
        ),
        click.option("--cross", is_flag=True, help="Cross the slices of several --by attributes with one another."),
        click.option("--slices", metavar="FILE", help="Your own slices: [[slice]] tables in a TOML file."),
        click.option(
            "--by",
            multiple=True,
            metavar="NAME[,NAME]",
            help="Attributes to slice by, one slice for each value: from the files, or derived"
            " (relevant, words, length, kind, first_relevant, ...).",
        ),
        shared("attributes"),
    ):
        made = option(made)
    return made


_TESTED = ("test", "correction", "alpha", "resamples", "margin", "family")


@click.command("slices")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@slice_options
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME",
    help="Also average with topics weighted by this numeric attribute, such as traffic;"
    " relevant gives every relevant document the same weight.",
)
@click.option("--baseline", metavar="RUN", help="Compare every other run with this one, slice by slice.")
@click.option("--compare", "pair", is_flag=True, help="Compare the second of two runs with the first.")
@shared("measures")
@click.option(
    "--test",
    type=click.Choice(PAIRED_TESTS),
    default=None,
    metavar="TEST",
    help=f"Test of each pair: {', '.join(PAIRED_TESTS)}.  [default: {DEFAULT_TEST}]",
)
@click.option(
    "--family",
    type=click.Choice(["all", "measure"]),
    default="all",
    show_default=True,
    help="What is corrected together: all slices, pairs and measures, or those of each measure separately.",
)
@shared("correction", "alpha", "resamples", "margin", "ci", "level", "seed", *POLICIES)
@answer_options()
@shared(*FORMATS)
def slices_command(
    qrels: str,
    runs: tuple[str, ...],
    weights: tuple[str, ...],
    baseline: str | None,
    pair: bool,
    measure: tuple[str, ...],
    asked: SliceOptions,
    give: Give,
    **options: Any,
) -> None:
    """Show the scores of RUNs by slices of the topics or, with --baseline, where they differ.

    Slices are cut by attributes of topics (--by), which come from a table (--attributes), stand beside the query
    texts (--queries), or are derived from these and the qrels; or they are defined in a file (--slices). A slice with
    few topics is shown, but neither tested nor ranked.
    """
    from judged.scoring.evaluation.evaluate import scored
    from judged.scoring.evaluation.inputs import attributes_of

    tested = pair or baseline is not None
    _refuse_unused(weights, tested=tested, bootstrap=options["ci"] == "bootstrap")
    judgments, given = give.inputs(qrels, runs, options, *asked.paths, options["documents"])
    first = _first(given, baseline, pair=pair)
    known = asked.known(judgments, first, names=(*weights, *attributes_of(measure)), documents=options["documents"])
    judgments = asked.narrowed(judgments, first)
    slicing = asked.cut(known, judgments.topics)
    policies = {name: options[name] for name in (*POLICIES, "seed")}
    with inputs.scoring(given) as progress:
        scores = scored(judgments, given, measure or None, progress=progress, attributes=known, **policies)
    used = _TESTED if tested else ("ci", "level", *(["resamples"] if options["resamples"] else []))
    how = {name: options[name] for name in (*used, "seed")}
    if tested:
        answer: Any = scores.compare_slices(slicing, first.name, **how)
    else:
        answer = scores.by_slice(slicing, weights=weights or None, **how)
    give(replace(answer, notes=(*asked.notes(first), *answer.notes)))


def _first(runs: list[Run], baseline: str | None, *, pair: bool) -> Run:
    """Choose the run that others are compared with; without a comparison, the one by which outcomes are cut."""
    if pair and baseline is not None:
        raise InputError("--compare and --baseline both say what is compared", fix="give one of them")
    if pair and len(runs) != 2:
        raise InputError(f"--compare takes two runs, and there are {len(runs)}", fix="name one with --baseline")
    if baseline is None:
        return runs[0]
    from judged.data.run import run_named

    named = {run.name: run for run in runs}
    return named[run_named(baseline, named, "to use as the baseline")]


def _refuse_unused(weights: tuple[str, ...], *, tested: bool, bootstrap: bool) -> None:
    """Refuse options that would change nothing."""
    context = click.get_current_context()
    used = "resamples" if bootstrap and not tested else ""
    for name in ("ci", "level") if tested else _TESTED:
        if name != used and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            fix = "leave it out; --alpha sets the level of intervals" if tested else "add --baseline RUN, or --compare"
            raise InputError(f"--{name} has no effect {'on tests' if tested else 'without a comparison'}", fix=fix)
    if tested and weights:
        raise InputError(
            "--weights applies to scores by slice, not to tests", fix="leave out --weights, or the comparison"
        )
