"""Headlines of labels: each status with data by hand, and numbers equal to those of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from judged.labels.calibration import calibrate
from judged.labels.disagreements import disagreements
from judged.labels.trust import quality
from judged.results import Answer, Headline
from judged.results.headline import MAX_WORDS

N = 8


def headline_of(answer: Answer) -> Headline:
    headline = answer.headline
    assert headline is not None
    assert 0 < len(headline.sentence.split()) <= MAX_WORDS
    assert answer.to_dict()["headline"]["status"] == headline.status
    return headline


def grades(rows: list[list[int]]) -> dict[str, dict[str, int]]:
    return {f"q{i}": {f"d{j}": grade for j, grade in enumerate(row)} for i, row in enumerate(rows)}


EQUAL = [[0, 1, 2, 0, 1]] * N
REVERSED = [[2, 1, 0, 2, 1]] * N
MOSTLY_EQUAL = [[0, 1, 2, i % 3, 1] for i in range(N)]
MOSTLY_REVERSED = [[2, 1, 0, 2 - i % 3, 1] for i in range(N)]
EQUAL_AND_REVERSED = [EQUAL[0], REVERSED[0]] * (N // 2)


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (EQUAL, MOSTLY_EQUAL, "better"),
        (EQUAL, MOSTLY_REVERSED, "worse"),
        (EQUAL, EQUAL_AND_REVERSED, "same"),
        (EQUAL[:3], MOSTLY_EQUAL[:3], "unknown"),
    ],
)
def test_agreement(first: list[list[int]], second: list[list[int]], status: str) -> None:
    answer = quality({"ann": grades(first), "bob": grades(second)})
    headline = headline_of(answer)
    assert headline.status == status
    assert (headline.value, headline.ci) == (answer.alpha.value, answer.alpha.interval)


def test_models_and_people() -> None:
    people = grades(EQUAL)
    models: dict[str, Any] = {"m1": grades(EQUAL), "m2": grades(REVERSED)}
    answer = calibrate(people, models)
    headline = headline_of(answer)
    best = next(judge for judge in answer.judges if judge.judge == "m1")
    assert (headline.status, headline.value, headline.ci) == ("info", best.kappa, best.kappa_ci)


@pytest.mark.parametrize("useful", [True, False])
def test_worth_of_the_labels_of_a_model(useful: bool) -> None:
    """People judged 20 of 60 topics. The model repeats the grades of people, or gives all documents grade 1."""
    truth = {f"q{i:02}": {"a": i % 2, "b": 1 - i % 2} for i in range(60)}
    people = {topic: truth[topic] for topic in list(truth)[:20]}
    model = truth if useful else {topic: dict.fromkeys(row, 1) for topic, row in truth.items()}
    runs = {"r": {topic: {"a": 2.0, "b": 1.0} for topic in truth}, "s": {topic: {"b": 2.0} for topic in truth}}
    answer = calibrate(people, {"m": model}, runs, "P@1")
    headline, (judge,) = headline_of(answer), answer.judges
    assert judge.added_topics_ci is not None
    assert headline.status == ("better" if useful else "same")
    assert (headline.value, headline.ci) == (judge.added_topics, judge.added_topics_ci)


def test_disagreements_without_labels() -> None:
    assert headline_of(disagreements(None)).status == "unknown"
