"""Headline of an answer: a status, one number with its interval, and a short sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from judged.results.decimals import format_level, printed
from judged.results.table import NUMBER, Axis, Show, recorded_format

if TYPE_CHECKING:
    from judged.results.table import IntervalLimits, Status

ICONS: dict[str, str] = {"better": "▲", "worse": "▼", "same": "=", "unknown": "?", "info": "●"}
MAX_WORDS = 20
"""Maximum number of words of a sentence."""


@dataclass(frozen=True, eq=False)
class Headline:
    """Short answer to the question of a result, which a page shows first.

    Parameters
    ----------
    status
        Color and icon.
    word
        Text beside the icon, such as "better".
    sentence
        At most `MAX_WORDS` words.
    label
        What the number is, such as "nDCG@10, bm25 - tfidf".
    value
        The number in full precision; None without one.
    show
        Format of the number and of its interval.
    ci
        Confidence interval of the number; None without one.
    level
        Confidence level of the interval.
    reference
        Number that means "no difference", drawn as a line; None without one.
    axis
        Axis of the drawing. Default: an axis that contains the number, the interval, and the reference.

    Examples
    --------
    >>> headline = Headline("better", "better", "b is better than a.", "AP, b - a", 0.25, ci=(0.1, 0.4), reference=0)
    >>> headline.to_dict()["ci"], headline.word
    ([0.1, 0.4], 'better')
    """

    status: Status
    word: str
    sentence: str
    label: str = ""
    value: float | None = None
    show: Show = NUMBER
    ci: IntervalLimits = None
    level: float = 0.95
    reference: float | None = None
    axis: Axis | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, in which the format is replaced by the texts that it produced."""
        return {**vars(self), "show": recorded_format(self.show, [self.value], [self.ci])}

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values for JSON."""
        names = ("status", "word", "sentence", "label", "value", "level", "reference")
        ci = None if self.ci is None else list(self.ci)
        return {name: getattr(self, name) for name in names} | {"ci": ci}

    def html(self) -> str:
        """Render for a page: chip, number, interval, and sentence."""
        return f'<section class="headline" aria-label="Result">\n{self.content()}\n</section>'

    def content(self) -> str:
        """Render without the enclosing section, for a card."""
        parts = [chip(self.status, self.word)]
        if self.value is not None and math.isfinite(self.value):
            number = printed(self.show.write(self.value), "float64")
            parts.append(f'<p class="figure"><b>{escape(number)}</b> <span>{escape(self.label)}</span></p>')
        if self.ci is not None and self.value is not None:
            low, high = (printed((self.show.limit or self.show.write)(limit), "float64") for limit in self.ci)
            text = f"{format_level(self.level)} CI {escape(low)} to {escape(high)}"
            axis = self.axis or Axis.over([self.value], [self.ci], reference=self.reference)
            drawing = interval_svg(self.value, self.ci, axis, self.status)
            parts.append(f'<p class="range">{drawing}<span>{text}</span></p>')
        parts.append(f'<p class="sentence">{escape(printed(self.sentence))}</p>')
        return "\n".join(parts)


def chip(status: Status, word: str) -> str:
    """Render a status as a colored label with an icon.

    >>> chip("same", "no significant difference")
    '<span class="chip same"><span aria-hidden="true">=</span> no significant difference</span>'
    """
    return f'<span class="chip {status}"><span aria-hidden="true">{ICONS[status]}</span> {escape(word)}</span>'


def interval_svg(
    value: float | None, ci: IntervalLimits, axis: Axis, status: str = "info", *, stem: bool = False
) -> str:
    """Draw a number, its interval, and the reference on an axis; what is outside of the axis is drawn at its end.

    With ``stem``, a thin line connects the number to the reference.
    """

    def position(x: float) -> str:
        return f"{100 * min(max((x - axis.low) / (axis.high - axis.low), 0), 1):.2f}%"

    parts = ['<line class="axis" x1="0" x2="100%" y1="50%" y2="50%"/>']
    if axis.reference is not None:
        x = position(axis.reference)
        parts.append(f'<line class="reference" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
    if ci is not None and all(map(math.isfinite, ci)):
        parts.append(f'<line class="ci" x1="{position(ci[0])}" x2="{position(ci[1])}" y1="50%" y2="50%"/>')
    if value is not None and math.isfinite(value):
        if stem and axis.reference is not None:
            x1, x2 = position(axis.reference), position(value)
            parts.append(f'<line class="stem" x1="{x1}" x2="{x2}" y1="50%" y2="50%"/>')
        parts.append(f'<circle cx="{position(value)}" cy="50%" r="5"/>')
    return f'<svg class="interval {status}" aria-hidden="true">{"".join(parts)}</svg>'
