"""Verdicts that depend on a few topics are labeled in all outputs."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from comparison_made import scores
from judged.comparison.pair import SENSITIVE, SIGNIFICANT
from judged.stats.sensitivity import sensitivity

N = 48
OLD = [6, 5] * (N // 2 - 1) + [5, 1]
LOSER = [5, 4] * (N // 2 - 1) + [4, 2]  # gains 0.033 or 0.05 on all topics but the last, which loses 0.5
STEADY = [rank - 1 for rank in OLD[:-1]] + [1]


def test_a_verdict_that_one_topic_could_undo_is_labeled() -> None:
    table = scores(old=OLD, new=LOSER)
    pair = table.compare(test="t").pairs[0]
    alone = sensitivity(*table.values[:, 0], max_difference=1.0)
    assert (pair.better, pair.sensitive, pair.few_topics) == ("new", True, ("q47",))
    assert pair.sensitivity == alone
    assert alone.bounded_p > 0.05
    assert "Sensitive to a few topics (q47)" in pair.sentence
    assert "The bounded test does not confirm the result" in pair.sentence


def test_what_the_sample_may_have_missed_is_stated_below_100_topics() -> None:
    """1 - 0.05^(1/48) = 6.05 %; a mean of 0.0415 over the others is outweighed by -0.0415 * 0.9395 / 0.0605 = -0.64."""
    table = scores(old=OLD, new=STEADY)
    pair = table.compare(test="t").pairs[0]
    assert (pair.better, pair.sensitive, pair.few_topics) == ("new", False, ())
    mean, share = float(np.diff(table.values[:, 0], axis=0).mean()), 1 - 0.05 ** (1 / N)
    assert pair.sensitivity.missed_share == pytest.approx(share)
    assert pair.sensitivity.reversing_difference == pytest.approx(-mean * (1 - share) / share)
    assert f"Up to {share:.1%} of all topics" in pair.sentence
    assert f"below {pair.sensitivity.reversing_difference:+.2f}" in pair.sentence
    many = scores(old=OLD * 3, new=STEADY * 3).compare(test="t").pairs[0]
    assert many.better == "new"
    assert "Up to" not in many.sentence


def test_sensitivity_is_computed_for_significant_means_only() -> None:
    table = scores(old=OLD, new=LOSER)
    for how in ({"test": "sign"}, {"test": "wilcoxon"}, {"test": "t", "alpha": 0.001}):
        pair = table.compare(**how).pairs[0]
        assert (pair.sensitivity, pair.sensitive, pair.few_topics) == (None, False, ())
    assert table.compare(test="bounded").pairs[0].better is None


def test_ratios_of_geometric_means_have_no_bounds_and_are_labeled_by_the_topics_alone() -> None:
    pair = scores("GMAP", old=[6, 5] * 12, new=[5, 4] * 12).compare().pairs[0]
    assert pair.better == "new"
    assert np.isnan(pair.sensitivity.bounded_p)
    assert not pair.sensitive
    assert "bounded" not in pair.sentence


def test_both_orders_name_the_same_topics() -> None:
    table = scores(old=OLD, new=LOSER)
    first, second = (table.compare(test="t", baseline=name).pairs[0] for name in ("old", "new"))
    assert first.few_topics == second.few_topics
    assert first.sensitivity.bounded_p == pytest.approx(second.sensitivity.bounded_p)
    assert first.sensitivity.reversing_difference == pytest.approx(
        -second.sensitivity.reversing_difference, nan_ok=True
    )


def test_tables_and_notes_of_several_pairs_show_the_label() -> None:
    result = scores(old=OLD, new=LOSER, steady=STEADY).compare(test="t", baseline="old")
    columns = {column.name: column for column in result.pair_table().columns}
    marks = dict(zip(columns["run"].values, columns["difference"].mark, strict=True))
    assert marks == {"new": SENSITIVE, "steady": SIGNIFICANT}
    assert SENSITIVE in result.pair_table().note
    (note,) = [note for note in result.notes if note.rule == "sensitive"]
    assert "1 of 2 significant differences" in note.text
    assert "new and old in RR" in note.text
    assert not [note for note in scores(old=OLD, steady=STEADY, third=OLD).compare().notes if note.rule == "sensitive"]


def test_data_has_the_numbers_behind_it() -> None:
    result = scores(old=OLD, new=LOSER).compare(test="t")
    pair = result.pairs[0]
    (row,) = json.loads(result.json())["pairs"]
    assert (row["sensitive"], row["few_topics"]) == (True, ["q47"])
    for name in ("bounded_p", "missed_share", "reversing_difference"):
        assert row[name] == pytest.approx(getattr(pair.sensitivity, name), nan_ok=True)
    assert "few_topics" in next(csv.reader(io.StringIO(result.csv())))
    (row,) = json.loads(scores(old=OLD, new=OLD).compare().json())["pairs"]
    assert (row["sensitive"], row["few_topics"]) == (False, [])
