"""Count how many lists of ten a second are mixed on one core: wanted are 20,000 of every method.

``python bench/mixing.py``; nothing is written, and nothing but Python is needed.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from judged.online.mixed_lists import METHODS, interleave

WANTED, LISTS = 20_000, 50_000


def main() -> int:
    """Mix two lists of ten that share six documents, each time by another key."""
    first = [f"document-{at}" for at in range(10)]
    second = [f"document-{at}" for at in range(4, 14)]
    random.Random(1).shuffle(second)  # noqa: S311 nothing is secret here
    slow = False
    for method in METHODS:
        begin = process_time()
        for at in range(LISTS):
            interleave(first, second, key=("experiment", str(at), "query"), method=method)
        rate = LISTS / (process_time() - begin)
        slow |= rate < WANTED
        print(f"{method:14} {rate:9,.0f} lists a second")
    return int(slow)


if __name__ == "__main__":
    raise SystemExit(main())
