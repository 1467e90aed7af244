"""A PostgreSQL server in a temporary folder, as long as a test needs one."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def there() -> bool:
    """Say whether a server can be started."""
    return bool(_BIN) and shutil.which("psql") is not None


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Start a server that listens on a socket only, and give how it is reached."""
    data, user = folder / "data", "judged"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    if getpass.getuser() == "root":  # the server refuses to run as root
        run: list[str] = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    else:
        run = []
    tool = _BIN[-1]

    def do(command: list[str]) -> None:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    make = [*run, str(tool / "initdb"), "-D", str(data), "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync"]
    do(make)
    control = [*run, str(tool / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    do([*control, "-o", options, "-l", str(folder / "log"), "start"])
    try:
        yield f"host={folder} user={user} dbname=postgres"
    finally:
        do([*control, "-m", "immediate", "stop"])
