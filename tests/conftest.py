"""Add shared modules to the path, and make the examples of hypothesis reproducible."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "tools"))  # the simulations of docs/calibration.md

from browsing import chromium
from command_line import run  # noqa: F401  a fixture
from marked import is_left_out, marks_of
from workbench import sample, serve, tab  # noqa: F401  fixtures

# One browser per worker, because two would need separate event loops.
browser = pytest.fixture(scope="session")(chromium)

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=100, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


def pytest_make_parametrize_id(val: object) -> str | None:
    """Return a fixed name for bytes: compressed bytes contain the time, and parallel workers need equal test names."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files without selected tests, because imports take longer than many tests."""
    path = collection_path.relative_to(Path(__file__).parent).as_posix()
    if "/pages/" in f"/{path}/" and find_spec("judged.web") is None:  # the workbench shows them
        return True
    return is_left_out(f"{path}/" if collection_path.is_dir() else path, config.option.markexpr) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in marks_of(item):
            item.add_marker(mark)
