"""Agents that search several times for one question: trajectories, their measures, and where evidence is lost."""

from judged.pipelines.trajectories.evaluation import evaluate
from judged.pipelines.trajectories.trajectories import Trajectories, write_trajectories

__all__ = ["Trajectories", "evaluate", "write_trajectories"]
