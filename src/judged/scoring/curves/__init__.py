"""Curves: a measure by its cutoff, and precision by recall."""

from judged.scoring.curves.answer import Curves
from judged.scoring.curves.curve import at_cutoffs, curve, curve_of_scores, precision_recall

__all__ = ["Curves", "at_cutoffs", "curve", "curve_of_scores", "precision_recall"]
