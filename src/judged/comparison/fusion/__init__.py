"""Fusion: one list of several, and which weights their lists deserve."""

from judged.comparison.fusion.fuse import ALGORITHMS, NORMALISATIONS, fuse
from judged.comparison.fusion.weights import FusionWeights, choose_weights

__all__ = ["ALGORITHMS", "NORMALISATIONS", "FusionWeights", "choose_weights", "fuse"]
