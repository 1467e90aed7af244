"""Errors that say where in the configuration something stands."""

from __future__ import annotations

from judged.errors import InputError


class Wrong:
    """Makes errors about one part of a configuration.

    >>> str(Wrong("[[check]] 1", "gate.toml", 5)("no slice 'od'", "write odd"))
    "gate.toml:5: [[check]] 1: no slice 'od'. Fix: write odd."
    """

    def __init__(self, part: str, path: str, line: int | None) -> None:
        self._part, self._path, self._line = part, path, line

    def __call__(self, problem: str, fix: str) -> InputError:
        """Make one, which the caller raises."""
        line = self._line if self._path else None
        return InputError(f"{self._part}: {problem}", fix=fix, path=self._path, line=line)
