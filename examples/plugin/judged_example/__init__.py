"""Components that this package adds to judged."""

from judged.components import Command, Component, Page

COMPONENT = Component(
    measures={"FirstTwo": "judged_example.measures:FirstTwo"},
    readers={"colon": "judged_example.readers:read_colon"},
    engines={"shortest": "judged_example.engines:Shortest"},
    online_metrics={"OpenedShare": "judged_example.logs:OPENED_SHARE"},
    log_readers={"stars": "judged_example.logs:read_stars"},
    commands={"Example": {"longest": Command("judged_example.commands:longest", "Show the longest ranking of RUN.")}},
    pages=(Page("judged_example.pages:router", "/longest", "Longest", "Which run returned most documents?"),),
)
