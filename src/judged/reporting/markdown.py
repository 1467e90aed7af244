"""A report as Markdown, and its summary for a terminal. Text from files cannot become markup."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, assert_never

from judged.reporting.content import Chart, Notes, Numbers, SideBySide
from judged.tables import Table, markdown_list, markdown_prose, markdown_text, visible

if TYPE_CHECKING:
    from judged.reporting.content import Part, Ranking, ReportContent, Section

_WIDTH = 100


def written(report: ReportContent) -> str:
    """Write the whole report."""
    blocks = [f"# {markdown_text(report.title)}", markdown_text(" · ".join(report.facts))]
    for section in report.sections:
        blocks += _section(section)
    return "\n\n".join(block for block in blocks if block)


def _section(section: Section) -> list[str]:
    blocks = [f"## {markdown_text(section.title)}"]
    if section.name == "summary":
        blocks.append(markdown_list(section.sentences))
    else:
        blocks += map(markdown_prose, section.sentences)
    for part in section.parts:
        blocks += _part(part)
    return blocks


def _part(part: Part) -> list[str]:
    match part:
        case Numbers():
            note = markdown_prose(part.note)
            return [f"### {markdown_text(part.title)}", part.table.markdown(), note and f"{note.rstrip('.')}."]
        case Chart():
            return [f"### {markdown_text(part.title)}", markdown_prose(part.sentence), part.table.markdown()]
        case SideBySide():
            lists = [block for one in part.rankings for block in _ranking(one)]
            return [f"### {markdown_text(part.title)}", *(markdown_prose(one) for one in part.sentences), *lists]
        case Notes():
            if part.code:
                return [f"### {markdown_text(part.title)}", *(_code(text) for text in part.texts)]
            return [f"### {markdown_text(part.title)}", markdown_list(part.texts)]
        case _:
            assert_never(part)


def _ranking(one: Ranking) -> list[str]:
    texts = any(item.text for item in one.items)
    header = ("rank", "grade", "document", "other list", *(("text",) if texts else ()))
    rows = tuple(
        (item.rank, item.grade or "-", item.doc_id, item.change, *((item.text,) if texts else ())) for item in one.items
    )
    return [
        f"**{markdown_text(one.name)}** {markdown_text(one.sentence)}".rstrip(),
        Table(header, rows, labels=len(header)).markdown(),
    ]


def _code(text: str) -> str:
    """Fence a text by more backticks than stand in it."""
    most = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, most + 1)
    shown = "\n".join(map(visible, text.split("\n")))
    return f"{fence}sh\n{shown}\n{fence}"


def summary(report: ReportContent, width: int | None) -> str:
    """Write the summary and the leaderboard for a terminal."""
    wide = min(width or _WIDTH, _WIDTH)
    said = "\n".join(textwrap.fill(one, wide, break_long_words=False) for one in report.sentences)
    warned = "\n".join(f"warning: {text}" for text in report.warnings)
    return "\n\n".join(block for block in (report.title, said, report.table().text(width=width), warned) if block)
