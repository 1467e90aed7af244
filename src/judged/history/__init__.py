"""Evaluations over time: a store, changes of scores, and where they began."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    "judged.history",
    {
        "judged.history.store": ("HistoryStore", "StoredEvaluation"),
        "judged.history.history": ("ChangeLocation", "ScoreHistory", "bisect", "compare", "show"),
    },
)
