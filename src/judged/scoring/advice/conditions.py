"""The questions that rules ask of the facts, each with its threshold in one place."""

from __future__ import annotations

from judged.scoring.advice.definition import Condition

WELL_JUDGED = 0.9  # Judged@10 below this: the holes may decide
HALF = 0.5  # Judged@100 below this: measures that look far down see little
FEW_JUDGED = 50  # judged documents a topic, where there is no run to look at
GAP = 0.1  # of Judged@10 between two runs
TIED = 0.01  # share of the judged first 10
CLEARLY = 0.9  # a perfect ranking should come to so much at least
NEARLY = 0.95  # of the topics: nearly all
MOSTLY = 0.8  # of the topics: most
_FEW_TOPICS = 25  # the least that Buckley and Voorhees (2000) find enough to tell systems apart

CONDITIONS: dict[str, Condition] = {
    "runs": Condition("runs are given", lambda p: bool(p.runs), ("runs",), "no run is given"),
    "sets": Condition("a run has no scores", lambda p: bool(p.sets), ("scores",), "every run has scores"),
    "one_answer": Condition(
        "nearly every topic has one relevant document",
        lambda p: p.with_relevant > 0 and p.single >= MOSTLY * p.with_relevant,
        ("single",),
        "topics have several relevant documents",
    ),
    "only_one": Condition(
        "no topic has more than one relevant document",
        lambda p: p.relevant.most == 1,
        ("relevant",),
        "some topic has several relevant documents",
    ),
    "two_or_more": Condition(
        "most topics have two relevant documents or more",
        lambda p: p.relevant.median >= 2,
        ("relevant",),
        "many topics have one relevant document at most",
    ),
    "few_for_10": Condition(
        "many topics have fewer than 10 relevant documents",
        lambda p: p.under_10 > 0 and p.best_p10 < CLEARLY * p.with_relevant / p.n,
        ("under_10",),
        "nearly all topics have 10 relevant documents",
    ),
    "many_for_10": Condition(
        "topics have more than 10 relevant documents",
        lambda p: p.over_10 > 0 and p.best_r10 < CLEARLY * p.with_relevant / p.n,
        ("over_10",),
        "few topics have more than 10 relevant documents",
    ),
    "many_for_100": Condition(
        "topics have more than 100 relevant documents",
        lambda p: p.over_100 > 0 and p.best_r100 < CLEARLY * p.with_relevant / p.n,
        ("over_100",),
        "few topics have more than 100 relevant documents",
    ),
    "uneven_topics": Condition(
        "topics differ tenfold in how many documents are relevant",
        lambda p: p.relevant.most >= 10 * max(p.relevant.least, 1),
        ("relevant",),
        "topics have about equally many relevant documents",
    ),
    "few_topics": Condition("there are fewer than 25 topics", lambda p: p.n < _FEW_TOPICS, ("n",)),
    "several_topics": Condition("there are several topics", lambda p: p.n > 1, ("n", "relevant")),
    "barren": Condition("topics have no relevant document", lambda p: p.barren > 0, ("barren",)),
    "graded": Condition(
        "relevant documents have different grades",
        lambda p: len(p.positive) > 1,
        ("grades",),
        "all relevant documents have one grade",
    ),
    "fine_grades": Condition(
        "grades are many, or fractional",
        lambda p: len(p.positive) > 5 or (len(p.positive) > 1 and any(grade % 1 for grade in p.positive)),
        ("grades",),
        "grades are few whole numbers",
    ),
    "steep": Condition(
        "the scale has three grades above 0 or more",
        lambda p: 2 < len(p.positive) <= 5 and 3 <= p.positive[-1] <= 10,
        ("grades",),
    ),
    "four_levels": Condition(
        "the scale is 0 to 3", lambda p: p.positive == (1, 2, 3), ("grades", "rel"), "the scale is another"
    ),
    "level_loses": Condition(
        "some topics have only documents below the lowest relevant grade",
        lambda p: p.lost > 0,
        ("rel", "lost"),
        "no topic is lost to it",
    ),
    "weak": Condition(
        "many of the documents above 0 have the lowest grade",
        lambda p: len(p.positive) > 1 and p.weakest >= 0.4,
        ("weakest",),
    ),
    "below_best": Condition("topics lack the highest grade", lambda p: p.below_best > 0, ("below_best",)),
    "negative": Condition("there are negative grades", lambda p: p.negative > 0, ("negative",)),
    "one_sided": Condition(
        "nothing is judged not relevant",
        lambda p: p.with_relevant > 0 and p.one_sided >= NEARLY * p.with_relevant,
        ("not_relevant",),
        "some documents are judged not relevant",
    ),
    "holes": Condition(
        "the first 10 are not fully judged",
        lambda p: bool(p.runs) and not p.sets and p.least["judged_10"].judged_10 < WELL_JUDGED,
        ("judged_10", "judged_depth"),
        "the first 10 are judged",
    ),
    "uneven_holes": Condition(
        "the runs are judged to different degrees",
        lambda p: (
            len(p.runs) > 1 and not p.sets and p.most["judged_10"].judged_10 - p.least["judged_10"].judged_10 >= GAP
        ),
        ("judged_10",),
    ),
    "shallow": Condition(
        "the judgments do not go deep",
        lambda p: p.least["judged_100"].judged_100 < HALF if p.runs and not p.sets else p.judged.median < FEW_JUDGED,
        ("judged", "judged_100"),
        "the judgments go deep",
    ),
    "ties": Condition(
        "scores are tied among the first 10",
        lambda p: bool(p.runs) and p.most["tied_10"].tied_10 >= TIED,
        ("ties",),
    ),
    "uneven_lists": Condition(
        "the runs return lists of different lengths",
        lambda p: (
            len(p.runs) > 1
            and p.most["returned.median"].returned.median > 1.1 * p.least["returned.median"].returned.median
        ),
        ("lengths",),
        "the runs return equally many documents",
    ),
    "short_lists": Condition(
        "no list holds 1000 documents", lambda p: p.longest is not None and p.longest < 1000, ("lengths",)
    ),
    "past_100": Condition(
        "lists go beyond rank 100",
        lambda p: p.longest is None or p.longest > 100,
        ("lengths",),
        "lists end at rank 100",
    ),
    "missing": Condition(
        "topics have no results", lambda p: bool(p.runs) and p.most["missing"].missing > 0, ("missing",)
    ),
    "subtopics": Condition(
        "pairs are judged for several subtopics",
        lambda p: p.labels == "subtopics",
        ("labels",),
        "no subtopics are named",
    ),
    "assessors": Condition(
        "pairs are judged by several assessors",
        lambda p: p.labels == "assessors",
        ("labels",),
        "assessors are not told apart",
    ),
    "preferences": Condition("users said what they prefer", lambda p: p.labels == "preferences", ("labels",)),
    "several_labels": Condition(
        "pairs have several judgments", lambda p: p.repeated > 0, ("labels",), "every pair has one judgment"
    ),
}
CONDITIONS["several"] = ~CONDITIONS["one_answer"]
