"""`--by`, `--slices` and `--where`: which topics count, and how they are cut into slices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli import output
from judged.cli.options import shared
from judged.errors import InputError
from judged.results.notes import Note, first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from judged.comparison.slicing.topic_slices import Slicing
    from judged.data.attributes import Attributes
    from judged.data.qrels import Qrels
    from judged.data.run import Run

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
        from judged.scoring.evaluation.conditions import narrowed

        known = self.known(qrels, run) if self.where else None
        qrels, lacking = narrowed(qrels, self.where, known)
        output.notes(map(str, lacking))
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
    from judged.scoring.evaluation.conditions import attributes_of

    needed = attributes_of(measures)
    if where is None:
        if attributes is not None and not needed:
            fix = "say which topics: --where \"kind == 'law'\", or -m \"P@5 where kind == 'law'\""
            raise InputError("--attributes goes with --where", fix=fix)
        if not needed:
            return qrels, None
    cut_by = next((run for run in runs if run.name == baseline), runs[0])
    asked = SliceOptions(attributes=attributes, queries=queries, where=where)
    output.notes(map(str, asked.notes(cut_by)))
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
