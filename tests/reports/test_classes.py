"""Section of a report on classes of topics that have their own measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from judged import InputError, evaluate, slice_topics
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.reports.commands import report_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from judged.reports import Report

OWN = {"even": "P@1"}


def test_scores_and_tests_are_those_of_the_classes(make: Callable[..., Report], report_input: dict[str, Any]) -> None:
    answer = make(runs={name: report_input["runs"][name] for name in ("old", "other")}, measures="AP", baseline="old",
                  by="kind", class_measures=OWN)  # fmt: skip
    slicing = slice_topics(report_input["attributes"], "kind").with_measures(OWN, "AP")
    scores = evaluate(
        report_input["qrels"], {name: report_input["runs"][name] for name in ("old", "other")}, ["P@1", "AP"]
    )
    assert slicing.class_measures == ("P@1", "AP")
    by_class, compared = answer.results["classes"], answer.results["class comparison"]
    assert by_class.table().records() == scores.by_slice(slicing).table().records()
    assert compared.table().records() == scores.compare_slices(slicing, "old").table().records()
    section = answer.markdown().partition("## Classes by their own measures")[2].partition("\n## ")[0]
    assert NO_AVERAGE in section
    assert "| kind=even | P@1 | 12 |" in section


def test_wrong_classes_are_an_error(make: Callable[..., Report]) -> None:
    with pytest.raises(InputError, match=r"no class 'third'.*kind=even"):
        make(by="kind", class_measures={"third": "P@1"})
    with pytest.raises(InputError, match="slicing attribute"):
        make(attributes=None, queries=None, class_measures=OWN)


def test_a_file_declares_the_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ids = [f"q{i:02}" for i in range(24)]
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 d 1\n" for q in ids))
    (tmp_path / "run.txt").write_text("".join(f"{q} Q0 d 1 1 run\n" for q in ids))
    (tmp_path / "kinds.csv").write_text("query_id,kind\n" + "".join(f"{q},{'ab'[i % 2]}\n" for i, q in enumerate(ids)))
    (tmp_path / "classes.toml").write_text('[class]\nby = "kind"\n[class.measures]\na = "P@1"\n')
    options = ["--attributes", "kinds.csv", "--class-measures", "classes.toml", "-o", "report.md"]
    done = CliRunner().invoke(report_command, ["qrels.txt", "run.txt", *options], catch_exceptions=False)
    assert done.exit_code == 0
    assert "| kind=a | P@1 | 12 |" in (tmp_path / "report.md").read_text()
