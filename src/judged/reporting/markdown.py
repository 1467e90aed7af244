"""A report as Markdown, and its summary for a terminal. Text from files cannot become markup."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, assert_never

from judged.reporting.content import Chart, Notes, Numbers, SideBySide
from judged.tables import Cell, Table

if TYPE_CHECKING:
    from judged.reporting.content import Part, Ranking, ReportContent, Section

_WIDTH = 100
_ACTIVE = re.compile(r"([\\`*\[\]<>&~]|(?<!\w)_|_(?!\w))")
_CODE = re.compile(r"(`[^`\r\n]+`)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_START = re.compile(r"^(\s*(?:\d+(?=[.)]\s))?)([#+.)-])(?=[\s#]|$)")
_LINES = re.compile(r"[\r\n\v\f\x85\u2028\u2029]+")


def written(report: ReportContent) -> str:
    """Write the whole report."""
    blocks = [f"# {escaped(report.title)}", escaped(" · ".join(report.facts))]
    for section in report.sections:
        blocks += _section(section)
    return "\n\n".join(block for block in blocks if block)


def prose(text: str) -> str:
    r"""Escape a sentence; what stands in backticks stays code, in which nothing is active.

    >>> print(prose("`a*b` is *not* c"))
    `a*b` is \*not\* c
    """
    return "".join(part if at % 2 else escaped(part) for at, part in enumerate(_CODE.split(text)))


def escaped(text: str) -> str:
    r"""Write a text so that Markdown shows its characters as they are.

    >>> print(escaped("<b> & a_b *c* _d_"))
    &lt;b&gt; &amp; a_b \*c\* \_d\_
    """
    flat = _LINES.sub(" ", text)
    made = _ACTIVE.sub(lambda found: _NAMED.get(found[0], "\\" + found[0]), flat)
    return _START.sub(r"\1\\\2", made)


def _section(section: Section) -> list[str]:
    blocks = [f"## {escaped(section.title)}"]
    if section.name == "summary":
        blocks.append("\n".join(f"- {prose(one)}" for one in section.sentences))
    else:
        blocks += [prose(one) for one in section.sentences]
    for part in section.parts:
        blocks += _part(part)
    return blocks


def _part(part: Part) -> list[str]:
    match part:
        case Numbers():
            note = prose(part.note)
            return [f"### {escaped(part.title)}", _table(part.table), note and f"{note.rstrip('.')}."]
        case Chart():
            return [f"### {escaped(part.title)}", prose(part.sentence), _table(part.table)]
        case SideBySide():
            lists = [block for one in part.rankings for block in _ranking(one)]
            return [f"### {escaped(part.title)}", *(prose(one) for one in part.sentences), *lists]
        case Notes():
            if part.code:
                return [f"### {escaped(part.title)}", *(_code(text) for text in part.texts)]
            return [f"### {escaped(part.title)}", "\n".join(f"- {prose(text)}" for text in part.texts)]
        case _:
            assert_never(part)


def _ranking(one: Ranking) -> list[str]:
    texts = any(item.text for item in one.items)
    header = ("rank", "grade", "document", "other list", *(("text",) if texts else ()))
    rows = tuple(
        (item.rank, item.grade or "-", item.doc_id, item.change, *((item.text,) if texts else ())) for item in one.items
    )
    return [
        f"**{escaped(one.name)}** {escaped(one.sentence)}".rstrip(),
        _table(Table(header, rows, labels=len(header))),
    ]


def _table(table: Table) -> str:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    return Table(tuple(escaped(name) for name in table.header), rows, table.labels).markdown()


def _cell(cell: str) -> str:
    if isinstance(cell, Cell):
        return Cell(escaped(cell.number), rest=escaped(cell.rest), mark=escaped(cell.mark), best=cell.best)
    return escaped(cell)


def _code(text: str) -> str:
    """Fence a text by more backticks than stand in it."""
    most = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, most + 1)
    return f"{fence}sh\n{text}\n{fence}"


def summary(report: ReportContent, width: int | None) -> str:
    """Write the summary and the leaderboard for a terminal."""
    wide = min(width or _WIDTH, _WIDTH)
    said = "\n".join(textwrap.fill(one, wide, break_long_words=False) for one in report.sentences)
    warned = "\n".join(f"warning: {text}" for text in report.warnings)
    return "\n\n".join(block for block in (report.title, said, report.table().text(width=width), warned) if block)
