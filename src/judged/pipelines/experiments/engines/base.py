"""What an engine is to an experiment: four methods, and the settings that it knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from judged.errors import InputError, JudgedError

if TYPE_CHECKING:
    from pathlib import Path

    from judged.data.texts import Text

Configuration: TypeAlias = Mapping[str, Any]
"""Settings of an engine by name; those that are not named have the engine's defaults."""
Hit: TypeAlias = tuple[str, float]
"""A document's id and its score."""


class Setting(NamedTuple):
    """One thing that can be chosen of an engine."""

    default: Any
    values: tuple[Any, ...] = ()  # those it takes; none: any of the default's type
    meaning: str = ""
    least: float = -math.inf  # of a number
    most: float = math.inf

    @property
    def takes(self) -> str:
        """What it takes, in words; nothing where any value of its type will do.

        >>> Setting(0.75, least=0, most=1).takes, Setting("none", ("none", "english")).takes, Setting("").takes
        ('a number from 0 to 1', "'none', 'english'", '')
        """
        if math.isinf(self.least):
            return ", ".join(map(repr, self.values))
        kind = "whole number" if isinstance(self.default, int) else "number"
        return f"a {kind} from {self.least:g}" + ("" if math.isinf(self.most) else f" to {self.most:g}")


class QueryRefusedError(JudgedError):
    """An engine does not take a query; the query counts as one that finds nothing, and is shown."""


class Engine(Protocol):
    """A search engine: made for one configuration, asked, and closed."""

    settings: ClassVar[Mapping[str, Setting]]
    libraries: ClassVar[tuple[str, ...]] = ()  # distributions whose versions change what it gives
    elsewhere: ClassVar[bool] = False  # whether work is done outside this process: what it takes is not seen
    cannot: ClassVar[tuple[tuple[Configuration, str], ...]] = ()  # settings that do not go together, and why

    def build(self, documents: Mapping[str, Text], configuration: Configuration, folder: Path) -> None:
        """Index documents, by id, into an empty folder, with every setting given.

        Raises
        ------
        MissingExtraError
            If its library is not installed.
        InputError
            If there is no document, or something of the configuration cannot be read.
        """

    def size(self) -> int | None:
        """Give the bytes of the index; None where nobody can tell."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Give the first k documents, the best first.

        Raises
        ------
        QueryRefusedError
            If the engine does not take the query.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds."""


def whole(text: Text) -> str:
    """Give title and text as one; not the title again where the text begins with it.

    >>> from judged.data.texts import Text
    >>> whole(Text("Income tax", "How it is paid.")), whole(Text("Income tax", "Income tax is paid."))
    ('Income tax How it is paid.', 'Income tax is paid.')
    """
    return text.text if text.text.startswith(text.title) else f"{text.title} {text.text}"


def called(given: Any) -> Callable[..., Any]:
    """Give a function as it is, or import one that is named ``module:function``.

    Raises
    ------
    InputError
        If there is none of that name.

    >>> called("math:sqrt")(9)
    3.0
    """
    if callable(given):
        return given
    module, colon, name = str(given).partition(":")
    try:
        found = getattr(import_module(module), name) if colon else None
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{given!r} cannot be imported: {error}", fix="name module:function") from None
    if not callable(found):
        raise InputError(f"{given!r} is no function", fix="name module:function")
    return found


def folder_size(folder: Path) -> int:
    """Add up the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
