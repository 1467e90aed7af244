"""How far a score could move: ties, unjudged documents, pools."""

from __future__ import annotations

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.scoring.uncertainty.ties": ("tie_expected", "tie_range", "tied_share"),
        "judged.scoring.uncertainty.unjudged": ("unjudged_range",),
        "judged.scoring.uncertainty.pools": ("LeaveOneOut", "leave_one_out"),
    },
)
