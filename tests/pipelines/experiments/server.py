"""A PostgreSQL server in a temporary folder, for the duration of a test."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def can_start_postgresql() -> bool:
    """Return whether a server can be started."""
    return bool(_BIN) and shutil.which("psql") is not None


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Start a server that listens on a socket only, and yield its connection string."""
    data, user = folder / "data", "judged"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    if getpass.getuser() == "root":  # the server refuses to run as root
        as_postgres: list[str] = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")
    else:
        as_postgres = []
    binaries = _BIN[-1]

    def execute(command: list[str]) -> None:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    initialize = [
        *as_postgres,
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        user,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--no-sync",
    ]
    execute(initialize)
    control = [*as_postgres, str(binaries / "pg_ctl"), "-D", str(data), "-w"]
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    execute([*control, "-o", options, "-l", str(folder / "log"), "start"])
    try:
        yield f"host={folder} user={user} dbname=postgres"
    finally:
        execute([*control, "-m", "immediate", "stop"])
