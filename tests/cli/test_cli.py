"""The command line: what it prints, where to, and how it ends."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import judged
from command_line import Ended, process
from judged.scoring.measures.registry import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable

QRELS = "q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 1\nq3 0 d9 1\n"
GOOD = "q1 Q0 d1 1 2.5 indri\nq1 Q0 d2 2 1.5 indri\nq2 Q0 d1 1 1.5 indri\nq3 Q0 d9 1 1.5 indri\n"
WORSE = "q1 Q0 d2 1 2.5 indri\nq1 Q0 d1 2 1.5 indri\nq2 Q0 d1 1 1.5 indri\n"
AP = {"good": (1 + 1 + 1) / 3, "worse": (1 / 2 + 1 + 0) / 3}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"qrels.txt": QRELS, "good.run": GOOD, "worse.run": WORSE}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "good.run.gz").write_bytes(gzip.compress(GOOD.encode()))
    (tmp_path / "queries.tsv").write_text('q1\tlist of cats\nq2\tanother, "quoted" need\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def python(code: str) -> str:
    """Run some code in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- forms ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("files")
def test_the_table(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "good.run", "worse.run", "-m", "AP", "-m", "P@1,2", "-m", "NumRet")
    assert done.code == 0
    assert done.lines[0].split() == ["run", "AP", "P@1", "P@2", "NumRet"]
    assert done.lines[1].split()[:2] == ["good", "1.0000"]
    assert done.lines[2].split()[:2] == ["worse", "0.5000"]
    assert done.lines[2].split()[-1] == "3"
    assert "Over the 3 topics of the qrels" in done.out
    assert "95% CI: t interval adjusted for" in done.out
    assert "warning: worse: no documents returned for 1 of 3 topics (score 0): q3" in done.err
    assert "\x1b" not in done.out + done.err


