"""Labels from people, models and clicks: collection, quality, sampling, and aggregation to qrels."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.labels.assignment": ("assign_tasks", "LabelStatus", "status"),
        "judged.labels.calibration": ("Calibration", "calibrate"),
        "judged.labels.collection": ("Collection", "check_collection"),
        "judged.labels.consensus": ("qrels_of",),
        "judged.labels.deciding": ("Decision", "decide"),
        "judged.labels.estimation": ("Estimates", "estimate"),
        "judged.labels.exchange": ("import_labels", "read_labels", "write_labels"),
        "judged.labels.labels": ("Labels", "SCALES", "Grade"),
        "judged.labels.pooling": ("Pool", "pool"),
        "judged.labels.store": ("LabelStore", "JudgingTask", "NewTask"),
        "judged.labels.topic_choice": ("ChosenTopics", "choose_topics"),
        "judged.labels.trust": ("JudgeQuality", "LabelQuality", "quality"),
    },
)
