from __future__ import annotations

from typing import Any


def test_a_page_that_is_not_there(serve: Any, tab: Any, sample: Any) -> None:
    shown = tab(f"{serve(sample)}/nowhere")
    assert shown.page.locator("h1").inner_text() == "Not Found"
    assert "there is no page /nowhere." in shown.page.locator("main").inner_text()
    assert shown.faults == ["Failed to load resource: the server responded with a status of 404 (Not Found)"]
    assert shown.foreign == []
    shown.accessible()
    shown.fits()
