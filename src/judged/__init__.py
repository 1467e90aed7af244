"""Evaluate search, recommendation and RAG retrieval.

>>> import judged
>>> scores = judged.evaluate({"q1": {"d1": 2, "d2": 1}}, {"q1": {"d2": 0.9, "d1": 0.8}}, ["nDCG@10", "RR"])
>>> round(scores.value("nDCG@10"), 4)
0.8597

Here is what people start with; the rest is in `judged.measures`, `judged.stats`, `judged.slicing`, `judged.data`,
`judged.online` and `judged.arrays`. Names are imported when they are first used, so that ``import judged`` costs next
to nothing.
"""

from __future__ import annotations

from judged.components import lazily

__version__ = "0.1.0"

__all__, __getattr__, __dir__ = lazily(
    __name__,
    {
        "judged.scoring.evaluation": (
            "Scores",
            "evaluate",
        ),
        "judged.scoring.evaluation.embeddings": ("evaluate_embeddings",),
        "judged.comparison": (
            "compare",
            "compare_collections",
            "power",
            "slicing",
        ),
        "judged.comparison.fusion": ("fuse",),
        "judged.comparison.slicing": (
            "Slice",
            "Slicing",
            "by_document",
            "derive",
            "slice_topics",
            "slices",
        ),
        "judged.diagnosis.diff": ("diff",),
        "judged.diagnosis.disagreement": ("disagree",),
        "judged.diagnosis.matrix": ("matrix",),
        "judged.diagnosis.needs": ("expand_qrels", "needs"),
        "judged.diagnosis.review": ("apply_review", "review"),
        "judged.diagnosis.stages": ("stages",),
        "judged.diagnosis.tradeoff": ("tradeoff",),
        "judged.diagnosis.gates": (
            "GateConfig",
            "gate",
        ),
        "judged.reports": ("report",),
        "judged.scoring.explanation": (
            "compare_tools",
            "explain",
            "explain_list",
        ),
        "judged.scoring.advice": ("advise",),
        "judged.comparison.agreement": (
            "agree",
            "reproduce",
        ),
        "judged.scoring.curves": (
            "curve",
            "precision_recall",
        ),
        "judged.labels": ("pool",),
        "judged.scoring.uncertainty": ("leave_one_out",),
        "judged.scoring.judging": (
            "Judged",
            "judge",
            "judge_list",
        ),
        "judged.data": (
            "Attributes",
            "Documents",
            "Qrels",
            "Run",
            "Texts",
            "Topics",
            "check",
            "convert",
        ),
        "judged.errors": (
            "InputError",
            "JudgedError",
            "JudgedWarning",
            "MeasureError",
            "MissingExtraError",
        ),
        "judged.scoring.measures": (
            "AP",
            "Bpref",
            "DCG",
            "ERR",
            "F",
            "GMAP",
            "InfAP",
            "JudgedShare",
            "P",
            "R",
            "RBP",
            "RR",
            "Rprec",
            "SetF",
            "SetP",
            "SetR",
            "Success",
            "nDCG",
        ),
        "judged.scoring": (
            "arrays",
            "measures",
            "uncertainty",
        ),
        "": (
            "data",
            "online",
            "stats",
        ),
    },
)
