"""Template filters and links: format numbers and texts, render tables and blocks, and build query strings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, TypeAlias
from urllib.parse import urlencode

from markupsafe import Markup
from pydantic import BaseModel
from Stemmer import Stemmer

from judged.components import all_components
from judged.errors import MissingExtraError
from judged.results import Block, Headline, Section, Show, Table, html, plain
from judged.results.decimals import counted, decimal, format_distinct, printed

Address: TypeAlias = "BaseModel | Mapping[str, Any] | Sequence[tuple[str, Any]]"
"""The parameters of an address."""


def score(value: float | None, digits: int = 4) -> str:
    """Format a score: a dash if missing, a true minus sign, and no sign before zero.

    >>> score(0.41236), score(-0.5), score(0.99999), score(-0.00001), score(float("nan")), score(None)
    ('0.4124', '−0.5000', '0.99999', '−1.0e-05', '–', '–')
    """
    return printed("-" if value is None or not math.isfinite(value) else decimal(value, digits))


def signed(value: float | None, digits: int = 4) -> str:
    """Format a difference with its sign, otherwise as `score`.

    >>> signed(0.0312), signed(-0.0312), signed(0.00001), signed(-0.0), signed(math.nan)
    ('+0.0312', '−0.0312', '+1.0e-05', '0.0000', '–')
    """
    return f"+{score(value, digits)}" if value is not None and 0 < value < math.inf else score(value, digits)


def probability(value: float | None, alpha: float = 0.05) -> str:
    """Format a p-value with enough digits to show whether it is below alpha.

    >>> probability(0.00002), probability(0.03214), probability(0.050004), probability(1.0), probability(None)
    ('< 0.0001', '0.0321', '0.050004', '1.0000', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else format_distinct(value, (alpha,), "f", 4)


def grade(value: float | None) -> str:
    """Format a grade; None is a document without a judgment.

    >>> grade(2.0), grade(0.5), grade(None)
    ('2', '0.5', 'unjudged')
    """
    return "unjudged" if value is None else f"{value:g}"


def data(value: Any) -> Markup:
    r"""Render a value as JSON for a script element, safe for any text.

    >>> print(data({"a": "</script>", "b": float("nan")}))
    {"a":"\u003c/script\u003e","b":null}
    """
    return Markup(html.in_script(plain(value)))  # noqa: S704  every character that ends it is escaped


def pairs(address: Address) -> list[tuple[str, Any]]:
    """Return the names and values of an address; of a model, only values that are not defaults."""
    if isinstance(address, BaseModel):
        address = address.model_dump(exclude_defaults=True)
    parameters: list[tuple[str, Any]] = []
    for name, value in address.items() if isinstance(address, Mapping) else address:
        parameters += [(name, part) for part in (value if isinstance(value, list) else [value])]  # pyright: ignore[reportUnknownVariableType]
    return [(name, _format_value(value)) for name, value in parameters]


def _format_value(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}" if isinstance(value, float) else value


def query_string(address: Address, **changes: Any) -> str:
    """Build a query string from an address with changes; None removes a parameter.

    >>> query_string({"by": "AP", "page": 2, "runs": ["a", "b"]}, page=None, run="bm25")
    '?by=AP&runs=a&runs=b&run=bm25'
    """
    parameters = [pair for pair in pairs(address) if pair[0] not in changes]
    parameters += pairs({name: value for name, value in changes.items() if value is not None})
    return f"?{urlencode(parameters)}" if parameters else "?"


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
    """Render a table of an answer; the headings of columns in ``keys`` are links that sort by their key.

    A link keeps the other parameters of the address. A first click sorts in descending order, or in ascending order
    for keys in ``rising``. ``sort`` is the current key, with ``-`` in front if descending. ``links`` are links of
    other headings. ``cells`` are macros that render the cells of a column from the row (as in JSON) and the value.
    """
    records = block.records() if cells else []
    for name, macro in (cells or {}).items():
        text_format, markup = Show(str, block.column(name).show.type), [macro(row, row.get(name)) for row in records]
        block = block.changed(name, values=markup, show=text_format, ci=None, details=(), mark=(), only="")
    heads = {name: (link, "") for name, link in (links or {}).items()}
    for name, key in (keys or {}).items():
        direction = {key: "ascending", f"-{key}": "descending"}.get(sort, "")
        sort_key = f"-{key}" if direction == "ascending" or (not direction and key not in rising) else key
        heads[name] = (query_string(address, sort=sort_key, page=None), direction)
    return Markup(html.table(block, label, kind=kind, caption=caption, heads=heads))  # noqa: S704  it escapes all texts


def _elements(render: Callable[[Any], str]) -> Callable[[Any], Markup]:
    """Return a filter whose result is not escaped again."""
    return lambda value: Markup(render(value))  # noqa: S704  it escapes all texts


def _with_drawings(block: Block) -> Block:
    """Draw the intervals of visible tables; folded tables may mix measures, so their intervals are written."""
    if isinstance(block, Section):
        return replace(block, blocks=tuple(map(_with_drawings, block.blocks)))
    return block.with_drawn_intervals() if isinstance(block, Table) and not block.folded else block


def blocks(blocks: Iterable[Block], tables_on_page: Iterable[str] = ()) -> Markup:
    """Render blocks of an answer, with the data of their charts, for a page with `ui.chart_scripts`.

    ``tables_on_page`` names tables of charts whose numbers are already on the page.
    """
    blocks = tuple(map(_with_drawings, blocks))
    try:
        specs, note = html.specifications(blocks), ""
    except MissingExtraError as error:
        specs, note = {}, f'<p class="note">The charts are not shown: {escape(str(error))}</p>\n'
    scripts = (
        f'<script type="application/json" data-spec="{escape(name)}">{data(spec)}</script>'
        for name, spec in specs.items()
    )
    return Markup("\n".join([note + html.html(blocks, specs, tables_on_page), *scripts]))  # noqa: S704  it escapes all texts


_WORD = re.compile(r"\w+")
_COMMON = re.compile(
    "a|about|an|and|are|as|at|be|by|can|do|does|for|from|has|have|how|i|in|is|it|its|of|on|or|that|the|this|to|was|were"
    "|what|when|where|which|who|why|will|with|you|your",
    re.IGNORECASE,
)


def split_at_matches(text: str, query: str) -> list[str]:
    """Split a text at words that match the query after English stemming.

    Returns
    -------
    list of str
        Parts of the text, in order; every second part is a matching word.

    Examples
    --------
    >>> split_at_matches("Faust, and what Fausts are.", "what is a Faust")
    ['', 'Faust', ', and what ', 'Fausts', ' are.']
    """
    stemmer = Stemmer("english")  # not to be shared between threads
    query_stems = {stemmer.stemWord(word.casefold()) for word in _WORD.findall(query) if not _COMMON.fullmatch(word)}
    parts, end = list[str](), 0
    for word in _WORD.finditer(text):
        if stemmer.stemWord(word[0].casefold()) in query_stems:
            parts += [text[end : word.start()], word[0]]
            end = word.end()
    return [*parts, text[end:]]


FILTERS: dict[str, Callable[..., Any]] = {
    render.__name__: render
    for render in (score, signed, grade, data, pairs, query_string, table, blocks, split_at_matches)
}
FILTERS.update(headline=_elements(Headline.html), card=_elements(Headline.content))
FILTERS["shared_choices_of"] = lambda address, path: {**dict.fromkeys(_SHARED, ""), **shared_choices(path, address)}
FILTERS.update(count=counted, prose=_elements(html.prose), name=_elements(html.name_html), notes=_elements(html.notes))


_SHARED = ("measure", "baseline", "run", "where", "rel")
CARRIED = "with."
"""Prefix of shared choices in the address of a page that does not use them, but keeps them for its links."""
_CHOICES = {page.path: page.choices for component in all_components() for page in component.pages if page.path}
_CHOICES["/topic"] = _CHOICES["/compare"]
"""By page: the shared choices (measure, baseline, run, ...) and the page's parameter for each."""


def shared_choices(path: str, address: Address) -> dict[str, str]:
    """Return the choices of an address that other pages share, by their shared names.

    >>> shared_choices("/compare", {"first": "bm25", "second": "rrf", "page": "2", "where": "words > 4"})
    {'baseline': 'bm25', 'run': 'rrf', 'where': 'words > 4'}
    >>> shared_choices("/topics", {"runs": ["bm25", "rrf"]}), shared_choices("/leaderboard", {"measures": "AP,RR"})
    ({'baseline': 'bm25', 'run': 'rrf'}, {'measure': 'AP'})
    """
    values: dict[str, list[str]] = {}
    for name, value in pairs(address):
        values.setdefault(name, []).append(str(value))
    carried = {name.removeprefix(CARRIED): value[0] for name, value in values.items() if name.startswith(CARRIED)}
    if len(values.get("runs", ())) != 2:  # other numbers of runs are columns, not a pair
        values.pop("runs", None)
    parameters = _CHOICES.get(path, {})
    # The first of several measures is the leading one.
    if "measures" in values and path in {"/leaderboard", "/slices"}:
        values.setdefault(parameters["measure"], [""])[0] = values["measures"][0].split(",")[0].strip()
    choices = {name: values.get(parameter, [""])[-1 if name == "run" else 0] for name, parameter in parameters.items()}
    return {name: value for name, value in {**carried, **choices}.items() if value not in {"", "*"}}


def link(path: str, choices: Mapping[str, str], **changes: Any) -> str:
    """Build a link to a page with shared choices; ``changes`` are other choices, or parameters of that page.

    >>> link("/matrix", {"measure": "AP", "run": "rrf"}, baseline="bm25", quadrant="healthy")
    '/matrix?y=AP&run=rrf&baseline=bm25&quadrant=healthy'
    >>> link("/learn", {"run": "rrf"}), link("/slices", {"where": "words > 4"}, where=None)
    ('/learn?with.run=rrf', '/slices')
    """
    values, parameters = {**choices, **changes}, _CHOICES.get(path, {})
    if path == "/topics" and not (values.get("baseline") and values.get("run")):
        values |= {"baseline": "", "run": ""}
    address = [
        (parameters.get(name, name if name in changes else f"{CARRIED}{name}"), value) for name, value in values.items()
    ]
    return path + query_string([pair for pair in address if pair[1]]).removesuffix("?")
