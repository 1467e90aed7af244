"""Counts of impressions and page patterns: by hand for a small log, and page by page for a simulated log."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from judged.errors import InputError
from judged.online.clicks import count_impressions, count_page_patterns
from judged.online.simulation import SimulationPlan, simulate
from online.offline import page_logs

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
    """Return a log of pages with ranks of clicks."""
    return page_logs.log_of(pages, has=HAS)


def counts_by_cell(cells):
    """Return (impressions, clicks) by (query, document, rank, last click, stratum)."""
    pairs = cells.pairs.to_pylist()
    keys = zip(cells.pair.tolist(), cells.rank.tolist(), cells.last_click.tolist(), cells.stratum.tolist(), strict=True)
    counts = zip(cells.impressions.tolist(), cells.clicks.tolist(), strict=True)
    return {
        (*pairs[pair].values(), rank, last_click, cells.strata[stratum]): count
        for (pair, rank, last_click, stratum), count in zip(keys, counts, strict=True)
    }


def test_cells_count_repeated_clicks_of_a_page_once():
    assert counts_by_cell(count_impressions(log_of(PAGES))) == {
        ("hat", "a", 1, 0, ""): (1, 1),
        ("red shoes", "a", 1, 0, ""): (2, 2),
        ("red shoes", "a", 2, 0, ""): (1, 0),
        ("red shoes", "b", 1, 0, ""): (1, 0),
        ("red shoes", "b", 2, 0, ""): (2, 0),
        ("red shoes", "c", 3, 0, ""): (3, 2),
    }


def test_cells_by_last_click_and_stratum():
    cells = counts_by_cell(count_impressions(log_of(PAGES), by_last_click=True, stratum="device"))
    assert cells["red shoes", "c", 3, 1, "phone"] == cells["red shoes", "c", 3, 1, "desk"] == (1, 1)
    assert cells["red shoes", "c", 3, 0, "desk"] == (1, 0)
    assert cells["hat", "a", 1, 0, ""] == (1, 1)


def test_pages_where_and_depth():
    log = log_of(PAGES)
    assert ("hat", "z", 11, 0, "") not in counts_by_cell(count_impressions(log, depth=20))
    assert counts_by_cell(count_impressions(log, pages="all", depth=20))["hat", "z", 11, 0, ""] == (1, 1)
    assert count_impressions(log, where="device == 'desk'").impressions.sum() == 6
    assert count_impressions(log, depth=2).rank.max() == 2


def test_topic_identifies_queries_if_the_log_has_it():
    log = log_of([page | {"topic": "t1"} for page in PAGES])
    assert count_impressions(log).by == "topic"
    assert set(count_impressions(log).pairs["query"].to_pylist()) == {"t1"}
    assert count_impressions(log, by="query_norm").pairs["query"].to_pylist() == ["hat"] + 3 * ["red shoes"]


def test_equal_pages_are_one_pattern():
    patterns = count_page_patterns(log_of(PAGES))
    assert patterns.n_units == 3
    assert sorted(patterns.counts()) == [1, 1, 2]
    repeated = int(np.argmax(patterns.counts()))
    docs = [patterns.pairs["doc_id"][pair].as_py() for pair in patterns.pair[repeated].tolist()]
    assert (docs, patterns.clicked[repeated].tolist()) == (["a", "b", "c"], [True, False, True])
    unit = patterns.unit[patterns.pattern == repeated][0]
    weights = np.zeros(3)
    weights[unit] = 2
    assert patterns.counts(weights)[repeated] == 4


def test_patterns_and_cells_of_a_simulated_log_have_the_same_counts():
    log = simulate(SimulationPlan(), seed=3).log()
    cells, patterns = count_impressions(log, by_last_click=True), count_page_patterns(log)
    assert cells.pairs.equals(patterns.pairs)
    counts, has_result = patterns.counts(), patterns.pair >= 0
    click_rank = np.where(patterns.clicked, np.arange(1, has_result.shape[1] + 1), 0)
    last_click = np.maximum.accumulate(np.c_[0 * click_rank[:, :1], click_rank[:, :-1]], axis=1)
    impressions, clicks = Counter(), Counter()
    for row, rank_index in np.argwhere(has_result).tolist():
        key = (int(patterns.pair[row, rank_index]), rank_index + 1, int(last_click[row, rank_index]))
        impressions[key] += counts[row]
        clicks[key] += counts[row] * patterns.clicked[row, rank_index]
    keys = list(zip(cells.pair.tolist(), cells.rank.tolist(), cells.last_click.tolist(), strict=True))
    assert [impressions[key] for key in keys] == cells.impressions.tolist()
    assert [clicks[key] for key in keys] == cells.clicks.tolist()
    assert len(impressions) == len(keys)


@pytest.mark.parametrize(
    "options", [{"depth": 51}, {"by": "nothing"}, {"stratum": "nothing"}, {"where": "device == 'moon'"}]
)
def test_invalid_options_are_refused(options):
    with pytest.raises(InputError):
        count_impressions(log_of(PAGES), **options)
