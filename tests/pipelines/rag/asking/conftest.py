"""The command line as a function, as the tests of commands have it."""

from cli.conftest import run

__all__ = ["run"]
