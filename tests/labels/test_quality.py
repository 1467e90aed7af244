"""Quality of labels: by hand, against the documentation of DL19, and with simulated judges."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from judged.comparison.agreement import agree
from judged.errors import InputError
from judged.labels import Labels, LabelStore, NewTask, quality
from shared_data import SHARED, needs_shared

ANN = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 0, "d": 1}}
BOB = {"q1": {"a": 2, "b": 1, "c": 1}, "q2": {"a": 0, "d": 1}}


def row(topic: str, doc: str, judge: str, grade: float | None, **more: object) -> dict[str, object]:
    defaults = {"kind": "human", "repeat": 0, "valid": True, "note": "", "seconds": None, "time": "", "prompt": ""}
    return {**defaults, "query_id": topic, "doc_id": doc, "judge": judge, "grade": grade, **more}


def labels(rows: list[dict[str, object]]) -> Labels:
    import pyarrow as pa

    return Labels.of(pa.Table.from_pylist(rows))


def test_topics_and_grades_by_hand() -> None:
    result = quality({"ann": ANN, "bob": BOB})
    assert [(summary.name, summary.pairs, summary.same, summary.distance) for summary in result.topics] == [
        ("q1", 3, pytest.approx(2 / 3), pytest.approx(1 / 3)),
        ("q2", 2, 1.0, 0.0),
    ]
    # 0 paired with 1 once, with 0 once (q2 a, two labels); 1 paired with 0 once, with 1 twice (two labels each)
    assert {summary.name: (summary.pairs, summary.same) for summary in result.grades} == {
        "0": (3, pytest.approx(2 / 3)), "1": (5, pytest.approx(4 / 5)), "2": (2, 1.0),
    }  # fmt: skip
    assert result.sentences[0] == result.alpha.sentence


def test_pairs_of_judges_have_the_coefficients_of_agree() -> None:
    """Judges without a grade are left out."""
    records = [row(topic, doc, name, grade) for name, grades in (("ann", ANN), ("bob", BOB))
               for topic, docs in grades.items() for doc, grade in docs.items()]  # fmt: skip
    result = quality(labels([*records, row("q1", "a", "cat", None, valid=False)]))
    assert result.table("judge_pairs").records() == agree({"ann": ANN, "bob": BOB}).table("pairs").records()
    assert "Agreement by pair of judges" in result.text()


def test_slices_have_their_own_agreement() -> None:
    result = quality({"ann": ANN, "bob": BOB}, slicing={"q1": {"kind": "x"}, "q2": {"kind": "y"}})
    assert [(summary.name, summary.pairs, summary.same) for summary in result.slices] == [
        ("kind=x", 3, pytest.approx(2 / 3)), ("kind=y", 2, 1.0),
    ]  # fmt: skip


def test_repeats_known_grades_and_time_by_hand() -> None:
    rows = [row("q", doc, "ann", grade, seconds=4.0) for doc, grade in zip("abcd", (0, 1, 2, 2), strict=True)]
    rows += [row("q", "a", "ann", 0, repeat=1, seconds=0.5), row("q", "b", "ann", 2, repeat=1, seconds=9.0)]
    rows += [row("q", doc, "bob", 1) for doc in "abcd"]
    rows += [row("q", "e", "ann", None, valid=False)]
    ann, bob = quality(labels(rows), gold={"q": {"a": 0, "b": 0, "c": 2}}).judges
    assert (ann.labels, ann.invalid, ann.repeats, ann.consistency) == (4, 1, 2, 0.5)
    assert (ann.gold, ann.accuracy, bob.accuracy) == (3, pytest.approx(2 / 3), 0.0)
    assert (ann.seconds, ann.fast) == (4.0, pytest.approx(1 / 6))
    assert math.isnan(bob.seconds)
    assert ann.consistency_ci is None  # of two documents
    # Clopper and Pearson for 2 of 3, by R 4.2, binom.test(2, 3)
    assert ann.accuracy_ci == (pytest.approx(0.09429932, abs=1e-7), pytest.approx(0.99159624, abs=1e-7))


def test_gold_grades_come_from_the_tasks_of_a_store(tmp_path: Path) -> None:
    with LabelStore.open(tmp_path / "labels.db") as store:
        store.add_tasks([NewTask("q", "a", "ann", gold=1.0), NewTask("q", "b", "ann")])
        for judge, grade in (("ann", 1.0), ("bob", 0.0)):
            store.add(judge, "q", "a", grade)
            store.add(judge, "q", "b", grade)
        for source in (store, tmp_path / "labels.db"):
            assert [(judge.gold, judge.accuracy) for judge in quality(source).judges] == [(1, 1.0), (1, 0.0)]


def test_the_last_label_of_a_judge_counts() -> None:
    rows = [
        row("q", "a", "ann", 0),
        row("q", "a", "ann", 2),
        row("q", "a", "bob", 2),
        row("q", "b", "bob", 0),
        row("q", "b", "ann", 0),
    ]
    assert quality(labels(rows)).topics[0].same == 1.0


def test_labels_of_the_adjudicator_do_not_count() -> None:
    judgments = {"ann": ANN, "bob": BOB, "adjudicator": BOB}
    assert quality(judgments).alpha.value == quality({"ann": ANN, "bob": BOB}).alpha.value


def test_judges_without_shared_documents_raise() -> None:
    with pytest.raises(InputError, match="grades from two judges"):
        quality({"ann": {"q": {"a": 1}}, "bob": {"q": {"b": 1}}})


def _simulate_labels(
    seed: int, *, later: float = 0.0, careless: float = 0.0, topics: int = 30, docs: int = 20
) -> Labels:
    """Simulate three judges with errors; the third can drift in the later half, or guess."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    order = rng.permutation(topics)
    for i, topic in enumerate(order):
        for doc in range(docs):
            truth = rng.integers(0, 4)
            for judge in ("ann", "bob", "cyd"):
                grade = truth + rng.choice([-1, 0, 1], p=[0.15, 0.7, 0.15])
                if judge == "cyd" and i >= topics / 2 and rng.random() < later:
                    grade += 1
                if judge == "cyd" and rng.random() < careless:
                    grade = rng.integers(0, 4)
                time = f"2026-01-{1 + i // 24:02}T{i % 24:02}:{doc:02}:00"
                rows.append(row(f"q{topic}", f"d{doc}", judge, float(np.clip(grade, 0, 3)), time=time))
    return labels(rows)


