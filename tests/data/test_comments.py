"""Lines that start with #: comments, rows, and ambiguous lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from judged import Qrels, Run, check
from judged.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("qrels", "1 0 a 1\n#2 0 b 1\n", 2),
        ("qrels", "1  0 a 1\n1\t0\tb\t0\n#q\t0\tb\t1\n", 3),
        ("qrels", "1\ta\t1\n#2\tb\t1\n", 2),
        ("run", "1 Q0 a 1 2.5 t\n#2 Q0 b 1 2.5 t\n", 2),
    ],
)
def test_a_row_of_a_topic_that_begins_with_a_number_sign_does_not_vanish(
    kind: str, text: str, line: int, tmp_path: Path
) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    good = tmp_path / "qrels.txt"
    good.write_text("1 0 a 1\n")
    with pytest.raises(InputError) as caught:
        _ = Qrels.read(path).table if kind == "qrels" else Run.read(path).table
    assert caught.value.line == line
    findings = check(path) if kind == "qrels" else check(good, [path])
    assert [(finding.rule, finding.line) for finding in findings.findings if finding.severity == "error"] == [
        ("comment-or-row", line)
    ]


@pytest.mark.parametrize(
    "comment", ["# 0 b 1", "#", "#2 0 b", "#2 0 b x", "#topic iteration document grade", "#2 0 b 1 more words"]
)
def test_comments_are_left_out(comment: str, tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text(f"{comment}\n1 0 a 1\n{comment}\n1 0 b 0\n")
    assert len(Qrels.read(path)) == 2


def test_csv_has_no_comments_with_all_fields(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("query_id,doc_id,relevance\n1,a,1\n#2,b,1\n")
    assert Qrels.read(path).topics == ("#2", "1")
