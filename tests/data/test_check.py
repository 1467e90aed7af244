"""`judged check` finds and counts problems of each kind, with the first line."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from judged.data.check_files import check, check_qrels, check_run
from judged.data.findings import Finding
from judged.data.qrels import Qrels
from judged.data.run import Run
from judged.errors import InputError
from shared_data import SHARED, needs_shared

RUN = "1 Q0 a 1 3.5 t\n1 Q0 b 2 2.5 t\n2 Q0 a 1 1.5 t\n2 Q0 c 2 0.5 t\n"
QRELS = "1 0 a 1\n1 0 b 0\n2 0 a 2\n2 0 c 0\n"


def codes(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def only(findings: list[Finding], code: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.rule == code]
    return finding


def written(folder: Path, content: str | bytes, name: str = "file.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_clean_files_have_no_findings(tmp_path: Path) -> None:
    qrels = written(tmp_path, QRELS, "a.qrels")
    assert not check_qrels(qrels)
    assert check_run(written(tmp_path, RUN, "a.run"), Qrels.read(qrels)).findings == ()


@pytest.mark.parametrize(
    ("text", "code", "line", "count"),
    [
        (RUN + "3 Q0 a 1 x t\n3 Q0 b 2 1,5 t\n", "bad-score", 5, 2),
        (RUN + "\n# c\n3 Q0 a 1 nan t\n3 Q0 b 2 NaN t\n3 Q0 c 3 -nan t\n", "nan-score", 7, 3),
        (RUN + "3 Q0 a\n3 Q0\n3 Q0 b 1 1 t\n", "too-few-fields", 5, 2),
        (RUN + "3 Q0 a\n", "too-few-fields", 5, 1),
        (RUN + "1 Q0 a 3 0.5 t\n2 Q0 a 3 0.25 t\n", "duplicate-pair", 5, 2),
        (RUN + "1 Q0 a 3 x t\n1 Q0 a 3 0.25 t\n", "duplicate-pair", 6, 1),
        (RUN.encode() + b"3 Q0 \xff 1 0.5 t\n3 Q0 \xc3 2 0.25 t\n", "not-utf8", 5, 2),
        (RUN + "3 Q0", "truncated", 5, 1),
        (RUN + "3 Q0 a x 1 t\n", "bad-score", None, 0),  # a rank column with a word holds no ranks
        (QRELS, "looks-like-qrels", 1, 1),
        ("", "empty-file", None, 1),
        ("# c\n", "empty-file", None, 1),
        ("query_id\tdoc_id\tscore\n", "empty-file", 1, 1),
        (RUN.encode("utf-16"), "not-utf8", None, 1),
        ("some words\nand some more words here\n", "unknown-layout", 1, 1),
        ("user,item,value\nu,i,1.5\n", "unknown-header", 1, 1),
        ('q,d,1.5\nq,"e,2\n', "bad-quote", 2, 1),
        ("q,d,1.5\nq,,2\n", "empty-id", 2, 1),
        ("query_id,doc_id,score\nq,d,1.5\nq,e,2,3\n", "too-many-fields", 3, 1),
    ],
)  # fmt: skip
def test_errors_of_a_run(text: str | bytes, code: str, line: int | None, count: int, tmp_path: Path) -> None:
    findings = check_run(written(tmp_path, text))
    if not count:
        assert code not in codes(findings)
        return
    finding = only(findings, code)
    assert (finding.severity, finding.path, finding.line, finding.count) == (
        "error",
        str(tmp_path / "file.txt"),
        line,
        count,
    )


@pytest.mark.parametrize(
    ("text", "code", "line", "count"),
    [
        (QRELS + "3 0 a high\n", "bad-relevance", 5, 1),
        (QRELS + "3 0 a inf\n", "bad-relevance", 5, 1),
        (QRELS + "1 0 a 2\n", "duplicate-pair", 5, 1),
        (RUN, "looks-like-run", 1, 1),
    ],
)
def test_errors_of_qrels(text: str, code: str, line: int, count: int, tmp_path: Path) -> None:
    finding = only(check_qrels(written(tmp_path, text)), code)
    assert (finding.severity, finding.line, finding.count) == ("error", line, count)


@pytest.mark.parametrize(
    ("text", "code", "line", "count"),
    [
        (QRELS + "3 0 a 0\n3 0 b -1\n", "topics-without-relevant", 5, 1),
        (QRELS + "3 0 a 500\n", "huge-grades", 5, 1),
        (QRELS + "3 0 a 0.5\n3 0 b 0.1\n3 0 c 1\n", "grades-below-1", 5, 2),
        ("1 0 a 1\n1 0 b 1\n", "one-grade", None, 2),
        (QRELS + "1 1 a 0\n", "several-labels", 5, 1),
        ("1 0 a 1\n01 0 b 0\n", "near-same-ids", 2, 1),
        ("1 0 a 1\n1 0 \ufeffb 0\n", "invisible-characters", 2, 1),
    ],
)
def test_warnings_of_qrels(text: str, code: str, line: int | None, count: int, tmp_path: Path) -> None:
    finding = only(check_qrels(written(tmp_path, text)), code)
    assert (finding.severity, finding.line, finding.count) == ("warning", line, count)


@pytest.mark.parametrize(
    ("text", "code", "line", "count"),
    [
        (RUN + "2 Q0 d 3 0.5 t\n2 Q0 e 4 0.5 t\n", "ties", 4, 3),
        (RUN + "1 Q0 x 4 3.5 t\n", "ties-matter", 1, 1),
        (RUN + "3 Q0 a 1 1 t\n3 Q0 b 2 1 t\n4 Q0 a 1 1 t\n", "constant-scores", 5, 1),
        (RUN + "3 Q0 a 2 9 t\n3 Q0 b 1 1 t\n4 Q0 b 1 1 t\n", "rank-order", 5, 1),
        (RUN + "3 Q0 a 1 1 t\n4 Q0 a 1 1 t\n", "extra-topics", 5, 2),
        ("1 Q0 a 1 3.5 t\n", "missing-topics", None, 1),
        ("1 Q0 A 1 3.5 t\n2 Q0 c 1 3.5 t\n", "near-same-ids", 1, 1),
        ("01 Q0 a 1 3.5 t\n2 Q0 c 1 3.5 t\n", "near-same-ids", 1, 1),
    ],
)
def test_warnings_of_a_run(text: str, code: str, line: int | None, count: int, tmp_path: Path) -> None:
    qrels = Qrels.read(written(tmp_path, QRELS, "a.qrels"))
    finding = only(check_run(written(tmp_path, text), qrels), code)
    assert (finding.severity, finding.line, finding.count) == ("warning", line, count)


def test_unicode_form_of_ids() -> None:
    run, qrels = Run.of({"1": {"caf\u00e9": 1.0}}), Qrels.of({"1": {"cafe\u0301": 1}})
    assert "'caf\u00e9' here, 'cafe\u0301' in the qrels" in only(check_run(run, qrels), "near-same-ids").problem


def test_no_common_topics_is_an_error() -> None:
    findings = check_run(Run.of({"q1": {"a": 1.0}}), Qrels.of({"1": {"a": 1}}))
    assert codes(findings) == ["no-common-topics"]
    assert findings[0].severity == "error"


def test_form(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + RUN.replace("\n", "\r\n").encode()[:-2]
    findings = check_run(written(tmp_path, content))
    assert [(finding.rule, finding.severity, finding.count) for finding in findings] == [
        ("bom", "info", 1),
        ("crlf", "info", 3),
        ("no-final-newline", "info", 1),
    ]


def test_rows_of_a_topic_that_are_apart(tmp_path: Path) -> None:
    finding = only(check_run(written(tmp_path, RUN + "1 Q0 c 3 0.5 t\n")), "not-grouped")
    assert (finding.severity, finding.count) == ("info", 1)


def test_several_runs_in_one_file_are_no_duplicates(tmp_path: Path) -> None:
    text = "system_number,query_number,doc_number,rank_of_doc,score\n1,1,a,1,2.5\n2,1,a,1,2.5\n"
    assert "duplicate-pair" not in codes(check_run(written(tmp_path, text)))


def test_a_truncated_gz(tmp_path: Path) -> None:
    lines = "".join(
        f"{row // 1000} Q0 d{row * 7919 % 99991} {row % 1000} {1000 - row % 1000} t\n" for row in range(20_000)
    )
    packed = gzip.compress(lines.encode())
    findings = check_run(written(tmp_path, packed[: len(packed) // 2], "a.run.gz"))
    assert only(findings, "truncated").severity == "error"


def test_other_formats_have_their_first_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"query_id": ["q"], "doc_id": ["d"], "score": ["x"]}), path)
    assert codes(check_run(path)) == ["bad-score"]
    assert codes(check_run(written(tmp_path, '{"q": {"d": 1', "a.json"))) == ["broken-json"]
    assert codes(check_run(written(tmp_path, '{"q": {"d": 1, "d": 2}}', "b.json"))) == ["duplicate-pair"]
    assert codes(check_run(Run.of({"q": {"d": "x"}}))) == ["bad-score"]


def test_a_set_says_so(tmp_path: Path) -> None:
    assert codes(check_run(written(tmp_path, "q a\nq b\n"))) == ["no-scores"]


def test_what_cannot_be_read_raises(tmp_path: Path) -> None:
    for call in (check_run, check_qrels):
        with pytest.raises(InputError, match="no such file"):
            call(tmp_path / "none")


def test_errors_come_first_and_print_with_their_place(tmp_path: Path) -> None:
    findings = check_run(written(tmp_path, "1 Q0 a 1 1 t\r\n1 Q0 b 2 1 t\r\n1 Q0 c 3 x t\r\n1 Q0 d 4 y t\r\n"))
    assert [finding.severity for finding in findings] == ["error", "warning", "warning", "info"]
    assert str(findings[0]) == (
        f"{tmp_path / 'file.txt'}:3: error: the score 'x' is not a number (2 times). "
        "Fix: write a number with a decimal point. [bad-score]"
    )


@pytest.mark.slow
def test_a_million_lines_take_seconds(tmp_path: Path) -> None:
    lines = "".join(
        f"{row // 1000} Q0 d{row * 7919 % 999983} {row % 1000 + 1} {1000 - row % 1000} t\n" for row in range(10**6)
    )
    path = written(tmp_path, lines, "big.run")
    start = time.perf_counter()
    findings = check_run(path, Qrels.of({str(topic): {"d1": 1} for topic in range(1000)}))
    assert codes(findings) == []
    assert time.perf_counter() - start < 30


@needs_shared
def test_real_runs_have_no_errors_but_the_one_with_wrong_ids() -> None:
    qrels = Qrels.read(SHARED / "cranfield" / "qrels" / "cranfield.graded.qrels")
    for path in sorted((SHARED / "cranfield" / "runs").glob("*.run.gz"))[:4]:
        findings = check_run(path, qrels)
        assert all(finding.severity != "error" for finding in findings)
        assert ("extra-topics" in codes(findings)) == path.name.startswith("WRONG")


@pytest.mark.parametrize(
    ("returned", "cause"),
    [
        (["docA#1", "docB#2"], "ids of the run have a suffix"),
        (["docA_0", "docA_1"], "ids of the run have a suffix"),
        (["beir/docA", "beir/docB"], "ids of the run have a prefix"),
        (["/data/x/docA", "/data/y/docB"], "ids of the run start with a path"),
        (["docA.txt", "docB.txt"], "ids of the run have a"),
        (["doc", "doc"], "ids of the run are truncated to 3 characters"),
        (["zzz", "yyyy"], ""),
    ],
)
def test_why_no_returned_document_is_judged(returned: list[str], cause: str) -> None:
    findings = check_run(Run.of({"q": returned}), Qrels.of({"q": {"docA": 1, "docB": 0}, "r": {"docC": 1}}))
    (finding,) = [candidate for candidate in findings if candidate.rule == "nothing-judged"]
    assert finding.severity == "error"
    assert cause in finding.problem
    assert bool(cause) == (";" in finding.problem)


def test_ids_that_are_numbers_with_a_fraction_are_named() -> None:
    run, qrels = Run.of({"q": ["5.0", "7.0"]}), Qrels.of({"q": {"5": 1, "7": 0}})
    assert [finding.rule for finding in check_run(run, qrels) if finding.severity == "error"] == ["nothing-judged"]
    assert "ids of the run end in .0" in next(
        finding.problem for finding in check_run(run, qrels) if finding.severity == "error"
    )
    turned = check_run(Run.of({"q": ["5", "7"]}), Qrels.of({"q": {"5.0": 1, "7.0": 0}}))
    assert "ids of the qrels end in .0" in next(finding.problem for finding in turned if finding.severity == "error")


def test_one_judged_document_is_something() -> None:
    findings = check_run(Run.of({"q": ["x#1", "docA"]}), Qrels.of({"q": {"docA": 1}}))
    assert "nothing-judged" not in {finding.rule for finding in findings}
    other = check_run(Run.of({"q": ["docB"]}), Qrels.of({"q": {"docA": 1}, "r": {"docB": 1}}))  # judged elsewhere
    assert "nothing-judged" in {finding.rule for finding in other}


@pytest.mark.parametrize(("name", "count"), [("a.csv", 2), ("a.tsv", 0)])
def test_apostrophes_that_are_not_read_are_counted(name: str, count: int, tmp_path: Path) -> None:
    rows = ["query_id,doc_id,relevance", "q1,'=a,1", 'q1,"\'@b",0', "q1,'c,1", "q1,it's,1"]
    text = "\n".join(rows).replace(",", "," if name.endswith("csv") else "\t") + "\n"
    path = written(tmp_path, text, name)
    counts = [finding.count for finding in check_qrels(path).findings if finding.rule == "apostrophe"]
    assert counts == [count][:count]
    ids = {"=a", "@b", "'c", "it's"} if count else {"'=a", '"\'@b"', "'c", "it's"}
    assert set(Qrels.read(path).table["doc_id"].to_pylist()) == ids


def test_documents_that_are_not_in_the_corpus_are_counted(tmp_path: Path) -> None:
    qrels, run = written(tmp_path, QRELS, "a.qrels"), written(tmp_path, RUN + "2 Q0 z 3 0.25 t\n", "a.run")
    for corpus, lost in (("a\nb\nc\nz\n", {}), ("a\nc\n", {qrels: (1, 2), run: (2, 2)}), ("A\n", {qrels: (3, 1)})):
        texts = written(tmp_path, corpus, "ids.txt")
        candidate = check(qrels, [run], texts=texts).findings
        ours = {finding.path: (finding.count, finding.line) for finding in candidate if finding.rule == "not-in-corpus"}
        assert ours | {str(path): count for path, count in lost.items()} == ours
        assert bool(ours) is bool(lost)
    rows = written(tmp_path, '{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y"}\n', "corpus.jsonl")
    [finding] = [
        candidate for candidate in check(Qrels.read(qrels), texts=rows).findings if candidate.rule == "not-in-corpus"
    ]
    assert (finding.severity, finding.count) == ("warning", 1)
