"""Scores of runs: how results are matched with judgments, the measures, and tables of scores with intervals.

`evaluate` in `judged.scoring.evaluation` joins all of it: `judged.scoring.judging` matches runs with qrels,
`judged.scoring.measures` has a class for each measure, and `judged.scoring.uncertainty` says how far scores may be off.
Explanations of scores, curves, advice about measures, and the drop-in replacements of other tools stand beside them.
"""
