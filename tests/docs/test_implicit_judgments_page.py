"""docs/implicit-judgments.md says what the logs of TREC and the sample give."""

from __future__ import annotations

import implicit_judgments

from shared_data import SHARED, agree, needs_shared


@needs_shared
def test_the_page_is_up_to_date() -> None:
    page = implicit_judgments.PAGE.read_text(encoding="utf-8")
    assert agree(implicit_judgments.page(SHARED), page, 0.03), "run tools/implicit_judgments.py"
