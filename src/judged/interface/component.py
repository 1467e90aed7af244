"""Commands and pages of the package `interface`."""

from judged.components import Command, Component, Page

_PAGES = "judged.interface.pages"
_TOPICS = {"where": "where", "rel": "rel"}

_ABOUT = {
    "Scores": {
        "evaluate": ("scoring", "Score RUNs against QRELS, with intervals over topics."),
        "explain": ("scoring", "Show step by step how the score of a topic is computed."),
        "curve": ("scoring", "Plot a measure against its cutoff, or precision against recall."),
        "measures": ("scoring", "List the measures, or show the page of one."),
        "advise": ("scoring", "Say which measures suit QRELS and RUNs, which do not, and why."),
    },
    "Comparison": {
        "compare": ("comparison", "Test which RUNs differ, and by how much."),
        "power": ("comparison", "Show which differences between runs these topics could detect."),
        "agree": ("comparison", "Compare the judgments of several judges."),
        "fuse": ("comparison", "Combine several runs into one, and choose their weights."),
    },
    "Diagnosis": {
        "slices": ("slices", "Show scores, or tested differences, by slices of the topics."),
        "matrix": ("diagnosis", "Tell bad candidates from bad ranking, by slice and topic."),
        "stages": ("diagnosis", "Split each topic's loss into what was not found and what was ranked badly."),
        "disagree": ("diagnosis", "Show where two measures prefer different systems, and why."),
        "needs": ("diagnosis", "Score RUNs by information need, where several queries express the same one."),
        "diff": ("diagnosis", "Show two rankings side by side, topic by topic."),
        "review": ("diagnosis", "List the judgments that are worth a second look."),
        "tradeoff": ("diagnosis", "Weigh what RUNs gain against what they cost."),
    },
    "Release": {
        "gate": ("gate", "Decide whether a candidate may replace the baseline."),
    },
    "Files and tools": {
        "check": ("files", "Look in QRELS and RUNs for anything that would make numbers wrong."),
        "leave-one-out": ("scoring", "Score each RUN as if it had not contributed to the pool."),
        "trec_eval": ("scoring", "Evaluate as trec_eval does: options, output and exit codes."),
        "demo": ("files", "Evaluate eight rankers on the built-in sample."),
    },
}
"""Module and description of each command, by section."""

COMPONENT = Component(
    commands={
        section: {
            name: Command(f"judged.interface.commands.{module}:{name.replace('-', '_')}_command", about)
            for name, (module, about) in commands.items()
        }
        for section, commands in _ABOUT.items()
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
