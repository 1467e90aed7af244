"""One report out of everything: what was evaluated, what is best, where it fails, and how that was computed."""

from judged.reports.answer import Report
from judged.reports.report import report

__all__ = ["Report", "report"]
