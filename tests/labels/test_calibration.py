"""Models against people: the shared judges of LLMJudge to the digit, and made ones with a known truth."""

from __future__ import annotations

import numpy as np
import pytest

from judged import Qrels, evaluate
from judged.errors import InputError
from judged.labels import Labels, calibrate
from shared_data import SHARED, needs_shared

# exact, kappa of four grades, quadratic, binary from grade 2, mean shift: computed independently of judged, from the
# label files of LLMJudge-benchmark @ 968a1f9; the last one's grades 5 were left out, as they are on no scale
LLMJUDGE = {
    "willia-umbrela1": (0.534, 0.286, 0.504, 0.399, -0.18),
    "h2oloo-zeroshot1": (0.532, 0.282, 0.494, 0.390, -0.18),
    "h2oloo-fewself": (0.520, 0.277, 0.505, 0.428, -0.03),
    "Olz-gpt4o": (0.513, 0.262, 0.507, 0.366, -0.12),
    "TREMA-4prompts": (0.389, 0.183, 0.342, 0.270, 0.56),
    "prophet-setting4": (0.492, 0.147, 0.228, 0.141, -0.59),
    "TREMA-rubric0": (0.445, 0.078, 0.162, 0.031, -0.57),
    "TREMA-nuggets": (0.365, 0.060, 0.155, 0.099, 0.02),
    "RMITIR-llama70B": (0.493, 0.266, 0.490, 0.392, 0.17),
}


@needs_shared
def test_the_judges_of_llmjudge() -> None:
    folder = SHARED / "llmjudge"
    models = {name: folder / "labels" / f"{name}.txt.gz" for name in LLMJUDGE}
    found = calibrate(folder / "llmjudge_test_qrel_idx.txt.gz", models, rel=2)
    for one in found.judges:
        same, kappa, quadratic, binary, shift = LLMJUDGE[one.judge]
        assert (round(one.same, 3), round(one.kappa, 3), round(one.quadratic, 3)) == (same, kappa, quadratic)
        assert (round(one.binary, 3), round(one.shift, 2)) == (binary, shift)
        assert one.invalid == (2 if one.judge == "RMITIR-llama70B" else 0)
        assert one.shared == 4423 - one.invalid


TOPICS = [f"q{at:02}" for at in range(80)]
DOCS = [f"d{at:02}" for at in range(20)]


def made(seed: int, *, noise: float, shift: float = 0.0) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Make true grades and a model's, which errs by noise and is too kind by a shift."""
    chance = np.random.default_rng(seed)
    truth = {topic: {doc: int(chance.integers(0, 4)) for doc in DOCS} for topic in TOPICS}
    model = {
        topic: {doc: int(np.clip(round(grade + shift + chance.normal(0, noise)), 0, 3)) for doc, grade in docs.items()}
        for topic, docs in truth.items()
    }
    return truth, model


def runs(truth: dict[str, dict[str, int]], seed: int) -> dict[str, dict[str, dict[str, float]]]:
    chance = np.random.default_rng(seed)
    spread = chance.uniform(0.5, 4, len(TOPICS))  # topics differ in how hard they are
    made: dict[str, dict[str, dict[str, float]]] = {}
    for name, error in (("good", 1.0), ("bad", 2.5)):
        scale = dict(zip(TOPICS, spread * error, strict=True))
        made[name] = {t: {doc: grade + chance.normal(0, scale[t]) for doc, grade in truth[t].items()} for t in TOPICS}
    return made


def test_means_are_corrected_by_what_people_said() -> None:
    truth, model = made(1, noise=0.5, shift=0.6)
    systems = runs(truth, 2)
    found = calibrate(truth, {"model": model}, systems, labeled=TOPICS[:40])
    exact = evaluate(truth, systems, "nDCG@10").aggregate()
    known = evaluate({t: truth[t] for t in TOPICS[:40]}, systems, "nDCG@10").aggregate()
    (judge,) = found.judges
    assert (found.labeled, found.others, judge.invalid) == (40, 40, 0)
    assert judge.shift > 0.2
    assert judge.tau == 1.0
    for one in found.means:
        assert one.known == pytest.approx(known[one.run]["nDCG@10"])
        assert one.ci[1] - one.ci[0] < one.known_ci[1] - one.known_ci[0]
        assert abs(one.value - exact[one.run]["nDCG@10"]) < abs(one.model - exact[one.run]["nDCG@10"])
    assert judge.worth_ci is not None
    assert judge.worth_ci[0] > 0


def test_a_useless_model_is_worth_none() -> None:
    truth, _ = made(1, noise=0.5)
    _, model = made(9, noise=0.5)
    (judge,) = calibrate(truth, {"model": model}, runs(truth, 2), labeled=TOPICS[:40]).judges
    assert judge.worth_ci is not None
    assert judge.worth_ci[0] == 0
    assert abs(judge.kappa) < 0.1


def test_grades_outside_the_scale_are_counted_and_not_rounded() -> None:
    human = {"q1": {"a": 3, "b": 0}, "q2": {"a": 1, "b": 2}}
    model = {"q1": {"a": 5, "b": 0}, "q2": {"a": 1, "b": -1}}
    (judge,) = calibrate(human, {"model": model}).judges
    assert (judge.shared, judge.absent, judge.invalid, judge.same) == (2, 2, 2, 1.0)


