"""Interface of a search engine adapter: four methods and its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from judged.errors import InputError, JudgedError

if TYPE_CHECKING:
    from pathlib import Path

    from judged.data.texts import Text

EngineSettings: TypeAlias = Mapping[str, Any]
"""Settings of an engine by name. A missing setting has the engine's default."""
Hit: TypeAlias = tuple[str, float]
"""Document ID and score."""


class Setting(NamedTuple):
    """A setting of an engine."""

    default: Any
    values: tuple[Any, ...] = ()  # allowed values; empty: any value of the default's type
    meaning: str = ""
    least: float = -math.inf  # minimum of a number
    most: float = math.inf  # maximum of a number

    @property
    def allowed_values(self) -> str:
        """Allowed values as text; empty if every value of the type is allowed.

        >>> Setting(0.75, least=0, most=1).allowed_values, Setting("none", ("none", "english")).allowed_values
        ('a number from 0 to 1', "'none', 'english'")
        """
        if math.isinf(self.least):
            return ", ".join(map(repr, self.values))
        kind = "an integer" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.least:g}" + ("" if math.isinf(self.most) else f" to {self.most:g}")


class QueryRefusedError(JudgedError):
    """An engine rejects a query. The query counts as one without results, and is reported."""


class Engine(Protocol):
    """A search engine: built for one configuration, searched, and closed."""

    settings: ClassVar[Mapping[str, Setting]]
    libraries: ClassVar[tuple[str, ...]] = ()  # distributions whose versions affect the results
    runs_externally: ClassVar[bool] = (
        False  # whether it works in another process, whose CPU time and memory cannot be measured
    )
    incompatible: ClassVar[
        tuple[tuple[EngineSettings, str], ...]
    ] = ()  # settings that exclude each other, and the reason

    def build(self, documents: Mapping[str, Text], configuration: EngineSettings, folder: Path) -> None:
        """Index documents, by ID, into an empty folder. All settings are present.

        Raises
        ------
        MissingExtraError
            If its library is not installed.
        InputError
            If there are no documents, or a setting cannot be used.
        """

    def size(self) -> int | None:
        """Return the size of the index in bytes; None if it is unknown."""

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the first k documents, best first.

        Raises
        ------
        QueryRefusedError
            If the engine rejects the query.
        """
        ...

    def close(self) -> None:
        """Release all resources."""


def title_and_text(text: Text) -> str:
    """Return title and text as one string, without the title if the text begins with it.

    >>> from judged.data.texts import Text
    >>> title_and_text(Text("Income tax", "How it is paid.")), title_and_text(Text("Income tax", "Income tax is paid."))
    ('Income tax How it is paid.', 'Income tax is paid.')
    """
    return text.text if text.text.startswith(text.title) else f"{text.title} {text.text}"


def import_function(function_or_name: Any) -> Callable[..., Any]:
    """Return a function as it is, or import it by its name ``module:function``.

    Raises
    ------
    InputError
        If no function has this name.

    >>> import_function("math:sqrt")(9)
    3.0
    """
    if callable(function_or_name):
        return function_or_name
    module, separator, name = str(function_or_name).partition(":")
    try:
        function = getattr(import_module(module), name) if separator else None
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{function_or_name!r} cannot be imported: {error}", fix="write module:function") from None
    if not callable(function):
        raise InputError(f"expected a function, got {function_or_name!r}", fix="write module:function")
    return function


def folder_size(folder: Path) -> int:
    """Return the total size of all files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
