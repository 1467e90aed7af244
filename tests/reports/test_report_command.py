"""`judged report` as a command: forms, options, what it refuses, and the command that makes it again."""

from __future__ import annotations

import gc
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from judged import InputError
from judged.reports import report
from judged.reports.commands import report_command as command
from made_log import closed_databases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = [f"q{i:02}" for i in range(20)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 good 1\n{q} 0 bad 0\n" for q in IDS))
    for name, order in (("old", ("bad", "x", "good")), ("my new", ("good", "bad", "x"))):
        lines = [f"{q} Q0 {doc} {i} {9 - i} {name.split()[-1]}\n" for q in IDS for i, doc in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "kinds.csv").write_text("query_id,kind\n" + "".join(f"{q},{'ab'[i % 2]}\n" for i, q in enumerate(IDS)))
    (tmp_path / "queries.tsv").write_text("".join(f"{q}\ttext of {q}\n" for q in IDS))
    (tmp_path / "docs.jsonl").write_text('{"id": "good", "text": "a <good> document"}\n')
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_a_page(files: Path) -> None:
    options = shlex.split(
        "--queries queries.tsv --attributes kinds.csv --texts docs.jsonl --baseline old -m RR -m P@1 --by kind"
        ' --title "It\'s mine" --seed 3 -o out.html'
    )
    process = run("qrels.txt", "old.run", "my new.run", *options)
    assert process.exit_code == 0
    assert process.stdout == ""
    text = (files / "out.html").read_text(encoding="utf-8")
    assert "<title>It&#x27;s mine</title>" in text
    assert "a &lt;good&gt; document" in text
    assert "kind=a" in text
    answer = report("qrels.txt", ["old.run", "my new.run"], queries="queries.tsv", attributes="kinds.csv",
                  texts="docs.jsonl", baseline="old", measures=["RR", "P@1"], by="kind", title="It's mine", seed=3,
                  command=_command(text))  # fmt: skip
    assert text == answer.html() + "\n"
    command = shlex.split(_command(text))
    assert command[:5] == ["judged", "report", "qrels.txt", "old.run", "my new.run"]
    pairs = dict(zip(command[5::2], command[6::2], strict=True))
    assert pairs == {
        "--queries": "queries.tsv", "--attributes": "kinds.csv", "--texts": "docs.jsonl", "--baseline": "old",
        "--measure": "P@1", "--by": "kind", "--title": "It's mine", "--seed": "3", "--output": "out.html",
    }  # fmt: skip
    (files / "out.html").rename(files / "first.html")
    assert run(*command[2:]).exit_code == 0
    assert (files / "out.html").read_text(encoding="utf-8") == text


def _command(page: str) -> str:
    from html import unescape

    return unescape(page.partition("<pre><code>")[2].partition("</code></pre>")[0])


def test_forms(files: Path) -> None:
    arguments = ("qrels.txt", "old.run", "my new.run", "-m", "RR")
    assert run(*arguments, "-o", "out.md").exit_code == 0
    assert (files / "out.md").read_text(encoding="utf-8").startswith("# Evaluation on qrels\n")
    assert run(*arguments, "-o", "out.json").exit_code == 0
    data = json.loads((files / "out.json").read_text(encoding="utf-8"))
    assert data["results"]["evaluation"]["results"][0]["measure"] == "RR"
    printed = run(*arguments, "--format", "json")
    assert {**json.loads(printed.stdout), "command": ""} | {"sections": 0} == data | {"command": "", "sections": 0}
    text = run(*arguments)
    assert "my new has the best RR, 1.0000" in text.stdout
    assert run(*arguments, "-o", "out.txt").exit_code == 0
    assert (files / "out.txt").read_text(encoding="utf-8").startswith("Evaluation on qrels\n")
    page = run(*arguments, "--format", "html").stdout
    assert page.startswith("<!DOCTYPE html>")


def test_charts(files: Path) -> None:
    assert run("qrels.txt", "old.run", "my new.run", "-m", "RR", "--charts", "pictures", "-o", "out.md").exit_code == 0
    names = {file.name for file in (files / "pictures").iterdir()}
    assert {"leaderboard.svg", "topics.svg"} <= names
    assert all(name.endswith(".svg") for name in names)


def test_what_was_written_is_said(files: Path) -> None:
    process = run("qrels.txt", "old.run", "my new.run", "-m", "RR", "--charts", "pictures", "-o", "out.md")
    assert process.stdout == ""
    count = len(list((files / "pictures").iterdir()))
    assert [line for line in process.stderr.splitlines() if line.startswith("wrote")] == [
        "wrote out.md",
        f"wrote {count} charts to pictures",
    ]
    assert "wrote" not in run("qrels.txt", "old.run", "-m", "RR").stderr


def test_policies_reach_the_scores(files: Path) -> None:
    run("qrels.txt", "old.run", "my new.run", "-m", "RR", "--depth", "1", "--ties", "stable", "-o", "out.json")
    data = json.loads((files / "out.json").read_text(encoding="utf-8"))
    assert data["results"]["evaluation"]["policies"]["depth"] == 1
    assert data["results"]["evaluation"]["policies"]["ties"] == "stable"
    assert shlex.split(data["command"])[-6:] == ["--depth", "1", "--ties", "stable", "--output", "out.json"]


@pytest.mark.usefixtures("files")
def test_there_are_no_bounds() -> None:
    """A report has nowhere to show them, and would lose the sections that need one order of documents."""
    process = run("qrels.txt", "old.run", "-m", "RR", "--ties", "bounds")
    assert (process.exit_code, "'bounds' is not one of" in process.stderr) == (2, True)


def test_warnings_go_to_standard_error(files: Path) -> None:
    (files / "part.run").write_text("q00 Q0 good 1 1.0 part\n")
    process = run("qrels.txt", "old.run", "part.run", "-m", "RR", "-o", "out.md")
    assert "warning: part: no documents returned for 19 of 20 topics" in process.stderr


@pytest.mark.parametrize("name", ["old.run", "qrels.txt", "queries.tsv", "docs.jsonl"])
def test_inputs_are_kept(files: Path, name: str) -> None:
    before = (files / name).read_bytes()
    with pytest.raises(InputError, match="the output file is also an input"):
        run("qrels.txt", "old.run", "--queries", "queries.tsv", "--texts", "docs.jsonl", "--format", "html", "-o", name)
    assert (files / name).read_bytes() == before


def test_refused(files: Path) -> None:
    with pytest.raises(InputError, match=r"the format of a result is unknown for \.pdx"):
        run("qrels.txt", "old.run", "-o", "out.pdx")
    with pytest.raises(InputError, match="no run 'nosuch'"):
        run("qrels.txt", "old.run", "my new.run", "--baseline", "nosuch", "-o", "out.html")
    assert not list(files.glob("out.*"))
    assert run("qrels.txt").exit_code == 2


@pytest.fixture
def databases(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from closed_databases(monkeypatch)


@pytest.mark.usefixtures("databases")
def test_a_log_that_says_nothing_is_refused(files: Path) -> None:
    (files / "empty.ndjson").write_text("")
    with pytest.raises(InputError, match=r"empty\.ndjson: the file is empty"):
        run("qrels.txt", "old.run", "--log", "empty.ndjson", "-o", "out.html")
    with pytest.raises(InputError, match=r"Fix: run 'judged logs convert FILE .* then use --log FOLDER\.$"):
        run("qrels.txt", "old.run", "--log", "kinds.csv", "-o", "out.html")
    assert not (files / "out.html").exists()
    gc.collect()  # errors keep what they came from, and that is to go before its database does


def test_a_page_without_charts_says_so(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    process = run("qrels.txt", "old.run", "-o", "out.html")
    assert "warning: the page has no charts: altair is not installed. Fix: pip install" in process.stderr
    assert (files / "out.html").exists()
