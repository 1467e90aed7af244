"""A log as counts, against a log small enough to count by hand, and page by page on simulated ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.clicks import cells_of, patterns_of
from judged.online.simulation import SimulationPlan, simulate
from online.offline import pages_made

# the same three results in two orders; a is opened twice on the first page
PAGES = [
    {"query": "Red  shoes", "shown": ["a", "b", "c"], "clicks": ["a", "a", "c"], "user": 1, "device": "phone"},
    {"query": "red shoes", "shown": ["b", "a", "c"], "clicks": [], "user": 2, "device": "desk"},
    {"query": "red shoes", "shown": ["a", "b", "c"], "clicks": ["c", "a"], "user": 1, "device": "desk"},
    {"query": "hat", "shown": ["a"], "clicks": ["a"], "user": 3},
    {"query": "hat", "shown": ["z"], "clicks": ["z"], "user": 3, "page": 2},
]


HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


def log_of(pages):
    """Make a log of pages that knows at which ranks they were clicked."""
    return pages_made.log_of(pages, has=HAS)


def rows(cells):
    """Give the cells as a dict from what they are to what was counted."""
    pairs = cells.pairs.to_pylist()
    keys = zip(cells.pair.tolist(), cells.rank.tolist(), cells.last.tolist(), cells.stratum.tolist(), strict=True)
    counts = zip(cells.shown.tolist(), cells.clicked.tolist(), strict=True)
    return {
        (*pairs[pair].values(), rank, last, cells.strata[stratum]): count
        for (pair, rank, last, stratum), count in zip(keys, counts, strict=True)
    }


def test_cells_count_pages_and_a_result_opened_twice_once():
    assert rows(cells_of(log_of(PAGES))) == {
        ("hat", "a", 1, 0, ""): (1, 1),
        ("red shoes", "a", 1, 0, ""): (2, 2),
        ("red shoes", "a", 2, 0, ""): (1, 0),
        ("red shoes", "b", 1, 0, ""): (1, 0),
        ("red shoes", "b", 2, 0, ""): (2, 0),
        ("red shoes", "c", 3, 0, ""): (3, 2),
    }


def test_the_lowest_click_above_and_a_stratum_part_cells():
    cells = rows(cells_of(log_of(PAGES), last=True, stratum="device"))
    assert cells["red shoes", "c", 3, 1, "phone"] == cells["red shoes", "c", 3, 1, "desk"] == (1, 1)
    assert cells["red shoes", "c", 3, 0, "desk"] == (1, 0)
    assert cells["hat", "a", 1, 0, ""] == (1, 1)


def test_later_pages_a_condition_and_a_depth():
    log = log_of(PAGES)
    assert ("hat", "z", 11, 0, "") not in rows(cells_of(log, depth=20))
    assert rows(cells_of(log, pages="all", depth=20))["hat", "z", 11, 0, ""] == (1, 1)
    assert cells_of(log, where="device == 'desk'").shown.sum() == 6
    assert cells_of(log, depth=2).rank.max() == 2


def test_queries_are_told_apart_by_the_topic_where_the_log_has_it():
    log = log_of([page | {"topic": "t1"} for page in PAGES])
    assert cells_of(log).by == "topic"
    assert set(cells_of(log).pairs["query"].to_pylist()) == {"t1"}
    assert cells_of(log, by="query_norm").pairs["query"].to_pylist() == ["hat"] + 3 * ["red shoes"]


def test_pages_that_are_alike_make_one_pattern():
    patterns = patterns_of(log_of(PAGES))
    assert patterns.units == 3
    assert sorted(patterns.counts()) == [1, 1, 2]
    twice = int(np.argmax(patterns.counts()))
    docs = [patterns.pairs["doc_id"][at].as_py() for at in patterns.pair[twice].tolist()]
    assert (docs, patterns.clicked[twice].tolist()) == (["a", "b", "c"], [True, False, True])
    first = patterns.unit[patterns.pattern == twice][0]
    weights = np.zeros(3)
    weights[first] = 2
    assert patterns.counts(weights)[twice] == 4


def test_patterns_of_a_simulated_log_hold_the_same_counts_as_its_cells():
    log = simulate(SimulationPlan(), seed=3).log()
    cells, patterns = cells_of(log, last=True), patterns_of(log)
    assert cells.pairs.equals(patterns.pairs)
    counts, there = patterns.counts(), patterns.pair >= 0
    place = np.where(patterns.clicked, np.arange(1, there.shape[1] + 1), 0)
    last = np.maximum.accumulate(np.c_[0 * place[:, :1], place[:, :-1]], axis=1)
    shown, clicked = Counter(), Counter()
    for row, column in np.argwhere(there).tolist():
        key = (int(patterns.pair[row, column]), column + 1, int(last[row, column]))
        shown[key] += counts[row]
        clicked[key] += counts[row] * patterns.clicked[row, column]
    keys = list(zip(cells.pair.tolist(), cells.rank.tolist(), cells.last.tolist(), strict=True))
    assert [shown[key] for key in keys] == cells.shown.tolist()
    assert [clicked[key] for key in keys] == cells.clicked.tolist()
    assert len(shown) == len(keys)


@pytest.mark.parametrize(
    "options", [{"depth": 51}, {"by": "nothing"}, {"stratum": "nothing"}, {"where": "device == 'moon'"}]
)
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(InputError):
        cells_of(log_of(PAGES), **options)
