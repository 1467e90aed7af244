"""`judged online`: output equals that of the Python functions; options, errors, and exit codes."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import judged.online
from judged.data import sample
from judged.errors import InputError
from judged.online.facts.pages import FactSettings
from judged.online.metrics import ONLINE_METRICS, online_metrics_named
from judged.online.simulation import SimulationPlan, Users, simulate
from judged.online.storage import read_log
from online_scores_made import dwell, scores, series

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

METRICS = import_module("judged.online.estimation.online_metrics")  # the package has a function of this name
READING_OPTIONS = {"layout": None, "mapping": None, "session_gap": 30.0, "bots": "exclude", "bot_pages": 100,
           "bot_minutes": 60.0, "rank_base": None, "memory": None, "threads": None, "tables": None}  # fmt: skip
REASON = "60 of 1,060 query rows (5.7%) are excluded or lost, more than 5%: facet-request 60"
UNFIT = f"warning: ubi.ndjson is not fit for metrics: {REASON}.\n"
BIASED = "".join(f"warning: {note}\n" for note in scores().notes if note.rule == "position-bias")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Replace reading and computation by fixed results, and return the recorded arguments."""
    monkeypatch.chdir(tmp_path)
    Path("log.ndjson").write_text("{}\n")
    recorded: dict[str, Any] = {}

    def open_log(paths: Any, **options: Any) -> SimpleNamespace:
        recorded["read"] = (list(paths), options)
        return SimpleNamespace(has=frozenset({"clicks"}))

    def online_metrics(log: Any, metrics: Any = None, **options: Any) -> Any:
        del log
        recorded["metrics"] = (metrics, options)
        online_metrics_named([metrics] if isinstance(metrics, str) else metrics or ())
        if options.get("by") == "color":
            raise InputError("there is no slice 'color'", fix="one of device, language")
        return scores(sliced=options.get("by") is not None)

    monkeypatch.setattr("judged.online.commands.logs.open_log", open_log)
    monkeypatch.setattr(METRICS, "online_metrics", online_metrics)

    def over_time(*_args: Any, **options: Any) -> Any:
        recorded["time"] = options
        return series()

    monkeypatch.setattr("judged.online.series.over_time", over_time)
    return recorded


def test_the_table_equals_that_of_python(run: Callable[..., Ended], calls: dict[str, Any]) -> None:
    done = run("online", "metrics", "log.ndjson")
    assert (done.code, done.out, done.err) == (0, scores().text() + "\n", UNFIT + BIASED)
    assert calls["read"] == (["log.ndjson"], READING_OPTIONS)
    assert calls["metrics"] == (
        None,
        {
            "by": None,
            "documents": None,
            "where": None,
            "progress": None,
            "unit": "user",
            "level": 0.95,
            "interval": "delta",
            "resamples": 2000,
            "seed": 0,
            "settings": FactSettings(),
        },
    )


def test_options_are_passed_on(run: Callable[..., Ended], calls: dict[str, Any]) -> None:
    done = run(
        "online", "metrics", "log.ndjson", "b.ndjson", "-m", "PageCTR", "-m", "ZeroResults", "--by", "device",
        "--unit", "session", "--level", "0.9", "--interval", "bootstrap", "--resamples", "500", "--seed", "3",
        "--layout", "ubi", "--memory", "2GB", "--threads", "2", "--session-gap", "5",
        "--winsorize", "off", "--reformulation-gap", "60", "--attribution-window", "0", "--success", "10",
        "--where", "page == 1",
    )  # fmt: skip
    assert done.out == scores(sliced=True).text() + "\n"
    assert calls["read"] == (
        ["log.ndjson", "b.ndjson"],
        {**READING_OPTIONS, "layout": "ubi", "memory": "2GB", "threads": 2, "session_gap": 5.0},
    )
    names, options = calls["metrics"]
    assert names == ("PageCTR", "ZeroResults")
    assert options == {"by": "device", "documents": None, "where": "page == 1", "progress": None,
                       "unit": "session", "level": 0.9, "interval": "bootstrap", "resamples": 500, "seed": 3,
                       "settings": FactSettings(60, 0, 1, 10)}  # fmt: skip


def test_defaults_of_settings_equal_those_of_python(run: Callable[..., Ended]) -> None:
    help_text = " ".join(run("online", "metrics", "--help").out.split())
    for name, value in asdict(FactSettings()).items():
        assert f"[default: {value:g}]" in help_text[help_text.index("--" + name.replace("_", "-")) :].split("--")[1]


@pytest.mark.parametrize("invalid", [("--winsorize", "on"), ("--winsorize", "1.5"), ("--success", "-1")])
def test_invalid_settings(run: Callable[..., Ended], calls: dict[str, Any], invalid: tuple[str, ...]) -> None:
    done = run("online", "metrics", "log.ndjson", *invalid)
    assert (done.code, done.err.count("Fix: ")) == (2, 1)
    assert "metrics" not in calls
    assert run("online", "time", "log.ndjson", "-m", "PageCTR", "--winsorize", "1").code == 0
    assert calls["time"]["settings"] == FactSettings(winsorize=1)


