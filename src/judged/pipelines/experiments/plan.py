"""The plan of an experiment: what is searched, with which configurations, and how they are measured."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from judged.data.qrels import Qrels
from judged.data.toml_files import SettingError, SourceLines, parse_toml, read_toml
from judged.data.topics import Topics
from judged.errors import InputError
from judged.pipelines.experiments.collection import collection_notes
from judged.pipelines.experiments.configurations import (
    CONTROL,
    FULL,
    ONE_AT_A_TIME,
    Choices,
    Configuration,
    Hashes,
    LeftOut,
    RefusedLevelError,
    level_text,
    refuse_weights,
    versions,
)
from judged.pipelines.experiments.engines import ENGINES
from judged.pipelines.experiments.limits import LIMITS
from judged.pipelines.experiments.pipelines import OPERATORS, settings_of
from judged.results import TEXT, Answer, Column, Sentences, Table, counted
from judged.results.blocks import Note
from judged.results.spelling import one_of
from judged.scoring.default_measures import RANKING_AND_CANDIDATES
from judged.scoring.evaluation import measures_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from judged.results import Block


FILES = ("documents", "queries", "qrels")
NUMBERS = {
    "depth": (100, 1, 1_000_000), "rounds": (3, 1, 10_000), "warm_up": (20, 0, 1_000_000), "seed": (0, 0, 2**32),
    "concurrency": (0, 0, 1_000),
}  # fmt: skip
"""Default, minimum, and maximum of each number of a plan."""
_KEYS = (*FILES, "measures", "design", *NUMBERS, *LIMITS, "control", "factors", "forbidden", "pipelines")


def options_of(raw: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Give files, measures, design and numbers."""
    for key in raw:
        _refuse_unless(_KEYS, key, "table or key")
    options: dict[str, Any] = {}
    for key in FILES:
        if not isinstance(raw.get(key), (str, PathLike)):
            raise SettingError(
                key, f"{key} is missing" if key not in raw else f"{key} names no file", f"name it: {key} = ..."
            )
        options[key] = str(folder / raw[key])
    for key, (usual, least, most) in {**NUMBERS, **LIMITS}.items():
        value = raw.get(key, usual)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            problem = f"{key} {value!r:.40} makes no sense"
            raise SettingError(key, problem, f"give a whole number from {least} to {most:,}")
        options[key] = value
    try:
        options["measures"] = tuple(map(str, measures_of(raw.get("measures", RANKING_AND_CANDIDATES))))
    except (InputError, ValueError) as error:
        raise SettingError("measures", *getattr(error, "parts", (str(error), "name measures"))) from None
    options["design"] = raw.get("design", FULL)
    if options["design"] not in (FULL, ONE_AT_A_TIME):
        raise SettingError("design", f"no design {options['design']!r}", f"use {FULL} or {ONE_AT_A_TIME}")
    return options


def choices_of(raw: Mapping[str, Any], folder: Path, places: SourceLines, design: str) -> Choices:
    """Give what is chosen among; refuse names and values that no engine of the plan knows."""
    with places.locate_errors():
        for key in ("control", "factors", "pipelines"):
            if not isinstance(raw.get(key, {}), Mapping):
                raise SettingError(key, f"{key} is not a table", f"write [{key}]")
        forbidden: Any = raw.get("forbidden", [])
        if not isinstance(forbidden, (list, tuple)) or not all(isinstance(one, Mapping) and one for one in forbidden):
            raise SettingError("forbidden", "forbidden is not a list of tables", "write [[forbidden]]")
    pipelines: dict[str, Mapping[str, Any]] = {}
    for name, own in raw.get("pipelines", {}).items():
        with places.locate_errors(f"pipelines.{name}"):
            pipelines[name] = _pipeline(name, own)
    with places.locate_errors("factors"):
        factors = {factor: _levels(factor, levels) for factor, levels in raw.get("factors", {}).items()}
    with places.locate_errors("control"):
        control = _control(raw.get("control", {}), factors)
    choices = Choices(control, factors, tuple(forbidden), pipelines, design, folder)
    _refuse_pipelines(choices, places)
    with places.locate_errors("factors" if "engine" in factors else "control"):
        for name in choices.engines:
            _refuse_engine(choices, name)
    given = [("control", None, raw.get("control", {})), ("factors", None, factors)]
    for table, at, settings in (*given, *(("forbidden", at, own) for at, own in enumerate(forbidden))):
        with places.locate_errors(table, at):
            for key, value in settings.items():
                several: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,)
                _refuse_unknown(choices, key, several)
                if table == "forbidden":
                    _refuse_absent(choices, key, several)
    return choices


def _refuse_pipelines(choices: Choices, places: SourceLines) -> None:
    for refuse in (_refuse_values, _refuse_engine):  # first each alone, then what they are together
        for name in choices.pipelines:
            with places.locate_errors(f"pipelines.{name}"):
                refuse(choices, name)


