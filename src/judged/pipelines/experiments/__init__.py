"""Experiments: the best configuration, its costs, and the uncertainty of the selection."""

from judged.components import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.pipelines.experiments.answer": ("Conclusions",),
        "judged.pipelines.experiments.conclusions": ("conclude",),
        "judged.pipelines.experiments.configurations": ("Configuration", "OmittedCombination"),
        "judged.pipelines.experiments.engines.base": ("QueryRefusedError",),
        "judged.pipelines.experiments.pipelines": ("Candidate",),
        "judged.pipelines.experiments.plan": ("Plan",),
        "judged.pipelines.experiments.results": ("RefusedQuery", "Results", "load"),
        "judged.pipelines.experiments.trial": ("QueryTrial", "TrialEngines"),
        "judged.pipelines.experiments.runner": ("run",),
    },
)
