"""The paths of marks: a file that is renamed or gone takes its name with it."""

from pathlib import Path

import pytest

from marked import ORACLE, SLOW


@pytest.mark.parametrize("path", SLOW + ORACLE)
def test_there_is_a_test_that_begins_so(path: str) -> None:
    assert list(Path(__file__).parent.glob(f"{path}*")), "take it out of tests/marked.py, or write its new name"