def test_formats(run: Callable[..., Ended], calls: dict[str, Any]) -> None:
    del calls
    assert run("online", "metrics", "log.ndjson", "--format", "markdown").out == scores().markdown() + "\n"
    done = run("online", "metrics", "log.ndjson", "--format", "csv")
    assert (done.out, done.err) == (scores().csv() + "\n", UNFIT + BIASED)
    done = run("online", "metrics", "log.ndjson", "-o", "out.json")
    assert (done.out, done.err) == ("", "")
    assert json.loads(Path("out.json").read_text()) == scores().to_dict()


def test_ranks_dwell_and_time_equal_those_of_python(
    run: Callable[..., Ended], calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    del calls
    monkeypatch.setattr("judged.online.dwell.dwell_times", lambda *_args, **_options: dwell())
    for command, expected in (
        (("ranks",), scores().by_rank()),
        (("dwell",), dwell()),
        (("time", "-m", "PageCTR", "-m", "ZeroResults"), series()),
    ):
        assert json.loads(run("online", *command, "log.ndjson", "--format", "json").out) == expected.to_dict()
        assert run("online", *command, "log.ndjson", "--format", "csv").out == expected.csv() + "\n"
        assert run("online", *command, "log.ndjson").out == expected.text() + "\n"


def test_pictures_and_pages(run: Callable[..., Ended], calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    del calls
    monkeypatch.setattr("judged.online.dwell.dwell_times", lambda *_args, **_options: dwell())
    monkeypatch.setattr("judged.results.html.library", lambda: "/* chart library */")
    for command in (("metrics", "--by", "device"), ("ranks",), ("dwell",), ("time", "-m", "PageCTR")):
        assert run("online", *command, "log.ndjson", "-o", "out.svg").code == 0
        assert Path("out.svg").read_bytes()[:4] == b"<svg"
        assert run("online", *command, "log.ndjson", "-o", "page.html").code == 0
        assert 'class="chart" data-chart=' in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "PageCRT"), "error: unknown online metric 'PageCRT'. Fix: did you mean PageCTR"),
        (("--by", "color"), "error: there is no slice 'color'. Fix: one of device, language."),
        (("-o", "out.docx"), "error: out.docx: the format of "),
        (("--format", "png"), "error: the format png cannot be printed. Fix: write to a file: -o online.png."),
        (("-o", "log.ndjson", "--format", "json"), "error: log.ndjson: the output file is also an input."),
        (("--unit", "page"), "error: Invalid value for '--unit'"),
        (("--levell", "1"), "error: No such option '--levell'. Did you mean '--level'? Fix: see 'judged online"),
    ],
)
def test_errors_are_one_line_with_exit_code_2(
    run: Callable[..., Ended], calls: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    del calls
    done = run("online", "metrics", "log.ndjson", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(message)
    assert done.err.count("\n") == 1
    assert Path("log.ndjson").read_text() == "{}\n"


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("metrics", "log.ndjson", "--by", "variant", "--by", "device"), "--by"),
        (("ranks", "log.ndjson", "--by", "variant", "--by", "device"), "--by"),
        (("offline", "log.ndjson", "my.qrels", "--by", "variant", "--by", "device"), "--by"),
    ],
)
def test_options_that_may_be_used_once(
    run: Callable[..., Ended], calls: dict[str, Any], arguments: tuple[str, ...], flag: str
) -> None:
    done = run("online", *arguments)
    message = f"error: {flag} is used 2 times. Fix: use {flag} once, and run the command for each value.\n"
    assert (done.code, done.out, done.err) == (2, "", message)
    assert not calls


def test_missing_judgments(run: Callable[..., Ended]) -> None:
    done = run("online", "offline", "log.ndjson")
    assert done.code == 2
    assert done.err.startswith("error: the argument QRELS is missing. Fix: add the judgments: judged online offline")


def test_all_commands_have_the_same_reading_options(run: Callable[..., Ended]) -> None:
    for command in ("metrics", "ranks", "dwell", "time", "offline"):
        help_text = run("online", command, "--help").out
        for name in READING_OPTIONS.keys() - ({"tables"} if command == "offline" else set()):  # the option for Spark
            assert f"--{name.replace('_', '-')}" in help_text
        assert "detected from the first bytes, except clickmodels" in " ".join(help_text.split())


