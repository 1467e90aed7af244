"""`judged explain`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Ended

QRELS = "q1 0 a 3\nq1 0 b 0\nq1 0 c 1\nq2 0 a 1\n"
RUN = "q1 Q0 b 1 3 t\nq1 Q0 x 2 2 t\nq1 Q0 a 3 1 t\nq2 Q0 a 1 1 t\n"

NDCG = """\
== nDCG@3 of topic q1, run a ==

== ranking ==

rank  document  grade  gain  discount  gain / discount  so far
1     b             0     0         1                0       0
2     x             -
3     a             3     3         2           1.5000  1.5000

gain = grade
discount = log2(rank + 1)
DCG@3 = sum of gain / discount = 1.5000

== ideal ranking ==

rank  document  grade  gain  discount  gain / discount  so far
1     a             3     3         1                3       3
2     c             1     1    1.5850           0.6309  3.6309
3     b             0     0         2                0  3.6309

gain = grade
discount = log2(rank + 1)
IdealDCG@3 = sum of gain / discount = 3.6309
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"qrels.txt": QRELS, "a.run": RUN, "queries.tsv": "q1\tlist of cats\nq2\tmore\n"}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


def test_the_whole_of_one_explanation(run: Callable[..., Ended]) -> None:
    done = run("explain", "qrels.txt", "a.run", "--topic", "q1", "-m", "nDCG@3")
    assert done.code == 0
    assert done.out.startswith(NDCG)
    assert done.out.splitlines()[-1] == "nDCG@3 = DCG / IdealDCG = 1.5000 / 3.6309 = 0.4131"


def test_several_measures_and_the_query(run: Callable[..., Ended]) -> None:
    done = run("explain", "qrels.txt", "a.run", "-t", "q2", "-m", "RR", "-m", "P@1,2", "--queries", "queries.tsv")
    assert done.out.startswith("== RR of topic q2, run a ==\n\nquery: more\n")
    assert [line for line in done.lines if " of topic " in line] == [
        "== RR of topic q2, run a ==", "== P@1 of topic q2, run a ==", "== P@2 of topic q2, run a ==",
    ]  # fmt: skip
    assert done.lines[-1].endswith("= 0.5000")


def test_forms(run: Callable[..., Ended]) -> None:
    made = json.loads(run("explain", "qrels.txt", "a.run", "-t", "q1", "-m", "nDCG@3", "--format", "json").out)
    assert (made["measure"], made["query_id"], made["run"]) == ("nDCG@3", "q1", "a")
    assert made["sheets"][0]["rows"][1] == [2.0, "x", None, None, None, None, None]
    assert made["steps"][-1]["value"] == made["score"] == pytest.approx(1.5 / 3.6309297535714573)
    several = json.loads(
        run("explain", "qrels.txt", "a.run", "-t", "q1", "-m", "RR", "-m", "AP", "--format", "json").out
    )
    assert [one["measure"] for one in several["answers"]] == ["RR", "AP"]
    page = run("explain", "qrels.txt", "a.run", "-t", "q1", "-m", "nDCG@3", "--format", "markdown").lines
    assert page[0] == "### nDCG@3 of topic q1, run a"
    assert "| 3 | a | 3 | 3 | 2 | 1.5000 | 1.5000 |" in page
    assert run("explain", "qrels.txt", "a.run", "-t", "q1", "-m", "RR", "-o", "rr.txt").out == ""


def test_a_list_that_is_typed(run: Callable[..., Ended]) -> None:
    done = run("explain", "--grades", "3, 0 - 2", "--missing", "1", "-m", "R@3")
    assert done.lines[-1].endswith("= 1 / 3 = 0.3333")
    assert done.err == ""
    alone = run("explain", "--grades", "3, 0 - 2", "-m", "R@3")
    assert "documents that are not in --grades are assumed to be not relevant. Fix: add the grades" in alone.err
    assert "3     d3            -" in done.out


def test_a_depth_cuts_what_was_typed(run: Callable[..., Ended]) -> None:
    assert run("explain", "--grades", "0 1", "-m", "R@3", "--depth", "1").lines[-1].endswith("= 0 / 1 = 0")


def test_the_form_goes_by_the_name_of_the_file(run: Callable[..., Ended], tmp_path: Path) -> None:
    run("explain", "--grades", "0 1", "-m", "RR", "-o", "x.json")
    assert json.loads((tmp_path / "x.json").read_text())["score"] == 0.5
    run("explain", "--grades", "0 1", "-m", "RR", "-o", "x.md")
    assert (tmp_path / "x.md").read_text().startswith("### RR")


