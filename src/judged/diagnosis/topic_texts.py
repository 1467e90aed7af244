"""Texts of topics, from whatever holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judged.data.topics import Topics


def topics_of(given: Any) -> Topics:
    """Take `Topics`, a path, a data frame, or ``{query_id: text}``.

    >>> topics_of({"1": "income tax"}).text("1")
    'income tax'
    """
    if isinstance(given, Topics):
        return given
    return Topics.read(given) if isinstance(given, (str, Path)) else Topics.of(given)
