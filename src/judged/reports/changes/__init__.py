"""The review of a change: one sheet for a baseline and a candidate, from whatever is known of them."""

from __future__ import annotations

from judged.reports.changes.sheet import Change, review

__all__ = ["Change", "review"]
