"""Compare the output of two versions of judged for a list of commands, byte by byte.

    python tools/same_numbers.py ../before .

Each argument is a checkout. Every command of ``same_numbers.txt`` runs in both, in folders with the same name, on the
built-in sample and, if available, on the data in ``../shared/data``. The exit code is 1 if an output differs.
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
    """Return the arguments of each command, with S and D replaced by folder names."""
    lines = (ROOT / "tools" / "same_numbers.txt").read_text(encoding="utf-8").splitlines()
    all_commands = [shlex.split(line) for line in lines if line and not line.startswith("#")]
    available = [words for words in all_commands if DATA.is_dir() or not any(word.startswith("D/") for word in words)]
    return [[expand_folder(word) for word in words] for words in available]


def expand_folder(word: str) -> str:
    """Replace S by ``sample`` and D by ``data`` at the beginning of paths."""
    return word.replace("S/", "sample/").replace("D/", "data/")


def command_output(checkout: Path, arguments: list[str], sample: Path) -> str:
    """Run a command in a new folder, and return its exit code, output, messages, and files."""
    with tempfile.TemporaryDirectory() as temporary_folder:
        folder = Path(temporary_folder) / "work"
        shutil.copytree(sample, folder / "sample")
        if DATA.is_dir():
            (folder / "data").symlink_to(DATA)
        initial_files = set(folder.iterdir())
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "120", "PYTHONHASHSEED": "0"}
        names = [
            name
            for word in arguments
            for name in (sorted(str(path.relative_to(folder)) for path in (folder / word).iterdir())
                         if word.startswith("data/") and (folder / word).is_dir() else [word])
        ]  # fmt: skip
        completed = subprocess.run(
            [sys.executable, "-m", "judged", *names],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        files = "".join(
            f"\n== {path.name}\n{path.read_text(encoding='utf-8')}"
            for path in sorted({*folder.iterdir()} - initial_files)
        )
    return f"exit code {completed.returncode}\n{completed.stdout}\n== messages\n{completed.stderr}{files}".replace(
        temporary_folder, ""
    )


def main(before: str, after: str) -> int:
    """Run every command in both checkouts, and print the differences."""
    n_different = 0
    with tempfile.TemporaryDirectory() as temporary_folder, ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        sample = Path(temporary_folder) / "sample"
        environment = {**os.environ, "PYTHONPATH": str(Path(before).resolve() / "src")}
        subprocess.run([sys.executable, "-m", "judged", "demo", "--to", str(sample)], env=environment, check=True,
                       capture_output=True)  # fmt: skip
        command_list = commands()
        pairs = [
            [pool.submit(command_output, Path(path).resolve(), words, sample) for path in (before, after)]
            for words in command_list
        ]
        for words, (first, second) in zip(command_list, pairs, strict=True):
            old, new = first.result(), second.result()
            code = old.partition("\n")[0]
            print(
                f"{'same' if old == new else 'DIFFERENT':9} {code}, {len(old):7} characters: {shlex.join(words)[:90]}"
            )
            if old != new:
                n_different += 1
                lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", "", "", 0, "")
                print("\n".join("    " + line[:160] for line, _ in zip(lines, range(20), strict=False)))
    print(f"{len(command_list)} commands, {n_different} different")
    return 1 if n_different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
