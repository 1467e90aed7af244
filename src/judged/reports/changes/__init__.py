"""Reviews of changes: questions about a baseline and a candidate, answered from all available data."""

from __future__ import annotations

from judged.reports.changes.sheet import Change, review

__all__ = ["Change", "review"]
