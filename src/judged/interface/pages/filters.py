"""How numbers and words are written on pages, and how blocks of answers are."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import BaseModel
from Stemmer import Stemmer

from judged.components import all_components
from judged.errors import MissingExtraError
from judged.results import Show, html, plain
from judged.results.decimals import beside, counted, decimal, printed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from judged.results import Block, Table


Address: TypeAlias = "BaseModel | Mapping[str, Any] | Sequence[tuple[str, Any]]"
"""The parameters of an address."""


def score(value: float | None, digits: int = 4) -> str:
    """Write a score; a dash where there is none, a true minus, and no sign before zero.

    >>> score(0.41236), score(-0.5), score(0.99999), score(-0.00001), score(float("nan")), score(None)
    ('0.4124', '−0.5000', '0.99999', '−1.0e-05', '–', '–')
    """
    return printed("-" if value is None or not math.isfinite(value) else decimal(value, digits))


def signed(value: float | None, digits: int = 4) -> str:
    """Write a difference with its sign, as `score` does otherwise.

    >>> signed(0.0312), signed(-0.0312), signed(0.00001), signed(-0.0), signed(math.nan)
    ('+0.0312', '−0.0312', '+1.0e-05', '0.0000', '–')
    """
    return f"+{score(value, digits)}" if value is not None and 0 < value < math.inf else score(value, digits)


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


def data(value: Any) -> Markup:
    r"""Write a value as JSON for a data element of a page, whatever its texts are.

    >>> print(data({"a": "</script>", "b": float("nan")}))
    {"a":"\u003c/script\u003e","b":null}
    """
    return Markup(html.in_script(plain(value)))  # noqa: S704  every character that ends it is escaped


def pairs(given: Address) -> list[tuple[str, Any]]:
    """Give names and values of an address: of what is asked only what is not as it is without being asked."""
    if isinstance(given, BaseModel):
        given = given.model_dump(exclude_defaults=True)
    found: list[tuple[str, Any]] = []
    for name, value in given.items() if isinstance(given, Mapping) else given:
        found += [(name, part) for part in (value if isinstance(value, list) else [value])]  # pyright: ignore[reportUnknownVariableType]
    return [(name, _spelled(value)) for name, value in found]


def _spelled(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}" if isinstance(value, float) else value


def query(given: Address, **changes: Any) -> str:
    """Write the query of an address: what is given, with changes; None leaves a name out.

    >>> query({"by": "AP", "page": 2, "runs": ["a", "b"]}, page=None, run="bm25")
    '?by=AP&runs=a&runs=b&run=bm25'
    """
    kept = [pair for pair in pairs(given) if pair[0] not in changes]
    kept += pairs({name: value for name, value in changes.items() if value is not None})
    return f"?{urlencode(kept)}" if kept else "?"


def table(
    block: Table,
    label: str = "",
    *,
    kind: str = "",
    caption: str = "",
    address: Address = (),
    sort: str = "",
    keys: Mapping[str, str] | None = None,
    rising: Collection[str] = (),
    links: Mapping[str, str] | None = None,
    cells: Mapping[str, Callable[..., Markup]] | None = None,
) -> Markup:
    """Write a table of an answer; headings of columns with a key, by their names, are links that sort.

    A link keeps the rest of the address; what is not sorted yet is sorted falling first, unless its key is in
    ``rising``. ``sort`` is what the table is sorted by now, with ``-`` before it where it falls. ``links`` is where
    other headings lead. ``cells`` are macros that write the cells of columns: each is called with the row as JSON has
    it, and the value.
    """
    records = block.records() if cells else []
    for name, macro in (cells or {}).items():
        show, written = Show(str, block.column(name).show.type), [macro(row, row.get(name)) for row in records]
        block = block.changed(name, values=written, show=show, ci=None, beside=(), mark=(), only="")
    heads = {name: (where, "") for name, where in (links or {}).items()}
    for name, key in (keys or {}).items():
        way = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
        turned = f"-{key}" if way == "ascending" or (not way and key not in rising) else key
        heads[name] = (query(address, sort=turned, page=None), way)
    return Markup(html.table(block, label, kind=kind, caption=caption, heads=heads))  # noqa: S704  it escapes all texts


def _elements(make: Callable[[Any], str]) -> Callable[[Any], Markup]:
    """Take what is written for elements of a page."""
    return lambda given: Markup(make(given))  # noqa: S704  it escapes all texts


def blocks(given: Iterable[Block], elsewhere: Iterable[str] = ()) -> Markup:
    """Write blocks of an answer: charts with what draws them, for a page that has `ui.chart_scripts`.

    ``elsewhere`` names the tables of charts whose numbers stand elsewhere on the page.
    """
    given = tuple(given)
    try:
        specs, note = html.specifications(given), ""
    except MissingExtraError as error:
        specs, note = {}, f'<p class="note">The charts are left out: {escape(str(error))}</p>\n'
    scripts = (
        f'<script type="application/json" data-spec="{escape(name)}">{data(spec)}</script>'
        for name, spec in specs.items()
    )
    return Markup("\n".join([note + html.html(given, specs, elsewhere), *scripts]))  # noqa: S704  it escapes all texts


_WORD = re.compile(r"\w+")
_COMMON = re.compile(
    "a|about|an|and|are|as|at|be|by|can|do|does|for|from|has|have|how|i|in|is|it|its|of|on|or|that|the|this|to|was|were"
    "|what|when|where|which|who|why|will|with|you|your",
    re.IGNORECASE,
)


def marked(text: str, query: str) -> list[str]:
    """Split a text at the words of a query, whatever their English endings.

    Returns
    -------
    list of str
        Parts of the text, in order; every second one is a word of the query.

    Examples
    --------
    >>> marked("Faust, and what Fausts are.", "what is a Faust")
    ['', 'Faust', ', and what ', 'Fausts', ' are.']
    """
    stemmer = Stemmer("english")  # not to be shared between threads
    wanted = {stemmer.stemWord(word.casefold()) for word in _WORD.findall(query) if not _COMMON.fullmatch(word)}
    parts, end = list[str](), 0
    for word in _WORD.finditer(text):
        if stemmer.stemWord(word[0].casefold()) in wanted:
            parts += [text[end : word.start()], word[0]]
            end = word.end()
    return [*parts, text[end:]]


FILTERS: dict[str, Callable[..., Any]] = {
    made.__name__: made for made in (score, signed, interval, grade, data, pairs, query, table, blocks, marked)
}
FILTERS.update(count=counted, prose=_elements(html.prose), name=_elements(html.named), notes=_elements(html.notes))


_CHOICES = {page.path: page.choices for component in all_components() for page in component.pages if page.path}
_CHOICES["/topic"] = _CHOICES["/compare"]
"""What each page calls what is chosen on several."""


def chosen(path: str, given: Address) -> dict[str, str]:
    """Read what an address chose, by the names that all pages share.

    >>> chosen("/compare", {"first": "bm25", "second": "rrf", "page": "2", "where": "words > 4"})
    {'baseline': 'bm25', 'run': 'rrf', 'where': 'words > 4'}
    >>> chosen("/topics", {"runs": ["bm25", "rrf"]}), chosen("/leaderboard", {"measures": "AP,RR"})
    ({'baseline': 'bm25', 'run': 'rrf'}, {'measure': 'AP'})
    """
    known: dict[str, list[str]] = {}
    for name, value in pairs(given):
        known.setdefault(name, []).append(str(value))
    if len(known.get("runs", ())) != 2:  # more are columns, and no pair
        known.pop("runs", None)
    called = _CHOICES.get(path, {})
    if "measures" in known and path in {"/leaderboard", "/slices"}:
        known.setdefault(called["measure"], [""])[0] = known["measures"][0].split(",")[0].strip()
    found = {name: known.get(own, [""])[-1 if name == "run" else 0] for name, own in called.items()}
    return {name: value for name, value in found.items() if value not in {"", "*"}}


def link(path: str, known: Mapping[str, str], **more: Any) -> str:
    """Lead to a page with what is chosen, as it calls it; `more` are choices anew, and parameters of its own.

    >>> link("/matrix", {"measure": "AP", "run": "rrf"}, baseline="bm25", quadrant="healthy")
    '/matrix?y=AP&run=rrf&baseline=bm25&quadrant=healthy'
    >>> link("/learn", {"run": "rrf"}), link("/slices", {"where": "words > 4"}, where=None)
    ('/learn', '/slices')
    """
    given, called = {**known, **more}, _CHOICES.get(path, {})
    if path == "/topics" and not (given.get("baseline") and given.get("run")):
        given |= {"baseline": "", "run": ""}
    address = [(called.get(name, name), value) for name, value in given.items() if name in called or name in more]
    return path + query([pair for pair in address if pair[1]]).removesuffix("?")
