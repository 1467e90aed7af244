"""Rendering of blocks as HTML, and of an answer as one self-contained page. All texts are escaped."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from judged.errors import MissingExtraError
from judged.results import chart_drawings
from judged.results.blocks import Chart, Code, RankedLists, Section, Sentences, flat, with_severity
from judged.results.charts import library, resource, specification
from judged.results.decimals import printed
from judged.results.escaping import Cell, isolate_directions
from judged.results.headline import chip, interval_svg
from judged.results.table import Column, Show, Table
from judged.results.text_formats import full_stop

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from judged.results.blocks import Block, Note, RankedDocument, RankedList
    from judged.results.table import Status

_LONG_TEXT = 34  # characters from which a text of a table may wrap
_MAX_PARAGRAPHS, _N_LEADING = 3, 2  # sentences up to which all are paragraphs; leading paragraphs of more
_CODE = re.compile(r"`([^`]+)`")
_MINUS_IN_PROSE = re.compile(r"(?<![\w.-])-(?=\d*\.\d)")  # only with decimals, because other texts may be names
_NARROW_ROWS, _NARROW_WIDTH = 15, 80  # rows, and width in characters, of a table beside another block
_DRAWING_WIDTH, _GAP_WIDTH = 16, 2  # of a drawing, and between columns, in characters
_TAIL_LENGTH = 12  # characters at the end of a shortened name
_CURRENT = ' aria-current="true"'
_LABEL = Show(str, "string")
_EXPORT = re.compile(r"^export (?:default )?", re.MULTILINE)
_UNSAFE = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}


def page(title: str, facts: Iterable[str], blocks: Iterable[Block], page_notes: Iterable[Note] = ()) -> str:
    """Render a page; without altair or vl-convert it has no charts, and a note explains how to install them."""
    blocks = tuple(blocks)
    try:
        specs = specifications(blocks)
        vega_library = library() if specs else ""
        missing = ""
    except MissingExtraError as error:
        specs, vega_library, missing = {}, "", str(error)
    note = f'<p class="note">The page has no charts: {escape(missing)}</p>\n' if missing else ""
    sections = [block for block in blocks if isinstance(block, Section)]
    document = Template(_resource("page.html")).substitute(
        title=escape(title),
        style=f"{stylesheet()}\n{_resource('page.css').strip()}",
        facts=escape(" · ".join(facts)),
        contents="\n".join(
            f'<li><a href="#{escape(section.name)}">{escape(section.title)}</a></li>' for section in sections
        ),
        sections="\n".join(part for part in (note + html(blocks, specs), _titled_notes(tuple(page_notes))) if part),
        scripts="\n".join(_scripts(specs, vega_library)),
    )
    return isolate_directions(document).rstrip("\n")


def stylesheet() -> str:
    """Return the style sheet of blocks, for a self-contained page and for the workbench."""
    return "\n".join([resource("tokens.css"), _resource("blocks.css"), resource("charts.css")]).strip()


def specifications(blocks: Iterable[Block]) -> dict[str, dict[str, Any]]:
    """Convert all charts to Vega-Lite, by name, without their titles, which the figures have.

    Raises
    ------
    MissingExtraError
        If altair or vl-convert is not installed.
    """
    charts = [block for block in flat(blocks) if isinstance(block, Chart)]
    specs = {chart.name: specification(chart_drawings.draw_charts(chart)) for chart in charts}
    return {name: {key: value for key, value in spec.items() if key != "title"} for name, spec in specs.items()}


def in_script(value: Any) -> str:
    r"""Encode a value as JSON that is safe in a script element.

    >>> in_script("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    encoded = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for char, escaped in _UNSAFE.items():
        encoded = encoded.replace(char, escaped)
    return encoded


def _scripts(specs: Mapping[str, Any], vega_library: str) -> Iterator[str]:
    """Yield the script elements: data, the Vega library, and our code."""
    if specs:
        yield f'<script type="application/json" id="charts">{in_script(specs)}</script>'
        yield f"<script>(()=>{{{vega_library}}})();</script>"
    code = _EXPORT.sub("", resource("drawing.js")).strip()  # exported names are global in a plain script
    yield f"<script>\n{code}\n{_resource('page.js').strip()}\n</script>"


def _resource(name: str) -> str:
    return files("judged.results").joinpath(name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Escape a sentence; text in backticks becomes code, and numbers get a minus sign.

    >>> prose("`a<b` is < -0.25")
    '<code>a&lt;b</code> is &lt; −0.25'
    """
    parts = enumerate(_CODE.split(text))
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else escape(minus(part)) for i, part in parts)


def minus(sentence: str) -> str:
    """Replace the hyphen before the decimal numbers of a sentence by a minus sign, which screen readers read.

    >>> minus("t-1 is -0.25 below q-0.5")
    't-1 is −0.25 below q-0.5'
    """
    return _MINUS_IN_PROSE.sub("\N{MINUS SIGN}", sentence)


def name_html(name: str, title: str = "") -> str:
    """Render a name with its own text direction; a long one is shortened in the middle, with a tooltip.

    >>> name_html("a<b"), name_html("x" * 30 + "_2024-05-31_v2")[:25]
    ('<bdi>a&lt;b</bdi>', '<bdi class="name" title="')
    """
    if _is_long_name(name):
        start, end = escape(name[:-_TAIL_LENGTH]), escape(name[-_TAIL_LENGTH:])
        return f'<bdi class="name" title="{escape(name)}"><span>{start}</span>{end}</bdi>'
    tooltip = f' title="{escape(title)}"' if title else ""
    return f"<bdi{tooltip}>{escape(name)}</bdi>"


def _is_long_name(text: str) -> bool:
    """Return whether a text is too long for a column and cannot wrap."""
    return len(text) >= _LONG_TEXT and not any(map(str.isspace, text))


def html(blocks: Iterable[Block], chart_names: Collection[str] = (), table_names: Iterable[str] = ()) -> str:
    """Render blocks; charts in `chart_names` get a placeholder for the drawing, others only a table of their numbers.

    ``table_names`` are tables outside of these blocks: a chart of such a table, or of a table in the blocks, has none.
    """
    visible = [block for block in blocks if not (isinstance(block, Table) and block.only == "data")]
    tables = {*table_names, *(block.name for block in visible if isinstance(block, Table))}
    return "\n".join(_block(block, chart_names, tables) for block in visible)


def _block(block: Block, chart_names: Collection[str], tables: Collection[str]) -> str:
    if isinstance(block, Section):
        name = escape(block.name)
        return (
            f'<section id="{name}" aria-labelledby="{name}-title">\n'
            f'<h2 id="{name}-title">{escape(block.title)}</h2>\n{html(block.blocks, chart_names)}\n</section>'
        )
    if isinstance(block, Chart):
        return _chart(
            block, is_drawn=block.name in chart_names, has_table=(block.numbers or block.table).name in tables
        )
    inner = _block_content(block)
    if block.folded:
        return f"<details>\n<summary>{escape(block.title or block.name)}</summary>\n{inner}\n</details>"
    heading = f"<h3>{escape(block.title)}</h3>\n" if block.title else ""
    is_wide = isinstance(block, Table) and (len(block) > _NARROW_ROWS or _width(block) > _NARROW_WIDTH)
    kinds = _class("block", "wide-block" * (is_wide or isinstance(block, RankedLists)))
    return f"<div{kinds}>\n{heading}{inner}\n</div>"


def _width(block: Table) -> int:
    """Return the approximate width of a table in characters; long texts wrap."""
    widths = [max(map(len, (column.heading, *replace(column, ci=None).cells()))) for column in block.shown]
    written = sum(_GAP_WIDTH + min(width, _LONG_TEXT) for width in widths)
    drawn = [column for column in block.shown if column.axis is not None]
    return written + _DRAWING_WIDTH * len(drawn)


def _block_content(block: Table | Sentences | Code | RankedLists) -> str:
    match block:
        case Table():
            note = f'\n<p class="note">{full_stop(prose(block.note))}</p>' if block.note else ""
            return table(block) + note
        case Sentences():
            return sentences(block.texts)
        case Code():
            return "\n".join(f"<pre><code>{escape(text)}</code></pre>" for text in block.texts)
        case RankedLists():
            paragraphs = "\n".join(f"<p>{prose(sentence)}</p>" for sentence in block.sentences)
            lists = "\n".join(map(_ranking, block.rankings))
            return f'<div class="ranked-lists">\n{paragraphs}\n<div class="rankings">\n{lists}\n</div>\n</div>'


def sentences(texts: tuple[str, ...]) -> str:
    """Render a few sentences as paragraphs, and the others of many as a list."""
    is_long = len(texts) > _MAX_PARAGRAPHS
    paragraphs = "\n".join(f"<p>{prose(text)}</p>" for text in (texts[:_N_LEADING] if is_long else texts))
    items = "\n".join(f"<li>{prose(text)}</li>" for text in texts[_N_LEADING:]) if is_long else ""
    return f'{paragraphs}\n<ul class="notes">\n{items}\n</ul>' if items else paragraphs


def notes(page_notes: Iterable[Note]) -> str:
    """Render notes as a list, errors first and labeled.

    >>> from judged.results.blocks import Note
    >>> print(notes([Note("a", "ties"), Note("b", "no ranking", severity="error")]))
    <ul class="notes">
    <li class="error"><b>Error:</b> no ranking</li>
    <li>ties</li>
    </ul>
    """
    lines = (
        f'<li class="error"><b>Error:</b> {prose(text)}</li>' if severity == "error" else f"<li>{prose(text)}</li>"
        for severity, text in with_severity(page_notes)
    )
    return "\n".join(['<ul class="notes">', *lines, "</ul>"])


def _titled_notes(page_notes: Sequence[Note]) -> str:
    return f"<h3>Notes</h3>\n{notes(page_notes)}" if page_notes else ""


def _chart(chart: Chart, *, is_drawn: bool, has_table: bool) -> str:
    """Render a figure: sentence, placeholder of the drawing, and the folded numbers.

    Without a drawing, the numbers are not folded. If they are in another table, they are omitted.
    """
    name, sentence = escape(chart.name), escape(minus(chart.sentence))
    content = "" if has_table else table(chart.numbers or chart.table, chart.title)
    if is_drawn:
        content = content and f"<details>\n<summary>Data of this chart</summary>\n{content}\n</details>"
        content = f'<div class="chart" data-chart="{name}" role="img" aria-label="{sentence}"></div>\n{content}'
    elif has_table:
        return ""
    caption = f"<figcaption><h3>{escape(minus(chart.title))}</h3><p>{prose(chart.sentence)}</p></figcaption>"
    return f'<figure id="chart-{name}">\n{caption}\n{content}\n</figure>'


def _ranking(ranking: RankedList) -> str:
    comment = f"<p>{prose(ranking.sentence)}</p>\n" if ranking.sentence else ""
    items = "\n".join(map(_document, ranking.items))
    return f'<div class="ranking">\n<h4>{name_html(ranking.name)}</h4>\n{comment}<ol>\n{items}\n</ol>\n</div>'


def _document(item: RankedDocument) -> str:
    kind = {True: "yes", False: "no", None: "unknown"}[item.relevant]
    change = f'<span class="change">{escape(item.change)}</span>'
    text = f'<span class="text">{escape(item.text)}</span>' if item.text else ""
    grade = f"grade {escape(item.grade)}" if item.grade else "unjudged"
    return (
        f'<li class="{kind}"><span class="rank">{escape(item.rank)}</span><span class="grade">{grade}</span>'
        f'<span class="doc">{name_html(item.doc_id)}{text}</span>{change}</li>'
    )


def table(
    block: Table,
    label: str = "",
    *,
    kind: str = "",
    caption: str = "",
    heads: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Render a table that scrolls if it is too wide, also by keyboard.

    ``heads`` maps column names to links that sort: address, and current order of the table by this column
    (``ascending``, ``descending``, or empty).
    """
    columns = [part for column in block.shown for part in _with_drawing(column)]
    kinds = block.kinds or [""] * len(block)
    name_column = 1 if block.labels > 1 and columns and not columns[0].heading else 0  # the column that names the row
    is_left = [i < block.labels or column.show.type == "string" for i, column in enumerate(columns)]
    head = "".join(
        _heading_cell(column.heading, (heads or {}).get(column.name), is_left[i]) for i, column in enumerate(columns)
    )
    cells = [
        _cells(column, is_left=is_left[i], is_name=i == name_column, is_selected=[row == "selected" for row in kinds])
        for i, column in enumerate(columns)
    ]
    empty_row = f'<tr><td class="label secondary" colspan="{len(columns)}">no rows</td></tr>'
    body_rows = [f"<tr{_class(row)}>{''.join(parts)}</tr>" for row, *parts in zip(kinds, *cells, strict=True)]
    for row in reversed(range(len(block.groups))):
        if block.groups[row] not in {"", *block.groups[max(row - 1, 0) : row]}:
            group = f'<th scope="rowgroup" class="label" colspan="{len(columns)}">{escape(block.groups[row])}</th>'
            body_rows.insert(row, f'<tr class="selected">{group}</tr>')
    rows = "\n".join(body_rows)
    aria_label = escape(label or block.title or block.name)
    caption_html = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{aria_label}" data-table="{escape(block.name)}">\n'
        f"<table{_class(kind)}>\n"
        f"{caption_html}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows or empty_row}\n</tbody>\n</table>\n</div>"
    )


class _Markup(str):
    """HTML that is inserted unescaped."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def _with_drawing(column: Column) -> Iterator[Column]:
    """Yield a column, and a column of drawings of its numbers if it has an axis; write its statuses as labels."""
    if (axis := column.axis) is None and not column.statuses:
        yield column
        return
    neutral: list[Status] = ["info"] * len(column.values)
    statuses = column.statuses or neutral
    if axis is None:
        labels = [chip(status, text) if text else "" for status, text in zip(statuses, column.values, strict=True)]
        yield replace(column, values=list(map(_Markup, labels)), show=_LABEL, statuses=())
        return
    yield replace(column, ci=None)
    intervals = column.ci or [None] * len(column.values)
    rows = zip(column.values, intervals, statuses, strict=True)
    drawings = [_Markup(interval_svg(value, ci, axis, status, stem=not column.ci)) for value, ci, status in rows]
    yield Column(f"{column.name}_drawing", drawings, _LABEL, axis.title, kinds=["drawing"] * len(drawings))


def _heading_cell(text: str, link: tuple[str, str] | None, is_left: bool) -> str:
    kinds = _class("label" * is_left)
    if not text:
        return "<td></td>"
    # A name may be broken after an underscore; a long name is shortened instead.
    name = name_html(text) if _is_long_name(text) else name_html(text).replace("_", "_<wbr>")
    if link is None:
        return f'<th scope="col"{kinds}>{name}</th>'
    address, order = link
    arrow = {"ascending": "\N{UPWARDS ARROW}", "descending": "\N{DOWNWARDS ARROW}"}.get(order, "")
    aria_sort = f' aria-sort="{order}"' if order else ""
    arrow = f'<span class="arrow" aria-hidden="true">{arrow}</span>'
    return f'<th scope="col"{kinds}{aria_sort}><a href="{escape(address)}">{name}{arrow}</a></th>'


def _cells(column: Column, *, is_left: bool, is_name: bool, is_selected: Sequence[bool]) -> list[str]:
    """Render the cells of a column; values with an `__html__` method are inserted unescaped."""
    texts = column.cells()
    is_long = any(
        len(text) >= _LONG_TEXT
        and not isinstance(text, Cell)
        and not hasattr(value, "__html__")
        and not _is_long_name(text)
        for text, value in zip(texts, column.values, strict=True)
    )
    start, end = ('<th scope="row"', "</th>") if is_name else ("<td", "</td>")
    cells: list[str] = []
    for row, (text, value) in enumerate(zip(texts, column.values, strict=True)):
        cell = text if isinstance(text, Cell) else Cell(text)
        number, detail = cell.number, cell.detail
        if not isinstance(value, str):
            number, detail = printed(number, column.show.type), printed(detail)
        markup = getattr(value, "__html__", None)
        if markup:
            content = str(markup())
        elif is_left and isinstance(value, str) and number:
            content = name_html(number, "" if number == value else value)
        else:
            content = escape(number)
        content = f"<b>{content}</b>" if cell.best else content
        content += f"<sup>{escape(cell.mark)}</sup>" if cell.mark else ""
        content += f' <span class="secondary">{escape(detail)}</span>' if detail else ""
        if column.links and (link := column.links[row]):
            content = f'<a href="{escape(link)}"{_CURRENT * is_selected[row]}>{content}</a>'
        kinds = _class("label" * is_left, "long" * is_long, column.kinds[row] if column.kinds else "")
        cells.append(f"{start}{kinds}>{content}{end}")
    return cells


def _class(*kinds: str) -> str:
    name_html = " ".join(kind for kind in kinds if kind)
    return f' class="{name_html}"' if name_html else ""
