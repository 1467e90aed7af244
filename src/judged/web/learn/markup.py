"""The texts of the registry, a little Markdown, as elements of a page; their formulas, which are LaTeX, as MathML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

from judged.scoring.measures.registry import REGISTRY

_INLINE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\[([^\]]+)\]\([^)]+\)|\*(\w+)\*")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_STYLE = re.compile(' style="[^"]*"')  # a thin space; pages let no element have a style of its own
_PARTS = re.compile(r",\s*\\q?quad\b")


def formula(latex: str, *, block: bool = False) -> Markup:
    r"""Convert one formula; what is not understood is shown as it stands.

    >>> print(formula("R^2")), print(formula(r"\nothing"))
    <math><msup><mi>R</mi><mn>2</mn></msup></math>
    <code>\nothing</code>
    (None, None)
    """
    from math_core import LatexError, LatexToMathML

    try:
        made = LatexToMathML().convert_with_local_state(latex, displaystyle=block)
    except LatexError:
        return Markup("<code>{}</code>").format(latex)
    return Markup(_STYLE.sub("", made))  # noqa: S704  it escapes all texts


@dataclass(frozen=True)
class Block:
    """A paragraph, what stands between ``$$``, or code."""

    kind: Literal["text", "formula", "code"]
    text: str  # as it stands; of formulas, the LaTeX without the dollars
    formulas: tuple[str, ...] = ()  # parts that a comma and a wide space separate are formulas of their own


def blocks(markdown: str) -> tuple[Block, ...]:
    r"""Part a text into paragraphs, formulas and code.

    >>> [block.kind for block in blocks("Half:\n\n$$ a = \\frac{b}{2} $$\n\n```python\n>>> 1\n1\n```")]
    ['text', 'formula', 'code']
    """
    return tuple(_block(part.strip()) for part in markdown.split("\n\n") if part.strip())


def _block(text: str) -> Block:
    if text.startswith("```"):
        return Block("code", text.partition("\n")[2].removesuffix("```").rstrip())
    bare = " ".join(text.split())
    if not (bare.startswith("$$") and bare.endswith("$$")):
        return Block("text", bare)
    latex = bare.strip("$ ")
    return Block("formula", latex, tuple(formula(part, block=True) for part in _PARTS.split(latex)))


def prose(text: str) -> Markup:
    """Write a text with its code, its formulas and the names of measures; links lead out of the pages and are left out.

    >>> print(prose("what `CwlU` is & `gain=exp2`"))
    what <a href="/learn/CwlU"><code>CwlU</code></a> is &amp; <code>gain=exp2</code>
    """
    made, at = Markup(), 0
    for found in _INLINE.finditer(text):
        made += escape(text[at : found.start()]) + _inline(*found.groups())
        at = found.end()
    return made + escape(text[at:])


def _inline(code: str | None, latex: str | None, link: str | None, stressed: str | None) -> Markup:
    if latex is not None:
        return formula(latex)
    if stressed is not None:
        return Markup("<em>{}</em>").format(stressed)
    if code is None:
        return escape(link)
    made = Markup("<code>{}</code>").format(code)
    known = _NAMED.fullmatch(code) and len(code) > 1 and code in REGISTRY
    return Markup('<a href="/learn/{}">{}</a>').format(code, made) if known else made
