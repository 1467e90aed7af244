"""Modules of a plan's folder: those that its functions need, found by reading them, and imported where they are run."""

from __future__ import annotations

import ast
import sys
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judged.data.toml_places import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
