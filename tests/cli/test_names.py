"""Names are data: whatever a run, a topic or a document is called, no form of output takes an order from it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

import judged
from judged.diagnosis.gates import Check, GateConfig
from judged.results.escaping import Cell, TextTable, isolate_directions, markdown_list

HOSTILE = "=<script>x</script>|`a`*b*[c](d)\x1b[31m\u202e\nz"
TURNED = "abc\u202ecba"
COMMANDS = (
    ("evaluate", "--per-topic"),
    ("compare", "--pairs"),
    ("diff",),
    ("disagree", "-m", "nDCG@10", "-m", "P@2"),
    ("stages",),
    ("matrix",),
    ("slices", "--by", "relevant"),
    ("review",),
    ("explain", "--topic", "q1", "-m", "AP"),
    ("report",),
    ("curve",),
)
FORMS = {"markdown": "markdown", "csv": "csv", "table": "table", "latex": "latex"}


@pytest.mark.parametrize("start", ["=1+1", "+x", "-x", "@sum", "\tx", "\rx", "-1+1", "=", "-1e"])
def test_a_cell_of_csv_that_a_spreadsheet_would_compute_is_text(start):
    for row in ((start, "1"), ("run", start)):
        rows = list(csv.reader(io.StringIO(TextTable(("run", start), (row,)).csv(), newline="\n")))
        assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
        assert f"'{start}" in rows[1]


@pytest.mark.parametrize("number", ["-0.12", "+0.5", "-1e-05", "-.5", "-", "-inf", "+12%", "-0", "-3."])
def test_numbers_of_csv_stay_numbers(number):
    assert TextTable(("a", "b"), (("x", number),)).csv() == f"a,b\nx,{number}"
    interval = Cell(number, detail="[-0.2, 0.1]", mark="*")
    assert TextTable(("a", "b"), (("x", interval),)).csv() == f'a,b\nx,"{interval}"'


def test_a_cell_of_markdown_shows_what_it_holds_in_its_one_row():
    written = TextTable(("run", HOSTILE), ((HOSTILE, Cell("0.1", mark="*", best=True)),)).markdown()
    lines = written.split("\n")
    assert len(lines) == 3
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert not re.search(r"<(?!/?sup>)|(?<!\\)`|(?<!\\)\]\(|[\x1b\u202e]", written)
    assert lines[2].endswith(r"| **0.1**<sup>*</sup> |")
    assert r"\\x1b[31m\\u202e z" in lines[2]


def test_a_sentence_of_markdown_keeps_its_code_and_nothing_else():
    assert markdown_list(["`judged gate` of <b> and\n| a_b"]) == "- `judged gate` of &lt;b&gt; and \\| a_b"


def test_a_cell_of_a_terminal_or_of_latex_has_no_control_characters():
    table = TextTable(("run", "AP"), ((HOSTILE, Cell("0.1", detail=TURNED, mark="a", best=True)), ("b", "0.2")))
    for written in (table.text(), table.text(width=20), table.latex()):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", written)
        assert "u202e" in written
    widths = {len(line) for line in table.text().split("\n")}
    assert len(table.text().split("\n")) == 3
    assert max(widths) - min(widths) <= len(" ab")


def test_a_name_that_turns_the_direction_turns_nothing_beside_it_in_html():
    html = isolate_directions(f"<p title='{TURNED}'>{TURNED}</p><td>{TURNED}</td>")
    assert html.count(f"<bdi>{TURNED}</bdi>") == html.count(TURNED) - 1 == 2
    page = f"<title>{TURNED}</title><script>'</b>{TURNED}'</script><p title='{TURNED}'>a</p><option>{TURNED}</option>"
    assert isolate_directions(page) == page


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Judgments and two runs; a name, a topic and a document are hostile."""
    qrels = "".join(f"q{i} 0 d1 2\nq{i} 0 =d 1\nq{i} 0 <b>d\u202e\x1b[2J 0\n" for i in range(1, 9))
    run = "".join(f"q{i} Q0 {doc} 1 {9 - n} t\n" for i in range(1, 9) for n, doc in enumerate(["=d", "d1", "-e"]))
    other = "".join(
        f"q{i} Q0 {doc} 1 {9 - n} t\n" for i in range(1, 9) for n, doc in enumerate(["<b>d\u202e\x1b[2J", "d1"])
    )
    for name, text in (("qrels", qrels), ("one", run), ("two", other)):
        (tmp_path / name).write_text(text)
    return [
        str(tmp_path / "qrels"),
        f"@<script>|{TURNED}\x1b[2J={tmp_path / 'one'}",
        f"<b>{TURNED}={tmp_path / 'two'}",
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("form", FORMS)
def test_no_command_gives_a_name_an_effect(run, files, command, form):
    name, *options = command
    is_single_run = name in {"review", "explain", "stages", "matrix", "slices"}
    run_files = files[1:2] if is_single_run else files[1:]
    ended = run(
        name,
        files[0],
        *([run_files[0].rpartition("=")[2]] if name == "explain" else run_files),
        *options,
        "--format",
        form,
    )
    if ended.code == 2 and "--format" in ended.err:
        pytest.skip(f"{name} has no {form}")
    assert ended.code == 0, ended.err
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", ended.err)
    if form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(ended.out)) for cell in row]
        assert [cell for cell in cells if re.match(r"[=@\t\r]|[+-](?![\d.]|inf|$)", cell)] == []
    elif form != "table":
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e]", ended.out)
    if form == "markdown":
        assert not re.search(r"<script|<b>", re.sub(r"```.*?```|`[^`\n]*`", "", ended.out, flags=re.DOTALL))


