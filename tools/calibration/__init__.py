"""Simulations with known truth: how often a test of judged is wrong, and how often an interval holds what it should.

Each module is one table of docs/calibration.md: its docstring says what the rates mean, and `measure` makes them.
The tests run the same simulations, smaller.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """One cell of a table: in how many of so many trials something happened."""

    method: str
    situation: str
    n: int
    rate: float
    trials: int
