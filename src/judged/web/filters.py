"""How numbers and words are written on pages."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from markupsafe import Markup

from judged.decimals import beside, decimal
from judged.web.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_UNSAFE = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}


def score(value: float | None, digits: int = 4) -> str:
    """Write a score; a dash where there is none, a true minus, and no sign before zero.

    >>> score(0.41236), score(-0.5), score(0.99999), score(-0.00001), score(float("nan")), score(None)
    ('0.4124', '−0.5000', '0.99999', '−1.0e-05', '–', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    text = decimal(abs(value), digits)
    return f"−{text}" if value < 0 else text


def signed(value: float | None, digits: int = 4) -> str:
    """Write a difference with its sign, as `score` does otherwise.

    >>> signed(0.0312), signed(-0.0312), signed(0.00001), signed(None)
    ('+0.0312', '−0.0312', '+1.0e-05', '–')
    """
    text = score(value, digits)
    return f"+{text}" if value is not None and 0 < value < math.inf else text


def interval(ends: tuple[float, float] | None, digits: int = 3) -> str:
    """Write an interval; a dash where there is none.

    >>> interval((0.31, 0.4126)), interval(None)
    ('0.310 to 0.413', '–')
    """
    return "–" if ends is None else f"{score(ends[0], digits)} to {score(ends[1], digits)}"


def probability(value: float | None, alpha: float = 0.05) -> str:
    """Write a p-value, with as many digits as tell it from alpha.

    >>> probability(0.00002), probability(0.03214), probability(0.050004), probability(1.0), probability(None)
    ('< 0.0001', '0.0321', '0.050004', '1.0000', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else beside(value, (alpha,), "f", 4)


def grade(value: float | None) -> str:
    """Write a grade; a document without a judgment has none.

    >>> grade(2.0), grade(0.5), grade(None)
    ('2', '0.5', 'unjudged')
    """
    return "unjudged" if value is None else f"{value:g}"


def count(number: int, one: str, many: str = "") -> str:
    """Write how many there are of something.

    >>> count(1, "topic"), count(6980, "topic"), count(2, "query", "queries")
    ('1 topic', '6,980 topics', '2 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def data(value: Any) -> Markup:
    r"""Write a value as JSON for a data element of a page, whatever its texts are.

    >>> print(data({"a": "</script>", "b": float("nan")}))
    {"a":"\u003c/script\u003e","b":null}
    """
    made = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup("".join(_UNSAFE.get(char, char) for char in made))  # noqa: S704  every character that ends it is escaped


def query(given: Mapping[str, Any] | Iterable[tuple[str, Any]], **changes: Any) -> str:
    """Write the query of an address: what is given, with changes; None leaves a name out.

    >>> query({"by": "AP", "page": 2}, page=None, run="bm25")
    '?by=AP&run=bm25'
    """
    pairs = given.items() if hasattr(given, "items") else given  # type: ignore[union-attr]
    kept = [(name, value) for name, value in pairs if name not in changes]
    kept += [(name, value) for name, value in changes.items() if value is not None]
    return f"?{urlencode(kept)}" if kept else "?"


FILTERS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (score, signed, interval, probability, grade, count, data, query)
}
