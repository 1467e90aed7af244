"""Models as judges: requests, their cost, replies, and invalid replies."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.labels.asking.asking": ("AskResult", "ask"),
        "judged.labels.asking.client": ("Endpoint",),
        "judged.labels.asking.prompts": ("injection_signs", "expected_grade", "expected_grades"),
        "judged.labels.asking.questions": (
            "ModelPreferences",
            "ask_preferences",
            "prepare_preferences",
            "Questions",
            "ask_questions",
            "prepare_questions",
        ),
        "judged.labels.asking.preparation": ("Prepared", "prepare"),
    },
)
