"""Examination propensities: recovered from simulated logs, refused if not identified."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t

import planted_clicks
from judged.errors import InputError
from judged.online.clicks import propensities, read_propensities
from judged.online.clicks.examination import estimate_all_pairs, estimate_ranks
from online.offline.page_logs import log_of

EXAMINED = planted_clicks.EXAMINED
HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


def count_arrays(cells):
    impressions, clicks = np.zeros((2, cells.pairs.num_rows, len(EXAMINED)))
    np.add.at(impressions, (cells.pair, cells.rank - 1), cells.impressions)
    np.add.at(clicks, (cells.pair, cells.rank - 1), cells.clicks)
    return impressions, clicks


def test_two_documents_by_hand():
    # impressions at ranks 1 and 2: 100 and 50, 30 and 60; weights n m / (n + m) = 100/3 and 20
    impressions, clicks = np.array([[100.0, 50], [30, 60]]), np.array([[50.0, 10], [6, 9]])
    upper, lower = (100 / 3) * 0.5 + 20 * 0.2, (100 / 3) * 0.2 + 20 * 0.15
    assert estimate_all_pairs(impressions, clicks).log_propensity.tolist() == pytest.approx([0, np.log(lower / upper)])


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_estimator_recovers_propensities_from_three_rankers(seed):
    rng = np.random.default_rng(seed)
    plan = planted_clicks.rank_documents(rng, 1000)
    impressions, clicks = count_arrays(planted_clicks.sample_counts(plan, np.full(3000, 100), rng))  # 300,000 pages
    error = np.exp(estimate_all_pairs(impressions, clicks).log_propensity) - EXAMINED
    ctr = clicks.sum(axis=0) / impressions.sum(axis=0)
    assert np.sqrt(np.mean(error**2)) <= 0.005
    assert np.sqrt(np.mean((ctr / ctr[0] - EXAMINED) ** 2)) > 0.1


def test_intervals_cover():
    is_covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        patterns = planted_clicks.sample_pages(planted_clicks.rank_documents(rng, 60), 6000, 400, rng)
        ranks, links, notes = estimate_ranks(patterns)
        is_covered += [
            row.ci[0] <= expected <= row.ci[1] for row, expected in zip(ranks[1:], EXAMINED[1:], strict=True)
        ]
        assert (ranks[0].value, ranks[0].ci, len(links), notes) == (1, None, len(links), [])
    assert 0.92 <= np.mean(is_covered) <= 0.985


def pages(lists, clicks, **fields):
    return [
        {"query": "q", "shown": list(shown_docs), "clicks": list(clicked_docs), "user": user, **fields}
        for user, (shown_docs, clicked_docs) in enumerate(zip(lists, clicks, strict=True))
    ]


def test_unconnected_ranks_are_refused():
    with pytest.raises(InputError, match=r"ranks 3 and 4 cannot be compared with ranks 1 and 2") as caught:
        propensities(log_of(pages(["abcd", "badc"] * 10, ["ab", "ab"] * 10), has=HAS))
    assert "depth=2" in str(caught.value)
    with pytest.raises(InputError, match="1 document were shown at several ranks"):
        propensities(log_of(pages(["ab", "ca"], ["b", "c"]), has=HAS))  # a was never clicked
    with pytest.raises(InputError, match="0 documents were"):
        propensities(log_of(pages(["ab"] * 3, ["a"] * 3), has=HAS))
    with pytest.raises(InputError, match="all results are at rank 1"):
        propensities(log_of(pages(["a"] * 3, ["a"] * 3), has=HAS))


def test_strata_and_files(tmp_path):
    phone = pages(["ab", "ba"] * 20, ["a", "b"] * 10 + ["ab", "a"] * 10, device="phone")
    desk = pages(["ab", "ba"] * 20, ["ab", "ab"] * 20, device="desk")
    log = log_of(phone + [{**page, "user": page["user"] + 40} for page in desk], has=HAS)
    result = propensities(log, stratum="device")
    assert result.of("desk").tolist() == [1, 1]
    # on phones, at rank 1: a 20 of 20, b 10 of 20; at rank 2: a 10 of 20, b 10 of 20
    assert result.of("phone").tolist() == pytest.approx([1, 20 / 30])
    for file_name in ("p.csv", "p.json"):
        result.save(tmp_path / file_name)
        curves = read_propensities(tmp_path / file_name)
        assert {stratum: curve.tolist() for stratum, curve in curves.items()} == {
            "desk": result.of("desk").tolist(), "phone": result.of("phone").tolist()
        }  # fmt: skip
    assert read_propensities(result).keys() == {"desk", "phone"}
    (tmp_path / "other.json").write_text(json.dumps([{"rank": 2, "value": 0.5}]))
    with pytest.raises(InputError, match="above 0"):
        read_propensities(tmp_path / "other.json")


def test_only_randomized_results_count_if_there_are_any():
    log = log_of(pages(["ab", "ba", "ab", "ba"] * 5, ["a", "a", "ab", "b"] * 5), has=HAS)
    randomized = log.engine.keep(
        f"SELECT * REPLACE (CASE WHEN serp % 4 < 2 THEN 0.5 ELSE 1.0 END AS propensity) FROM {log.shown}"
    )
    from dataclasses import replace

    result = propensities(replace(log, shown=randomized))
    assert result.randomized
    assert "randomly shown" in result.sentences[2]
    assert "randomly shown" not in propensities(log).sentences[2]
    assert result.ranks[0].shown == 10
    assert not propensities(log).randomized


@pytest.mark.parametrize(
    "table",
    [
        [{"rank": 1, "value": 1.0}, {"rank": 2, "value": 0.25}],
        pa.table({"rank": [2, 1], "value": [0.25, 1.0]}),
        [{"stratum": "", "rank": "1", "value": "1"}, {"stratum": "", "rank": "2", "value": "0.25"}],
    ],
)
def test_propensities_can_be_rows(table):
    (curve,) = read_propensities(table).values()
    assert curve.tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    "wrong", [[{"rank": 1}], [{"rank": 2, "value": 0.5}], [{}], 0.5, None, ["a"], {"": None}, [[1, 0.5]], [1, 0], []]
)
def test_invalid_propensities_are_refused(wrong):
    with pytest.raises(InputError):
        read_propensities(wrong)


def test_intervals_are_a_jackknife_over_users():
    """Leave out each of twenty users: Student's t with 19 degrees of freedom, on the log scale."""
    lists = ["ab", "ba", "ab", "ba", "ab"] * 4
    clicks = ["a", "b", "ab", "ba", ""] * 3 + ["b", "a", "a", "", "ab"]
    rows = pages(lists, clicks)
    rank_2 = propensities(log_of(rows, has=HAS)).ranks[1]
    leave_one_out = [np.log(propensities(log_of([row for row in rows if row["user"] != user], has=HAS)).ranks[1].value)
            for user in range(20)]  # fmt: skip
    error = np.sqrt(19 / 20 * ((leave_one_out - np.mean(leave_one_out)) ** 2).sum())
    assert np.log(rank_2.ci[1] / rank_2.value) == pytest.approx(t.ppf(0.975, 19) * error, rel=1e-9)
    assert np.log(rank_2.value / rank_2.ci[0]) == pytest.approx(t.ppf(0.975, 19) * error, rel=1e-9)
