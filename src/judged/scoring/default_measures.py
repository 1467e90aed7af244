"""Measures of each purpose, where none are named. The command line shows them in its help: nothing is imported here."""

DEFAULT_MEASURE = "nDCG@10"
"""Of what looks at one measure: the first page, with grades and ranks."""

DEFAULT_MEASURES = (DEFAULT_MEASURE, "AP", "RR@10", "P@10", "R@100", "Judged@10")
"""Of an evaluation: it shows several aspects of a run, and how much of it is judged."""

TESTED_MEASURES = (DEFAULT_MEASURE, "AP")
"""Of tests: few, for every measure that is tested is another chance to find something by luck."""

RANKING_AND_CANDIDATES = (DEFAULT_MEASURE, "R@100")
"""Of what tells bad ranking from missing candidates: a measure of each."""

REPORTED_MEASURES = (*TESTED_MEASURES, "R@100")
"""Of a report and the sheet of a change: those of tests, and one of candidates."""

BROWSED_MEASURES = (*TESTED_MEASURES, "RR@10", "R@100")
"""Of the leaderboard in the browser: those of an evaluation, without what it shows in columns of its own."""

COMPARED_MEASURES = (*TESTED_MEASURES, "RR", "R@100")
"""Of two runs in the browser: as the leaderboard, with the whole ranking for RR."""

CLICKED_MEASURES = (DEFAULT_MEASURE, "P@10", "RR")
"""Of judgments against what users do: gain, share of good results, and the first good one."""

SAMPLED_MEASURES = ("P@10", "R@100", "AP")
"""Of judgments of a sample: those that can be estimated from it."""
