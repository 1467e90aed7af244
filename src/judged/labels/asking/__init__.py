"""Models as judges: what they are asked, what that may cost, what they answered, and what is no answer."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.labels.asking.asking": ("Asked", "ask"),
        "judged.labels.asking.client": ("Endpoint",),
        "judged.labels.asking.injections": ("injection_signs",),
        "judged.labels.asking.parsing": ("expected_grade", "expected_grades"),
        "judged.labels.asking.preferences": ("Preferences", "ask_preferences", "prepare_preferences"),
        "judged.labels.asking.preparation": ("Prepared", "prepare"),
        "judged.labels.asking.questions": ("Questions", "ask_questions", "prepare_questions"),
    },
)
