"""Default measures by purpose. Imports nothing, because the help of the command line shows them."""

DEFAULT_MEASURE = "nDCG@10"
"""Default where there is one measure: the first page, with grades and ranks."""

DEFAULT_MEASURES = (DEFAULT_MEASURE, "AP", "RR@10", "P@10", "R@100", "Judged@10")
"""Defaults of an evaluation: several aspects of a run, and its share of judged documents."""

TESTED_MEASURES = (DEFAULT_MEASURE, "AP")
"""Defaults of tests: few, because each tested measure increases the chance of a false positive."""

RANKING_AND_CANDIDATES = (DEFAULT_MEASURE, "R@100")
"""Defaults for distinguishing bad ranking from missing candidates: one measure of each."""

REPORTED_MEASURES = (*TESTED_MEASURES, "R@100")
"""Defaults of reports and change reviews: those of tests, and one of candidates."""

BROWSED_MEASURES = (*TESTED_MEASURES, "RR@10", "R@100")
"""Defaults of the leaderboard in the browser: those of an evaluation, except what it shows in separate columns."""

COMPARED_MEASURES = (*TESTED_MEASURES, "RR", "R@100")
"""Defaults for comparing two runs in the browser: as the leaderboard, with the whole ranking for RR."""

CLICKED_MEASURES = (DEFAULT_MEASURE, "P@10", "RR")
"""Defaults for comparing judgments with user behavior: gain, share of good results, and the first good result."""

SAMPLED_MEASURES = ("P@10", "R@100", "AP")
"""Defaults for a sample of judgments: measures that can be estimated from it."""
