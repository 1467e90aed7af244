"""How far labels can be trusted: by hand, against the page on DL19, and by simulated judges."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from judged.errors import InputError
from judged.labels import Labels, LabelStore, NewTask, quality
from shared_data import SHARED, needs_shared

ANN = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
BOB = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0, "d": 1}}


def row(topic: str, doc: str, judge: str, grade: float | None, **more: object) -> dict[str, object]:
    usual = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "at": "", "prompt": ""}
    return {**usual, "query_id": topic, "doc_id": doc, "judge": judge, "grade": grade, **more}


def labels(rows: list[dict[str, object]]) -> Labels:
    import pyarrow as pa

    return Labels.of(pa.Table.from_pylist(rows))


def test_topics_and_grades_by_hand() -> None:
    found = quality({"ann": ANN, "bob": BOB})
    assert [(one.name, one.pairs, one.same, one.distance) for one in found.topics] == [
        ("q1", 3, pytest.approx(2 / 3), pytest.approx(1 / 3)),
        ("q2", 2, 1.0, 0.0),
    ]
    # 0 met 1 once, 0 once (q2 a, twice as each label counts); 1 met 0 once and 1 twice (two labels each)
    assert {one.name: (one.pairs, one.same) for one in found.grades} == {
        "0": (3, pytest.approx(2 / 3)), "1": (5, pytest.approx(4 / 5)), "2": (2, 1.0),
    }  # fmt: skip
    assert found.sentences[0] == found.alpha.sentence


def test_slices_have_their_own_agreement() -> None:
    found = quality({"ann": ANN, "bob": BOB}, slicing={"q1": {"kind": "x"}, "q2": {"kind": "y"}})
    assert [(one.name, one.pairs, one.same) for one in found.slices] == [
        ("kind=x", 3, pytest.approx(2 / 3)), ("kind=y", 2, 1.0),
    ]  # fmt: skip


def test_repeats_known_grades_and_time_by_hand() -> None:
    rows = [row("q", doc, "ann", grade, seconds=4.0) for doc, grade in zip("abcd", (0, 1, 2, 2), strict=True)]
    rows += [row("q", "a", "ann", 0, repeat=1, seconds=0.5), row("q", "b", "ann", 2, repeat=1, seconds=9.0)]
    rows += [row("q", doc, "bob", 1) for doc in "abcd"]
    rows += [row("q", "e", "ann", None, valid=False)]
    ann, bob = quality(labels(rows), gold={"q": {"a": 0, "b": 0, "c": 2}}).judges
    assert (ann.labels, ann.invalid, ann.repeats, ann.repeated) == (4, 1, 2, 0.5)
    assert (ann.gold, ann.right, bob.right) == (3, pytest.approx(2 / 3), 0.0)
    assert (ann.seconds, ann.hasty) == (4.0, pytest.approx(1 / 6))
    assert math.isnan(bob.seconds)
    assert ann.repeated_ci is None  # of two documents
    # Clopper and Pearson for 2 of 3, by R 4.2, binom.test(2, 3)
    assert ann.right_ci == (pytest.approx(0.09429932, abs=1e-7), pytest.approx(0.99159624, abs=1e-7))


def test_grades_that_a_store_knows_of_its_tasks_are_the_known_ones(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.add_tasks([NewTask("q", "a", "ann", gold=1.0), NewTask("q", "b", "ann")])
        for judge, grade in (("ann", 1.0), ("bob", 0.0)):
            store.add(judge, "q", "a", grade)
            store.add(judge, "q", "b", grade)
        for given in (store, tmp_path / "labels.db"):
            assert [(one.gold, one.right) for one in quality(given).judges] == [(1, 1.0), (1, 0.0)]


def test_the_last_label_of_a_judge_counts() -> None:
    rows = [
        row("q", "a", "ann", 0),
        row("q", "a", "ann", 2),
        row("q", "a", "bob", 2),
        row("q", "b", "bob", 0),
        row("q", "b", "ann", 0),
    ]
    assert quality(labels(rows)).topics[0].same == 1.0


def test_an_adjudicator_has_seen_what_the_others_said() -> None:
    given = {"ann": ANN, "bob": BOB, "adjudicator": BOB}
    assert quality(given).alpha.value == quality({"ann": ANN, "bob": BOB}).alpha.value


def test_without_a_document_of_two_judges_nothing_is_said() -> None:
    with pytest.raises(InputError, match="no document was graded by two"):
        quality({"ann": {"q": {"a": 1}}, "bob": {"q": {"b": 1}}})


def _judges(seed: int, *, later: float = 0.0, careless: float = 0.0, topics: int = 30, docs: int = 20) -> Labels:
    """Three judges see the truth with errors; the third may drift in the later half, or guess."""
    chance = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    order = chance.permutation(topics)
    for place, topic in enumerate(order):
        for doc in range(docs):
            truth = chance.integers(0, 4)
            for judge in ("ann", "bob", "cyd"):
                grade = truth + chance.choice([-1, 0, 1], p=[0.15, 0.7, 0.15])
                if judge == "cyd" and place >= topics / 2 and chance.random() < later:
                    grade += 1
                if judge == "cyd" and chance.random() < careless:
                    grade = chance.integers(0, 4)
                at = f"2026-01-{1 + place // 24:02}T{place % 24:02}:{doc:02}:00"
                rows.append(row(f"q{topic}", f"d{doc}", judge, float(np.clip(grade, 0, 3)), at=at))
    return labels(rows)


def test_planted_drift_and_carelessness_are_found() -> None:
    drifted = [quality(_judges(seed, later=0.4)).judges[2] for seed in range(10)]
    assert sum(one.drift_p < 0.05 and one.drift > 0 for one in drifted) >= 9
    careless = quality(_judges(0, careless=0.8)).judges
    assert careless[2].without > 0.6 > careless[2].same
    assert careless[0].without < 0.5
    assert careless[1].without < 0.5


@pytest.mark.slow
def test_false_alarms_of_drift_are_no_more_than_declared() -> None:
    found = [min(one.drift_p for one in quality(_judges(seed, topics=20, docs=8)).judges) for seed in range(300)]
    alarms = np.mean([p < 0.05 for p in found])
    assert alarms <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


@needs_shared
def test_the_assessors_of_dl19_agree_as_the_page_says() -> None:
    """docs/dl19.md has the alpha of each assessor with NIST, made by `agree` on the files."""
    folder = SHARED / "dl19_passage"
    nist = folder / "qrels" / "qrels.dl19-passage.txt"
    page = (Path(__file__).parents[2] / "docs/dl19.md").read_text(encoding="utf-8")
    people = sorted((folder / "alt_qrels" / "human_main").glob("*.txt"))
    for at, path in enumerate(people, 1):
        alpha = quality({"NIST": nist, "other": path}).alpha
        low, high = alpha.interval or (math.nan, math.nan)
        assert f"| assessor {at} |" in page
        assert (
            f"{alpha.value:.3f} [{low:.2f}, {high:.2f}]" in page.partition(f"| assessor {at} |")[2].partition("\n")[0]
        )


def test_drift_of_shifts_that_differ_by_rounding_alone_has_no_test() -> None:
    rows: list[dict[str, object]] = []
    for at in range(20):
        truth = float(at % 4)
        rows.append(row(f"q{at:02d}", "d", "ann", truth + 0.1 + 0.3 * (at >= 10), at=f"2024-01-{at + 1:02d}T00:00:00"))
        rows.append(row(f"q{at:02d}", "d", "bob", truth))
    found = quality(labels(rows)).judges[0]
    assert found.drift == pytest.approx(0.3)
    assert math.isnan(found.drift_p)
