"""The look of every chart, its axes, and how it becomes a picture or a file."""

from judged.charts.look import (
    DASHES,
    FONT,
    PALETTE,
    Scale,
    altair,
    apart,
    axis_of,
    by_cutoff,
    cut,
    even,
    round_of,
    themed,
)
from judged.charts.pictures import PICTURES, library, picture, resource, save_chart, specification

__all__ = [
    "DASHES",
    "FONT",
    "PALETTE",
    "PICTURES",
    "Scale",
    "altair",
    "apart",
    "axis_of",
    "by_cutoff",
    "cut",
    "even",
    "library",
    "picture",
    "resource",
    "round_of",
    "save_chart",
    "specification",
    "themed",
]
