"""Evaluate search, recommendation and RAG retrieval.

>>> import judged
>>> scores = judged.evaluate({"q1": {"d1": 2, "d2": 1}}, {"q1": {"d2": 0.9, "d1": 0.8}}, ["nDCG@10", "RR"])
>>> round(scores.value("nDCG@10"), 4)
0.8597

Names are imported when they are first used, so that ``import judged`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

from judged._catalogue import MODULES

__version__ = "0.1.0"

_HOMES = {
    "judged.agreement": ("JudgeAgreement", "Reproduction", "agree", "reproduce"),
    "judged.advice": ("Advice", "advise"),
    "judged.comparison": ("Comparison", "compare", "compare_collections", "orders"),
    "judged.curves": ("Curves", "curve", "precision_recall"),
    "judged.data": ("Qrels", "Run"),
    "judged.data.attributes": ("Attributes",),
    "judged.data.documents": ("Documents",),
    "judged.data.texts": ("Texts",),
    "judged.data.check": ("check_qrels", "check_run"),
    "judged.data.findings": ("Finding",),
    "judged.data.topics": ("Topics",),
    "judged.data.write": ("write_qrels", "write_run"),
    "judged.diagnosis.diff": ("Diff", "diff"),
    "judged.diagnosis.disagreement": ("Disagreement", "disagreement"),
    "judged.diagnosis.matrix": ("Matrix", "performance_matrix"),
    "judged.diagnosis.needs": ("Needs", "expand_qrels", "needs"),
    "judged.diagnosis.review": ("ReviewList", "apply_review", "review"),
    "judged.diagnosis.stages": ("Stages", "stages"),
    "judged.diagnosis.tradeoff": ("Tradeoff", "tradeoff"),
    "judged.errors": ("InputError", "JudgedError", "JudgedWarning", "MeasureError", "MissingExtraError"),
    "judged.evaluation": ("Estimate", "Scores", "evaluate", "runs_of", "score_lists"),
    "judged.explanation": ("Explanation", "ToolComparison", "compare_tools", "explain"),
    "judged.gating": ("Check", "GateConfig", "GateResult", "Guardrail", "gate", "gate_scores"),
    "judged.judging": ("Judged", "Ranking", "judge", "judge_list"),
    "judged.judging.align": ("Aligned", "align"),
    "judged.judging.split": ("by_aspect",),
    "judged.measures": ("Measure", "Parameter", "Properties", "measure", "param", "parse", "parse_many"),
    "judged.reporting": ("Report", "report"),
    "judged.slicing": (
        "Expression",
        "ScoresByDocument",
        "Slice",
        "SliceComparison",
        "SlicedScores",
        "Slicing",
        "by_document",
        "by_slice",
        "compare_slices",
        "derive",
        "document_slices",
        "known_topics",
        "slice_topics",
    ),
    "judged.stats.anova": ("anova",),
    "judged.stats.blocked_results": ("AgainstBaseline", "AllPairs", "Anova", "Friedman"),
    "judged.stats.dunnett": ("dunnett", "randomised_dunnett"),
    "judged.stats.friedman": ("friedman", "nemenyi"),
    "judged.stats.tukey": ("randomised_tukey", "tukey_hsd"),
    "judged.stats.correction": ("adjust",),
    "judged.stats.discoveries": ("Discoveries", "losers"),
    "judged.stats.effect": ("effect_sizes", "standardise", "wins"),
    "judged.stats.equivalence": ("equivalence", "non_inferiority"),
    "judged.stats.heterogeneity": ("heterogeneity",),
    "judged.stats.paired": ("paired_test", "paired_tests"),
    "judged.stats.planning": ("plan",),
    "judged.stats.results": ("Difference",),
    "judged.stats.discrimination": ("discriminative_power",),
    "judged.stats.reliability": ("reliability",),
    "judged.stats.robustness": ("leave_one_topic_out",),
    "judged.stats.sample_size": ("minimum_detectable", "power"),
    "judged.stats.stability": ("stability",),
    "judged.stats.agreement": ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha"),
    "judged.stats.rankings": ("kendall_tau", "spearman", "tau_ap"),
    "judged.stats.rbo": ("rbo", "rbo_weight"),
    "judged.stats.weighted": ("weighted_means",),
    "judged.uncertainty.pools": ("leave_one_out",),
    "judged.uncertainty.ties": ("tie_expected", "tie_range", "tied_share"),
    "judged.uncertainty.unjudged": ("unjudged_range",),
    **{f"judged.measures.{module}": classes for module, classes in MODULES.items()},
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'judged' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
