"""Classes with their own measures in `slices`, `compare`, `matrix`, and `gate`: one declaration for all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import judged
from comparison_made import lists
from judged import evaluate, slice_topics
from judged.comparison.slicing.class_measures import NO_AVERAGE
from judged.data.write import write_qrels, write_run
from judged.diagnosis.gates import gate, parse_config
from judged.diagnosis.matrix import class_matrix

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

RANKS = {
    "old": [2, 1] * 6 + [1, 4] * 6 + [6] * 12 + [1] * 3,
    "new": [1] * 12 + [3, 4] * 6 + [2, 6] * 6 + [1] * 3,
    "third": [2, 2] * 6 + [5, 1] * 6 + [6] * 12 + [2] * 3,
}
KINDS = ["news"] * 12 + ["law"] * 12 + ["long"] * 12 + ["rare"] * 3
OWN = {"news": "RR", "law": "P@3"}
FILE = """
[class]
by = "kind"
margin = 0.2
[class.measures]
news = "RR"
law = "P@3"
"""
INPUTS = ("qrels.txt", "old.run", "new.run")
ATTRIBUTES = ("--attributes", "kinds.tsv")
OPTIONS = (*ATTRIBUTES, "--by", "kind", "--class-measures", "news=RR,law=P@3")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    qrels, runs = lists(**RANKS)
    write_qrels(judged.Qrels.of(qrels), tmp_path / "qrels.txt")
    for name, run in runs.items():
        scored = {topic: {doc: -at for at, doc in enumerate(docs)} for topic, docs in run.items()}
        write_run(judged.Run.of(scored), tmp_path / f"{name}.run")
    rows = [f"q{at:02}\t{kind}" for at, kind in enumerate(KINDS)]
    (tmp_path / "kinds.tsv").write_text("\n".join(["query_id\tkind", *rows]) + "\n")
    (tmp_path / "classes.toml").write_text(FILE)
    return tmp_path


def by_class(default: str = "", **options: Any) -> Any:
    slicing = slice_topics("kinds.tsv", "kind", **options).with_measures(OWN, default)
    runs = ["old.run", "new.run"]
    return evaluate("qrels.txt", runs, [name for name in slicing.class_measures if name]), slicing


@pytest.mark.usefixtures("folder")
def test_slices_print_each_class_by_its_own_measure(run: Callable[..., Ended]) -> None:
    scores, slicing = by_class()
    done = run("slices", *INPUTS, *OPTIONS)
    assert (done.code, done.out) == (0, scores.by_slice(slicing).text() + "\n")
    assert "15 topics" in done.err
    rows = json.loads(run("slices", *INPUTS, *OPTIONS, "--format", "json").out)["results"]
    values = {(row["slice"], row["measure"], row["run"]): row["value"] for row in rows}
    assert values == {
        ("kind=news", "RR", "old"): 0.75,
        ("kind=news", "RR", "new"): 1.0,
        ("kind=law", "P@3", "old"): pytest.approx(1 / 6),
        ("kind=law", "P@3", "new"): pytest.approx(1 / 6),
    }
    assert run("slices", *INPUTS, *ATTRIBUTES, "--class-measures", "classes.toml").out == done.out
    scores, slicing = by_class("P@1", min_topics=3)
    done = run("slices", *INPUTS, *OPTIONS, "-m", "P@1", "--min-topics", "3")
    assert done.out == scores.by_slice(slicing).text() + "\n"


@pytest.mark.usefixtures("folder")
def test_compare_is_slices_with_a_baseline(run: Callable[..., Ended]) -> None:
    scores, slicing = by_class("RR")
    expected = scores.compare_slices(slicing, "old").text() + "\n"
    assert NO_AVERAGE in " ".join(expected.split())
    for call in (("slices", *INPUTS, *OPTIONS, "--baseline", "old"), ("compare", *INPUTS, *OPTIONS)):
        done = run(*call, "-m", "RR")
        assert (done.code, done.out) == (0, expected)
    three = ("qrels.txt", "old.run", "new.run", "third.run", *OPTIONS)
    assert run("compare", *three).code == 2
    families = json.loads(run("compare", *three, "--baseline", "old", "--format", "json").out)["families"]
    assert families == {"RR": 4, "P@3": 4}  # two classes, two pairs


@pytest.mark.usefixtures("folder")
def test_matrix_is_that_of_classes(run: Callable[..., Ended]) -> None:
    slicing = slice_topics("kinds.tsv", "kind").with_measures(OWN, "RR")
    scores = evaluate("qrels.txt", ["old.run", "new.run"], ["RR", "P@3", "R@5", "Judged@10"])
    done = run("matrix", *INPUTS, *OPTIONS, "-x", "R@5", "-y", "RR", "--format", "json")
    answer = class_matrix(scores, slicing, x="R@5", baseline="old")
    assert json.loads(done.out)["points"] == answer.table("points").records()
    assert len(answer.points) == 8


@pytest.mark.usefixtures("folder")
def test_a_gate_checks_each_class_by_its_own_measure(run: Callable[..., Ended], folder: Path) -> None:
    (folder / "gate.toml").write_text('attributes = "kinds.tsv"\n[[check]]\nmeasure = "AP"\nmargin = 0.5\n' + FILE)
    checks = [("AP", "all", 0.5), ("RR", "kind=news", 0.2), ("P@3", "kind=law", 0.2)]
    explicit = "".join(
        f'[[check]]\nmeasure = "{measure}"\nslice = "{name}"\nmargin = {margin}\n' for measure, name, margin in checks
    )
    rules = "".join(f"[[slice]]\nname = 'kind={kind}'\nexpression = \"kind == '{kind}'\"\n" for kind in OWN)
    expected = gate("qrels.txt", "old.run", "new.run", parse_config(explicit + rules), attributes="kinds.tsv")
    done = run("gate", *INPUTS, "--config", "gate.toml", "--format", "json")
    assert done.code == expected.exit_code == 0
    found = json.loads(done.out)["checks"]
    for check, other in zip(found, json.loads(expected.json())["checks"], strict=True):
        assert {**check, "line": None} == {**other, "line": None}
    (folder / "wrong.toml").write_text((folder / "gate.toml").read_text().replace("law =", "court ="))
    done = run("gate", *INPUTS, "--config", "wrong.toml")
    assert done.code == 2
    assert all(f"kind={kind}" in done.err for kind in set(KINDS))


@pytest.mark.parametrize("source", ["news=RR,law=P@3", "classes.toml"])
@pytest.mark.usefixtures("folder")
def test_a_first_gate_has_a_check_of_each_class(run: Callable[..., Ended], source: str) -> None:
    by = () if source.endswith(".toml") else ("--by", "kind")
    done = run("gate", "init", "qrels.txt", "old.run", *ATTRIBUTES, *by, "-m", "AP", "--class-measures", source, "-o-")
    assert done.code == 0
    checks = [(check.measure, check.slice) for check in parse_config(done.out).checks]
    assert checks == [("AP", "all"), ("P@3", "kind=law"), ("AP", "kind=long"), ("RR", "kind=news")]
    assert run("gate", "init", "qrels.txt", "old.run", "--class-measures", "news=RR", "-o", "-").code == 2


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (("slices", *INPUTS, *ATTRIBUTES, "--by", "kind", "--class-measures", "court=RR"), "kind=law"),
        (("slices", *INPUTS, *OPTIONS, "-m", "AP", "-m", "P@1"), "one default measure"),
        (("slices", *INPUTS, *ATTRIBUTES, "--class-measures", "news=RR"), "slicing attribute"),
        (("compare", *INPUTS, *OPTIONS, "--ci", "t"), "--ci"),
        (("compare", *INPUTS, *OPTIONS, "--test", "tukey"), "tukey"),
        (("compare", "--collection", "a=qrels.txt,old.run,new.run", *OPTIONS), "--attributes"),
        (("compare", "--collection", "a=qrels.txt,old.run,new.run", "--class-measures", "news=RR"), "classes"),
        (("matrix", *INPUTS, *OPTIONS, "--cuts", "0.5,0.5"), "--cuts"),
        (("gate", "init", "qrels.txt", "old.run", "--class-measures", "news=RR", "-o", "-"), "slicing attribute"),
        (("slices", *INPUTS, *ATTRIBUTES, "--class-measures", "missing.toml"), "missing.toml"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_input(run: Callable[..., Ended], call: tuple[str, ...], part: str) -> None:
    done = run(*call)
    assert done.code == 2
    assert part in done.err


@pytest.mark.usefixtures("folder")
def test_the_declaration_is_not_overwritten(run: Callable[..., Ended], folder: Path) -> None:
    done = run(
        "slices", *INPUTS, *ATTRIBUTES, "--class-measures", "classes.toml", "-o", "classes.toml", "--format", "csv"
    )
    assert done.code == 2
    assert (folder / "classes.toml").read_text() == FILE
