"""Judgments by users in the drop-in command: preferences, judgment groups, and what trec_eval 10 does with odd ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from judged.scoring.compat.trec_eval.command import CommandResult, trec_eval

RUN = "1 Q0 a 1 9 t\n2 Q0 a 1 9 t\n2 Q0 b 2 8 t\n"


def command(folder: Path, *arguments: str, qrels: str, run: str = RUN, means: str | None = None) -> CommandResult:
    for name, text in (("qrels", qrels), ("run", run), ("means", means or "")):
        (folder / name).write_text(text)
    zscores = [] if means is None else ["-Z", str(folder / "means")]
    return trec_eval([*arguments, *zscores, str(folder / "qrels"), str(folder / "run")])


def values(outcome: CommandResult) -> list[list[str]]:
    return [line.split() for line in outcome.output.splitlines()]


def test_negative_levels_of_preferences(tmp_path: Path) -> None:
    """R = 1, N = 2; b has the lowest level and takes part: a over c, a over b, c over b, b over b; two are kept."""
    qrels = "1 u g a 1\n1 u g b -1\n1 u g c 0\n"
    outcome = command(tmp_path, "-R", "prefs", "-m", "prefs_avgjg_Rnonrel", qrels=qrels, run="1 Q0 a 1 9 t\n")
    assert values(outcome) == [["prefs_avgjg_Rnonrel", "all", "0.5000"]]


GOOD = "1 u g a 1\n1 u g b 0\n"
TWO_LEVELS = "2 u g a 1\n2 u g a 2\n2 u g b 0\n"
ZERO_AND_MORE = "2 u g a 1\n2 u g b 0\n2 u h a 0\n2 u h c 1\n"


@pytest.mark.parametrize("contradiction", [TWO_LEVELS, ZERO_AND_MORE])
def test_a_contradiction_ends_with_exit_code_4_after_the_topics_before(tmp_path: Path, contradiction: str) -> None:
    outcome = command(tmp_path, "-q", "-R", "prefs", "-m", "prefs_simp", qrels=GOOD + contradiction)
    assert (outcome.code, values(outcome)) == (4, [["prefs_simp", "1", "1.0000"]])
    assert command(tmp_path, "-R", "prefs", "-m", "num_q", qrels=GOOD + contradiction).code == 0  # it looks at no level


@pytest.mark.parametrize(
    "consistent",
    [
        "2 u g a 1\n2 v g a 2\n2 u g b 0\n2 v g b 1\n",  # two users
        "2 u g a 1\n2 u h a 2\n2 u g b 0\n2 u h b 0\n",  # two groups, both above 0
        "2 u g a 1\n2 u h a -1\n2 u g b 0\n2 u h b -2\n",  # two groups, one below 0
    ],
)
def test_levels_that_may_differ(tmp_path: Path, consistent: str) -> None:
    assert command(tmp_path, "-R", "prefs", "-m", "prefs_simp", qrels=GOOD + consistent).code == 0


def test_two_levels_of_one_user_in_qrels_prefs(tmp_path: Path) -> None:
    qrels = "1 u a 1\n1 u b 0\n2 u a 1\n2 u a 2\n"
    outcome = command(tmp_path, "-q", "-R", "qrels_prefs", "-m", "prefs_simp", qrels=qrels)
    assert (outcome.code, len(values(outcome))) == (4, 1)


@pytest.mark.parametrize("topic", ["1", "3"])  # also of a topic that is not evaluated
@pytest.mark.parametrize("again", ["1", "0"])
@pytest.mark.parametrize("measure", ["map_avgjg", "num_q"])
def test_a_pair_twice_in_judgment_groups_is_a_malformed_file(
    tmp_path: Path, topic: str, again: str, measure: str
) -> None:
    qrels = f"1 u a 1\n2 u a 1\n{topic} v a 1\n{topic} v a {again}\n"
    arguments = ("-R", "qrels_jg", "-c", "-m", measure)
    outcome = command(tmp_path, *arguments, qrels=qrels)
    assert (outcome.code, outcome.output) == (2, "")
    assert command(tmp_path, *arguments, qrels=qrels.replace("v", "w", 1)).code == 0


def test_a_persistence_of_1_in_the_residual(tmp_path: Path) -> None:
    """p^n + (1 - p) * ... is 1 where a document is not judged, and 0 where all are."""
    qrels = "1 0 b 1\n2 0 a 1\n2 0 b 1\n"
    outcome = command(tmp_path, "-q", "-n", "-m", "rbp_resid.p=1", qrels=qrels)
    assert values(outcome) == [["rbp_resid_p=1", "1", "1.0000"], ["rbp_resid_p=1", "2", "0.0000"]]
    assert command(tmp_path, "-m", "rbp.p=1", qrels=qrels).code == 2  # refused, as docs/trec_eval.md says


@pytest.mark.parametrize("deviation", ["-0.5", "0.5"])
def test_deviations_of_0_have_no_sign(tmp_path: Path, deviation: str) -> None:
    qrels = "1 0 a 1\n2 0 a 1\n"
    means = f"1 map 1.0 {deviation}\n2 map 1.0 {deviation}\n"
    outcome = command(tmp_path, "-q", "-n", "-m", "map", qrels=qrels, means=means)
    assert values(outcome) == [["Zmap", "1", "0.0000"], ["Zmap", "2", "0.0000"]]


def test_a_collection_beyond_what_a_double_counts(tmp_path: Path) -> None:
    qrels, largest = "1 0 a 1\n2 0 a 1\n", 2**53
    assert command(tmp_path, f"-N{2**64 - 1}", "-m", "map", qrels=qrels).code == 0  # only utility asks for it
    assert command(tmp_path, f"-N{largest}", "-m", "utility", qrels=qrels).code == 0
    for beyond in (largest + 1, 2**64 - 1):
        outcome = command(tmp_path, f"-N{beyond}", "-m", "utility", qrels=qrels)
        assert outcome.code == 2
        assert str(largest) in outcome.message
