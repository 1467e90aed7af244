"""docs/calibrated-judges.md says what the model judges of DL19 give."""

from __future__ import annotations

import calibrated_judges

from shared_data import SHARED, needs_shared


@needs_shared
def test_the_page_is_up_to_date() -> None:
    page = calibrated_judges.PAGE.read_text(encoding="utf-8")
    assert calibrated_judges.page(SHARED) == page, "run tools/calibrated_judges.py"
