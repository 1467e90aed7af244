"""``python -m fuzz CASES [--of KIND] [--first SEED]``, or ``--seed SEED`` for one of them again, with its traceback.

Without a kind, the cases are split over all kinds of files by the number of their readers, and a tenth as many commands
are run. A case of a kind is known by its seed.
"""

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
    parser.add_argument("--of", choices=OF, help="What is read, or run. By default all readers, and commands.")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--seed", type=int, help="Run this case alone, here, and show its traceback.")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--failures", type=int, default=50, help="Stop after so many.")
    parser.add_argument(
        "--save", type=Path, default=Path(tempfile.gettempdir()) / "judged-fuzz", help="Where to keep files."
    )
    given = parser.parse_args()
    if given.seed is not None:
        [(reader, path)] = save([given.seed], given.save, given.of or "files")
        print(path)
        print(reader.read(path))
        return 0
    started, failures = time.monotonic(), 0
    for of, cases in ({given.of: given.cases} if given.of else shares(given.cases)).items():
        seeds = iter(range(given.first, given.first + cases))
        report = run_all(seeds, given.processes, given.failures - failures, of=of)
        for seed, name, why in sorted(report.failures):
            print(f'seed {seed} of {of}, {name}: {why}\nagain: make fuzz N="--of {of} --seed {seed}"')
        if report.failures:
            save([seed for seed, _, _ in report.failures], given.save / of, of)
            print(f"their files are in {given.save / of}")
        print(f"{of}:\n{report.text()}\n{time.monotonic() - started:.0f} s", flush=True)
        failures += len(report.failures)
        if failures >= given.failures:
            break
    return 1 if failures else 0


def shares(cases: int) -> dict[str, int]:
    """Split cases over the readers of files, and add commands."""
    known = {of: each.share for of, each in OF.items() if of != "commands"}
    split = {of: round(cases * share / sum(known.values())) for of, share in known.items()}
    return split | {"commands": cases // 10}


if __name__ == "__main__":
    sys.exit(main())
