"""Commands for user studies."""

from judged.components import Command, Component

COMPONENT = Component(
    needs=("labels", "pipelines"),
    commands={"People": {"study": Command("judged.studies.commands:study", "Plan, run, and analyze user studies.")}},
    files="judged.studies",
)
