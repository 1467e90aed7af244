"""Commands for user studies."""

from judged.components import Command, Component

COMPONENT = Component(
    needs=("labels", "pipelines"),
    commands={
        "People": {
            "study": Command("judged.studies.commands:study", "User studies: people try the same tasks on each system.")
        }
    },
    files="judged.studies",
)
