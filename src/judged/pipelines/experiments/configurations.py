"""The configurations of a plan: which combinations of levels there are, and what each of them runs."""

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
from judged.pipelines.experiments.engines import ENGINES, engine_named
from judged.pipelines.experiments.pipelines import OPERATORS, Part, is_endpoint, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from judged.data.toml_files import SourceLines
    from judged.pipelines.experiments.engines.base import Setting


class PlanModules(MetaPathFinder):
    """Import the modules that functions of a plan need; other files of its folder are never imported.

    Parameters
    ----------
    files
        File of each module by name, as `files_of` finds them.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        parents = {name.rpartition(".")[0] for name in files} - {""}
        self._folders = {".".join(parts[:at]) for parts in (name.split(".") for name in parents)
                         for at in range(1, len(parts) + 1)} - set(files)  # fmt: skip

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return how a module is imported, None if it is not of the plan; the import system calls this."""
        del path, target
        if name in self._folders:  # without __init__.py
            return ModuleSpec(name, None, is_package=True)
        if name not in self.files:
            return None
        file = Path(self.files[name])
        spec = spec_from_file_location(name, file)
        if spec and spec.submodule_search_locations:
            spec.submodule_search_locations = []  # of a package only what is listed, too
        return spec


def files_of(key: str, given: str, folder: Path) -> dict[str, Path]:
    """Give the file of a function's module, and by name all modules of the plan's folder that it imports.

    Raises
    ------
    SettingError
        If there is no such module, it cannot be read, or nothing of the function's name is in it.
    """
    module, colon, name = given.partition(":")
    origin = _place(module, folder) or _elsewhere(module)
    if origin is None or not colon:
        problem, fix = f"{key}: there is no function {given!r}", "name module:function, of a module beside the plan"
        raise SettingError(key, problem, fix)
    if origin.suffix == ".py" and origin.is_file():
        try:
            names = _bound(ast.parse(origin.read_bytes()))
        except SyntaxError as error:
            raise SettingError(key, f"{key}: {origin}:{error.lineno}: {error.msg}", "correct the module") from None
        if not {name.partition(".")[0], "*", "__getattr__"} & names:
            raise SettingError(key, f"{key}: there is no {name!r} in {origin}", "name a function of this module")
    return {**({module: origin} if origin.is_file() else {}), **_followed(module, folder)}


def _place(module: str, folder: Path) -> Path | None:
    """Return the file of a module below a folder; a module of the standard library is never one of the plan."""
    if module.partition(".")[0] in sys.stdlib_module_names:
        return None
    base = folder.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_name(f"{base.name}.py")) if path.is_file()), None)


def _elsewhere(module: str) -> Path | None:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return None
    return found and Path(found.origin or module)


def _followed(module: str, folder: Path) -> dict[str, Path]:
    """Give the modules below a folder that one of them imports, at any depth, also inside functions."""
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        parts = waiting.pop().split(".")
        for name in (".".join(parts[: at + 1]) for at in range(len(parts))):  # packages run before what is in them
            path = None if name in found else _place(name, folder)
            if path is None:
                continue
            found[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            with suppress(OSError, SyntaxError):  # whoever imports it will say so
                waiting += _imports(ast.parse(path.read_bytes()), package)
    return found


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Give the names of what may be modules in all statements that import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*filter(None, above), *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)


def _bound(tree: ast.AST) -> set[str]:
    """Give every name that anything in a module is given."""
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
"""How the configuration is called that all others are compared with."""
FULL, ONE_AT_A_TIME = "full", "one-at-a-time"
_MOST = 1e308  # beyond it is no finite number; NaN is not below it either
_FILES = ("synonyms", "file")  # settings that name a file
_NEEDED = {
    "http": "file",
    "function": "search",
    "rerank": "function",
    "generate": "generator",
}  # settings without which nothing can be asked
_KINDS: Mapping[type, str] = {
    tuple: "a list", str: "text", float: "a number", int: "a whole number", bool: "true or false",
}  # fmt: skip
_FUNCTIONS = ("rewrite", "function", "embed", "search", "generator")  # settings that name module:function


@dataclass(frozen=True)
class Configuration:
    """One way to search.

    Parameters
    ----------
    name
        Short, and unique in its plan: ``control``, or the levels by which it differs from it.
    settings
        The engine's name, and every setting of it, or of any part of a pipeline, that the plan chose.
    levels
        By factor; a factor that its engine does not know is not in it.
    part
        What it runs, with every setting.
    key
        Hash of all that its results depend on.
    """

    name: str
    settings: Mapping[str, Any]
    levels: Mapping[str, Any]
    part: Part
    key: str = ""


class LeftOut(NamedTuple):
    """A combination that is not run, and why."""

    levels: Mapping[str, Any]
    reason: str


class RefusedLevelError(InputError):
    """An engine does not take a value that another one of the plan may take."""