@pytest.mark.usefixtures("files")
def test_json(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--format", "json", "--per-topic")
    assert done.code == 0
    document = json.loads(done.out)
    assert set(document) >= {"judged", "qrels", "policies", "runs", "results"}
    assert document["results"] == [
        {"run": "worse", "measure": "AP", "aggregate": "mean", "value": AP["worse"], "ci": document["results"][0]["ci"],
         "n": 3, "per_topic": {"q1": 0.5, "q2": 1.0, "q3": 0.0}}
    ]  # fmt: skip
    assert document["runs"]["worse"]["missing_topics"] == ["q3"]
    assert document["runs"]["worse"]["path"] == "worse.run"
    assert done.err == ""
    with pytest.warns(judged.JudgedWarning):
        scores = judged.evaluate("qrels.txt", "worse.run", "AP")
    assert document == json.loads(scores.summary(per_topic=True).json())


@pytest.mark.usefixtures("files")
def test_json_follows_the_options_of_the_interval(run: Callable[..., Ended]) -> None:
    options = ("--ci", "bootstrap", "--level", "0.8", "--resamples", "300", "--seed", "7")
    document = json.loads(run("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--format", "json", *options).out)
    assert document["policies"]["ci"] == {"name": "bootstrap", "level": 0.8, "resamples": 300, "seed": 7}
    assert document["results"][0]["ci"][0] < AP["worse"] < document["results"][0]["ci"][1]
    none = json.loads(run("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--format", "json", "--ci", "none").out)
    assert none["results"][0]["ci"] is None


@pytest.mark.usefixtures("files")
def test_csv_in_full_precision(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "good.run", "worse.run", "-m", "AP", "-m", "R@1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == ["run", "measure", "aggregate", "value", "ci_low", "ci_high", "n"]
    assert [(row["run"], row["measure"], float(row["value"])) for row in rows] == [
        ("good", "AP", 1.0), ("good", "R@1", 1.0), ("worse", "AP", 0.5), ("worse", "R@1", 1 / 3),
    ]  # fmt: skip
    by_topic = run("evaluate", "qrels.txt", "worse.run", "-m", "RR", "--format", "csv", "--per-topic")
    assert by_topic.lines == ["run,measure,query_id,value", "worse,RR,q1,0.5", "worse,RR,q2,1.0", "worse,RR,q3,0.0"]


@pytest.mark.usefixtures("files")
def test_markdown_and_latex(run: Callable[..., Ended]) -> None:
    common = ("evaluate", "qrels.txt", "good.run", "a_b|c=worse.run", "-m", "AP", "--ci", "none", "--format")
    assert run(*common, "markdown").lines == [
        "| run | AP |", "| :-- | --: |", "| good | 1.0000 |", "| a_b\\|c | 0.5000 |",
        "", "Over the 3 topics of the qrels; ties by descending document id; no intervals.",
    ]  # fmt: skip
    assert run(*common, "latex").lines[3:-1] == [
        r"\begin{tabular}{lr}", r"\toprule", r"run & AP \\", r"\midrule",
        r"good & 1.0000 \\", r"a\_b|c & 0.5000 \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


@pytest.mark.usefixtures("files")
def test_per_topic_with_the_text_of_the_topics(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--per-topic", "--queries", "queries.tsv")
    assert done.lines[0].split() == ["query_id", "query", "AP"]
    assert done.lines[1].split() == ["q1", "list", "of", "cats", "0.5000"]
    assert done.lines[3].split() == ["q3", "0.0000"]
    two = run("evaluate", "qrels.txt", "good.run", "worse.run", "-m", "AP", "--per-topic")
    assert [line.split() for line in two.lines[:3]] == [
        ["query_id", "run", "AP"], ["q1", "good", "1.0000"], ["q1", "worse", "0.5000"],
    ]  # fmt: skip


@pytest.mark.usefixtures("files")
def test_texts_of_topics_are_in_every_form(run: Callable[..., Ended], tmp_path: Path) -> None:
    call = ("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--per-topic", "--queries", "queries.tsv")
    rows = list(csv.DictReader(io.StringIO(run(*call, "--format", "csv").out)))
    texts = {row["query_id"]: row["query"] for row in rows}
    assert texts["q1"] == "list of cats"
    assert json.loads(run(*call, "--format", "json").out)["queries"] == texts
    run(*call, "-o", str(tmp_path / "scores.parquet"))
    saved = judged.Scores.load(tmp_path / "scores.parquet")
    assert saved.queries == texts
    assert saved.to_arrow()["query"].to_pylist() == list(texts.values())


def test_names_of_runs(files: Path, run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "first=good.run", "good.run.gz", "good.run", "-m", "AP", "--format", "csv")
    assert [line.split(",")[0] for line in done.lines[1:]] == ["first", "good", "good#2"]
    (files / "a=b.run").write_text(GOOD)
    done = run("evaluate", "qrels.txt", "a=b.run", "-m", "AP", "--format", "csv")
    assert done.lines[1].startswith("a=b,AP,mean,1.0")


@pytest.mark.usefixtures("files")
def test_policies(run: Callable[..., Ended]) -> None:
    def value(*options: str) -> float:
        done = run("evaluate", "qrels.txt", "worse.run", "-m", "AP", "--format", "csv", *options)
        return float(done.lines[1].split(",")[3])

    assert value() == 0.5
    assert value("--topics", "both") == 0.75
    assert value("--topics", "run") == 0.75
    assert value("--depth", "1") == 1 / 3


@pytest.mark.usefixtures("files")
def test_the_width_of_columns_is_respected(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> None:
    measures = [part for name in ("AP", "nDCG@10", "P@5", "P@10", "R@100", "RR") for part in ("-m", name)]
    wide = run("evaluate", "qrels.txt", "good.run", *measures)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run("evaluate", "qrels.txt", "good.run", *measures)
    table = narrow.out.partition("over the")[0]
    assert max(map(len, wide.lines)) > 100
    assert max(map(len, table.splitlines())) <= 60
    assert table.count("good") == 3
    assert set(wide.out.split()) == set(narrow.out.split())


# --- output files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.json", "{\n"),
        ("a.csv", "run,measure"),
        ("a.md", "| run |"),
        ("a.tex", r"\begin{table}"),
        ("a.txt", "run "),
    ],
)
def test_the_ending_of_the_file_says_the_form(name: str, start: str, files: Path, run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "good.run", "-m", "AP", "-o", name)
    assert (done.code, done.out) == (0, "")
    text = (files / name).read_text()
    assert text.startswith(start)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_a_failure_leaves_the_old_file(files: Path, run: Callable[..., Ended]) -> None:
    (files / "old.json").write_text("old")
    (files / "bad.run").write_text("q1 Q0 d1 1 2.5 t\nq1 Q0 d1 2 1.5 t\n")
    before = sorted(path.name for path in files.iterdir())
    for arguments in (["bad.run"], ["good.run", "--resamples", "1"], ["good.run", "-m", "nope"], ["missing.run"]):
        assert run("evaluate", "qrels.txt", *arguments, "-o", "old.json").code == 2
        assert (files / "old.json").read_text() == "old"
    assert sorted(path.name for path in files.iterdir()) == before
    assert run("evaluate", "qrels.txt", "good.run", "-o", "old.json").code == 0
    assert json.loads((files / "old.json").read_text())["runs"].keys() == {"good"}
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.usefixtures("files")
def test_where_nothing_can_be_written(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "good.run", "-o", "no/where.json")
    assert done.code == 2
    assert done.err.startswith("error: no/where.json: the file cannot be written")


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.run", "q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2 high t\n", "error: a.run:2: the score 'high' is not a number. Fix: "),
        ("a.run", "q1 Q0 d1 1 2.5 t\n\nq1 Q0 d2 2 nan t\n", "error: a.run:3: the score 'nan' is not a number. Fix: "),
        ("a.run", "q1 Q0 d1 1 2.5 t\nq2 Q0 d1 1 2.5 t\nq1 Q0 d1 2 1.5 t\n",
         "error: a.run:3: document d1 is returned twice for topic q1. Fix: "),
        ("a.run", "q1 Q0 d1 1 2.5 t\nq1 Q0 d2 2\n", "error: a.run:2: 4 fields, expected at least 5"),
        ("a.run", "z1 Q0 d1 1 2.5 t\n", "error: a.run: the run has no topic in common with the qrels"),
        ("a.run", "", "error: a.run: "),
        ("a.run", None, "error: a.run: there is no such file. Fix: check the path."),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_2(
    name: str, text: str | None, error: str, files: Path, run: Callable[..., Ended]
) -> None:
    if text is not None:
        (files / name).write_text(text)
    done = run("evaluate", "qrels.txt", name, "-m", "AP")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(error)
    assert len(done.err.splitlines()) == 1
    assert "Traceback" not in done.err


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "ndgc@10"], "error: there is no measure 'ndgc'. Fix: did you mean nDCG"),
        (["-m", "P"], "error: P requires `cutoff`. Fix: write P@10"),
        (["--level", "95"], "error: the confidence level must be between 0 and 1, got 95.0"),
        (["--run-format", "xlsx"], "xlsx"),
        (["--depth", "0"], "0"),
        (["--depth", "x"], "x"),
        (["--topics", "some"], "some"),
        (["--ci", "guess"], "guess"),
        (["--format", "pdf"], "pdf"),
        (["--nonsense"], "nonsense"),
        (["--queries", "missing.tsv"], "missing.tsv: there is no such file"),
    ],
)
def test_wrong_options_end_with_2(arguments: list[str], message: str, run: Callable[..., Ended]) -> None:
    done = run("evaluate", "qrels.txt", "good.run", *arguments)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.usefixtures("files")
