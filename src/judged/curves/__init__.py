"""Curves: a measure by its cutoff, and precision by recall, as numbers, text and charts."""

from judged.curves.curves import Curves
from judged.curves.making import curve, precision_recall
from judged.curves.points import Kind

__all__ = ["Curves", "Kind", "curve", "precision_recall"]
