"""Experiments: which configuration is best, what it costs, and whether it is luck."""

from judged._lazily import lazily

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.experiments.answer": ("Conclusions",),
        "judged.experiments.conclusions": ("conclude",),
        "judged.experiments.configurations": ("Configuration", "LeftOut"),
        "judged.experiments.engines.base": ("QueryRefusedError",),
        "judged.experiments.pipelines": ("Candidate",),
        "judged.experiments.plan": ("Plan",),
        "judged.experiments.results": ("Refused", "Results", "load"),
        "judged.experiments.trial": ("Trial", "Trials"),
        "judged.experiments.runner": ("run",),
    },
)
