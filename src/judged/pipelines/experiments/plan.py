"""The plan of an experiment: what is searched, with which configurations, and how they are measured."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from judged.data.qrels import Qrels
from judged.data.toml_files import parse_toml, read_toml
from judged.data.toml_places import Places
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.experiments.collection import collection_notes
from judged.pipelines.experiments.configurations import FULL, Configuration, Hashes, LeftOut, level_text, versions
from judged.pipelines.experiments.limits import LIMITS
from judged.pipelines.experiments.reading import FILES, NUMBERS, choices_of, options_of
from judged.results import TEXT, Answer, Column, Sentences, Table, counted
from judged.results.notes import Note

if TYPE_CHECKING:
    from collections.abc import Generator

    from judged.results import Block


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Answer):
    """What is to be tried: configurations of search engines over documents, queries and judgments.

    Parameters
    ----------
    documents, queries, qrels
        Files; relative paths count from the folder of the plan.
    measures
        What is scored.
    depth
        How many documents every configuration is asked for.
    design
        ``full``: every combination of levels. ``one-at-a-time``: the control, and each other level in its place.
    control
        The settings that hold where no factor says otherwise, and the levels of the configuration that all others are
        compared with. A factor that it does not name has its first level there.
    factors
        Levels by setting; ``engine`` is one: its levels are engines and pipelines.
    forbidden
        Settings that must not come together.
    pipelines
        By name: ``engine = "fusion"`` with ``lists``, ``engine = "rerank"`` with ``of`` and ``function``, or an engine
        with settings that are fixed.
    rounds, warm_up, seed
        Of the latency: how often every query is asked, in random order, after so many that are not counted.
    concurrency
        With how many threads throughput is measured; 0: it is not.
    build_seconds, query_seconds
        Seconds that one build of an index, and one query, may take (3600 and 300). A configuration that takes longer is
        stopped and recorded as failed; the others are run. Results do not depend on them.
    folder
        From where relative paths count, and where modules are looked for.
    configurations : tuple of Configuration
        What is run, the control first.
    left_out : tuple of LeftOut
        Combinations that are not run, each with the reason.
    notes : tuple of Note

    Examples
    --------
    >>> from judged.data import sample
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> plan = Plan.of(
    ...     {key: str(sample.FOLDER / name) for key, name in names.items()}
    ...     | {"factors": {"engine": ["sqlite"], "stemmer": ["none", "english"], "tokens": ["words", "trigrams"]}}
    ... )
    >>> [one.name for one in plan.configurations]
    ['control', 'tokens=trigrams', 'stemmer=english']
    >>> plan.left_out[0].reason
    'sqlite: trigrams have no stem'
    """

    kind: ClassVar[str] = "plan"

    documents: str
    queries: str
    qrels: str
    measures: tuple[str, ...]
    depth: int
    design: str
    control: Mapping[str, Any]
    factors: Mapping[str, tuple[Any, ...]]
    forbidden: tuple[Mapping[str, Any], ...]
    pipelines: Mapping[str, Mapping[str, Any]]
    rounds: int
    warm_up: int
    seed: int
    concurrency: int
    build_seconds: int
    query_seconds: int
    folder: Path
    configurations: tuple[Configuration, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[Note, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file; its keys are the parameters, ``[control]``, ``[factors]`` and so on.

        Raises
        ------
        InputError
            If something in it makes no sense, with its line; or a file that it names cannot be read.
        """
        text = read_toml(path)
        return cls._made(parse_toml(text, str(path)), Path(path).resolve().parent, Places.of(text, str(path)))

    @classmethod
    def of(cls, given: Any) -> Self:
        """Take a plan as it is, a path, or a mapping laid out as the file is; relative paths count from here.

        Raises
        ------
        InputError
            As for `read`.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, (str, Path)):
            return cls.read(given)
        if isinstance(given, Mapping):
            return cls._made(cast("Mapping[str, Any]", given), Path.cwd(), Places())
        raise InputError(f"a {type(given).__name__} is no plan", fix="give a mapping, or a path to a TOML file")

    @classmethod
    def _made(cls, raw: Mapping[str, Any], folder: Path, places: Places) -> Self:
        with places.part():
            options = options_of(raw, folder)
        choices = choices_of(raw, folder, places, str(options["design"]))
        with places.part(), importing_from(folder):
            configurations, left_out, unknown = choices.expanded()
            hashes = Hashes(folder)
            choices.refuse_lacking(configurations, hashes, places)
            measured = {name: options[name] for name in NUMBERS}
            files = {name: hashes.file(options[name]) for name in FILES}
            measured |= {name: files[name] for name in ("documents", "queries")}
            keyed = tuple(replace(one, key=hashes.key(one.part, measured)) for one in configurations)
        notes = [
            Note(
                "factor-without-effect",
                f"has no {', '.join(lacking)}: one configuration whatever they are",
                name,
                of="engines",
            )
            for name, lacking in unknown.items()
        ]
        absent = {library for one in keyed for library, known in versions(one.part).items() if known is None}
        notes += [
            Note("not-installed", f"{library} is not installed: pip install 'judged[engines]'")
            for library in sorted(absent)
        ]
        notes += collection_notes(options["documents"], Topics.read(options["queries"]), Qrels.read(options["qrels"]))
        return cls(
            **options,
            control=choices.control,
            factors=choices.factors,
            forbidden=choices.forbidden,
            pipelines=choices.pipelines,
            folder=folder,
            configurations=keyed,
            left_out=tuple(left_out),
            notes=tuple(notes),
        )

    @property
    def title(self) -> str:
        """What is tried."""
        return f"Plan of {counted(len(self.configurations), 'configuration')}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much there is to do."""
        queries, builds = len(Topics.read(self.queries)), len(self.configurations)
        times = 1 + self.rounds
        asked = builds * (queries * times + min(self.warm_up, queries))
        design = "every combination of levels" if self.design == FULL else "one factor at a time"
        each = f"{counted(queries, 'query', 'queries')} each asked {times} times for {self.depth} documents"
        return (f"{design.capitalize()}: {counted(builds, 'index', 'indexes')} to build, {each}: {asked:,} searches.",)

    def blocks(self) -> tuple[Block, ...]:
        """Give the configurations, what is left out, and how much there is to do."""
        shown: list[Block] = [self._table("configurations", [one.levels for one in self.configurations])]
        if self.left_out:
            shown.append(self._table("left_out", [one.levels for one in self.left_out]))
        return (*shown, Sentences(self.sentences))

    def _table(self, name: str, levels: list[Mapping[str, Any]]) -> Table:
        """Lay out one row a configuration, or a combination that is left out."""
        columns = [
            Column(factor, [level_text(one[factor]) if factor in one else None for one in levels], TEXT)
            for factor in self.factors
        ]
        if name == "left_out":
            return Table(
                name, (*columns, Column("reason", [one.reason for one in self.left_out], TEXT)), title="Left out"
            )
        names = Column("configuration", [one.name for one in self.configurations], TEXT)
        keys = Column("key", [one.key for one in self.configurations], TEXT, only="data")
        return Table(name, (names, *columns, keys))

    def facts(self) -> dict[str, Any]:
        """Give everything that the plan says; files as they stand beside it."""
        names = ("measures", "design", *NUMBERS, *LIMITS, "control", "factors", "forbidden", "pipelines")
        files = {name: Path(getattr(self, name)) for name in FILES}
        inside = {name: path.is_relative_to(self.folder) for name, path in files.items()}
        shown = {name: str(path.relative_to(self.folder) if inside[name] else path) for name, path in files.items()}
        return {**shown, **{name: getattr(self, name) for name in names}}


@contextmanager
def importing_from(folder: Path) -> Generator[None]:
    """Let modules of a folder be imported for a while."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before
