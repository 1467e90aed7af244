"""Configurations of a plan: the combinations of levels, and the search system of each."""

from __future__ import annotations

import ast
import hashlib
import json
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import judged
from judged.comparison.fusion.fuse import parse_weights
from judged.data.toml_files import SettingError
from judged.errors import InputError
from judged.pipelines.experiments.engines import ENGINES, find_engine
from judged.pipelines.experiments.pipelines import OPERATORS, Node, is_endpoint, settings_of
from judged.results.spelling import use_one_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.data.toml_files import SourceLines
    from judged.pipelines.experiments.engines.base import Setting


class PlanModules(MetaPathFinder):
    """Importer for the modules that functions of a plan need. Other files in the folder of the plan are never imported.

    Parameters
    ----------
    files
        File of each module, by module name, as `find_function_modules` returns them.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        parents = {name.rpartition(".")[0] for name in files} - {""}
        packages = {".".join(parts[:length]) for parts in (name.split(".") for name in parents)
                    for length in range(1, len(parts) + 1)}  # fmt: skip
        self._namespace_packages = packages - set(files)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the plan, else None. Called by the import system."""
        del path, target
        if name in self._namespace_packages:  # a package without __init__.py
            return ModuleSpec(name, None, is_package=True)
        if name not in self.files:
            return None
        file = Path(self.files[name])
        spec = spec_from_file_location(name, file)
        if spec and spec.submodule_search_locations:
            spec.submodule_search_locations = []  # only listed modules of a package can be imported
        return spec


def find_function_modules(key: str, function_name: str, folder: Path) -> dict[str, Path]:
    """Return the file of a function's module and of all modules in the plan's folder that it imports, by module name.

    Raises
    ------
    SettingError
        If the module does not exist, cannot be parsed, or does not define the function.
    """
    module, separator, attribute = function_name.partition(":")
    origin = _module_in_folder(module, folder) or _installed_module(module)
    if origin is None or not separator:
        problem, fix = (
            f"{key}: no function {function_name!r}",
            "write module:function; the module can be in the plan's folder",
        )
        raise SettingError(key, problem, fix)
    if origin.suffix == ".py" and origin.is_file():
        try:
            names = _assigned_names(ast.parse(origin.read_bytes()))
        except SyntaxError as error:
            raise SettingError(key, f"{key}: {origin}:{error.lineno}: {error.msg}", "correct the module") from None
        if not {attribute.partition(".")[0], "*", "__getattr__"} & names:
            fix = f"use a function that {origin.name} defines"
            raise SettingError(key, f"{key}: {origin} does not define {attribute!r}", fix)
    return {**({module: origin} if origin.is_file() else {}), **_imported_modules(module, folder)}


def _module_in_folder(module: str, folder: Path) -> Path | None:
    """Return the file of a module in a folder. Names of the standard library never refer to modules of a plan."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return None
    base = folder.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_name(f"{base.name}.py")) if path.is_file()), None)


def _installed_module(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return spec and Path(spec.origin or module)


def _imported_modules(module: str, folder: Path) -> dict[str, Path]:
    """Return the modules in a folder that a module imports, directly or indirectly, also inside functions."""
    files: dict[str, Path] = {}
    pending = [module]
    while pending:
        parts = pending.pop().split(".")
        # Importing a module imports its parent packages first.
        for name in (".".join(parts[: i + 1]) for i in range(len(parts))):
            path = None if name in files else _module_in_folder(name, folder)
            if path is None:
                continue
            files[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            with suppress(OSError, SyntaxError):  # the import itself reports the error
                pending += _import_names(ast.parse(path.read_bytes()), package)
    return files


def _import_names(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the names in all import statements that may be modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent_packages = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*filter(None, parent_packages), *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _assigned_names(tree: ast.AST) -> set[str]:
    """Return all names that a module defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