def test_swapped_files_are_recognized(run: Callable[..., Ended]) -> None:
    done = run("evaluate", "good.run", "qrels.txt", "-m", "AP")
    assert done.code == 2
    assert "Fix: " in done.err


def test_check_ends_with_0_1_or_2(files: Path, run: Callable[..., Ended]) -> None:
    clean = run("check", "qrels.txt", "good.run")
    assert clean.code == 0
    assert "0 errors" in clean.lines[-1]
    (files / "twice.run").write_text("q1 Q0 d1 1 2.5 t\nq1 Q0 d1 2 1.5 t\n")
    bad = run("check", "qrels.txt", "twice.run")
    assert bad.code == 1
    assert "twice.run:2:" in bad.out
    missing = run("check", "qrels.txt", "missing.run")
    assert missing.code == 2
    assert "missing.run" in missing.err


# --- catalog, help, demo --------------------------------------------------------------------------


def test_measures(run: Callable[..., Ended]) -> None:
    done = run("measures")
    assert done.code == 0
    for name in REGISTRY:
        assert any(line.startswith(f"  {name}") for line in done.lines), name
    page = run("measures", "nDCG")
    assert page.lines[0] == "# nDCG, nDCG@k"
    for part in ("$$", "## Parameters", "`gain`", "## When it misleads", "ndcg_cut", "Järvelin"):
        assert part in page.out
    assert run("measures", "ndcg_cut").out == page.out
    unknown = run("measures", "ncdg")
    assert unknown.code == 2
    assert "Fix: did you mean NCG, nDCG, RnDCG?" in unknown.err


