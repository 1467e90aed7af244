"""Agents that search several times for one question: trajectories, their measures, and where evidence is lost."""

from judged.pipelines.trajectories.evaluation import evaluate
from judged.pipelines.trajectories.trajectories import Trajectories, write_trajectories
from judged.pipelines.trajectories.where import EvidenceLoss, where

__all__ = ["EvidenceLoss", "Trajectories", "evaluate", "where", "write_trajectories"]
