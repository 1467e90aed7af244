"""docs/install.md names what the package declares, and nothing else as the base install; sizes are of their day."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## What is installed")[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements} - {"judged"}


def test_the_base_install_is_what_it_is_said_to_be() -> None:
    rows = re.findall(r"^\| ([\w-]+) \| [\d.]+ \|", PAGE, re.MULTILINE)
    assert set(rows) == names(PROJECT["dependencies"]) | {"judged"}


def test_each_extra_names_its_packages() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [\d.]+ \| (.*) \|$", PAGE, re.MULTILINE))
    assert list(rows) == list(PROJECT["optional-dependencies"])
    for extra, requirements in PROJECT["optional-dependencies"].items():
        assert names(requirements) <= set(rows[extra].split(", ")), extra
