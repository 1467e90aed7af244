"""Files that were written are read back unchanged; a failure keeps the old file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.data.write import write_qrels, write_run
from judged.errors import InputError
from judged.results.files import atomic_write

if TYPE_CHECKING:
    from pathlib import Path

QUIET = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    database=None,
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=5).filter(
    lambda text: not text.startswith(("#", "\ufeff"))
)
texts = st.one_of(words, st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
scores = st.floats(allow_nan=False)
SUFFIXES = [".run", ".run.gz", ".csv", ".tsv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"]
READ_AS = {".run": "trec", ".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}


def reader(suffix: str) -> str:
    return READ_AS[suffix.removesuffix(".gz")]


def ids_for(suffix: str) -> st.SearchStrategy[str]:
    return texts if suffix in {".jsonl", ".parquet"} else words


@pytest.mark.parametrize("suffix", SUFFIXES)
@QUIET
@given(data=st.data())
def test_runs_come_back(suffix: str, data: st.DataObject, tmp_path: Path) -> None:
    ids = ids_for(suffix)
    mapping = data.draw(
        st.dictionaries(
            ids.filter(bool),
            st.dictionaries(ids.filter(bool), scores, min_size=1, max_size=4),
            min_size=1,
            max_size=3,
        )
    )
    path = tmp_path / f"some{suffix}"
    write_run(Run.of(mapping), path)
    table = Run.read(path, format=reader(suffix)).table
    scores_by_topic: dict[str, dict[str, float]] = {}
    for row in table.to_pylist():
        scores_by_topic.setdefault(row["query_id"], {})[row["doc_id"]] = row["score"]
        assert row["rank"] == len(scores_by_topic[row["query_id"]])
    assert scores_by_topic == mapping
    for query, docs in scores_by_topic.items():
        assert list(docs) == sorted(docs, key=lambda doc: (mapping[query][doc], doc.encode()), reverse=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
@QUIET
@given(data=st.data())
def test_qrels_come_back(suffix: str, data: st.DataObject, tmp_path: Path) -> None:
    ids = ids_for(suffix).filter(bool)
    grades = st.one_of(st.integers(-2, 4), st.floats(allow_nan=False, allow_infinity=False))
    mapping = data.draw(
        st.dictionaries(ids, st.dictionaries(ids, grades, min_size=1, max_size=4), min_size=1, max_size=3)
    )
    path = tmp_path / f"some{suffix}"
    qrels = Qrels.of(mapping)
    write_qrels(qrels, path)
    table = Qrels.read(path, format=reader(suffix)).table
    assert table.select(["query_id", "doc_id", "relevance"]).to_pydict() == qrels.table.to_pydict()


@pytest.mark.parametrize("suffix", [".qrels", ".csv", ".jsonl", ".parquet"])
def test_iterations_come_back(suffix: str, tmp_path: Path) -> None:
    table = pa.table({"query_id": ["1", "1"], "doc_id": ["a", "a"], "relevance": [1.0, 0.5], "iteration": ["s1", "s2"]})
    path = tmp_path / f"some{suffix}"
    write_qrels(Qrels.of(table), path)
    assert Qrels.read(path).table["iteration"].to_pylist() == ["s1", "s2"]


def test_trec_text(tmp_path: Path) -> None:
    run, qrels = tmp_path / "a.run", tmp_path / "a.qrels"
    write_run(Run.of({"q": {"d1": 1.0, "d2": 2.5, "d10": 1.0}}, name="my run"), run)
    write_qrels(Qrels.of({"q": {"d1": 1, "d2": 0.5}}), qrels)
    assert run.read_text() == "q Q0 d2 1 2.5 my_run\nq Q0 d10 2 1.0 my_run\nq Q0 d1 3 1.0 my_run\n"
    assert qrels.read_text() == "q 0 d1 1\nq 0 d2 0.5\n"


def test_a_set_is_written_as_pairs(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    write_run(Run.of(pa.table({"query_id": ["q", "q"], "doc_id": ["b", "a"]})), path)
    assert path.read_text() == "q b\nq a\n"
    assert not Run.scan(path).has_scores


def test_ids_that_start_with_a_byte_order_mark_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot store"):
        write_qrels(Qrels.of({"\ufeff1": {"d": 1}}), tmp_path / "a.qrels")
    write_qrels(Qrels.of({"1\ufeff": {"d": 1}}), tmp_path / "a.qrels")
    assert Qrels.read(tmp_path / "a.qrels").topics == ("1\ufeff",)


@pytest.mark.parametrize("bad", ["a b", "a\tb", "a\nb", "", "\v"])
@pytest.mark.parametrize("suffix", [".run", ".tsv"])
def test_ids_that_cannot_be_read_back_are_refused(bad: str, suffix: str, tmp_path: Path) -> None:
    if bad == "a b" and suffix == ".tsv":
        pytest.skip("a blank may stand between tabs")
    path = tmp_path / f"a{suffix}"
    for mapping in ({"q": {bad: 1.0}}, {bad: {"d": 1.0}}):
        with pytest.raises(InputError, match="cannot store"):
            write_run(Run.of(mapping), path)
        with pytest.raises(InputError, match="cannot store"):
            write_qrels(Qrels.of(mapping), path)
    assert not list(tmp_path.iterdir())


def test_a_query_id_that_would_be_a_comment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot store query_id '#1'"):
        write_qrels(Qrels.of({"#1": {"d": 1}}), tmp_path / "a.qrels")


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.run.gz", "b.run.gz"):
        write_run(Run.of({"q": {"d": 1.0}}), tmp_path / name)
    assert (tmp_path / "a.run.gz").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


def test_an_unknown_format_and_a_missing_folder(tmp_path: Path) -> None:
    run = Run.of({"q": {"d": 1.0}})
    with pytest.raises(InputError, match="trec, csv, tsv, jsonl, parquet"):
        write_run(run, tmp_path / "a", "excel")
    with pytest.raises(InputError, match="cannot be written"):
        write_run(run, tmp_path / "none" / "a.run")
    with pytest.raises(InputError, match="expected a file, got a folder"):
        write_run(run, tmp_path)


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)

    def fail() -> None:
        with atomic_write(path) as part:
            part.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    with atomic_write(path) as part:
        part.write_text("new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    with atomic_write(link) as part:
        part.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
