"""Models against people: the judges of LLMJudge, and simulated models with known errors."""

from __future__ import annotations

import numpy as np
import pytest

from judged import Qrels, evaluate
from judged.errors import InputError
from judged.labels import Labels, calibrate
from shared_data import SHARED, needs_shared

# exact, kappa of four grades, quadratic, binary from grade 2, mean shift: computed independently of judged, from the
# label files of LLMJudge-benchmark @ 968a1f9, without the grades 5 of the last one, which are outside the scale
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
    result = calibrate(folder / "llmjudge_test_qrel_idx.txt.gz", models, rel=2)
    for judge in result.judges:
        same, kappa, quadratic, binary, shift = LLMJUDGE[judge.judge]
        assert (round(judge.same, 3), round(judge.kappa, 3), round(judge.quadratic, 3)) == (same, kappa, quadratic)
        assert (round(judge.binary, 3), round(judge.shift, 2)) == (binary, shift)
        assert judge.invalid == (2 if judge.judge == "RMITIR-llama70B" else 0)
        assert judge.shared == 4423 - judge.invalid


TOPICS = [f"q{i:02}" for i in range(80)]
DOCS = [f"d{i:02}" for i in range(20)]


def simulate(
    seed: int, *, noise: float, shift: float = 0.0
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Simulate true grades, and grades of a model with noise and a positive shift."""
    rng = np.random.default_rng(seed)
    truth = {topic: {doc: int(rng.integers(0, 4)) for doc in DOCS} for topic in TOPICS}
    model = {
        topic: {doc: int(np.clip(round(grade + shift + rng.normal(0, noise)), 0, 3)) for doc, grade in docs.items()}
        for topic, docs in truth.items()
    }
    return truth, model


def runs(truth: dict[str, dict[str, int]], seed: int) -> dict[str, dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(0.5, 4, len(TOPICS))  # topics differ in difficulty
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for name, error in (("good", 1.0), ("bad", 2.5)):
        scale = dict(zip(TOPICS, difficulty * error, strict=True))
        scores[name] = {t: {doc: grade + rng.normal(0, scale[t]) for doc, grade in truth[t].items()} for t in TOPICS}
    return scores


def test_corrected_means_are_closer_to_the_truth() -> None:
    truth, model = simulate(1, noise=0.5, shift=0.6)
    systems = runs(truth, 2)
    result = calibrate(truth, {"model": model}, systems, labeled=TOPICS[:40])
    true_means = evaluate(truth, systems, "nDCG@10").aggregate()
    known_means = evaluate({t: truth[t] for t in TOPICS[:40]}, systems, "nDCG@10").aggregate()
    (judge,) = result.judges
    assert (result.labeled, result.model_only, judge.invalid) == (40, 40, 0)
    assert judge.shift > 0.2
    assert judge.tau == 1.0
    for mean in result.means:
        assert mean.human == pytest.approx(known_means[mean.run]["nDCG@10"])
        assert mean.ci[1] - mean.ci[0] < mean.human_ci[1] - mean.human_ci[0]
        assert abs(mean.value - true_means[mean.run]["nDCG@10"]) < abs(mean.model - true_means[mean.run]["nDCG@10"])
    assert judge.added_topics_ci is not None
    assert judge.added_topics_ci[0] > 0


def test_a_useless_model_has_no_value() -> None:
    truth, _ = simulate(1, noise=0.5)
    _, model = simulate(9, noise=0.5)
    (judge,) = calibrate(truth, {"model": model}, runs(truth, 2), labeled=TOPICS[:40]).judges
    assert judge.added_topics_ci is not None
    assert judge.added_topics_ci[0] == 0
    assert abs(judge.kappa) < 0.1


def test_grades_outside_the_scale_are_invalid() -> None:
    human = {"q1": {"a": 3, "b": 0}, "q2": {"a": 1, "b": 2}}
    model = {"q1": {"a": 5, "b": 0}, "q2": {"a": 1, "b": -1}}
    (judge,) = calibrate(human, {"model": model}).judges
    assert (judge.shared, judge.missing, judge.invalid, judge.same) == (2, 2, 2, 1.0)


def test_bias_for_a_family_is_detected() -> None:
    truth, _ = simulate(4, noise=0.5)
    systems = runs(truth, 5)
    rng = np.random.default_rng(0)
    top_docs = {topic: sorted(docs, key=docs.__getitem__)[-10:] for topic, docs in systems["bad"].items()}
    biased = {
        topic: {doc: min(grade + 2 * (doc in top_docs[topic]), 3) for doc, grade in docs.items()}
        for topic, docs in truth.items()
    }
    families = {"bad": "own"}
    (bias,) = calibrate(truth, {"model": biased}, systems, families=families).families
    assert bias.ci is not None
    assert bias.ci[0] > 0
    unbiased = {
        topic: {doc: int(np.clip(grade + rng.integers(-1, 2), 0, 3)) for doc, grade in docs.items()}
        for topic, docs in truth.items()
    }
    (bias,) = calibrate(truth, {"model": unbiased}, systems, families=families).families
    assert bias.ci is not None
    assert abs(bias.bias) < 0.05


def test_labels_of_people_and_models_in_one_table() -> None:
    truth, model = simulate(1, noise=0.5)
    rows = [
        {"query_id": topic, "doc_id": doc, "judge": judge, "kind": kind, "grade": float(grade)}
        for judge, kind, grades in (("ann", "human", truth), ("gpt", "model", model))
        for topic in TOPICS[:3] for doc, grade in grades[topic].items()
    ]  # fmt: skip
    import pyarrow as pa

    from_labels = calibrate(Labels.of(pa.Table.from_pylist(rows)))
    people, gpt = ({topic: grades[topic] for topic in TOPICS[:3]} for grades in (truth, model))
    from_qrels = calibrate(people, {"gpt": gpt})
    assert str(from_labels.judges) == str(from_qrels.judges)  # compared as text because NaN != NaN
    with pytest.raises(InputError, match="no labels by a model judge"):
        calibrate(Labels.of({"ann": Qrels.of(truth)}))


def test_contested_documents_are_sorted() -> None:
    human = {"q": {"a": 0, "b": 0, "c": 1}}
    model = {"q": {"a": 1, "b": 1, "c": 3}}
    systems = {"one": {"q": ["b", "c"]}, "two": {"q": ["b", "a"]}}
    result = calibrate(human, {"m": model}, systems, "P@1", highest=3)
    assert [(document.doc_id, document.runs) for document in result.contested] == [("c", 0), ("b", 2), ("a", 0)]


def test_topics_without_a_score_do_not_count() -> None:
    docs = {"a": 1, "b": 0, "c": 2}
    human = {f"q{i}": {**docs, "a": i % 2} for i in range(5)} | {"q1": dict.fromkeys(docs, 0)}
    model = {f"q{i}": {**docs, "b": i % 2} for i in range(9)} | {"q3": dict.fromkeys(docs, 0), "q8": {"a": 0}}
    systems = {"one": {f"q{i}": ["a", "b", "c"] for i in range(9)}}
    skipped = calibrate(human, {"m": model}, systems, "nDCG(undefined=skip)@2", resamples=100)
    scored = [
        {topic: grades for topic, grades in grades_by_topic.items() if topic not in {"q1", "q3", "q8"}}
        for grades_by_topic in (human, model)
    ]
    expected = calibrate(scored[0], {"m": scored[1]}, systems, "nDCG@2", resamples=100)
    assert skipped.means == expected.means
    assert [note.text.split(",")[0] for note in skipped.notes] == [
        "people judged 3 topics"
    ]  # topics with a score from both


def test_notes_warn_about_errors_that_no_labeled_topic_shows() -> None:
    """More than 5% of samples of four topics miss an error on less than 1 - 0.05^(1/4) = 53% of all topics."""
    docs = {"a": 1, "b": 0}
    human = {f"q{i}": {**docs, "a": i % 2} for i in range(4)}
    model = {f"q{i}": {**docs, "b": i % 2} for i in range(9)}
    systems = {name: {f"q{i}": list(order) for i in range(9)} for name, order in (("one", "ab"), ("two", "ba"))}
    notes = {note.rule: note.text for note in calibrate(human, {"m": model}, systems, "P@1", resamples=100).notes}
    assert (
        "With 4 topics judged by people, such model errors can affect up to 53% of all topics" in notes["rare-errors"]
    )


def test_invalid_input_raises() -> None:
    human, model, systems = {"q": {"a": 1}}, {"q": {"a": 1}}, {"one": {"q": ["a"]}}
    for options in (
        {"models": {"people": model}},
        {"models": {"m": {"r": {"a": 1}}}},
        {"level": 95},
        {"measure": "GMAP"},
    ):
        with pytest.raises(InputError):
            calibrate(human, **{"models": {"m": model}, "runs": systems, **options})  # type: ignore[arg-type]


def test_a_model_without_grades_is_left_out() -> None:
    import pyarrow as pa

    table = {"query_id": ["q"] * 3, "doc_id": ["d"] * 3, "judge": ["ann", "m", "n"], "grade": [1.0, 1.0, None]}
    result = calibrate(Labels.of(pa.table({**table, "kind": ["human", "model", "model"]})))
    assert [judge.judge for judge in result.judges] == ["m"]


def test_slices_have_separate_results() -> None:
    human = {"q1": {"a": 2, "b": 0}, "q2": {"a": 1, "b": 1}, "q3": {"a": 0}}
    model = {"q1": {"a": 2, "b": 0}, "q2": {"a": 2, "b": 2}, "q3": {"a": 0}}
    kinds = {"q1": {"kind": "x"}, "q2": {"kind": "y"}, "q3": {"kind": "y"}}
    result = calibrate(human, {"m": model}, slicing=kinds).slices
    assert [(row.slice, row.n, row.shared, row.same, row.shift) for row in result] == [
        ("kind=x", 1, 2, 1.0, 0.0),
        ("kind=y", 2, 3, pytest.approx(1 / 3), pytest.approx(2 / 3)),
    ]
    assert result[1].shift_ci is None  # two topics