def _refuse_values(choices: Choices, name: str) -> None:
    """Refuse values of a pipeline that its engine does not take, and parts that there are not."""
    own = choices.pipelines[name]
    for key in settings_of(own["engine"]).keys() & own.keys():
        try:
            choices.value(own["engine"], key, own[key])
        except RefusedLevelError as error:
            raise SettingError(key, *error.parts) from None
    key = "lists" if "lists" in own else "of"
    for below in own.get("lists") or ([own["of"]] if "of" in own else []):
        if not isinstance(below, str) or below not in (*ENGINES, *choices.pipelines):
            known = ", ".join((*ENGINES, *choices.pipelines))
            raise SettingError(key, f"no engine or pipeline {below!r}", f"use one of {known}")
    if own.get("weights"):
        refuse_weights(name, own["weights"], own["lists"])


def _refuse_absent(choices: Choices, key: str, values: Iterable[Any]) -> None:
    """Refuse to forbid what no configuration has."""
    levels = [*choices.factors.get(key, ()), *([choices.control[key]] if key in choices.control else [])]
    for value in values:
        if value not in levels:
            known = ", ".join(dict.fromkeys(map(level_text, levels)))
            fix = f"use one of {known}" if known else f"name its levels in [factors]: {key} = [...]"
            raise SettingError(key, f"no configuration has {key} {value!r}", fix)


def _control(given: Mapping[str, Any], factors: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Give the settings of the control: of a factor that it does not name the first level."""
    control = {**{factor: levels[0] for factor, levels in factors.items()}, **given}
    if "engine" not in control:
        raise SettingError("engine", "nothing says which engine is asked", "name it: engine = 'sqlite'")
    for factor, levels in factors.items():
        if control[factor] not in levels:
            problem = f"{factor} {control[factor]!r} is no level of this factor"
            raise SettingError(factor, problem, f"use one of {', '.join(map(level_text, levels))}, or add it")
    return control


def _levels(factor: str, levels: Any) -> tuple[Any, ...]:
    if not isinstance(levels, (list, tuple)) or not levels:
        raise SettingError(factor, f"{factor} has no levels", f"give a list: {factor} = [...]")
    given = tuple(cast("Iterable[Any]", levels))
    if len({level_text(level) for level in given}) < len(given):
        raise SettingError(factor, f"{factor} has a level twice", "keep one")
    return given


def _refuse_engine(choices: Choices, name: str) -> None:
    """Refuse an engine that there is not, and values in pipelines that their engines do not take."""
    try:
        choices.part(name, {})
    except InputError as error:
        raise SettingError("engine", *error.parts) from None


def _refuse_unknown(choices: Choices, key: str, values: Iterable[Any]) -> None:
    """Refuse a setting that no engine of the plan has, or a value that none of them takes."""
    if key == "engine":
        return
    taking: dict[str, set[str]] = {}
    for name in choices.engines:
        for part in choices.part(name, {})[0].all():
            for setting in settings_of(part.engine):
                taking.setdefault(setting, set()).add(part.engine)
    _refuse_unless(taking, key, "setting of the plan's engines")
    for value in values:
        refused: list[RefusedLevelError] = []
        for engine in sorted(taking[key]):
            try:
                choices.value(engine, key, value)
            except RefusedLevelError as error:
                refused.append(error)
        if len(refused) == len(taking[key]):
            raise SettingError(key, *refused[0].parts)


def _pipeline(name: str, own: Any) -> Mapping[str, Any]:
    """Give what a pipeline is made of; refuse what cannot be one."""
    if not isinstance(own, Mapping):
        raise SettingError("", f"{name} is not a table", f"write [pipelines.{name}]")
    if name in ENGINES or name in OPERATORS or name == CONTROL:
        raise SettingError("", f"{name} is a name already", "give the pipeline another one")
    engine = own.get("engine")
    if engine not in (*ENGINES, *OPERATORS):
        raise SettingError("engine", f"no engine {engine!r}", f"use one of {', '.join((*ENGINES, *OPERATORS))}")
    needs = {"fusion": ("lists",), "rerank": ("of", "function"), "generate": ("of",)}.get(engine, ())
    for key in needs:
        if key not in own:
            raise SettingError(key, f"{engine} needs {key}", f"name it: {key} = ...")
    lists: Any = own.get("lists", ["", "-"])
    named = isinstance(lists, list) and all(isinstance(one, str) for one in lists)
    if not named or len(set(lists)) < max(2, len(lists)):
        raise SettingError(
            "lists", "these are not two lists or more", 'name engines or pipelines: lists = ["bm25s", "dense"]'
        )
    for key in own:
        _refuse_unless(dict.fromkeys(("engine", *needs, *settings_of(engine))), key, f"setting of {engine}")
    return own


def _refuse_unless(known: Iterable[str], key: str, what: str) -> None:
    names = list(known)
    if key not in names:
        try:
            fix = f"write {one_of(what, key, names)}"
        except InputError as error:
            fix = error.fix
        raise SettingError(key, f"no {what} {key!r}", fix)


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
        return cls._made(parse_toml(text, str(path)), Path(path).resolve().parent, SourceLines.of(text, str(path)))

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
            return cls._made(cast("Mapping[str, Any]", given), Path.cwd(), SourceLines())
        raise InputError(f"a {type(given).__name__} is no plan", fix="give a mapping, or a path to a TOML file")

    @classmethod
    def _made(cls, raw: Mapping[str, Any], folder: Path, places: SourceLines) -> Self:
        with places.locate_errors():
            options = options_of(raw, folder)
        choices = choices_of(raw, folder, places, str(options["design"]))
        with places.locate_errors(), importing_from(folder):
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
