"""`judged online offline` on a small session file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from judged.errors import InputError
from judged.online.commands.comparisons import offline_command as command

if TYPE_CHECKING:
    from pathlib import Path


SESSION = """<session num="{num}" starttime="10:00:00.0"><topic num="7"><desc>d</desc></topic>
<interaction num="1" starttime="10:00:01.0"><query>tax</query><results>{results}</results>{clicked}</interaction>
</session>"""
CLICK = '<click num="1" starttime="10:00:05.0" endtime="10:00:50.0"><rank>{}</rank></click>'


def write_files(folder: Path) -> tuple[str, str]:
    """Write a log of three sessions and its judgments."""
    sessions = []
    for session_number, (docs, rank) in enumerate(
        ((("good", "bad"), 1), (("bad", "good"), 2), (("bad", "other"), 0)), 1
    ):
        results = "".join(f'<result rank="{rank}"><url>u{doc}</url><clueweb09id>{doc}</clueweb09id></result>'
                          for rank, doc in enumerate(docs, 1))  # fmt: skip
        clicked_xml = f"<clicked>{CLICK.format(rank)}</clicked>" if rank else ""
        sessions.append(SESSION.format(num=session_number, results=results, clicked=clicked_xml))
    log, qrels = folder / "log.xml", folder / "my.qrels"
    log.write_text(f"<sessiontrack2012>{''.join(sessions)}</sessiontrack2012>")
    qrels.write_text("7 0 good 1\n7 0 bad 0\n7 0 other 0\n")
    return str(log), str(qrels)


def run(*options: str) -> str:
    outcome = CliRunner().invoke(command, list(options), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_scores_against_outcomes(tmp_path: Path) -> None:
    log, qrels = write_files(tmp_path)
    result = json.loads(run(log, qrels, "-m", "RR", "--outcome", "clicked", "--format", "json"))
    assert (result["pages_used"], result["topic_source"]) == (3, "by the column topic")
    assert result["relations"][0]["probability"] == 1.0  # 1 and 1/2 with a click, 0 without


def test_preferences(tmp_path: Path) -> None:
    log, qrels = write_files(tmp_path)
    out = tmp_path / "told.csv"
    run(log, qrels, "--preferences", "--rule", "above", "--rule", "next", "-o", str(out))
    rows = [line.split(",")[:8] for line in out.read_text(encoding="utf-8").splitlines()[1:]]
    assert rows == [["above", "", "1", "1", "0", "1", "1", "1"], ["next", "", "1", "1", "0", "1", "1", "1"]]


@pytest.mark.parametrize(
    "options",
    [["--rule", "above"], ["--preferences", "-m", "RR"], ["--preferences", "--format", "svg"], ["--format", "png"]],
)
def test_incompatible_options_are_refused(tmp_path: Path, options: list[str]) -> None:
    log, qrels = write_files(tmp_path)
    with pytest.raises(InputError):
        CliRunner().invoke(command, [log, qrels, *options], catch_exceptions=False)
    with pytest.raises(InputError, match="input"):
        CliRunner().invoke(command, [log, qrels, "-o", qrels, "--format", "csv"], catch_exceptions=False)
