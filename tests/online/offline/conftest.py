"""What the tests of judgments against users share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def clicked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take whether a page was clicked from its events: the facts of pages are tested elsewhere, and cost a second."""

    def outcomes(log: Any, asked: Any, seconds: float) -> Any:
        assert {one.name for one in asked} == {"clicked"}
        assert seconds == 30
        opened = log.event.filter(log.event.action == "click").group_by("serp").agg(n=lambda event: event.count())
        pages = log.serp.select("serp").left_join(opened, "serp")
        return pages.select("serp", outcome_0=(pages.n.fill_null(0) > 0).ifelse(1.0, 0.0))

    monkeypatch.setattr("judged.online.offline.making.page_outcomes", outcomes)
