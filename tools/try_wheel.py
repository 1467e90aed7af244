"""Run what was installed, without the source tree, as users do: the demo, and pages of the workbench if it is there.

It is called with the folder of the programs, by the Python of that folder, by `make wheel` and `make release`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

_ADDRESS = re.compile(r"open at (http://127\.0\.0\.1:\d+/)")


def main() -> None:
    """Fail where one of them does not work."""
    judged = str(Path(sys.argv[1]).absolute() / "judged")
    with tempfile.TemporaryDirectory() as elsewhere:
        subprocess.run([judged, "demo"], cwd=elsewhere, check=True, stdout=subprocess.DEVNULL, timeout=120)
        if importlib.util.find_spec("fastapi") is None:
            return
        with subprocess.Popen(
            [judged, "serve", "--port", "0"], cwd=elsewhere, stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                said = iter(server.stdout or ())
                address = next(found[1] for line in said if (found := _ADDRESS.search(line)))
                for path in ("", "static/workbench.css", "evaluator", "api/v1/measures"):
                    with urlopen(address + path, timeout=60) as page:  # noqa: S310  it is our own
                        size = len(page.read())
                    print(f"{page.status} {size:>7,} bytes  /{path}")
            finally:
                server.terminate()
                server.wait(60)


if __name__ == "__main__":
    main()
