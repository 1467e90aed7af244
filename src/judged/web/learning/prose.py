"""The texts of the registry, which are a little Markdown, as elements of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from judged.measures import REGISTRY
from judged.web.learning.mathml import FormulaError, formula, formulas

_INLINE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\[([^\]]+)\]\([^)]+\)|\*(\w+)\*")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True)
class Block:
    """A paragraph, what stands between ``$$``, or code."""

    kind: Literal["text", "formula", "code"]  # `text`, `formula` or `code`
    text: str  # as it stands; of formulas, the LaTeX without the dollars
    # MathML; none for a paragraph, and where the LaTeX is not understood, which is shown as it stands then
    formulas: tuple[str, ...] = ()


def blocks(markdown: str) -> tuple[Block, ...]:
    r"""Part a text into paragraphs, formulas and code.

    >>> [block.kind for block in blocks("Half:\n\n$$ a = \\frac{b}{2} $$\n\n```python\n>>> 1\n1\n```")]
    ['text', 'formula', 'code']
    """
    return tuple(_block(part.strip()) for part in markdown.split("\n\n") if part.strip())


def _block(text: str) -> Block:
    if text.startswith("```"):
        return Block("code", text.partition("\n")[2].removesuffix("```").rstrip())
    if not (text.startswith("$$") and text.endswith("$$")):
        return Block("text", " ".join(text.split()))
    latex = " ".join(text.strip("$").split())
    try:
        return Block("formula", latex, tuple(formulas(latex)))
    except FormulaError:
        return Block("formula", latex)


def prose(text: str) -> Markup:
    """Write a text with its code, its formulas and the names of measures; links lead out of the pages and are left out.

    >>> print(prose("what `CwlU` is & `gain=exp2`"))
    what <a href="/learn/CwlU"><code>CwlU</code></a> is &amp; <code>gain=exp2</code>
    """
    made, at = Markup(), 0
    for found in _INLINE.finditer(text):
        made += escape(text[at : found.start()]) + _inline(found)
        at = found.end()
    return made + escape(text[at:])


def _inline(found: re.Match[str]) -> Markup:
    code, latex, link, stressed = found.groups()
    if code is not None:
        made = Markup("<code>{}</code>").format(code)
        known = _NAMED.fullmatch(code) and len(code) > 1 and code in REGISTRY
        return Markup('<a href="/learn/{}">{}</a>').format(code, made) if known else made
    if stressed is not None:
        return Markup("<em>{}</em>").format(stressed)
    if link is not None:
        return escape(link)
    try:
        return formula(latex)
    except FormulaError:
        return Markup("<code>{}</code>").format(latex)
