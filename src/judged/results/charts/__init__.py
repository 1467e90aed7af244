"""The look of every chart, its axes, and how it becomes a picture or a file."""

from judged.results.charts.look import (
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
from judged.results.charts.pictures import PICTURES, picture, resource, save_chart, specification
from judged.results.charts.vega import library, packed_library

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
    "packed_library",
    "picture",
    "resource",
    "round_of",
    "save_chart",
    "specification",
    "themed",
]
