"""Simulated logs with explicit assumptions and known true values."""

from judged.online.simulation.clicks import Cascade, Dbn, PositionBased
from judged.online.simulation.plan import (
    Bots,
    Drift,
    LogDamage,
    PageBehavior,
    SimulatedArm,
    SimulatedCollection,
    SimulatedInterleaving,
    SimulationPlan,
    Users,
    Visits,
)
from judged.online.simulation.simulated import SimulatedLog, simulate
from judged.online.simulation.truth import PopulationValue, Ratio, Truth, closed_form_obstacles, population

__all__ = [
    "Bots",
    "Cascade",
    "Dbn",
    "Drift",
    "LogDamage",
    "PageBehavior",
    "PopulationValue",
    "PositionBased",
    "Ratio",
    "SimulatedArm",
    "SimulatedCollection",
    "SimulatedInterleaving",
    "SimulatedLog",
    "SimulationPlan",
    "Truth",
    "Users",
    "Visits",
    "closed_form_obstacles",
    "population",
    "simulate",
]
