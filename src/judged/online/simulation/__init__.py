"""Logs that are made up: every assumption is visible, and what is true of them is known exactly."""

from judged.online.simulation.clicks import Cascade, Dbn, PositionBased
from judged.online.simulation.plan import (
    Arm,
    Bots,
    Broken,
    Collection,
    Drift,
    Interleaving,
    OnThePage,
    SimulationPlan,
    Users,
    Visits,
)
from judged.online.simulation.simulated import SimulatedLog, simulate
from judged.online.simulation.truth import PopulationValue, Ratio, Truth, population, why_not_closed

__all__ = [
    "Arm",
    "Bots",
    "Broken",
    "Cascade",
    "Collection",
    "Dbn",
    "Drift",
    "Interleaving",
    "OnThePage",
    "PopulationValue",
    "PositionBased",
    "Ratio",
    "SimulatedLog",
    "SimulationPlan",
    "Truth",
    "Users",
    "Visits",
    "population",
    "simulate",
    "why_not_closed",
]