def test_help_and_version(run: Callable[..., Ended]) -> None:
    assert run("--version").out.strip() == judged.__version__
    main_help = run("--help")
    for command in ("evaluate", "measures", "check", "demo"):
        assert command in main_help.out
        help_output = run(command, "--help")
        assert help_output.code == 0
        assert f"judged {command}" in help_output.out
    assert run("nonsense").code == 2


def test_the_demo_is_the_sample(tmp_path: Path, run: Callable[..., Ended]) -> None:
    done = run("demo")
    assert done.code == 0
    assert any(line.startswith("bm25 ") for line in done.lines)
    copied = run("demo", "--to", str(tmp_path / "sample"))
    assert all(name in copied.out for name in ("qrels.txt", "runs/", "responses/", "simulated_log.ndjson.gz"))
    assert (tmp_path / "sample" / "qrels.txt").is_file()
    again = run("demo", "--to", str(tmp_path / "sample"))
    assert again.code == 2
    assert "exists already" in again.err


# --- as a process -----------------------------------------------------------------------------------


def test_standard_input_and_a_pipe(files: Path) -> None:
    done = process("evaluate", str(files / "qrels.txt"), "mine=-", "-m", "AP", stdin=GOOD, env={"FORCE_COLOR": "1"})
    assert done.code == 0
    assert done.lines[1].split()[:2] == ["mine", "1.0000"]
    assert "\x1b" not in done.out
    piped = process("evaluate", "-", str(files / "good.run"), "-m", "AP", "--format", "csv", stdin=QRELS)
    assert piped.lines[1].startswith("good,AP,mean,1.0,")


def test_an_error_of_standard_input_names_its_line(files: Path) -> None:
    done = process("evaluate", str(files / "qrels.txt"), "-", "-m", "AP", stdin=GOOD + "q1 Q0 d2 9 0.1 t\n")
    assert done.code == 2
    assert done.err.startswith("error: <stdin>:5: document d2 is returned twice for topic q1. Fix: ")


@pytest.mark.usefixtures("files")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "judged", "measures"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as started:
        assert started.stdout
        assert started.stderr
        started.stdout.close()
        assert b"Traceback" not in started.stderr.read()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_terminal_that_cannot_show_a_name_is_no_crash(encoding: str, files: Path) -> None:
    (files / "\u00e9.run").write_text(GOOD)
    arguments = ("evaluate", str(files / "qrels.txt"), str(files / "\u00e9.run"), "-m", "AP")
    done = process(*arguments, env={"PYTHONIOENCODING": encoding})
    assert done.code == 0
    assert done.lines[1].split()[1] == "1.0000"


HEAVY = "{'pandas', 'scipy', 'polars', 'duckdb', 'ibis', 'matplotlib', 'sklearn'}"


def test_evaluating_imports_nothing_heavy(files: Path) -> None:
    code = (
        "import sys; from judged.cli.main import main\n"
        f"sys.argv = ['judged', 'evaluate', {str(files / 'qrels.txt')!r}, {str(files / 'good.run')!r}, '-o', "
        f"{str(files / 'out.txt')!r}]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print(sorted({HEAVY} & set(sys.modules)))"
    )
    assert python(code) == "[]"


def test_importing_judged_imports_neither_numpy_nor_pyarrow() -> None:
    light = "import sys, judged; judged.__version__; dir(judged)"
    for code, absent in ((light, "{'numpy', 'pyarrow', 'click', 'typer'}"), (f"{light}; judged.evaluate", HEAVY)):
        assert python(f"{code}; print(sorted({absent} & set(sys.modules)))") == "[]"


def test_evaluating_from_python_imports_no_scipy_and_no_frames() -> None:
    code = (
        "import sys, judged\n"
        "scores = judged.evaluate({'q': {'d': 1}, 'r': {'d': 1}}, {'q': {'d': 1.0}, 'r': {'x': 2.0, 'd': 1.0}}, 'AP')\n"
        "scores.estimates(); scores.estimates(ci='t'); repr(scores); scores.to_dict()\n"
        "print(sorted({'scipy', 'polars', 'typer', 'click'} & set(sys.modules)))"
    )
    assert python(code) == "[]"


def test_help_imports_neither_numpy_nor_pyarrow() -> None:
    code = (
        "import sys; from judged.cli.main import main\nsys.argv = ['judged', '--help']\n"
        "try: main()\nexcept SystemExit: pass\nprint(sorted({'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    assert python(code).splitlines()[-1] == "[]"
