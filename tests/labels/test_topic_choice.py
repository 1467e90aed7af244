"""Topics are chosen with the probabilities that are given, and weighted means are right on average."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from judged import Attributes, Topics, evaluate
from judged.comparison.slicing import slice_topics
from judged.errors import InputError
from judged.labels import choose_topics
from judged.labels.topic_choice import Scheme, proportional

COUNTS = {f"query {at}": max(1000 // (at * at), 1) for at in range(1, 41)}


@pytest.mark.parametrize("scheme", get_args(Scheme))
def test_probabilities_are_those_of_the_choice(scheme: Scheme) -> None:
    times, n = 1500, 12
    times_in, odds = dict.fromkeys(COUNTS, 0), dict[str, float]()
    searches, queries, worth = [], [], {name: (at * 7 % 11) / 11 for at, name in enumerate(COUNTS)}
    for seed in range(times):
        chosen = choose_topics(COUNTS, n, scheme, seed=seed).topics
        names = chosen["text"].to_pylist()
        assert len(set(names)) == n
        for name, odd in zip(names, chosen["probability"].to_pylist(), strict=True):
            times_in[name] += 1
            assert odds.setdefault(name, odd) == odd
        values = np.array([worth[name] for name in names])
        searches.append(chosen["weight"].to_numpy() @ values)
        queries.append(chosen["query_weight"].to_numpy() @ values)
    assert sum(odds.values()) == pytest.approx(n)
    assert max(abs(times_in[name] / times - odds[name]) for name in COUNTS) < 4.5 * np.sqrt(0.25 / times)
    for totals, truth in (
        (searches, sum(COUNTS[name] * worth[name] for name in COUNTS)),
        (queries, sum(worth.values())),
    ):
        assert abs(np.mean(totals) - truth) <= 3.5 * np.std(totals) / np.sqrt(times) + 1e-9


def test_bands_have_a_third_of_the_searches_each() -> None:
    chosen = choose_topics({"a": 3, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1}, 6, "random").topics
    assert chosen["stratum"].to_pylist() == [
        "head",
        "torso",
        "torso",
        "tail",
        "tail",
        "tail",
    ]  # begin at 0, 3, 5, 6 of 9


def test_none_has_a_probability_above_one() -> None:
    odds = proportional(np.array([1000.0, 500.0, 3.0, 2.0, 1.0]), 3)
    assert odds.tolist() == pytest.approx([1, 1, 3 / 6, 2 / 6, 1 / 6])


def test_weights_are_taken_by_slices(tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    path.write_text("query_id,query,count\n1,cats,70\n2,dogs,20\n3,birds,10\n")
    choose_topics(path, 2).save(target := tmp_path / "topics.csv")
    topics = Topics.read(target)
    assert "weight" in topics.attributes
    assert topics.text("1") == "cats"
    ids = topics.table["query_id"].to_pylist()
    qrels, run = {name: {"d": 1} for name in ids}, {name: ["d"] if name == "1" else ["x", "d"] for name in ids}
    scores = evaluate(qrels, run, "RR")
    found = scores.by_slice(slice_topics(Attributes.of(topics), "stratum"), weights="weight", ci="none")
    weighted = found.table("averages").records()[1]["value"]
    assert weighted == pytest.approx((70 * 1 + 30 * 0.5) / 100)  # whichever of the other two stands for both


@pytest.mark.parametrize(
    ("queries", "n", "problem"),
    [({"a": 1}, 2, "cannot be chosen"), ({"a": 0, "b": 1}, 1, "not asked once"), ({"a": "x"}, 1, "no column count")],
)
def test_what_cannot_be_chosen_is_refused(queries: dict[str, object], n: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        choose_topics(queries, n)


def test_cuts_are_two() -> None:
    for cuts in ([], [0.5], [0.5, 0.2]):
        with pytest.raises(InputError, match="cuts"):
            choose_topics({"a": 3, "b": 1}, 1, cuts=cuts)
