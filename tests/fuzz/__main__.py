"""Run fuzz cases: ``python -m fuzz CASES [--of KIND] [--first SEED]``; ``--seed SEED`` repeats one with its traceback.

Without a kind, the cases are split over all kinds of files by the number of their readers, with an additional tenth of
commands. The seed identifies a case of a kind.
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
    """Run cases, print their outcomes, and save the files of failures."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("cases", type=int, nargs="?", default=10_000)
    parser.add_argument("--of", choices=OF, help="Kind of files, or commands (default: all).")
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--seed", type=int, help="Run only this case, in this process, with its traceback.")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--failures", type=int, default=50, help="Stop after this number of failures.")
    parser.add_argument(
        "--save", type=Path, default=Path(tempfile.gettempdir()) / "judged-fuzz", help="Folder for files of failures."
    )
    options = parser.parse_args()
    if options.seed is not None:
        [(reader, path)] = save([options.seed], options.save, options.of or "files")
        print(path)
        print(reader.read(path))
        return 0
    started, failures = time.monotonic(), 0
    for kind, cases in ({options.of: options.cases} if options.of else split_cases(options.cases)).items():
        seeds = iter(range(options.first, options.first + cases))
        report = run_all(seeds, options.processes, options.failures - failures, of=kind)
        for seed, name, reason in sorted(report.failures):
            print(f'seed {seed} of {kind}, {name}: {reason}\nagain: make fuzz N="--of {kind} --seed {seed}"')
        if report.failures:
            save([seed for seed, _, _ in report.failures], options.save / kind, kind)
            print(f"their files are in {options.save / kind}")
        print(f"{kind}:\n{report.text()}\n{time.monotonic() - started:.0f} s", flush=True)
        failures += len(report.failures)
        if failures >= options.failures:
            break
    return 1 if failures else 0


def split_cases(cases: int) -> dict[str, int]:
    """Split cases over the readers of files, and add commands."""
    shares_by_kind = {kind: target.share for kind, target in OF.items() if kind != "commands"}
    split = {kind: round(cases * share / sum(shares_by_kind.values())) for kind, share in shares_by_kind.items()}
    return split | {"commands": cases // 10}


if __name__ == "__main__":
    sys.exit(main())
