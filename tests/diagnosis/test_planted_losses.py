"""Losses planted in known topics, of known kind and size, are recovered; where nothing was planted, little is found.

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
FOUND: dict[Kind, str] = {"candidates": "candidates", "ranking": "ranking", "both": "candidates and ranking"}
RECALL = f"R@{DEPTH}"
REPEATED = 120


def hit_topics(made: Planted, count: int, seed: int) -> list[str]:
    return sorted(np.random.default_rng(seed).choice(made.topics, count, replace=False).tolist())


def sliced(made: Planted, *names: str) -> Slicing:
    return slice_topics(made.attributes, list(names), min_topics=10)


def missed(made: Planted, seed: int, kind: Kind, severity: float, count: int = 60) -> tuple[Stages, set[str]]:
    hit = hit_topics(made, count, seed)
    new = damaged(made, made.run(1 + seed), hit, kind, severity, seed)
    return stages(made.qrels, new, baseline=made.run(0), cutoff=DEPTH, resamples=200), set(hit)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_sizes_are_recovered_exactly(kind: Kind, severity: float) -> None:
    made = planted(21)
    good, hit = made.run(0), hit_topics(made, 50, 1)
    bad = damaged(made, good, hit, kind, severity)
    found = stages(made.qrels, bad, baseline=good, cutoff=DEPTH, resamples=100)
    before, after = (np.array([levels(run[topic], made.qrels[topic]) for topic in made.topics]) for run in (good, bad))
    planted_candidates = before[:, 0] - after[:, 0]
    planted_ranking = (before[:, 1] - after[:, 1]) - planted_candidates
    assert found.baseline is not None
    lost = found.trace.parts - found.baseline.parts
    np.testing.assert_allclose(lost[0], planted_candidates, atol=1e-12)
    np.testing.assert_allclose(lost[1], planted_ranking, atol=1e-12)
    whole = {one.part: one.result.difference for one in found.changes if one.every}
    assert whole["candidates"] == pytest.approx(-planted_candidates.mean(), abs=1e-12)
    assert whole["ranking"] == pytest.approx(-planted_ranking.mean(), abs=1e-12)
    undamaged = np.array([topic not in hit for topic in made.topics])
    assert not lost[:, undamaged].any()
    if kind == "ranking":
        assert not lost[0].any()
        assert (lost[1] >= 0).all()
    elif severity >= 0.3:
        assert planted_candidates.mean() > 0.01


def test_kinds_of_topics_are_recovered() -> None:
    made = [planted(seed) for seed in (31, 32)]
    counts: dict[tuple[Kind, float], Counter[str]] = {}
    for kind in KINDS:
        for severity in SEVERITIES:
            table = counts[kind, severity] = Counter()
            for seed, one in enumerate(made):
                found, hit = missed(one, seed, kind, severity)
                table.update(
                    name or "none"
                    for topic, name in zip(found.query_ids, found.lost_kinds, strict=True)
                    if topic in hit
                )
    columns = (*FOUND.values(), "none")
    print(f"\n{'planted':12} {'severity':>8} " + " ".join(f"{name:>22}" for name in columns))  # noqa: T201
    for (kind, severity), table in counts.items():
        print(f"{kind:12} {severity:8} " + " ".join(f"{table[name]:22}" for name in columns))  # noqa: T201
    for (kind, severity), table in counts.items():
        right = table[FOUND[kind]] / table.total()
        if severity >= 0.6:
            assert right >= 0.9, (kind, severity, table)
        if kind != "both":
            other = "ranking" if kind == "candidates" else "candidates"
            assert table[other] == 0, (kind, severity, table)
            assert table[FOUND["both"]] <= 0.12 * table.total(), (kind, severity, table)
    for kind in ("candidates", "ranking"):
        assert counts[kind, 0.3][FOUND[kind]] >= 0.6 * counts[kind, 0.3].total()


def test_verdicts_on_the_damaged_run_alone() -> None:
    made = planted(41)
    wanted = {"candidates": "not found", "ranking": "found but ranked badly", "both": "both"}
    for kind in KINDS:
        found, hit = missed(made, 0, kind, 1.0)
        told = Counter(name for topic, name in zip(found.query_ids, found.verdicts, strict=True) if topic in hit)
        assert told[wanted[kind]] >= 0.9 * len(hit), (kind, told)
        assert told["healthy"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_slice_and_the_part_are_recovered(kind: Kind) -> None:
    made = planted(51)
    cut = sliced(made, "domain", "luck")
    law = [topic for topic, known in made.attributes.items() if known["domain"] == "law"]
    tables: list[str] = []
    for severity in SEVERITIES:
        bad = damaged(made, made.run(1), law, kind, severity)
        found = stages(made.qrels, bad, baseline=made.run(0), cutoff=DEPTH, slicing=cut, resamples=2000)
        lost = {(one.slice, one.part) for one in found.changes if one.significant and one.result.difference < 0}
        parts = {part for name, part in lost if name == "domain=law"}
        tables.append(f"{kind:12} {severity:8} law: {', '.join(sorted(parts - {'score'})) or 'nothing'}")
        if severity >= 0.3:
            assert "score" in parts
            assert parts - {"score"} == set(FOUND[kind].split(" and ")), (kind, severity)
        assert not {name for name, _ in lost if name.startswith("domain=") and name != "domain=law"}
    print("\n" + "\n".join(tables))  # noqa: T201


@pytest.mark.parametrize(
    ("kind", "quadrant"), [("ranking", "ranking problem"), ("candidates", "both problems"), ("both", "both problems")]
)
def test_the_quadrant_is_recovered(kind: Kind, quadrant: str) -> None:
    """What is not found cannot be ranked well either: missing candidates are low on both axes."""
    made = planted(61)
    law = [topic for topic, known in made.attributes.items() if known["domain"] == "law"]
    bad = damaged(made, made.run(1), law, kind, 0.6)
    runs = {"good": made.run(0), "bad": bad}
    found = matrix(made.qrels, runs, x=RECALL, slicing=sliced(made, "domain"), resamples=2000)
    told = {(point.run, point.slice): point.quadrant for point in found.points}
    assert told["bad", "domain=law"] == quadrant
    others = {name: told["bad", name] for _, name in told if name.startswith("domain=") and name != "domain=law"}
    assert set(others.values()) == {"not told apart"}
    assert {told["good", name] for name in others} == {"not told apart"}
    topics = dict(zip(found.scores.query_ids, found.topics("bad"), strict=True))
    assert Counter(topics[topic] for topic in law)[quadrant] >= (0.9 if kind != "both" else 0.8) * len(law)
    changed = {(one.slice, one.part) for one in found.changes if one.significant and not one.every}
    assert changed == {("domain=law", "nDCG@10"), *((("domain=law", RECALL),) if kind != "ranking" else ())}


def test_coverage_alone_is_recovered_where_few_documents_are_wanted() -> None:
    """RR@10 needs one relevant document: where only the others are gone, recall alone is low."""
    made = planted(71)
    law = [topic for topic, known in made.attributes.items() if known["domain"] == "law"]
    bad = dict(made.run(0))
    for topic in law:
        relevant = [doc for doc in bad[topic] if made.qrels[topic].get(doc, 0) > 0]
        bad[topic] = [doc for doc in bad[topic] if doc not in relevant[1:]]
    runs = {"good": made.run(0), "bad": bad}
    found = matrix(made.qrels, runs, x=RECALL, y="RR@10", slicing=sliced(made, "domain"), resamples=500)
    (law_point,) = [point for point in found.points if (point.run, point.slice) == ("bad", "domain=law")]
    assert law_point.quadrant == "coverage problem"
    assert any("of its first 10 are judged" in text for text in found.sentences)


def test_undamaged_runs_give_false_findings_at_the_declared_rate() -> None:
    """Slices in at most alpha of repetitions, by either kind of finding; topics in at most the rate of repetitions."""
    by_stage, by_quadrant, by_topic = [], [], []
    for seed in range(REPEATED):
        made = planted(1000 + seed, topics=100)
        cut = sliced(made, "domain", "luck")
        qrels, first, second = Qrels.of(made.qrels), Run.of(made.run(0)), Run.of(made.run(1))
        found = stages(qrels, second, baseline=first, cutoff=DEPTH, slicing=cut, resamples=1000)
        by_stage.append(any(one.significant for one in found.changes if not one.every and one.part != "score"))
        by_topic.append(found.lost["score"].count > 0)
        runs = {"first": first, "second": second}
        quadrants = matrix(qrels, runs, x="R@10", slicing=cut, resamples=100)
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
        found, hit = missed(planted(2000 + seed, topics=120), seed, KINDS[seed % 3], 0.6, count=30)
        mask = found.lost["score"].mask
        damaged_topics = np.array([topic in hit for topic in found.query_ids])
        shares.append((mask & ~damaged_topics).sum() / max(1, mask.sum()))
        power.append(float(mask[damaged_topics].mean()))
    print(f"\nfalse share of topics found: {np.mean(shares):.3f} (declared 0.1); damaged found: {np.mean(power):.3f}")  # noqa: T201
    assert np.mean(shares) <= 0.1 + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(power) >= 0.9
