"""Simulations with known truth: error rates of tests, and coverage of intervals.

Each module is a table of docs/calibration.md: its docstring explains the rates, and `measure` computes them.
The tests run smaller versions of the simulations.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CoverageCell:
    """One cell of a table: the share of trials with some outcome."""

    method: str
    situation: str
    n: int
    rate: float
    trials: int
