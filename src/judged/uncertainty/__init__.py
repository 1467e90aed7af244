"""How far a score could move: ties, unjudged documents, pools."""

from judged.uncertainty.range import Range
from judged.uncertainty.ties import Expected, TiedShare, tie_expected, tie_range, tied_share

__all__ = ["Expected", "Range", "TiedShare", "tie_expected", "tie_range", "tied_share"]
