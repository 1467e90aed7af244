"""Exact text of the tables of a comparison, and their marks."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison_made import scores
from judged.comparison.answer import letter_ranges, system_letters
from judged.results.decimals import decimal
from judged.results.escaping import Cell, TextTable

RANKS = {
    "a_b": [1, 1, 2, 2, 3, 1, 1, 2, 1, 1],
    "50%|x": [2, 2, 2, 3, 4, 2, 1, 3, 2, 1],
    "old": [4, 4, 5, 6, 9, 5, 3, 8, 7, 2],
}
# all 2^10 sign flips: only the one that was seen and its mirror are as extreme, so p is 2/1024, by Holm times 3 or 2;
# a_b and 50%|x tie on 3 topics: 2/2^7
RULES = "paired randomization test, exact; p corrected by Holm for 3 comparisons; alpha = 0.05"
CAPTION = f"n = 10 topics; {RULES}"
LETTERS = "letters: systems that this system is significantly better than"


@pytest.fixture(scope="module")
def result():
    return scores(**RANKS).compare(ci="none")


def test_text_for_the_terminal(result) -> None:
    assert (
        result.text(width=100)
        == """\
   run           RR
a  a_b    0.7833 bc
b  50%|x  0.5417 c
c  old    0.2279

n = 10 topics; paired randomization test, exact; p corrected by Holm for 3 comparisons; alpha =
0.05; letters: systems that this system is significantly better than

== RR ==

   run          a         b         c
a  a_b             +0.242 *  +0.555 *
b  50%|x  0.016 *            +0.314 *
c  old    0.006 *   0.006 *

RR: above the diagonal: row minus column; below the diagonal: p; significant values are marked *

run    baseline                difference  adjusted p     dz  won-tied-lost  detectable
a_b    50%|x     +0.2417 [0.021, 0.500] *       0.016  +1.05          7-3-0       0.272
a_b    old       +0.5554 [0.308, 0.789] *      0.0059  +2.36         10-0-0       0.290
50%|x  old       +0.3138 [0.188, 0.483] *      0.0059  +1.95         10-0-0       0.243

RR: significant differences are marked *; 98.3% CIs: in at least 95% of samples, all 3 CIs contain
the true differences; detectable: true difference that is detected with at least 80% power at the
corrected alpha = 0.05 / 3, if differences on new topics vary as on these topics (less power if rare
topics cause the difference)

a_b is better than 50%|x in RR: a_b - 50%|x = +0.2417 (98.3% CI [0.021, 0.500]) over 10 topics, p =
0.016 after Holm correction. Effect size dz = +1.05; a_b is higher on 7 topics, equal on 3, lower on
0. Up to 25.9% of all topics (95% upper bound) may be of a kind that is missing from these 10
topics. A mean difference below -0.69 on the missing topics would reverse the result. Largest
differences in favor of a_b: q00 0.500, q01 0.500, q05 0.500.
a_b is better than old in RR: a_b - old = +0.5554 (98.3% CI [0.308, 0.789]) over 10 topics, p =
0.0059 after Holm correction. Effect size dz = +2.36; a_b is higher on 10 topics, equal on 0, lower
on 0. Largest differences in favor of a_b: q08 0.857, q05 0.800, q00 0.750.
50%|x is better than old in RR: 50%|x - old = +0.3138 (98.3% CI [0.188, 0.483]) over 10 topics, p =
0.0059 after Holm correction. Effect size dz = +1.95; 50%|x is higher on 10 topics, equal on 0,
lower on 0. Up to 25.9% of all topics (95% upper bound) may be of a kind that is missing from these
10 topics. A mean difference below -0.90 on the missing topics would reverse the result. Largest
differences in favor of 50%|x: q06 0.667, q09 0.500, q08 0.357.

Over the 10 topics of the qrels; ties by descending document id"""
    )


def test_latex_for_a_paper(result) -> None:
    board, matrix, pairs = result.latex().split("\n\n")
    assert (
        board
        == rf"""\begin{{table}}
\centering
\caption{{{CAPTION}; {LETTERS}.}}
\begin{{tabular}}{{llr}}
\toprule
 & run & RR \\
\midrule
a & a\_b & \textbf{{0.7833}}$^{{bc}}$ \\
b & 50\%|x & 0.5417$^{{c}}$ \\
c & old & 0.2279 \\
\bottomrule
\end{{tabular}}
\end{{table}}"""
    )
    assert r"b & 50\%|x & 0.016$^{*}$ &  & +0.314$^{*}$ \\" in matrix
    assert r"a\_b & 50\%|x & +0.2417$^{*}$ [0.021, 0.500] & 0.016 & +1.05 & 7-3-0 & 0.272 \\" in pairs
    assert r"\caption{RR: above" in matrix
    assert r"\caption{RR: significant differences" in pairs
    against = scores(**RANKS).compare(baseline="50%|x", ci="none").latex()
    assert r"\caption{n = 10 topics;" in against
    assert r"$\dagger$ significantly better, $\ddagger$ worse than the baseline 50\%|x.}" in against
    assert r"a\_b & \textbf{0.7833}$^{\dagger}$ \\" in against
    assert r"50\%|x (baseline) & 0.5417 \\" in against
    assert r"old & 0.2279$^{\ddagger}$ \\" in against


def test_markdown(result) -> None:
    assert result.markdown().startswith(
        rf"""|  | run | RR |
