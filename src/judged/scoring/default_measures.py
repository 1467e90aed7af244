"""Default measures, one list per purpose. The help of the commands shows them, so this module imports nothing."""

DEFAULT_MEASURE = "nDCG@10"
"""Default of functions and pages that use a single measure."""

DEFAULT_MEASURES = (DEFAULT_MEASURE, "AP", "RR@10", "P@10", "R@100", "Judged@10")
"""Default of `evaluate`: several aspects of a run, and the share of its documents that is judged."""

TESTED_MEASURES = (DEFAULT_MEASURE, "AP")
"""Default of significance tests. Few, because each tested measure adds a chance of a false positive."""

RANKING_AND_CANDIDATES = (DEFAULT_MEASURE, "R@100")
"""One measure of the ranking and one of the candidates, to separate ranking problems from missing documents."""

REPORTED_MEASURES = (*TESTED_MEASURES, "R@100")
"""Default of reports and of the review of a change."""

BROWSED_MEASURES = (*TESTED_MEASURES, "RR@10", "R@100")
"""Default of the leaderboard page."""

COMPARED_MEASURES = (*TESTED_MEASURES, "RR", "R@100")
"""Default of the page that compares two runs. RR has no cutoff here."""

CLICKED_MEASURES = (DEFAULT_MEASURE, "P@10", "RR")
"""Default of comparisons between judgments and clicks."""

SAMPLED_MEASURES = ("P@10", "R@100", "AP")
"""Default of estimates from sampled judgments; only measures that have an estimator."""
