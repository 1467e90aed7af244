"""Fusion of several runs into one, and selection of fusion weights."""

from judged.comparison.fusion.fuse import ALGORITHMS, NORMALIZATIONS, fuse
from judged.comparison.fusion.weights import FusionWeights, choose_weights

__all__ = ["ALGORITHMS", "NORMALIZATIONS", "FusionWeights", "choose_weights", "fuse"]