CONTROL = "control"
"""Name of the configuration that all others are compared with."""
FULL, ONE_AT_A_TIME = "full", "one-at-a-time"
_MAX_NUMBER = 1e308  # rejects infinity and NaN
_FILE_SETTINGS = ("synonyms", "file", "document_vectors", "query_vectors")  # settings that name a file
_REQUIRED_SETTINGS = {
    "http": "file",
    "function": "search",
    "rerank": "function",
    "generate": "generator",
}  # settings without a usable default
_TYPE_NAMES: Mapping[type, str] = {
    tuple: "a list", str: "text", float: "a number", int: "an integer", bool: "true or false",
}  # fmt: skip
_FUNCTION_SETTINGS = ("rewrite", "function", "embed", "search", "generator")  # settings that name module:function


@dataclass(frozen=True)
class Configuration:
    """A configuration of a search system.

    Parameters
    ----------
    name
        Unique in its plan: ``control``, or the levels that differ from the control.
    settings
        Name of the engine, and the settings of it and of all nodes of a pipeline that the plan sets.
    levels
        Level of each factor, without factors that its engine does not have.
    node
        Search system, with all settings.
    key
        Hash of everything that the results depend on.
    """

    name: str
    settings: Mapping[str, Any]
    levels: Mapping[str, Any]
    node: Node
    key: str = ""


class OmittedCombination(NamedTuple):
    """A combination of levels that is not run, and the reason."""

    levels: Mapping[str, Any]
    reason: str


class RefusedLevelError(InputError):
    """An engine does not allow a value that another engine of the plan may allow."""


