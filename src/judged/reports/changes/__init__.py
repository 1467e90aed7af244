"""Reviews of changes: questions about a baseline and a candidate, answered from all available data."""

from __future__ import annotations

from judged.reports.changes.rollback import RollbackDecision, decide_rollback
from judged.reports.changes.sheet import Change, review

__all__ = ["Change", "RollbackDecision", "decide_rollback", "review"]
