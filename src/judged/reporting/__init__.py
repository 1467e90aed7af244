"""One report out of everything: what was evaluated, what is best, where it fails, and how that was computed."""

from judged.reporting.content import Chart, Item, Notes, Numbers, Part, Ranking, Section, SideBySide
from judged.reporting.making import report
from judged.reporting.result import Report

__all__ = [
    "Chart",
    "Item",
    "Notes",
    "Numbers",
    "Part",
    "Ranking",
    "Report",
    "Section",
    "SideBySide",
    "report",
]
