"""Commands and pages of the package `interface`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judged.components import Command, Component, Page

if TYPE_CHECKING:
    from judged.scoring.names import Name

_PAGES = "judged.interface.pages"
_TOPICS = {"where": "where", "rel": "rel"}

_ABOUT = {
    "Scores": {
        "evaluate": ("scoring", "Score RUNs against QRELS, with confidence intervals."),
        "explain": ("scoring", "Show how the score of a topic is computed, step by step."),
        "curve": ("scoring", "Plot a measure against its cutoff, or precision against recall."),
        "measures": ("scoring", "List all measures, or describe one."),
        "advise": ("scoring", "Recommend measures for QRELS and RUNs, with reasons."),
    },
    "Comparison": {
        "compare": ("comparison", "Test which RUNs differ, and estimate by how much."),
        "power": ("comparison", "Show the smallest difference between runs that a test can detect."),
        "agree": ("comparison", "Measure the agreement of several judges."),
        "fuse": ("comparison", "Fuse several runs into one run, and choose their weights."),
    },
    "Diagnosis": {
        "slices": ("slices", "Show scores, or tested differences, by slice of the topics."),
        "matrix": ("diagnosis", "Separate bad candidates from bad ranking, by slice and topic."),
        "stages": ("diagnosis", "Split each topic's loss into missing candidates and bad ranking."),
        "disagree": ("diagnosis", "Show where two measures prefer different systems, and why."),
        "needs": ("diagnosis", "Score RUNs by information need, if several queries express the same need."),
        "diff": ("diagnosis", "Show two rankings side by side, topic by topic."),
        "review": ("diagnosis", "List the judgments that should be checked again."),
        "tradeoff": ("diagnosis", "Compare the effectiveness of RUNs with their costs."),
    },
    "Release": {
        "gate": ("gate", "Decide whether a candidate run may replace the baseline."),
    },
    "Files and tools": {
        "check": ("files", "Check QRELS and RUNs for errors that would make scores wrong."),
        "convert": ("files", "Convert judgments or a run to another format."),
        "leave-one-out": ("scoring", "Score each RUN as if it had not contributed to the pool."),
        "trec_eval": ("scoring", "Evaluate like trec_eval: same options, output, and exit codes."),
        "plugins": ("files", "List what other installed packages add to judged."),
        "demo": ("files", "Evaluate eight rankers on the built-in sample."),
    },
}
"""Module and description of each command, by section."""

OTHER_PAGES = {
    "/": ("Home", "Which data are open, and which run is best?"),
    "/choose": ("Choose measures", "Which measures fit a task and the data?"),
    "/open": ("Open other files", "Open other judgments and runs."),
    "/api": ("API", "The data of each page as JSON."),
}
"""Pages that are not in the navigation bar."""


def other_pages() -> list[Name]:
    """Return the pages that are not in the navigation bar, for the index of names."""
    from judged.scoring.names import Name

    return [Name("page", name, text, path) for path, (name, text) in OTHER_PAGES.items()]


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
            "How is a score computed? Change judgments or the ranking, and see each step.",
        ),
        Page(
            f"{_PAGES}.leaderboard:router",
            "/leaderboard",
            "Leaderboard",
            "Which run is best, by which measures, and how certain is this?",
            {"measure": "measure", "baseline": "baseline", "run": "run", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.compare:router",
            "/compare",
            "Compare",
            "Do two runs differ, on which topics, and is the difference significant?",
            {"measure": "measure", "baseline": "first", "run": "second", **_TOPICS},
        ),
        Page(
            f"{_PAGES}.topics.routes:router",
            "/topics",
            "Topics",
            "Which topics are hard? What did each run return for a topic, and how is each result scored?",
            {"measure": "measure", "baseline": "runs", "run": "runs", **_TOPICS},
            "Diagnosis",
        ),
        Page(
            f"{_PAGES}.matrix:router",
            "/matrix",
            "Matrix",
            "Are relevant documents missing or ranked low, and on which topics and slices?",
            {"measure": "y", "baseline": "baseline", "run": "run", **_TOPICS},
            "Diagnosis",
        ),
        Page(
            f"{_PAGES}.slices:router",
            "/slices",
            "Slices",
            "On which kinds of topics does a run score high or low?",
            {"measure": "measures", "baseline": "baseline", "run": "run", **_TOPICS},
            "Diagnosis",
        ),
        Page(
            f"{_PAGES}.learn.routes:router",
            "/learn",
            "Learn",
            "What does a measure count, when should you use it, and when does it mislead?",
            group="",
        ),
        Page(f"{_PAGES}.search:router"),
    ),
    names="judged.interface.component:other_pages",
    files=_PAGES,
)
