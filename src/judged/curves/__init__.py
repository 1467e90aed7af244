"""Curves: a measure by its cutoff, and precision by recall, as numbers, text and charts."""

from judged.curves.curves import Curves
from judged.curves.making import at_cutoffs, curve, curve_of_scores, precision_recall
from judged.curves.points import Kind

__all__ = ["Curves", "Kind", "at_cutoffs", "curve", "curve_of_scores", "precision_recall"]
