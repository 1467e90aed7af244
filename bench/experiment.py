"""Check the latency measurement with an engine that sleeps for known times: ``experiment.py [QUERIES]``.

Prints the true and measured p50 and p95, their difference, and the reported noise.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from judged.pipelines.experiments.limits import QUANTILES, measure_rounds, quantile


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    delays = np.random.default_rng(0).gamma(2.0, 2.0, count) / 1000  # seconds; the mean is 4 ms, with a heavy tail
    sleep_seconds = {f"q{i}": float(delay) for i, delay in enumerate(delays)}
    milliseconds = measure_rounds(
        lambda query: time.sleep(sleep_seconds[query]), sleep_seconds, rounds=5, warm_up=10, seed=1
    )
    for name, share in QUANTILES.items():
        estimate, truth = quantile(milliseconds, share), 1000 * float(np.quantile(delays, share))
        low, high = estimate.noise
        error = f"{estimate.value - truth:+.3f}"
        measured = f"true {truth:.3f}, measured {estimate.value:.3f} ({error})"
        print(f"{name}: {measured}, range over rounds {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
