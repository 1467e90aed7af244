# Written by tools/docs.py: names that `judged.scoring.uncertainty` exports and imports at first use.

from judged.scoring.uncertainty.pools import LeaveOneOut as LeaveOneOut
from judged.scoring.uncertainty.pools import leave_one_out as leave_one_out
from judged.scoring.uncertainty.ties import tie_expected as tie_expected
from judged.scoring.uncertainty.ties import tie_range as tie_range
from judged.scoring.uncertainty.ties import tied_share as tied_share
from judged.scoring.uncertainty.unjudged import unjudged_range as unjudged_range