def test_no_ctr_by_rank(run: Callable[..., Ended], calls: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    del calls
    monkeypatch.setattr(METRICS, "online_metrics", lambda *_args, **_options: scores(ranks=()))
    done = run("online", "ranks", "log.ndjson")
    assert (done.code, done.out) == (2, "")
    assert "no CTR by rank: no add_to_cart event is in this log" in done.err


def test_warm_up_is_passed_on(run: Callable[..., Ended], calls: dict[str, Any]) -> None:
    for arguments, expected in ((("--warm-up", "9"), 9), ((), None)):
        assert run("online", "time", "log.ndjson", "-m", "PageCTR", *arguments).code == 0
        assert calls["time"]["warm_up"] == expected


@pytest.mark.parametrize("command", [("metrics",), ("ranks",), ("dwell",), ("time", "-m", "PageCTR")])
def test_all_commands_warn_about_an_unfit_log(
    run: Callable[..., Ended], calls: dict[str, Any], command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    del calls
    monkeypatch.setattr("judged.online.dwell.dwell_times", lambda *_args, **_options: dwell())
    assert run("online", *command, "log.ndjson").err.startswith(UNFIT)
    notes = json.loads(run("online", *command, "log.ndjson", "--format", "json").out)["notes"]
    assert (notes[0]["rule"], f"warning: {notes[0]['text']}\n") == ("unfit-log", UNFIT)


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_the_list_fits_a_terminal(run: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    wide = run("online", "list").out
    monkeypatch.setenv("COLUMNS", columns)
    result = run("online", "list")
    assert max(map(len, result.lines)) <= int(columns)
    assert all(f"  {name}" in result.out for name in ONLINE_METRICS)
    words = result.out.split()
    assert set(wide.split()) <= {*words, *(word.rstrip(",;") for word in words)}  # nothing is omitted


def test_the_list(run: Callable[..., Ended]) -> None:
    result = run("online", "list")
    assert result.code == 0
    assert all(f"  {name}" in result.out for name in ONLINE_METRICS)
    assert run("online", "list", "pagectr@5").out.startswith("# PageCTR@5\n\nShare of pages with a click.\n")
    definitions = json.loads(run("online", "list", "SatisfiedClicks(t=20)", "--format", "json").out)
    assert [(metric["metric"], metric["numerator"]) for metric in definitions] == [
        ("SatisfiedClicks(t=20)", "satisfied_events_20")
    ]
    done = run("online", "list", "Abandonmnt")
    assert done.code == 2
    assert done.err.startswith("error: unknown online metric 'Abandonmnt'. Fix: did you mean Abandonment")


def test_the_help_lists_all_commands(run: Callable[..., Ended]) -> None:
    done = run("online", "--help")
    assert all(f"  {name} " in done.out for name in ("metrics", "ranks", "dwell", "time", "list"))


def test_metrics_of_written_files(run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From UBI files to the JSON of the command line, the result in Python, and the report."""
    monkeypatch.chdir(tmp_path)
    simulate(SimulationPlan(users=Users(number=25), days=3), seed=1).write("log")
    scores_in_python = judged.online.online_metrics(read_log("log"), ["PageCTR", "ZeroResults"], by="device")
    arguments = ("online", "metrics", "log", "-m", "PageCTR", "-m", "ZeroResults")
    done = run(*arguments, "--by", "device", "--format", "json")
    assert json.loads(done.out) == scores_in_python.to_dict()
    assert scores_in_python.of("PageCTR").denominator > 50
    done = run(*arguments, "--by", "color")
    assert (done.code, done.out) == (2, "")
    assert "'color'" in done.err
    assert "device" in done.err  # a valid slice
    Path("qrels.txt").write_text("q1 0 a 1\nq2 0 a 1\n")
    Path("a.run").write_text("q1 Q0 a 1 2 t\nq2 Q0 b 1 2 t\n")
    done = run("report", "qrels.txt", "a.run", "-m", "RR", "--log", "log", "-o", "report.md")
    assert done.code == 0
    report = Path("report.md").read_text()
    assert "## User behavior" in report
    assert (
        f"In {dict(scores_in_python.counts)['pages']} pages of 25 users, share of pages with a satisfied click"
        in report
    )
    assert "### Satisfied clicks by threshold" in report
    assert "judged report qrels.txt a.run --measure RR --log log --output report.md" in report


def test_only_pages_that_match_are_counted(run: Callable[..., Ended]) -> None:
    log = str(sample.LOG)
    done = run("online", "metrics", log, "-m", "CTR", "--where", "page == 2")
    assert done.code == 0
    assert "61 pages" in done.out
    done = run("online", "metrics", log, "-m", "CTR", "--where", "page == 2", "--format", "json")
    policies = json.loads(done.out)["policies"]
    assert policies["where"] == "page == 2: 61 of 1,365 pages"
    assert policies["CTR"].startswith("PageCTR")
    assert run("online", "dwell", log, "--where", "page == 0").code == 2
    assert "no attribute 'pag'" in run("online", "ranks", log, "--where", "pag == 0").err
