"""Reports: what was evaluated, which run is best, where it fails, and how the numbers were computed."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__, {"judged.reports.answer": ("Report",), "judged.reports.build": ("report",)}
)
