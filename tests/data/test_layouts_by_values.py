"""A layout with the right number of fields is checked against the values; the error names the likely layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import judged
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError, JudgedWarning
from judged.scoring.evaluation.inputs import runs_of

if TYPE_CHECKING:
    from pathlib import Path

RATINGS = [
    (user, item, 1 + (user * item) % 5, 881_250_949 + 86_400 * user) for user in range(1, 9) for item in range(1, 9)
]


@pytest.mark.parametrize("delimiter", ["\t", " ", ",", "::"])
def test_ratings_with_times_are_read_as_ratings(delimiter: str, tmp_path: Path) -> None:
    """MovieLens' `u.data`: user, item, rating, time."""
    path = tmp_path / "u data.txt"
    path.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in RATINGS))
    with pytest.warns(JudgedWarning, match="read as ratings"):
        qrels = Qrels.read(path)
    assert qrels.table.num_rows == len(RATINGS)
    run = {str(user): [str(item) for item in range(1, 9)] for user in range(1, 9)}
    assert judged.evaluate(qrels, run, "P@8").value("P@8") == 1.0


def test_ratings_of_many_items_are_no_iterations(tmp_path: Path) -> None:
    path = tmp_path / "ratings.txt"
    path.write_text("".join(f"{user} {item} {1 + item % 5} {item % 7}\n" for user in range(3) for item in range(60)))
    with pytest.raises(InputError, match="user item rating"):
        Qrels.read(path)


@pytest.mark.parametrize(
    "lines",
    [
        [f"{topic} 0 d{doc} {doc % 3}" for topic in range(5) for doc in range(30)],
        [
            f"{topic} {doc % 8} {doc} {doc % 3}" for topic in range(5) for doc in range(30)
        ],  # subtopics, numbered documents
        [f"1 0 {doc} 881250949" for doc in range(30)],  # one topic, many documents: whatever the grades are
    ],
)
def test_judgments_stay_judgments(lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("\n".join(lines) + "\n")
    assert Qrels.read(path).table.num_rows == len(lines)


@pytest.mark.parametrize("line", ["q{t} Q0 beta report {r} {s} tag", "q{t} Q0 d{r} first {s} tag"])
def test_a_text_in_place_of_the_rank_is_refused(line: str, tmp_path: Path) -> None:
    """Read by places, the rank would be the score, and the order reversed."""
    path = tmp_path / "x.run"
    rows = [line.format(t=topic, r=rank, s=10.0 - rank) for topic in range(3) for rank in range(1, 4)]
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"the rank '(report|first)' is not a number") as caught:
        Run.read(path)
    assert caught.value.line == 1
    assert "--run-format tsv" in caught.value.fix


def test_a_rank_that_is_no_rank_but_a_number_is_passed_over_as_before(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    path.write_text("q Q0 a 0.5 2.0 tag\nq Q0 b -1 3.0 tag\n")
    assert Run.read(path).table["score"].to_pylist() == [2.0, 3.0]


def test_a_header_that_is_not_utf8_is_decoded(tmp_path: Path) -> None:
    """A column `système` in Latin-1 names the runs: if it were ignored, two runs would become one."""
    path = tmp_path / "run.csv"
    path.write_bytes("query_id,doc_id,score,syst\xe8me\nq,a,1,x\nq,a,2,y\n".encode("latin-1"))
    with pytest.warns(JudgedWarning, match="Windows-1252"):
        runs = runs_of(path)
    assert [run.name for run in runs] == ["x", "y"]
