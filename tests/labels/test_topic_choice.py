"""Topics are sampled with their stated probabilities, and weighted means are unbiased."""

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

COUNTS = {f"query {i}": max(1000 // (i * i), 1) for i in range(1, 41)}


@pytest.mark.parametrize("scheme", get_args(Scheme))
def test_sampling_frequencies_match_the_probabilities(scheme: Scheme) -> None:
    times, n = 1500, 12
    sampled, probabilities = dict.fromkeys(COUNTS, 0), dict[str, float]()
    search_totals, query_totals, value_of = [], [], {name: (i * 7 % 11) / 11 for i, name in enumerate(COUNTS)}
    for seed in range(times):
        topics = choose_topics(COUNTS, n, scheme, seed=seed).topics
        names = topics["text"].to_pylist()
        assert len(set(names)) == n
        for name, probability in zip(names, topics["probability"].to_pylist(), strict=True):
            sampled[name] += 1
            assert probabilities.setdefault(name, probability) == probability
        values = np.array([value_of[name] for name in names])
        search_totals.append(topics["weight"].to_numpy() @ values)
        query_totals.append(topics["query_weight"].to_numpy() @ values)
    assert sum(probabilities.values()) == pytest.approx(n)
    assert max(abs(sampled[name] / times - probabilities[name]) for name in COUNTS) < 4.5 * np.sqrt(0.25 / times)
    for totals, truth in (
        (search_totals, sum(COUNTS[name] * value_of[name] for name in COUNTS)),
        (query_totals, sum(value_of.values())),
    ):
        assert abs(np.mean(totals) - truth) <= 3.5 * np.std(totals) / np.sqrt(times) + 1e-9


def test_each_band_has_a_third_of_the_searches() -> None:
    topics = choose_topics({"a": 3, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1}, 6, "random").topics
    assert topics["stratum"].to_pylist() == [
        "head",
        "torso",
        "torso",
        "tail",
        "tail",
        "tail",
    ]  # begin at 0, 3, 5, 6 of 9


def test_no_probability_exceeds_one() -> None:
    probabilities = proportional(np.array([1000.0, 500.0, 3.0, 2.0, 1.0]), 3)
    assert probabilities.tolist() == pytest.approx([1, 1, 3 / 6, 2 / 6, 1 / 6])


def test_slices_use_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    path.write_text("query_id,query,count\n1,cats,70\n2,dogs,20\n3,birds,10\n")
    choose_topics(path, 2).save(target := tmp_path / "topics.csv")
    topics = Topics.read(target)
    assert "weight" in topics.attributes
    assert topics.text("1") == "cats"
    ids = topics.table["query_id"].to_pylist()
    qrels, run = {name: {"d": 1} for name in ids}, {name: ["d"] if name == "1" else ["x", "d"] for name in ids}
    scores = evaluate(qrels, run, "RR")
    averages = scores.by_slice(slice_topics(Attributes.of(topics), "stratum"), weights="weight", ci="none")
    weighted = averages.table("averages").records()[1]["value"]
    assert weighted == pytest.approx((70 * 1 + 30 * 0.5) / 100)


@pytest.mark.parametrize(
    ("queries", "n", "problem"),
    [
        ({"a": 1}, 2, "`n` must be from 1"),
        ({"a": 0, "b": 1}, 1, "must be positive"),
        ({"a": "x"}, 1, "no numeric column count"),
    ],
)
def test_invalid_queries_raise(queries: dict[str, object], n: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        choose_topics(queries, n)


def test_invalid_cuts_raise() -> None:
    for cuts in ([], [0.5], [0.5, 0.2]):
        with pytest.raises(InputError, match="cuts"):
            choose_topics({"a": 3, "b": 1}, 1, cuts=cuts)
