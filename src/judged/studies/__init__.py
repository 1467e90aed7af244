"""User studies: participants do the same tasks with several systems."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.studies.assignment": ("assignments",),
        "judged.studies.design": ("Design", "first_design", "parse_design", "read_design"),
        "judged.studies.design_check": ("DesignCheck", "check_design"),
        "judged.studies.outcomes": ("measure_agreement",),
        "judged.studies.planning": ("pilot_spreads", "Spreads", "StudyPlan", "plan_study"),
        "judged.studies.questionnaires": ("Questionnaire", "agreement", "scores"),
        "judged.studies.records": ("StudyRecords",),
        "judged.studies.study_report": ("StudyReport", "report"),
    },
)
