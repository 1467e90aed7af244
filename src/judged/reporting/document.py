"""A report as plain Python values: its sections as they are read, and every result in full precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from judged.evaluation import Scores
from judged.reporting.content import Chart, Notes, Numbers, SideBySide

if TYPE_CHECKING:
    from judged.reporting.content import Part, ReportContent
    from judged.tables import Table


def document(report: ReportContent) -> dict[str, Any]:
    """Lay out a report; the numbers of its tables are those of the page."""
    return {
        "judged": report.scores.versions.get("judged", ""),
        "title": report.title,
        "facts": list(report.facts),
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "sentences": list(section.sentences),
                "parts": [_part(part) for part in section.parts],
            }
            for section in report.sections
        ],
        "warnings": list(report.warnings),
        "command": report.command,
        "results": {name: _plain(result, report.seed) for name, result in report.results.items()},
    }


def _plain(result: Any, seed: int) -> Any:
    return result.to_dict(seed=seed) if isinstance(result, Scores) else result.to_dict()


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Numbers():
            return {"kind": "table", "title": part.title, **_table(part.table), "note": part.note}
        case Chart():
            made = {"kind": "chart", "name": part.name, "title": part.title, "sentence": part.sentence}
            return made | _table(part.table)
        case SideBySide():
            rankings = [
                {"name": one.name, "sentence": one.sentence, "documents": [dict(vars(item)) for item in one.items]}
                for one in part.rankings
            ]
            return {
                "kind": "lists",
                "title": part.title,
                "sentences": list(part.sentences),
                "lists": rankings,
            }
        case Notes():
            return {"kind": "notes", "title": part.title, "texts": list(part.texts)}
        case _:
            assert_never(part)


def _table(table: Table) -> dict[str, Any]:
    return {"header": list(table.header), "rows": [[str(cell) for cell in row] for row in table.rows]}
