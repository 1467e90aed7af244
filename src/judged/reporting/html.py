"""A report as one page of HTML that fetches nothing. Every text is escaped where it becomes markup."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from string import Template
from typing import TYPE_CHECKING, Any, assert_never

from judged.charting import library, resource, specification
from judged.errors import MissingExtraError
from judged.reporting.content import Chart, Notes, Numbers, SideBySide
from judged.tables import Cell, isolated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.reporting.content import Item, PageContent, Part, Ranking, Section
    from judged.tables import Table

_LONG = 34  # characters: a text of a table from here on gets room to wrap in
_FEW, _LEAD = 3, 2  # sentences of a section: so many are paragraphs; of more, the first ones
_CODE = re.compile(r"`([^`]+)`")
_EXPORT = re.compile(r"^export (?:default )?", re.MULTILINE)
_UNSAFE = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}


def page(report: PageContent) -> str:
    """Write the page; without altair or vl-convert it has no charts, and a note that says how to get them."""
    try:
        specs = {chart.name: _untitled(chart) for chart in report.charts}
        drawing = library() if specs else ""
        lacking = ""
    except MissingExtraError as error:
        specs, drawing, lacking = {}, "", str(error)
    template = Template(_resource("page.html"))
    sections = "\n".join(_section(section, specs) for section in report.sections)
    note = f'<p class="note">The charts are left out: {escape(lacking)}</p>\n' if lacking else ""
    made = template.substitute(
        title=escape(report.title),
        style="\n".join([resource("look.css"), _resource("style.css"), resource("charts.css")]).strip(),
        facts=escape(" · ".join(report.facts)),
        contents="\n".join(
            f'<li><a href="#{escape(section.name)}">{escape(section.title)}</a></li>' for section in report.sections
        ),
        sections=note + sections,
        scripts="\n".join(_scripts(specs, drawing)),
    )
    return isolated(made)


def undrawn() -> tuple[str, ...]:
    """Say why a page has no charts, for whoever writes it; nothing where it has them."""
    needed = {"altair": "altair", "vl_convert": "vl-convert-python"}
    lacking = [name for module, name in needed.items() if find_spec(module) is None]
    return tuple(f"the charts are left out of the page: {MissingExtraError(name, 'plots')}" for name in lacking[:1])


def _untitled(chart: Chart) -> dict[str, Any]:
    """Give a chart without a title of its own: the figure has one."""
    made = specification(chart.draw())
    return {key: value for key, value in made.items() if key != "title"}


def in_script(value: Any) -> str:
    r"""Write a value as JSON that can stand in a script element, whatever its texts are.

    >>> in_script("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    made = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return "".join(_UNSAFE.get(char, char) for char in made)


def _scripts(specs: dict[str, Any], drawing: str) -> Iterator[str]:
    """Give the scripts: data, what draws them, and ours."""
    if specs:
        yield f'<script type="application/json" id="charts">{in_script(specs)}</script>'
        yield f"<script>(()=>{{{drawing}}})();</script>"
    yield f"<script>\n{_inlined(resource('drawing.js'))}\n{_resource('page.js').strip()}\n</script>"


def _inlined(module: str) -> str:
    """Make a part of a script out of a module: what it exports is known by its name all the same."""
    return _EXPORT.sub("", module).strip()


def _resource(name: str) -> str:
    return files("judged.answer").joinpath(name).read_text(encoding="utf-8")


def _prose(text: str) -> str:
    """Escape a sentence; what stands in backticks becomes code.

    >>> _prose("`a<b` is < c")
    '<code>a&lt;b</code> is &lt; c'
    """
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _said(sentences: tuple[str, ...]) -> str:
    """Write a few sentences as paragraphs, and the rest of many as a list to go through."""
    many = len(sentences) > _FEW
    lead = "\n".join(f"<p>{_prose(one)}</p>" for one in (sentences[:_LEAD] if many else sentences))
    rest = "\n".join(f"<li>{_prose(one)}</li>" for one in sentences[_LEAD:]) if many else ""
    return f'{lead}\n<ul class="notes">\n{rest}\n</ul>' if rest else lead


def _section(section: Section, specs: dict[str, Any]) -> str:
    name = escape(section.name)
    said = "\n".join(f"<p>{_prose(one)}</p>" for one in section.sentences)
    if section.name != "summary":
        said = _said(section.sentences)
    parts = "\n".join(_part(part, specs) for part in section.parts)
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">\n<h2 id="{name}-title">{escape(section.title)}</h2>\n'
        f"{said}\n{parts}\n</section>"
    )


