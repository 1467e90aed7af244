"""Reports in files: a page, Markdown, JSON, or a folder of charts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from judged.answer.by_name import form_by_name
from judged.atomic import replaced, unwritten
from judged.charting import PICTURES, save_chart
from judged.errors import InputError
from judged.reporting import document, html, markdown

if TYPE_CHECKING:
    from judged.reporting.content import ReportContent

FORMS = ("html", "markdown", "json")
SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json"}


def save(report: ReportContent, path: str | Path, form: str | None) -> None:
    """Write a report; an existing file is replaced only when the new one is complete."""
    made = written(report, form or form_of(path))
    with replaced(path) as temporary:
        temporary.write_text(made, encoding="utf-8", errors="backslashreplace")


def form_of(path: str | Path) -> str:
    """Tell what a file is to become by the end of its name."""
    return form_by_name(path, SUFFIXES, "a report")


def written(report: ReportContent, form: str) -> str:
    """Give a report in one of its forms."""
    if form == "html":
        return html.page(report)
    if form == "markdown":
        return markdown.written(report) + "\n"
    if form == "json":
        return json.dumps(document.document(report), indent=2, ensure_ascii=False) + "\n"
    raise InputError(f"no form {form!r} of a report is known", fix=f"one of {', '.join(FORMS)}")


def save_charts(report: ReportContent, folder: str | Path, form: str) -> tuple[Path, ...]:
    """Write every chart under its own name."""
    if form not in PICTURES:
        raise InputError(f"no form {form!r} of a chart is known", fix=f"one of {', '.join(PICTURES)}")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        unwritten(folder, error)
    files = [target / f"{chart.name}.{form}" for chart in report.charts]
    for chart, file in zip(report.charts, files, strict=True):
        save_chart(chart.draw(), file, form, chart.title)
    return tuple(files)
