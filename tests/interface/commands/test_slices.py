"""`judged slices`: what it prints is what `by_slice` and `compare_slices` found."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING

import pytest

import judged
from comparison_made import lists
from judged import slice_topics
from judged.data.sample import FOLDER
from judged.data.write import write_qrels, write_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Ended
    from judged.comparison.slicing.topic_slices import Slicing
    from judged.scoring.evaluation import Scores

GOOD, BAD = [1] * 12 + [4] * 12 + [2] * 3, [1, 2] * 6 + [5] * 12 + [1] * 3
KINDS = ["news"] * 12 + ["law"] * 12 + ["rare"] * 3
SLICES = """
[[slice]]
name = "popular"
expression = "traffic >= 10"
[[slice]]
name = "popular law"
expression = "traffic >= 10 and Kind == 'law'"
min_topics = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    qrels, runs = lists(good=GOOD, bad=BAD)
    write_qrels(judged.Qrels.of(qrels), tmp_path / "qrels.txt")
    for name, run in runs.items():
        scored = {topic: {doc: -at for at, doc in enumerate(docs)} for topic, docs in run.items()}
        write_run(judged.Run.of(scored), tmp_path / f"{name}.run")
    rows = [f"q{at:02}\t{kind}\t{at}" for at, kind in enumerate(KINDS)]
    (tmp_path / "known.tsv").write_text("\n".join(["query_id\tKind\ttraffic", *rows]) + "\n")
    (tmp_path / "slices.toml").write_text(SLICES.replace("Kind", "kind"))
    return tmp_path


CALL = ("slices", "qrels.txt", "bad.run", "good.run", "--attributes", "known.tsv", "-m", "RR")


def scores() -> Scores:
    return judged.evaluate("qrels.txt", ["bad.run", "good.run"], "RR")


def slicing(**options: object) -> Slicing:
    return slice_topics("known.tsv", **({"by": "kind"} | options))


@pytest.mark.usefixtures("folder")
def test_scores_by_slice(run: Callable[..., Ended]) -> None:
    done = run(*CALL, "--by", "kind", "--weights", "traffic")
    found = scores().by_slice(slicing(), weights="traffic")
    assert (done.code, done.out) == (0, found.text() + "\n")
    assert done.lines[4].split()[:4] == ["kind=rare", "(few)", "3", "11%"]
    assert done.lines[6].startswith("traffic-weighted mean")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("option", [("--compare",), ("--baseline", "bad")])
def test_differences_by_slice(run: Callable[..., Ended], option: tuple[str, ...]) -> None:
    done = run(*CALL, "--by", "kind", *option, "--alpha", "0.1", "--family", "measure")
    found = scores().compare_slices(slicing(), "bad", alpha=0.1, family="measure")
    assert (done.code, done.out) == (0, found.text() + "\n")
    assert found.row("kind=law").better == "good"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["markdown", "csv", "json"])
def test_forms(run: Callable[..., Ended], form: str) -> None:
    out = run(*CALL, "--by", "kind", "--format", form).out
    compared = run(*CALL, "--by", "kind", "--compare", "--format", form).out
    both = scores().by_slice(slicing()), scores().compare_slices(slicing())
    if form == "json":
        one, two = json.loads(out), json.loads(compared)
        assert [one["results"], two["results"]] == [found.to_dict()["results"] for found in both]
    else:
        assert [out, compared] == [getattr(found, form)() + "\n" for found in both]


