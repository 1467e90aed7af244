"""Recovery of losses of known kind and size in known topics, and rate of false findings without any loss.

The confusion matrices are printed: ``pytest -s tests/diagnosis/test_planted_losses.py``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from judged import Qrels, Run
from judged.comparison.slicing.topic_slices import Slicing, slice_topics
from judged.diagnosis.matrix import matrix
from judged.diagnosis.stages import Stages, stages
from planted import DEPTH, KINDS, damaged, levels, planted

if TYPE_CHECKING:
    from planted import Kind, Planted

SEVERITIES = (0.1, 0.3, 0.6, 1.0)
PARTS: dict[Kind, str] = {"candidates": "candidates", "ranking": "ranking", "both": "candidates and ranking"}
RECALL = f"R@{DEPTH}"
REPEATED = 120


def damaged_topics(collection: Planted, count: int, seed: int) -> list[str]:
    return sorted(np.random.default_rng(seed).choice(collection.topics, count, replace=False).tolist())


def slicing_of(collection: Planted, *names: str) -> Slicing:
    return slice_topics(collection.attributes, list(names), min_topics=10)


def stages_of_damage(
    collection: Planted, seed: int, kind: Kind, severity: float, count: int = 60
) -> tuple[Stages, set[str]]:
    topics = damaged_topics(collection, count, seed)
    new = damaged(collection, collection.run(1 + seed), topics, kind, severity, seed)
    return stages(collection.qrels, new, baseline=collection.run(0), cutoff=DEPTH, resamples=200), set(topics)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_sizes_are_recovered_exactly(kind: Kind, severity: float) -> None:
    collection = planted(21)
    good, topics = collection.run(0), damaged_topics(collection, 50, 1)
    bad = damaged(collection, good, topics, kind, severity)
    result = stages(collection.qrels, bad, baseline=good, cutoff=DEPTH, resamples=100)
    before, after = (
        np.array([levels(run[topic], collection.qrels[topic]) for topic in collection.topics]) for run in (good, bad)
    )
    planted_candidates = before[:, 0] - after[:, 0]
    planted_ranking = (before[:, 1] - after[:, 1]) - planted_candidates
    assert result.baseline is not None
    losses = result.trace.parts - result.baseline.parts
    np.testing.assert_allclose(losses[0], planted_candidates, atol=1e-12)
    np.testing.assert_allclose(losses[1], planted_ranking, atol=1e-12)
    changes = {change.part: change.result.difference for change in result.changes if change.is_overall}
    assert changes["candidates"] == pytest.approx(-planted_candidates.mean(), abs=1e-12)
    assert changes["ranking"] == pytest.approx(-planted_ranking.mean(), abs=1e-12)
    undamaged = np.array([topic not in topics for topic in collection.topics])
    assert not losses[:, undamaged].any()
    if kind == "ranking":
        assert not losses[0].any()
        assert (losses[1] >= 0).all()
    elif severity >= 0.3:
        assert planted_candidates.mean() > 0.01


def test_kinds_of_topics_are_recovered() -> None:
    collections = [planted(seed) for seed in (31, 32)]
    counts: dict[tuple[Kind, float], Counter[str]] = {}
    for kind in KINDS:
        for severity in SEVERITIES:
            table = counts[kind, severity] = Counter()
            for seed, collection in enumerate(collections):
                result, topics = stages_of_damage(collection, seed, kind, severity)
                table.update(
                    name or "none"
                    for topic, name in zip(result.query_ids, result.lost_kinds, strict=True)
                    if topic in topics
                )
    columns = (*PARTS.values(), "none")
    print(f"\n{'planted':12} {'severity':>8} " + " ".join(f"{name:>22}" for name in columns))  # noqa: T201
    for (kind, severity), table in counts.items():
        print(f"{kind:12} {severity:8} " + " ".join(f"{table[name]:22}" for name in columns))  # noqa: T201
    for (kind, severity), table in counts.items():
        share = table[PARTS[kind]] / table.total()
        if severity >= 0.6:
            assert share >= 0.9, (kind, severity, table)
        if kind != "both":
            other = "ranking" if kind == "candidates" else "candidates"
            assert table[other] == 0, (kind, severity, table)
            assert table[PARTS["both"]] <= 0.12 * table.total(), (kind, severity, table)
    for kind in ("candidates", "ranking"):
        assert counts[kind, 0.3][PARTS[kind]] >= 0.6 * counts[kind, 0.3].total()


def test_verdicts_on_the_damaged_run_alone() -> None:
    collection = planted(41)
    expected = {"candidates": "not retrieved", "ranking": "ranked low", "both": "both"}
    for kind in KINDS:
        result, topics = stages_of_damage(collection, 0, kind, 1.0)
        verdicts = Counter(
            name for topic, name in zip(result.query_ids, result.verdicts, strict=True) if topic in topics
        )
        assert verdicts[expected[kind]] >= 0.9 * len(topics), (kind, verdicts)
        assert verdicts["healthy"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_slice_and_the_part_are_recovered(kind: Kind) -> None:
    collection = planted(51)
    slicing = slicing_of(collection, "domain", "luck")
    law = [topic for topic, attributes in collection.attributes.items() if attributes["domain"] == "law"]
    tables: list[str] = []
    for severity in SEVERITIES:
        bad = damaged(collection, collection.run(1), law, kind, severity)
        result = stages(
            collection.qrels, bad, baseline=collection.run(0), cutoff=DEPTH, slicing=slicing, resamples=2000
        )
        lost_parts = {
            (change.slice, change.part)
            for change in result.changes
            if change.significant and change.result.difference < 0
        }
        parts = {part for name, part in lost_parts if name == "domain=law"}
        tables.append(f"{kind:12} {severity:8} law: {', '.join(sorted(parts - {'score'})) or 'nothing'}")
        if severity >= 0.3:
            assert "score" in parts
            assert parts - {"score"} == set(PARTS[kind].split(" and ")), (kind, severity)
        assert not {name for name, _ in lost_parts if name.startswith("domain=") and name != "domain=law"}
    print("\n" + "\n".join(tables))  # noqa: T201


@pytest.mark.parametrize(
    ("kind", "quadrant"), [("ranking", "ranking problem"), ("candidates", "both problems"), ("both", "both problems")]
)
def test_the_quadrant_is_recovered(kind: Kind, quadrant: str) -> None:
    """Documents that are not candidates cannot be ranked well, so missing candidates are low on both axes."""
    collection = planted(61)
    law = [topic for topic, attributes in collection.attributes.items() if attributes["domain"] == "law"]
    bad = damaged(collection, collection.run(1), law, kind, 0.6)
    runs = {"good": collection.run(0), "bad": bad}
    result = matrix(collection.qrels, runs, x=RECALL, slicing=slicing_of(collection, "domain"), resamples=2000)
    quadrants = {(point.run, point.slice): point.quadrant for point in result.points}
    assert quadrants["bad", "domain=law"] == quadrant
    others = {
        name: quadrants["bad", name] for _, name in quadrants if name.startswith("domain=") and name != "domain=law"
    }
    assert set(others.values()) == {"undecided"}
    assert {quadrants["good", name] for name in others} == {"undecided"}
    topics = dict(zip(result.scores.query_ids, result.topics("bad"), strict=True))
    assert Counter(topics[topic] for topic in law)[quadrant] >= (0.9 if kind != "both" else 0.8) * len(law)
    changed = {(change.slice, change.part) for change in result.changes if change.significant and not change.is_overall}
    assert changed == {("domain=law", "nDCG@10"), *((("domain=law", RECALL),) if kind != "ranking" else ())}


def test_coverage_alone_is_recovered_where_few_documents_are_wanted() -> None:
    """RR@10 depends on the first relevant document only: if all others are missing, only recall is low."""
    collection = planted(71)
    law = [topic for topic, attributes in collection.attributes.items() if attributes["domain"] == "law"]
    bad = dict(collection.run(0))
    for topic in law:
        relevant = [doc for doc in bad[topic] if collection.qrels[topic].get(doc, 0) > 0]
        bad[topic] = [doc for doc in bad[topic] if doc not in relevant[1:]]
    runs = {"good": collection.run(0), "bad": bad}
    result = matrix(
        collection.qrels, runs, x=RECALL, y="RR@10", slicing=slicing_of(collection, "domain"), resamples=500
    )
    (law_point,) = [point for point in result.points if (point.run, point.slice) == ("bad", "domain=law")]
    assert law_point.quadrant == "coverage problem"
    assert any("of the top 10 documents are judged" in text for text in result.sentences)


def test_undamaged_runs_give_false_findings_at_the_declared_rate() -> None:
    """Slices: at most alpha of the repetitions, for both methods. Topics: at most the false discovery rate."""
    by_stage, by_quadrant, by_topic = [], [], []
    for seed in range(REPEATED):
        collection = planted(1000 + seed, topics=100)
        slicing = slicing_of(collection, "domain", "luck")
        qrels, first, second = Qrels.of(collection.qrels), Run.of(collection.run(0)), Run.of(collection.run(1))
        result = stages(qrels, second, baseline=first, cutoff=DEPTH, slicing=slicing, resamples=1000)
        by_stage.append(
            any(change.significant for change in result.changes if not change.is_overall and change.part != "score")
        )
        by_topic.append(result.lost["score"].count > 0)
        runs = {"first": first, "second": second}
        quadrants = matrix(qrels, runs, x="R@10", slicing=slicing, resamples=100)
        by_quadrant.append(any({point.x.side, point.y.side} & {"below", "above"} for point in quadrants.points))
    rates = {"stages": np.mean(by_stage), "quadrants": np.mean(by_quadrant), "topics": np.mean(by_topic)}
    print(f"\nfalse findings in {REPEATED} repetitions: {rates}")  # noqa: T201
    error = np.sqrt(0.05 * 0.95 / REPEATED)
    assert rates["stages"] <= 0.05 + 3 * error
    assert rates["quadrants"] <= 0.05 + 3 * error
    assert rates["topics"] <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / REPEATED)


def test_topics_that_are_said_to_have_lost_did_so_at_the_declared_rate() -> None:
    shares: list[float] = []
    power: list[float] = []
    for seed in range(75):
        result, topics = stages_of_damage(planted(2000 + seed, topics=120), seed, KINDS[seed % 3], 0.6, count=30)
        mask = result.lost["score"].mask
        is_damaged = np.array([topic in topics for topic in result.query_ids])
        shares.append((mask & ~is_damaged).sum() / max(1, mask.sum()))
        power.append(float(mask[is_damaged].mean()))
    print(f"\nfalse share of topics found: {np.mean(shares):.3f} (declared 0.1); damaged found: {np.mean(power):.3f}")  # noqa: T201
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(power) >= 0.9
