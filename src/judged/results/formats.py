"""The forms in which every answer comes, for those who name them: the command line needs no more at its start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


PICTURES = ("png", "svg", "pdf")
FORMS = ("table", "markdown", "latex", "csv", "json", "html", *PICTURES, "parquet")
"""What every answer can be written as: the text of a terminal, and the others."""
SUFFIXES = {
    "": "table",
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".png": "png",
    ".svg": "svg",
    ".pdf": "pdf",
    ".parquet": "parquet",
}


def form_by_name(path: str | Path, known: Mapping[str, str], what: str, *, ask: str = "a form") -> str:
    """Tell a form by the end of a file's name.

    Parameters
    ----------
    path
        The file.
    known
        The form of each ending.
    what
        What is written, and `ask`, how else its form can be said: both for the message.

    Raises
    ------
    InputError
        If nothing is known by this end.

    Examples
    --------
    >>> form_by_name("out/report.MD", {".md": "markdown", ".html": "html"}, "a report")
    'markdown'
    """
    suffix = Path(path).suffix.lower()
    if suffix in known:
        return known[suffix]
    ends = ", ".join(filter(None, known))
    raise InputError(
        f"no form of {what} is known by {suffix or 'no ending'}",
        fix=f"give {ask}, or a name that ends in {ends}",
        path=str(path),
    )
