"""Commands and pages of reports."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    needs=("labels", "online", "pipelines"),
    commands={
        "Release": {
            "change": Command(
                "judged.reports.commands:change", "Review a change of a system, and decide whether to ship the change."
            ),
            "report": Command(
                "judged.reports.commands:report_command",
                "Write a report on RUNs over the topics of QRELS as one self-contained HTML file.",
            ),
        }
    },
    pages=(
        Page(
            "judged.reports.pages:router",
            "/change",
            "Change",
            "Review of a change: all available results, missing data, and whether to ship the change.",
            {"baseline": "first", "run": "second"},
        ),
    ),
    files="judged.reports",
)