@dataclass(frozen=True)
class DesignSpace:
    """Design space of a plan: settings of the control, levels of each factor, and pipelines by name."""

    control: Mapping[str, Any]
    factors: Mapping[str, tuple[Any, ...]]
    forbidden: tuple[Mapping[str, Any], ...]
    pipelines: Mapping[str, Mapping[str, Any]]
    design: str
    folder: Path

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines and pipelines that are levels of the factor `engine`."""
        return self.factors.get("engine") or (self.control["engine"],)

    def node(self, name: str, settings: Mapping[str, Any], parents: tuple[str, ...] = ()) -> tuple[Node, set[str]]:
        """Return the node of an engine or pipeline, and the names of the settings that it uses."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"an engine name must be text, got {name!r}", fix="write a name")
        if name in parents:
            raise InputError(f"pipeline {name!r} contains itself", fix="remove the pipeline from its own inputs")
        definition = self.pipelines.get(name, {"engine": name})
        if name not in self.pipelines and name not in ENGINES:
            raise InputError(f"unknown engine or pipeline {name!r}", fix=use_one_of((*ENGINES, *self.pipelines)))
        known_settings = settings_of(definition["engine"])
        fixed = {
            key: self.parse_value(definition["engine"], key, value)
            for key, value in definition.items()
            if key in known_settings
        }
        used_settings = {
            key: self.parse_value(definition["engine"], key, value)
            for key, value in settings.items()
            if key in known_settings and key not in fixed
        }
        names: Iterable[str] = definition.get("lists") or ([definition["of"]] if "of" in definition else ())
        children = [self.node(child, settings, (*parents, name)) for child in names]
        all_settings = {key: setting.default for key, setting in known_settings.items()} | used_settings | fixed
        node = Node(name, definition["engine"], all_settings, tuple(node for node, _ in children))
        if all_settings.get("weights"):
            check_weights(name, all_settings["weights"], [child.name for child in node.of])
        return node, set(used_settings).union(*(names_used for _, names_used in children))

    def parse_value(self, engine: str, key: str, value: Any) -> Any:
        """Return a setting converted for an engine; a path is relative to the folder of the plan."""
        setting = settings_of(engine)[key]
        converted = _convert(setting, value)
        is_out_of_range = isinstance(converted, (int, float)) and not setting.least <= converted <= setting.most
        if converted is None or is_out_of_range or (setting.values and converted not in setting.values):
            allowed = setting.allowed_values or _TYPE_NAMES[type(setting.default)]
            raise RefusedLevelError(f"{engine} does not allow {key} = {value!r}", fix=f"use {allowed}")
        return str(self.folder / str(converted)) if _names_file(key, converted) else converted

    def expand(self) -> tuple[list[Configuration], list[OmittedCombination], dict[str, list[str]]]:
        """Return the configurations, control first; omitted combinations; and unused factors by engine."""
        configurations: dict[str, Configuration] = {}
        omitted: list[OmittedCombination] = []
        unused_factors: dict[str, list[str]] = {}
        for levels in self._combinations():
            settings = {**self.control, **levels}
            try:
                node, names_used = self.node(settings["engine"], settings)
                used_settings = {key: value for key, value in settings.items() if key == "engine" or key in names_used}
                reason = self._exclusion_reason(node, used_settings)
            except RefusedLevelError as error:
                node, used_settings, reason = None, {}, error.parts[0]
            if node is None or reason:
                if not configurations:
                    raise InputError(f"the control configuration cannot be run: {reason}", fix="change [control]")
                omitted.append(OmittedCombination(levels, reason))
                continue
            own_levels = {factor: level for factor, level in levels.items() if factor in used_settings}
            unused = [factor for factor in self.factors if factor not in used_settings]
            unused_factors |= {settings["engine"]: unused} if unused else {}
            node_json = json.dumps(asdict(node), sort_keys=True)
            name = self._configuration_name(used_settings) if configurations else CONTROL
            configurations.setdefault(node_json, Configuration(name, used_settings, own_levels, node))
        return list(configurations.values()), omitted, unused_factors

    def check_dependencies(self, configurations: Iterable[Configuration], hashes: Hashes, places: SourceLines) -> None:
        """Check that all required settings, files, and functions exist."""
        for node in {node.name: node for configuration in configurations for node in configuration.node.all()}.values():
            definition = self.pipelines.get(node.name)
            tables = {"factors": self.factors, "control": self.control}
            tables = tables if definition is None else {f"pipelines.{node.name}": definition, **tables}
            for key, value in node.settings.items():
                error_key = "engine" if not value and _REQUIRED_SETTINGS.get(node.engine) == key else key
                with places.locate_errors(next((name for name, table in tables.items() if error_key in table), "")):
                    if error_key != key:
                        raise SettingError(error_key, f"{node.name} requires {key}", f"set {key} = ...")
                    hashes.fingerprint(key, value)

    def _combinations(self) -> Iterator[dict[str, Any]]:
        """Yield levels by factor, those of the control first."""
        control = {factor: self.control[factor] for factor in self.factors}
        yield control
        if self.design == FULL:
            combinations = (dict(zip(self.factors, levels, strict=True)) for levels in product(*self.factors.values()))
        else:
            combinations = ({**control, factor: level} for factor, levels in self.factors.items() for level in levels)
        yield from (levels for levels in combinations if levels != control)

    def _exclusion_reason(self, root: Node, settings: Mapping[str, Any]) -> str:
        """Return the reason why a combination is not run; empty if it is run."""
        for forbidden in self.forbidden:
            if all(key in settings and settings[key] in _as_sequence(value) for key, value in forbidden.items()):
                return f"forbidden: {format_levels(forbidden)}"
        for node in root.all():
            for combination, reason in () if node.engine in OPERATORS else find_engine(node.engine).incompatible:
                if all(node.settings[key] == value for key, value in combination.items()):
                    return f"{node.engine}: {reason}"
        return ""

    def _configuration_name(self, settings: Mapping[str, Any]) -> str:
        changed_levels = {
            factor: settings[factor]
            for factor in self.factors
            if factor in settings and factor != "engine" and settings[factor] != self.control[factor]
        }
        engine = [settings["engine"]] if len(self.engines) > 1 else []
        return " ".join([*engine, *([format_levels(changed_levels)] if changed_levels else [])])


def _names_file(key: str, value: Any) -> bool:
    """Return whether a setting is a file. A generator is either an endpoint file or a function."""
    return bool(value) and (key in _FILE_SETTINGS or (key == "generator" and is_endpoint(value)))


def format_levels(levels: Mapping[str, Any]) -> str:
    """Format levels as in names of configurations.

    >>> format_levels({"stemmer": "none", "k1": 1.2, "synonyms": ""})
    'stemmer=none k1=1.2 synonyms=none'
    """
    return " ".join(f"{factor}={format_factor_level(level)}" for factor, level in levels.items())


def format_factor_level(level: Any) -> str:
    """Format one level. An empty value is ``none``; whole numbers have no decimals."""
    if isinstance(level, (list, tuple)):
        return ",".join(map(format_factor_level, cast("Sequence[Any]", level))) or "none"
    return f"{level:.15g}" if isinstance(level, float) else str(level) or "none"


