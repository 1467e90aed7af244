"""Options by which several commands cut their topics into slices, and what these options ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from judged.cli import inputs
from judged.cli.options import shared
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from judged._types import Bools
    from judged.data import Qrels, Run
    from judged.data.attributes import Attributes
    from judged.slicing.slices import Slicing

    Command = TypeVar("Command", bound=Callable[..., Any])

_FIELDS = ("attributes", "by", "slices", "cross", "minimum", "queries", "where")


def slicing_options(command: Command) -> Command:
    """Give a command the options of slices, as keywords that `Asked.taken` takes out again."""
    options = [
        shared("attributes"),
        click.option(
            "--by",
            multiple=True,
            metavar="NAME[,NAME]",
            help="Attributes, each of which makes one slice a value; of the files, or derived: relevant, words, length,"
            " kind, first_relevant, ...",
        ),
        click.option("--slices", metavar="FILE", help="Slices of your own: [[slice]] tables of a TOML file."),
        click.option("--cross", is_flag=True, help="Cross the slices of several --by with one another."),
        click.option(
            "--minimum",
            type=click.IntRange(1),
            metavar="N",
            help="A slice of fewer topics is shown, and never tested or ranked.  [default: 10]",
        ),
        shared("queries", "where"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Asked:
    """What the options of slices asked for."""

    attributes: str | None = None  # paths, or None
    by: tuple[str, ...] = ()  # names of attributes
    slices: str | None = None  # paths, or None
    cross: bool = False  # whether slices of several attributes are crossed
    minimum: int | None = None  # of topics, or None for the usual one
    queries: str | None = None  # paths, or None
    where: str | None = None  # an expression, or None

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Asked:
        """Take the options of slices out of a command's keywords; the others stay."""
        found: dict[str, Any] = {name: options.pop(name) for name in _FIELDS if name in options}
        by = [name.strip() for text in found.get("by") or () for name in text.split(",")]
        found["by"] = tuple(name for name in by if name)
        return cls(**found)

    @property
    def any(self) -> bool:
        """Whether slices are asked for."""
        return bool(self.by or self.slices)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that are read: no result may be written over them."""
        return tuple(path for path in (self.attributes, self.queries, self.slices) if path)

    def keep_inputs(self, out: Path | None) -> None:
        """Refuse to write the result over one of these files."""
        inputs.keep_inputs(out, self.paths)

    def known(
        self, qrels: Qrels, *, run: Run | None = None, names: Iterable[str] = (), documents: str | None = None
    ) -> Attributes:
        """Give what is known of the topics: from the files, and derived where no file has it."""
        from judged.slicing.known import known_topics

        return known_topics(
            qrels,
            attributes=self.attributes,
            queries=self.queries,
            needed=[*self._needed(), *names],
            run=run,
            documents=documents,
        )

    def remarks(self, run: str) -> tuple[str, ...]:
        """Say what should be known of slices that are cut by an outcome of the run of this name."""
        from judged.slicing.known import OUTCOME

        if OUTCOME not in self._needed():
            return ()
        text = f"{OUTCOME} is that of {run}: on topics where it did badly, any other run does better by luck alone"
        return (f"{text} (regression to the mean)",)

    def slicing(self, qrels: Qrels, **known: Any) -> Slicing | None:
        """Cut the topics of the qrels into slices; None, if the options ask for none. Keywords are those of `known`."""
        if not self.any:
            return None
        found = self.known(qrels, **known)
        return self.cut(found, self.kept(found, qrels))

    def kept(self, known: Attributes, qrels: Qrels) -> tuple[str, ...]:
        """Name the topics of the qrels that ``--where`` keeps, in byte order."""
        query_ids = tuple(sorted(qrels.topics))
        mask = self.where_mask(known, query_ids)
        if mask is None:
            return query_ids
        return tuple(query for query, keeps in zip(query_ids, mask.tolist(), strict=True) if keeps)

    def cut(self, known: Attributes, query_ids: Sequence[str]) -> Slicing:
        """Cut topics into slices by what is known of them, of which it is enough to know it of some."""
        from judged.slicing.slices import slice_topics

        how: dict[str, Any] = {"minimum": self.minimum, "query_ids": query_ids}
        if not self.any:
            raise InputError("there is nothing to slice by", fix="give --by NAME, or --slices FILE")
        by = [known.spelled(name) for name in self.by]
        if not self.cross:
            return slice_topics(known, by, slices=self.slices, **how)
        parts = [slice_topics(known, name, **how) for name in by]
        parts += [slice_topics(known, slices=self.slices, **how)] if self.slices else []
        if len(parts) < 2:
            raise InputError("--cross needs two things to cross", fix="give --by NAME,NAME")
        made = parts[0]
        for part in parts[1:]:
            made = made.crossed(part)
        return made

    def where_mask(self, known: Attributes, query_ids: Sequence[str]) -> Bools | None:
        """Mark the topics that ``--where`` keeps: (T,); None without it."""
        if self.where is None:
            return None
        if not self.where.strip():
            raise InputError("--where is empty", fix="say which topics, or leave it out")
        from judged.slicing.expression import Expression

        mask = Expression(self.where).mask(known.over(query_ids))
        if not mask.any():
            raise InputError(f"no topic satisfies --where {self.where!r}", fix="check the values of its attributes")
        return mask

    def _needed(self) -> list[str]:
        """Name the attributes that slices and ``--where`` ask for."""
        from judged.slicing.expression import Expression
        from judged.slicing.slices import read_slices

        texts = [one.expression for one in read_slices(self.slices)] if self.slices else []
        texts += [self.where] if self.where is not None else []
        return [*self.by, *(name for text in texts for name in Expression(text).names)]
