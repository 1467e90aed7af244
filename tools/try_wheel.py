"""Run the demo of an installed distribution without the source tree, and request pages of its workbench.

`make wheel` and `make release` call it with the folder of the installed programs, by the Python of that folder.
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
    """Run the demo and request pages; raise an error if one fails."""
    judged = str(Path(sys.argv[1]).absolute() / "judged")
    with tempfile.TemporaryDirectory() as temporary_folder:
        subprocess.run([judged, "demo"], cwd=temporary_folder, check=True, stdout=subprocess.DEVNULL, timeout=120)
        if importlib.util.find_spec("fastapi") is None:
            return
        with subprocess.Popen(
            [judged, "serve", "--port", "0"], cwd=temporary_folder, stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                output_lines = iter(server.stdout or ())
                address = next(match[1] for line in output_lines if (match := _ADDRESS.search(line)))
                for path in ("", "static/workbench.css", "evaluator", "api/v1/measures"):
                    with urlopen(address + path, timeout=60) as page:  # noqa: S310 - our own server
                        size = len(page.read())
                    print(f"{page.status} {size:>7,} bytes  /{path}")
            finally:
                server.terminate()
                server.wait(60)


if __name__ == "__main__":
    main()
