"""Commands and pages for evaluations over time."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    needs=("labels",),
    commands={
        "Release": {
            "history": Command(
                "judged.history.commands:history", "Keep evaluations, and show what changed over time."
            )
        }
    },
    pages=(
        Page(
            "judged.history.pages:router",
            "/history",
            "History",
            "When did scores change, and with which version did a change begin?",
            option="history",
            data="a history of evaluations",
        ),
    ),
    files="judged.history",
    readers={"history": "judged.history.store:read_run"},
    sample={"history.db": "judged.history.sample:write_sample_history"},
    serve="judged.history.serve",
)  # fmt: skip
