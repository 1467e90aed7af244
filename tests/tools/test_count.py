from pathlib import Path

import count
import pytest


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree of three packages and a module, one of them named `online`."""
    for folder in ("first", "online", "online/deep", "third"):
        (tmp_path / folder).mkdir()
    (tmp_path / "module.py").write_text("x = 1\n")
    (tmp_path / "first/a.py").write_text('"""Docstring\nof two lines."""\n\nx = 1  # with a comment\n# comment\n')
    (tmp_path / "online/b.py").write_text("x = (\n    1,\n)\n")
    (tmp_path / "online/deep/c.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "third/d.py").write_text("\n\n")
    return tmp_path


def test_lines_are_counted_by_package(tree: Path) -> None:
    expected = {
        "(top)": (1, 0, 0, 0, 1),
        "first": (1, 2, 1, 1, 1),
        "online": (5, 0, 0, 0, 2),
        "third": (0, 0, 0, 2, 1),
        "total": (7, 2, 1, 3, 5),
    }
    packages = count.by_package(tree)
    assert {
        name: tuple(counts[column] for column in count.COLUMNS[:-1]) for name, counts in packages.items()
    } == expected


def test_the_total_is_the_sum_of_all_packages(tree: Path) -> None:
    packages = count.by_package(tree)
    total = packages.pop("total")
    assert all(sum(counts[column] for counts in packages.values()) == total[column] for column in count.COLUMNS)
    assert total["characters"] == 5 + 5 + (5 + 2 + 1) + 5 + 5
