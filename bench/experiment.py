"""Whether latency is measured as it is: an engine that sleeps for known times, ``experiment.py [QUERIES]``.

Prints the known and the measured p50 and p95, what the difference is, and the noise that is reported beside them.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from judged.pipelines.experiments.limits import QUANTILES, quantile, rounds_of


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    delays = np.random.default_rng(0).gamma(2.0, 2.0, count) / 1000  # seconds: 4 ms in the mean, some much more
    known = {f"q{at}": float(delay) for at, delay in enumerate(delays)}
    taken = rounds_of(lambda query: time.sleep(known[query]), known, rounds=5, warm_up=10, seed=1)
    for name, share in QUANTILES.items():
        found, truth = quantile(taken, share), 1000 * float(np.quantile(delays, share))
        low, high = found.noise
        off = f"{found.value - truth:+.3f}"
        print(
            f"{name}: known {truth:.3f}, measured {found.value:.3f} ({off}), in single rounds {low:.3f} to {high:.3f}"
        )


if __name__ == "__main__":
    main()
