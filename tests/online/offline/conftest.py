"""Fixtures of the tests of judgments against user behavior."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def clicked_outcome_from_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the outcome clicked directly from events, because page facts take a second and are tested elsewhere."""

    def read_clicked(log: Any, selected: Any, seconds: float) -> Any:
        assert {outcome.name for outcome in selected} == {"clicked"}
        assert seconds == 30
        clicked = f"SELECT serp FROM {log.event} WHERE action = 'click' AND serp IS NOT NULL"
        return log.engine.query(
            f"SELECT serp, CAST(CASE WHEN serp IN ({clicked}) THEN 1 ELSE 0 END AS DOUBLE) AS outcome_0 FROM {log.serp}"
        )

    monkeypatch.setattr("judged.online.offline.outcome_prediction.page_outcomes", read_clicked)
