"""Logs that are made up: every assumption is visible, and what is true of them is known exactly."""

from judged.online.simulating.expecting import population, why_not_closed
from judged.online.simulating.models import Cascade, Dbn, PositionBased
from judged.online.simulating.plan import (
    Arm,
    Bots,
    Broken,
    Collection,
    Drift,
    OnThePage,
    SimulationPlan,
    Users,
    Visits,
)
from judged.online.simulating.simulated import SimulatedLog, simulate
from judged.online.simulating.truth import PopulationValue, Ratio, Truth

__all__ = [
    "Arm",
    "Bots",
    "Broken",
    "Cascade",
    "Collection",
    "Dbn",
    "Drift",
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
