"""Whatever bytes a file holds, reading it ends in rows or in an InputError that names it."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judged.data.check import check_qrels, check_run
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.topics import Topics
from judged.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

QUIET = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
words = st.sampled_from(
    ["1", "2", "0", "Q0", "q1", "d1", "d2", "1.5", "-2", "nan", "inf", "tag", "#", '"', ",", "\t", " ", "\n", "\r",
     "query_id", "doc_id", "score", "relevance", "rank", "{", "}", "[", "]", ":", '"q"', '"d"', '"query_id"', "é",
     "<top>", "</top>", "<num>", "<title>", "<topic number='1'>", "</topic>", "\x00", "\ufeff", "007", "1e400",
     "9" * 30]
)  # fmt: skip
soup = st.lists(st.one_of(words, st.just(" "), st.just("\n"), st.just("\t")), max_size=40).map(
    lambda parts: "".join(parts).encode()
)
files = st.one_of(soup, soup.map(gzip.compress), st.binary(max_size=60), st.binary(max_size=9).map(b"PAR1".__add__))

READERS: dict[str, Callable[[Path], object]] = {
    "qrels": Qrels.read,
    "run": Run.read,
    "topics": Topics.read,
    "check_qrels": check_qrels,
    "check_run": check_run,
}


@pytest.mark.parametrize("name", READERS)
@QUIET
@given(content=files)
def test_any_bytes(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    try:
        READERS[name](path)
    except InputError as error:
        named = (error.path, bool(error.fix))
        assert named == (str(path), True)


@QUIET
@given(content=files)
def test_what_reads_is_checked_without_errors_and_the_reverse(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    errors = [finding for finding in check_qrels(path) if finding.level == "error"]
    try:
        Qrels.read(path)
    except InputError:
        assert errors
    else:
        assert not errors
