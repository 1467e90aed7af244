"""Files of preferences: valid lines and error messages."""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING

import pytest

import judged
from judged import InputError, Qrels

if TYPE_CHECKING:
    from pathlib import Path

GOOD = "# who prefers what\n1  u 007 doc#1\t3.5\r\n\n 1 u 007 a,b 0\n2 ü 0 NA 1e1 \n   # end"


def read_prefs(path: Path, name: str | None = None) -> Qrels:
    return Qrels.read(path, format="prefs", name=name)


def written(folder: Path, text: str) -> Path:
    path = folder / "some.prefs"
    path.write_text(text, "utf-8")
    return path


def test_five_fields_become_qrels(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    qrels = read_prefs(path)
    assert qrels.table.to_pylist() == [
        {"query_id": "1", "doc_id": "doc#1", "iteration": "u 007", "relevance": 3.5},
        {"query_id": "1", "doc_id": "a,b", "iteration": "u 007", "relevance": 0.0},
        {"query_id": "2", "doc_id": "NA", "iteration": "ü 0", "relevance": 10.0},
    ]
    assert (qrels.name, qrels.where) == ("some.prefs", str(path))
    assert qrels.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_prefs(path, name="mine").name == "mine"


def test_a_compressed_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "some.txt.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + b"1 u s a 2\r\n1 u s b 1\r\n"))
    qrels = read_prefs(path)
    assert (qrels.name, qrels.topics, len(qrels)) == ("some", ("1",), 2)
    assert qrels.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 u s a", r"4 fields, expected at least 5: '1 u s a'\. Fix: complete or remove the line"),
        ("1 u s a one", r"the relevance 'one' is not a number"),
        ("1 u s a nan", "the relevance 'nan' is not a number"),
        ("1 u s a 0x1F", "the relevance '0x1F' is not a number"),
        ("1 u s first 3", r"document first is judged 2 times for topic 1 .* Fix: keep one"),
    ],
)
def test_a_bad_line_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"# one\n1 u s first 1\n\n{line}\n")
    with pytest.raises(InputError, match=said) as caught:
        read_prefs(path)
    assert (caught.value.path, caught.value.line) == (str(path), 4)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.prefs"
    path.write_bytes(b"1 u s a 1\n1 u s \xe9 1\n")
    with pytest.raises(InputError, match=r"latin\.prefs:2: this file is not UTF-8"):
        read_prefs(path)


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"some\.prefs: there are no rows"):
        read_prefs(written(tmp_path, "# nothing\n"))
    with pytest.raises(InputError, match="there is no such file"):
        read_prefs(tmp_path / "none")


def test_the_same_document_may_stand_in_other_subgroups_and_topics(tmp_path: Path) -> None:
    assert len(read_prefs(written(tmp_path, "1 u s a 1\n1 u t a 1\n1 v s a 1\n2 u s a 1\n"))) == 4


def test_other_files_are_no_preferences(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"some\.prefs:1: preferences must have 5 fields, got 6\. Fix: write query id, user"
    ):
        read_prefs(written(tmp_path, "1 Q0 a 1 0.5 tag\n1 Q0 b 2 0.4 tag\n"))
    with pytest.raises(InputError, match="the format 'prefs' is only for qrels"):
        judged.Run.scan(written(tmp_path, GOOD), format="prefs")
    with pytest.raises(InputError, match=r"the grade of topic 1, document a is inf\. Fix: write a finite number"):
        read_prefs(written(tmp_path, "1 u s a inf\n"))
