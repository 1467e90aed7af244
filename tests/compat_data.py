"""Generated judgments and runs for the tests that compare with other tools."""

from __future__ import annotations

import random
from typing import TypeAlias

QrelsDict: TypeAlias = dict[str, dict[str, int]]
RunDict: TypeAlias = dict[str, dict[str, float]]

LETTERS = ["é", "日", "Z", "a", '"', "ß", "-", "_", "9", "10", "e\u0301", "\ufffd", "\U0001d4b3"]
TIED = [float(whole) / 8 for whole in range(-20, 60)]
NEAR = [0.1 + number * 1e-9 for number in range(200)]  # equal in 32 bits, one to some dozens of them
SPREAD = [number / 7 for number in range(5000)]


def collection(
    seed: int, topics: int, *, grades: list[int] | None = None, scores: list[float] | None = None, depth: int = 300
) -> tuple[QrelsDict, RunDict]:
    """Make judgments and a run: deep and short rankings, topics missing on both sides, odd ids.

    Scores are drawn with repetition, so that there are ties, unless there are as many as documents.
    """
    chance = random.Random(seed)  # noqa: S311 - any numbers will do
    grades = grades or chance.choice([[0, 1], [-2, -1, 0, 1, 2, 3, 4], [0, 0, 0, 0, 1, 2, 4], [1, 2], [0, 3]])
    scores = scores or chance.choice([TIED, TIED[:3], NEAR, SPREAD])
    docs = [f"{chance.choice(LETTERS)}{number}{chance.choice(LETTERS)}" for number in range(chance.choice([30, depth]))]
    qrels: QrelsDict = {}
    run: RunDict = {}
    for number in chance.sample(range(topics), topics):
        topic = f"{chance.choice(LETTERS)}{number}"
        known = chance.sample(docs, chance.randint(1, len(docs) // 2))
        returned = chance.sample(docs, chance.choice([1, 2, 7, len(docs) // 2, len(docs)]))
        if chance.random() > 0.05:
            # all-negative judgments break trec_eval itself: one grade is never negative
            qrels[topic] = {doc: chance.choice(grades) for doc in known} | {known[0]: max(grades)}
            if chance.random() < 0.1:
                qrels[topic] = dict.fromkeys(qrels[topic], 0)
        if chance.random() > 0.05:
            distinct = len(scores) >= len(docs)
            drawn = chance.sample(scores, len(returned)) if distinct else chance.choices(scores, k=len(returned))
            run[topic] = dict(zip(returned, drawn, strict=True))
    return qrels, run
