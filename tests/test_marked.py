"""The paths of marks: a file that is renamed or gone takes its name with it."""

from pathlib import Path

import pytest

from marked import ORACLE, SLOW, is_left_out


@pytest.mark.parametrize("path", SLOW + ORACLE)
def test_there_is_a_test_that_begins_so(path: str) -> None:
    assert list(Path(__file__).parent.glob(f"{path}*")), "take it out of tests/marked.py, or write its new name"


@pytest.mark.parametrize(
    ("path", "expression", "expected"),
    [
        ("labels/test_store.py", "not slow and not browser and not oracle", True),
        ("labels/", "not slow", True),
        ("labels/test_store.py", "", False),
        ("labels/test_store.py", "slow", False),
        ("labels/test_store.py", "not oracle", False),
        ("labels/test_store.py", "not slow or browser", False),
        ("oracle/test_gdeval.py", "not slow and not oracle", True),
        ("data/", "not slow", False),
        ("stats/", "not slow", False),
        ("stats/test_agreement.py", "not slow", True),
        ("docs/test_dl19_page.py", "not page", True),
        ("docs/test_dl19_page.py", "page", False),
        ("docs/test_site.py", "not page", False),
    ],
)
def test_a_file_is_left_out_if_all_its_tests_are(path: str, expression: str, expected: bool) -> None:
    assert is_left_out(path, expression) is expected
