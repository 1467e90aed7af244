"""Build the wheel and the source distribution, check them, and run both with each Python of this machine.

`make release` calls it. It fails if `twine check` fails, the wheel is too large, or an installed distribution does not
run. It lists the missing versions of Python. It uploads nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = ROOT / "build" / "release"
LARGEST_WHEEL = 3_250_000  # bytes: two thirds are Python sources, a quarter is the sample


def main() -> int:
    """Build, check, and run the distributions; return 1 if a step fails."""
    shutil.rmtree(BUILT, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(BUILT), str(ROOT))
    (wheel,), (source_archive,) = BUILT.glob("*.whl"), BUILT.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source_archive))
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes; {source_archive.name}: {source_archive.stat().st_size:,} bytes", flush=True)
    if size > LARGEST_WHEEL:
        print(f"The wheel has {size:,} bytes: expected at most {LARGEST_WHEEL:,}.")
        return 1
    pythons = {version: python_of(version) for version in versions()}
    for version, python in pythons.items():
        for distribution, extra in ((wheel, "[web]"), (source_archive, "")) if python else ():
            print(f"Python {version}, {distribution.name}{extra}", flush=True)
            run_installed(python, f"{distribution}{extra}")
    for title, is_available in (("tested", True), ("not available", False)):
        print(
            f"{title}:", ", ".join(version for version in pythons if bool(pythons[version]) is is_available) or "none"
        )
    return 0 if any(pythons.values()) else 1


def versions() -> list[str]:
    """Return the supported versions of Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [match[1] for line in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", line))]


def python_of(version: str) -> str:
    """Find an interpreter on the path or in pyenv, or return an empty string."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for python in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        check_command = [str(python), "-c", "import ensurepip, venv"]  # a pyenv shim may have no interpreter
        if python and subprocess.run(check_command, capture_output=True, check=False).returncode == 0:
            return str(python)
    return ""


def run_installed(python: str, requirement: str) -> None:
    """Install a distribution into a new environment, and run it."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        programs = Path(folder) / "bin"
        run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)
        run(str(programs / "python"), str(ROOT / "tools" / "try_wheel.py"), str(programs))


def run(*command: str) -> None:
    """Run a program, and exit if it fails."""
    if exit_code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"{' '.join(command)}: exit code {exit_code}")


if __name__ == "__main__":
    sys.exit(main())