@pytest.mark.parametrize("command", ["compare", "diff"])
def test_a_terminal_takes_no_orders_from_names(files, command):
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "150"}
    call = [sys.executable, "-m", "judged", command, *files]
    with subprocess.Popen(call, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        output = b""
        with contextlib.suppress(OSError):  # which is how a terminal ends
            while chunk := os.read(ours, 1 << 16):
                output += chunk
    os.close(ours)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode())  # our own colors
    assert "abc\\u202ecba" in text
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e]", text)


def test_a_review_comes_back_with_the_ids_that_it_went_out_with(tmp_path):
    ids = ["-abc", "=x", "'=x", "+1", "@a", "'a"]
    qrels = {"=q": {doc: i % 2 for i, doc in enumerate(ids)}}
    run = {"=q": {doc: -1.0 * i for i, doc in enumerate(ids)}}
    listed = judged.review(qrels, run)
    rows = [row.split("\t") for row in listed.tsv().split("\n")]
    filled = [rows[0], *([*row[:3], "2", *row[4:]] for row in rows[1:])]
    (tmp_path / "filled.tsv").write_text("\n".join("\t".join(row) for row in filled))
    assert len(filled) > 3
    new = judged.apply_review(qrels, tmp_path / "filled.tsv").table.to_pydict()
    assert set(new["doc_id"]) == set(ids)
    assert new["relevance"].count(2.0) == len(filled) - 1


def test_a_gate_gives_names_no_effect():
    topics = [f"q{i}" for i in range(12)]
    qrels = {topic: {"a": 1, "b": 0} for topic in topics}
    names = f"<b>|{TURNED}\x1b[31m", "<i>[x](y)"
    runs = [{name: {topic: {doc: 1.0} for topic in topics}} for name, doc in zip(names, "ab", strict=True)]
    decision = judged.gate(qrels, *runs, GateConfig((Check("AP", margin=0.1),)))
    assert decision.status == "fail"
    written = decision.markdown()
    assert not re.search(r"<(?!/?(sub|details|summary)>)|(?<!\\)\]\(|[\x1b\u202e]", written)
    assert "| **fail** |" in written
    ET.fromstring(decision.junit())  # noqa: S314  ours
    json.loads(decision.sarif())
