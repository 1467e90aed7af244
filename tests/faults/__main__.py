"""Kill and interrupt commands that write, run them on full disks and side by side, and print the outcomes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from faults import writers
from faults.commands import COMMANDS, Command, write_inputs
from faults.disks import fill_target, fill_temporary, rooms
from faults.processes import measure
from faults.signals import NAMES, TOO_LATE, send

_TEMPORARY = (0, 4096, 65536)  # bytes of room


@dataclass
class Row:
    """Outcomes of one command."""

    name: str
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, column: str, outcome: str, wrong: list[str]) -> None:
        self.counts.setdefault(column, Counter())[outcome] += 1
        self.wrong += wrong

    def text(self) -> str:
        """Format it as a line of the table."""
        cells = (
            f"{column} {sum(counts.values())}: " + ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
            for column, counts in self.counts.items()
        )
        return f"{self.name:32} " + " | ".join(cells) + (f" | {len(self.wrong)} WRONG" if self.wrong else "")


def examine(command: Command, inputs: Path, place: Path, options: argparse.Namespace) -> Row:
    """Run one command with all requested signals and full disks."""
    row, chance = Row(command.name), Random(f"{options.seed} {command.name}")
    begun = time.monotonic()
    numbers = {signal.SIGKILL: options.kills, signal.SIGINT: options.interrupts, signal.SIGTERM: options.terminations}
    try:
        measured = {start: measure(command, start, inputs, place) for start in command.starts}
    except ValueError as error:
        row.wrong.append(f"undisturbed: {error}")
        return row
    for number, count in numbers.items():
        sent, tries, scale = 0, 0, 1.0
        while sent < count and tries < 3 * count:
            start = command.starts[tries % len(command.starts)]
            outcome, wrong = send(command, start, measured[start].scaled(scale), inputs, place, number, chance)
            if outcome == TOO_LATE:
                row.wrong += wrong
            else:
                row.add(NAMES[number], outcome, wrong)
            sent, tries = sent + (outcome != TOO_LATE), tries + 1
            # Other programs may have slowed the command while it was measured.
            scale = 0.8 * scale if outcome == TOO_LATE else min(1.0, 1.2 * scale)
    for start in command.starts if options.disks else ():
        for room in rooms(measured[start]):
            row.add("full target", *fill_target(command, start, measured[start], inputs, place, room))
        for room in _TEMPORARY:
            row.add("full TMPDIR", *fill_temporary(command, start, measured[start], inputs, place, room))
    print(f"{row.text()} ({time.monotonic() - begun:.0f} s)", flush=True)
    for text in row.wrong:
        print(f"    {text}", flush=True)
    return row


def main() -> int:
    """Examine all commands, and return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--only", nargs="*", help="Names of commands.  [default: all]")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--terminations", type=int, default=10)
    parser.add_argument("--disks", action=argparse.BooleanOptionalAction, default=os.geteuid() == 0)
    parser.add_argument("--rounds", type=int, default=4, help="How often writers run side by side.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs in the background ignore it
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="judged-faults-", ignore_cleanup_errors=True) as folder:
        inputs = Path(folder) / "inputs"
        inputs.mkdir()
        write_inputs(inputs)
        writers.write_inputs(inputs)
        selected = [command for command in COMMANDS if options.only is None or command.name in options.only]
        with ThreadPoolExecutor(options.processes) as pool:
            rows = list(pool.map(lambda command: examine(command, inputs, Path(folder), options), selected))
        for name in writers.GROUPS:
            row = Row(f"{writers.WRITERS} x {name}")
            for _ in range(options.rounds if options.only is None or f"writers {name}" in options.only else 0):
                counts, wrong = writers.write_at_once(name, inputs, Path(folder))
                row.wrong += wrong
                for code, n in counts.items():
                    row.counts.setdefault("exit", Counter())[code] += n
            rows += [row] if row.counts else []
    print("\n" + "\n".join(row.text() for row in rows))
    totals: dict[str, Counter[str]] = {}
    for row in rows:
        for column, counts in row.counts.items():
            totals.setdefault(column, Counter()).update(counts)
    total = Row("all", totals)
    wrong = [f"{row.name}: {text}" for row in rows for text in row.wrong]
    print("\n".join(["", total.text(), f"{time.monotonic() - begun:.0f} s, {len(wrong)} wrong", *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