def test_a_judge_that_favors_a_family_is_found() -> None:
    truth, _ = made(4, noise=0.5)
    systems = runs(truth, 5)
    chance = np.random.default_rng(0)
    best = {topic: sorted(docs, key=docs.__getitem__)[-10:] for topic, docs in systems["bad"].items()}
    kind = {
        topic: {doc: min(grade + 2 * (doc in best[topic]), 3) for doc, grade in docs.items()}
        for topic, docs in truth.items()
    }
    families = {"bad": "own"}
    (bias,) = calibrate(truth, {"model": kind}, systems, families=families).families
    assert bias.ci is not None
    assert bias.ci[0] > 0
    fair = {
        t: {d: int(np.clip(g + chance.integers(-1, 2), 0, 3)) for d, g in docs.items()} for t, docs in truth.items()
    }
    (bias,) = calibrate(truth, {"model": fair}, systems, families=families).families
    assert bias.ci is not None
    assert abs(bias.bias) < 0.05


def test_labels_of_people_and_models_in_one_table() -> None:
    truth, model = made(1, noise=0.5)
    rows = [
        {"query_id": topic, "doc_id": doc, "judge": judge, "kind": kind, "grade": float(grade)}
        for judge, kind, grades in (("ann", "human", truth), ("gpt", "model", model))
        for topic in TOPICS[:3] for doc, grade in grades[topic].items()
    ]  # fmt: skip
    import pyarrow as pa

    together = calibrate(Labels.of(pa.Table.from_pylist(rows)))
    apart = calibrate({t: truth[t] for t in TOPICS[:3]}, {"gpt": {t: model[t] for t in TOPICS[:3]}})
    assert str(together.judges) == str(apart.judges)  # NaN, where there are no systems, equals nothing
    with pytest.raises(InputError, match="no model"):
        calibrate(Labels.of({"ann": Qrels.of(truth)}))


def test_the_most_telling_pairs_come_first() -> None:
    human = {"q": {"a": 0, "b": 0, "c": 1}}
    model = {"q": {"a": 1, "b": 1, "c": 3}}
    systems = {"one": {"q": ["b", "c"]}, "two": {"q": ["b", "a"]}}
    found = calibrate(human, {"m": model}, systems, "P@1", highest=3)
    assert [(one.doc_id, one.runs) for one in found.contested] == [("c", 0), ("b", 2), ("a", 0)]


def test_topics_without_a_score_are_left_out_of_means() -> None:
    docs = {"a": 1, "b": 0, "c": 2}
    human = {f"q{at}": {**docs, "a": at % 2} for at in range(5)} | {"q1": dict.fromkeys(docs, 0)}
    model = {f"q{at}": {**docs, "b": at % 2} for at in range(9)} | {"q3": dict.fromkeys(docs, 0), "q8": {"a": 0}}
    systems = {"one": {f"q{at}": ["a", "b", "c"] for at in range(9)}}
    skipped = calibrate(human, {"m": model}, systems, "nDCG(undefined=skip)@2", resamples=100)
    kept = [
        {topic: grades for topic, grades in each.items() if topic not in {"q1", "q3", "q8"}} for each in (human, model)
    ]
    without = calibrate(kept[0], {"m": kept[1]}, systems, "nDCG@2", resamples=100)
    assert skipped.means == without.means
    assert [note.text[0] for note in skipped.notes] == ["3"]  # topics that both judged, with a score


def test_errors_that_no_labeled_topic_shows_are_named() -> None:
    """Four topics lack what is on less than 1 - 0.05^(1/4) = 53% of all topics in more than 5 of 100 samples."""
    docs = {"a": 1, "b": 0}
    human = {f"q{at}": {**docs, "a": at % 2} for at in range(4)}
    model = {f"q{at}": {**docs, "b": at % 2} for at in range(9)}
    systems = {name: {f"q{at}": list(order) for at in range(9)} for name, order in (("one", "ab"), ("two", "ba"))}
    notes = {note.rule: note.text for note in calibrate(human, {"m": model}, systems, "P@1", resamples=100).notes}
    assert "4 topics can lack those on fewer than 53% of all topics" in notes["rare-errors"]


def test_what_cannot_be_calibrated_is_refused() -> None:
    human, model, systems = {"q": {"a": 1}}, {"q": {"a": 1}}, {"one": {"q": ["a"]}}
    for odd in ({"models": {"people": model}}, {"models": {"m": {"r": {"a": 1}}}}, {"level": 95}, {"measure": "GMAP"}):
        with pytest.raises(InputError):
            calibrate(human, **{"models": {"m": model}, "runs": systems, **odd})  # type: ignore[arg-type]


def test_a_model_that_gave_no_grade_is_left_out() -> None:
    import pyarrow as pa

    table = {"query_id": ["q"] * 3, "doc_id": ["d"] * 3, "judge": ["ann", "m", "n"], "grade": [1.0, 1.0, None]}
    found = calibrate(Labels.of(pa.table({**table, "kind": ["human", "model", "model"]})))
    assert [one.judge for one in found.judges] == ["m"]


def test_slices_are_compared_by_themselves() -> None:
    human = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1, "b": 1}, "q3": {"a": 0}}
    model = {"q1": {"a": 2, "b": 0}, "q2": {"a": 2, "b": 2}, "q3": {"a": 0}}
    kinds = {"q1": {"kind": "x"}, "q2": {"kind": "y"}, "q3": {"kind": "y"}}
    found = calibrate(human, {"m": model}, slicing=kinds).slices
    assert [(one.slice, one.n, one.shared, one.same, one.shift) for one in found] == [
        ("kind=x", 1, 2, 1.0, 0.0),
        ("kind=y", 2, 3, pytest.approx(1 / 3), pytest.approx(2 / 3)),
    ]
    assert found[1].shift_ci is None  # two topics