def _part(part: Part, specs: dict[str, Any]) -> str:
    match part:
        case Numbers():
            return _numbers(part)
        case Chart():
            return _chart(part, drawn=part.name in specs)
        case SideBySide():
            said = "\n".join(f"<p>{_prose(one)}</p>" for one in part.sentences)
            lists = "\n".join(_ranking(one) for one in part.rankings)
            title = f"<h3>{escape(part.title)}</h3>"
            return f'<div class="topic">\n{title}\n{said}\n<div class="lists">\n{lists}\n</div>\n</div>'
        case Notes():
            return _notes(part)
        case _:
            assert_never(part)


def _numbers(part: Numbers) -> str:
    note = f'\n<p class="note">{_prose(part.note)}.</p>' if part.note else ""
    if part.folded:
        inner = f"{_table(part.table, part.title)}{note}"
        return f"<details>\n<summary>{escape(part.title)}</summary>\n{inner}\n</details>"
    return f"<h3>{escape(part.title)}</h3>\n{_table(part.table, part.title)}{note}"


def _chart(part: Chart, *, drawn: bool) -> str:
    """Write a figure: what it shows in words, the place of the drawing, and the numbers to unfold."""
    # Where nothing is drawn the numbers stand open, and nothing speaks of a chart.
    name, title, sentence = escape(part.name), escape(part.title), escape(part.sentence)
    table = _table(part.table, part.title)
    shown = table
    if drawn:
        shown = (
            f'<div class="chart" data-chart="{name}" role="img" aria-label="{sentence}"></div>\n'
            f"<details>\n<summary>The numbers of this chart</summary>\n{table}\n</details>"
        )
    said = f"<figcaption><h3>{title}</h3><p>{_prose(part.sentence)}</p></figcaption>"
    return f'<figure id="chart-{name}">\n{said}\n{shown}\n</figure>'


def _notes(part: Notes) -> str:
    title = f"<h3>{escape(part.title)}</h3>\n"
    if part.code:
        return title + "\n".join(f"<pre><code>{escape(text)}</code></pre>" for text in part.texts)
    listed = "\n".join(f"<li>{_prose(text)}</li>" for text in part.texts)
    inner = f'<ul class="notes">\n{listed}\n</ul>'
    if part.folded:
        return f"<details>\n<summary>{escape(part.title)}</summary>\n{inner}\n</details>"
    return title + inner


def _ranking(one: Ranking) -> str:
    said = f"<p>{escape(one.sentence)}</p>\n" if one.sentence else ""
    listed = "\n".join(_item(item) for item in one.items)
    return f'<div class="ranking">\n<h4>{escape(one.name)}</h4>\n{said}<ol>\n{listed}\n</ol>\n</div>'


def _item(item: Item) -> str:
    kind = {True: "yes", False: "no", None: "unknown"}[item.relevant]
    change = f'<span class="change">{escape(item.change)}</span>'
    text = f'<span class="text">{escape(item.text)}</span>' if item.text else ""
    grade = escape(item.grade) if item.grade else "unjudged"
    return (
        f'<li class="{kind}"><span class="rank">{escape(item.rank)}</span><span class="grade">{grade}</span>'
        f'<span class="doc">{escape(item.doc_id)}{text}</span>{change}</li>'
    )


def _table(table: Table, title: str) -> str:
    """Write a table that scrolls by itself where it is too wide, also by keyboard."""
    head = "".join(f'<th scope="col"{_label(at, table)}>{escape(name)}</th>' for at, name in enumerate(table.header))
    body = "\n".join(
        "<tr>" + "".join(_cell(cell, at, table) for at, cell in enumerate(row)) + "</tr>" for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(title)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _label(at: int, table: Table) -> str:
    return ' class="label"' if at < table.labels else ""


def _cell(cell: str, at: int, table: Table) -> str:
    """Write a cell; the first one that says something names its row."""
    naming = 1 if table.labels > 1 and not table.header[0] else 0
    kinds = ["label"] if at < table.labels else []
    kinds += ["long"] if len(cell) >= _LONG and not isinstance(cell, Cell) else []
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    if at == naming:
        return f'<th scope="row"{kind}>{escape(cell)}</th>'
    return f"<td{kind}>{_written(cell) if isinstance(cell, Cell) else escape(cell)}</td>"


def _written(cell: Cell) -> str:
    number = f"<b>{escape(cell.number)}</b>" if cell.best else escape(cell.number)
    raised = f"<sup>{escape(cell.mark)}</sup>" if cell.mark else ""
    rest = f' <span class="rest">{escape(cell.rest)}</span>' if cell.rest else ""
    return number + raised + rest
