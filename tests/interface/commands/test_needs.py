"""`judged needs`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended

ARGUMENTS = ("needs", "qrels.txt", "old.run", "new.run", "-m", "RR")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = {"old": {"7-1": 1, "7-2": 2, "8-1": 2, "8-2": 2}, "new": {"7-1": 1, "7-2": 1, "8-1": 1, "8-2": 4}}
    texts = {f"{name}.run": "" for name in ranks} | {"qrels.txt": "7 0 a 1\n8 0 a 1\n", "needs.tsv": "query_id\tneed\n"}
    for name, found in ranks.items():
        for query, rank in found.items():
            docs = [*(f"x{at}" for at in range(1, rank)), "a"]
            texts[f"{name}.run"] += "".join(f"{query} Q0 {doc} 1 {-at} t\n" for at, doc in enumerate(docs))
    texts["needs.tsv"] += "".join(f"{query}\t{query[0]}\n" for query in ranks["old"])
    records = [{"query_id": query, "text": f"cats {query}", "topic_id": query[0]} for query in ranks["old"]]
    texts["queries.jsonl"] = "".join(json.dumps(record) + "\n" for record in records)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def test_needs_in_a_file_of_their_own(run: Callable[..., Ended]) -> None:
    done = run(*ARGUMENTS, "--needs", "needs.tsv", "--limit", "1")
    assert done.code == 0
    assert done.out.startswith("2 information needs, worded by 4 queries")
    row = next(line for line in done.lines if line.startswith("old  "))
    assert row.split()[1] == "0.625"  # (0.75 + 0.5) / 2
    assert "over 2 needs" in " ".join(done.out.split())
    assert done.lines[-1].split()[:4] == ["8", "8-2", "8-1", "2"]
    assert "warning: the judgments are for information needs" in done.err


def test_needs_in_a_column_of_the_queries(run: Callable[..., Ended]) -> None:
    done = run(*ARGUMENTS, "--queries", "queries.jsonl", "--limit", "1")
    assert done.lines[-2:] == ["    worst: cats 8-2", "    best: cats 8-1"]


def test_forms(run: Callable[..., Ended], tmp_path: Path) -> None:
    made = json.loads(run(*ARGUMENTS, "--needs", "needs.tsv", "--format", "json").out)
    assert [(one["run"], one["mean"], one["worst"]) for one in made["results"]] == [
        ("old", 0.625, 0.5),
        ("new", 0.8125, 0.625),
    ]
    run(*ARGUMENTS, "--needs", "needs.tsv", "-o", "out.csv")
    rows = (tmp_path / "out.csv").read_text().splitlines()
    assert rows[0] == "run,measure,need,variants,mean,worst,best,deviation,overlap,rbo"
    assert rows[1].startswith("old,RR,7,2,0.75,0.5,1.0,")


def test_refused(run: Callable[..., Ended]) -> None:
    nothing = run(*ARGUMENTS)
    assert (nothing.code, "use --needs FILE or --queries FILE" in nothing.err) == (2, True)
    column = run(*ARGUMENTS, "--needs", "needs.tsv", "--column", "topic")
    assert (column.code, "no attribute 'topic'" in column.err) == (2, True)


def test_how_far_rankings_are_looked_at_is_called_depth(run: Callable[..., Ended]) -> None:
    made = json.loads(run(*ARGUMENTS, "--needs", "needs.tsv", "--cutoff", "1", "--format", "json").out)
    assert made["cutoff"] == 1
    assert made["results"][0]["overlap"] == 0.5  # need 7 begins with a and x1, need 8 twice with x1


def test_there_are_no_bounds(run: Callable[..., Ended]) -> None:
    done = run(*ARGUMENTS, "--needs", "needs.tsv", "--ties", "bounds")
    assert (done.code, "'bounds' is not one of" in done.err) == (2, True)
    assert run(*ARGUMENTS, "--needs", "needs.tsv", "--ties", "expected").code == 0
