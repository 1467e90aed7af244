"""The plan of an experiment: documents, queries, judgments, configurations, and measurement settings."""

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
    Configuration,
    DesignSpace,
    Hashes,
    OmittedCombination,
    RefusedLevelError,
    check_weights,
    format_factor_level,
    library_versions,
)
from judged.pipelines.experiments.engines import ENGINES
from judged.pipelines.experiments.limits import LIMITS
from judged.pipelines.experiments.pipelines import OPERATORS, settings_of
from judged.results import COUNT, TEXT, Answer, Column, Headline, Sentences, Table, counted
from judged.results.blocks import Note
from judged.results.spelling import one_of, use_one_of
from judged.scoring.default_measures import RANKING_AND_CANDIDATES
from judged.scoring.evaluation import measures_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from judged.results import Block


FILES = ("documents", "queries", "qrels")
NUMBERS = {
    "depth": (100, 1, 1_000_000), "rounds": (3, 1, 10_000), "warm_up": (20, 0, 1_000_000), "seed": (0, 0, 2**32),
    "concurrency": (0, 0, 1_000), "neighbors": (10, 1, 1_000_000),
}  # fmt: skip
"""Default, minimum, and maximum of each number of a plan."""
_KEYS = (*FILES, "measures", "design", *NUMBERS, *LIMITS, "control", "factors", "forbidden", "pipelines")


