"""An extension of Griffe: docstrings as Markdown, with links where they name what is public."""

from __future__ import annotations

import re
from typing import Any

import griffe

import judged
from judged.measures.pages import as_markdown

_EXAMPLES = "Examples\n--------\n"
_DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?<!`)`([A-Za-z]\w*)((?:\.\w+)?)(?:\(.*?\))?`(?!`)")


class Docstrings(griffe.Extension):
    """Turns the formulas and the code inside docstrings into those of Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring:
            before, *after = obj.docstring.value.partition(_EXAMPLES)
            before = _DOCTEST.sub(r"```python\n\g<0>\n```", as_markdown(_NAME.sub(_link, before)))
            obj.docstring.value = "".join([before, *after])


def _link(found: re.Match[str]) -> str:
    """Link a name, or leave it as code where it is no public one."""
    name, attribute = found.groups()
    if name not in judged.__all__:
        return found[0]
    own = attribute if attribute[1:] in vars(getattr(judged, name)) else ""  # what is inherited stands with its owner
    return f"[{found[0]}][judged.{name}{own}]"
