"""Counts with their words."""

from __future__ import annotations


def counted(count: int, one: str, several: str | None = None) -> str:
    """Write a count with its word.

    >>> counted(1, "run"), counted(9260, "judgment"), counted(2, "query", "queries")
    ('1 run', '9,260 judgments', '2 queries')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"