@dataclass(frozen=True)
class Choices:
    """What a plan chooses among: the settings of the control, factors with their levels, and pipelines by name."""

    control: Mapping[str, Any]
    factors: Mapping[str, tuple[Any, ...]]
    forbidden: tuple[Mapping[str, Any], ...]
    pipelines: Mapping[str, Mapping[str, Any]]
    design: str
    folder: Path

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines and pipelines that are levels."""
        return self.factors.get("engine") or (self.control["engine"],)

    def part(self, name: str, chosen: Mapping[str, Any], inside: tuple[str, ...] = ()) -> tuple[Part, set[str]]:
        """Give what an engine or a pipeline runs, and which of the chosen settings it knows."""
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"{name!r} names no engine", fix="write a name")
        if name in inside:
            raise InputError(f"pipeline {name!r} is made of itself", fix="name what its lists come from")
        own = self.pipelines.get(name, {"engine": name})
        if name not in self.pipelines and name not in ENGINES:
            raise InputError(
                f"no engine or pipeline {name!r}", fix=f"use one of {', '.join((*ENGINES, *self.pipelines))}"
            )
        known = settings_of(own["engine"])
        fixed = {key: self.value(own["engine"], key, value) for key, value in own.items() if key in known}
        taken = {
            key: self.value(own["engine"], key, value)
            for key, value in chosen.items()
            if key in known and key not in fixed
        }
        names: Iterable[str] = own.get("lists") or ([own["of"]] if "of" in own else ())
        below = [self.part(one, chosen, (*inside, name)) for one in names]
        settings = {key: setting.default for key, setting in known.items()} | taken | fixed
        part = Part(name, own["engine"], settings, tuple(part for part, _ in below))
        if settings.get("weights"):
            refuse_weights(name, settings["weights"], [one.name for one in part.of])
        return part, set(taken).union(*(used for _, used in below))

    def value(self, engine: str, key: str, given: Any) -> Any:
        """Give a setting as the engine takes it; a path counts from the folder of the plan."""
        setting = settings_of(engine)[key]
        value = _typed(setting, given)
        outside = isinstance(value, (int, float)) and not setting.least <= value <= setting.most
        if value is None or outside or (setting.values and value not in setting.values):
            takes = setting.takes or _KINDS[type(setting.default)]
            raise RefusedLevelError(f"{engine} has no {key} {given!r}", fix=f"it takes {takes}")
        return str(self.folder / str(value)) if _names_file(key, value) else value

    def expanded(self) -> tuple[list[Configuration], list[LeftOut], dict[str, list[str]]]:
        """Give the configurations, the control first; what is left out; and by engine the factors it does not know."""
        made: dict[str, Configuration] = {}
        left_out: list[LeftOut] = []
        unknown: dict[str, list[str]] = {}
        for levels in self._combinations():
            chosen = {**self.control, **levels}
            try:
                part, used = self.part(chosen["engine"], chosen)
                settings = {key: value for key, value in chosen.items() if key == "engine" or key in used}
                reason = self._reason(part, settings)
            except RefusedLevelError as error:
                part, settings, reason = None, {}, error.parts[0]
            if part is None or reason:
                if not made:
                    raise InputError(f"the control cannot be run: {reason}", fix="change [control]")
                left_out.append(LeftOut(levels, reason))
                continue
            own = {factor: level for factor, level in levels.items() if factor in settings}
            lacking = [factor for factor in self.factors if factor not in settings]
            unknown |= {chosen["engine"]: lacking} if lacking else {}
            said = json.dumps(asdict(part), sort_keys=True)
            made.setdefault(said, Configuration(self._name(settings) if made else CONTROL, settings, own, part))
        return list(made.values()), left_out, unknown

    def refuse_lacking(self, configurations: Iterable[Configuration], hashes: Hashes, places: SourceLines) -> None:
        """Refuse what could not be asked: files and functions that are not there, or not named."""
        for part in {one.name: one for made in configurations for one in made.part.all()}.values():
            own = self.pipelines.get(part.name)
            tables = {"factors": self.factors, "control": self.control}
            tables = tables if own is None else {f"pipelines.{part.name}": own, **tables}
            for key, value in part.settings.items():
                asked = "engine" if not value and _NEEDED.get(part.engine) == key else key
                with places.locate_errors(next((name for name, given in tables.items() if asked in given), "")):
                    if asked != key:
                        raise SettingError(asked, f"{part.name} has no {key}", f"name it: {key} = ...")
                    hashes.said(key, value)

    def _combinations(self) -> Iterator[dict[str, Any]]:
        """Give levels by factor, those of the control first."""
        control = {factor: self.control[factor] for factor in self.factors}
        yield control
        if self.design == FULL:
            every = (dict(zip(self.factors, levels, strict=True)) for levels in product(*self.factors.values()))
        else:
            every = ({**control, factor: level} for factor, levels in self.factors.items() for level in levels)
        yield from (levels for levels in every if levels != control)

    def _reason(self, part: Part, settings: Mapping[str, Any]) -> str:
        """Say why a combination cannot be run; empty where it can."""
        for forbidden in self.forbidden:
            if all(key in settings and settings[key] in _several(value) for key, value in forbidden.items()):
                return f"forbidden: {spelled(forbidden)}"
        for one in part.all():
            for together, why in () if one.engine in OPERATORS else engine_named(one.engine).cannot:
                if all(one.settings[key] == value for key, value in together.items()):
                    return f"{one.engine}: {why}"
        return ""

    def _name(self, settings: Mapping[str, Any]) -> str:
        differs = {
            factor: settings[factor]
            for factor in self.factors
            if factor in settings and factor != "engine" and settings[factor] != self.control[factor]
        }
        engine = [settings["engine"]] if len(self.engines) > 1 else []
        return " ".join([*engine, *([spelled(differs)] if differs else [])])


def _names_file(key: str, value: Any) -> bool:
    """Say whether a setting names a file: an endpoint's stands where a generator's function may."""
    return bool(value) and (key in _FILES or (key == "generator" and is_endpoint(value)))


def spelled(levels: Mapping[str, Any]) -> str:
    """Write levels as names of configurations have them.

    >>> spelled({"stemmer": "none", "k1": 1.2, "synonyms": ""})
    'stemmer=none k1=1.2 synonyms=none'
    """
    return " ".join(f"{factor}={level_text(level)}" for factor, level in levels.items())


def level_text(level: Any) -> str:
    """Write one level: nothing is ``none``, and of a whole number no decimals are written."""
    if isinstance(level, (list, tuple)):
        return ",".join(map(level_text, cast("Sequence[Any]", level))) or "none"
    return f"{level:.15g}" if isinstance(level, float) else str(level) or "none"


def refuse_weights(pipeline: str, weights: Any, lists: Sequence[str]) -> None:
    """Refuse weights that are not one finite number for each list."""
    try:
        parse_weights(weights, lists)
    except (TypeError, ValueError, OverflowError) as error:
        problem, fix = getattr(error, "parts", (str(error), ""))
        fix = fix or "give one for each list"
        raise SettingError("weights", f"the weights of {pipeline} make no list: {problem}", fix) from None


def _several(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else (value,)


def _typed(setting: Setting, given: Any) -> Any:
    """Give a value of the type that a setting has; None where it is none."""
    kind: type = type(setting.default)
    if isinstance(given, bool) != (kind is bool):
        return None
    if kind is float and isinstance(given, (int, float)):
        return float(given) if abs(given) <= _MOST else None
    if kind is tuple and isinstance(given, (list, tuple)):
        return tuple(cast("Sequence[Any]", given))
    return given if isinstance(given, kind) else None


class Hashes:
    """What results depend on besides the settings: files, functions, and versions; each is looked at once."""

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
        where = str(path)
        if where not in self._files:
            root, digest = Path(path), hashlib.sha256()
            try:
                inside = sorted(one for one in root.rglob("*") if one.is_file()) if root.is_dir() else [root]
                for one in inside:
                    with one.open("rb") as stream:
                        part = hashlib.file_digest(stream, "sha256").hexdigest()
                    digest.update(f"{one.relative_to(root)}\0{part}\0".encode())
            except (OSError, ValueError) as error:  # the second: a path with a zero byte
                problem = f"it cannot be read ({getattr(error, 'strerror', None) or error})"
                raise InputError(problem, fix="check the path", path=where) from None
            self._files[where] = digest.hexdigest()
        return self._files[where]

    def key(self, part: Part, measured: Mapping[str, Any]) -> str:
        """Hash a configuration with all that its results depend on: what files and functions say, wherever they are."""
        parts: list[Any] = [
            (one.name, one.engine, [self.said(*setting) for setting in sorted(one.settings.items())])
            for one in part.all()
        ]
        said = json.dumps([parts, dict(measured), versions(part)], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    def said(self, key: str, value: Any) -> tuple[Any, ...]:
        """Give a setting, and the hashes of what it names."""
        if _names_file(key, value):
            return key, self.file(value)
        if value and key in _FUNCTIONS:
            if (key, value) not in self._functions:
                modules = files_of(key, value, self._folder)
                self._functions[key, value] = {name: self.file(path) for name, path in modules.items()}
            return key, value, self._functions[key, value]
        return key, value


def modules_of(part: Part, folder: Path) -> dict[str, str]:
    """Return the file of each module of a plan's folder that the functions of a configuration need, by name."""
    return {
        name: str(path)
        for one in part.all()
        for key, value in one.settings.items()
        if value and key in _FUNCTIONS and not _names_file(key, value)
        for name, path in files_of(key, value, folder).items()
        if path.is_relative_to(folder)
    }


def versions(part: Part) -> dict[str, str | None]:
    """Give the versions of judged and of the engines; None for what is not installed."""
    engines = [one.engine for one in part.all() if one.engine in ENGINES and not one.settings.get("embed")]
    found: dict[str, str | None] = {"judged": judged.__version__, "sqlite": sqlite3.sqlite_version}
    for name in sorted({name for engine in engines for name in engine_named(engine).libraries}):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
