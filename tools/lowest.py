"""Write the lowest allowed version of every dependency in pyproject.toml, with extras, as requirements for pip.

`make lowest` installs them and runs some tests, because untested lower bounds become wrong.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_LOWEST = re.compile(r"^(?P<name>[\w.-]+(\[[\w,-]+\])?)>=(?P<version>[\w.]+)")


def pinned(requirement: str) -> str:
    """Pin a requirement to its lowest version. A requirement without a lower bound is unchanged.

    >>> pinned("duckdb>=1.1,<2"), pinned("uvloop>=0.19; sys_platform != 'win32'"), pinned("sqlglot<30")
    ('duckdb==1.1', "uvloop==0.19; sys_platform != 'win32'", 'sqlglot<30')
    """
    bounds, semicolon, marker = requirement.partition(";")
    match = _LOWEST.match(bounds)
    return requirement if match is None else f"{match['name']}=={match['version']}{semicolon}{marker}"


def main() -> None:
    """Print the requirements."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [extra_requirement for extra in project["optional-dependencies"].values() for extra_requirement in extra]
    for requirement in sorted({*project["dependencies"], *extras}):
        if not requirement.startswith("judged["):
            print(pinned(requirement))


if __name__ == "__main__":
    main()
