"""Generated judgments and runs for the tests that compare with other tools."""

from __future__ import annotations

import random
from typing import TypeAlias

QrelsDict: TypeAlias = dict[str, dict[str, int]]
RunDict: TypeAlias = dict[str, dict[str, float]]

LETTERS = ["é", "日", "Z", "a", '"', "ß", "-", "_", "9", "10", "e\u0301", "\ufffd", "\U0001d4b3"]
TIED = [float(eighths) / 8 for eighths in range(-20, 60)]
NEAR = [0.1 + number * 1e-9 for number in range(200)]  # equal in 32 bits, one to some dozens of them
SPREAD = [number / 7 for number in range(5000)]


def collection(
    seed: int, topics: int, *, grades: list[int] | None = None, scores: list[float] | None = None, depth: int = 300
) -> tuple[QrelsDict, RunDict]:
    """Generate judgments and a run: deep and short rankings, missing topics in both, unusual ids.

    Scores are sampled with replacement, so that there are ties, if there are fewer scores than documents.
    """
    rng = random.Random(seed)  # noqa: S311 - not a secret
    grades = grades or rng.choice([[0, 1], [-2, -1, 0, 1, 2, 3, 4], [0, 0, 0, 0, 1, 2, 4], [1, 2], [0, 3]])
    scores = scores or rng.choice([TIED, TIED[:3], NEAR, SPREAD])
    docs = [f"{rng.choice(LETTERS)}{number}{rng.choice(LETTERS)}" for number in range(rng.choice([30, depth]))]
    qrels: QrelsDict = {}
    run: RunDict = {}
    for number in rng.sample(range(topics), topics):
        topic = f"{rng.choice(LETTERS)}{number}"
        judged_docs = rng.sample(docs, rng.randint(1, len(docs) // 2))
        returned = rng.sample(docs, rng.choice([1, 2, 7, len(docs) // 2, len(docs)]))
        if rng.random() > 0.05:
            # all-negative judgments break trec_eval itself: one grade is never negative
            qrels[topic] = {doc: rng.choice(grades) for doc in judged_docs} | {judged_docs[0]: max(grades)}
            if rng.random() < 0.1:
                qrels[topic] = dict.fromkeys(qrels[topic], 0)
        if rng.random() > 0.05:
            distinct = len(scores) >= len(docs)
            sampled_scores = rng.sample(scores, len(returned)) if distinct else rng.choices(scores, k=len(returned))
            run[topic] = dict(zip(returned, sampled_scores, strict=True))
    return qrels, run
