from __future__ import annotations

from typing import Any


def test_a_page_that_is_not_there(serve: Any, tab: Any, sample: Any) -> None:
    view = tab(f"{serve(sample)}/nowhere")
    assert view.page.locator("h1").inner_text() == "Not Found"
    assert "there is no page /nowhere." in view.page.locator("main").inner_text()
    assert view.faults == ["Failed to load resource: the server responded with a status of 404 (Not Found)"]
    assert view.foreign == []
    view.accessible()
    view.fits()
