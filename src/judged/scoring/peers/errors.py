"""What ends the command, and with which exit code."""

from __future__ import annotations

from judged.errors import JudgedError

USAGE = 1
"""Wrong options, or a measure that does not exist."""
INPUT = 2
"""A file that cannot be read, or parameters that make no sense."""
CALCULATION = 4
"""A measure cannot be computed on this input."""
NO_TOPICS = 7
"""Nothing to evaluate."""
ZSCORES = 255
"""The file of means cannot be read."""


class TrecEvalError(JudgedError):
    """The command ends with this message and exit code, after what was printed so far."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)
