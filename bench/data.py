"""Generate the benchmark's data: pairs of qrels and run, with a fixed seed.

`large` has the shape of MS MARCO passage ranking (6,980 topics x 1000 documents, one to three judged), `small` that of
a TREC test collection (50 topics x 1000 documents, 400 judged each, grades 0 to 3). Their scores are strictly
decreasing, also as 32-bit floats, so that rules for ties do not matter. In `large-ties` and `small-ties`, a fifth of
the documents has the score of the document above; `large-shuffled` has the rows of `large` in random order, and
`many-00` to `many-19` are 20 runs for the qrels of `small`.
"""

from __future__ import annotations

from functools import partial
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

FOLDER = Path(__file__).parent / "data"
DEPTH = 1000
_PASSAGES = 8_841_823  # number of passages in MS MARCO
_JUDGED = 400
_TIED = 0.2
MANY = 20


def main() -> None:
    """Write the missing files."""
    FOLDER.mkdir(exist_ok=True)
    _write_pair("large", partial(_write_large, tied=0.0))
    _write_pair("small", partial(_write_small, tied=0.0))
    _write_pair("large-ties", partial(_write_large, tied=_TIED))
    _write_pair("small-ties", partial(_write_small, tied=_TIED))
    _write_if_missing(FOLDER / "large-shuffled.run", _write_shuffled)
    for number in range(MANY):
        _write_if_missing(FOLDER / f"many-{number:02}.run", partial(_write_noisy, seed=number))


def _write_pair(name: str, write: Callable[[Generator, TextIO, TextIO], None]) -> None:
    with StringIO() as qrels:
        _write_if_missing(FOLDER / f"{name}.run", lambda run: write(np.random.default_rng(20), qrels, run))
        if qrels.tell():  # the run was missing
            (FOLDER / f"{name}.qrels").write_text(qrels.getvalue())


def _write_if_missing(target: Path, write: Callable[[TextIO], None]) -> None:
    if not target.exists():
        part = target.with_suffix(target.suffix + ".part")
        with part.open("w", newline="\n") as file:
            write(file)
        part.rename(target)


def _write_shuffled(run: TextIO) -> None:
    lines = (FOLDER / "large.run").read_text().splitlines(keepends=True)
    run.writelines(lines[row] for row in np.random.default_rng(21).permutation(len(lines)))


def _write_noisy(run: TextIO, seed: int) -> None:
    """Write the small run with noise on the scores and with ties, like a run of another system."""
    rng = np.random.default_rng(seed)
    for topic, rows in groupby((FOLDER / "small.run").read_text().splitlines(), lambda line: line.split(" ", 1)[0]):
        docs, scores = zip(*((row.split(" ")[2], float(row.split(" ")[4])) for row in rows), strict=True)
        noisy = (np.array(scores) + rng.normal(scale=5.0, size=len(scores))).round(2)
        order = np.argsort(-noisy, kind="stable").tolist()
        run.writelines(
            f"{topic} Q0 {docs[position]} {rank} {noisy[position]} bench\n" for rank, position in enumerate(order, 1)
        )


def _write_large(rng: Generator, qrels: TextIO, run: TextIO, tied: float) -> None:
    for topic in np.sort(rng.choice(1_100_000, 6980, replace=False) + 1000).tolist():
        ids = rng.choice(_PASSAGES, DEPTH + 3, replace=False).tolist()
        docs, others = [str(doc) for doc in ids[:DEPTH]], [str(doc) for doc in ids[DEPTH:]]
        _write_ranking(run, str(topic), docs, rng, tied)
        ranks = np.minimum(rng.exponential(60, size=3), DEPTH - 1).astype(int).tolist()
        is_returned = rng.random(3) < 0.85  # other documents are judged, but not returned
        judged_docs = [
            docs[rank] if is_here else other for rank, is_here, other in zip(ranks, is_returned, others, strict=True)
        ]
        qrels.writelines(f"{topic} 0 {doc} 1\n" for doc in sorted(set(judged_docs[: rng.choice([1, 1, 1, 2, 3])])))


def _write_small(rng: Generator, qrels: TextIO, run: TextIO, tied: float) -> None:
    for topic in range(301, 351):
        ids = rng.choice(500_000, DEPTH + _JUDGED, replace=False).tolist()
        docs = [f"LA{doc // 1000:06d}-{doc % 1000:04d}" for doc in ids]
        _write_ranking(run, str(topic), docs[:DEPTH], rng, tied)
        near_top = np.where(np.arange(len(docs)) < DEPTH, np.exp(-np.arange(len(docs)) / 200), 0.05)
        judged = rng.choice(len(docs), _JUDGED, replace=False, p=near_top / near_top.sum())
        for doc_index in np.sort(judged).tolist():
            grade = rng.choice(4, p=(0.7, 0.15, 0.1, 0.05))
            qrels.write(f"{topic} 0 {docs[doc_index]} {grade}\n")


def _write_ranking(run: TextIO, topic: str, docs: list[str], rng: Generator, tied: float) -> None:
    score_steps = 0.001 + rng.exponential(0.04, size=len(docs))
    is_distinct = (
        np.random.default_rng(int(topic)).random(len(docs)) >= tied
    )  # a separate generator, so that other random numbers do not change
    scores = np.cumsum(score_steps)[::-1][np.maximum.accumulate(np.where(is_distinct, np.arange(len(docs)), 0))]
    rows = enumerate(zip(docs, scores.tolist(), strict=True), 1)
    run.write("".join(f"{topic} Q0 {doc} {rank} {score:.5f} bench\n" for rank, (doc, score) in rows))


if __name__ == "__main__":
    main()
