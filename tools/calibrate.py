"""Write the tables of docs/calibration.md by simulation: all, or the named ones.

``python tools/calibrate.py [--trials N] [NAME ...]``; with 2000 trials per cell, as committed, some minutes per table
on one core. Names are the modules of tools/calibration. Only the text between the markers of a table is replaced.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import calibration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibration import CoverageCell

PAGE = Path(__file__).resolve().parents[1] / "docs" / "calibration.md"
NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules(calibration.__path__)))


def main() -> None:
    """Run the selected simulations, two at a time, and write their tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--trials", type=int, default=2000)
    options = parser.parse_args()
    names = options.names or NAMES
    with ProcessPoolExecutor(2) as pool:
        futures = [pool.submit(table, name, options.trials) for name in names]
        for name, future in zip(names, futures, strict=True):
            replace_table(name, future.result())


def table(name: str, trials: int) -> str:
    """Run one simulation and format it: one row per method and situation, one column per number of topics."""
    module = importlib.import_module(f"calibration.{name}")
    cells: Sequence[CoverageCell] = tuple(module.measure(trials))
    sizes = sorted({cell.n for cell in cells})
    rates = {(cell.method, cell.situation, cell.n): cell.rate for cell in cells}
    lines = [
        f"{inspect.getdoc(module)}\n",
        "| method | situation | " + " | ".join(f"n={size}" for size in sizes) + " |",
        "| :-- | :-- | " + " | ".join("--:" for _ in sizes) + " |",
    ]
    for method, situation in dict.fromkeys((cell.method, cell.situation) for cell in cells):
        cell_rates = (rates.get((method, situation, size)) for size in sizes)
        values = " | ".join("" if rate is None else f"{100 * rate:.1f}%" for rate in cell_rates)
        lines.append(f"| {method} | {situation} | {values} |")
    return "\n".join(lines) + f"\n\n{max(cell.trials for cell in cells):,} trials per cell.\n"


def replace_table(name: str, text: str) -> None:
    """Replace the text between the markers of a table."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    page = PAGE.read_text()
    if start not in page:
        page = f"{page.rstrip()}\n\n## {name}\n\n{start}{end}\n"
    between = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    PAGE.write_text(between.sub(lambda _: f"{start}{text}{end}", page))


if __name__ == "__main__":
    main()