| :-- | :-- | --: |
| a | a_b | **0.7833**<sup>bc</sup> |
| b | 50%\|x | 0.5417<sup>c</sup> |
| c | old | 0.2279 |

{CAPTION}; {LETTERS}.

### RR"""
    )
    assert "| b | 50%\\|x | 0.016<sup>*</sup> |  | +0.314<sup>*</sup> |" in result.markdown()


def test_intervals_stand_behind_the_marks_in_a_paper() -> None:
    row = scores(**RANKS).compare(ci="t").latex().splitlines()[7]
    low, high = scores(**RANKS).compare(ci="t").measures[0].estimates[0].ci
    assert row == rf"a & a\_b & \textbf{{0.7833}}$^{{bc}}$ [{low:.3f}, {high:.3f}] \\"


def test_csv_in_full_precision(result) -> None:
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    assert [(row["first"], row["second"]) for row in rows] == [(pair.first, pair.second) for pair in result.pairs]
    for row, pair in zip(rows, result.pairs, strict=True):
        assert float(row["difference"]) == pair.result.difference
        assert (float(row["difference_low"]), float(row["difference_high"])) == pair.result.interval
        assert (float(row["p"]), float(row["adjusted"])) == (pair.result.p, pair.result.adjusted)
        assert (row["significant"], row["better"]) == ("true", pair.second)
        assert float(row["dz"]) == pair.effects.dz
        assert [int(row[name]) for name in ("wins", "ties", "losses", "n")] == [
            pair.wins.wins, pair.wins.ties, pair.wins.losses, 10,
        ]  # fmt: skip


def test_the_document(result) -> None:
    output = result.to_dict()
    assert output["order"] == ["a_b", "50%|x", "old"]
    assert output["caption"] == f"{CAPTION}; {LETTERS}"
    assert output["choices"] == {
        "test": "randomization", "correction": "holm", "family": "measure", "alpha": 0.05, "resamples": 100_000,
        "seed": 0, "min_difference": 0.0, "margin": None, "baseline": None,
    }  # fmt: skip
    assert output["measures"] == [{"name": "RR", "family": 3, "untested": "", "overall": ""}]
    assert output["results"][2] == {
        "run": "old", "measure": "RR", "aggregate": "mean", "value": pytest.approx(0.2278968), "ci": None, "n": 10,
    }  # fmt: skip
    pair = next(row for row in output["pairs"] if {row["first"], row["second"]} == {"a_b", "50%|x"})
    assert (pair["first"], pair["second"], pair["better"]) == ("50%|x", "a_b", "a_b")
    assert (pair["p"], pair["adjusted"], pair["exact"]) == (2 / 2**7, 2 / 2**7, True)
    names = ("wins", "ties", "losses", "min_difference", "left_out")
    assert [pair[name] for name in names] == [7, 3, 0, 0.0, 0]
    topics = [row for row in output["topics"] if (row["first"], row["second"]) == ("50%|x", "a_b")]
    assert topics[0] == {
        "measure": "RR", "first": "50%|x", "second": "a_b",
        "query_id": "q00", "difference": 0.5, "first_value": 0.5, "second_value": 1.0,
    }  # fmt: skip
    assert all(topic["difference"] > 0 for topic in topics)


def test_html_for_notebooks(result) -> None:
    output = result._repr_html_()
    assert "<b>0.7833</b><sup>bc</sup>" in output


@pytest.mark.parametrize("measure", ["P@1", "R@3", "GMAP"])
def test_the_matrix_is_the_same_seen_from_both_sides(measure: str) -> None:
    ranks = {"first": [1, 1, 1, 9, 9, 9, 9, 9], "second": [2, 2, 3, 3, 2, 3, 1, 2], "third": [5, 4, 1, 1, 4, 9, 9, 3]}
    comparison = scores(["P@1", "R@3", "GMAP"], **ranks).compare(test="t", correction="none")
    by_measure = comparison.measure(measure)
    columns, order = (
        comparison.matrix(by_measure.name).columns[2:],
        [comparison.scores.run_names[i] for i in comparison.order],
    )
    assert order == ["first", "third", "second"]  # by P@1; by R@3 and GMAP second is the best
    means = [by_measure.estimates[i].value for i in comparison.order]
    for i, row in enumerate(order):
        for j, column in enumerate(order):
            cell, mark = columns[j].values[i], columns[j].mark[i]
            if i == j:
                assert cell == ""
                continue
            pair = comparison.pair(row, column, by_measure.name)
            assert (mark == "*") == pair.significant
            if i > j:
                assert cell == ("<0.001" if pair.result.p < 0.001 else f"{pair.result.p:.3f}")
            elif measure == "GMAP":
                assert float(cell.removeprefix("\N{MULTIPLICATION SIGN}")) == pytest.approx(
                    means[i] / means[j], abs=5.1e-4
                )
            else:
                assert float(cell) == pytest.approx(means[i] - means[j], abs=5.1e-4)