def parse_options(raw: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Parse files, measures, design, and numbers."""
    for key in raw:
        _check_name(_KEYS, key, "table or key")
    options: dict[str, Any] = {}
    for key in FILES:
        if not isinstance(raw.get(key), (str, PathLike)):
            raise SettingError(
                key, f"{key} is missing" if key not in raw else f"{key} must be a path", f"set {key} = ..."
            )
        options[key] = str(folder / raw[key])
    for key, (default, least, most) in {**NUMBERS, **LIMITS}.items():
        value = raw.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            problem = f"{key} must be an integer from {least} to {most:,}, got {value!r:.40}"
            raise SettingError(key, problem, f"write {key} = {default}")
        options[key] = value
    try:
        options["measures"] = tuple(map(str, measures_of(raw.get("measures", RANKING_AND_CANDIDATES))))
    except (InputError, ValueError) as error:
        raise SettingError("measures", *getattr(error, "parts", (str(error), "use measures such as nDCG@10"))) from None
    options["design"] = raw.get("design", FULL)
    if options["design"] not in (FULL, ONE_AT_A_TIME):
        raise SettingError("design", f"no design {options['design']!r}", f"use {FULL} or {ONE_AT_A_TIME}")
    return options


def parse_design_space(raw: Mapping[str, Any], folder: Path, places: SourceLines, design: str) -> DesignSpace:
    """Parse control, factors, forbidden combinations, and pipelines."""
    with places.locate_errors():
        for key in ("control", "factors", "pipelines"):
            if not isinstance(raw.get(key, {}), Mapping):
                raise SettingError(key, f"{key} must be a table", f"write [{key}]")
        forbidden: Any = raw.get("forbidden", [])
        if not isinstance(forbidden, (list, tuple)) or not all(
            isinstance(table, Mapping) and table for table in forbidden
        ):
            raise SettingError("forbidden", "`forbidden` must be a list of tables", "write [[forbidden]]")
    pipelines: dict[str, Mapping[str, Any]] = {}
    for name, definition in raw.get("pipelines", {}).items():
        with places.locate_errors(f"pipelines.{name}"):
            pipelines[name] = _parse_pipeline(name, definition)
    with places.locate_errors("factors"):
        factors = {factor: _parse_levels(factor, levels) for factor, levels in raw.get("factors", {}).items()}
    with places.locate_errors("control"):
        control = _parse_control(raw.get("control", {}), factors)
    space = DesignSpace(control, factors, tuple(forbidden), pipelines, design, folder)
    _check_pipelines(space, places)
    with places.locate_errors("factors" if "engine" in factors else "control"):
        for name in space.engines:
            _check_engine(space, name)
    tables = [("control", None, raw.get("control", {})), ("factors", None, factors)]
    for table, i, settings in (*tables, *(("forbidden", i, definition) for i, definition in enumerate(forbidden))):
        with places.locate_errors(table, i):
            for key, value in settings.items():
                values: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,)
                _check_setting(space, key, values)
                if table == "forbidden":
                    _check_forbidden(space, key, values)
    return space


def _check_pipelines(space: DesignSpace, places: SourceLines) -> None:
    for check in (_check_values, _check_engine):  # values first, so that errors name the pipeline that has them
        for name in space.pipelines:
            with places.locate_errors(f"pipelines.{name}"):
                check(space, name)


def _check_values(space: DesignSpace, name: str) -> None:
    """Check the values and inputs of a pipeline."""
    definition = space.pipelines[name]
    for key in settings_of(definition["engine"]).keys() & definition.keys():
        try:
            space.parse_value(definition["engine"], key, definition[key])
        except RefusedLevelError as error:
            raise SettingError(key, *error.parts) from None
    key = "lists" if "lists" in definition else "of"
    for input_name in definition.get("lists") or ([definition["of"]] if "of" in definition else []):
        if not isinstance(input_name, str) or input_name not in (*ENGINES, *space.pipelines):
            names = ", ".join((*ENGINES, *space.pipelines))
            raise SettingError(key, f"unknown engine or pipeline {input_name!r}", f"use one of {names}")
    if definition.get("weights"):
        check_weights(name, definition["weights"], definition["lists"])


def _check_forbidden(space: DesignSpace, key: str, values: Iterable[Any]) -> None:
    """Check that some configuration has the values of a forbidden combination."""
    levels = [*space.factors.get(key, ()), *([space.control[key]] if key in space.control else [])]
    for value in values:
        if value not in levels:
            level_names = ", ".join(dict.fromkeys(map(format_factor_level, levels)))
            fix = f"use one of {level_names}" if level_names else f"add its levels to [factors]: {key} = [...]"
            raise SettingError(key, f"no configuration has {key} {value!r}", fix)


def _parse_control(settings: Mapping[str, Any], factors: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Return the settings of the control; a factor that it does not set has its first level."""
    control = {**{factor: levels[0] for factor, levels in factors.items()}, **settings}
    if "engine" not in control:
        raise SettingError(
            "engine", "the control configuration has no engine", "set its engine, such as engine = 'sqlite'"
        )
    for factor, levels in factors.items():
        if control[factor] not in levels:
            problem = f"the control must have one of the levels of {factor}, got {control[factor]!r}"
            raise SettingError(factor, problem, f"{use_one_of(map(format_factor_level, levels))}, or add this level")
    return control


def _parse_levels(factor: str, levels: Any) -> tuple[Any, ...]:
    if not isinstance(levels, (list, tuple)) or not levels:
        raise SettingError(factor, f"{factor} has no levels", f"write a list: {factor} = [...]")
    level_tuple = tuple(cast("Iterable[Any]", levels))
    if len({format_factor_level(level) for level in level_tuple}) < len(level_tuple):
        raise SettingError(factor, f"{factor} has duplicate levels", "remove the duplicates")
    return level_tuple


def _check_engine(space: DesignSpace, name: str) -> None:
    """Check that an engine exists, and that pipelines have valid values."""
    try:
        space.node(name, {})
    except InputError as error:
        raise SettingError("engine", *error.parts) from None


def _check_setting(space: DesignSpace, key: str, values: Iterable[Any]) -> None:
    """Check that an engine of the plan has a setting, and that one of them allows each value."""
    if key == "engine":
        return
    engines_by_setting: dict[str, set[str]] = {}
    for name in space.engines:
        for node in space.node(name, {})[0].all():
            for setting in settings_of(node.engine):
                engines_by_setting.setdefault(setting, set()).add(node.engine)
    _check_name(engines_by_setting, key, "setting of the plan's engines")
    for value in values:
        errors: list[RefusedLevelError] = []
        for engine in sorted(engines_by_setting[key]):
            try:
                space.parse_value(engine, key, value)
            except RefusedLevelError as error:
                errors.append(error)
        if len(errors) == len(engines_by_setting[key]):
            raise SettingError(key, *errors[0].parts)


def _parse_pipeline(name: str, definition: Any) -> Mapping[str, Any]:
    """Check the definition of a pipeline."""
    if not isinstance(definition, Mapping):
        raise SettingError("", f"{name} must be a table", f"write [pipelines.{name}]")
    if name in ENGINES or name in OPERATORS or name == CONTROL:
        raise SettingError("", f"{name} is a reserved name", "rename the pipeline")
    engine = definition.get("engine")
    if engine not in (*ENGINES, *OPERATORS):
        raise SettingError("engine", f"no engine {engine!r}", use_one_of((*ENGINES, *OPERATORS)))
    required_keys = {"fusion": ("lists",), "rerank": ("of", "function"), "generate": ("of",)}.get(engine, ())
    for key in required_keys:
        if key not in definition:
            raise SettingError(key, f"{engine} requires {key}", f"set {key} = ...")
    lists: Any = definition.get("lists", ["", "-"])
    is_text_list = isinstance(lists, list) and all(isinstance(input_name, str) for input_name in lists)
    if not is_text_list or len(set(lists)) < max(2, len(lists)):
        raise SettingError(
            "lists", "`lists` must name at least two engines or pipelines", 'write lists = ["bm25s", "dense"]'
        )
    for key in definition:
        allowed_names = dict.fromkeys(("engine", *required_keys, *settings_of(engine)))
        _check_name(allowed_names, key, f"setting of the engine {engine}")
    return definition


def _check_name(allowed_names: Iterable[str], key: str, kind: str) -> None:
    names = list(allowed_names)
    if key not in names:
        try:
            fix = f"write {one_of(kind, key, names)}"
        except InputError as error:
            fix = error.fix
        raise SettingError(key, f"unknown {kind}: {key!r}", fix)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Answer):
    """Plan of an experiment: configurations of search engines over documents, queries, and judgments.

    Parameters
    ----------
    documents, queries, qrels
        Files; relative paths are relative to the folder of the plan.
    measures
        Measures to score.
    depth
        Number of documents to retrieve per query.
    design
        ``full``: every combination of levels. ``one-at-a-time``: the control, and each other level in its place.
    control
        Default settings, and the levels of the configuration that all others are compared with. A factor that it does
        not set has its first level.
    factors
        Levels by setting. The levels of ``engine`` are engines and pipelines.
    forbidden
        Combinations of settings to omit.
    pipelines
        By name: ``engine = "fusion"`` with ``lists``, ``engine = "rerank"`` with ``of`` and ``function``, or an engine
        with fixed settings.
    rounds, warm_up, seed
        Latency measurement: repetitions of each query, in random order, after `warm_up` queries that are not measured.
    concurrency
        Threads of the throughput measurement; 0 to skip it.
    neighbors
        Number k of nearest neighbors in the comparison of approximate with exact vector search; at most `depth` count.
    build_seconds, query_seconds
        Time limits in seconds of one build of an index and of one query (3600 and 300). A configuration that exceeds a
        limit is stopped and recorded as failed; the others are run. Results do not depend on the limits.
    folder
        Base of relative paths, and import path of modules.
    configurations : tuple of Configuration
        Configurations to run, control first.
    left_out : tuple of OmittedCombination
        Combinations that are not run, with reasons.
    notes : tuple of Note

    Examples
    --------
    >>> from judged.data import sample
    >>> names = {"documents": "docs.jsonl.gz", "queries": "queries.jsonl", "qrels": "qrels.txt"}
    >>> plan = Plan.of(
    ...     {key: str(sample.FOLDER / name) for key, name in names.items()}
    ...     | {"factors": {"engine": ["sqlite"], "stemmer": ["none", "english"], "tokens": ["words", "trigrams"]}}
    ... )
    >>> [configuration.name for configuration in plan.configurations]
    ['control', 'tokens=trigrams', 'stemmer=english']
    >>> plan.left_out[0].reason
    'sqlite: trigrams cannot be stemmed'
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
    neighbors: int
    build_seconds: int
    query_seconds: int
    folder: Path
    configurations: tuple[Configuration, ...]
    left_out: tuple[OmittedCombination, ...] = ()
    notes: tuple[Note, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file; its keys are the parameters, ``[control]``, ``[factors]``, and so on.

        Raises
        ------
        InputError
            If a value is invalid (with its line), or a file that it names cannot be read.
        """
        text = read_toml(path)
        return cls._from_mapping(
            parse_toml(text, str(path)), Path(path).resolve().parent, SourceLines.of(text, str(path))
        )

    @classmethod
    def of(cls, plan: Any) -> Self:
        """Return a plan from a plan, a path, or a mapping with the layout of the file.

        Relative paths in a mapping are relative to the current folder.

        Raises
        ------
        InputError
            As for `read`.
        """
        if isinstance(plan, cls):
            return plan
        if isinstance(plan, (str, Path)):
            return cls.read(plan)
        if isinstance(plan, Mapping):
            return cls._from_mapping(cast("Mapping[str, Any]", plan), Path.cwd(), SourceLines())
        raise InputError(
            f"a plan must be a mapping or a path, got {type(plan).__name__}", fix="use a path to a TOML file"
        )

    @classmethod
    def _from_mapping(cls, raw: Mapping[str, Any], folder: Path, places: SourceLines) -> Self:
        with places.locate_errors():
            options = parse_options(raw, folder)
        space = parse_design_space(raw, folder, places, str(options["design"]))
        with places.locate_errors(), extended_import_path(folder):
            configurations, left_out, unused_factors = space.expand()
            hashes = Hashes(folder)
            space.check_dependencies(configurations, hashes, places)
            measurement = {name: options[name] for name in NUMBERS}
            file_hashes = {name: hashes.file(options[name]) for name in FILES}
            measurement |= {name: file_hashes[name] for name in ("documents", "queries")}
            configs = tuple(replace(config, key=hashes.key(config.node, measurement)) for config in configurations)
        notes = [
            Note(
                "factor-without-effect",
                f"does not use {', '.join(unused)}: all levels give the same configuration",
                name,
                of="engines",
            )
            for name, unused in unused_factors.items()
        ]
        missing = {
            library
            for config in configs
            for library, version in library_versions(config.node).items()
            if version is None
        }
        notes += [
            Note("not-installed", f"{library} is not installed: pip install 'judged[engines]'")
            for library in sorted(missing)
        ]
        notes += collection_notes(options["documents"], Topics.read(options["queries"]), Qrels.read(options["qrels"]))
        return cls(
            **options,
            control=space.control,
            factors=space.factors,
            forbidden=space.forbidden,
            pipelines=space.pipelines,
            folder=folder,
            configurations=configs,
            left_out=tuple(left_out),
            notes=tuple(notes),
        )

    @property
    def title(self) -> str:
        """Number of configurations."""
        return f"Plan of {counted(len(self.configurations), 'configuration')}"

    @property
    def headline(self) -> Headline:
        """Number of configurations, which have no results yet."""
        sentence = f"No results yet. A run builds an index for each, with {self.searches:,} searches in total."
        n = len(self.configurations)
        return Headline("unknown", "not run", sentence, f"planned configuration{'s' * (n != 1)}", n, COUNT)

    @property
    def searches(self) -> int:
        """Number of searches of a run."""
        queries = len(Topics.read(self.queries))
        return len(self.configurations) * (queries * (1 + self.rounds) + min(self.warm_up, queries))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Size of the experiment."""
        queries, builds = len(Topics.read(self.queries)), len(self.configurations)
        passes = 1 + self.rounds
        searches = self.searches
        design = "every combination of levels" if self.design == FULL else "one factor at a time"
        per_query = (
            f"for each index, {counted(min(self.warm_up, queries), 'warm-up search', 'warm-up searches')} and {passes}"
            f" searches for each of {counted(queries, 'query', 'queries')}"
        )
        indexes = counted(builds, "index", "indexes")
        return (
            (
                f"{design.capitalize()}: {indexes} to build; {per_query}; in total, {searches:,} searches for the top"
                f" {self.depth} documents."
            ),
        )

    def blocks(self) -> tuple[Block, ...]:
        """Return the configurations, the omitted combinations, and the size of the experiment."""
        blocks: list[Block] = [self._table("configurations", [config.levels for config in self.configurations])]
        if self.left_out:
            blocks.append(self._table("left_out", [config.levels for config in self.left_out]))
        return (*blocks, Sentences(self.sentences))

    def _table(self, name: str, levels: list[Mapping[str, Any]]) -> Table:
        """Return a table with one row per configuration or omitted combination."""
        columns = [
            Column(factor, [format_factor_level(row[factor]) if factor in row else None for row in levels], TEXT)
            for factor in self.factors
        ]
        if name == "left_out":
            return Table(
                name,
                (*columns, Column("reason", [omitted.reason for omitted in self.left_out], TEXT)),
                title="Omitted combinations",
            )
        names = Column("configuration", [config.name for config in self.configurations], TEXT)
        keys = Column("key", [config.key for config in self.configurations], TEXT, only="data")
        return Table(name, (names, *columns, keys))

    def facts(self) -> dict[str, Any]:
        """Return all settings of the plan; files in its folder have relative paths."""
        names = ("measures", "design", *NUMBERS, *LIMITS, "control", "factors", "forbidden", "pipelines")
        files = {name: Path(getattr(self, name)) for name in FILES}
        is_inside = {name: path.is_relative_to(self.folder) for name, path in files.items()}
        file_names = {
            name: str(path.relative_to(self.folder) if is_inside[name] else path) for name, path in files.items()
        }
        return {**file_names, **{name: getattr(self, name) for name in names}}


@contextmanager
def extended_import_path(folder: Path) -> Generator[None]:
    """Add a folder to the import path within the context."""
    earlier_path = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = earlier_path
