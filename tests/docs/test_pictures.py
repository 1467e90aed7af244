"""The pictures of the documentation show the workbench as it is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import screenshots


@pytest.mark.page
@pytest.mark.browser
def test_pictures_are_current_and_another_page_is_noticed(browser: Any, tmp_path: Path) -> None:
    for name in screenshots.IN_DOCS:
        source = "matrix" if name == "measure" else name
        shutil.copy(screenshots.IMAGES / f"{source}.png", tmp_path / f"{name}.png")
    outdated = screenshots.outdated_pictures(browser, tmp_path)
    assert [line.partition(":")[0] for line in outdated] == ["measure.png"], "run tools/screenshots.py"
