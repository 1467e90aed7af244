"""Every command that takes runs reads names, equal stems, folders, patterns, and standard input in the same way."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from every_command import ARGUMENTS, write_files
from judged.interface.arguments import runs_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from command_line import Ended

NAMES = ("old", "new", "other")
MORE = {
    "agree": ("--run", "old.run", "--run", "new.run"),
    "clicks against": ("old.run", "new.run"),
    "gate init": ("new.run",),
    "stages": ("--baseline", "other.run"),
}
COMMANDS = {name: (*arguments, *MORE.get(name, ())) for name, arguments in ARGUMENTS.items()} | {
    "clicks off-policy": ("propensities.jsonl", "old.run", "--topics", "queries.jsonl", "--depth", "2"),
    "slices": ("qrels.txt", "old.run", "new.run", "--queries", "queries.jsonl", "--by", "kind", "--compare"),
}
TAKE_RUNS = {
    name: arguments
    for name, arguments in COMMANDS.items()
    if name not in {"trec_eval", "convert"} and any(argument.endswith(".run") for argument in arguments)
}
SELECTING = {
    "compare": "--baseline",
    "slices": "--baseline",
    "matrix": "--baseline",
    "needs": "--baseline",
    "tradeoff": "--baseline",
    "report": "--baseline",
    "disagree": "--pair",
}


def renamed(arguments: tuple[str, ...], forms: dict[str, str]) -> Iterator[str]:
    """Write each run of the arguments in another form; a stage of traces keeps its name."""
    for argument in arguments:
        stage, equals, path = argument.rpartition("=")
        yield f"{stage}{equals}{forms.get(path, path)}"


def written(form: str) -> dict[str, str]:
    """Write the runs so that they can be read in a form; return the argument of each."""
    for name in NAMES:
        Path(name).mkdir()
        shutil.copy(f"{name}.run", Path(name) / f"{name if form in ('folder', 'pattern') else 'x'}.run")
    arguments = {"name": "{0}={0}/x.run", "stem": "{0}/x.run", "folder": "{0}"}
    if form == "stdin":
        return {"old.run": "-"}
    if form == "pattern":
        return {f"{name}.run": f"{name}/{name[0]}*.ru?" for name in NAMES}
    return {f"{name}.run": arguments[form].format(name) for name in NAMES}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("old.run").read_bytes())))


@pytest.mark.parametrize("form", ["name", "stem", "folder", "pattern", "stdin"])
@pytest.mark.parametrize("name", TAKE_RUNS)
def test_every_command_reads_runs_in_every_form(run: Callable[..., Ended], name: str, form: str) -> None:
    forms = written(form)
    names = {"stem": [f"{name}/x" for name in NAMES], "stdin": ["stdin", *NAMES[1:]]}.get(form, NAMES)
    Path("costs.csv").write_text("run,milliseconds\n" + "".join(f"{name},{i}\n" for i, name in enumerate(names)))
    if form == "name" and "--stage" in TAKE_RUNS[name]:
        pytest.skip("a stage has a name already")
    arguments = renamed(TAKE_RUNS[name], forms)
    ended = run(*name.split(), *arguments)
    assert "error:" not in ended.err
    assert ended.code in (0, 1)


@pytest.mark.parametrize("selected", ["first", "old/x.run", "./old/x.run", "old/x"])
@pytest.mark.parametrize("name", SELECTING)
def test_options_accept_the_name_path_or_stem_of_a_run(run: Callable[..., Ended], name: str, selected: str) -> None:
    forms = written("stem")
    forms["old.run"] = "first=old/x.run" if selected != "old/x" else "old/x.run"
    Path("costs.csv").write_text("run,milliseconds\nfirst,1\nold/x,1\nx,3\nnew/x,2\nother/x,3\n")
    arguments = [argument for argument in renamed(COMMANDS[name], forms) if argument != "--compare"]
    values = [selected] if name != "disagree" else [selected, "new/x"]
    ended = run(*name.split(), *arguments, SELECTING[name], *values)
    assert "error:" not in ended.err
    assert ended.code == 0


def test_all_runs_of_a_command_have_different_names() -> None:
    written("stem")
    paths = ["old/x.run", "new/x.run", "mine=other/x.run", "old.run"]
    assert [run.name for run in runs_at(paths, None)] == ["old/x", "new/x", "mine", "old"]
    assert [run.name for run in runs_at(["mine=*/x.run"], None)] == ["mine/new/x", "mine/old/x", "mine/other/x"]
