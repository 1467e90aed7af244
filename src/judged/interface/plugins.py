"""What other installed packages add to judged: measures, formats, engines, commands, pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from judged import components
from judged.components import ENTRY_POINTS, built_in, try_to_load
from judged.results import TEXT, Answer, Sentences, Table, columns_of, counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from judged.components import Component
    from judged.results import Block

_KINDS = {
    "measures": "measure",
    "readers": "file format",
    "recognizers": "kind of file",
    "engines": "search engine",
    "online_metrics": "online metric",
    "log_readers": "log layout",
    "writers": "writer",
    "sample": "sample file",
}
"""Name of what each field of a `Component` adds."""


class Addition(NamedTuple):
    """Extension that a package adds to judged, or a component that cannot be used."""

    package: str
    version: str
    kind: str
    name: str
    place: str  # ``module:name``
    problem: str = ""  # why it cannot be used


@dataclass(frozen=True, eq=False, repr=False)
class Plugins(Answer):
    """What other packages add to judged.

    Parameters
    ----------
    additions
        One for each measure, format, engine, command, page, and component with a problem.
    """

    kind: ClassVar[str] = "plugins"

    additions: tuple[Addition, ...]

    @property
    def title(self) -> str:
        """Number of packages and of their additions."""
        packages = counted(len({addition.package for addition in self.additions}), "package")
        return f"{packages} with {counted(len(self.additions), 'addition')} to judged"

    @property
    def problems(self) -> tuple[Addition, ...]:
        """The additions that cannot be used."""
        return tuple(addition for addition in self.additions if addition.problem)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each problem, or that no package adds anything."""
        if not self.additions:
            return (f"No installed package has an entry point of the group {ENTRY_POINTS}.",)
        return tuple(
            f"The {kind} {name} of {package} {version} {problem}. Fix: update or uninstall {package}."
            for package, version, kind, name, _, problem in self.problems
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the number of additions that cannot be used."""
        return {"problems": len(self.problems)}

    def blocks(self) -> tuple[Block, ...]:
        """Return one row for each addition."""
        labels = (("package", TEXT), ("version", TEXT), ("kind", TEXT, "adds"), ("name", TEXT))
        columns = columns_of(self.additions, *labels, "place", "problem")
        table = Table("additions", columns, labels=len(labels), only="" if self.additions else "data")
        return table, Sentences(self.sentences)


def plugins() -> Plugins:
    """List what other installed packages add to judged. Everything is imported, to find what cannot be used.

    Returns
    -------
    Plugins
        Package, version, kind, name, and problem of each addition.

    Examples
    --------
    >>> plugins().problems
    ()
    """
    used_names = {(kind, name) for component in built_in() for kind, name, _ in _places(component)}
    additions: list[Addition] = []
    for entry_point, component, problem in components.plugins():
        package, version = (entry_point.dist.name, entry_point.dist.version) if entry_point.dist else ("", "")
        if component is None:
            additions.append(Addition(package, version, "component", entry_point.name, entry_point.value, problem))
            continue
        for kind, name, place in _places(component):
            another = "has the same name as one of judged or of another package" if (kind, name) in used_names else ""
            additions.append(Addition(package, version, kind, name, place, another or try_to_load(place)[1]))
            used_names.add((kind, name))
    return Plugins(tuple(additions))


def _places(component: Component) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name, and ``module:name`` of everything in a component."""
    for field, kind in _KINDS.items():
        yield from ((kind, name, place) for name, place in getattr(component, field).items())
    for commands in component.commands.values():
        yield from (("command", name, command.place) for name, command in commands.items())
    yield from (("page", page.path or page.router, page.router) for page in component.pages)
    if component.serve:
        yield "options of judged serve", component.serve, component.serve
