"""What templates become is kept for the next start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from judged.interface.pages import answers
from judged.interface.pages.answers import TemplateCache
from judged.results.files import cache_folder


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the templates that are compiled."""
    names: list[str] = []
    compile_as_usual = Environment.compile

    def noted(self: Environment, source: str, name: str, *arguments: Any, **keywords: Any) -> Any:
        names.append(name)
        return compile_as_usual(self, source, name, *arguments, **keywords)

    monkeypatch.setattr(Environment, "compile", noted)
    return names


def started(folder: Path, source: str = "a {{ b }}") -> str:
    """Lay out a page as a process does that has just begun."""
    environment = Environment(
        loader=DictLoader({"page": source}), bytecode_cache=TemplateCache(str(folder)), autoescape=True
    )
    return environment.get_template("page").render(b="c")


def test_a_template_is_compiled_at_the_first_start_alone(compiled: list[str], tmp_path: Path) -> None:
    assert [started(tmp_path), started(tmp_path), compiled] == ["a c", "a c", ["page"]]


def test_another_template_or_file_beside_it_is_compiled_anew(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started(tmp_path)
    assert started(tmp_path, "d {{ b }}") == "d c"
    monkeypatch.setattr(answers, "VERSION", "/files-of-another-version")  # which stands in what was compiled
    started(tmp_path, "d {{ b }}")
    assert compiled == ["page"] * 3
    assert len(list(tmp_path.iterdir())) == 1  # old ones do not stay


def test_damaged_ones_are_compiled_anew(compiled: list[str], tmp_path: Path) -> None:
    started(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert [started(tmp_path), compiled] == ["a c", ["page"] * 2]


def test_pages_are_laid_out_where_nothing_can_be_kept(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [started(tmp_path / "gone"), compiled] == ["a c", ["page"]]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
    assert cache_folder() == tmp_path / "new" / "judged"
