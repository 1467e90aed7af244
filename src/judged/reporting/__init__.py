"""One report out of everything: what was evaluated, what is best, where it fails, and how that was computed."""

from judged.reporting.making import report
from judged.reporting.result import Report

__all__ = ["Report", "report"]
