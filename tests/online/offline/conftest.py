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
        clicked = f"SELECT serp FROM {log.event} WHERE action = 'click' AND serp IS NOT NULL"
        return log.engine.query(
            f"SELECT serp, CAST(CASE WHEN serp IN ({clicked}) THEN 1 ELSE 0 END AS DOUBLE) AS outcome_0 FROM {log.serp}"
        )

    monkeypatch.setattr("judged.online.offline.against.page_outcomes", outcomes)
