"""Commands and pages about labels."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    commands={
        "Judgments": {
            "pool": Command(
                "judged.labels.commands.collections:pool_command", "Choose which documents of several runs to judge."
            ),
            "labels": Command(
                "judged.labels.commands.labels:labels",
                "Judgments of several people and models, and the qrels they make.",
            ),
            "collection": Command(
                "judged.labels.commands.collections:collection", "What a test collection can tell, and what it cannot."
            ),
        }
    },
    pages=(
        Page(
            "judged.labels.pages.judging:router",
            "/judging",
            "Judging",
            "Which documents are relevant? Grade them alone or with others, and settle differences.",
        ),
        Page("judged.labels.pages.judging:labels_router"),
    ),
    files="judged.labels",
    serve="judged.labels.commands.serve",
)
