"""One comparison has one p-value and one verdict: in Python, CLI, JSON, pages, reports, and the review of a change."""

from __future__ import annotations

import html
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from judged import Qrels, Run, compare
from judged.comparison import Comparison, choices
from judged.data.write import write_qrels, write_run
from judged.interface.commands.comparison import compare_command
from judged.interface.pages.workspace import open_workspace
from judged.reports import report
from judged.reports.commands import review_command
from judged.stats.sufficiency import MIN_UNITS
from judged.web.app import make_app

if TYPE_CHECKING:
    from pathlib import Path

MEASURES = ("nDCG@10", "RR")
DATASETS = 24  # of 4, 5, 6 runs in turn, each by 2 measures: 192 comparisons with a baseline, and 48 of pairs alone
SIZES = (3, 8, 12, 20, 40)  # topics

Verdict = tuple[float, bool, str | None]  # the p-value that decides, whether it is significant, and who is better


def dataset(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, dict[str, float]]]]:
    """Return judgments and 4 to 6 runs, of which some are clearly better and some are nearly alike."""
    rng = np.random.default_rng(seed)
    topics = [f"q{topic:02}" for topic in range(SIZES[seed % len(SIZES)])]
    documents = [f"d{document}" for document in range(8)]
    qrels = {topic: {document: int(rng.integers(0, 3)) for document in documents} for topic in topics}
    runs = {}
    for run in range(4 + seed % 3):
        noise = rng.choice([0.3, 1.0, 3.0])
        runs[f"run{run}"] = {
            topic: {document: float(qrels[topic][document] + noise * rng.normal()) for document in documents}
            for topic in topics
        }
    return qrels, runs


def verdicts(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str], Verdict]:
    return {
        (row["measure"], row["first"], row["second"]): (row["adjusted"], row["significant"], row["better"])
        for row in rows
    }


def of(comparison: Comparison) -> dict[tuple[str, str, str], Verdict]:
    return {
        (pair.measure, pair.first, pair.second): (pair.adjusted, pair.significant, pair.better)
        for pair in comparison.pairs
    }


def text_of(page: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", page))).replace("\N{MINUS SIGN}", "-")


def printed(command: Any, *arguments: str) -> Any:
    done = CliRunner().invoke(command, [*arguments, "--format", "json"], catch_exceptions=False)
    assert done.exit_code in {0, 1}, done.output
    return json.loads(done.stdout)


@pytest.fixture
def _short_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the sections of a report that compare nothing."""
    module = sys.modules["judged.reports.build"]
    monkeypatch.setattr(module, "_SECTIONS", {"leaderboard": module._SECTIONS["leaderboard"]})


@pytest.mark.usefixtures("_short_reports")
@pytest.mark.parametrize("part", range(4))
def test_one_comparison_has_one_verdict_everywhere(part: int, tmp_path: Path) -> None:
    compared = 0
    for seed in range(part, DATASETS, 4):
        qrels, runs = dataset(seed)
        names, where = [*runs], tmp_path / str(seed)
        where.mkdir()
        write_qrels(Qrels.of(qrels), where / "qrels.txt")
        for name, run in runs.items():
            write_run(Run.of(run, name=name), where / f"{name}.run")
        files = [str(where / "qrels.txt"), *(str(where / f"{name}.run") for name in names)]
        options = [option for measure in MEASURES for option in ("-m", measure)]

        comparison = compare(qrels, runs, MEASURES, baseline=names[0])
        expected = of(comparison)
        compared += len(expected)
        assert verdicts(printed(compare_command, *files, *options, "--baseline", names[0])["pairs"]) == expected
        written = report(qrels, runs, MEASURES, baseline=names[0])
        assert of(written.results["comparison"]) == expected

        client = TestClient(make_app(open_workspace(qrels, runs)), base_url="http://127.0.0.1")
        measures = ",".join(MEASURES)
        board = client.get("/api/v1/leaderboard", params={"measures": measures, "baseline": names[0]}).json()
        assert verdicts(board["pairs"]) == expected
        for name in names[1:]:
            parameters = {"first": names[0], "second": name, "measures": measures, "measure": MEASURES[0]}
            page = verdicts(client.get("/api/v1/compare", params=parameters).json()["pairs"])
            assert page == {key: verdict for key, verdict in expected.items() if key[2] == name}
        sentence = comparison.pair(names[0], names[-1]).sentence
        assert sentence in text_of(client.get("/compare", params=parameters).text)

        alone = compare(qrels, {name: runs[name] for name in names[:2]}, MEASURES)
        pair = alone.pairs[0]
        states = {None: "undecided", names[1]: "good", names[0]: "bad"}
        question = printed(review_command, *files[:3], *options)["questions"][0]
        if pair.result.n < MIN_UNITS["verdict"]:
            assert question["state"] == "not tested"
        else:
            assert (question["state"], question["finding"]) == (states[pair.better], pair.sentence)
        compared += len(alone.pairs)
    assert compared >= 50


def test_the_page_of_a_change_has_the_verdict_of_the_page_of_the_comparison() -> None:
    qrels, runs = dataset(2)
    client = TestClient(make_app(open_workspace(qrels, runs)), base_url="http://127.0.0.1")
    parameters = {"first": "run0", "second": "run2"}
    sentence = client.get("/api/v1/compare", params={**parameters, "measure": "nDCG@10"}).json()["sentences"][0]
    assert client.get("/api/v1/change", params=parameters).json()["questions"][0]["finding"] == sentence


def test_defaults_depend_on_the_number_of_topics_alone() -> None:
    assert [choices.default_test(n) for n in (1, 2000, 2001)] == ["randomization", "randomization", "t"]
    assert [choices.default_resamples(n) for n in (1, 300, 301)] == [100_000, 100_000, 10_000]
