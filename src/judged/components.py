"""Components of judged and of other packages, and names that are imported at their first use."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "judged.components"
"""The group of entry points by which other packages add a `Component`."""

PACKAGES = ("interface", "labels", "online", "pipelines", "studies", "history", "reports", "web")
"""The packages of judged with a component; any but the first may be left out of an installation."""

_NONE: Mapping[str, Any] = MappingProxyType({})


class Command(NamedTuple):
    """A command of `judged`: where it is, and its line in the help, which is printed without importing it."""

    place: str  # `module:name` of a click command
    about: str


class Page(NamedTuple):
    """A page of the workbench, or several below one address."""

    router: str  # `module:name` of a FastAPI router
    path: str = ""  # of its entry in the navigation; none without it
    name: str = ""
    question: str = ""  # that it answers
    choices: Mapping[str, str] = _NONE  # its names of what pages share: measure, baseline, run, where, rel
    group: str = "Quality"  # heading above its entry in the navigation
    option: str = ""  # option of `judged serve` that opens the data of the page; empty: judgments and runs
    data: str = ""  # these data, such as "an interaction log"


class Component(NamedTuple):
    """Commands, pages, and other extensions, of a package of judged or of another one.

    Values are ``module:name``, which is imported at the first use.

    A package of judged has its component in ``component.py``; another package names its own in an entry point of the
    group ``judged.components``.
    """

    needs: tuple[str, ...] = ()  # components of judged that it builds on: without one of them it is left out
    commands: Mapping[str, Mapping[str, Command]] = _NONE  # by section of `judged --help` and by name
    pages: tuple[Page, ...] = ()
    files: str = ""  # the package whose folders `templates` and `static` belong to the pages
    serve: str = ""  # a module like `judged.online.commands.serve`: options of `judged serve`, and what they open
    measures: Mapping[str, str] = _NONE  # classes of measures, by the measure's name
    # Functions from a path to rows of qrels or of a run, by the name of the format or of the prefix `NAME:` of paths
    readers: Mapping[str, str] = _NONE
    recognizers: Mapping[str, str] = _NONE  # functions from a path to a `FileContent` or None, by the kind of content
    engines: Mapping[str, str] = _NONE  # search engines that experiments run
    online_metrics: Mapping[str, str] = _NONE  # values of `judged.online.OnlineMetric`, by the metric's name
    log_readers: Mapping[str, str] = _NONE  # functions like `judged.online.readers.clickmodels.read`, by the layout
    names: str = ""  # function that returns more entries of the index of names, `judged.scoring.names`
    writers: Mapping[str, str] = _NONE  # functions that write what a lower component offers to write
    sample: Mapping[str, str] = _NONE  # functions that write a file of the sample, by its name


def built_in() -> Iterator[Component]:
    """Yield the components of judged that are installed, with all that they need."""
    for package in filter(_installed, PACKAGES):
        component: Component = importlib.import_module(f"judged.{package}.component").COMPONENT
        if all(map(_installed, component.needs)):
            yield component


def _installed(package: str) -> bool:
    return importlib.util.find_spec(f"judged.{package}") is not None


class Plugin(NamedTuple):
    """An entry point of another package, and its component, or the problem with it."""

    entry_point: EntryPoint
    component: Component | None
    problem: str = ""


@cache
def plugins() -> tuple[Plugin, ...]:
    """Load the components of other installed packages. Reading all entry points takes some milliseconds."""
    from importlib.metadata import entry_points

    return tuple(map(_plugin, entry_points(group=ENTRY_POINTS)))


def _plugin(entry_point: EntryPoint) -> Plugin:
    component, problem = try_to_load(entry_point.value.partition("[")[0].strip())
    if not problem and not isinstance(component, Component):
        component, problem = None, "is not a judged.components.Component"
    return Plugin(entry_point, component, problem)


def try_to_load(place: str) -> tuple[Any, str]:
    """Import the object at ``module:name``. Return it and an empty text, or None and the problem.

    >>> try_to_load("math:tau")[0], try_to_load("nowhere:tau")[1]
    (6.283185307179586, "cannot be imported (ModuleNotFoundError: No module named 'nowhere')")
    """
    try:
        return load(place), ""
    except (Exception, SystemExit) as error:  # noqa: BLE001  judged must work beside any damaged package
        return None, f"cannot be imported ({type(error).__name__}: {error})"


@cache
def third_party() -> tuple[Component, ...]:
    """Return the components of other installed packages; warn of a component that cannot be used, and omit it."""
    import warnings

    from judged.errors import JudgedWarning

    for entry_point, _, problem in plugins():
        if problem:
            text = f"the component {entry_point.value} {problem}. Fix: update or uninstall the package that contains it"
            warnings.warn(text, JudgedWarning, stacklevel=2)
    return tuple(plugin.component for plugin in plugins() if plugin.component)


def all_components() -> Iterator[Component]:
    """Yield the components of judged, then those of other packages, which are only looked up when they are reached."""
    yield from built_in()
    yield from third_party()


def serve_modules() -> list[Any]:
    """Import the modules with the options that components add to `judged serve`."""
    return [load(component.serve) for component in all_components() if component.serve]


def workspace_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Open the files of options that components add to `judged serve`; return keywords of a workspace with `parts`."""
    keywords: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for module in serve_modules():
        component_keywords = module.workspace_arguments(options)
        parts |= component_keywords.pop("parts", {})
        keywords |= component_keywords
    return {**keywords, "parts": parts}


def load(place: str) -> Any:
    """Import the object at ``module:name``, or a module."""
    module, _, name = place.partition(":")
    return attrgetter(name)(importlib.import_module(module)) if name else importlib.import_module(module)


def find(kind: str, name: str) -> Any | None:
    """Import the extension of a kind and a name.

    Parameters
    ----------
    kind
        A field of `Component` whose values are ``module:name``: "measures", "log_readers", "engines", ...
    name
        The name.

    Returns
    -------
    The extension of the first component that has the name; None if no component has it.

    >>> find("engines", "no such engine") is None
    True
    """
    places = (getattr(component, kind).get(name) for component in all_components())
    return next((load(place) for place in places if place), None)


def lazily(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package, where `homes` are names by module.

    A name may be that of a module; the package itself is called "". Modules of the package are imported in the same
    way: after ``import judged``, ``judged.uncertainty.tie_range`` works.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def imported(name: str) -> Any:
        if name not in home:
            if name.startswith("_") or importlib.util.find_spec(f"{package}.{name}") is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            return importlib.import_module(f"{package}.{name}")
        if home[name] and hasattr(module := importlib.import_module(home[name]), name):
            return getattr(module, name)
        return importlib.import_module(f"{home[name] or package}.{name}")

    return list(home), imported, lambda: sorted(home)
