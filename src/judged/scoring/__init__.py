"""Scores of runs: judging, measures, evaluation, and how much scores depend on ties and missing judgments.

`evaluate` in `judged.scoring.evaluation` is the entry point: `judged.scoring.judging` joins runs with qrels,
`judged.scoring.measures` has a class for each measure, and `judged.scoring.uncertainty` computes ranges of scores.
Other subpackages have explanations of scores, curves, advice about measures, and replacements of other tools.
"""
