"""Install each extra into a folder of its own, and write docs/install.md's tables: what comes along, and how big it is.

Sizes depend on platform and day, so that nothing holds the page to them; `tests/docs/test_install.py` holds it to the
names of the requirements in pyproject.toml. It takes some minutes, and needs pip and a package index.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path

from tabled import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "install.md"
_TABLES = re.compile(r"(?<=<!-- made by tools/install_sizes.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def main() -> None:
    """Install, measure and write."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = installed("")
    rows = [_row(name, *about) for name, about in sorted(base.items(), key=lambda item: -item[1][1])]
    where = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    parts = [
        f"Measured {datetime.now(tz=UTC).date()}, {where}, unpacked and without compiled bytecode.",
        "The base install:",
        markdown_table(("package", "version", "MB"), [*rows, _row("all", "", sum(size for _, size in base.values()))]),
        "What each extra adds to it:",
    ]
    rows = []
    for extra in project["optional-dependencies"]:
        more = {name: about for name, about in installed(f"[{extra}]").items() if name not in base}
        brought = sorted(more, key=lambda name: -more[name][1])
        names = "all of these" if extra == "all" else ", ".join(brought)
        rows.append((f"`{extra}`", f"{sum(size for _, size in more.values()):.1f}", names))
    parts.append(markdown_table(("extra", "MB", "packages, biggest first"), rows))
    made = "\n\n" + "\n\n".join(parts) + "\n\n"
    PAGE.write_text(_TABLES.sub(lambda _: made, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def installed(extra: str) -> dict[str, tuple[str, float]]:
    """Install judged with an extra; give version and MB of each package that is then there."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder]
        subprocess.run([*pip, f"{ROOT}{extra}"], check=True)
        return {_name(found): (found.version, _megabytes(found)) for found in distributions(path=[folder])}


def _name(found: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()


def _megabytes(found: Distribution) -> float:
    return sum(file.size or 0 for file in found.files or ()) / 1e6


def _row(name: str, version: str, size: float) -> tuple[str, str, str]:
    return name, version, f"{size:.1f}"


if __name__ == "__main__":
    main()
