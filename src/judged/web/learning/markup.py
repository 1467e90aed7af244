r"""The texts of the registry, a little Markdown, as elements of a page; their formulas, which are LaTeX, as MathML.

Of LaTeX it is the part that the registry uses, and no more.

A converter that knows all of LaTeX takes ``\mathrm{nDCG}`` for four letters and ``\mathrm{R}``, the measure, for the
variable R; here a name is one word, and upright.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup, escape

from judged.measures import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_INLINE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\[([^\]]+)\]\([^)]+\)|\*(\w+)\*")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TOKEN = re.compile(r"[ \n]*(\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[^ \n\\])")
_PARTS = re.compile(r",\s*\\q?quad\b")

_LETTERS = {r"\alpha": "\u03b1", r"\beta": "\u03b2", r"\epsilon": "\u03b5"}
_FUNCTIONS = {rf"\{name}": name for name in ("log", "ln", "exp", "min", "max")}
_LARGE = {r"\sum": "∑", r"\prod": "∏"}
_OPERATORS = {
    "+": "+", "-": "−", "=": "=", "<": "<", ">": ">", "/": "/", ":": ":", "*": "\u2217",
    r"\le": "≤", r"\ge": "≥", r"\in": "∈", r"\cap": "∩", r"\cdot": "·", r"\propto": "∝", r"\exists": "∃",
}  # fmt: skip
_OPENING = {"(": "(", "[": "[", r"\{": "{", r"\lfloor": "⌊"}
_CLOSING = {")": ")", "]": "]", r"\}": "}", r"\rfloor": "⌋"}
_TIGHT = {"@": "@", ".": ".", r"\dots": "…", "|": "|"}
_SPACES = {r"\,": "0.167em", r"\;": "0.278em", r"\ ": "0.333em", r"\quad": "1em", r"\qquad": "2em"}
_THIN = '<mspace width="0.167em"></mspace>'
_SMALL = ' stretchy="false"'
_APPLIED = "<mo>&#x2061;</mo>"


class FormulaError(ValueError):
    """A formula has something in it that is not known here."""


def formulas(latex: str) -> list[Markup]:
    r"""Convert what stands in a ``math`` block; parts that a comma and a wide space separate are formulas of their own.

    >>> len(formulas(r"C(i) = 1, \quad k = 2")), len(formulas(r"(a, b)"))
    (2, 1)
    """
    return [formula(part, block=True) for part in _PARTS.split(latex) if part.strip()]


def formula(latex: str, *, block: bool = False) -> Markup:
    r"""Convert one formula.

    >>> print(formula(r"\mathrm{R}@k"))
    <math><mi mathvariant="normal">R</mi><mo lspace="0" rspace="0">@</mo><mi>k</mi></math>
    """
    reader = _Reader(_TOKEN.findall(_kept(latex.strip())))
    made = reader.row()
    if reader.at < len(reader.tokens):
        raise FormulaError(f"{reader.tokens[reader.at]!r} stands alone in {latex!r}")
    kind = ' display="block"' if block else ""
    return Markup(f"<math{kind}>{''.join(made)}</math>")  # noqa: S704  all is escaped


def _kept(latex: str) -> str:
    r"""Keep the spaces inside ``\text``, and that of a ``\ ``, from being passed over."""
    worded = re.sub(r"\\text\{([^{}]*)\}", lambda found: r"\text{" + found[1].replace(" ", "\u00a0") + "}", latex)
    return worded.replace("\\ ", "\\\u00a0")


class _Reader:
    """Reads tokens from left to right; each method gives MathML elements as text."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = [token.replace("\\\u00a0", "\\ ") for token in tokens]
        self.at = 0

    def row(self, end: str = "") -> list[str]:
        """Read up to a token, and pass it."""
        made: list[str] = []
        before = ""  # the token before, to know where a function needs room
        while self.at < len(self.tokens) and self.tokens[self.at] != end:
            token = self.tokens[self.at]
            if token in {"}", r"\right"}:
                break
            if token in _FUNCTIONS and _is_operand(before):
                made.append(_THIN)
            made += self.scripted()
            before = self.tokens[self.at - 1]
        if end:
            self.take(end)
        return made

    def take(self, wanted: str = "") -> str:
        """Pass one token."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if not token or (wanted and token != wanted):
            raise FormulaError(f"{wanted or 'more'!r} is missing")
        self.at += 1
        return token

    def scripted(self) -> Iterable[str]:
        """Read an element with what stands below and above it."""
        token = self.tokens[self.at]
        base = self.element()
        below, above = "", ""
        while self.at < len(self.tokens) and (mark := self.tokens[self.at]) in {"_", "^"}:
            self.at += 1
            if mark == "_":
                below = self.argument()
            else:
                above = self.argument()
        under = token in _LARGE or token in {r"\max", r"\min"}
        made = _with_scripts(base, below, above, under=under)
        if token in _FUNCTIONS:
            following = self.tokens[self.at] if self.at < len(self.tokens) else "}"
            alone = following in {"}", "^", "_"}
            return [made] if alone else [made, _APPLIED, *([] if following in {"(", r"\{", r"\left"} else [_THIN])]
        return [made]

    def argument(self) -> str:
        """Read one element, or a group, as one."""
        if self.tokens[self.at : self.at + 1] != ["{"]:
            return self.element()
        self.at += 1
        return _one(self.row("}"))

    def element(self) -> str:
        """Read one element without what stands below or above it."""
        token = self.take()
        if token == "{":  # noqa: S105  a brace
            return _one(self.row("}"))
        if token in {r"\mathrm", r"\text"}:
            return self.word(token)
        if token in {r"\frac", r"\tfrac"}:
            small = ' displaystyle="false"' if token == r"\tfrac" else ""  # noqa: S105  a command
            return f"<mfrac{small}>{self.argument()}{self.argument()}</mfrac>"
        if token == r"\left":  # noqa: S105  a command
            return self.fenced()
        return _simple(token)

    def fenced(self) -> str:
        """Read what stands between brackets that grow with it."""
        opening = _fence(self.take(), "prefix", grows=True)
        inside = self.row(r"\right")
        return f"<mrow>{opening}{''.join(inside)}{_fence(self.take(), 'postfix', grows=True)}</mrow>"

    def word(self, kind: str) -> str:
        r"""Read a name or a text; a ``\text`` inside a name is a part of it."""
        self.take("{")
        letters: list[str] = []
        depth = 1
        while depth:
            token = self.take()
            depth += {"{": 1, "}": -1}.get(token, 0)
            if token not in {"{", "}", r"\text"}:
                letters.append(token)
        text = "".join(letters)
        if "\\" in text:
            raise FormulaError(f"a command inside the word {text!r}")
        if kind == r"\text":
            return f"<mtext>{escape(text)}</mtext>"
        upright = ' mathvariant="normal"' if len(text) == 1 else ""
        return f"<mi{upright}>{escape(text)}</mi>"


def _is_operand(token: str) -> bool:
    return token in _LETTERS or token in _CLOSING or token == "}" or token.isalnum()  # noqa: S105  a brace


def _simple(token: str) -> str:
    if token in _LETTERS or (token.isalpha() and len(token) == 1):
        return f"<mi>{_LETTERS.get(token, token)}</mi>"
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token in _FUNCTIONS:
        return f"<mi>{_FUNCTIONS[token]}</mi>"
    if token in _LARGE or token in _OPERATORS:
        return f"<mo>{escape({**_LARGE, **_OPERATORS}[token])}</mo>"
    if token in _TIGHT:
        return f'<mo{_SMALL if token == "|" else ""} lspace="0" rspace="0">{_TIGHT[token]}</mo>'  # noqa: S105  a bar
    if token in _SPACES:
        return f'<mspace width="{_SPACES[token]}"></mspace>'
    if token == ",":  # noqa: S105  a comma
        return "<mo>,</mo>"
    if token in _OPENING:
        return _fence(token, "prefix")
    if token in _CLOSING:
        return _fence(token, "postfix")
    raise FormulaError(f"{token!r} is not known")


def _fence(token: str, form: str, *, grows: bool = False) -> str:
    known = {**_OPENING, **_CLOSING}
    if token not in known:
        raise FormulaError(f"{token!r} is no bracket")
    return f'<mo form="{form}" stretchy="{str(grows).lower()}">{known[token]}</mo>'


def _with_scripts(base: str, below: str, above: str, *, under: bool) -> str:
    if not below and not above:
        return base
    if below and above:
        kind = "munderover" if under else "msubsup"
    elif below:
        kind = "munder" if under else "msub"
    else:
        kind = "mover" if under else "msup"
    return f"<{kind}>{base}{below}{above}</{kind}>"


def _one(elements: Sequence[str]) -> str:
    return elements[0] if len(elements) == 1 else f"<mrow>{''.join(elements)}</mrow>"


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
