"""Blocks as HTML, and an answer as one page that fetches nothing. Every text is escaped where it becomes markup."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from judged.errors import MissingExtraError
from judged.results import chart_drawings
from judged.results.blocks import Chart, Code, Lists, Section, Sentences, flat, with_severity
from judged.results.charts import library, resource, specification
from judged.results.decimals import printed
from judged.results.escaping import Cell, isolated
from judged.results.table import Table
from judged.results.text_formats import full_stop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from judged.results.blocks import Block, Item, Note, Ranking
    from judged.results.table import Column

_LONG = 34  # characters: a text of a table from here on gets room to wrap in
_FEW, _LEAD = 3, 2  # sentences: so many are paragraphs; of more, the first ones
_CODE = re.compile(r"`([^`]+)`")
_MINUS_IN_PROSE = re.compile(r"(?<![\w.-])-(?=\d*\.\d)")  # with decimals: other things that begin so may be names
_END = 12  # characters of a name that is cut: so many stay at its end
_CURRENT = ' aria-current="true"'
_EXPORT = re.compile(r"^export (?:default )?", re.MULTILINE)
_UNSAFE = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}


def page(title: str, facts: Iterable[str], blocks: Iterable[Block], noted: Iterable[Note] = ()) -> str:
    """Write a page; without altair or vl-convert it has no charts, and a note that says how to get them."""
    blocks = tuple(blocks)
    try:
        specs = specifications(blocks)
        drawing = library() if specs else ""
        lacking = ""
    except MissingExtraError as error:
        specs, drawing, lacking = {}, "", str(error)
    note = f'<p class="note">The charts are left out: {escape(lacking)}</p>\n' if lacking else ""
    sections = [block for block in blocks if isinstance(block, Section)]
    made = Template(_resource("page.html")).substitute(
        title=escape(title),
        style=f"{look()}\n{_resource('page.css').strip()}",
        facts=escape(" · ".join(facts)),
        contents="\n".join(
            f'<li><a href="#{escape(section.name)}">{escape(section.title)}</a></li>' for section in sections
        ),
        sections="\n".join(part for part in (note + html(blocks, specs), _titled_notes(tuple(noted))) if part),
        scripts="\n".join(_scripts(specs, drawing)),
    )
    return isolated(made).rstrip("\n")


def look() -> str:
    """Give the style of blocks, with all sizes and colours: for a page of its own, and for the workbench."""
    return "\n".join([resource("tokens.css"), _resource("blocks.css"), resource("charts.css")]).strip()


def specifications(blocks: Iterable[Block]) -> dict[str, dict[str, Any]]:
    """Draw all charts as Vega-Lite, by name, without titles of their own: the figures have them.

    Raises
    ------
    MissingExtraError
        If altair or vl-convert is not installed.
    """
    charts = [block for block in flat(blocks) if isinstance(block, Chart)]
    drawn = {chart.name: specification(chart_drawings.drawn(chart)) for chart in charts}
    return {name: {key: value for key, value in made.items() if key != "title"} for name, made in drawn.items()}


def in_script(value: Any) -> str:
    r"""Write a value as JSON that can stand in a script element, whatever its texts are.

    >>> in_script("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    made = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for char, safe in _UNSAFE.items():
        made = made.replace(char, safe)
    return made


def _scripts(specs: Mapping[str, Any], drawing: str) -> Iterator[str]:
    """Give the scripts: data, what draws them, and ours."""
    if specs:
        yield f'<script type="application/json" id="charts">{in_script(specs)}</script>'
        yield f"<script>(()=>{{{drawing}}})();</script>"
    ours = _EXPORT.sub("", resource("drawing.js")).strip()  # what a module exports is known by its name all the same
    yield f"<script>\n{ours}\n{_resource('page.js').strip()}\n</script>"


def _resource(name: str) -> str:
    return files("judged.results").joinpath(name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Escape a sentence; what stands in backticks becomes code, and numbers get a true minus.

    >>> prose("`a<b` is < -0.25")
    '<code>a&lt;b</code> is &lt; \u22120.25'
    """
    parts = enumerate(_CODE.split(text))
    return "".join(f"<code>{escape(part)}</code>" if at % 2 else escape(minus(part)) for at, part in parts)


def minus(sentence: str) -> str:
    """Give the numbers of a sentence a true minus, which is also read aloud.

    >>> minus("t-1 is -0.25 below q-0.5")
    't-1 is \u22120.25 below q-0.5'
    """
    return _MINUS_IN_PROSE.sub("\N{MINUS SIGN}", sentence)


def named(name: str, title: str = "") -> str:
    """Write a name, whatever its direction; a long one can be cut in its middle, and is whole where one points at it.

    >>> named("a<b"), named("x" * 30 + "_2024-05-31_v2")[:25]
    ('<bdi>a&lt;b</bdi>', '<bdi class="name" title="')
    """
    if _is_long_name(name):
        start, end = escape(name[:-_END]), escape(name[-_END:])
        return f'<bdi class="name" title="{escape(name)}"><span>{start}</span>{end}</bdi>'
    said = f' title="{escape(title)}"' if title else ""
    return f"<bdi{said}>{escape(name)}</bdi>"


def _is_long_name(text: str) -> bool:
    """Whether a text is too long for a column, and cannot be wrapped."""
    return len(text) >= _LONG and not any(map(str.isspace, text))


def html(blocks: Iterable[Block], drawn: Collection[str] = (), tabled: Iterable[str] = ()) -> str:
    """Write blocks; a chart that is drawn has a place for its drawing, another one its numbers alone.

    ``tabled`` names tables that stand elsewhere, as those among the blocks do: no chart says their numbers again.
    """
    shown = [block for block in blocks if not (isinstance(block, Table) and block.only == "data")]
    tables = {*tabled, *(block.name for block in shown if isinstance(block, Table))}
    return "\n".join(_block(block, drawn, tables) for block in shown)


def _block(block: Block, drawn: Collection[str], tables: Collection[str]) -> str:
    if isinstance(block, Section):
        name = escape(block.name)
        return (
            f'<section id="{name}" aria-labelledby="{name}-title">\n'
            f'<h2 id="{name}-title">{escape(block.title)}</h2>\n{html(block.blocks, drawn)}\n</section>'
        )
    if isinstance(block, Chart):
        return _chart(block, drawn=block.name in drawn, tabled=(block.numbers or block.table).name in tables)
    inner = _inner(block)
    if block.folded:
        return f"<details>\n<summary>{escape(block.title or block.name)}</summary>\n{inner}\n</details>"
    return f"<h3>{escape(block.title)}</h3>\n{inner}" if block.title else inner


def _inner(block: Table | Sentences | Code | Lists) -> str:
    match block:
        case Table():
            note = f'\n<p class="note">{full_stop(prose(block.note))}</p>' if block.note else ""
            return table(block) + note
        case Sentences():
            return sentences(block.texts)
        case Code():
            return "\n".join(f"<pre><code>{escape(text)}</code></pre>" for text in block.texts)
        case Lists():
            said = "\n".join(f"<p>{prose(sentence)}</p>" for sentence in block.sentences)
            lists = "\n".join(map(_ranking, block.rankings))
            return f'<div class="said-of-topic">\n{said}\n<div class="rankings">\n{lists}\n</div>\n</div>'


def sentences(texts: tuple[str, ...]) -> str:
    """Write a few sentences as paragraphs, and the rest of many as a list to go through."""
    many = len(texts) > _FEW
    lead = "\n".join(f"<p>{prose(text)}</p>" for text in (texts[:_LEAD] if many else texts))
    rest = "\n".join(f"<li>{prose(text)}</li>" for text in texts[_LEAD:]) if many else ""
    return f'{lead}\n<ul class="notes">\n{rest}\n</ul>' if rest else lead


def notes(given: Iterable[Note]) -> str:
    """Write what should be known before the numbers are used, errors first, each called one.

    >>> from judged.results.blocks import Note
    >>> print(notes([Note("a", "ties"), Note("b", "no ranking", severity="error")]))
    <ul class="notes">
    <li class="error"><b>Error:</b> no ranking</li>
    <li>ties</li>
    </ul>
    """
    items = (
        f'<li class="error"><b>Error:</b> {prose(text)}</li>' if severity == "error" else f"<li>{prose(text)}</li>"
        for severity, text in with_severity(given)
    )
    return "\n".join(['<ul class="notes">', *items, "</ul>"])


def _titled_notes(given: Sequence[Note]) -> str:
    return f"<h3>Notes</h3>\n{notes(given)}" if given else ""


def _chart(chart: Chart, *, drawn: bool, tabled: bool) -> str:
    """Write a figure: what it shows in words, the place of the drawing, and the numbers to unfold.

    Where nothing is drawn the numbers stand open, and nothing speaks of a chart; where they stand in a table beside it,
    they are not said again.
    """
    name, sentence = escape(chart.name), escape(minus(chart.sentence))
    shown = "" if tabled else table(chart.numbers or chart.table, chart.title)
    if drawn:
        shown = shown and f"<details>\n<summary>The numbers of this chart</summary>\n{shown}\n</details>"
        shown = f'<div class="chart" data-chart="{name}" role="img" aria-label="{sentence}"></div>\n{shown}'
    elif tabled:
        return ""
    said = f"<figcaption><h3>{escape(minus(chart.title))}</h3><p>{prose(chart.sentence)}</p></figcaption>"
    return f'<figure id="chart-{name}">\n{said}\n{shown}\n</figure>'


def _ranking(ranking: Ranking) -> str:
    said = f"<p>{prose(ranking.sentence)}</p>\n" if ranking.sentence else ""
    items = "\n".join(map(_item, ranking.items))
    return f'<div class="ranking">\n<h4>{named(ranking.name)}</h4>\n{said}<ol>\n{items}\n</ol>\n</div>'


def _item(item: Item) -> str:
    kind = {True: "yes", False: "no", None: "unknown"}[item.relevant]
    change = f'<span class="change">{escape(item.change)}</span>'
    text = f'<span class="text">{escape(item.text)}</span>' if item.text else ""
    grade = f"grade {escape(item.grade)}" if item.grade else "unjudged"
    return (
        f'<li class="{kind}"><span class="rank">{escape(item.rank)}</span><span class="grade">{grade}</span>'
        f'<span class="doc">{named(item.doc_id)}{text}</span>{change}</li>'
    )


def table(
    block: Table,
    label: str = "",
    *,
    kind: str = "",
    caption: str = "",
    heads: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Write a table that scrolls by itself where it is too wide, also by keyboard.

    ``heads`` makes headings of columns, by their names, links that sort: where each leads, and which way the table is
    sorted by it now (``ascending``, ``descending``, or empty).
    """
    columns, kinds = block.shown, block.kinds or [""] * len(block)
    naming = 1 if block.labels > 1 and columns and not columns[0].heading else 0  # the column that names the row
    left = [at < block.labels or column.show.type == "string" for at, column in enumerate(columns)]
    head = "".join(_head(column.heading, (heads or {}).get(column.name), left[at]) for at, column in enumerate(columns))
    cells = [
        _cells(column, left=left[at], naming=at == naming, chosen=[row == "chosen" for row in kinds])
        for at, column in enumerate(columns)
    ]
    nothing = f'<tr><td class="label rest" colspan="{len(columns)}">nothing</td></tr>'
    written = [f"<tr{_class(row)}>{''.join(parts)}</tr>" for row, *parts in zip(kinds, *cells, strict=True)]
    for row in reversed(range(len(block.groups))):
        if block.groups[row] not in {"", *block.groups[max(row - 1, 0) : row]}:
            group = f'<th scope="rowgroup" class="label" colspan="{len(columns)}">{escape(block.groups[row])}</th>'
            written.insert(row, f'<tr class="chosen">{group}</tr>')
    rows = "\n".join(written)
    said = escape(label or block.title or block.name)
    above = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{said}" data-table="{escape(block.name)}">\n'
        f"<table{_class(kind)}>\n"
        f"{above}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows or nothing}\n</tbody>\n</table>\n</div>"
    )


def _head(text: str, link: tuple[str, str] | None, left: bool) -> str:
    kinds = _class("label" * left)
    if not text:
        return "<td></td>"
    if link is None:
        return f'<th scope="col"{kinds}>{named(text)}</th>'
    where, way = link
    arrow = {"ascending": "\N{UPWARDS ARROW}", "descending": "\N{DOWNWARDS ARROW}"}.get(way, "")
    now = f' aria-sort="{way}"' if way else ""
    arrow = f'<span class="arrow" aria-hidden="true">{arrow}</span>'
    return f'<th scope="col"{kinds}{now}><a href="{escape(where)}">{named(text)}{arrow}</a></th>'


def _cells(column: Column, *, left: bool, naming: bool, chosen: Sequence[bool]) -> list[str]:
    """Write the cells of a column; what is markup already stands as it is."""
    texts = column.cells()
    long = any(
        len(text) >= _LONG and not isinstance(text, Cell) and not hasattr(value, "__html__") and not _is_long_name(text)
        for text, value in zip(texts, column.values, strict=True)
    )
    opened, closed = ('<th scope="row"', "</th>") if naming else ("<td", "</td>")
    made: list[str] = []
    for row, (text, value) in enumerate(zip(texts, column.values, strict=True)):
        cell = text if isinstance(text, Cell) else Cell(text)
        number, rest = cell.number, cell.rest
        if not isinstance(value, str):
            number, rest = printed(number, column.show.type), printed(rest)
        markup = getattr(value, "__html__", None)
        if markup:
            shown = str(markup())
        elif left and isinstance(value, str) and number:
            shown = named(number, "" if number == value else value)
        else:
            shown = escape(number)
        shown = f"<b>{shown}</b>" if cell.best else shown
        shown += f"<sup>{escape(cell.mark)}</sup>" if cell.mark else ""
        shown += f' <span class="rest">{escape(rest)}</span>' if rest else ""
        if column.links and (link := column.links[row]):
            shown = f'<a href="{escape(link)}"{_CURRENT * chosen[row]}>{shown}</a>'
        kinds = _class("label" * left, "long" * long, column.kinds[row] if column.kinds else "")
        made.append(f"{opened}{kinds}>{shown}{closed}")
    return made


def _class(*kinds: str) -> str:
    named = " ".join(kind for kind in kinds if kind)
    return f' class="{named}"' if named else ""
