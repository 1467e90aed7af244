"""Commands and pages for logs of user behavior."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    needs=("labels",),
    commands={
        "Online": {
            "online": Command(
                "judged.online.commands.online:online", "Metrics of user behavior from interaction logs."
            ),
            "logs": Command("judged.online.commands.logs:logs", "Check, convert, and map interaction logs."),
            "clicks": Command(
                "judged.online.commands.clicks:clicks", "Click models, and judgments derived from clicks."
            ),
            "watch": Command(
                "judged.online.commands.comparisons:watch_command",
                "Compare metrics of a running system with their baselines.",
            ),
        }
    },
    pages=(
        Page(
            "judged.online.pages:users_router",
            "/users",
            "Metrics",
            "How often do users click, find nothing, or give up, by day, by rank, and by slice?",
            group="Users",
            option="log",
            data="an interaction log",
        ),
        Page(
            "judged.online.pages:test_router",
            "/users/test",
            "A/B test",
            "Is a variant better for users than the baseline?",
            group="Users",
            option="log",
            data="an interaction log",
        ),
        Page(
            "judged.online.pages:watch_router",
            "/users/watch",
            "Monitoring",
            "Have metrics of the running system changed?",
            group="Users",
            option="watch",
            data="a configuration of judged watch",
        ),
        Page(
            "judged.online.pages:router",
            "/clicks",
            "Clicks",
            "Which click model fits, how often do users examine each rank, and do clicks agree with judgments?",
            group="Users",
            option="log",
            data="an interaction log",
        ),
    ),
    log_readers={
        "wscd": "judged.online.readers.clickmodels:read_wscd",
        "clickmodels": "judged.online.readers.clickmodels:read",
        "trec-session": "judged.online.readers.trec_session:read",
    },
    names="judged.online.names:names",
    files="judged.online",
    recognizers={"log": "judged.online.recognition:recognize"},
    serve="judged.online.commands.serve",
)
