"""Compare what two versions of judged write for a list of commands, byte by byte.

    python tools/same_numbers.py ../before .

Each argument is a checkout. Every command of ``same_numbers.txt`` runs in both, in folders of the same name, on the
built-in sample and, where it is at hand, on the data in ``../shared/data``. Exit code 1 where an output differs.
"""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"


def commands() -> list[list[str]]:
    """Return the arguments of each command, with the names of folders in place of S and D."""
    lines = (ROOT / "tools" / "same_numbers.txt").read_text(encoding="utf-8").splitlines()
    found = [shlex.split(line) for line in lines if line and not line.startswith("#")]
    known = [words for words in found if DATA.is_dir() or not any(word.startswith("D/") for word in words)]
    return [[expanded(word) for word in words] for words in known]


def expanded(word: str) -> str:
    """Write ``sample`` for S and ``data`` for D, wherever a path begins."""
    return word.replace("S/", "sample/").replace("D/", "data/")


def written(checkout: Path, arguments: list[str], sample: Path) -> str:
    """Run a command in a new folder, and return its exit code, output, messages, and files."""
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "work"
        shutil.copytree(sample, folder / "sample")
        if DATA.is_dir():
            (folder / "data").symlink_to(DATA)
        before = set(folder.iterdir())
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "120", "PYTHONHASHSEED": "0"}
        names = [
            name
            for word in arguments
            for name in (sorted(str(path.relative_to(folder)) for path in (folder / word).iterdir())
                         if word.startswith("data/") and (folder / word).is_dir() else [word])
        ]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "judged", *names],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        files = "".join(
            f"\n== {path.name}\n{path.read_text(encoding='utf-8')}" for path in sorted({*folder.iterdir()} - before)
        )
    return f"exit code {done.returncode}\n{done.stdout}\n== messages\n{done.stderr}{files}".replace(base, "")


def main(before: str, after: str) -> int:
    """Run every command in both checkouts, and print what differs."""
    wrong = 0
    with tempfile.TemporaryDirectory() as base, ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        sample = Path(base) / "sample"
        environment = {**os.environ, "PYTHONPATH": str(Path(before).resolve() / "src")}
        subprocess.run([sys.executable, "-m", "judged", "demo", "--to", str(sample)], env=environment, check=True,
                       capture_output=True)  # fmt: skip
        listed = commands()
        pairs = [
            [pool.submit(written, Path(path).resolve(), words, sample) for path in (before, after)] for words in listed
        ]
        for words, (first, second) in zip(listed, pairs, strict=True):
            old, new = first.result(), second.result()
            code = old.partition("\n")[0]
            print(
                f"{'same' if old == new else 'DIFFERENT':9} {code}, {len(old):7} characters: {shlex.join(words)[:90]}"
            )
            if old != new:
                wrong += 1
                lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", "", "", 0, "")
                print("\n".join("    " + line[:160] for line, _ in zip(lines, range(20), strict=False)))
    print(f"{len(listed)} commands, {wrong} different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
