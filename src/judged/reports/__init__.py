"""One report out of everything: what was evaluated, what is best, where it fails, and how that was computed."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__, {"judged.reports.answer": ("Report",), "judged.reports.build": ("report",)}
)