def test_long_lists_are_collapsed() -> None:
    rng = np.random.default_rng(4)
    many = scores(**{f"s{i:02}": rng.integers(1, 15, 6).tolist() for i in range(28)}).compare(test="t")
    text = many.text(width=100)
    assert "numbers: systems that" in many.caption
    assert [row[0] for row in many.leaderboard().grid().rows] == [str(i) for i in range(1, 29)]
    assert "368 more pairs: use --pairs" in text  # 28 * 27 / 2 - 10
    assert "above the diagonal" not in text
    assert "above the diagonal" in many.text(width=100, unfold=["pairs"])
    eight = scores(**{f"s{i}": rng.integers(1, 15, 6).tolist() for i in range(8)}).compare(test="t").text(width=100)
    assert "21 more pairs: use --pairs" in " ".join(eight.split())  # the best against seven are shown
    assert "above the diagonal" in eight


def test_columns_follow_the_first_measure_and_bold_is_of_each() -> None:
    table = scores(["P@1", "R@2"], first=[1, 1, 3, 3], second=[2, 2, 1, 2]).compare(test="t", ci="none").leaderboard()
    assert [column.heading for column in table.columns] == ["run", "P@1", "R@2"]
    names, first, second = table.columns
    assert list(names.values) == ["first", "second"]
    assert [(column.cells(), list(column.best)) for column in (first, second)] == [
        (["0.5000", "0.2500"], [True, False]), (["0.5000", "1.0000"], [False, True]),
    ]  # fmt: skip


# --- marks and numbers ----------------------------------------------------------------------------------


@given(st.integers(2, 40).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1)))))
def test_a_mark_names_each_system_once(case: tuple[int, set[int]]) -> None:
    count, selected = case
    names = system_letters(count)
    mark = letter_ranges(names, selected)
    parts = mark.split(",") if "," in mark or "-" in mark or not names[0].isalpha() else list(mark)
    read: list[int] = []
    for part in filter(None, parts):
        first, _, last = part.partition("-")
        read += range(names.index(first), names.index(last or first) + 1)
    assert read == sorted(selected)


def test_small_numbers_do_not_look_like_none() -> None:
    assert [decimal(value, 3) for value in (0.0005, 0.00049, -0.00001, 0.0, 1.0)] == [
        "0.001", "4.9e-04", "-1.0e-05", "0.000", "1.000",
    ]  # fmt: skip


def test_cells_in_every_form() -> None:
    rows = (("x_y", Cell("0.4", detail="[1, 2]", mark="b-e", best=True)), ("z", Cell("0.3")), ("none", "-"))
    table = TextTable(("run", "AP"), rows)
    assert table.text().splitlines() == [
        "run               AP",
        "x_y   0.4 [1, 2] b-e",
        "z            0.3",
        "none           -",
    ]
    assert table.latex().splitlines()[4:7] == [
        r"x\_y & \textbf{0.4}$^{b{-}e}$ [1, 2] \\",
        r"z & 0.3 \\",
        r"none & - \\",
    ]
    negative = TextTable(("",), ((Cell("-0.12", detail="[-2.0, 1e-05]"),),), labels=0)
    assert negative.latex().splitlines()[4] == r"$-$0.12 [$-$2.0, 1e-05] \\"
    assert table.markdown().splitlines()[2:] == [
        "| x_y | **0.4**<sup>b-e</sup> [1, 2] |",
        "| z | 0.3 |",
        "| none | - |",
    ]
    assert table.csv().splitlines() == ["run,AP", 'x_y,"0.4 [1, 2] b-e"', "z,0.3", "none,-"]
    assert TextTable(("",), (("<1",),), labels=0).latex().splitlines()[4] == r"\textless{}1 \\"


@pytest.mark.parametrize(
    ("p", "expected"), [(0.0498, "0.0498"), (0.05, "0.050"), (0.05003, "0.05003"), (0.25, "0.250")]
)
def test_rounded_p_values_stay_on_their_side_of_alpha(p: float, expected: str) -> None:
    comparison = scores(old=[2] * 9, new=[1, 2, 3] * 3).compare()
    (pair,) = comparison.pairs
    assert replace(pair, result=pair.result.corrected(p, "holm")).format_p() == expected


def test_two_systems_have_their_verdict_first_and_no_letters() -> None:
    result = scores(**{name: RANKS[name] for name in ("old", "a_b")}).compare(ci="none")
    sentence, table = result.text().split("\n\n")[:2]
    assert sentence.startswith("a_b is better than old in RR: a_b - old = +0.5554 (95% CI")
    assert table.splitlines() == ["run        RR", "a_b  0.7833 †", "old  0.2279"]
    assert "† significantly better" in result.caption
    assert "letters" not in result.caption
    assert result.text().count("is better than") == 1


def test_two_equal_systems_have_no_empty_section() -> None:
    result = scores(a=RANKS["old"], b=RANKS["old"]).compare(ci="none")
    assert result.text().startswith("b and a have the same RR on all 10 topics.\n\nrun")
    assert "== RR ==" not in result.text()
    assert "†" not in result.caption
