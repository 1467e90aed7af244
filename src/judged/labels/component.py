"""Commands and pages about labels."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    commands={
        "Judgments": {
            "pool": Command(
                "judged.labels.commands.collections:pool_command", "Select documents of several runs to judge."
            ),
            "labels": Command(
                "judged.labels.commands.labels:labels",
                "Collect labels from people and models, and create qrels from these labels.",
            ),
            "collection": Command(
                "judged.labels.commands.collections:collection",
                "Check the quality and the limits of a test collection.",
            ),
        }
    },
    pages=(
        Page(
            "judged.labels.pages.judging:router",
            "/judging",
            "Judging",
            "Grade documents, alone or with other judges, and resolve disagreements between judges.",
            group="Judging",
        ),
        Page(
            "judged.labels.pages.judging:labels_router",
            "/labels/quality",
            "Agreement",
            "Do judges agree, and can the labels of models replace those of people?",
            group="Judging",
            option="labels",
            data="a store of labels",
        ),
    ),
    files="judged.labels",
    recognizers={"labels": "judged.labels.recognition:recognize"},
    serve="judged.labels.commands.serve",
)
