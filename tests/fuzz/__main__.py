"""``python -m fuzz CASES [--first SEED]``, or ``--seed SEED`` for one of them again, with its traceback."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz.workers import OF, run_all, save


def main() -> int:
    """Run cases, print what became of them, and keep the files of those that went wrong."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=10_000)
    parser.add_argument("--of", choices=OF, default="files", help="What is read: files, or interaction logs.")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--seed", type=int, help="Run this case alone, here, and show its traceback.")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--failures", type=int, default=50, help="Stop after so many.")
    parser.add_argument(
        "--save", type=Path, default=Path(tempfile.gettempdir()) / "judged-fuzz", help="Where to keep files."
    )
    given = parser.parse_args()
    if given.seed is not None:
        [(reader, path)] = save([given.seed], given.save, given.of)
        print(path)
        print(reader.read(path))
        return 0
    started = time.monotonic()
    report = run_all(iter(range(given.first, given.first + given.cases)), given.processes, given.failures, of=given.of)
    for seed, name, why in sorted(report.failures):
        print(f"seed {seed}, {name}: {why}")
    if report.failures:
        save([seed for seed, _, _ in report.failures], given.save, given.of)
        print(f"their files are in {given.save}")
    print(report.text())
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
