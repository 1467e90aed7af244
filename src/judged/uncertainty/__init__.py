"""How far a score could move: ties, unjudged documents, pools."""

from judged.uncertainty.pools import LeaveOneOut, LeftOut, leave_one_out
from judged.uncertainty.range import Range
from judged.uncertainty.ties import Expected, TiedShare, tie_expected, tie_range, tied_share
from judged.uncertainty.unjudged import unjudged_range

__all__ = [
    "Expected",
    "LeaveOneOut",
    "LeftOut",
    "Range",
    "TiedShare",
    "leave_one_out",
    "tie_expected",
    "tie_range",
    "tied_share",
    "unjudged_range",
]