def test_other_tools(run: Callable[..., Ended]) -> None:
    done = run("explain", "qrels.txt", "a.run", "-t", "q1", "-m", "nDCG@3", "--as", "trec_eval-9,gdeval,lenskit")
    rows = [line.split() for line in done.lines[3:7]]
    assert [row[0] for row in rows] == ["judged", "trec_eval-9", "gdeval", "lenskit"]
    assert rows[2][1:4] == ["ndcg@3", "nDCG(gain=exp2,undefined=skip)@3", "0.45866"]  # 3.5 / 7.63093
    assert done.lines[5].endswith("gain=exp2 instead of linear")
    assert done.lines[6].endswith("the tool does not have this measure")
    every = run(
        "explain", "qrels.txt", "a.run", "-t", "q1", "-m", "AP", "--as", "all", "--rel", "2", "--format", "json"
    )
    scores = {one["tool"]: one["score"] for one in json.loads(every.out)["tools"]}
    assert scores["pytrec_eval"] == scores["ranx"] == pytest.approx(1 / 3)
    assert scores["gdeval"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qrels.txt", "a.run", "-m", "AP"], "one topic is required, got 2. Fix: add --topic, such as --topic q1."),
        (["qrels.txt", "a.run", "-m", "AP", "-t", "q9"], "the qrels have no topic 'q9'. Fix: use one of q1, q2."),
        (["qrels.txt", "-m", "AP"], "QRELS and RUN are required"),
        (["-m", "AP"], "QRELS and RUN are required"),
        (["--grades", "1 q", "-m", "AP"], "`grades` must be a list of grades, got '1 q'"),
        (
            ["qrels.txt", "a.run", "--grades", "1", "-m", "AP"],
            "--grades cannot be combined with QRELS, RUN",
        ),
        (["--grades", "1", "-t", "q1", "-m", "AP"], "--grades cannot be combined with --topic"),
        (["--grades", "1", "-m", "AP", "-o", "x.doc"], "the format of a result is unknown for .doc"),
        (
            ["--grades", "1", "-m", "AP", "-m", "RR", "--format", "csv"],
            "the result has 2 answers, so a table name is required",
        ),
        (["--grades", "1", "-m", "Nothing"], "no measure"),
        (["--grades", "1", "-m", "AP", "--as", "quepid"], "no tool 'quepid'. Fix: use one of trec_eval-10"),
    ],
)
def test_what_is_refused(run: Callable[..., Ended], arguments: list[str], message: str) -> None:
    done = run("explain", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_titles_stand_beside_ids(run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("q 0 d1 1\nq 0 d2 0\n")
    Path("a.run").write_text("q Q0 d2 1 2 a\nq Q0 d1 2 1 a\n")
    long = "Of income tax, how it is paid, when, and by whom in this country"
    Path("texts.csv").write_text(f'doc_id,title,text\nd1,Peace,"And, how"\nd2,,"{long}"\n')
    asked = ("explain", "q.txt", "a.run", "-m", "RR")
    shown = run(*asked, "--texts", "texts.csv")
    rows = {line.split()[1]: line for line in shown.lines if line[:1].isdigit()}
    assert rows["d1"].split()[2] == "Peace"
    assert "Of income tax, how it is paid, when..." in rows["d2"]
    assert json.loads(run(*asked, "--texts", "texts.csv", "--format", "json").out)["titles"]["d1"] == "Peace"
    plain = json.loads(run(*asked, "--format", "json").out)
    assert "titles" not in plain
    again = judged.explain("q.txt", "a.run", "RR", texts="texts.csv")
    assert again.text() + "\n" == shown.out
    assert run(*asked, "--texts", "texts.csv", "--as", "gdeval").code == 2


def test_documents_that_no_measure_asks_for_are_said_to_be_unused(
    run: Callable[..., Ended], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.txt").write_text("q 0 d1 1\n")
    Path("a.run").write_text("q Q0 d1 1 2 a\n")
    Path("documents.csv").write_text("doc_id,title,length\nd1,Peace,120\n")
    asked = ("explain", "q.txt", "a.run", "--documents", "documents.csv")
    assert "--texts FILE" in run(*asked, "-m", "RR").err
    assert "--texts" not in run(*asked, "-m", "TBG").err
    assert run(*asked, "-m", "TBG").code == 0


def test_the_default_measure(run: Callable[..., Ended]) -> None:
    assert run("explain", "--grades", "0 1").out == run("explain", "--grades", "0 1", "-m", "nDCG@10").out
