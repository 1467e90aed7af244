"""Commands and pages for logs of user behavior."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    needs=("labels",),
    commands={
        "Online": {
            "online": Command(
                "judged.online.commands.online:online", "Metrics of what users did, from interaction logs."
            ),
            "logs": Command(
                "judged.online.commands.logs:logs", "Check interaction logs, and make them ready for metrics."
            ),
            "clicks": Command(
                "judged.online.commands.clicks:clicks", "Models of how users click, and judgments made of clicks."
            ),
            "watch": Command(
                "judged.online.commands.comparisons:watch_command", "Is a running system still what its baseline was?"
            ),
        }
    },
    pages=(
        Page(
            "judged.online.pages:router",
            "/clicks",
            "Clicks",
            "How do users click, how often is each rank looked at, and do clicks agree with judgments?",
        ),
        Page(
            "judged.online.pages:users_router",
            "/users",
            "Users",
            "What does an A/B test say, and is production still what it was?",
        ),
    ),
    log_readers={
        "wscd": "judged.online.readers.clickmodels:read_wscd",
        "clickmodels": "judged.online.readers.clickmodels:read",
        "trec-session": "judged.online.readers.trec_session:read",
    },
    files="judged.online",
    serve="judged.online.commands.serve",
)
