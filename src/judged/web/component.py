"""Component with the command that starts the workbench."""

from judged.components import Command, Component

COMPONENT = Component(
    commands={
        "Workbench": {"serve": Command("judged.web.commands:serve_command", "Explore QRELS and RUNs in the browser.")}
    },
    files="judged.web",
)
