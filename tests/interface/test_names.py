"""The index of names: everyday queries find what they mean, on the command line and in the workbench."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from judged.scoring.names import find_names, name_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

with (Path(__file__).parent / "name_queries.tsv").open(encoding="utf-8") as file:
    QUERIES = [(row["query"], row["kind"], row["name"]) for row in csv.DictReader(file, delimiter="\t")]


@pytest.mark.parametrize(("query", "kind", "name"), QUERIES)
def test_the_first_hit_is_the_expected_one(query: str, kind: str, name: str) -> None:
    assert find_names(query, name_index())[0][:2] == (kind, name)


def test_every_name_finds_its_entry() -> None:
    for entry in name_index():
        assert entry.name in [match.name for match in find_names(entry.name, name_index())[:3]], entry


def test_the_command_line_uses_the_index(run: Callable[..., Ended]) -> None:
    ended = run("measures", "click through rate")
    assert (ended.code, "PageCTR" in ended.lines[1]) == (0, True)
    assert run("measures", "mean average precision").lines[1].split()[:2] == ["measure", "AP"]
    assert run("measures", "nothing is called so").code == 2
    assert "judged compare" in run("significance").err
