# Written by tools/docs.py: what `judged.uncertainty` exports; it is imported at its first use.

from judged.uncertainty.pools import LeaveOneOut as LeaveOneOut
from judged.uncertainty.pools import leave_one_out as leave_one_out
from judged.uncertainty.ties import tie_expected as tie_expected
from judged.uncertainty.ties import tie_range as tie_range
from judged.uncertainty.ties import tied_share as tied_share
from judged.uncertainty.unjudged import unjudged_range as unjudged_range
