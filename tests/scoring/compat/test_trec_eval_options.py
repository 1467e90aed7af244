"""The options, read parsed by the rules of getopt_long."""

from __future__ import annotations

import pytest

from judged.scoring.compat.trec_eval.options import CommandOptions, read_options
from judged.scoring.peers.trec_eval import TrecEvalError

FILES = ["q", "r"]
READ = {"qrels": "q", "run": "r"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (FILES, {}),
        (["-qcn", *FILES], {"per_topic": True, "complete": True, "summary": False}),
        (["-q", "q", "-c", "r", "-J"], {"per_topic": True, "complete": True, "judged_only": True}),
        (["-l2", *FILES], {"level": 2}),
        (["-l", "2", *FILES], {"level": 2}),
        (["-ql3", *FILES], {"per_topic": True, "level": 3}),
        (["-l", "1.5", *FILES], {"level": 1}),  # as atol reads it
        (["-l", "0", "-M0", "-N", " +07 ", *FILES], {"level": 0, "depth": 0, "collection": 7}),
        (["--level_for_rel=2", *FILES], {"level": 2}),
        (["--level_for_rel", "2", *FILES], {"level": 2}),
        (["--lev", "2", *FILES], {"level": 2}),
        (["-M100", "-N", "5000", *FILES], {"depth": 100, "collection": 5000}),
        (["--Max_retrieved_per_topic=7", "--Number_docs_in_coll=9", *FILES], {"depth": 7, "collection": 9}),
        (["-mmap", "-m", "P.5", "--measure=ndcg", *FILES], {"measures": ("map", "P.5", "ndcg")}),
        (["-m", "-", "--help"], None),
        (["-D0.302", *FILES], {"topic": "302"}),
        (["-D", "1", *FILES], {"topic": None}),
        (["--Debug_level", "0.a.b", *FILES], {"topic": "a.b"}),
        (["-R", "prefs", "-Ttrec_results", "-Zz", *FILES], {"qrels_format": "prefs", "means_path": "z"}),
        (["-o", *FILES], {}),
        (["--query_eval_wanted", "--complete", "--nosum", "--Judged", *FILES],
         {"per_topic": True, "complete": True, "summary": False, "judged_only": True}),
        (["--dialect", "trec_eval-9", *FILES], {"dialect": "trec_eval-9"}),
        (["-m", "map", "--dialect=trec_eval-10", *FILES], {"measures": ("map",)}),
    ],
)  # fmt: skip
def test_how_arguments_are_read(arguments: list[str], expected: dict[str, object] | None) -> None:
    if expected is None:
        with pytest.raises(TrecEvalError):
            read_options(arguments)
        return
    assert read_options(arguments) == CommandOptions(**{**READ, **expected})  # type: ignore[arg-type]


def test_everything_behind_two_dashes_is_a_file() -> None:
    options = read_options(["-q", "--", "-l2", "-"])
    assert (options.qrels, options.run, options.level) == ("-l2", "-", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["q"],
        ["q", "r", "x"],
        ["-x", *FILES],
        ["-qx", *FILES],
        [*FILES, "-l"],
        [*FILES, "-m"],
        ["-m", "nDCG@10", *FILES],
        ["-m", "P.", *FILES],
        ["--R", "prefs", *FILES],  # Rel_info_format or Results_format
        ["--nosummary=yes", *FILES],
        ["--Q", *FILES],
        ["--dialect", "trec_eval-8", *FILES],
        ["--dialect", "trec_eval-9", "-m", "rbp", *FILES],
        ["-l", "-1", *FILES],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(TrecEvalError) as caught:
        read_options(arguments)
    assert caught.value.code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-l", "two"], "-l two: 'two' is not a number. Fix: write digits, as in -l 10"),
        (["-M", "abc"], "-M abc: 'abc' is not a number. Fix: write digits, as in -M 10"),
        (["-N", "5k"], "-N 5k: '5k' is not a number. Fix: write digits, as in -N 10"),
        (["--Max=1e3"], "-M 1e3: '1e3' is not a number. Fix: write digits, as in -M 10"),
        (["-l", ""], "-l : '' is not a number. Fix: write digits, as in -l 10"),
        (["-M", "-5"], "-M -5: the number of documents must be 0 or more. Fix: use -M 10"),
    ],
)
def test_text_that_is_no_number(arguments: list[str], message: str) -> None:
    """atol takes it for 0, or for what it starts with."""
    with pytest.raises(TrecEvalError) as caught:
        read_options([*arguments, *FILES])
    assert (caught.value.code, str(caught.value)) == (1, message)


def test_version_and_help_need_no_files() -> None:
    assert read_options(["-v", "-m", "no_such_measure"]).version
    assert read_options(["-h", "-m", "map"]) == CommandOptions(help=True, measures=("map",))
    assert read_options(["--help", "q", "r", "x"]).help
