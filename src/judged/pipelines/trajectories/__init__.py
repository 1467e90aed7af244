"""Agents that search several times for one question: trajectories, their measures, and where evidence is lost."""

from judged.pipelines.trajectories.checking import TrajectoriesCheck, check_trajectories
from judged.pipelines.trajectories.reading import read_trajectories
from judged.pipelines.trajectories.recorder import TrajectoryRecorder
from judged.pipelines.trajectories.trajectories import Trajectories, write_trajectories

__all__ = [
    "Trajectories",
    "TrajectoriesCheck",
    "TrajectoryRecorder",
    "check_trajectories",
    "read_trajectories",
    "write_trajectories",
]
