"""Build wheel and source distribution, check them, and try both on every Python that is on this machine.

`make release` calls it. It fails where `twine check` complains, where the wheel is too big, and where an installed
distribution does not run; it says which versions of Python it could not find. Nothing is uploaded.
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
LARGEST_WHEEL = 2_500_000  # bytes


def main() -> int:
    """Build, check and try; exit code 1 where something is wrong."""
    shutil.rmtree(BUILT, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(BUILT), str(ROOT))
    (wheel,), (source,) = BUILT.glob("*.whl"), BUILT.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source))
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes; {source.name}: {source.stat().st_size:,} bytes", flush=True)
    if size > LARGEST_WHEEL:
        print(f"the wheel is over {LARGEST_WHEEL:,} bytes")
        return 1
    pythons = {version: python_of(version) for version in versions()}
    for version, python in pythons.items():
        for built, extra in ((wheel, "[web]"), (source, "")) if python else ():
            print(f"Python {version}, {built.name}{extra}", flush=True)
            try_out(python, f"{built}{extra}")
    for title, tried in (("tried", True), ("not on this machine", False)):
        print(f"{title}:", ", ".join(version for version in pythons if bool(pythons[version]) is tried) or "none")
    return 0 if any(pythons.values()) else 1


def versions() -> list[str]:
    """Give the versions of Python that the package says it runs on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [found[1] for line in project["classifiers"] if (found := re.search(r":: (3\.\d+)$", line))]


def python_of(version: str) -> str:
    """Find an interpreter on the path or among pyenv's, or nothing."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for python in (shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        asked = [str(python), "-c", "import ensurepip, venv"]  # a shim of pyenv's may stand for nothing
        if python and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return str(python)
    return ""


def try_out(python: str, requirement: str) -> None:
    """Install a distribution into an environment of its own, and run it there."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "venv", folder)
        programs = Path(folder) / "bin"
        run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement)
        run(str(programs / "python"), str(ROOT / "tools" / "try_wheel.py"), str(programs))


def run(*command: str) -> None:
    """Run a program, and end where it fails."""
    if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"{' '.join(command)}: ended with {code}")


if __name__ == "__main__":
    sys.exit(main())