@pytest.mark.usefixtures("folder")
def test_slices_of_ones_own_and_a_minimum(run: Callable[..., Ended]) -> None:
    out = run(*CALL, "--slices", "slices.toml", "--min-topics", "15", "--format", "json").out
    made = {one["name"]: one for one in json.loads(out)["slices"]}
    assert {name: (one["min_topics"], one["n"]) for name, one in made.items()} == {
        "popular": (15, 17), "popular law": (5, 12),
    }  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_attributes_are_crossed(run: Callable[..., Ended]) -> None:
    out = run(*CALL, "--by", "Kind,traffic", "--cross", "--format", "json").out
    names = [one["name"] for one in json.loads(out)["slices"]]
    assert names == [
        "kind=law, traffic 9 to 17", "kind=law, traffic>=18", "kind=news, traffic<9", "kind=news, traffic 9 to 17",
        "kind=rare, traffic>=18",
    ]  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_where_leaves_the_topics_of_one_slice(run: Callable[..., Ended]) -> None:
    out = run(*CALL, "--by", "kind", "--where", "traffic >= 6 and kind != 'rare'", "--format", "json").out
    found = json.loads(out)
    assert {one["name"]: one["n"] for one in found["slices"]} == {"kind=law": 12, "kind=news": 6}
    assert found["results"][0] == {**found["results"][0], "slice": "all topics", "n": 18}
    assert found["qrels"]["where"] == "traffic >= 6 and kind != 'rare'"
    for more in ((), ("--compare",), ("--format", "markdown")):
        out = run(*CALL, "--by", "kind", "--where", "traffic >= 6", *more).out
        assert "Only topics where traffic >= 6 are included." in unescape(out)


@pytest.mark.usefixtures("folder")
def test_slices_by_an_outcome_are_cut_by_the_baseline_and_say_so(run: Callable[..., Ended]) -> None:
    done = run(*CALL, "--by", "first_relevant", "--baseline", "good", "--format", "json")
    found = json.loads(done.out)
    assert {one["name"]: one["n"] for one in found["slices"]} == {
        "first_relevant=1": 12, "first_relevant=2-3": 3, "first_relevant=4-10": 12,
    }  # fmt: skip
    assert found["notes"][0]["rule"] == "cut-by-outcome"
    assert "first_relevant is computed from good" in found["notes"][0]["text"]


def test_the_sample(run: Callable[..., Ended]) -> None:
    names = ("bm25", "rrf")
    runs = [str(FOLDER / "runs" / f"{name}.run.gz") for name in names]
    queries = str(FOLDER / "queries.jsonl")
    for by in ("query_class", "kind", "words", "relevant"):
        done = run("slices", str(FOLDER / "qrels.txt"), *runs, "--queries", queries, "--by", by, "-m", "nDCG@10")
        assert done.code == 0
        assert done.lines[1].split()[:4] == ["all", "topics", "48", "100%"]
        assert by in done.lines[2]


@pytest.mark.usefixtures("folder")
def test_head_and_tail_follow_from_traffic(run: Callable[..., Ended]) -> None:
    """Traffic is 0 to 26, 351 in all: 26 to 19 are 180, the first more than half; 26 to 8 are 323, more than 0.9."""
    out = run(*CALL, "--by", "frequency", "--format", "json").out
    found = {one["name"]: one["n"] for one in json.loads(out)["slices"]}
    assert found == {"frequency=head": 8, "frequency=tail": 8, "frequency=torso": 11}


@pytest.mark.usefixtures("folder")
def test_intervals_have_as_many_resamples_as_are_asked_for(run: Callable[..., Ended]) -> None:
    asked = ("--by", "kind", "--ci", "bootstrap", "--resamples", "300", "--format", "json")
    expected, usual = (
        json.loads(scores().by_slice(slicing(), ci="bootstrap", resamples=resamples).json())
        for resamples in (300, 2000)
    )
    assert json.loads(run(*CALL, *asked).out)["results"] == expected["results"] != usual["results"]


@pytest.mark.usefixtures("folder")
def test_pictures(run: Callable[..., Ended], folder: Path) -> None:
    assert run(*CALL, "--by", "kind", "-o", "made.svg").code == 0
    assert "kind=law (12)" in (folder / "made.svg").read_text()
    assert run(*CALL, "--by", "kind", "--compare", "-o", "made.png").code == 0
    assert (folder / "made.png").read_bytes()[:4] == b"\x89PNG"


