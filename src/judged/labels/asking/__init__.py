"""Models as judges: what they are asked, what that may cost, what they answered, and what is no answer."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.labels.asking.asking": ("Asked", "ask"),
        "judged.labels.asking.client": ("Endpoint",),
        "judged.labels.asking.prompts": ("injection_signs", "expected_grade", "expected_grades"),
        "judged.labels.asking.questions": (
            "Preferences",
            "ask_preferences",
            "prepare_preferences",
            "Questions",
            "ask_questions",
            "prepare_questions",
        ),
        "judged.labels.asking.preparation": ("Prepared", "prepare"),
    },
)
