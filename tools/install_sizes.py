"""Install each extra into a separate folder, and write the tables of package sizes in docs/install.md.

Sizes depend on platform and date, so tests do not check them; `tests/docs/test_install.py` checks the names against the
requirements in pyproject.toml. The tool needs some minutes, pip, and a package index.
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
_TABLES = re.compile(r"(?<=<!-- written by tools/install_sizes.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def main() -> None:
    """Measure the installed packages, and write the tables."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = installed("")
    rows = [
        _row(name, *version_and_size) for name, version_and_size in sorted(base.items(), key=lambda pair: -pair[1][1])
    ]
    platform_text = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    parts = [
        f"Measured {datetime.now(tz=UTC).date()}, {platform_text}, unpacked and without compiled bytecode.",
        "Base install:",
        markdown_table(("package", "version", "MB"), [*rows, _row("all", "", sum(size for _, size in base.values()))]),
        "Packages that each extra adds:",
    ]
    rows = []
    for extra, requirements in project["optional-dependencies"].items():
        added_packages = {
            name: version_and_size for name, version_and_size in installed(f"[{extra}]").items() if name not in base
        }
        added_names = sorted(added_packages, key=lambda name: -added_packages[name][1])
        required = {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements}
        names = [name for name in added_names if name in required]
        if n_dependencies := len(added_names) - len(names):
            names.append("all of these" if extra == "all" else f"{n_dependencies} more")
        rows.append((f"`{extra}`", f"{sum(size for _, size in added_packages.values()):.1f}", ", ".join(names)))
    parts.append(markdown_table(("extra", "MB", "packages"), rows))
    tables = "\n\n" + "\n\n".join(parts) + "\n\n"
    PAGE.write_text(_TABLES.sub(lambda _: tables, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def installed(extra: str) -> dict[str, tuple[str, float]]:
    """Install judged with an extra; return version and MB of each installed package."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder]
        subprocess.run([*pip, f"{ROOT}{extra}"], check=True)
        return {
            _name(distribution): (distribution.version, _megabytes(distribution))
            for distribution in distributions(path=[folder])
        }


def _name(distribution: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()


def _megabytes(distribution: Distribution) -> float:
    return sum(file.size or 0 for file in distribution.files or ()) / 1e6


def _row(name: str, version: str, size: float) -> tuple[str, str, str]:
    return name, version, f"{size:.1f}"


if __name__ == "__main__":
    main()
