"""Agents that search several times for one question: trajectories, their measures, and where evidence is lost."""

from judged.pipelines.trajectories.checking import TrajectoriesCheck, check_trajectories
from judged.pipelines.trajectories.confidence import StatedConfidence, confidence
from judged.pipelines.trajectories.conversations import Conversations, conversations
from judged.pipelines.trajectories.evaluation import evaluate
from judged.pipelines.trajectories.plan import TrialPlan, plan
from judged.pipelines.trajectories.reading import read_trajectories
from judged.pipelines.trajectories.recorder import TrajectoryRecorder
from judged.pipelines.trajectories.timeline import Timeline, explain
from judged.pipelines.trajectories.trajectories import Trajectories, write_trajectories
from judged.pipelines.trajectories.where import EvidenceLoss, where

__all__ = [
    "Conversations",
    "EvidenceLoss",
    "StatedConfidence",
    "Timeline",
    "Trajectories",
    "TrajectoriesCheck",
    "TrajectoryRecorder",
    "TrialPlan",
    "check_trajectories",
    "confidence",
    "conversations",
    "evaluate",
    "explain",
    "plan",
    "read_trajectories",
    "where",
    "write_trajectories",
]
