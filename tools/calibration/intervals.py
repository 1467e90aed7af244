"""Coverage of 95% intervals of a mean over n topics.

Samples are drawn with replacement from scores of real runs by 23 measures, including sparse measures and ceilings: runs
of the sample and, if available, of the shared test data. *Median*: of all populations. *Worst tenth*: mean of the tenth
with the lowest coverage. *Width*: median of the mean widths, relative to Student's t, both truncated at the bounds.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import judged
from calibration import CoverageCell
from judged.data import sample
from judged.stats import IntervalMethod, mean_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judged.stats.interval import IntervalName

SIZES = (2, 3, 5, 10, 25, 50, 100)
METHODS: tuple[IntervalName, ...] = ("t", "adjusted", "bootstrap")
BOUNDED = [
    "nDCG@10",
    "nDCG",
    "AP",
    "P@10",
    "P@1",
    "P@5",
    "RR",
    "RR@10",
    "R@10",
    "R@100",
    "R@1000",
    "Success@1",
    "Success@5",
    "Success@10",
    "RBP(p=0.8)",
    "Rprec",
    "Bpref",
    "nDCG(gain=exp2)@10",
    "infAP",
    "AP(rel=2)",
    "RR(rel=2)",
    "P(rel=2)@10",
    "Judged@10",
]
UNBOUNDED = ["DCG@10", "DCG", "DCG(gain=exp2)@10", "CG@10"]
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
COLLECTIONS = {  # qrels, folder of runs, and step between selected runs
    "dl19_passage/qrels/qrels.dl19-passage.txt": ("dl19_passage/runs", 6),
    "robust03/qrels/robust03_qrels.txt": ("robust03/runs", 1),
    "codec/qrels/document_ndcg.qrels": ("codec/runs_d100", 3),
    "web2012/qrels/qrels.web.151-200.txt": ("web2012/runs", 3),
    "cisi/qrels/cisi.qrels": ("cisi/runs", 8),
    "cacm/qrels/cacm.qrels": ("cacm/runs", 8),
    "cranfield/qrels/cranfield.graded.qrels": ("cranfield/runs", 8),
}


def score_populations(measures: list[str], *, shared: bool) -> list[np.ndarray]:
    """Return an array of scores for each real run and measure, without constant arrays."""
    collections = [(sample.qrels(), sample.runs())]
    if shared:
        collections += [
            (judged.Qrels.read(SHARED / qrels), sorted((SHARED / runs).glob("*.gz"))[::step])
            for qrels, (runs, step) in COLLECTIONS.items()
            if (SHARED / qrels).is_file()
        ]
    populations: list[np.ndarray] = []
    for qrels, runs in collections:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = judged.evaluate(qrels, runs, measures)
        populations += [row[~np.isnan(row)] for row in scores.values.reshape(-1, len(scores.query_ids))]
    return [row for row in populations if len(row) > 1 and row.min() < row.max()]


def coverage_and_widths(
    populations: list[np.ndarray], method: IntervalName, n: int, trials: int, bounds: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return coverage of the mean and the mean width for each population."""
    rng = np.random.default_rng(n)
    shares, widths = np.empty(len(populations)), np.empty(len(populations))
    for i, scores in enumerate(populations):
        samples = scores[rng.integers(len(scores), size=(trials, n))]
        limits = mean_intervals(samples, IntervalMethod(method), bounds)
        mean = samples.mean(axis=1)[:, None]
        limits = np.where(np.isnan(limits), mean, limits)  # no interval counts as an interval of width 0
        truth, rounding = scores.mean(), 1e-12 * np.abs(scores).max()
        shares[i] = np.mean((limits[:, 0] <= truth + rounding) & (truth - rounding <= limits[:, 1]))
        truncated = np.clip(limits, *bounds) if not np.isnan(bounds).any() else limits
        widths[i] = np.mean(truncated[:, 1] - truncated[:, 0])
    return shares, widths


def summary(shares: np.ndarray) -> tuple[float, float]:
    """Return the median over populations, and the mean of the worst tenth."""
    return float(np.median(shares)), float(np.sort(shares)[: max(len(shares) // 10, 1)].mean())


def measure(trials: int) -> Iterator[CoverageCell]:
    """Yield coverage and width of each method."""
    kinds = {"0 to 1": (BOUNDED, (0.0, 1.0)), "without a bound": (UNBOUNDED, (0.0, np.nan))}
    for kind, (names, bounds) in kinds.items():
        populations = score_populations(names, shared=True)
        student: dict[int, np.ndarray] = {}
        for method in METHODS:
            for n in SIZES:
                shares, widths = coverage_and_widths(populations, method, n, trials, bounds)
                if method == "t":
                    student[n] = widths
                median, worst = summary(shares)
                yield CoverageCell(method, f"scores {kind}, median", n, median, trials)
                yield CoverageCell(method, f"scores {kind}, worst tenth", n, worst, trials)
                yield CoverageCell(method, f"scores {kind}, width", n, float(np.median(widths / student[n])), trials)
