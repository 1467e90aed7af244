"""What docs/click-models.md says of a real log is what the code makes of it."""

from __future__ import annotations

from pathlib import Path

from judged.online.clicks import compare_models
from online.offline.page_logs import log_of, session_2012
from shared_data import SHARED, needs_shared

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "click-models.md").read_text().split())


@needs_shared
def test_the_sessions_of_2012_are_as_the_page_says() -> None:
    has = frozenset({"shown", "clicks", "ranks", "unclicked"})
    log = log_of(session_2012(SHARED / "logs"), has=has)
    found = compare_models(log, unit="session")
    rows = {row.model: row for row in found.rows}
    assert f"({found.pages} pages of {found.units} sessions" in PAGE
    assert (found.rows[0].model, found.selected) == ("DBN", "RCTR")
    assert f"({rows['DBN'].loglik:.3f} nats a page)" in PAGE
    ranks, documents = rows["RCTR"].difference, rows["DCTR"].difference
    assert f"(difference {ranks.value:.3f} [{ranks.low:.3f}, {ranks.high:+.3f}])" in PAGE
    assert f"(DCTR, {documents.value:.3f} [{documents.low:.3f}, {documents.high:.3f}])" in PAGE
    assert f"{rows['CM'].impossible} pages are impossible for CM" in PAGE
    assert [name for name, _ in found.refused] == ["UBM"]
    assert "9 of 55 positions" in dict(found.refused)["UBM"]
    assert "9 of its 55 positions are not connected" in PAGE
    by_text = compare_models(log, ["PBM", "RCTR"], by="query_norm", unit="session")
    assert [name for name, _ in by_text.refused] == ["PBM"]
