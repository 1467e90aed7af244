"""Count interleaved lists of ten per second on one core; the target is 20,000 for each method.

``python bench/mixing.py``; writes no files, and needs only Python.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from judged.online.mixed_lists import METHODS, interleave

TARGET, LISTS = 20_000, 50_000


def main() -> int:
    """Interleave two lists of ten with six common documents, with a new key each time."""
    first = [f"document-{number}" for number in range(10)]
    second = [f"document-{number}" for number in range(4, 14)]
    random.Random(1).shuffle(second)  # noqa: S311 - no secret
    is_too_slow = False
    for method in METHODS:
        start = process_time()
        for number in range(LISTS):
            interleave(first, second, key=("experiment", str(number), "query"), method=method)
        rate = LISTS / (process_time() - start)
        is_too_slow |= rate < TARGET
        print(f"{method:14} {rate:9,.0f} lists a second")
    return int(is_too_slow)


if __name__ == "__main__":
    raise SystemExit(main())
