"""Commands and pages of the core."""

from judged.components import Command, Component, Page

_COMMANDS = "judged.interface.commands"
_PAGES = "judged.interface.pages"
_TOPICS = {"where": "where", "rel": "rel"}

COMPONENT = Component(
    commands={
        "Scores": {
            "evaluate": Command(
                f"{_COMMANDS}.scoring:evaluate_command", "Score RUNs against QRELS, with intervals over topics."
            ),
            "explain": Command(
                f"{_COMMANDS}.scoring:explain_command", "Show step by step how the score of a topic is computed."
            ),
            "curve": Command(
                f"{_COMMANDS}.scoring:curve_command", "Plot a measure against its cutoff, or precision against recall."
            ),
            "measures": Command(f"{_COMMANDS}.scoring:measures_command", "List the measures, or show the page of one."),
            "advise": Command(
                f"{_COMMANDS}.scoring:advise_command", "Say which measures suit QRELS and RUNs, which do not, and why."
            ),
        },
        "Comparison": {
            "compare": Command(f"{_COMMANDS}.comparison:compare_command", "Test which RUNs differ, and by how much."),
            "power": Command(
                f"{_COMMANDS}.comparison:power_command",
                "Show which differences between runs these topics could detect.",
            ),
            "agree": Command(f"{_COMMANDS}.comparison:agree_command", "Compare the judgments of several judges."),
            "fuse": Command(
                f"{_COMMANDS}.comparison:fuse_command", "Combine several runs into one, and choose their weights."
            ),
        },
        "Diagnosis": {
            "slices": Command(
                f"{_COMMANDS}.slices:slices_command", "Show scores, or tested differences, by slices of the topics."
            ),
            "matrix": Command(
                f"{_COMMANDS}.diagnosis:matrix_command", "Tell bad candidates from bad ranking, by slice and topic."
            ),
            "stages": Command(
                f"{_COMMANDS}.diagnosis:stages_command",
                "Split each topic's loss into what was not found and what was ranked badly.",
            ),
            "disagree": Command(
                f"{_COMMANDS}.diagnosis:disagree_command", "Show where two measures prefer different systems, and why."
            ),
            "needs": Command(
                f"{_COMMANDS}.diagnosis:needs_command",
                "Score RUNs by information need, where several queries express the same one.",
            ),
            "diff": Command(f"{_COMMANDS}.diagnosis:diff_command", "Show two rankings side by side, topic by topic."),
            "review": Command(
                f"{_COMMANDS}.diagnosis:review_command", "List the judgments that are worth a second look."
            ),
            "tradeoff": Command(
                f"{_COMMANDS}.diagnosis:tradeoff_command", "Weigh what RUNs gain against what they cost."
            ),
        },
        "Release": {
            "gate": Command(f"{_COMMANDS}.gate:gate_command", "Decide whether a candidate may replace the baseline.")
        },
        "Files and tools": {
            "check": Command(
                f"{_COMMANDS}.files:check_command", "Look in QRELS and RUNs for anything that would make numbers wrong."
            ),
            "leave-one-out": Command(
                f"{_COMMANDS}.scoring:leave_one_out_command", "Score each RUN as if it had not contributed to the pool."
            ),
            "trec_eval": Command(
                f"{_COMMANDS}.scoring:trec_eval_command",
                "Evaluate as trec_eval does: options, output and exit codes.",
            ),
            "demo": Command(f"{_COMMANDS}.files:demo_command", "Evaluate eight rankers on the built-in sample."),
        },
    },
    pages=(
        Page(f"{_PAGES}.home:router"),
        Page(
            f"{_PAGES}.evaluator.routes:router",
            "/evaluator",
            "Evaluator",
            "How is a score computed? Change judgments or the ranking, and see every step.",
        ),
        Page(
            f"{_PAGES}.leaderboard:router",
            "/leaderboard",
            "Leaderboard",
            "Which run is best, by which measures, and how certain is that?",
            {"measure": "measure", "baseline": "baseline", "run": "run", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.compare:router",
            "/compare",
            "Compare",
            "Do two runs differ, on which topics, and could it be chance?",
            {"measure": "measure", "baseline": "first", "run": "second", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.topics.routes:router",
            "/topics",
            "Topics",
            "Which topics are hard? What did each run return for one, and why does it score so?",
            {"measure": "measure", "baseline": "runs", "run": "runs", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.matrix:router",
            "/matrix",
            "Matrix",
            "Do the candidates fail, or their ranking, and on which topics and slices?",
            {"measure": "y", "baseline": "baseline", "run": "run", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.slices:router",
            "/slices",
            "Slices",
            "On which kinds of topics is a run strong or weak?",
            {"measure": "measures", "baseline": "baseline", "run": "run", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.learn.routes:router",
            "/learn",
            "Learn",
            "What does a measure count, when does it fit, and where does it mislead?",
        ),
        Page(f"{_PAGES}.search:router"),
    ),
    files=_PAGES,
)