def check_weights(pipeline: str, weights: Any, lists: Sequence[str]) -> None:
    """Check that there is one finite weight per list."""
    try:
        parse_weights(weights, lists)
    except (TypeError, ValueError, OverflowError) as error:
        problem, fix = getattr(error, "parts", (str(error), ""))
        fix = fix or "set `weights` to one number for each list"
        raise SettingError("weights", f"invalid weights of {pipeline}: {problem}", fix) from None


def _as_sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else (value,)


def _convert(setting: Setting, value: Any) -> Any:
    """Return a value converted to the type of a setting; None if that is impossible."""
    setting_type: type = type(setting.default)
    if isinstance(value, bool) != (setting_type is bool):
        return None
    if setting_type is float and isinstance(value, (int, float)):
        return float(value) if abs(value) <= _MAX_NUMBER else None
    if setting_type is tuple and isinstance(value, (list, tuple)):
        return tuple(cast("Sequence[Any]", value))
    return value if isinstance(value, setting_type) else None


class Hashes:
    """Hashes of files, functions, and library versions that results depend on; each is computed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, str] = {}
        self._functions: dict[tuple[str, str], dict[str, str]] = {}

    def file(self, path: str | Path) -> str:
        """Hash a file, or all files of a folder with their names.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        path_text = str(path)
        if path_text not in self._files:
            root, digest = Path(path), hashlib.sha256()
            try:
                files = sorted(file for file in root.rglob("*") if file.is_file()) if root.is_dir() else [root]
                for file in files:
                    with file.open("rb") as stream:
                        file_hash = hashlib.file_digest(stream, "sha256").hexdigest()
                    digest.update(f"{file.relative_to(root)}\0{file_hash}\0".encode())
            except (OSError, ValueError) as error:  # ValueError: the path contains a zero byte
                problem = f"cannot read the file ({getattr(error, 'strerror', None) or error})"
                raise InputError(problem, fix="check the path", path=path_text) from None
            self._files[path_text] = digest.hexdigest()
        return self._files[path_text]

    def key(self, root: Node, measured: Mapping[str, Any]) -> str:
        """Hash a configuration by content: files and functions count by their contents, not by their paths."""
        fingerprints: list[Any] = [
            (node.name, node.engine, [self.fingerprint(*setting) for setting in sorted(node.settings.items())])
            for node in root.all()
        ]
        document = json.dumps([fingerprints, dict(measured), library_versions(root)], sort_keys=True)
        return hashlib.sha256(document.encode()).hexdigest()[:16]

    def fingerprint(self, key: str, value: Any) -> tuple[Any, ...]:
        """Return a setting, with the hashes of its file or modules."""
        if _names_file(key, value):
            return key, self.file(value)
        if value and key in _FUNCTION_SETTINGS:
            if (key, value) not in self._functions:
                modules = find_function_modules(key, value, self._folder)
                self._functions[key, value] = {name: self.file(path) for name, path in modules.items()}
            return key, value, self._functions[key, value]
        return key, value


def configuration_modules(root: Node, folder: Path) -> dict[str, str]:
    """Return the file of each module in the plan's folder that functions of a configuration need, by module name."""
    return {
        name: str(path)
        for node in root.all()
        for key, value in node.settings.items()
        if value and key in _FUNCTION_SETTINGS and not _names_file(key, value)
        for name, path in find_function_modules(key, value, folder).items()
        if path.is_relative_to(folder)
    }


def library_versions(root: Node) -> dict[str, str | None]:
    """Return the versions of judged and of the libraries of engines; None if not installed."""
    own_vectors = ("embed", "document_vectors")  # vectors that WordLlama does not compute
    names = {
        name
        for node in root.all()
        if node.engine in ENGINES
        for name in find_engine(node.engine).libraries
        if name != "wordllama" or not any(node.settings.get(key) for key in own_vectors)
    }
    versions: dict[str, str | None] = {"judged": judged.__version__, "sqlite": sqlite3.sqlite_version}
    for name in sorted(names):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return versions
