"""How often ranks are looked at: recovered from simulated logs, refused where it cannot be known."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t

import planted_clicks
from judged.errors import InputError
from judged.online.clicks import propensities, read_propensities
from judged.online.clicks.examination import harvest, propensities_of
from online.offline.pages_made import log_of

EXAMINED = planted_clicks.EXAMINED
HAS = frozenset({"shown", "clicks", "ranks", "unclicked"})


def arrays(cells):
    shown, clicked = np.zeros((2, cells.pairs.num_rows, len(EXAMINED)))
    np.add.at(shown, (cells.pair, cells.rank - 1), cells.shown)
    np.add.at(clicked, (cells.pair, cells.rank - 1), cells.clicked)
    return shown, clicked


def test_of_two_documents_by_hand():
    # at ranks 1 and 2: 100 and 50 impressions of one, 30 and 60 of another: weights 100/3 and 20
    shown, clicked = np.array([[100.0, 50], [30, 60]]), np.array([[50.0, 10], [6, 9]])
    upper, lower = (100 / 3) * 0.5 + 20 * 0.2, (100 / 3) * 0.2 + 20 * 0.15
    assert harvest(shown, clicked).log.tolist() == pytest.approx([0, np.log(lower / upper)])


@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_of_ranks_recover_a_curve_from_three_rankers(seed):
    rng = np.random.default_rng(seed)
    made = planted_clicks.planted(rng, 1000)
    shown, clicked = arrays(planted_clicks.cells(made, np.full(3000, 100), rng))  # 300,000 pages
    error = np.exp(harvest(shown, clicked).log) - EXAMINED
    naive = clicked.sum(axis=0) / shown.sum(axis=0)
    assert np.sqrt(np.mean(error**2)) <= 0.005
    assert np.sqrt(np.mean((naive / naive[0] - EXAMINED) ** 2)) > 0.1


def test_intervals_cover():
    held = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        made = planted_clicks.patterns(planted_clicks.planted(rng, 60), 6000, 400, rng)
        ranks, links, notes = propensities_of(made)
        held += [row.ci[0] <= true <= row.ci[1] for row, true in zip(ranks[1:], EXAMINED[1:], strict=True)]
        assert (ranks[0].value, ranks[0].ci, len(links), notes) == (1, None, len(links), [])
    assert 0.92 <= np.mean(held) <= 0.985


def pages(lists, clicks, **more):
    return [
        {"query": "q", "shown": list(shown), "clicks": list(clicked), "user": at, **more}
        for at, (shown, clicked) in enumerate(zip(lists, clicks, strict=True))
    ]


def test_ranks_that_no_document_joins_are_refused():
    with pytest.raises(InputError, match=r"rank 3 and 4 cannot be compared with rank 1 and 2") as caught:
        propensities(log_of(pages(["abcd", "badc"] * 10, ["ab", "ab"] * 10), has=HAS))
    assert "2 ranks only (depth)" in str(caught.value)
    with pytest.raises(InputError, match="1 document stood at more than one rank"):
        propensities(log_of(pages(["ab", "ca"], ["b", "c"]), has=HAS))  # a was never clicked
    with pytest.raises(InputError, match="0 documents stood"):
        propensities(log_of(pages(["ab"] * 3, ["a"] * 3), has=HAS))
    with pytest.raises(InputError, match="shown at rank 1: no ranks"):
        propensities(log_of(pages(["a"] * 3, ["a"] * 3), has=HAS))


def test_strata_are_looked_at_apart_and_files_are_read_back(tmp_path):
    phone = pages(["ab", "ba"] * 20, ["a", "b"] * 10 + ["ab", "a"] * 10, device="phone")
    desk = pages(["ab", "ba"] * 20, ["ab", "ab"] * 20, device="desk")
    log = log_of(phone + [{**page, "user": page["user"] + 40} for page in desk], has=HAS)
    made = propensities(log, stratum="device")
    assert made.of("desk").tolist() == [1, 1]
    # on phones, at rank 1: a 20 of 20, b 10 of 20; at rank 2: a 10 of 20, b 10 of 20
    assert made.of("phone").tolist() == pytest.approx([1, 20 / 30])
    for name in ("p.csv", "p.json"):
        made.save(tmp_path / name)
        read = read_propensities(tmp_path / name)
        assert {key: curve.tolist() for key, curve in read.items()} == {
            "desk": made.of("desk").tolist(), "phone": made.of("phone").tolist()
        }  # fmt: skip
    assert read_propensities(made).keys() == {"desk", "phone"}
    (tmp_path / "other.json").write_text(json.dumps([{"rank": 2, "value": 0.5}]))
    with pytest.raises(InputError, match="missing, or not above 0"):
        read_propensities(tmp_path / "other.json")


def test_where_chance_put_results_only_those_count():
    log = log_of(pages(["ab", "ba", "ab", "ba"] * 5, ["a", "a", "ab", "b"] * 5), has=HAS)
    by_chance = log.engine.keep(
        f"SELECT * REPLACE (CASE WHEN serp % 4 < 2 THEN 0.5 ELSE 1.0 END AS propensity) FROM {log.shown}"
    )
    from dataclasses import replace

    made = propensities(replace(log, shown=by_chance))
    assert made.randomized
    assert "by chance" in made.sentences[2]
    assert "by chance" not in propensities(log).sentences[2]
    assert made.ranks[0].shown == 10
    assert not propensities(log).randomized


@pytest.mark.parametrize(
    "table",
    [
        [{"rank": 1, "value": 1.0}, {"rank": 2, "value": 0.25}],
        pa.table({"rank": [2, 1], "value": [0.25, 1.0]}),
        [{"stratum": "", "rank": "1", "value": "1"}, {"stratum": "", "rank": "2", "value": "0.25"}],
    ],
)
def test_propensities_may_be_rows(table):
    (curve,) = read_propensities(table).values()
    assert curve.tolist() == [1.0, 0.25]


@pytest.mark.parametrize(
    "wrong", [[{"rank": 1}], [{"rank": 2, "value": 0.5}], [{}], 0.5, None, ["a"], {"": None}, [[1, 0.5]], [1, 0], []]
)
def test_what_are_no_propensities_is_refused(wrong):
    with pytest.raises(InputError):
        read_propensities(wrong)


def test_intervals_are_by_a_jackknife_over_users():
    """Of twenty users, each is left out once: Student's t with 19 degrees of freedom, on the logarithmic scale."""
    lists = ["ab", "ba", "ab", "ba", "ab"] * 4
    clicks = ["a", "b", "ab", "ba", ""] * 3 + ["b", "a", "a", "", "ab"]
    rows = pages(lists, clicks)
    made = propensities(log_of(rows, has=HAS)).ranks[1]
    left = [np.log(propensities(log_of([row for row in rows if row["user"] != user], has=HAS)).ranks[1].value)
            for user in range(20)]  # fmt: skip
    error = np.sqrt(19 / 20 * ((left - np.mean(left)) ** 2).sum())
    assert np.log(made.ci[1] / made.value) == pytest.approx(t.ppf(0.975, 19) * error, rel=1e-9)
    assert np.log(made.value / made.ci[0]) == pytest.approx(t.ppf(0.975, 19) * error, rel=1e-9)