def test_slices_by_freshness(run: Callable[..., Ended], folder: Path) -> None:
    """Ages on 2024-03-01 are 0, 29, 30, and unknown; that of a topic is the age of its newest relevant document."""
    relevant = {"q01": "ac", "q02": "bc", "q03": "cd", "q04": "d"}
    qrels = {query: dict.fromkeys(docs, 1) for query, docs in relevant.items()} | {"q05": {"a": 0}}
    write_qrels(judged.Qrels.of(qrels), folder / "few.txt")
    (folder / "documents.csv").write_text("doc_id,when\na,2024-03-01\nb,2024-02-01\nc,2024-01-31\nd,\n")
    documents = ("--documents", "documents.csv", "--columns", "documents.date=when")
    command = ("slices", "few.txt", "good.run", "-m", "RR", "--by", "freshness", "--min-topics", "1", *documents)

    def sizes(*options: str) -> dict[str, int]:
        done = run(*command, *options, "--format", "json")
        assert done.code == 0, done.err
        return {row["slice"]: row["size"] for row in json.loads(done.out)["results"] if "fresh" in row["slice"]}

    bands = {f"freshness={name}": 1 for name in ("0 days", "1 to 29 days", "over 29 days", "no date")}
    assert sizes("--freshness-bands", "0,29") == {**bands, "freshness missing": 1}
    only = ("--as-of", "2024-02-02", "--where", "freshness_days < 1 or freshness == 'no date'")
    assert sizes(*only) == {"freshness=after the reference day": 1, "freshness=no date": 1}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "no slicing attribute. Fix: use --by with one of kind, traffic, or --slices FILE"),
        (("--by", "odd"), "no attribute 'odd'"),
        (
            ("--by", "words"),
            ("the attribute words is in no table and cannot be derived. Fix: pass the texts of the topics"),
        ),
        (("--by", "freshness"), "cannot be derived. Fix: pass documents with a date."),
        (("--by", "kind", "--as-of", "2024"), "--as-of requires --documents. Fix: add --documents FILE"),
        (("--by", "kind", "--freshness-bands", "7"), "--freshness-bands requires --documents"),
        (("--by", "freshness", "--documents", "known.tsv", "--columns", "doc_id=query_id"), "no doc_id"),
        (("--by", "kind", "--baseline", "odd"), "no run 'odd' to use as the baseline. Fix: use one of bad, good"),
        (("--by", "kind", "--compare", "--baseline", "bad"), "cannot be combined"),
        (("--by", "kind", "--cross"), "--cross requires two attributes"),
        (("--by", "kind", "--alpha", "0.1"), "--alpha has no effect without a comparison"),
        (("--by", "kind", "--resamples", "500"), "--resamples has no effect without a comparison"),
        (("--by", "kind", "--compare", "--ci", "t"), "--ci has no effect with a comparison"),
        (("--by", "kind", "--compare", "--weights", "traffic"), "--weights has no effect with a comparison"),
        (("--by", "kind", "--weights", "kind"), "the attribute kind is not a number"),
        (("--by", "kind", "--where", "traffic > 99"), "no topic satisfies 'traffic > 99'"),
        (("--by", "kind", "--where", "import os"), "is not an expression"),
        (("--by", "kind", "--ties", "bounds"), "'bounds' is not one of"),
        (("--by", "kind", "-o", "known.tsv", "--format", "csv"), "the output file is also an input"),
        (("--by", "kind", "-o", "made.odd"), "the format of a result is unknown for .odd"),
    ],
)
def test_wrong_input(run: Callable[..., Ended], options: tuple[str, ...], problem: str) -> None:
    done = run(*CALL, *options)
    assert done.code == 2
    assert problem in done.err
    assert done.err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_sums_are_not_compared_and_it_says_so(run: Callable[..., Ended]) -> None:
    alone = run(*CALL[:-1], "NumRelRet", "--by", "kind", "--compare")
    problem = "no measure is a mean over topics: NumRelRet is a sum over the topics. Fix: add a measure"
    assert (alone.code, problem in alone.err) == (2, True)
    beside = run(*CALL, "-m", "NumRelRet", "--by", "kind", "--compare")
    assert beside.code == 0
    assert "NumRelRet is a sum over the topics, so it is not compared by slice" in beside.err
    assert "was not tested" not in beside.err


@pytest.mark.usefixtures("folder")
def test_three_runs_have_no_pair(run: Callable[..., Ended]) -> None:
    done = run(*CALL[:4], "again=good.run", *CALL[4:], "--by", "kind", "--compare")
    assert "--compare requires two runs, got 3" in done.err