def test_simulated_drift_and_careless_labels_are_detected() -> None:
    drifted = [quality(_simulate_labels(seed, later=0.4)).judges[2] for seed in range(10)]
    assert sum(judge.drift_p < 0.05 and judge.drift > 0 for judge in drifted) >= 9
    careless = quality(_simulate_labels(0, careless=0.8)).judges
    assert careless[2].alpha_without > 0.6 > careless[2].same
    assert careless[0].alpha_without < 0.5
    assert careless[1].alpha_without < 0.5


@pytest.mark.slow
def test_false_positives_of_drift_keep_the_level() -> None:
    simulations = (quality(_simulate_labels(seed, topics=20, docs=8)) for seed in range(300))
    p_values = [min(judge.drift_p for judge in result.judges) for result in simulations]
    alarms = np.mean([p_value < 0.05 for p_value in p_values])
    assert alarms <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


@needs_shared
def test_agreement_of_dl19_assessors_matches_the_documentation() -> None:
    """docs/dl19.md has the alpha of each assessor with NIST, computed by `agree`."""
    folder = SHARED / "dl19_passage"
    nist = folder / "qrels" / "qrels.dl19-passage.txt"
    page = (Path(__file__).parents[2] / "docs/dl19.md").read_text(encoding="utf-8")
    people = sorted((folder / "alt_qrels" / "human_main").glob("*.txt"))
    for i, path in enumerate(people, 1):
        alpha = quality({"NIST": nist, "other": path}).alpha
        low, high = alpha.interval or (math.nan, math.nan)
        assert f"| assessor {i} |" in page
        assert f"{alpha.value:.3f} [{low:.2f}, {high:.2f}]" in page.partition(f"| assessor {i} |")[2].partition("\n")[0]


def test_drift_with_rounding_errors_only_has_no_p_value() -> None:
    rows: list[dict[str, object]] = []
    for i in range(20):
        truth = float(i % 4)
        rows.append(row(f"q{i:02d}", "d", "ann", truth + 0.1 + 0.3 * (i >= 10), time=f"2024-01-{i + 1:02d}T00:00:00"))
        rows.append(row(f"q{i:02d}", "d", "bob", truth))
    judge = quality(labels(rows)).judges[0]
    assert judge.drift == pytest.approx(0.3)
    assert math.isnan(judge.drift_p)
