"""Commands and pages of reports."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    needs=("labels", "online", "pipelines"),
    commands={
        "Release": {
            "change": Command("judged.reports.commands:change", "What is known of a change, and may it ship?"),
            "report": Command(
                "judged.reports.commands:report_command",
                "Write a report on RUNs over the topics of QRELS: one self-contained HTML file.",
            ),
        }
    },
    pages=(
        Page(
            "judged.reports.pages:router",
            "/change",
            "Change",
            "What is known of a change, what is blank, and may it ship?",
            {"baseline": "first", "run": "second"},
        ),
    ),
    files="judged.reports",
)
